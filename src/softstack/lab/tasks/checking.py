"""What is wrong with a user's task, in a sentence that names the task and the member."""

from typing import Any

import numpy as np

from softstack.errors import BadInput, unknown
from softstack.lab.tasks import Task, metrics_of
from softstack.lab.tasks.data import SPLITS, UNSCORED, check_example
from softstack.lab.tasks.losses import LOSSES
from softstack.lab.tasks.metrics import METRICS
from softstack.lab.tasks.page import KINDS

MEMBERS = [name for name in vars(Task) if not name.startswith("_")]  # what every task has
WORDS = ("name", "padding", "loss")
SYMBOLS = ("inputs", "outputs", "alphabet")


def check(task: Any, what: str) -> None:
    """Refuse a task that lacks a member or has a wrong one. `what` is what the sentence calls it."""
    missing = [member for member in MEMBERS if not hasattr(task, member)]
    if missing:
        raise BadInput(f"{what} lacks {', '.join(missing)}")
    for member in WORDS:
        if not isinstance(getattr(task, member), str):
            raise BadInput(f"{what}: {member} must be a string; got {getattr(task, member)!r}")
    if task.loss not in LOSSES:
        raise unknown(f"loss of {what},", task.loss, LOSSES)
    for member in SYMBOLS:
        _check_symbols(getattr(task, member), f"{what}: {member}")
    for member in ("inputs", "outputs", "padding"):
        symbols = (task.padding,) if member == "padding" else getattr(task, member)
        strangers = [symbol for symbol in symbols if symbol not in task.alphabet]
        if strangers:
            raise BadInput(f"{what}: {member} has {strangers[0]!r}, which its alphabet does not have")
    if UNSCORED in task.outputs:
        raise BadInput(f"{what}: outputs has {UNSCORED!r}, which stands for what is not scored in files")
    for split in SPLITS:
        length = _called(task.length, f"{what}: length({split!r})", split)
        if not isinstance(length, int) or length < 1:
            raise BadInput(f"{what}: length({split!r}) must be a whole number of steps; got {length!r}")
    for split in ("train", "test"):
        _check_strings(task, split, what)
    for metric in metrics_of(task):
        if metric not in METRICS:
            raise unknown(f"metric of {what},", metric, METRICS)
    if "nats" in metrics_of(task) and not hasattr(task, "surprisals"):
        raise BadInput(f"{what}: the metric 'nats' needs a method surprisals(strings), which it lacks")
    _check_page(getattr(task, "page", None), what)


def _check_symbols(symbols: Any, what: str) -> None:
    if not isinstance(symbols, tuple) or not symbols or not all(isinstance(s, str) for s in symbols):
        raise BadInput(f"{what} must be a tuple of strings, at least one; got {symbols!r}")
    for symbol in symbols:
        if not symbol or symbol.split() != [symbol]:
            raise BadInput(
                f"{what} has the symbol {symbol!r}: a symbol may not be empty or have a space in it, because "
                "spaces stand between symbols in files and on the command line"
            )
        if not symbol.isprintable():
            raise BadInput(f"{what} has the symbol {symbol!r}, which cannot be printed: give it another name")
    if len(set(symbols)) < len(symbols):
        raise BadInput(f"{what} has a symbol twice; got {symbols!r}")


def _check_strings(task: Any, split: str, what: str) -> None:
    """Three strings of a split and their targets."""
    call = f"{what}: sample(rng, 3, {split!r})"
    strings = _called(task.sample, call, np.random.default_rng(0), 3, split)
    if not isinstance(strings, list) or len(strings) != 3 or not all(isinstance(s, tuple) for s in strings):
        raise BadInput(f"{call} must give a list of 3 tuples of symbols; got {strings!r}")
    for string in strings:
        strangers = [symbol for symbol in string if symbol not in task.inputs]
        if strangers or not string:
            raise BadInput(f"{call} must give strings of its inputs, {task.inputs}; got {string!r}")
        check_example(task, _called(task.example, f"{what}: example({string!r})", string))


def _called(function: Any, what: str, *arguments: Any) -> Any:
    if not callable(function):
        raise BadInput(f"{what} must be a method; got {function!r}")
    try:
        return function(*arguments)
    except Exception as error:
        raise BadInput(f"{what} fails ({type(error).__name__}: {error})") from error


def _check_page(page: Any, what: str) -> None:
    if page is None:
        return
    if not isinstance(page, dict) or not {"kind", "sizes", "trained_size"} <= set(page):
        raise BadInput(f"{what}: page must be what softstack.lab.tasks.page.computed gives; got {page!r}")
    if page["kind"] not in KINDS and not page.get("script") and "examples" not in page:
        raise BadInput(
            f"{what}: page has the kind {page['kind']!r}, which softstack does not know: give one of "
            f"{', '.join(KINDS)}, or a script that computes it"
        )
