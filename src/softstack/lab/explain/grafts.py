"""Where what one run holds can be put into another, and what that changes."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from softstack.cell import State
from softstack.memory import MemoryState, Queue, Stack

MOST = 200  # grafts of each kind
DIFFERENT = 0.1  # vectors that differ by more, in some component, are different symbols
ALIKE = 20  # pairs with the same top among 1,600 that show that tops can be the same
LEVEL = 0.3  # heights that differ by less are the same
KINDS = ("whole", "contents", "height")
Places = tuple[NDArray[Any], NDArray[Any]]  # runs and times


class Graft(NamedTuple):
    """Into run `run`, before step `time`, from run `donor` before step `donor_time`."""

    run: int
    time: int
    donor: int
    donor_time: int


class Past(NamedTuple):
    """What each run was like before each of its T steps."""

    states: list[State]
    outputs: Tensor  # (B, T) symbols put out before the step
    live: Tensor  # (B, T) whether the step is of the run's string, and not of its padding


class Piles(NamedTuple):
    """What a stack or a queue held before each step, in strengths."""

    s: Tensor  # (B, T, N)
    V: Tensor  # (B, N, m)
    near: Tensor  # (B, T, N) what the next read sees
    height: Tensor  # (B, T)
    beneath: Tensor  # (B, T) height of what it does not see
    uncovered: Tensor  # (B, T) how much of that goes before the last step; -1 where no step sees any of it
    first_sight: Tensor  # (B, T) the step that first sees some of it
    lowest: Tensor  # (B, T) the least height before any later step


def piles_of(memory: Stack | Queue, past: Past) -> Piles:
    final: MemoryState = past.states[-1].memory
    V, N = final.V, final.s.shape[-1]
    s = torch.stack([pad(p.memory.s, (0, N - p.memory.s.shape[-1])) for p in past.states], 1)
    near = memory.nearest(MemoryState(V.unsqueeze(1), s)).s  # (B, T, N)
    height, beneath = s.sum(-1), (s - near).sum(-1)
    B, T, _ = s.shape
    sums = torch.cat([s.new_zeros(B, T, 1), s.cumsum(-1)], -1)  # (B, T', slots counted)
    old = sums[:, :, :T].transpose(1, 2)  # (B, T, T'): of what lay there at t, what is left at t'
    remains = torch.minimum(old, beneath.unsqueeze(-1))  # of what lay beneath
    above = height.unsqueeze(1) if isinstance(memory, Stack) else old
    later = torch.ones(T, T, dtype=torch.bool).triu(1) & past.live.unsqueeze(1)  # (B, T, T')
    sights = later & (above - remains < 0.75)
    gone = (beneath.unsqueeze(-1) - remains).masked_fill(~later, 0).amax(-1)
    lowest = height.unsqueeze(1).expand(B, T, T).masked_fill(~later, torch.inf).amin(-1)
    uncovered = torch.where(sights.any(-1), gone, -1.0)
    return Piles(s, V, near, height, beneath, uncovered, sights.int().argmax(-1), lowest)


def since(kind: str, piles: Piles, graft: Graft) -> int:
    """The step from which on the graft can show: where it is made, where what lies beneath is first seen, or
    where one of two piles of different heights is empty."""
    a, t = graft.run, graft.time
    if kind == "whole":
        return t
    if kind == "contents":
        return int(piles.first_sight[a, t])
    later = torch.arange(piles.height.shape[1]) > t
    return int((later & (piles.height[a] <= _end(piles, *graft))).int().argmax())


def _end(piles: Piles, run: Any, time: Any, donor: Any, donor_time: Any) -> Tensor:
    """The height at which a run has used up what lies beneath, be that its own or as much as the donor's."""
    return (piles.beneath[run, time] - piles.beneath[donor, donor_time]).clamp(min=0.5) + 0.25


