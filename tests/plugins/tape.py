"""A tape of 8 cells in a ring, with a head that is in many places at once.

move   (B, 3)     how likely the head is to go left, to stay and to go right
d      (B,)       how much of what is under the head is replaced
v      (B, m)     what is written
cells  (B, 8, m)  the tape
place  (B, 8)     how likely the head is to be at each cell
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

import softstack as ss


class Tape(NamedTuple):
    cells: Tensor  # (B, 8, m)
    place: Tensor  # (B, 8)


@dataclass(frozen=True)
class Machine:
    """Write, then move, then read."""

    size: int  # m

    name = "tape"
    drawn = "cells"

    @property
    def heads(self):
        return {
            "d": ss.Strength(),
            "move": ss.Choice(("left", "stay", "right")),
            "v": ss.Vector(self.size),
        }

    @property
    def width(self):
        return self.size

    def init(self, batch=(), *, device=None, dtype=None):
        cells = torch.zeros(*batch, 8, self.size, device=device, dtype=dtype)
        place = torch.zeros(*batch, 8, device=device, dtype=dtype)
        return Tape(cells, place + torch.eye(8, device=device, dtype=dtype)[0])

    def step(self, state, instructions):
        d, move, v = instructions
        share = (d.unsqueeze(-1) * state.place).unsqueeze(-1)  # (B, 8, 1)
        cells = state.cells + share * (v.unsqueeze(-2) - state.cells)
        place = moved(move, state.place)
        return Tape(cells, place), (place.unsqueeze(-1) * cells).sum(-2)

    def contents(self, state):
        return ss.Contents(state.cells, state.place)


def moved(move, place):
    """The three places where the head may be after a step, each as likely as its move: (B, 8)."""
    left, stay, right = move.unsqueeze(-1).unbind(-2)  # (B, 1) each
    return left * place.roll(-1, -1) + stay * place + right * place.roll(1, -1)


MEMORIES = {"tape": Machine}
