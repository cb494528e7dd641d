"""Table 1's "no stack"."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from softstack import checks
from softstack.memory.items import MemoryState, no_items, paper_heads
from softstack.memory.protocol import Contents, Drawn, Head, Instructions
from softstack.memory.shapes import Device, Dtype, Sequences


@dataclass(frozen=True)
class NoMemory:
    """Table 1's "no stack": instructions are taken, nothing is kept, and r is always 0."""

    size: int

    name = "none"
    drawn: ClassVar[Drawn] = "cells"
    append_only = True

    def __post_init__(self) -> None:
        checks.positive("size", self.size)

    @property
    def width(self) -> int:
        return self.size

    @property
    def heads(self) -> dict[str, Head]:
        return paper_heads(self.size)

    def init(self, batch: Sequences = None, *, device: Device = None, dtype: Dtype = None) -> MemoryState:
        return no_items(self.size, batch, device, dtype)

    def step(self, state: MemoryState, instructions: Instructions) -> tuple[MemoryState, Tensor]:
        return state, torch.zeros_like(instructions.v)

    def contents(self, state: MemoryState) -> Contents:
        return Contents(*state)
