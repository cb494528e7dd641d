"""What a training step is made of beside the network itself, on the CPU and for all trials at once: the loss
with its gradient, Adam, and noise. Compiled twins of `softstack.lab.training.population`, `adam` and `noise`.

Nothing here is allocated: every array is given, and is used again in the next step.
"""

import math

from softstack.kernels.cpu.compiling import compiled, internal
from softstack.kernels.cpu.math import exp


@compiled
def cross_entropy(y, targets, mask, strings, per_step, losses, gy):
    """The losses (P,) of outputs y (P, B, T, K), and their gradient gy. Of all targets and masks (P, n, T)
    the batch has those of `strings` (P, B). `per_step`: the mean over the strings that are scored at a step,
    summed over steps; else the sum over everything that is scored."""
    P, B, T, K = gy.shape
    real = y.dtype.type
    for p in range(P):
        total = 0.0
        for t in range(T):
            count = 0
            for b in range(B):
                count += mask[p, strings[p, b], t]
            weight = real(1) / real(max(count, 1)) if per_step else real(1)
            for b in range(B):
                if not mask[p, strings[p, b], t]:
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
                target = targets[p, strings[p, b], t]
                total += weight * (math.log(mass) + most - y[p, b, t, target])
                for k in range(K):
                    gy[p, b, t, k] *= weight / mass
                gy[p, b, t, target] -= weight
        losses[p] = total


@compiled
def adam(vectors, gradient, first, second, steps, learning_rate, weight_decay, clip):
    """As `softstack.lab.training.adam.Adam`, number by number."""
    real = vectors.dtype.type
    keep, new, keep2, new2 = real(0.9), real(1 - 0.9), real(0.999), real(1 - 0.999)
    unbias, unbias2 = real(1 - 0.9**steps), real(1 - 0.999**steps)
    rate, decay, tiny = real(learning_rate), real(weight_decay), real(1e-8)
    for p in range(vectors.shape[0]):
        if clip > 0:
            total = 0.0
            for j in range(vectors.shape[1]):
                total += float(gradient[p, j]) * float(gradient[p, j])
            factor = real(min(1.0, clip / (math.sqrt(total) + 1e-6)))
            for j in range(vectors.shape[1]):
                gradient[p, j] *= factor
        for j in range(vectors.shape[1]):
            g = gradient[p, j] + vectors[p, j] * decay
            first[p, j] = first[p, j] * keep + g * new
            second[p, j] = second[p, j] * keep2 + (g * g) * new2
            vectors[p, j] -= (first[p, j] / unbias) / (math.sqrt(second[p, j] / unbias2) + tiny) * rate


@internal
def mixed(x):
    """As `softstack.lab.training.noise.mixed`."""
    x = (x ^ (x >> 16)) * 0x85EBCA6B & 0xFFFFFFFF
    x = (x ^ (x >> 13)) * 0xC2B2AE35 & 0xFFFFFFFF
    return x ^ (x >> 16)


@compiled
def disturb(keys, step, below, scale, quantiles, keep, noise):
    """keep (P, B, T) and noise (P, B, T, H) of a step, as `softstack.lab.training.noise.disturbance` has
    them: a word under `below` (P,) means a reset."""
    P, B, T, H = noise.shape
    real, mask = noise.dtype.type, quantiles.shape[0] - 1
    for p in range(P):
        base = mixed(mixed(keys[p] ^ 0x5BD1E995) + step & 0xFFFFFFFF)
        place = 0
        for t in range(T):
            for b in range(B):
                keep[p, b, t] = real(mixed(base + place * 0x9E3779B9 & 0xFFFFFFFF) >= below[p])
                place += 1
        base = mixed(mixed(keys[p]) + step & 0xFFFFFFFF)
        place, word = 0, 0
        for t in range(T):
            for b in range(B):
                for i in range(H):
                    if place % 2 == 0:
                        word = mixed(base + place // 2 * 0x9E3779B9 & 0xFFFFFFFF)
                        noise[p, b, t, i] = quantiles[word & mask] * scale
                    else:
                        noise[p, b, t, i] = quantiles[(word >> 16) & mask] * scale
                    place += 1
