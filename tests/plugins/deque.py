"""Grefenstette et al. (2015), §3.3: a neural DeQue, which is a stack at both of its ends.

V  (B, N, m)  the vectors held, from the bottom to the top       u_top, u_bottom  (B,)    pop strengths
s  (B, N)     their strengths                                    d_top, d_bottom  (B,)    push strengths
                                                                 v_top, v_bottom  (B, m)  what is pushed
"""

from dataclasses import dataclass

import torch

import softstack as ss
from softstack.memory import above, before, empty, pop, read


@dataclass(frozen=True)
class Deque:
    """Pop at the top, then at the bottom, push at both, and read both: r is [r_top; r_bottom]."""

    size: int  # m

    name = "deque"
    drawn = "line"

    @property
    def heads(self):
        return {
            "v_top": ss.Vector(self.size),
            "u_top": ss.Strength(bias=-1.0),
            "d_top": ss.Strength(),
            "v_bottom": ss.Vector(self.size),
            "u_bottom": ss.Strength(bias=-1.0),
            "d_bottom": ss.Strength(),
        }

    @property
    def width(self):
        return 2 * self.size

    def init(self, batch=(), *, device=None, dtype=None):
        return empty(self.size, batch, torch.empty(0, device=device, dtype=dtype))

    def step(self, state, instructions):
        v_top, u_top, d_top, v_bottom, u_bottom, d_bottom = instructions
        s = pop(pop(state.s, u_top, above), u_bottom, before)
        state = ss.MemoryState(
            torch.cat((v_bottom.unsqueeze(-2), state.V, v_top.unsqueeze(-2)), -2),  # (B, N + 2, m)
            torch.cat((d_bottom.unsqueeze(-1), s, d_top.unsqueeze(-1)), -1),
        )
        return state, torch.cat((read(state, above), read(state, before)), -1)  # (B, 2m)

    def contents(self, state):
        return ss.Contents(*state)


MEMORIES = {"deque": Deque}
