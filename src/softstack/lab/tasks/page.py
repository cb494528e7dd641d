"""What the page of `softstack view` is told about a task. viewer/tasks.js has the other half.

The page runs without Python. To score a string that somebody types, and to draw fresh ones, it has to know
how: that is the `kind`, a name in tasks.js, or in a script that the task brings along. A task without a kind
brings recorded examples along instead.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softstack.formal.grammar import Grammar
from softstack.lab.tasks.data import Split

if TYPE_CHECKING:
    from softstack.lab.tasks import Task

Page = dict[str, Any]
Record = list[list[str | None]]  # what the network is given, the targets, and the string that was drawn
KINDS = ("reversal", "xor", "next", "machine", "formula")  # that tasks.js has
EXAMPLES = 300  # recorded of a split, at most


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


def recorded(task: "Task", kind: str | None = None, *, splits: Sequence[Split] = ("train", "test")) -> Page:
    """Strings with their targets, of training and others, for a task whose strings the page cannot draw."""
    rng = np.random.default_rng(1)
    words = {split: dict.fromkeys(task.sample(rng, EXAMPLES, split)) for split in splits}
    records = {word: record(task, word) for split in splits for word in words[split]}
    return {
        "kind": kind,
        "sizes": sorted({len(symbols) for symbols, _, _ in records.values()}),
        "trained_size": max(len(records[word][0]) for word in words["train"]),
        "examples": list(records.values()),
        "ending": ending(list(records.values())),
    }


def ending(records: Sequence[Record]) -> dict[str, Any] | None:
    """What all strings of a task end with, if that is a symbol that comes nowhere else, `each` times for
    every symbol before it and `more` times. The page adds it to what is typed. None where it is not so."""
    mark, counts = records[0][0][-1], dict[int, int]()  # how many marks there are, by the symbols before
    for symbols, _, word in records:
        length = symbols.index(mark) if mark in symbols else 0
        if not length or symbols[length:] != [mark] * (len(symbols) - length):
            return None
        if word not in (symbols, symbols[:length]):  # the task adds something else, too
            return None
        if counts.setdefault(length, len(symbols) - length) != len(symbols) - length:
            return None
    short, long = min(counts), max(counts)
    per_symbol = (counts[long] - counts[short]) // max(1, long - short)
    more = counts[short] - per_symbol * short
    if any(count != per_symbol * length + more for length, count in counts.items()):
        return None
    return {"symbol": mark, "each": per_symbol, "more": more}


def with_ending(rule: dict[str, Any] | None, symbols: tuple[str, ...]) -> tuple[str, ...]:
    """A string with what `ending` says that all end with, as far as it lacks that; as withEnding of tasks.js
    has it."""
    if rule is None:
        return symbols
    mark = rule["symbol"]
    last = max((k + 1 for k, symbol in enumerate(symbols) if symbol != mark), default=0)
    word, marks = symbols[:last], len(symbols) - last
    if not word or mark in word:
        return symbols
    return (*word, *[mark] * max(rule["each"] * last + rule["more"], marks))


def record(task: "Task", word: tuple[str, ...]) -> Record:
    """What the network is given for a string, the targets, and the string."""
    symbols, target = task.example(word)
    return [list(symbols), list(target), list(word)]
