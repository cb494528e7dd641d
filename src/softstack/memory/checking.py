"""Refuses, when a network is built, a memory that lacks something or breaks what the library relies on."""

import keyword
from collections.abc import Mapping
from typing import Any, get_args

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from softstack.checks import described
from softstack.errors import BadInput
from softstack.memory.nothing import NoMemory
from softstack.memory.protocol import TAKEN, Contents, Drawn, Head, Memory, instructions_type
from softstack.memory.queue import Queue
from softstack.memory.stack import Stack

MEMBERS = ("name", "drawn", "heads", "width", "init", "step", "contents")
WHOLE = "docs/add/memory.md has a whole one"


def require(memory: Memory) -> None:
    """Refuse a memory that lacks something, has heads that cannot be, or makes mistakes in its first step."""
    if type(memory) in (Stack, Queue, NoMemory):
        return
    kind = type(memory).__name__
    lacking = [member for member in MEMBERS if not hasattr(memory, member)]
    if lacking == list(MEMBERS) or isinstance(memory, type):
        raise BadInput(f"a memory is needed here, such as ss.Stack(4); got {memory!r}")
    if lacking:
        raise BadInput(f"the memory {kind} lacks {' and '.join(lacking)}: {WHOLE}")
    if not isinstance(memory.name, str):
        raise BadInput(f"{kind}.name must be a string; got {memory.name!r}")
    if memory.drawn not in get_args(Drawn):
        raise BadInput(f"{kind}.drawn must be one of {', '.join(get_args(Drawn))}; got {memory.drawn!r}")
    _require_heads(kind, memory.heads)
    for batch in ((2,), ()):
        try:
            state = memory.init(batch)
        except Exception as error:
            raise BadInput(f"{kind} fails in init(batch={batch}): {error}") from error
        parts = tree_leaves(state)
        if not hasattr(state, "_fields") or not all(isinstance(part, Tensor) for part in parts):
            raise BadInput(f"{kind}.init must give a NamedTuple of tensors; got {described(state)}")
        if any(part.shape[: len(batch)] != batch for part in parts):
            raise BadInput(
                f"{kind}.init(batch={batch}) must give tensors with the batch first; got {described(state)}"
            )
    with torch.random.fork_rng(devices=[]):  # a step may draw numbers
        _require_steps(memory)


def require_no_weights(memory: Memory, owner: str) -> None:
    """`owner` holds the memory, and is no module: weights in it would not be found."""
    if isinstance(memory, nn.Module):
        raise BadInput(
            f"{type(memory).__name__} has weights of its own, which would not be trained inside {owner}: "
            "give it to a network as it is, or write one memory that holds all"
        )


def _require_heads(kind: str, heads: object) -> None:
    if not isinstance(heads, Mapping) or not heads:
        raise BadInput(f"{kind}.heads must be a dict of what it is told, by name: {WHOLE}")
    for name, head in heads.items():
        if not isinstance(head, Head):
            raise BadInput(
                f"the head {name!r} of {kind} must be a Strength, Vector, Choice or Scores; got {head!r}"
            )
        if not name.isidentifier() or name.startswith("_") or keyword.iskeyword(name):
            raise BadInput(
                f"{kind} has a head called {name!r}: its name must be one that Python takes for a variable, "
                "without a _ in front"
            )
        if name in TAKEN:
            raise BadInput(
                f"{kind} has a head called {name!r}: rename it, because a trace has that for its own, and "
                f"{', '.join(sorted(TAKEN - {name}))} too"
            )


@torch.no_grad()
def _require_steps(memory: Memory) -> None:
    """Refuse a step that writes into the state that it is given, for padding and traces keep older ones, and
    contents that cannot be drawn. Two steps are tried. What fails inside them is left to the first call,
    which has the real input."""
    try:
        values = {name: head.value(torch.ones(2, head.size)) for name, head in memory.heads.items()}
        instructions, state = instructions_type(tuple(values))(**values), memory.init((2,))
        for _ in range(2):
            before: list[Any] = [part.clone() for part in tree_leaves(state)]
            after, _ = memory.step(state, instructions)
            overwrites = not all(map(torch.equal, before, tree_leaves(state)))
            if overwrites:
                break
            state = after
        contents = memory.contents(state)
    except Exception:
        return
    if overwrites:
        raise BadInput(f"a step of {memory} writes into the state that it is given: give a new state back")
    if not isinstance(contents, Contents):
        raise BadInput(f"contents of {memory} must give ss.Contents(V, s); got {described(contents)}")
