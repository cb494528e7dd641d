"""softstack compile, extract, diagnose and draw: between pushdown transducers and networks."""

import json
import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from softstack import checks
from softstack.errors import BadInput, unknown
from softstack.formal import drawing
from softstack.lab import tasks
from softstack.lab.cli.options import Whole
from softstack.lab.explain import compiled as machines
from softstack.lab.explain import diagnosis, diagnosis_figures, transducer_table
from softstack.lab.explain.extract import extract as extraction
from softstack.lab.reports.figures import rendered
from softstack.lab.runs import store
from softstack.lab.sweeps.jobs import train_missing


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

    softstack compile parenthesis                          the machine of a task

    softstack compile mine.pdt --length 1000               a machine of your own, as `softstack draw` shows it

    softstack compile reversal --controller linear --unbuffered

    Parameters
    ----------
    machine
        the name of a task, or a file with rules such as  q0 -> q1   x : y , s -> t
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
    found, own = machines.find(machine)
    made, trial = machines.compile_task(
        found,
        task or own,
        controller=controller,
        buffered=not unbuffered,
        codes=codes,
        length=length,
        tolerance=tolerance,
    )
    errors = Console(stderr=True)
    for warning in made.warnings:
        errors.print(f"softstack: warning: {warning}", markup=False, highlight=False, soft_wrap=True)
    path = machines.save(out, found, trial)
    print(f"{path}  dev {trial.dev:.1%}  test {trial.test:.1%}  compiled")
    network, steps = made.network, made.steps
    units = "" if controller == "linear" else f"{network.hidden_size} hidden units, "
    off = made.error(network.cell.heads.weight.dtype)
    print(f"machine    {found.size}")
    print(f"network    {units}vectors of {network.memory_size}, gain {made.gain:.1f}")
    print(f"steps      {steps.a} T + {steps.b} for T symbols")
    print(f"strengths  within {off:.1e} of 0 or 1 on inputs of up to {length:,} symbols")


def draw(machine: str, /, *, out: Path = Path("machine.svg")) -> None:
    """Draw a pushdown transducer, as the paper's Figures 3 and 4 do.

    softstack draw parenthesis

    softstack draw RUN_DIR/machine.pdt --out machine.dot

    Parameters
    ----------
    machine
        the name of a task, or a file with rules such as  q0 -> q1   x : y , s -> t
    out
        FILE.svg, or FILE.dot for Graphviz
    """
    kinds = {".svg": drawing.svg, ".dot": drawing.dot}
    if out.suffix not in kinds:
        raise BadInput(f"--out {out} must end in one of {', '.join(kinds)}")
    found, _ = machines.find(machine)
    out.parent.mkdir(parents=True, exist_ok=True)
    store.write(out, kinds[out.suffix](found).encode())
    print(found.size)
    print(f"Written: {out}")


def diagnose(run_dir: Path, /, *, out: Path | None = None, strings: Whole = 200) -> None:
    """Say whether a network uses its stack: as a stack, as unstructured memory, or not at all.

    Takes its reads, its state and the depth of its stack from it, rounds its strengths, and measures accuracy
    by length, depth and distance. Writes diagnosis.json, .png and .html.

    softstack diagnose RUN_DIR

    Parameters
    ----------
    run_dir
        the directory of one trial, as `softstack train` and `softstack compile` print it
    out
        where the files go; the run directory by default
    strings
        how many strings of the test set
    """
    checks.positive("--strings", strings)
    run = store.load(run_dir)
    found = diagnosis.diagnose(store.network(run), run.condition, run.seed, strings)
    title = f"{tasks.find(run.condition.task).name}, {run.condition.controller}, {run.path.name}"
    folder = run_dir if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    store.write(folder / "diagnosis.json", json.dumps(found.as_dict(), indent=1).encode() + b"\n")
    store.write(folder / "diagnosis.png", rendered(diagnosis_figures.draw(found, title), "png"))
    store.write(folder / "diagnosis.html", diagnosis_figures.page(found, title).encode())
    for name, accuracy in found.ablated.items():
        print(f"{name:24}{accuracy:7.1%}   {found.agreement[name]:6.1%} of the answers stay")
    for length, accuracy in found.lengths:
        print(f"{f'{length} symbols':24}{accuracy:7.1%}")
    print(f"below 99 % at           {found.falls}; {found.falls_by}")
    print(f"Written: {folder / 'diagnosis.html'}, and .json and .png beside it")
    print(found.sentence)


