"""Kinds of options that commands share, and checks of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from softstack.errors import BadInput
from softstack.lab import plugins
from softstack.lab.cli.screen import say
from softstack.lab.runs import store
from softstack.lab.training.draws import SEEDS


def whole(kind: Any, tokens: Sequence[Any]) -> int:
    """A whole number, and not one that a fraction is rounded to."""
    return int(tokens[0].value)


Whole = Annotated[int, Parameter(converter=whole)]


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
