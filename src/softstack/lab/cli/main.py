"""The command line. Each command is a few lines: the work is done elsewhere."""

import json
import os
import sys
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import docstring_parser
import numpy as np
import torch
from cyclopts import App, CycloptsError, Parameter
from rich.console import Console
from rich.table import Table

import softstack
from softstack.errors import BadInput
from softstack.lab import tasks
from softstack.lab.cli import bench, questions, runs, transducers, view
from softstack.lab.cli.options import Whole, whole
from softstack.lab.cli.screen import wide
from softstack.lab.reports import figures, row_page
from softstack.lab.reports import table1 as report
from softstack.lab.runs import store
from softstack.lab.sweeps.jobs import train_missing
from softstack.lab.tasks.data import Split, read_tsv, write_tsv
from softstack.lab.training.conditions import TABLE_1, Condition, corrected
from softstack.lab.training.draws import encoded, examples, stream
from softstack.lab.training.population import accuracies

app = App(
    name="softstack",
    version=softstack.__version__,
    help="""Train networks with differentiable stacks, and look inside them.

    Begin with `softstack train reversal --controller linear`, then `softstack view RUN_DIR` with the
    directory that it prints.""",
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,  # `main` says what became of the work
)
errors = Console(stderr=True)


def _options() -> Any:
    """Every field of a Condition but the task as an option, unset unless given."""
    docs = {p.arg_name: p.description for p in docstring_parser.parse_from_object(Condition).params}
    options = []
    for field in fields(Condition):
        if field.name != "task":
            text = f"{docs[field.name]} [default: {field.default}]"
            kind: Any = field.type
            how = Parameter(help=text, converter=whole) if kind is int else Parameter(help=text)
            options.append((field.name, Annotated[kind | None, how], None))
    return Parameter(name="*")(
        make_dataclass("Options", options, frozen=True, namespace={"__module__": __name__})
    )


if TYPE_CHECKING:
    Options = Any
else:
    Options = _options()
Rows = Annotated[list[str] | None, Parameter(consume_multiple=True)]


@app.command
def table(
    *, trials: Whole = 10, rows: Rows = None, out: Path = Path("runs/table1"), engine: str = "local"
) -> None:
    """Reproduce the paper's Table 1, side by side with the paper's own numbers.

    Trains what is missing under `--out` and writes table1.html, .md and .json there (rows.html and so on, if
    only some rows are asked for). Each row of the page leads to its trials: how they learnt, and three of
    them at work. Stop it at any time and run it again: finished trials are kept.

    softstack table --rows 1 8                the two rows that take seconds

    softstack table --rows parenthesis        all rows of a task

    Parameters
    ----------
    trials
        trials a row, with seeds 0, 1, ...
    rows
        numbers of rows, from 1 to 18, or names of tasks; all if not given
    out
        where run directories and reports go
    engine
        local (a process a core), inline (in this process), or tcp://host:port, a running dask scheduler
    """
    began = time.perf_counter()
    numbers = _row_numbers(rows)
    seeds = range(_at_least_one("--trials", trials))
    conditions = [c for n in numbers for c in (TABLE_1[n - 1], corrected(TABLE_1[n - 1])) if c is not None]
    trained = train_missing(out, conditions, seeds, engine, "table1")
    reproduced = report.table(out, numbers, seeds)
    meta = {
        **store.provenance("cuda" if torch.cuda.is_available() else "cpu"),
        "commit": report.commits(out, conditions, seeds),
        "trained": trained,
        "cores": os.cpu_count(),
        "seeds": list(seeds),
        "seconds": round(time.perf_counter() - began, 1),
    }
    name = report.write(out, reproduced, meta)
    row_page.write(out, reproduced, f"{name}.html")
    screen = Table(*report.HEADER)
    for cells in report.cells(reproduced):
        screen.add_row(*(cell.strip("*") for cell in cells))
    wide().print(screen)
    print(report.verdict(reproduced))
    print(f"Report: {out / name}.html, and .md and .json beside it")


