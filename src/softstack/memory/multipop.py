"""Yogatama et al. (2018): a stack from which several items are popped in one step.

    p  (B, K + 1)  how likely it is to pop k = 0, 1, ..., K items: the softmax of a head
    d  (B,)        how likely it is to push then
    v  (B, m)      what is pushed
    S  (B, N, m)   what is at each depth, the top first (`depths.py`)

The stack is the mean over all that may have happened:

    S'[i]  = Σ_k p[k] S_{t-1}[i + k]
    S_t[0] = d v       + (1 - d) S'[0]
    S_t[i] = d S'[i-1] + (1 - d) S'[i]
    r_t = S_t[0]

Nothing falls off the bottom: N grows by a cell in every step, which costs O(N m K) operations.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from softstack import checks
from softstack.memory.depths import ByDepth, Depths, tops, whole
from softstack.memory.protocol import Choice, Head, Strength, Vector


@dataclass(frozen=True)
class Multipop(ByDepth):
    """Pop some items, of which `pops` says how many at most, then push, and read the top."""

    pops: int = 3  # K

    name = "multipop stack"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive("pops", self.pops)

    @property
    def heads(self) -> dict[str, Head]:
        return {
            "d": Strength(),
            "pops": Choice(tuple(str(k) for k in range(self.pops + 1))),
            "v": Vector(self.size),
        }

    def step(self, state: Depths, instructions: Any) -> tuple[Depths, Tensor]:
        d, p, v = instructions
        (S,) = state
        N, k = S.shape[-2:]
        longer = pad(S, (0, 0, 0, self.pops))
        moved = torch.stack([longer[..., i : i + N, :] for i in range(self.pops + 1)], -3)  # (B, K + 1, N, k)
        S = torch.matmul(p.unsqueeze(-2), moved.flatten(-2)).squeeze(-2).unflatten(-1, (N, k))
        none = torch.zeros_like(whole(v))
        S = torch.lerp(torch.cat((S, none), -2), torch.cat((whole(v), S), -2), d[..., None, None])
        return Depths(S), S[..., 0, :-1]

    def tops(self, state: Depths, count: int) -> Tensor:
        """The `count` topmost cells, (B, count, m)."""
        return tops(state, count)[..., :-1]
