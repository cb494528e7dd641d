"""Kinds of options that commands share, and checks of them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from softstack.errors import BadInput, unknown
from softstack.lab import plugins
from softstack.lab.cli.screen import say
from softstack.lab.runs import store
from softstack.lab.training.draws import SEEDS
from softstack.words import counted


def whole(kind: Any, tokens: Sequence[Any]) -> int:
    """A whole number, and not one that a fraction is rounded to."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is not a whole number") from None


Whole = Annotated[int, Parameter(converter=whole)]
Names = Annotated[list[str] | None, Parameter(consume_multiple=True)]
Json = Annotated[bool, Parameter(name="--json", help="print JSON")]
NoOpen = Annotated[bool, Parameter(help="write the page and leave the browser alone")]
RunDir = Annotated[
    Path,
    Parameter(help="the directory of one trial, as `softstack train` and `softstack compile` print it"),
]
Trials = Annotated[int, Parameter(converter=whole, help="how many for each network, with seeds 0, 1, ...")]
EngineName = Annotated[
    str,
    Parameter(
        help="where missing trials train: local (one process per core), inline (in this process), or "
        "tcp://host:port, a running dask scheduler"
    ),
]


def chosen(
    what: str,
    names: Sequence[str] | None,
    accepted: Collection[str],
    default: Iterable[str] | None = None,
    advice: str = "",
) -> list[str]:
    """The names that were given, or else those of the default, all by default. `advice` goes with a name that
    is not accepted."""
    for name in names or ():
        if name not in accepted:
            raise BadInput(f"{unknown(what, name, accepted)}{advice}")
    return list(dict.fromkeys((default or accepted) if names is None else names))


def writable(out: Path, *kinds: str) -> None:
    """Refuse a file that does not end in one of these, or that is a directory."""
    if out.suffix not in kinds:
        ends = f"one of {', '.join(kinds)}" if len(kinds) > 2 else " or ".join(kinds)
        raise BadInput(f"--out {out} must end in {ends}")
    if out.is_dir():
        raise BadInput(f"--out {out} is a directory: name a file")


def at_least_one(name: str, number: int) -> int:
    if number < 1:
        raise BadInput(f"{name} must be at least 1; got {number}")
    return number


def seeds(first: int, count: int = 1) -> range:
    """That many from --seed on."""
    if not 0 <= first <= SEEDS - count:
        raise BadInput(f"--seed must lie between 0 and {SEEDS - count}; got {first}")
    return range(first, first + count)


def opened(run_dir: Path) -> store.Run:
    """The run in a directory; says if a plugin is not what it was when the run was trained."""
    run = store.load(run_dir)
    for path in plugins.changed(run.provenance.get("plugins", ())):
        say(f"{run_dir} was trained with another version of {path}: what follows may not be what it learnt")
    return run


def say_left_out(root: Path, left_out: Mapping[str, str]) -> None:
    """Name the first few directories that cannot be read, with the reason, and count the others."""
    for path, reason in list(left_out.items())[:5]:
        say(f"{root / path} is left out: {reason}")
    if len(left_out) > 5:
        more = counted(len(left_out) - 5, "more is", "more are")
        say(f"{more} left out: `softstack reindex` lists them")


def all_opened(places: Sequence[Path]) -> list[store.Run]:
    """The runs in directories. One that cannot be read is named and left out, unless none can."""
    runs: list[store.Run] = []
    left_out: dict[str, str] = {}
    for place in places:
        try:
            runs.append(opened(place))
        except BadInput as error:
            left_out[str(place)] = str(error)
    if not runs:
        raise BadInput(next(iter(left_out.values())))
    say_left_out(Path(), left_out)
    return runs
