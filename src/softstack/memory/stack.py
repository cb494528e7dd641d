"""§2.1: last in, first out."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from softstack import checks
from softstack.memory.items import MemoryState, above, no_items, paper_heads, pop, push, read, seen, tops
from softstack.memory.protocol import Batch, Contents, Drawn, Head, Instructions


@dataclass(frozen=True)
class Stack:
    """§2.1: last in, first out. `validate=False` trusts the strengths, as a network trusts its sigmoids."""

    size: int
    validate: bool = field(default=True, compare=False, repr=False)

    name = "stack"
    drawn: ClassVar[Drawn] = "pile"
    append_only = True
    ahead = staticmethod(above)

    def __post_init__(self) -> None:
        checks.positive("size", self.size)

    @property
    def width(self) -> int:
        return self.size

    @property
    def heads(self) -> dict[str, Head]:
        return paper_heads(self.size)

    def init(
        self,
        batch: Batch | int | None = None,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> MemoryState:
        """A stack that holds nothing, for `batch` sequences (None: for one, without a batch axis)."""
        return no_items(self.size, batch, device, dtype)

    def step(self, state: MemoryState, instructions: Instructions) -> tuple[MemoryState, Tensor]:
        """Pop, push and read, in that order (§2.1)."""
        if self.validate:
            checks.instructions(*instructions, state, self.size, time=False)
        v, u, d = instructions
        state = push(MemoryState(state.V, pop(state.s, u, above)), v, d)
        return state, read(state, above)

    def contents(self, state: MemoryState) -> Contents:
        return Contents(*state)

    def nearest(self, state: MemoryState) -> MemoryState:
        """Without what the next read does not see."""
        return MemoryState(state.V, seen(state.s, above))

    def tops(self, state: MemoryState, count: int) -> Tensor:
        """The `count` nearest items, (B, count, m), for `Deep`."""
        return tops(state, above, count)
