"""A memory with one slot, to show how little a memory is."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

import softstack as ss


class Held(NamedTuple):
    vector: Tensor  # (B, m)


@dataclass(frozen=True)
class Register:
    """One slot: v replaces what is there to the degree d, after a part u of it is forgotten."""

    size: int  # m

    name = "register"
    drawn = "cells"

    @property
    def heads(self):
        return {"v": ss.Vector(self.size), "u": ss.Strength(), "d": ss.Strength()}

    @property
    def width(self):
        return self.size

    def init(self, batch=(), *, device=None, dtype=None):
        return Held(torch.zeros(*batch, self.size, device=device, dtype=dtype))

    def step(self, state, instructions):
        v, u, d = instructions.v, instructions.u.unsqueeze(-1), instructions.d.unsqueeze(-1)
        left = (1 - u) * state.vector
        vector = (1 - d) * left + d * v  # (B, m)
        return Held(vector), vector

    def contents(self, state):
        V = state.vector.unsqueeze(-2)  # (B, 1, m): one cell, and it is always full
        return ss.Contents(V, torch.ones_like(V[..., 0]))


MEMORIES = {"register": Register}