@app.command
def train(
    task: str | None = None,
    /,
    *,
    options: Options = Options(),  # noqa: B008 (frozen)
    config: Path | None = None,
    seed: Whole = 0,
    trials: Whole = 1,
    out: Path = Path("runs"),
) -> None:
    """Train a network on a task and print where its run directory is.

    softstack train reversal --controller linear

    softstack train xor --controller linear --buffered --steps-per-symbol 2 --memory-size 6

    softstack train --config mine.toml --seed 7        a file with lines such as  task = "reversal"

    Parameters
    ----------
    task
        what to learn; `softstack tasks` lists them
    config
        a TOML file with any of the options below, without dashes (hidden_size = 20); options given here win
    seed
        of the first trial: data, initial weights and the order of batches
    trials
        how many, with seeds from `--seed` on; they train together
    out
        where run directories go
    """
    given: dict[str, Any] = {} if config is None else _toml(config)
    given |= {} if task is None else {"task": task}
    given |= {name: value for name, value in vars(options).items() if value is not None}
    condition = Condition.from_dict(given, str(config) if config else "the command")
    seeds = range(seed, seed + _at_least_one("--trials", trials))
    _not_negative("--seed", seed)
    train_missing(out, [condition], seeds, "inline")
    for one in seeds:
        run = store.load(store.place(out, condition, one))
        result = run.result
        print(f"{run.path}  dev {result['dev']:.1%}  test {result['test']:.1%}  {result['epochs']} epochs")