def extract(
    run_dir: Path,
    /,
    *,
    states: Whole = 20,
    symbols: Whole = 16,
    strings: Whole = 400,
    every_position: bool = False,
    out: Path | None = None,
) -> None:
    """Read off a network the pushdown transducer that it computes, and say how well that explains it.

    Writes extracted.json and, where there is one, the machine as extracted.pdt and extracted.svg.

    softstack extract RUN_DIR

    Parameters
    ----------
    run_dir
        the directory of one trial, as `softstack train` and `softstack compile` print it
    states
        the most states that an explanation may have
    symbols
        the most symbols on its stack
    strings
        strings to read transitions from; fidelity is measured on others
    every_position
        explain also what the network says where its task scores nothing
    out
        where the files go; the run directory by default
    """
    run = store.load(run_dir)
    found = extraction(
        store.network(run),
        run.condition,
        run.seed,
        states=states,
        symbols=symbols,
        strings=strings,
        every_position=every_position,
    )
    folder = run_dir if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    store.write(folder / "extracted.json", json.dumps(found.as_dict(), indent=1).encode() + b"\n")
    if found.machine is not None:
        store.write(folder / "extracted.pdt", str(found.machine).encode() + b"\n")
        store.write(folder / "extracted.svg", drawing.svg(found.machine).encode())
        print(found.machine)
        print()
    for score in found.scores:
        print(f"{f'{score.factor}x length':12}fidelity {score.fidelity}   accuracy {score.accuracy}")
    if found.counterexample is not None:
        word, position, ours, theirs = found.counterexample
        print(f"They differ at symbol {position + 1} of  {' '.join(word)}")
        print(f"the machine says {ours or 'nothing'}, the network {theirs or 'nothing'}")
    print(f"Written: {folder / 'extracted.json'}")
    print(found.sentence)


def transducers(
    *,
    names: Annotated[list[str] | None, Parameter(name="--tasks", consume_multiple=True)] = None,
    runs: Path = Path("runs/table1"),
    trials: Whole = 10,
    engine: str = "local",
    out: Path = Path("docs"),
) -> None:
    """Compiled and trained networks side by side: accuracy to 100 times the length, verdicts, extracted PDTs.

    Writes the docs page transducers.md, the numbers behind it in transducers.json, and drawings of the
    machines that training found. Trials that `--runs` has are loaded, the rest are trained and kept there.

    Parameters
    ----------
    names
        tasks of the paper; all six if not given
    runs
        where run directories are; that of `softstack table` by default
    trials
        trials a network, with seeds 0, 1, ...
    engine
        where missing trials train; see `softstack table --help`
    out
        where the page goes
    """
    began = time.perf_counter()
    checks.positive("--trials", trials)
    wanted = transducer_table.TASKS if names is None else tuple(names)
    for name in wanted:
        if name not in transducer_table.TASKS:
            raise unknown("task of the paper", name, transducer_table.TASKS)
    seeds = range(trials)
    train_missing(runs, transducer_table.conditions(wanted), seeds, engine)
    made: list[transducer_table.Row] = []
    pictures: dict[str, str] = {}  # by what is drawn: the same machine is shown once
    (out / "transducers").mkdir(parents=True, exist_ok=True)
    for row, machine in transducer_table.rows(runs, seeds, wanted):
        made.append(row)
        print("  ".join(transducer_table.cells(row)), flush=True)
        drawn = transducer_table.picture(row, machine)
        if drawn is not None and drawn[1] not in pictures:
            store.write(out / "transducers" / drawn[0], drawn[1].encode())
            pictures[drawn[1]] = f"transducers/{drawn[0]}"
    meta = {**store.provenance("cpu"), "seeds": list(seeds), "seconds": round(time.perf_counter() - began, 1)}
    text = json.dumps({**meta, "rows": made}, indent=1)
    store.write(out / "transducers.json", text.encode() + b"\n")
    store.write(out / "transducers.md", transducer_table.page(made, meta, [*pictures.values()]).encode())
    print(f"Written: {out / 'transducers.md'}, and transducers.json beside it")


COMMANDS = (compile, extract, diagnose, draw, transducers)
