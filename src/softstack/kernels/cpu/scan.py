"""stack_scan and queue_scan on the CPU: every sequence, every step, forward and backward."""

import numpy as np

from softstack.kernels.cpu.compiling import compiled
from softstack.kernels.cpu.memory import (
    END,
    finish,
    pop,
    push,
    read,
    settle,
    start,
    unlink,
    unpop,
    unread,
)


@compiled
def forward(V, u, d, s0, lengths, lifo, r, s, link, level, first, top):
    """V (B, N, m), u and d (B, T), s0 (B, N - T), lengths (B,).

    Out: r (B, T, m), s (B, N) after the last step, and the log: link and level (B, N), and first and
    top (B, T + 1), the head before each step and at the end, and its strength.
    """
    B, N, m = V.shape
    T = u.shape[1]
    n = N - T
    row = np.empty(m, V.dtype)
    for b in range(B):
        head, strength = start(s0, link, level, b, lifo)
        first[b, 0], top[b, 0] = head, strength
        end = min(T, lengths[b])
        for t in range(end):
            head, strength = pop(link, level, b, head, strength, u[b, t])
            head, strength = push(link, level, b, head, strength, n + t, d[b, t], lifo)
            first[b, t + 1], top[b, t + 1] = head, strength
            read(V, link, level, b, head, strength, row)
            for k in range(m):
                r[b, t, k] = row[k]
        r[b, end:] = 0
        link[b, n + end :], level[b, n + end :], first[b, end + 1 :], top[b, end + 1 :] = END, 0, END, 0
        finish(s, link, level, b, head, strength)


@compiled
def backward(V, u, d, s0, lengths, lifo, s, link, level, first, top, gr, gs, gV, gu, gd):
    """In: the log, s after the last step, gr (B, T, m), gs (B, N) of the final strengths, gV (B, N, m).

    Out: gu and gd (B, T); gs becomes the gradient of the first strengths; gV is added to.
    """
    B, N = V.shape[:2]
    T = u.shape[1]
    n = N - T
    for b in range(B):
        end = min(T, lengths[b])
        if end > 0:
            settle(s, gs, b, n + end - 1)
        gu[b, end:] = 0
        gd[b, end:] = 0
        for t in range(end - 1, -1, -1):
            slot, head = n + t, first[b, t + 1]
            behind = not lifo and not d[b, t] > 0
            unread(V, link, level, b, head, top[b, t + 1], slot, slot, behind, gr[b, t], gs, gV)
            gd[b, t] = gs[b, slot]
            gs[b, slot] = 0
            popped = link[b, slot] if lifo else END if head == slot else head
            before, strength = first[b, t], top[b, t]
            gu[b, t] = unpop(link, level, b, popped, before, strength, slot - 1, u[b, t], lifo, gs)
        if end > 0:
            unlink(s0, gs, b, gu[b, 0], popped, lifo)
