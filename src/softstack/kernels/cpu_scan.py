"""stack_scan and queue_scan on the CPU: every sequence, every step, forward and backward."""

import numpy as np
from numba import njit

from softstack.kernels.cpu_memory import END, link, settle, step, unstep


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
                head, tail, old[b, t] = step(
                    V, s, after, gone, b, head, tail, n + t, u[b, t], d[b, t], lifo, row
                )
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
            settle(s, gs, b, end < T)
        for t in range(end, T):
            gu[b, t] = 0
            gd[b, t] = 0
        for t in range(end - 1, -1, -1):
            head = first[b, t + 1]
            gu[b, t], gd[b, t] = unstep(
                V, s, after, gone, b, head, first[b, t], old[b, t], n + t, n, lifo, gr[b, t], gs, gV, q
            )
