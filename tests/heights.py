"""Stacks and queues without a loop over time: the theorem of docs/parallel.md, literally, for one sequence.

Items that are there before the first step count as steps that pop and read nothing. Index i or t runs over
all N of them; matrices (N, N) have times in rows and items in columns. Gradients follow the page too: they
are what autograd gives for the reference, at ties as well. Everything is float64.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Scan(NamedTuple):
    r: Tensor  # (T, m)
    s: Tensor  # (N,) the final strengths


def heights(u: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    """L and H (N,): how high the stack is after the pop and after the push of each step.

    L_t = max(0, L_{t-1} + d_{t-1} - u_t) is a sum that starts again whenever it would fall below 0.
    """
    total = torch.cumsum(torch.cat((d.new_zeros(1), d[:-1])) - u, 0)
    low = total - torch.cummin(total.clamp(max=0), 0).values
    return low, low + d


def nearest(smaller: Tensor) -> Tensor:
    """(N,): for each row, the last column that is true, -1 where none is."""
    numbered = torch.where(smaller, torch.arange(smaller.shape[1]), -1)
    return numbered.amax(1) if numbered.numel() else numbered.sum(1)


def following(smaller: Tensor) -> Tensor:
    """(N,): for each row, the first column that is true, N where none is."""
    N = smaller.shape[1]
    return N - 1 - nearest(smaller.flip(1)) if N else smaller.sum(1)


def rows_of(V: Tensor, index: Tensor) -> Tensor:
    """Row index[t] of V, and zeros where that is outside."""
    inside = (index >= 0) & (index < len(V))
    return torch.where(inside.unsqueeze(1), V[index.clamp(0, len(V) - 1)], 0.0)


def of(values: Tensor, index: Tensor, outside: float) -> Tensor:
    inside = (index >= 0) & (index < len(values))
    return torch.where(inside, values[index.clamp(0, len(values) - 1)], outside)


class Parts(NamedTuple):
    """What both memories have in common."""

    V: Tensor  # (N, m)
    u: Tensor  # (N,) 0 before the first step
    d: Tensor
    live: Tensor  # (N,) whether something is read
    after: Tensor  # (N, N) t > i


def parts(v: Tensor, u: Tensor, d: Tensor, V0: Tensor, s0: Tensor) -> Parts:
    n, N = len(s0), len(s0) + len(d)
    at = torch.arange(N)
    return Parts(
        torch.cat((V0, v)), torch.cat((0 * s0, u)), torch.cat((s0, d)), at >= n, at.unsqueeze(1) > at
    )


def resolve(direct: Tensor, follows: Tensor, gate: Tensor) -> Tensor:
    """E_c = direct_c + gate_c E_{follows_c}, by doubling: after k rounds it holds 2^k terms of the path."""
    E, follows, gate = direct, follows.clone(), gate
    for _ in range(max(1, len(E)).bit_length()):
        E = E + gate * of(E, follows, 0.0)
        gate = gate * of(gate, follows, 0.0)
        follows = of(follows, follows, len(direct))
    return E


def stack_tops(L: Tensor, H: Tensor, after: Tensor) -> Tensor:
    """(N, N): where item i ends at time t, min(H_i, min of L_τ over i < τ <= t)."""
    pops = torch.where(after, L.unsqueeze(1), torch.inf)
    return torch.minimum(H, torch.cummin(pops, 0).values) if len(L) else pops


def stack(v: Tensor, u: Tensor, d: Tensor, V0: Tensor, s0: Tensor) -> Scan:
    V, u, d, live, after = parts(v, u, d, V0, s0)
    L, H = heights(u, d)
    tops = stack_tops(L, H, after)
    w = (tops - torch.maximum(L, (H - 1).unsqueeze(1))).clamp(min=0)
    w = torch.where(after | torch.eye(len(L), dtype=torch.bool), w, 0.0)
    s = (tops[-1] - L).clamp(min=0) if len(L) else L
    return Scan((w @ V)[live], s)


def stack_gradients(
    v: Tensor, u: Tensor, d: Tensor, V0: Tensor, s0: Tensor, gr: Tensor, gV: Tensor, gs: Tensor
) -> tuple[Tensor, ...]:
    """Of v, u, d, V0, s0, from those of r and of the final V and s."""
    n, T = len(s0), len(d)
    if not T:
        return gV[n:], u, d, gV[:n], gs
    V, u, d, live, after = parts(v, u, d, V0, s0)
    N = n + T
    g = torch.cat((torch.zeros_like(V[:n]), gr))
    L, H = heights(u, d)
    bottom = torch.where(live, H - 1, torch.inf)  # where the window of each read ends
    tops, same = stack_tops(L, H, after), torch.eye(N, dtype=torch.bool)
    w = torch.where(after | same, (tops - torch.maximum(L, bottom.unsqueeze(1))).clamp(min=0), 0.0)
    below = nearest((L.unsqueeze(1) > L) & after)  # what lies right below L_t
    level = nearest((L.unsqueeze(1) >= L) & after)
    tie = of(L, level, -1.0) == L
    open_ = ((L > 0) & ~tie & (u > 0)).double()  # a cell was taken in part
    follows = following((L.unsqueeze(1) >= L) & after.T)  # who pops as far as L_t

    last = nearest((bottom.unsqueeze(1) >= L) & (after | same))  # the cell where a window ends
    through = (rows_of(V, last) * g).sum(1) * torch.where(of(L, last, 0.0) == bottom, 0.5, 1.0)
    through = torch.where(live, through, 0.0)
    own = torch.where(live & (bottom <= L), (V * g).sum(1) - through, 0.0)

    floor = of(L, below, -1.0)  # L of the cell below
    within = (after & (tops > L)) | same  # the cell below L_c ends there at time t
    full = (within & (floor >= bottom.unsqueeze(1))).double()  # and was read whole
    direct = (rows_of(V, below) * (full.T @ g)).sum(1) - full.T @ through
    direct = direct + torch.where(follows == N, of(gs, below, 0.0), 0.0)
    gate = torch.where(of(L, follows, 0.0) > floor, 1.0, of(open_, follows, 0.0))
    E = resolve(direct, follows, gate)

    popped = torch.arange(1, N + 1)
    gate = torch.where(of(L, popped, 0.0) > L, 1.0, of(open_, popped, 0.0))
    gd = own + torch.where(popped == N, gs, gate * of(E, popped, 0.0))
    gu = -open_ * E
    first = torch.where(torch.arange(n) > below[n], -gu[n], 0.0)
    gs0 = torch.where(s0 > 0, gd[:n], first)
    gV = gV + w.T @ g
    return gV[n:], gu[n:], gd[n:], gV[:n], gs0


def queue(v: Tensor, u: Tensor, d: Tensor, V0: Tensor, s0: Tensor) -> Scan:
    V, u, d, live, after = parts(v, u, d, V0, s0)
    A, end, front = places(u, d)
    w = torch.minimum(end, front.unsqueeze(1) + 1) - torch.maximum(A, front.unsqueeze(1))
    w = torch.where(after | torch.eye(len(A), dtype=torch.bool), w.clamp(min=0), 0.0)
    s = (end - torch.maximum(A, front[-1])).clamp(min=0) if len(A) else A
    return Scan((w @ V)[live], s)


def places(u: Tensor, d: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where each item of a queue begins and ends on a line, and where the front is after each pop."""
    end = torch.cumsum(d, 0)
    A = torch.cat((end.new_zeros(1), end))[: len(d)]
    return A, end, A - heights(u, d)[0]


