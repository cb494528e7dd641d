"""DuSell and Chiang (2020, 2022, 2023): all runs of a pushdown automaton at once, by Lang's algorithm.

    Q states   Γ stack symbols   K = Q Γ pairs (q, x)   C = 1 + m   R = N - 1

    Δ      (B, K (2 K + Q))        logarithms of the weights of transitions, from each (q, x): push y and go
                                   to r, replace x by y and go to r, pop x and go to r
    v      (B, m)                  the vector that goes with a pushed symbol (2023), if m > 0
    gamma  (B, N, K, C, K)         γ'[i][q, x → r, y]
    below  (B, Γ, R, Q, R, K, C)   β[k][u, y → i, q, x]

A run pushes, replaces or pops one symbol in a step; its weight is the product of those of its transitions. It
begins in state 0 with the symbol 0 alone, which it can replace but not pop, as from 2023 on; before, it could
not be replaced, nor uncovered again. The papers' inner weight γ[i→t][q, x → r, y] is the total of all runs
from (q, x) at time i to (r, y) at time t that push y onto x and never look at x:

    γ[i→t][q,x→r,y] = [i = t-1] Δ[q,x → r,xy]                                          push
                    + Σ_{s,z} γ[i→t-1][q,x→s,z] Δ[s,z → r,y]                           replace
                    + Σ_{k,u} γ[i→k][q,x→u,y] Σ_{s,z} γ[k→t-1][u,y→s,z] Δ[s,z → r,ε]     pop
    α[t][r,y] = Σ_{i,q,x} α[i][q,x] γ[i→t][q,x→r,y]        r_t[r,y] = α[t][r,y] / Σ α[t]

These weights overflow. Here they are kept as shares of all runs up to now, which lie in [0, 1]:

    γ'[i][q,x→r,y] = α[i][q,x] γ[i→t][q,x→r,y] / Σ α[t]           of the runs now, those with this on top
    β[k][u,y → i,q,x] = α[i][q,x] γ[i→k][q,x→u,y] / α[k][u,y]     of those at (k, u, y), where y was pushed

so that the pop is Σ_{k,u} β[k][u,y→i,q,x] Σ_{s,z} γ'[k][u,y→s,z] Δ[s,z→r,ε], and a step divides by the total.
A run whose share falls below 1e-30 (float32) is lost. With vectors, C - 1 more numbers stand beside each one:
the sum over the same runs of the weight times the vector of the symbol on top. A symbol that is replaced
keeps its vector, and the vector of the first symbol is 0, where the authors learn one.

A step costs O(N² Q³ Γ² C) operations and keeps O(N² Q² Γ² C) numbers.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from softstack import checks
from softstack.memory.protocol import Contents, Drawn, Head, Scores, Vector
from softstack.memory.shapes import Device, Dtype, Sequences, batch_of
from softstack.memory.states import storable

HIGHEST = 80.0  # of a logarithm: its exponential is finite in float32


@storable
class Runs(NamedTuple):
    """All runs up to now. Slot 0 stands for the bottom, slot k for time k - 1, when item k was pushed."""

    gamma: Tensor  # (B, N, K, C, K)
    below: Tensor  # (B, Γ, R, Q, R, K, C), for the slots from 1 on


@dataclass(frozen=True)
class Nondeterministic:
    """What is read is the share of runs in each state with each symbol on top or, with vectors, those shares
    times the mean of the vectors on top: (B, Q Γ) or (B, Q Γ m).

    * `symbols`: Γ, of which the first is at the bottom
    * `states`: Q, of which the first is that of the start
    * `vectors`: m, the numbers that go with a symbol; 0 for none
    * `normalised`: the weights from each (q, x) add up to 1, as in 2020; else they need not, as from 2022 on.
      The read of 2020 had no states: the sum over q of what is read here
    """

    symbols: int
    states: int = 2
    vectors: int = 0
    normalised: bool = False

    drawn: ClassVar[Drawn] = "pile"
    longest: ClassVar[int] = 100

    def __post_init__(self) -> None:
        checks.positive("symbols", self.symbols)
        checks.positive("states", self.states)
        if self.vectors:
            checks.positive("vectors", self.vectors)

    @property
    def name(self) -> str:
        return "vector nondeterministic stack" if self.vectors else "nondeterministic stack"

    @property
    def width(self) -> int:
        return self.states * self.symbols * (self.vectors or 1)

    @property
    def heads(self) -> dict[str, Head]:
        K = self.states * self.symbols
        delta = Scores(K * (2 * K + self.states))
        return {"delta": delta, "v": Vector(self.vectors)} if self.vectors else {"delta": delta}

    def init(self, batch: Sequences = None, *, device: Device = None, dtype: Dtype = None) -> Runs:
        Q, Γ, C = self.states, self.symbols, 1 + self.vectors
        batch = batch_of(batch)
        start = torch.arange(Q * Γ * C * Q * Γ, device=device) == 0
        gamma = start.to(dtype or torch.get_default_dtype()).view(1, Q * Γ, C, Q * Γ)
        return Runs(gamma.expand(*batch, *gamma.shape), gamma.new_zeros(*batch, Γ, 0, Q, 0, Q * Γ, C))

    def step(self, state: Runs, instructions: Any) -> tuple[Runs, Tensor]:
        Q, Γ = self.states, self.symbols
        gamma, below = state
        alpha = gamma[..., 0, :].sum((-3, -2))  # (B, K)
        least = torch.finfo(alpha.dtype).tiny ** 0.8
        some = alpha.clamp(min=least)
        push, replace, pop = self._weights(instructions.delta, some)  # (B, K, K), (B, K, K), (B, K, Q)

        pushed = (alpha.unsqueeze(-1) * push).unsqueeze(-2)  # (B, K, 1, K)
        if self.vectors:
            channels = pad(instructions.v, (1, 0), value=1.0)  # (B, C)
            pushed = pushed * channels[..., None, :, None]  # (B, K, C, K)
        replaced = torch.matmul(gamma.flatten(-4, -2), replace).view_as(gamma)
        ended = torch.matmul(gamma[..., 1:, :, 0, :], pop.unsqueeze(-3))  # (B, R, K, Q): popped, by (k, u, y)
        uncovered = self._uncovered(ended.unflatten(-2, (Q, Γ)), below)  # (B, R, K, C, K)
        runs = replaced + pad(uncovered, (0, 0, 0, 0, 0, 0, 0, 1))
        runs = torch.cat((runs, pushed.unsqueeze(-4)), -4)  # (B, N + 1, K, C, K)
        total = runs[..., 0, :].sum((-3, -2, -1)).clamp(min=least)
        runs = runs / total[..., None, None, None, None]

        origin = (gamma / some[..., None, None, None, :]).unflatten(-1, (Q, Γ)).movedim((-1, -2), (-5, -4))
        below = torch.cat((pad(below, (0, 0, 0, 0, 0, 1)), origin.unsqueeze(-5)), -5)
        tops = runs.sum((-4, -3))  # (B, C, K)
        r = tops[..., 1:, :].transpose(-1, -2).flatten(-2) if self.vectors else tops[..., 0, :]
        return Runs(runs, below), r

    def _weights(self, delta: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of all transitions from each (q, x), times any number: what is read does not depend on it. It is
        chosen so that the heaviest push or replacement of a run has about the weight 1."""
        Q, K = self.states, self.states * self.symbols
        raw = delta.unflatten(-1, (K, 2 * K + Q))
        raw = raw.log_softmax(-1) if self.normalised else raw
        shares = raw[..., : 2 * K] + alpha.log().unsqueeze(-1)
        heaviest = shares.detach().amax((-2, -1), keepdim=True)
        push, replace, pop = (raw - heaviest).clamp(max=HIGHEST).exp().split((K, K, Q), -1)
        return push, replace, pop

    @staticmethod
    def _uncovered(ended: Tensor, below: Tensor) -> Tensor:
        """Runs that popped, (B, R, Q, Γ, Q) by (k, u, y, r), by what is then on top: (B, R, K, C, K)."""
        R, K, C = below.shape[-3:]
        ended = ended.movedim((-2, -1), (-4, -3)).flatten(-2)  # (B, Γ, Q, R Q)
        origins = below.flatten(-3).flatten(-3, -2)  # (B, Γ, R Q, R K C)
        uncovered: Tensor = torch.matmul(ended, origins).unflatten(-1, (R, K, C))  # (B, Γ, Q, R, K, C)
        return uncovered.movedim((-4, -5), (-2, -1)).flatten(-2)

    def contents(self, state: Runs) -> Contents:
        """Each item that was pushed, the bottom first: the share of runs that still have it, and of those the
        share with each symbol in its place (B, N, Γ)."""
        Q, Γ, K = self.states, self.symbols, self.states * self.symbols
        wide = torch.promote_types(state.gamma.dtype, torch.float32)
        gamma, below = state.gamma[..., 0, :].to(wide), state.below[..., 0].to(wide)
        R = below.shape[-2]
        # how many runs have an item that was pushed at (k, u, y), anywhere: those that have it on top, and
        # those that have it beneath another
        origins = below.movedim(-5, -3).flatten(-5, -3).flatten(-2)  # (B, R K, R K), rows from slot 1 on
        origins = pad(origins, (0, K, K, 0))  # (B, N K, N K): rows and columns by slot
        identity = torch.eye((R + 1) * K, device=gamma.device, dtype=wide)
        on_top = gamma.sum(-1).flatten(-2).unsqueeze(-1)  # (B, N K, 1)
        counts = torch.linalg.solve_triangular(
            identity - origins.transpose(-1, -2), on_top, upper=True, unitriangular=True
        )
        covered = (counts * origins).unflatten(-2, (R + 1, Q, Γ)).sum((-4, -3))  # (B, Γ, N K), by y
        covered = covered.unflatten(-1, (R + 1, K)).sum(-1).transpose(-1, -2)  # (B, N, Γ)
        symbols = gamma.sum(-2).unflatten(-1, (Q, Γ)).sum(-2) + covered
        s = symbols.sum(-1)
        return Contents(symbols / s.clamp(min=1e-6).unsqueeze(-1), s)
