"""Where what one run holds can be put into another: runs, times and what changes there."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from softstack.cell import State
from softstack.memory import MemoryState, Queue, Stack

MOST = 200  # grafts of each kind
DIFFERENT = 0.1  # how far apart two vectors, in some component, are different symbols
ALIKE = 20  # pairs with the same top among 1,600 that show that tops can be the same
LEVEL = 0.3  # how far apart two heights are the same
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
    written: Tensor  # (B, T) symbols put out before the step
    ends: list[int]  # (B,) steps of each run


class Piles(NamedTuple):
    """What a stack or a queue held before each step, in strengths."""

    s: Tensor  # (B, T, N)
    V: Tensor  # (B, N, m)
    near: Tensor  # (B, T, N) what the next read sees
    height: Tensor  # (B, T)
    beneath: Tensor  # (B, T) height of what it does not see
    uncovered: (
        Tensor  # (B, T) how much of that is gone before the last step; -1 where none of it is ever seen
    )
    first_seen: Tensor  # (B, T) the step that first sees some of it
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
    left = torch.minimum(old, beneath.unsqueeze(-1))  # of what lay beneath
    above = height.unsqueeze(1) if isinstance(memory, Stack) else old
    later = torch.arange(T) > torch.arange(T).unsqueeze(1)
    inside = torch.arange(T) < torch.tensor(past.ends).view(-1, 1, 1)
    seen = later & inside & (above - left < 0.75)  # (B, T, T')
    gone = (beneath.unsqueeze(-1) - left).masked_fill(~(later & inside), 0).amax(-1)
    lowest = height.unsqueeze(1).expand(B, T, T).masked_fill(~(later & inside), torch.inf).amin(-1)
    uncovered = torch.where(seen.any(-1), gone, -1.0)
    return Piles(s, V, near, height, beneath, uncovered, seen.int().argmax(-1), lowest)


def since(kind: str, piles: Piles, graft: Graft) -> int:
    """The step from which on the graft can show: where it is made, where what lies beneath is first seen, or
    where one of two piles of different heights is empty."""
    a, t = graft.run, graft.time
    if kind == "whole":
        return t
    if kind == "contents":
        return int(piles.first_seen[a, t])
    later = torch.arange(piles.height.shape[1]) > t
    return int((later & (piles.height[a] <= _end(piles, graft))).int().argmax())


def _end(piles: Piles, graft: Graft | tuple[Any, ...]) -> Tensor:
    """The height of the run at which it, or the same run with as much beneath as the donor, has nothing."""
    a, t, b, u = graft
    return (piles.beneath[a, t] - piles.beneath[b, u]).clamp(min=0.5) + 0.25


def grafts(
    kind: str, memory: Stack | Queue, piles: Piles, past: Past, rng: np.random.Generator
) -> list[Graft]:
    """Pairs of runs and times between which a graft of this kind changes something that will be seen."""
    T = piles.height.shape[1]
    live = torch.arange(T) < torch.tensor(past.ends).unsqueeze(1)
    covered = piles.height - piles.beneath > 0.75  # or what is grafted beneath the top would be the top
    places = live if kind == "whole" else live & covered & (piles.uncovered >= 0)  # (B, T)
    runs, times = (axis.numpy() for axis in places.nonzero(as_tuple=True))
    donors, donor_times = (axis.numpy() for axis in live.nonzero(as_tuple=True))
    reads = torch.stack([state.r for state in past.states], 1)  # (B, T, m)
    chosen: list[Graft] = []
    if not len(runs):
        return chosen
    for draws in range(20):
        mine = rng.integers(len(runs), size=8 * MOST)
        a, t = runs[mine], times[mine]
        if kind == "contents":
            b, u = _as_high(piles, (a, t), (donors, donor_times), rng)
        else:
            others = rng.integers(len(donors), size=8 * MOST)
            b, u = donors[others], donor_times[others]
        gap = (piles.beneath[b, u] - piles.beneath[a, t]).abs()
        read_gap = (reads[a, t] - reads[b, u]).abs().amax(-1)
        if kind == "whole":
            good = (read_gap > DIFFERENT) | ((piles.height[a, t] - piles.height[b, u]).abs() > 0.75)
        elif kind == "height":  # one of the two runs out before the other
            good = (gap > 0.75) & (piles.lowest[a, t] <= _end(piles, (a, t, b, u)))
        else:  # beneath the same top, where tops are ever the same: beneath another lies what never could
            good = gap < LEVEL
            alike = good & (read_gap < DIFFERENT)
            good = alike if alike.sum() >= ALIKE else good
        for k in np.flatnonzero((good & torch.from_numpy(a != b)).numpy()):
            graft = Graft(int(a[k]), int(t[k]), int(b[k]), int(u[k]))
            if kind != "contents" or _differs(memory, piles, graft):
                chosen.append(graft)
            if len(chosen) == MOST:
                return chosen
        if not chosen and draws == 4:
            break  # there are none
    return chosen


def _as_high(piles: Piles, places: Places, donors: Places, rng: np.random.Generator) -> Places:
    """For each of the places a donor whose height beneath is about the same."""
    heights = piles.beneath[donors].numpy()
    order = np.argsort(heights, kind="stable")
    wanted = piles.beneath[places].numpy()
    low = np.searchsorted(heights[order], wanted - LEVEL)
    high = np.searchsorted(heights[order], wanted + LEVEL)
    chosen = order[low + (rng.random(len(low)) * np.maximum(1, high - low)).astype(int)]
    return donors[0][chosen], donors[1][chosen]


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
    kept = (s - overlap.sum(1)).clamp(min=0).unsqueeze(1)
    total = (overlap.sum(1, keepdim=True) + kept).clamp(min=1e-9)
    return V, (overlap @ V_other + kept * V) / total, s


def _differs(memory: Stack | Queue, piles: Piles, graft: Graft) -> bool:
    """Whether vectors that will be seen become others."""
    before, after, s = _transferred(memory, piles, graft)
    depth = s.cumsum(0) - s  # where each begins
    seen = depth < float(piles.uncovered[graft.run, graft.time]) + 0.75
    gap = (before - after).abs().amax(-1) if len(s) else s
    return bool((gap[seen] > DIFFERENT).any())


def grafted(kind: str, memory: Stack | Queue, piles: Piles, graft: Graft) -> MemoryState:
    """What the memory holds after the graft, first pushed first."""
    a, t, b, u = graft
    if kind == "whole":
        held = piles.s[b, u] > 1e-6
        return MemoryState(piles.V[b, held], piles.s[b, u, held])
    near = piles.near[a, t] > 1e-6
    top = MemoryState(piles.V[a, near], piles.near[a, t, near])
    if kind == "height":
        V, s = _slots(memory, piles, b, u)
    else:
        _, V, s = _transferred(memory, piles, graft)
    if isinstance(memory, Stack):
        return MemoryState(torch.cat([V.flip(0), top.V]), torch.cat([s.flip(0), top.s]))
    return MemoryState(torch.cat([top.V, V]), torch.cat([top.s, s]))


def any_grafts(past: Past, rng: np.random.Generator) -> list[Graft]:
    """Between runs at the same time, where a memory of any kind has the same shape."""
    chosen = []
    for _ in range(MOST):
        run, donor = (int(k) for k in rng.integers(len(past.ends), size=2))
        time = int(rng.integers(max(1, min(past.ends[run], past.ends[donor]))))
        chosen.append(Graft(run, time, donor, time))
    return chosen
