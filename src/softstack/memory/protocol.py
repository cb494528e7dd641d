"""What a memory says of itself, and all that the rest of softstack knows of it.

A memory is one final class. It names the heads that it wants and their kinds, the width of what it reads,
how it begins, what a step does, and what it holds. Networks, their heads and first weights, padding, traces,
figures, pages and diagnosis work from that alone. docs/add/memory.md has a memory in one file.
"""

from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from softstack import checks
from softstack.errors import BadInput
from softstack.memory.shapes import Batch, Device, Dtype

Drawn = Literal["pile", "line", "cells"]
# what a trace has by these names is its own, so that no head may be called so
TAKEN = frozenset("xyrVshio") | {"backwards", "count", "index", "instructions", "map", "memory", "tensors"}
State = Any  # a NamedTuple of tensors, each with the batch axes first


@dataclass(frozen=True)
class Strength:
    """How much: a number in [0, 1], (B,), or `count` of them, (B, count). Its bias begins as `bias`."""

    bias: float = 0.0
    count: int | None = None

    def __post_init__(self) -> None:
        if self.count is not None:
            checks.positive("count of a Strength", self.count)

    @property
    def size(self) -> int:
        return 1 if self.count is None else self.count

    @property
    def shape(self) -> tuple[int, ...]:
        return () if self.count is None else (self.count,)

    @property
    def labels(self) -> tuple[str, ...]:
        return ("",) if self.count is None else _numbers(self.count)

    def value(self, raw: Tensor) -> Tensor:
        squashed = torch.sigmoid(raw)
        return squashed.squeeze(-1) if self.count is None else squashed

    def hardened(self, value: Tensor) -> Tensor:
        """The nearest strength of 0 or 1."""
        return value.round()


@dataclass(frozen=True)
class Numbers(ABC):
    """Numbers (B, size), each of a row of its own."""

    size: int
    bias: float = 0.0

    def __post_init__(self) -> None:
        checks.positive(f"size of a {type(self).__name__}", self.size)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def labels(self) -> tuple[str, ...]:
        return _numbers(self.size)

    @abstractmethod
    def value(self, raw: Tensor) -> Tensor: ...

    def hardened(self, value: Tensor) -> Tensor:
        return value


class Vector(Numbers):
    """What: a vector (B, size) of numbers in [0, 1]."""

    def value(self, raw: Tensor) -> Tensor:
        return torch.sigmoid(raw)


class Scores(Numbers):
    """What a network puts out: numbers (B, size) as they are."""

    def value(self, raw: Tensor) -> Tensor:
        return raw


@dataclass(frozen=True)
class Choice:
    """Which: probabilities (B, k) of k named actions, by a softmax. `bias` begins with one number for each of
    them, or 0: only their differences matter."""

    actions: tuple[str, ...]
    bias: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        names = isinstance(self.actions, tuple) and all(isinstance(name, str) for name in self.actions)
        if not names or not self.actions or len(set(self.actions)) < len(self.actions):
            raise BadInput(
                f"the actions of a Choice must be a tuple of names, each another; got {self.actions!r}"
            )
        if self.bias is not None and (not isinstance(self.bias, tuple) or len(self.bias) != self.size):
            raise BadInput(
                f"the bias of a Choice must be a tuple with a number for each of {self.actions}, because a "
                f"softmax does not see what is added to all of them; got {self.bias!r}"
            )

    @property
    def size(self) -> int:
        return len(self.actions)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.actions

    def value(self, raw: Tensor) -> Tensor:
        return torch.softmax(raw, -1)

    def hardened(self, value: Tensor) -> Tensor:
        """The likeliest action for certain."""
        return torch.nn.functional.one_hot(value.argmax(-1), self.size).to(value.dtype)


# A kind of head has `size` rows in the linear map, the `shape` and `labels` of its value, and makes the
# value of those rows.
Head = Strength | Vector | Choice | Scores


def _numbers(size: int) -> tuple[str, ...]:
    return tuple(str(k + 1) for k in range(size))


class Contents(NamedTuple):
    """What a memory holds, as figures and pages draw it: N cells."""

    V: Tensor  # (B, N, k) the vector in each cell
    s: Tensor  # (B, N) how much of it there is


class Memory(Protocol):
    """What a network needs of a memory.

    It may also have `append_only = True`, if a cell's vector never changes and new cells come last: traces
    then keep each vector once; and `nearest(state) -> state`, the state without all that the next read does
    not see: diagnosis then tells what lies beneath from what is read; and `longest = 100`, the number of
    steps up to which diagnosis runs it on many strings, if it cannot afford more.
    """

    @property
    def name(self) -> str:
        """What sentences and pages call it, such as "stack"."""

    @property
    def drawn(self) -> Drawn:
        """How its cells are drawn: the last on top, the first in front, or side by side."""

    @property
    def heads(self) -> Mapping[str, Head]:
        """What a controller must say in each step, by name; not one of those that a trace has (TAKEN)."""

    @property
    def width(self) -> int:
        """Numbers in what it reads."""

    def init(self, batch: Batch = (), *, device: Device = None, dtype: Dtype = None) -> State:
        """The state before the first step, for (B,) sequences or, with (), for one without a batch axis."""

    def step(self, state: State, instructions: Any) -> tuple[State, Tensor]:
        """The next state and what is read, r (B, width). `instructions` has the heads by name."""

    def contents(self, state: State) -> Contents:
        """What it holds."""


class Instructions(NamedTuple):
    """What a controller tells a stack or a queue, ⟨v_t, u_t, d_t⟩; for a whole sequence, with a time axis."""

    v: Tensor  # (B, m) or (B, T, m)
    u: Tensor  # (B,) or (B, T)
    d: Tensor  # (B,) or (B, T)


_TYPES: dict[tuple[str, ...], Any] = {Instructions._fields: Instructions}


def instructions_type(names: tuple[str, ...]) -> Any:
    """The NamedTuple that a memory with heads of these names is given in a step."""
    if names not in _TYPES:
        _TYPES[names] = namedtuple("Instructions", names)
    return _TYPES[names]


def trusting(memory: Any) -> Any:
    """The memory, and one within it, without checks of the strengths that it is told."""
    names = [field.name for field in fields(memory)] if is_dataclass(memory) else []
    changes: dict[str, Any] = {"validate": False} if "validate" in names else {}
    if "memory" in names:
        changes["memory"] = trusting(memory.memory)
    return replace(memory, **changes) if changes else memory
