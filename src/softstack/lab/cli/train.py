"""`softstack train`."""

import tomllib
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import docstring_parser
from cyclopts import Parameter

from softstack.errors import BadInput
from softstack.lab.cli.options import Whole, at_least_one, seeds, whole
from softstack.lab.cli.screen import say
from softstack.lab.runs import disk, store
from softstack.lab.sweeps.jobs import train_missing
from softstack.lab.tasks import sources
from softstack.lab.training.conditions import Condition, idle
from softstack.words import counted

MOST_BYTES = 1 << 20  # of a configuration


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


def train(
    task: str | None = None,
    /,
    *,
    options: Options = Options(),  # noqa: B008 (frozen)
    grammar: Path | None = None,
    predict: str | None = None,
    depth: Whole | None = None,
    test_depth: Whole | None = None,
    data: Path | None = None,
    dev: Path | None = None,
    test: Path | None = None,
    config: Path | None = None,
    seed: Whole = 0,
    trials: Whole = 1,
    out: Path = Path("runs"),
) -> None:
    """Train a network on a task and print where its run directory is.

    softstack train reversal --controller linear

    Six networks, of which not all learn XOR:

        softstack train xor --controller linear --memory-size 6 --buffered \\
            --steps-per-symbol 2 --trials 6

    softstack train --config mine.toml    # a file with task = "reversal" in it

    softstack train --grammar mine.cfg --predict ") ]"    # where ) or ] comes next

    softstack train --data train.tsv --dev dev.tsv --test test.tsv

    Parameters
    ----------
    task
        what to learn: `softstack tasks` lists tasks; or a file with a pushdown transducer, FILE.pdt
    grammar
        a file with a grammar, to learn the next symbol of its strings
    predict
        with a grammar: the symbols at which that is scored, separated by spaces; all of them if not given
    depth
        with a grammar: that of training strings; enough for 2,000 of them if not given
    test_depth
        with a grammar: that of test strings; twice that of training if not given, less if they grow very long
    data
        a file of training examples, one per line: input symbols, a tab, target symbols, separated by spaces,
        `_` where nothing is scored
    dev
        such a file for what ends the training; a tenth of --data is held out if not given
    test
        such a file for what is measured at the end; a tenth of --data is held out if not given
    config
        a TOML file with the task and options of the network and its training, such as hidden_size = 20;
        what is given here wins. --seed, --trials and --out are given here only
    seed
        of the first trial: data, initial weights and the order of batches
    trials
        how many, with seeds from `--seed` on; they train together
    out
        where run directories go
    """
    files = {"grammar": grammar, "predict": predict, "depth": depth, "test_depth": test_depth}
    files |= {"data": data, "dev": dev, "test": test}
    settings: dict[str, Any] = {} if config is None else _settings(config)
    folder = Path() if config is None else config.parent  # from which the files in a file are named
    if chosen := _chosen(task, files):
        settings["task"], folder = chosen, Path()
    settings |= {name: value for name, value in vars(options).items() if value is not None}
    if source := sources.read(settings.get("task"), folder):
        for note in source.notes:
            say(note)
        settings = source.completed(settings)
    condition = Condition.from_dict(settings, str(config) if config else "the command")
    if sentence := idle(condition):
        say(sentence)
    trial_seeds = seeds(seed, at_least_one("--trials", trials))
    trained = train_missing(out, [condition], trial_seeds, "inline", say=say)
    if 0 < trained < trials:
        say(f"{counted(trained, 'trial was', 'trials were')} trained, {trials - trained} there already")
    for trial_seed in trial_seeds:
        run = store.load(store.place(out, condition, trial_seed))
        dev, test, epochs = (run.result[name] for name in ("dev", "test", "epochs"))
        divergence = "  diverged" if run.result.get("diverged") else ""
        print(f"{run.path}  dev {dev:.1%}  test {test:.1%}  {counted(epochs, 'epoch')}{divergence}")


def _chosen(task: str | None, files: dict[str, Any]) -> str | dict[str, Any] | None:
    """The task that is named on the command line, as it would be in a TOML file."""
    options = {name: value for name, value in files.items() if value is not None}
    named = [*(["a task"] if task else []), *(f"--{kind}" for kind in sources.KEYS if kind in options)]
    if len(named) > 1:
        raise BadInput(f"{' and '.join(named)} are given: name one thing to learn")
    for kind, names in sources.KEYS.items():
        for name in names:
            if name in options and kind not in options:
                raise BadInput(f"--{name.replace('_', '-')} needs --{kind}: name the file")
    return {k: str(v) if isinstance(v, Path) else v for k, v in options.items()} or task


def _settings(path: Path) -> dict[str, Any]:
    """What a file of settings says: fields of a condition, as in a sweep's [condition]."""
    try:
        settings = tomllib.loads(disk.read(path, MOST_BYTES).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f'{path} is not TOML ({error}): write lines such as  task = "reversal"') from None
    for name in ("seed", "trials", "out"):
        if name in settings:
            raise BadInput(
                f"{name} is no setting of a network, so {path} cannot have it: give --{name} instead"
            )
    for kind, names in sources.KEYS.items():
        for name in names:
            if name in settings:
                raise BadInput(
                    f'{name} in {path} is a part of its task: write  task = {{{kind} = "FILE", ...}}'
                )
    return settings
