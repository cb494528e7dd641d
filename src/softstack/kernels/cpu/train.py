"""What a training step is made of beside the network itself, on the CPU and for all trials at once: the loss
with its gradient, and Adam. Compiled twins of `softstack.lab.training.population` and `.adam`.

Nothing here is allocated: every array is given, and is used again in the next step.
"""

import math

from softstack.kernels.cpu.compiling import compiled
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
def adam(vectors, gradient, first, second, steps, learning_rate, weight_decay):
    """As `softstack.lab.training.adam.Adam`, number by number."""
    real = vectors.dtype.type
    keep, new, keep2, new2 = real(0.9), real(1 - 0.9), real(0.999), real(1 - 0.999)
    unbias, unbias2 = real(1 - 0.9**steps), real(1 - 0.999**steps)
    rate, decay, tiny = real(learning_rate), real(weight_decay), real(1e-8)
    for p in range(vectors.shape[0]):
        for j in range(vectors.shape[1]):
            g = gradient[p, j] + vectors[p, j] * decay
            first[p, j] = first[p, j] * keep + g * new
            second[p, j] = second[p, j] * keep2 + (g * g) * new2
            vectors[p, j] -= (first[p, j] / unbias) / (math.sqrt(second[p, j] / unbias2) + tiny) * rate
