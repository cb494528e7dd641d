"""Joulin and Mikolov (2015), §4.2: a stack that is pushed, popped and left as it is, all at once.

    a  (B, 3)     how likely it is to push, to pop and to do nothing: the softmax of a head
    v  (B, m)     what is pushed: σ(D h_t) in the paper, where m = 1
    S  (B, N, m)  the paper's s_t: what is at each depth, the top first, with p beside it (`depths.py`)

    S_t[0] = a[push] v            + a[pop] S_{t-1}[1]   + a[no-op] S_{t-1}[0]      equation 4
    S_t[i] = a[push] S_{t-1}[i-1] + a[pop] S_{t-1}[i+1] + a[no-op] S_{t-1}[i]      equation 5
    r_t = S_t[0]

Without a limit N is the number of steps, and a step costs O(N m) operations; with `depth` it costs O(depth m)
and what is pushed below that depth is lost.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from softstack import checks
from softstack.memory.depths import ByDepth, Depths, tops, whole
from softstack.memory.protocol import Choice, Head, Vector


@dataclass(frozen=True)
class Superposition(ByDepth):
    """push times the stack moved down, plus pop times it moved up, plus no-op times it as it was.

    * `noop`: whether doing nothing is one of the actions
    * `depth`: cells at most; None: as many as there are steps
    * `empty`: what is read where nothing is. Joulin and Mikolov read -1 from an empty stack.
    """

    noop: bool = True
    depth: int | None = None
    empty: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.depth is not None:
            checks.positive("depth", self.depth)
        checks.finite("empty", self.empty)

    @property
    def name(self) -> str:
        return "superposition stack" if self.noop else "superposition stack without no-op"

    @property
    def heads(self) -> dict[str, Head]:
        actions = ("push", "pop", "no-op") if self.noop else ("push", "pop")
        return {"action": Choice(actions), "v": Vector(self.size)}

    def step(self, state: Depths, instructions: Any) -> tuple[Depths, Tensor]:
        a, v = instructions
        (S,) = state
        N, k = S.shape[-2] + 1, S.shape[-1]  # cells after the step, if there is no limit
        none = torch.zeros_like(whole(v))
        pushed, popped, left = (whole(v), S), (S[..., 1:, :], *[none] * min(N, 2)), (S, none)
        stacks = torch.cat((*pushed, *popped, *(left if self.noop else ())), -2)  # (B, 3N, m + 1)
        S = torch.matmul(a.unsqueeze(-2), stacks.unflatten(-2, (-1, N)).flatten(-2))  # (B, 1, N (m + 1))
        S = S.squeeze(-2).unflatten(-1, (N, k))[..., : self.depth, :]
        return Depths(S), self._read(S[..., :1, :]).squeeze(-2)

    def _read(self, S: Tensor) -> Tensor:
        return S[..., :-1] if not self.empty else S[..., :-1] + self.empty * (1 - S[..., -1:])

    def tops(self, state: Depths, count: int) -> Tensor:
        """The `count` topmost cells, (B, count, m)."""
        return self._read(tops(state, count))
