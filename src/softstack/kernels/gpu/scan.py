"""stack_scan and queue_scan on the GPU: one program a sequence, every step, forward and backward.

The chain is walked by scalars, and everything that a step touches was touched a moment ago, so that a step
costs a few trips to the first cache. Arguments are those of `cpu/scan.py`.
"""

import torch
import triton
import triton.language as tl

from softstack.kernels.gpu.memory import finish, pop, push, read, row, start, undo, unlink


@triton.jit
def forward_kernel(
    V, u, d, s0, lengths, r, s, link, level, first, top, N, T, m, LIFO: tl.constexpr, M: tl.constexpr
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    n = N - T
    k = tl.arange(0, M)
    V, r, link, level, s = V + b * N * m, r + b * T * m, link + b * N, level + b * N, s + b * N
    u, d, first, top = u + b * T, d + b * T, first + b * (T + 1), top + b * (T + 1)
    head, strength = start(s0 + b * n, link, level, n, LIFO)
    tl.store(first, head)
    tl.store(top, strength)
    for t in range(tl.minimum(T, tl.load(lengths + b)).to(tl.int32)):
        head, strength = pop(link, level, head, strength, tl.load(u + t))
        head, strength = push(link, level, head, strength, n + t, tl.load(d + t), LIFO)
        tl.store(first + t + 1, head)
        tl.store(top + t + 1, strength)
        tl.store(row(r, t, m, k), read(V, link, level, head, strength, m, k), mask=k < m)
    finish(s, link, level, head, strength)


@triton.jit
def backward_kernel(
    V, u, d, s0, lengths, link, level, first, top, gr, gs, gV, gu, gd, N, T, m,
    LIFO: tl.constexpr, M: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    n = N - T
    k = tl.arange(0, M)
    V, gV, gr, link, level, gs = (
        V + b * N * m, gV + b * N * m, gr + b * T * m, link + b * N, level + b * N, gs + b * N,
    )  # fmt: skip
    u, d, gu, gd = u + b * T, d + b * T, gu + b * T, gd + b * T
    first, top = first + b * (T + 1), top + b * (T + 1)
    end = tl.minimum(T, tl.load(lengths + b)).to(tl.int32)
    for back in range(end):
        t = end - 1 - back
        g = tl.load(row(gr, t, m, k), mask=k < m, other=0)
        to_u, to_d, popped = undo(
            V, link, level, first, top, n, t, tl.load(u + t), tl.load(d + t), g, gs, gV, m, k, LIFO
        )
        tl.store(gu + t, to_u)
        tl.store(gd + t, to_d)
        if t == 0:
            unlink(s0 + b * n, gs, n, to_u, popped, LIFO)


def width(m):
    """The columns of a row, and the warps that share them."""
    M = triton.next_power_of_2(m)
    return {"M": M, "num_warps": min(8, max(1, M // 128))}


def settle(s, gs, lengths, T):
    """An empty cell of s (..., N) has slope 0, unless its sequence's last step pushed it. Where a sequence
    had no step, nothing is dropped."""
    n, N = s.shape[-1] - T, s.shape[-1]
    last = (n - 1 + lengths.clamp(max=T)).unsqueeze(-1)
    dead = ~(s > 0) & (torch.arange(N, device=s.device) != last)
    gs.masked_fill_(dead & (lengths > 0).unsqueeze(-1), 0)


def forward(V, u, d, s0, lengths, lifo, r, s, link, level, first, top):
    (B, N, m), T = V.shape, u.shape[1]
    for x, nothing in ((r, 0), (s, 0), (link, -1), (level, 0), (first, -1), (top, 0)):
        x.fill_(nothing)  # what steps at or after `lengths` leave
    if B:
        with torch.cuda.device_of(V):
            forward_kernel[(B,)](
                V, u, d, s0, lengths, r, s, link, level, first, top, N, T, m, LIFO=lifo, **width(m)
            )  # fmt: skip


def backward(V, u, d, s0, lengths, lifo, s, link, level, first, top, gr, gs, gV, gu, gd):
    (B, N, m), T = V.shape, u.shape[1]
    settle(s, gs, lengths, T)
    gu.zero_()
    gd.zero_()
    if B:
        with torch.cuda.device_of(V):
            backward_kernel[(B,)](
                V, u, d, s0, lengths, link, level, first, top, gr, gs, gV, gu, gd, N, T, m, LIFO=lifo,
                **width(m),
            )  # fmt: skip
