"""stack_scan and queue_scan on the CPU: every sequence, every step, forward and backward."""

import numpy as np
from numba import njit

from softstack.kernels.cpu_memory import END, link, pop, push, read, settle, unlink, unpop, unpush, unread


@njit(cache=True, nogil=True, error_model="numpy")
def forward(V, u, d, lengths, lifo, r, s, gone, after, first, old):
    """V (B, N, m), u and d (B, T), lengths (B,); s (B, N) comes in with the strengths before the first step.

    Out: r (B, T, m), s after the last step, and the log: gone and after (B, N), old (B, T), and
    first (B, T + 1), the head before each step and at the end.
    """
    B, N, m = V.shape
    T = u.shape[1]
    n = N - T
    row = np.empty(m, V.dtype)
    for b in range(B):
        head, tail = link(s, after, b, n, lifo)
        for t in range(T):
            first[b, t] = head
            if t < lengths[b]:
                head, old[b, t] = pop(s, after, gone, b, head, u[b, t])
                head, tail = push(s, after, b, head, tail, n + t, d[b, t], lifo)
                read(V, s, after, b, head, row)
                for k in range(m):
                    r[b, t, k] = row[k]
            else:
                s[b, n + t] = 0
                after[b, n + t] = END
                old[b, t] = -1
                for k in range(m):
                    r[b, t, k] = 0
        first[b, T] = head


@njit(cache=True, nogil=True, error_model="numpy")
def backward(V, lengths, lifo, s, gone, after, first, old, gr, gs, gV, gu, gd):
    """In: the log, s after the last step, gr (B, T, m), gs (B, N) of the final strengths, gV (B, N, m).

    Out: gu and gd (B, T); gs becomes the gradient of the first strengths, s those strengths; gV is added to.
    """
    B, N = V.shape[:2]
    T = gu.shape[1]
    n = N - T
    q = np.empty(N, V.dtype)
    for b in range(B):
        end = min(T, lengths[b])
        if T > 0:
            settle(s, gs, b, N - 1 if end == T else END)
        for t in range(end, T):
            gu[b, t] = 0
            gd[b, t] = 0
        for t in range(end - 1, -1, -1):
            head, slot = first[b, t + 1], n + t
            unread(V, s, after, b, head, slot, lifo, gr[b, t], gs, gV, q)
            gd[b, t], head = unpush(s, after, gs, b, head, slot, lifo)
            gu[b, t] = unpop(s, after, gone, gs, b, head, first[b, t], old[b, t], slot, lifo)
            if t == 0 and old[b, t] >= 0:
                unlink(s, gs, b, n, gu[b, t], head, lifo)
