"""Grefenstette et al. (2015), §3.3: a neural DeQue, which is a stack at both of its ends.

    V  (B, N, m)  the vectors held, from the bottom to the top       u_top, u_bottom  (B,)    pop strengths
    s  (B, N)     their strengths                                    d_top, d_bottom  (B,)    push strengths
    r_top, r_bottom  (B, m)  what is read                            v_top, v_bottom  (B, m)  what is pushed

A step adds a slot at each end, so N is twice the number of steps. It takes from the top first: what is popped
there cannot be popped at the bottom.

    s'_t[i]  = relu(s_{t-1}[i] - relu(u_top - Σ_{j>i} s_{t-1}[j]))
    s''_t[i] = relu(s'_t[i] - relu(u_bottom - Σ_{j<i} s'_t[j]))
    V_t = [v_bottom; V_{t-1}; v_top]        r_top    = Σ_i min(s_t[i], relu(1 - Σ_{j>i} s_t[j])) V_t[i]
    s_t = [d_bottom; s''_t; d_top]          r_bottom = Σ_i min(s_t[i], relu(1 - Σ_{j<i} s_t[j])) V_t[i]

These are equations 6 to 11. In print the sum in (7), and what (7) and (8) hold for, end one item too early.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from softstack import checks
from softstack.memory.items import MemoryState, above, before, no_items, pop, seen
from softstack.memory.protocol import Contents, Drawn, Head, Strength, Vector
from softstack.memory.shapes import Device, Dtype, Sequences


@dataclass(frozen=True)
class Deque:
    """Pop at the top, then at the bottom, push at both ends, and read both: r is [r_top; r_bottom]."""

    size: int  # m

    name = "deque"
    drawn: ClassVar[Drawn] = "pile"

    def __post_init__(self) -> None:
        checks.positive("size", self.size)

    @property
    def width(self) -> int:
        return 2 * self.size

    @property
    def heads(self) -> dict[str, Head]:
        return {
            "v_top": Vector(self.size),
            "u_top": Strength(bias=-1.0),
            "d_top": Strength(),
            "v_bottom": Vector(self.size),
            "u_bottom": Strength(bias=-1.0),
            "d_bottom": Strength(),
        }

    def init(self, batch: Sequences = None, *, device: Device = None, dtype: Dtype = None) -> MemoryState:
        return no_items(self.size, batch, device, dtype)

    def step(self, state: MemoryState, instructions: Any) -> tuple[MemoryState, Tensor]:
        v_top, u_top, d_top, v_bottom, u_bottom, d_bottom = instructions
        s = pop(pop(state.s, u_top, above), u_bottom, before)
        s = torch.cat((d_bottom.unsqueeze(-1), s, d_top.unsqueeze(-1)), -1)  # (B, N + 2)
        V = torch.cat((v_bottom.unsqueeze(-2), state.V, v_top.unsqueeze(-2)), -2)  # (B, N + 2, m)
        w = torch.stack((seen(s, above), seen(s, before)), -2)  # (B, 2, N + 2)
        return MemoryState(V, s), torch.matmul(w, V).flatten(-2)  # (B, 2m)

    def contents(self, state: MemoryState) -> Contents:
        return Contents(*state)

    def nearest(self, state: MemoryState) -> MemoryState:
        """Without what the next read sees at neither end."""
        return MemoryState(state.V, torch.maximum(seen(state.s, above), seen(state.s, before)))
