"""`softstack train`."""

import tomllib
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import docstring_parser
from cyclopts import Parameter

from softstack.errors import BadInput
from softstack.lab.cli.options import Whole, at_least_one, not_negative, whole
from softstack.lab.runs import store
from softstack.lab.sweeps.jobs import train_missing
from softstack.lab.training.conditions import Condition
from softstack.words import counted


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
    settings: dict[str, Any] = {} if config is None else _toml(config)
    settings |= {} if task is None else {"task": task}
    settings |= {name: value for name, value in vars(options).items() if value is not None}
    condition = Condition.from_dict(settings, str(config) if config else "the command")
    seeds = range(seed, seed + at_least_one("--trials", trials))
    not_negative("--seed", seed)
    train_missing(out, [condition], seeds, "inline")
    for trial_seed in seeds:
        run = store.load(store.place(out, condition, trial_seed))
        dev, test, epochs = (run.result[name] for name in ("dev", "test", "epochs"))
        print(f"{run.path}  dev {dev:.1%}  test {test:.1%}  {counted(epochs, 'epoch')}")


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f'{path} is not TOML ({error}): write lines such as  task = "reversal"') from None
