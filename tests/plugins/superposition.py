"""Joulin and Mikolov (2015): a stack that is pushed, popped and left as it is, all at once.

action  (B, 3)     how likely it is to push, to pop and to do nothing
v       (B, m)     what is pushed
V       (B, N, m)  the mean over all that may have happened, from the top down: 0 where nothing is
s       (B, N)     how likely it is that something is there
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

import softstack as ss


class Depths(NamedTuple):
    V: Tensor  # (B, N, m)
    s: Tensor  # (B, N)


@dataclass(frozen=True)
class Superposition:
    """push times the stack shifted down, plus pop times it shifted up, plus no-op times it as it was."""

    size: int  # m

    name = "superposition"
    drawn = "pile"

    @property
    def heads(self):
        return {"action": ss.Choice(("push", "pop", "no-op")), "v": ss.Vector(self.size)}

    @property
    def width(self):
        return self.size

    def init(self, batch=(), *, device=None, dtype=None):
        V = torch.zeros(*batch, 0, self.size, device=device, dtype=dtype)
        return Depths(V, V.new_zeros(*batch, 0))

    def step(self, state, instructions):
        action, v = instructions.action, instructions.v
        V = mixed(action, v, state.V)  # (B, N + 1, m)
        s = mixed(action, torch.ones_like(v[..., :1]), state.s.unsqueeze(-1)).squeeze(-1)  # (B, N + 1)
        return Depths(V, s), V[..., 0, :]

    def contents(self, state):
        mean = state.V / state.s.clamp(min=1e-6).unsqueeze(-1)  # of what is there
        return ss.Contents(mean.flip(-2), state.s.flip(-1))  # drawn with the last on top


def mixed(action, new, cells):
    """The three stacks that there may be after a step, each as likely as its action: (B, N + 1, k)."""
    push, pop, stay = action[..., None, None].unbind(-3)  # (B, 1, 1) each
    pushed = torch.cat((new.unsqueeze(-2), cells), -2)
    popped = pad(cells, (0, 0, 0, 2))[..., 1:, :]
    return push * pushed + pop * popped + stay * pad(cells, (0, 0, 0, 1))


MEMORIES = {"superposition": Superposition}