def queue_gradients(
    v: Tensor, u: Tensor, d: Tensor, V0: Tensor, s0: Tensor, gr: Tensor, gV: Tensor, gs: Tensor
) -> tuple[Tensor, ...]:
    n, T = len(s0), len(d)
    if not T:
        return gV[n:], u, d, gV[:n], gs
    V, u, d, live, after = parts(v, u, d, V0, s0)
    N, at = n + T, torch.arange(n + T)
    g = torch.cat((torch.zeros_like(V[:n]), gr))
    A, end, front = places(u, d)
    same = torch.eye(N, dtype=torch.bool)
    F = torch.where(live, front, torch.inf).unsqueeze(1)
    w = (torch.minimum(end, F + 1) - torch.maximum(A, F)).clamp(min=0)
    w = torch.where(after | same, w, 0.0)

    head = following(end > front.unsqueeze(1))  # the first cell after the pop
    open_ = ((head < at) & (front > of(A, head, 0.0)) & (u > 0)).double()
    last = following(end >= F + 1)  # the cell where a window ends
    last = torch.where(last <= at, last, N)
    through = (rows_of(V, last) * g).sum(1) * torch.where(of(end, last, 0.0) == front + 1, 0.5, 1.0)
    through = torch.where(live, through, 0.0)
    along = (V * g).sum(1)
    own = torch.where(end <= front + 1, along - through, 0.0)
    own = torch.where(d > 0, own, torch.where(front + 1 > A, along, along / 2))
    own = torch.where(live, own, 0.0)

    full = (after & (end > F) & (end <= F + 1) & (d > 0)).double()
    direct = (V * (full.T @ g)).sum(1) - full.T @ through
    emptied = following((front >= end.unsqueeze(1)) & after.T & live)
    whole = of(end, head, 0.0) <= front + 1
    onto = torch.where(whole & (head < at) & live, (rows_of(V, head) * g).sum(1) - through, 0.0)
    onto = onto + torch.where(at == N - 1, of(gs, head, 0.0), 0.0)
    gate = torch.where(of(head, at + 1, -1) == head, 1.0, of(open_, at + 1, 0.0))
    E = resolve(onto, at + 1, gate)
    rest = torch.where(emptied == N, gs, of(open_ * E, emptied, 0.0))
    gd = own + torch.where(d > 0, direct + rest, torch.where(at == N - 1, gs, 0.0))
    gu = -open_ * E
    gs0 = torch.where(s0 > 0, gd[:n], torch.where(at[:n] < head[n], -gu[n], 0.0))
    gV = gV + w.T @ g
    return gV[n:], gu[n:], gd[n:], gV[:n], gs0