@app.command
def evaluate(
    run_dir: Path,
    /,
    *,
    data: Path | None = None,
    split: Split = "test",
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Score a trained network, on a split of its own task or on a file of yours.

    softstack evaluate RUN_DIR --split dev

    softstack evaluate RUN_DIR --data FILE.tsv --json

    Parameters
    ----------
    run_dir
        the directory of one trial, as `softstack train` prints it
    data
        a file with one example a line: input symbols, a tab, target symbols, separated by spaces, `_` where
        nothing is scored; `softstack sample` writes such files
    split
        train, dev or test, as the trial had it
    as_json
        print JSON; "accuracy" is in [0, 1]
    """
    run = store.load(run_dir)
    network = store.network(run)
    task = tasks.find(run.condition.task)
    given = examples(run.condition, run.seed, split) if data is None else read_tsv(data, task)
    dataset = encoded(run.condition, given, split if data is None else None).stacked()
    parameters = {name: p.detach().unsqueeze(0) for name, p in network.named_parameters()}
    accuracy = accuracies(network, parameters, dataset, len(task.alphabet)).item()
    scored = int(dataset.mask.sum())
    result = {
        "accuracy": accuracy,
        "right": round(accuracy * scored),
        "scored": scored,
        "strings": len(given),
        "data": split if data is None else str(data),
    }
    if as_json:
        print(json.dumps(result))
    else:
        right, strings = result["right"], len(given)
        print(f"accuracy {accuracy:.2%}: {right} of {scored} scored symbols in {strings} strings right")


@app.command
def sample(
    task: str,
    /,
    *,
    n: Annotated[int, Parameter(name=["-n", "--n"], converter=whole)] = 10,
    split: Split = "train",
    seed: Whole = 0,
) -> None:
    """Write examples of a task as TSV, as `softstack evaluate --data` reads it.

    softstack sample parenthesis -n 1000 --split test > mine.tsv

    Parameters
    ----------
    task
        `softstack tasks` lists them
    n
        how many
    split
        train, dev or test: whose distribution
    seed
        the same seed gives the same examples
    """
    rng = stream(_not_negative("--seed", seed), split)
    write_tsv(sys.stdout, tasks.draw(tasks.find(task), rng, _at_least_one("-n", n), split))


@app.command
def trace(run_dir: Path, symbols: str, /, *, out: Path = Path("trace.png")) -> None:
    """Draw what a trained network does on an input: pops, pushes, vectors, input and output at each step.

    softstack trace RUN_DIR "1 0 0 1 1 1"

    Parameters
    ----------
    run_dir
        the directory of one trial, as `softstack train` prints it
    symbols
        the input, symbols separated by spaces; the #s after a string to reverse may be left out
    out
        FILE.png, .svg, .html (the figure and its steps in a table) or .json (all that the network did)
    """
    kinds = (".png", ".svg", ".html", ".json")
    if out.suffix not in kinds:
        raise BadInput(f"--out {out} must end in one of {', '.join(kinds)}")
    if out.is_dir():
        raise BadInput(f"--out {out} is a directory: name a file")
    run = store.load(run_dir)
    network = store.network(run)
    seen = figures.observe(network, run.condition, symbols.split())
    task = tasks.find(run.condition.task).name.replace("_", " ")
    title = f"{task}, {run.condition.controller} controller, {run.path.name}"
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.suffix == ".json":
        store.write(out, json.dumps(figures.as_json(seen)).encode())
    else:
        figure = figures.draw(network, run.condition, seen, title)
        if out.suffix == ".html":
            store.write(out, figures.as_html(figure, seen, title).encode())
        else:
            store.write(out, figures.rendered(figure, out.suffix[1:]))
    print(f"input      {' '.join(seen.example.input)}")
    print(f"predicted  {' '.join(seen.predicted)}")
    print(f"target     {' '.join(t or '_' for t in seen.example.target)}")
    print(f"Written: {out}")


@app.command(name="figures")
def figures_(
    *,
    out: Path = Path("figures"),
    runs: Path = Path("runs/table1"),
    trials: Whole = 10,
    engine: str = "local",
) -> None:
    """Draw the paper's Figures 5 and 6: five networks, each on the input that the paper shows.

    Of each network's trials, in the order of their dev accuracy, the one in the middle is drawn. Trials that
    `--runs` has are loaded, the rest are trained and kept there.

    Parameters
    ----------
    out
        where the figures go, each as PNG and SVG
    runs
        where run directories are; that of `softstack table` by default
    trials
        trials a network, with seeds 0, 1, ...
    engine
        where missing trials train; see `softstack table --help`
    """
    seeds = range(_at_least_one("--trials", trials))
    train_missing(runs, [shown.condition for shown in figures.FIGURES], seeds, engine)
    out.mkdir(parents=True, exist_ok=True)
    for shown in figures.FIGURES:
        all_runs = [store.load(store.place(runs, shown.condition, seed)) for seed in seeds]
        shown_run = sorted(all_runs, key=lambda run: (run.result["dev"], run.result["test"]))[trials // 2]
        network = store.network(shown_run)
        seen = figures.observe(network, shown.condition, shown.symbols)
        figure = figures.draw(network, shown.condition, seen, shown.title)
        for kind in ("png", "svg"):
            store.write(out / f"{shown.name}.{kind}", figures.rendered(figure, kind))
        print(
            f"{out / shown.name}.png  {shown.title}: seed {shown_run.seed}, dev {shown_run.result['dev']:.1%}"
        )


@app.command(name="tasks")
def tasks_() -> None:
    """List the tasks, their alphabets and an example of each."""
    for name, task in tasks.TASKS.items():
        symbols, target = tasks.draw(task, np.random.default_rng(0), 1, "train")[0]
        print(name)
        print(f"  symbols  {' '.join(task.inputs)}   targets  {' '.join(task.outputs)}")
        print(f"  input    {' '.join(symbols)}")
        print(f"  target   {' '.join(t or '_' for t in target)}")


_more: list[Callable[..., Any]] = [
    *bench.COMMANDS, *view.COMMANDS, *runs.COMMANDS, *questions.COMMANDS, *transducers.COMMANDS
]  # fmt: skip
for _command in _more:
    app.command(_command)


def _row_numbers(rows: Sequence[str] | None) -> list[int]:
    """Rows of Table 1 by number or task."""
    if rows is None:
        return list(range(1, len(TABLE_1) + 1))
    if not rows:
        raise BadInput(
            f"--rows needs numbers from 1 to {len(TABLE_1)}, or names of tasks; leave it out for all"
        )
    numbers: list[int] = []
    for given in rows:
        found = [n for n, c in enumerate(TABLE_1, 1) if given in (str(n), c.task)]
        if not found:
            names = ", ".join(dict.fromkeys(c.task for c in TABLE_1))
            raise BadInput(
                f"--rows {given} is not in Table 1: give numbers from 1 to {len(TABLE_1)}, or {names}"
            )
        numbers += found
    return sorted(set(numbers))


def _at_least_one(name: str, given: int) -> int:
    if given < 1:
        raise BadInput(f"{name} must be at least 1; got {given}")
    return given


def _not_negative(name: str, given: int) -> int:
    if given < 0:
        raise BadInput(f"{name} must not be negative; got {given}")
    return given


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f'{path} is not TOML ({error}): write lines such as  task = "reversal"') from None


def main(arguments: Sequence[str] | None = None) -> None:
    """Errors a person can mend are a sentence and exit code 2; anything else is a bug and shows itself."""
    torch.set_num_threads(1)
    try:
        app(arguments, exit_on_error=False, error_console=errors)
    except CycloptsError:
        sys.exit(2)  # said already
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (BadInput, OSError, MemoryError) as error:
        errors.print(f"softstack: {_sentence(error)}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        errors.print("softstack: stopped; what is finished is kept, run the same command to go on")
        sys.exit(130)


def _sentence(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "there is not enough memory for sizes as large as these: ask for less"
    if not isinstance(error, OSError):
        return str(error)
    what = error.strerror or str(error)
    about = f"{error.filename}: " if error.filename else ""
    return f"{about}{what[:1].lower()}{what[1:]}; nothing already on disk was changed"
