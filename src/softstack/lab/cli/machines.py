"""`softstack compile` and `softstack draw`: from pushdown transducers."""

from pathlib import Path

from softstack.formal import drawing
from softstack.lab.cli.options import Whole, writable
from softstack.lab.cli.screen import say
from softstack.lab.explain import compiled as machines
from softstack.lab.runs import store
from softstack.lab.tasks import sources
from softstack.words import counted


def compile(
    machine: str,
    /,
    *,
    task: str | None = None,
    controller: str = "lstm",
    unbuffered: bool = False,
    codes: str = "onehot",
    length: Whole = 10_000,
    tolerance: float | None = None,
    out: Path = Path("runs/compiled"),
) -> None:
    """Make a network that computes a pushdown transducer exactly, without training.

    Writes a run directory like those of `softstack train`, for evaluate, trace, diagnose and extract.

    softstack compile parenthesis               # the machine of a task

    softstack compile mine.pdt --length 1000    # a machine of your own

    softstack compile reversal --controller linear --unbuffered

    Parameters
    ----------
    machine
        a task, or a file with rules such as  q -> r   x : y , s -> t
    task
        with a file: the task whose symbols the network reads and says; by default the machine is its own task
    controller
        lstm, or linear where the machine has one state
    unbuffered
        without buffers, where every rule reads one symbol and writes one
    codes
        onehot or binary: the vectors that stand for symbols on the stack
    length
        the longest input on which it must be right
    tolerance
        how far strengths may be from 0 or 1; by default they are exact, and gates have no gradient
    out
        where run directories go
    """
    machine_in_file, own_task = machines.find(machine)
    transducer, note = sources.speaking(machine_in_file)
    if note:
        say(note)
    if own_task == str(machine_in_file):
        own_task = str(transducer)
    compilation, trial = machines.compile_task(
        transducer,
        task or own_task,
        controller=controller,
        buffered=not unbuffered,
        codes=codes,
        length=length,
        tolerance=tolerance,
    )
    for warning in compilation.warnings:
        say(f"warning: {warning}")
    path = machines.save(out, transducer, trial)
    print(f"{path}  dev {trial.dev:.1%}  test {trial.test:.1%}  compiled")
    sizes, steps = compilation.network, compilation.steps
    units = "" if controller == "linear" else f"{counted(sizes.hidden_size, 'hidden unit')}, "
    off = compilation.error(sizes.cell.heads.weight.dtype)
    print(f"machine    {transducer.size}")
    print(f"network    {units}vectors of {sizes.memory_size}, gain {compilation.gain:.1f}")
    print(f"steps      {steps.a} T + {steps.b} for T symbols")
    print(f"strengths  within {off:.1e} of 0 or 1 on inputs of up to {length:,} symbols")


def draw(machine: str, /, *, out: Path = Path("machine.svg")) -> None:
    """Draw a pushdown transducer, as the paper's Figures 3 and 4 do.

    softstack draw parenthesis

    softstack draw RUN_DIR/machine.pdt --out machine.dot

    Parameters
    ----------
    machine
        a task, or a file with rules such as  q -> r   x : y , s -> t
    out
        FILE.svg, or FILE.dot for Graphviz
    """
    kinds = {".svg": drawing.svg, ".dot": drawing.dot}
    writable(out, *kinds)
    transducer, _ = machines.find(machine)
    store.write(out, kinds[out.suffix](transducer))
    print(transducer.size)
    print(f"Written: {out}")
