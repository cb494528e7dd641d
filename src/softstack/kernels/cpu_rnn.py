"""StackRNN over a whole sequence on the CPU: the controller, the heads and the memory in one call each way.

    P models   B sequences each, in blocks of LANES   T steps   m memory width   K outputs   H hidden
    G rows of the map that sees [x; r]: the heads' (linear), H (RNN), 3 H (GRU), 4 H (LSTM)

What is computed for every sequence lies with the sequences innermost, (P, rows, T, B), so that each line below
is one vector instruction for LANES sequences. The memory is worked one sequence at a time: its control flow
depends on its strengths. Weights come transposed, (P, columns, rows).

The part of the first map that sees x and the gradients of all weights do not depend on the recurrence: they
are matrix products outside. README.md derives the backward pass.
"""

import numpy as np
from numba import njit

from softstack.kernels.cpu_math import sigmoid, tanh
from softstack.kernels.cpu_memory import END, link, settle, step, unstep

LANES = 16
LINEAR, RNN, GRU, LSTM = range(4)
STACK, QUEUE, NONE = range(3)

fast = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


@njit(**fast)
def add_map(total, W, p, z, zp, t, b0):  # type: ignore[no-untyped-def]
    """total (rows, LANES) += W[p].T z[zp, :, t, b0 : b0 + LANES], W (P, columns, rows)."""
    for k in range(W.shape[1]):
        for g in range(W.shape[2]):
            w = W[p, k, g]
            for lane in range(LANES):
                total[g, lane] += w * z[zp, k, t, b0 + lane]


@njit(**fast)
def forward(  # type: ignore[no-untyped-def]
    core, memory, B, lengths, ragged, X, Wr, Wh, bn, Wo, bo, V, s, h, c, r, y, acts, gates, gone, after, first, old
):
    """X (P, G, T, B) is the first map of x alone, with its biases; Wr (P, m, G), Wh (P, H, G), Wo (P, H, A),
    bo (P, A), with A = 2 + m + K, and bn (P, H), the GRU's bias inside its reset gate.

    h and c (P, H, T + 1, B) and r (P, m, T + 1, B) come in with their first step filled, V (P B, N, m) and
    s (P B, N) with the memory before it. Out: all of these, y (P, K, T, B), acts (P, 2 + m, T, B) with u, d
    and v, gates (P, G', T, B), and the memory's log. B counts the padding to whole blocks; `B` sequences are
    real. Where `ragged`, steps at or after lengths (P B,) change nothing.
    """
    P, G, T, padded = X.shape
    m = Wr.shape[1]
    H = Wh.shape[1]
    K = y.shape[1]
    A = 2 + m + K
    n = V.shape[1] - T
    lifo = memory == STACK
    pre = np.empty((G, LANES), X.dtype)
    rec = np.empty((max(H, 1), LANES), X.dtype)
    out = np.empty((A, LANES), X.dtype)
    row = np.empty(m, X.dtype)
    heads = np.empty(padded, np.int64)
    tails = np.empty(padded, np.int64)
    one = X.dtype.type(1)
    for p in range(P):
        if memory != NONE:
            for b in range(B):
                heads[b], tails[b] = link(s, after, p * padded + b, n, lifo)
        for t in range(T):
            for b0 in range(0, padded, LANES):
                for g in range(G):
                    for lane in range(LANES):
                        pre[g, lane] = X[p, g, t, b0 + lane]
                add_map(pre, Wr, p, r, p, t, b0)
                if core == LINEAR:
                    for a in range(A):
                        for lane in range(LANES):
                            out[a, lane] = pre[a, lane]
                else:
                    if core == GRU:
                        for j in range(H):
                            for lane in range(LANES):
                                rec[j, lane] = bn[p, j]
                        for k in range(H):
                            for g in range(2 * H):
                                w = Wh[p, k, g]
                                for lane in range(LANES):
                                    pre[g, lane] += w * h[p, k, t, b0 + lane]
                            for j in range(H):
                                w = Wh[p, k, 2 * H + j]
                                for lane in range(LANES):
                                    rec[j, lane] += w * h[p, k, t, b0 + lane]
                        for j in range(H):
                            for lane in range(LANES):
                                reset = sigmoid(pre[j, lane])
                                update = sigmoid(pre[H + j, lane])
                                new = tanh(pre[2 * H + j, lane] + reset * rec[j, lane])
                                gates[p, j, t, b0 + lane] = reset
                                gates[p, H + j, t, b0 + lane] = update
                                gates[p, 2 * H + j, t, b0 + lane] = new
                                gates[p, 3 * H + j, t, b0 + lane] = rec[j, lane]
                                was = h[p, j, t, b0 + lane]
                                h[p, j, t + 1, b0 + lane] = new + update * (was - new)
                    else:
                        add_map(pre, Wh, p, h, p, t, b0)
                        if core == RNN:
                            for j in range(H):
                                for lane in range(LANES):
                                    h[p, j, t + 1, b0 + lane] = tanh(pre[j, lane])
                        else:
                            for j in range(H):
                                for lane in range(LANES):
                                    into = sigmoid(pre[j, lane])
                                    forget = sigmoid(pre[H + j, lane])
                                    new = tanh(pre[2 * H + j, lane])
                                    give = sigmoid(pre[3 * H + j, lane])
                                    cell = forget * c[p, j, t, b0 + lane] + into * new
                                    gates[p, j, t, b0 + lane] = into
                                    gates[p, H + j, t, b0 + lane] = forget
                                    gates[p, 2 * H + j, t, b0 + lane] = new
                                    gates[p, 3 * H + j, t, b0 + lane] = give
                                    c[p, j, t + 1, b0 + lane] = cell
                                    h[p, j, t + 1, b0 + lane] = give * tanh(cell)
                    for a in range(A):
                        for lane in range(LANES):
                            out[a, lane] = bo[p, a]
                    add_map(out, Wo, p, h, p, t + 1, b0)
                for a in range(2 + m):
                    for lane in range(LANES):
                        acts[p, a, t, b0 + lane] = sigmoid(out[a, lane])
                for a in range(K):
                    for lane in range(LANES):
                        y[p, a, t, b0 + lane] = out[2 + m + a, lane]
                if ragged:
                    for lane in range(LANES):
                        if t >= lengths[p * padded + b0 + lane]:
                            for a in range(2 + m):
                                acts[p, a, t, b0 + lane] = 0
                            for a in range(K):
                                y[p, a, t, b0 + lane] = 0
                            for j in range(H):
                                h[p, j, t + 1, b0 + lane] = h[p, j, t, b0 + lane]
                                if core == LSTM:
                                    c[p, j, t + 1, b0 + lane] = c[p, j, t, b0 + lane]
                for lane in range(min(LANES, B - b0)):
                    b = b0 + lane
                    q = p * padded + b
                    if ragged and t >= lengths[q]:
                        for k in range(m):
                            r[p, k, t + 1, b] = r[p, k, t, b]
                            V[q, n + t, k] = 0
                        if memory != NONE:
                            s[q, n + t] = 0
                            after[q, n + t] = END
                            first[q, t] = heads[b]
                            old[q, t] = -one
                        continue
                    for k in range(m):
                        V[q, n + t, k] = acts[p, 2 + k, t, b]
                    if memory == NONE:
                        for k in range(m):
                            r[p, k, t + 1, b] = 0
                    else:
                        first[q, t] = heads[b]
                        heads[b], tails[b], old[q, t] = step(
                            V, s, after, gone, q, heads[b], tails[b], n + t,
                            acts[p, 0, t, b], acts[p, 1, t, b], lifo, row,
                        )  # fmt: skip
                        for k in range(m):
                            r[p, k, t + 1, b] = row[k]
        if memory != NONE:
            for b in range(B):
                first[p * padded + b, T] = heads[b]


