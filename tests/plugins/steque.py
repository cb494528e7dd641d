"""A steque, which is a stack that can also be pushed onto from below.

V  (B, N, m)  the vectors held, from the bottom to the top       u                (B,)    pop strength
s  (B, N)     their strengths                                    d_top, d_bottom  (B,)    push strengths
                                                                 v_top, v_bottom  (B, m)  what is pushed
"""

from dataclasses import dataclass

import torch

import softstack as ss
from softstack.memory import above, empty, pop, read


@dataclass(frozen=True)
class Steque:
    """Pop at the top, push at both ends, and read the top."""

    size: int  # m

    name = "steque"
    drawn = "pile"

    @property
    def heads(self):
        return {
            "u": ss.Strength(bias=-1.0),
            "v_top": ss.Vector(self.size),
            "d_top": ss.Strength(),
            "v_bottom": ss.Vector(self.size),
            "d_bottom": ss.Strength(),
        }

    @property
    def width(self):
        return self.size

    def init(self, batch=(), *, device=None, dtype=None):
        return empty(self.size, batch, torch.empty(0, device=device, dtype=dtype))

    def step(self, state, instructions):
        u, v_top, d_top, v_bottom, d_bottom = instructions
        s = pop(state.s, u, above)
        state = ss.MemoryState(
            torch.cat((v_bottom.unsqueeze(-2), state.V, v_top.unsqueeze(-2)), -2),  # (B, N + 2, m)
            torch.cat((d_bottom.unsqueeze(-1), s, d_top.unsqueeze(-1)), -1),
        )
        return state, read(state, above)

    def contents(self, state):
        return ss.Contents(*state)


MEMORIES = {"steque": Steque}
