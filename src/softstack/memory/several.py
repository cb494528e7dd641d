"""Several memories of one kind side by side, and reads that go deeper than the top.

Joulin and Mikolov (2015), §4.2, have several stacks, and give the k topmost cells of each to the controller.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from softstack import checks
from softstack.errors import BadInput
from softstack.memory.checking import require, require_no_weights
from softstack.memory.protocol import Contents, Drawn, Head, Memory, instructions_type, trusting
from softstack.memory.shapes import Device, Dtype, Sequences, batch_of


@dataclass(frozen=True)
class Several:
    """`count` memories like `memory`, each with heads of its own: u_1, u_2, ... r is [r_1; r_2; ...].

    They are one more batch axis, (B, count, ...), so a step of all costs one step of the memory. It must
    therefore take any number of batch axes, as it does if it counts its axes from the last.
    """

    memory: Memory
    count: int

    drawn: ClassVar[Drawn] = "cells"

    def __post_init__(self) -> None:
        checks.positive("count", self.count)
        require(self.memory)
        require_no_weights(self.memory, "Several")
        object.__setattr__(self, "memory", trusting(self.memory))  # checks know one batch axis

    @property
    def name(self) -> str:
        return f"{self.memory.name} x {self.count}"

    @property
    def width(self) -> int:
        return self.count * self.memory.width

    @property
    def heads(self) -> dict[str, Head]:
        heads: dict[str, Head] = dict(self.memory.heads)
        numbers = range(1, self.count + 1)
        return {f"{name}_{number}": head for name, head in heads.items() for number in numbers}

    def init(self, batch: Sequences = None, *, device: Device = None, dtype: Dtype = None) -> Any:
        return self.memory.init((*batch_of(batch), self.count), device=device, dtype=dtype)

    def step(self, state: Any, instructions: Any) -> tuple[Any, Tensor]:
        heads: dict[str, Head] = dict(self.memory.heads)
        parts = []
        for k, head in enumerate(heads.values()):
            own = instructions[k * self.count : (k + 1) * self.count]
            parts.append(torch.stack(own, -1 - len(head.shape)))  # (B, count, ...)
        state, r = self.memory.step(state, instructions_type(tuple(heads))(*parts))
        return state, r.flatten(-2)  # (B, count width)

    def contents(self, state: Any) -> Contents:
        """The cells of the first, then those of the second, ..."""
        V, s = self.memory.contents(state)
        return Contents(V.flatten(-3, -2), s.flatten(-2))


@dataclass(frozen=True)
class Deep:
    """A memory that is read `reads` items deep: r is the top, then the item beneath it, and so on.

    It must have `tops(state, count)`, the topmost items (B, count, m), as a stack, a queue (from its front),
    a superposition stack and a multipop stack have it.
    """

    memory: Any
    reads: int

    def __post_init__(self) -> None:
        checks.positive("reads", self.reads)
        require(self.memory)
        require_no_weights(self.memory, "Deep")
        if not hasattr(self.memory, "tops"):
            raise BadInput(f"{self.memory} cannot be read several items deep: it has no method `tops`")

    @property
    def name(self) -> str:
        return f"deep {self.memory.name}"

    @property
    def drawn(self) -> Drawn:
        drawn: Drawn = self.memory.drawn
        return drawn

    @property
    def append_only(self) -> bool:
        return getattr(self.memory, "append_only", False)

    @property
    def width(self) -> int:
        return self.reads * int(self.memory.width)

    @property
    def heads(self) -> dict[str, Head]:
        return dict(self.memory.heads)

    def init(self, batch: Sequences = None, *, device: Device = None, dtype: Dtype = None) -> Any:
        return self.memory.init(batch_of(batch), device=device, dtype=dtype)

    def step(self, state: Any, instructions: Any) -> tuple[Any, Tensor]:
        state, _ = self.memory.step(state, instructions)
        return state, self.memory.tops(state, self.reads).flatten(-2)

    def contents(self, state: Any) -> Contents:
        contents: Contents = self.memory.contents(state)
        return contents