def sample_grafts(
    kind: str, memory: Stack | Queue, piles: Piles, past: Past, rng: np.random.Generator
) -> list[Graft]:
    """Pairs of runs and times between which a graft of this kind changes something that will be seen."""
    covered = piles.height - piles.beneath > 0.75  # or what is grafted beneath the top would be the top
    places = past.live if kind == "whole" else past.live & covered & (piles.uncovered >= 0)  # (B, T)
    runs, times = places.numpy().nonzero()
    donors, donor_times = past.live.numpy().nonzero()
    reads = torch.stack([state.r for state in past.states], 1)  # (B, T, m)
    grafts: list[Graft] = []
    if not len(runs):
        return grafts
    for draw in range(20):
        index = rng.integers(len(runs), size=8 * MOST)
        a, t = runs[index], times[index]
        if kind == "contents":
            b, u = _as_high(piles, (a, t), (donors, donor_times), rng)
        else:
            index = rng.integers(len(donors), size=8 * MOST)
            b, u = donors[index], donor_times[index]
        gap = (piles.beneath[b, u] - piles.beneath[a, t]).abs()
        read_gap = (reads[a, t] - reads[b, u]).abs().amax(-1)
        if kind == "whole":
            good = (read_gap > DIFFERENT) | ((piles.height[a, t] - piles.height[b, u]).abs() > 0.75)
        elif kind == "height":  # one of the two runs out before the other
            good = (gap > 0.75) & (piles.lowest[a, t] <= _end(piles, a, t, b, u))
        else:  # under the same top, if enough donors have it: what lies under others may not fit
            good = gap < LEVEL
            alike = good & (read_gap < DIFFERENT)
            good = alike if alike.sum() >= ALIKE else good
        for k in np.flatnonzero((good & torch.from_numpy(a != b)).numpy()):
            graft = Graft(int(a[k]), int(t[k]), int(b[k]), int(u[k]))
            if kind != "contents" or _differs(memory, piles, graft):
                grafts.append(graft)
            if len(grafts) == MOST:
                return grafts
        if not grafts and draw == 4:
            break  # there are none
    return grafts


def _as_high(piles: Piles, places: Places, donors: Places, rng: np.random.Generator) -> Places:
    """For each of the places a donor whose height beneath is about the same."""
    heights = piles.beneath[donors].numpy()
    order = np.argsort(heights, kind="stable")
    levels = piles.beneath[places].numpy()
    low, high = (np.searchsorted(heights[order], levels + gap) for gap in (-LEVEL, LEVEL))
    index = order[low + (rng.random(len(low)) * np.maximum(1, high - low)).astype(int)]
    return donors[0][index], donors[1][index]


def _slots(memory: Stack | Queue, piles: Piles, run: int, time: int) -> tuple[Tensor, Tensor]:
    """What lies beneath, nearest first: vectors (n, m) and strengths (n,)."""
    s = piles.s[run, time] - piles.near[run, time]
    places = (s > 1e-6).nonzero().squeeze(-1)
    if isinstance(memory, Stack):
        places = places.flip(0)
    return piles.V[run, places], s[places]


def _transferred(memory: Stack | Queue, piles: Piles, graft: Graft) -> tuple[Tensor, Tensor, Tensor]:
    """The vectors beneath, nearest first, before and after they are those of the donor at the same depth,
    and their strengths, which stay."""
    V, s = _slots(memory, piles, graft.run, graft.time)
    V_other, s_other = _slots(memory, piles, graft.donor, graft.donor_time)
    ends, ends_other = s.cumsum(0), s_other.cumsum(0)
    begin = torch.maximum((ends - s).unsqueeze(1), (ends_other - s_other).unsqueeze(0))
    end = torch.minimum(ends.unsqueeze(1), ends_other.unsqueeze(0))
    overlap = (end - begin).clamp(min=0)  # (n, n_other)
    remainder = (s - overlap.sum(1)).clamp(min=0).unsqueeze(1)  # deeper than what the donor has
    total = (overlap.sum(1, keepdim=True) + remainder).clamp(min=1e-9)
    return V, (overlap @ V_other + remainder * V) / total, s


def _differs(memory: Stack | Queue, piles: Piles, graft: Graft) -> bool:
    """Whether vectors that will be seen become others."""
    before, after, s = _transferred(memory, piles, graft)
    depth = s.cumsum(0) - s  # where each begins
    in_sight = depth < float(piles.uncovered[graft.run, graft.time]) + 0.75
    gap = (before - after).abs().amax(-1) if len(s) else s
    return bool((gap[in_sight] > DIFFERENT).any())


def grafted(kind: str, memory: Stack | Queue, piles: Piles, graft: Graft) -> MemoryState:
    """What the memory holds after the graft, first pushed first."""
    a, t, b, u = graft
    if kind == "whole":
        slots = piles.s[b, u] > 1e-6
        return MemoryState(piles.V[b, slots], piles.s[b, u, slots])
    near = piles.near[a, t] > 1e-6
    top = MemoryState(piles.V[a, near], piles.near[a, t, near])
    if kind == "height":
        V, s = _slots(memory, piles, b, u)
    else:
        _, V, s = _transferred(memory, piles, graft)
    if isinstance(memory, Stack):
        return MemoryState(torch.cat([V.flip(0), top.V]), torch.cat([s.flip(0), top.s]))
    return MemoryState(torch.cat([top.V, V]), torch.cat([top.s, s]))


def sample_any_grafts(past: Past, rng: np.random.Generator) -> list[Graft]:
    """Between runs at the same time, where a memory of any kind has the same shape."""
    grafts = []
    for _ in range(MOST):
        run, donor = rng.integers(len(past.live), size=2).tolist()
        time = int(rng.integers(max(1, int((past.live[run] & past.live[donor]).sum()))))
        grafts.append(Graft(run, time, donor, time))
    return grafts
