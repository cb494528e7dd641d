"""What the cross-entropy of each position counts for. A new loss is a function here and a line in LOSSES.

A loss takes the mask (P, B, T) of what is scored and gives weights of that shape, 0 where nothing is scored.
The loss of a network is the weighted sum over its batch.
"""

from collections.abc import Callable

from torch import Tensor


def total(mask: Tensor) -> Tensor:
    """Every scored position counts for 1."""
    return mask.float()


def step_mean(mask: Tensor) -> Tensor:
    """At each step, the mean over the strings that are scored there."""
    return mask.float() / mask.float().sum(1, keepdim=True).clamp(min=1)


LOSSES: dict[str, Callable[[Tensor], Tensor]] = {"step_mean": step_mean, "sum": total}
