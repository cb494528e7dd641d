"""Stacks whose cells stand for depths: what a superposition stack and a multipop stack hold.

    S  (B, N, m)  the mean over all stacks that there may be, from the top down: 0 where nothing is
    p  (B, N)     how likely it is that something is there

Both change alike in a step, so they are kept as one tensor: p is the last column. A cell that is yet to come
is 0, and so it may join at the end of the state.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from softstack import checks
from softstack.memory.protocol import Contents, Drawn
from softstack.memory.shapes import Device, Dtype, Sequences, batch_of
from softstack.memory.states import storable


@storable
class Depths(NamedTuple):
    """What is at each depth, the top first."""

    cells: Tensor  # (B, N, m + 1): [S; p]


def whole(v: Tensor) -> Tensor:
    """A vector (B, m) as a cell (B, 1, m + 1) that is there for certain."""
    return pad(v, (0, 1), value=1.0).unsqueeze(-2)


def tops(state: Depths, count: int) -> Tensor:
    """The `count` topmost cells (B, count, m + 1)."""
    cells = state.cells[..., :count, :]
    return pad(cells, (0, 0, 0, count - cells.shape[-2]))


@dataclass(frozen=True)
class ByDepth(ABC):
    """What such stacks share: all but what they are told, and what a step does with it."""

    size: int  # m

    drawn: ClassVar[Drawn] = "pile"

    def __post_init__(self) -> None:
        checks.positive("size", self.size)

    @property
    def width(self) -> int:
        return self.size

    def init(self, batch: Sequences = None, *, device: Device = None, dtype: Dtype = None) -> Depths:
        return Depths(torch.zeros(*batch_of(batch), 0, self.size + 1, device=device, dtype=dtype))

    @abstractmethod
    def step(self, state: Depths, instructions: Any) -> tuple[Depths, Tensor]: ...

    def contents(self, state: Depths) -> Contents:
        """Each cell with the mean of what may be there; the top is the last, as piles are drawn."""
        S, p = state.cells[..., :-1].flip(-2), state.cells[..., -1].flip(-1)
        return Contents(S / p.clamp(min=1e-6).unsqueeze(-1), p)