@njit(**fast)
def add_transposed(total, W, p, z, rows):  # type: ignore[no-untyped-def]
    """total (columns, LANES) += W[p] z, z (rows, LANES), W (P, columns, rows)."""
    for k in range(W.shape[1]):
        for g in range(rows):
            w = W[p, k, g]
            for lane in range(LANES):
                total[k, lane] += w * z[g, lane]


@njit(**fast)
def backward(  # type: ignore[no-untyped-def]
    core, memory, B, lengths, ragged, Wr, Wh, Wo, V, s, h, c, acts, gates, gone, after, first, old,
    gy, gh, gc, gr, gs, gV, gpre, gout, grec,
):  # fmt: skip
    """From gy (P, K, T, B) and the gradients of the final state, gh, gc (P, H, B), gr (P, m, B), gs (P B, N) and
    gV (P B, N, m), those of X: gpre (P, G, T, B); of the heads' map: gout (P, A, T, B), unless linear, where
    gpre is it; of what the GRU's reset gate multiplies: grec (P, H, T, B); and of the first state, in place.
    """
    P, m = Wr.shape[0], Wr.shape[1]
    G, T, padded = gpre.shape[1], gpre.shape[2], gpre.shape[3]
    H = Wh.shape[1]
    K = gy.shape[1]
    A = 2 + m + K
    n = V.shape[1] - T
    lifo = memory == STACK
    out = np.empty((A, LANES), gy.dtype)
    pre = np.empty((G, LANES), gy.dtype)
    feature = np.empty((max(H, 1), LANES), gy.dtype)
    carried = np.empty((max(H, 1), LANES), gy.dtype)
    reading = np.empty((m, LANES), gy.dtype)
    row = np.empty(m, gy.dtype)
    room = np.empty(V.shape[1], gy.dtype)
    one = gy.dtype.type(1)
    for p in range(P):
        if memory != NONE and T > 0:
            for b in range(B):
                q = p * padded + b
                settle(s, gs, q, ragged and lengths[q] < T)
        for t in range(T - 1, -1, -1):
            for b0 in range(0, padded, LANES):
                for a in range(2 + m):
                    for lane in range(LANES):
                        out[a, lane] = 0
                for a in range(K):
                    for lane in range(LANES):
                        out[2 + m + a, lane] = gy[p, a, t, b0 + lane]
                for lane in range(min(LANES, B - b0)):
                    b = b0 + lane
                    q = p * padded + b
                    if ragged and t >= lengths[q]:
                        for a in range(K):
                            out[2 + m + a, lane] = 0
                        continue
                    if memory != NONE:
                        for k in range(m):
                            row[k] = gr[p, k, b]
                        out[0, lane], out[1, lane] = unstep(
                            V, s, after, gone, q, first[q, t + 1], first[q, t], old[q, t], n + t, n, lifo,
                            row, gs, gV, room,
                        )  # fmt: skip
                    for k in range(m):
                        out[2 + k, lane] = gV[q, n + t, k]
                for a in range(2 + m):
                    for lane in range(LANES):
                        x = acts[p, a, t, b0 + lane]
                        out[a, lane] *= x * (one - x)
                for k in range(m):
                    for lane in range(LANES):
                        reading[k, lane] = 0
                if core == LINEAR:
                    for a in range(A):
                        for lane in range(LANES):
                            pre[a, lane] = out[a, lane]
                else:
                    for a in range(A):
                        for lane in range(LANES):
                            gout[p, a, t, b0 + lane] = out[a, lane]
                    for j in range(H):
                        for lane in range(LANES):
                            feature[j, lane] = gh[p, j, b0 + lane]
                    add_transposed(feature, Wo, p, out, A)
                    if core == RNN:
                        for j in range(H):
                            for lane in range(LANES):
                                x = h[p, j, t + 1, b0 + lane]
                                pre[j, lane] = feature[j, lane] * (one - x * x)
                                feature[j, lane] = 0
                    elif core == GRU:
                        for j in range(H):
                            for lane in range(LANES):
                                reset = gates[p, j, t, b0 + lane]
                                update = gates[p, H + j, t, b0 + lane]
                                new = gates[p, 2 * H + j, t, b0 + lane]
                                rec = gates[p, 3 * H + j, t, b0 + lane]
                                was = h[p, j, t, b0 + lane]
                                g = feature[j, lane]
                                gnew = g * (one - update) * (one - new * new)
                                pre[j, lane] = gnew * rec * reset * (one - reset)
                                pre[H + j, lane] = g * (was - new) * update * (one - update)
                                pre[2 * H + j, lane] = gnew
                                grec[p, j, t, b0 + lane] = gnew * reset
                                feature[j, lane] = g * update
                    else:
                        for j in range(H):
                            for lane in range(LANES):
                                into = gates[p, j, t, b0 + lane]
                                forget = gates[p, H + j, t, b0 + lane]
                                new = gates[p, 2 * H + j, t, b0 + lane]
                                give = gates[p, 3 * H + j, t, b0 + lane]
                                squashed = tanh(c[p, j, t + 1, b0 + lane])
                                g = feature[j, lane]
                                gcell = gc[p, j, b0 + lane] + g * give * (one - squashed * squashed)
                                pre[j, lane] = gcell * new * into * (one - into)
                                pre[H + j, lane] = gcell * c[p, j, t, b0 + lane] * forget * (one - forget)
                                pre[2 * H + j, lane] = gcell * into * (one - new * new)
                                pre[3 * H + j, lane] = g * squashed * give * (one - give)
                                carried[j, lane] = gcell * forget
                                feature[j, lane] = 0
                if ragged:
                    for lane in range(LANES):
                        if t >= lengths[p * padded + b0 + lane]:
                            for g in range(G):
                                pre[g, lane] = 0
                            for j in range(H):
                                feature[j, lane] = 0
                                if core == GRU:
                                    grec[p, j, t, b0 + lane] = 0
                for g in range(G):
                    for lane in range(LANES):
                        gpre[p, g, t, b0 + lane] = pre[g, lane]
                add_transposed(reading, Wr, p, pre, G)
                if core == GRU:
                    for k in range(H):
                        for g in range(2 * H):
                            w = Wh[p, k, g]
                            for lane in range(LANES):
                                feature[k, lane] += w * pre[g, lane]
                        for j in range(H):
                            w = Wh[p, k, 2 * H + j]
                            for lane in range(LANES):
                                feature[k, lane] += w * grec[p, j, t, b0 + lane]
                elif core != LINEAR:
                    add_transposed(feature, Wh, p, pre, G)
                for lane in range(LANES):
                    if ragged and t >= lengths[p * padded + b0 + lane]:
                        continue  # the state was held: its gradient passes as it is
                    for j in range(H):
                        gh[p, j, b0 + lane] = feature[j, lane]
                        if core == LSTM:
                            gc[p, j, b0 + lane] = carried[j, lane]
                    for k in range(m):
                        gr[p, k, b0 + lane] = reading[k, lane]
