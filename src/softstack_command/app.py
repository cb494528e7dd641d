"""Which commands there are, and where. A command's module, and torch, is imported when the command is run."""

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console

from softstack_command import forks, interrupts
from softstack_command.advice import INSTALL

CLI = "softstack.lab.cli"
COMMANDS = {  # where it is, and the first line of its docstring
    "train": ("train:train", "Train a network on a task and print where its run directory is."),
    "evaluate": (
        "evaluate:evaluate",
        "Score a trained network, on a split of its own task or on a file of yours.",
    ),
    "view": ("view:view", "Look inside trained networks in a browser, on any input that you type."),
    "gallery": (
        "view:gallery",
        "Look inside networks that come with softstack: some work, some fail, and each can be broken.",
    ),
    "play": ("view:play", "Push and pop by hand: a page with a stack or a queue, and no network."),
    "trace": (
        "figures:trace",
        "Draw what a trained network does on an input: pops, pushes, vectors, input and output at each step.",
    ),
    "plot": ("figures:plot", "Draw how networks learnt: dev accuracy and loss after each epoch."),
    "tasks": (
        "data:tasks",
        "List the tasks by the paper that they come from, their alphabets and an example of each.",
    ),
    "sample": ("data:sample", "Write examples of a task as TSV, as `softstack evaluate --data` reads it."),
    "table": ("table:table", "Reproduce the paper's Table 1, side by side with the paper's own numbers."),
    "solve": ("solve:solve", "Train controllers so that they use their stacks, and show that they do."),
    "study": (
        "study:study",
        "Find out what the recipe of `softstack solve` depends on, one of its numbers at a time.",
    ),
    "suite": (
        "suite:suite",
        "Compare memories: each with each controller on each task, with the recipe of `solve` and without.",
    ),
    "figures": (
        "figures:figures",
        "Draw the paper's Figures 5 and 6: five networks, each on the input that the paper shows.",
    ),
    "transducers": (
        "transducers:transducers",
        "Put compiled and trained networks side by side: accuracy by length, verdicts, extracted machines.",
    ),
    "sweep": ("sweep:sweep", "Train every condition of a TOML file with every seed."),
    "schema": (
        "schema:schema",
        "Write what a TOML file may say as JSON Schema, by which editors complete and check it.",
    ),
    "status": (
        "sweep:status",
        "How far the sweeps under a directory are: done, running, failed, rate and time left.",
    ),
    "runs": ("runs:runs", "List results."),
    "compare": (
        "runs:compare",
        "Put two conditions side by side: medians, their difference, and how often a trial succeeds.",
    ),
    "reindex": ("runs:reindex", "Make index.sqlite anew from the run directories, which are the truth."),
    "export": ("export:export", "Write a trained network in a form that other programs read."),
    "compile": (
        "machines:compile",
        "Make a network that computes a pushdown transducer exactly, without training.",
    ),
    "draw": ("machines:draw", "Draw a pushdown transducer, as the paper's Figures 3 and 4 do."),
    "equal": (
        "equal:equal",
        "Say whether two machines or networks say the same: equal, different, or undecided.",
    ),
    "extract": (
        "explain:extract",
        "Read off a network the pushdown transducer that it computes, and say how well that explains it.",
    ),
    "diagnose": (
        "explain:diagnose",
        "Say whether a network uses its memory: as a stack, a queue, a counter, a register, or not at all.",
    ),
    "bench": (
        "bench:bench",
        "Time the kernels beside the reference and beside a loop written as the equations read.",
    ),
}
WITH_WORKERS = ("sweep", "table", "solve", "suite", "transducers", "figures")  # unless told otherwise

WRITING = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors that only writing meets

PLUGIN = "a file, FILE.py, with tasks, memories or controllers of your own; may be given several times"

app = App(
    name="softstack",
    version=lambda: metadata.version("softstack"),
    help="""Train networks with differentiable stacks, and look inside them.

    Begin with `softstack play` and `softstack gallery`, which need no training. Then
    `softstack train reversal --controller linear`, and `softstack view RUN_DIR` with the directory that it
    prints.""",
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,  # `main` hears it
)
for _name, (_place, _summary) in COMMANDS.items():
    app.command(f"{CLI}.{_place}", name=_name, help=_summary)
app.register_install_completion_command(help="Let the shell complete commands and options.")
# Takes --plugin out of the line and leaves the rest as it is. It knows no command, so that it imports none.
launcher = App(
    help_flags=(),
    version_flags=(),
    end_of_options_delimiter="\0",  # no word can be this: -- is for the command
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,
)
errors = Console(stderr=True)


@launcher.default
@app.meta.default  # for its line on every page of help
def run(
    *words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    plugin: Annotated[list[Path] | None, Parameter(help=PLUGIN)] = None,
) -> None:
    if words and words[0] in COMMANDS:
        _import(words, plugin or ())
        del app[words[0]]  # its page of help is its docstring, and not the one line
        app.command(f"{CLI}.{COMMANDS[words[0]][0]}", name=words[0])
    app(words, exit_on_error=False, error_console=errors)


def _import(words: Sequence[str], plugin: Sequence[Path]) -> None:
    """All that a command needs, which takes seconds."""
    idle = any(word in ("--help", "-h") or word.startswith("--engine") for word in words)
    if words[0] in WITH_WORKERS and not idle:
        forks.prepare()
    import torch

    from softstack.lab import plugins

    torch.set_num_threads(1)
    plugins.load_all(plugin)
    import_module(f"{CLI}.{COMMANDS[words[0]][0].split(':')[0]}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Errors a person can mend are a sentence and exit code 2; anything else is a bug and shows itself."""
    try:
        launcher(arguments, exit_on_error=False, error_console=errors)
    except CycloptsError:
        sys.exit(2)  # said already
    except BrokenPipeError:  # whoever read our output has seen enough
        _drop_output()
    except KeyboardInterrupt:  # raised where it did no harm
        errors.print(interrupts.SENTENCE, soft_wrap=True)
        sys.exit(interrupts.STOPPED)
    except Exception as error:
        sentence = _sentence(error)
        if sentence is None:
            raise
        from softstack.words import shown  # there already

        line = f"softstack: {shown(sentence)}"
        errors.print(line, markup=False, emoji=False, highlight=False, soft_wrap=True)
        _drop_output()
        sys.exit(2)


def _drop_output() -> None:
    """What cannot be written now is lost: else Python tries again when it ends, and complains."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _sentence(error: Exception) -> str | None:
    """What to tell a person; None for a bug."""
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):  # as torch says it
        return "there is not enough memory for sizes as large as these: ask for less"
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        about = f"{error.filename}: " if error.filename else ""
        unchanged = "; nothing already on disk was changed" if error.errno in WRITING else ""
        return f"{about}{reason[:1].lower()}{reason[1:]}{unchanged}"
    if isinstance(error, ImportError):
        missing = error.__cause__ if isinstance(error.__cause__, ModuleNotFoundError) else error
        name = getattr(missing, "name", None) or ""
        return None if name.startswith("softstack") else f"this command needs {name}: {INSTALL}"
    from softstack.errors import BadInput  # there already, or this is a bug

    return str(error) if isinstance(error, BadInput) else None
