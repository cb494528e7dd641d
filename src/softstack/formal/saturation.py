"""How far gates must be saturated for a compiled network to be right: docs/compile.md derives all of this.

    ε  how far a gate or a strength is from 0 or 1      a  its pre-activation, so that ε < exp(-a)
    T  steps of the network                             u  unit roundoff of the floating-point format

The controller's errors do not accumulate: every step saturates them anew. Strengths do add up, so

- in real arithmetic what is on the stack after T steps is off by at most 4 T ε;
- where T ε <= u / 2 it is not off at all: σ(a) is 1, 1 - ε is 1, and what was pushed by a step that should
  push nothing never adds up to anything that a sum with 1 could hold.
"""

from math import exp, log

import torch

SLACK = 1 / 8
"""What the conditions of a gate may be off by, together, out of the 1/2 that parts true from false."""


def roundoff(dtype: torch.dtype) -> float:
    """u: 1 + x rounds to 1 for 0 <= x <= u."""
    return torch.finfo(dtype).eps / 2


def exact(steps: int, dtype: torch.dtype = torch.float64) -> float:
    """a from which on nothing is ever off, within so many steps, with a factor of 2 to spare."""
    return log(4 * max(steps, 1) / roundoff(dtype))


def within(steps: int, tolerance: float) -> float:
    """a from which on strengths stay within a tolerance, in real arithmetic."""
    return log(4 * max(steps, 1) / tolerance)


def error(a: float, steps: int, dtype: torch.dtype | None = None) -> float:
    """How far a strength on the stack can be from 0 or 1 after so many steps; dtype None: without rounding.

    A step rounds four times: a strength when it is made, the sum of those above, the rest, and what is left.
    """
    epsilon = exp(-a)
    if dtype is None:
        return 4 * steps * epsilon
    u = roundoff(dtype)
    return steps * epsilon if steps * epsilon <= u / 2 else 4 * steps * (epsilon + 4 * u)


def conditions_error(a: float, steps: int, units: int, width: int, dtype: torch.dtype | None = None) -> float:
    """How far the sum of a gate's conditions can be off: by the units that say the state, by the input and by
    the `width` components of what was read."""
    epsilon, u = exp(-a), 0.0 if dtype is None else roundoff(dtype)
    off = error(a, steps, dtype)
    return 3 * units * (epsilon + u) + off + width * (off + epsilon + u)


def gain(a: float, off: float) -> float:
    """What conditions that add up to 1/2 or -1/2, and are off by so much, are multiplied by to give a."""
    return a / (0.5 - off)
