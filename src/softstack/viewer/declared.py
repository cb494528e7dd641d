"""What figures and pages draw of a memory: its heads, with words for them, and the way its cells lie.

All of it is what the memory declares (`softstack.memory.protocol`).
"""

from typing import Any, NamedTuple

from torch import Tensor

from softstack.memory import Choice, Head, Memory, Queue, Scores, Stack, Strength, Vector
from softstack.trace import Trace

KINDS: dict[type, str] = {Strength: "strength", Choice: "choice", Vector: "vector", Scores: "scores"}
"""The kinds of heads, in the order in which they are drawn."""

BUFFERS: dict[str, Head] = {"i": Strength(), "o": Strength()}
"""What a buffered network says beside what its memory asks for (§2.3)."""


class Words(NamedTuple):
    """How a head is spoken of."""

    title: str  # above its column
    verb: str  # in a sentence, before its number
    note: str = ""  # what it means


WORDS: dict[str, Words] = {
    "u": Words("pop", "pops", "strength taken from the memory"),
    "d": Words("push", "pushes", "strength with which the vector is pushed"),
    "v": Words("pushed vector", "pushes"),
    "i": Words("take", "takes", "strength taken from the input buffer before the next step"),
    "o": Words("give", "gives", "strength with which the output enters its buffer"),
}
"""Words for the heads of the paper. Another head goes by its name."""


class Column(NamedTuple):
    """A head as it is drawn."""

    name: str
    kind: str  # one of KINDS
    title: str
    verb: str
    note: str
    labels: tuple[str, ...]  # of its numbers; of a choice, its actions; "" for a number that is alone


def columns(memory: Memory, *, buffered: bool = False) -> list[Column]:
    """The heads of a network with this memory: strengths, choices, vectors, and those of the buffers. What is
    said to no memory has no effect, and is not drawn."""
    declared = {} if memory.name == "none" else memory.heads
    heads = sorted(declared.items(), key=lambda item: list(KINDS.values()).index(kind(item[1])))
    return [*map(_column, heads), *map(_column, BUFFERS.items() if buffered else ())]


def said(trace: Trace) -> dict[str, Tensor]:
    """What a controller said by head, those of the buffers included, (B, T, ...)."""
    return {**trace.instructions, "i": trace.i, "o": trace.o}


def kind(head: Head) -> str:
    return next(name for of, name in KINDS.items() if isinstance(head, of))


def _column(item: tuple[str, Head]) -> Column:
    name, head = item
    return Column(name, kind(head), *WORDS.get(name, Words(name, name)), tuple(head.labels))


def described(memory: Memory, *, buffered: bool = False) -> dict[str, Any]:
    """The same as data of the page, with how cells are drawn."""
    return {
        "memory": {
            "name": memory.name,
            "drawn": memory.drawn,
            # each step adds one cell, and a read sees the nearest cells up to a strength of 1
            "items": isinstance(memory, Stack | Queue),
        },
        "heads": [column._asdict() for column in columns(memory, buffered=buffered)],
    }


def words_for(memory: Memory) -> str:
    """Such as "stack of 2": its name, and the numbers in a cell."""
    if memory.name == "none":
        return "no memory"
    return f"{memory.name} of {memory.contents(memory.init(())).V.shape[-1]}"
