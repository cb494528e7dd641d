"""What a training step is made of beside the network itself, on the CPU and for all models at once: encoding
a batch, the loss and its gradient, and Adam.

Nothing here is allocated: every array is given, and is used again in the next step.
"""

import math

from softstack.kernels.cpu.compiling import compiled
from softstack.kernels.cpu.math import exp


@compiled
def encode(x, symbols, columns):
    """x (P, B, T, K): the strings `columns` (P, B) of symbols (P, n, T), one-hot."""
    P, B, T, K = x.shape
    for p in range(P):
        for b in range(B):
            for t in range(T):
                for k in range(K):
                    x[p, b, t, k] = 0
                x[p, b, t, symbols[p, columns[p, b], t]] = 1


@compiled
def cross_entropy(y, targets, mask, columns, per_step, losses, gy):
    """The losses (P,) of outputs y (P, B, T, K), and their gradient gy. `per_step`: the mean over the strings
    that are scored at a step, summed over steps; else the sum over everything that is scored."""
    P, B, T, K = gy.shape
    real = y.dtype.type
    for p in range(P):
        total = 0.0
        for t in range(T):
            count = 0
            for b in range(B):
                count += mask[p, columns[p, b], t]
            weight = real(1) / real(max(count, 1)) if per_step else real(1)
            for b in range(B):
                if not mask[p, columns[p, b], t]:
                    for k in range(K):
                        gy[p, b, t, k] = 0
                    continue
                most = y[p, b, t, 0]
                for k in range(1, K):
                    most = max(most, y[p, b, t, k])
                mass = real(0)
                for k in range(K):
                    gy[p, b, t, k] = exp(y[p, b, t, k] - most)
                    mass += gy[p, b, t, k]
                target = targets[p, columns[p, b], t]
                total += weight * (math.log(mass) + most - y[p, b, t, target])
                for k in range(K):
                    gy[p, b, t, k] *= weight / mass
                gy[p, b, t, target] -= weight
        losses[p] = total


@compiled
def unpack(rows, W, b, Wh, bn, Wo, bo, gated):
    """The parameters of each model, a row of `rows` in the order of its module's, into the arrays of the
    fused recurrence. `gated`: the GRU's inner bias of n goes to bn."""
    P, G, C = W.shape
    H = Wh.shape[2]
    for p in range(P):
        W[p].reshape(G * C)[:] = rows[p, : G * C]
        at = G * C
        b[p] = rows[p, at : at + G]
        at += G
        if H > 0:
            Wh[p].reshape(G * H)[:] = rows[p, at : at + G * H]
            at += G * H
            inner = rows[p, at : at + G]
            outer = 2 * H if gated else G
            for j in range(outer):
                b[p, j] += inner[j]
            for j in range(outer, G):
                bn[p, j - outer] = inner[j]
            at += G
            A = Wo.shape[1]
            Wo[p].reshape(A * H)[:] = rows[p, at : at + A * H]
            bo[p] = rows[p, at + A * H :]


@compiled
def pack(gradient, gW, gb, gWh, gbn, gWo, gbo, gated):
    """The other way, for gradients."""
    P, G, C = gW.shape
    H = gWh.shape[2]
    for p in range(P):
        gradient[p, : G * C] = gW[p].reshape(G * C)
        at = G * C
        gradient[p, at : at + G] = gb[p]
        at += G
        if H > 0:
            gradient[p, at : at + G * H] = gWh[p].reshape(G * H)
            at += G * H
            outer = 2 * H if gated else G
            gradient[p, at : at + outer] = gb[p, :outer]
            gradient[p, at + outer : at + G] = gbn[p, : G - outer]
            at += G
            A = gWo.shape[1]
            gradient[p, at : at + A * H] = gWo[p].reshape(A * H)
            gradient[p, at + A * H :] = gbo[p]


@compiled
def adam(rows, gradient, first, second, steps, learning_rate, weight_decay):
    """As `softstack.lab.training.train.Adam`, number by number."""
    real = rows.dtype.type
    keep, new, keep2, new2 = real(0.9), real(1 - 0.9), real(0.999), real(1 - 0.999)
    unbias, unbias2 = real(1 - 0.9**steps), real(1 - 0.999**steps)
    rate, decay, tiny = real(learning_rate), real(weight_decay), real(1e-8)
    for p in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            g = gradient[p, j] + rows[p, j] * decay
            first[p, j] = first[p, j] * keep + g * new
            second[p, j] = second[p, j] * keep2 + (g * g) * new2
            rows[p, j] -= (first[p, j] / unbias) / (math.sqrt(second[p, j] / unbias2) + tiny) * rate
