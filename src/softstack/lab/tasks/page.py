"""What the page of `softstack view` is told about a task. viewer/tasks.js has the other half.

The page runs without Python. To score a string that somebody types, and to draw fresh ones, it has to know
how: that is the `kind`, a name in tasks.js, or in a script that the task brings along. A task without a kind
brings recorded examples along instead.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softstack.formal.grammar import Grammar

if TYPE_CHECKING:
    from softstack.lab.tasks import Task

Page = dict[str, Any]
KINDS = ("reversal", "xor", "next", "machine", "formula")  # that tasks.js has
EXAMPLES = 300  # recorded, of training and of test


def computed(kind: str, sizes: Sequence[int], trained: int, *, script: str = "", **details: Any) -> Page:
    """A kind of task that the page computes by itself.

    `sizes` are those of the strings on which the page measures accuracy, lengths or depths of a grammar, and
    `trained` is the largest that training has. `details` are for the kind. A kind that tasks.js does not have
    is a `script`: the text of a JavaScript object with two functions. `example(task, symbols)` gives
    { input, target }, with null where nothing is scored. `sample(task, random, size)` gives a string.
    """
    return {"kind": kind, "sizes": list(sizes), "trained_size": trained, "script": script, **details}


def rules(grammar: Grammar) -> dict[str, Any]:
    """A grammar as tasks.js samples from it."""
    bodies = {name: list(map(list, alternatives)) for name, alternatives in grammar.rules.items()}
    return {"start": grammar.start, "rules": bodies}


def recorded(task: "Task", kind: str | None = None) -> Page:
    """Strings with their targets, of training and test, for a task whose strings the page cannot draw."""
    rng = np.random.default_rng(1)
    train, test = (
        [record(task, word) for word in task.sample(rng, EXAMPLES, split)] for split in ("train", "test")
    )
    return {
        "kind": kind,
        "sizes": sorted({len(symbols) for symbols, _, _ in train + test}),
        "trained_size": max(len(symbols) for symbols, _, _ in train),
        "examples": train + test,
    }


def record(task: "Task", word: tuple[str, ...]) -> list[list[str | None]]:
    """What the network is given for a string, the targets, and the string."""
    symbols, target = task.example(word)
    return [list(symbols), list(target), list(word)]
