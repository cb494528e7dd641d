"""What an epoch leaves behind, and when training is over (§5)."""

from collections.abc import Sequence
from typing import NamedTuple

from softstack.lab.training.conditions import Condition


class Epoch(NamedTuple):
    loss: float  # mean over the epoch's batches
    dev: float  # accuracy in [0, 1] on the dev set after the epoch


def over(history: Sequence[Epoch], condition: Condition) -> bool:
    """§5: whether as many epochs as patience allows have failed to exceed the best dev accuracy so far; or,
    where the steps are given, whether they are done."""
    if condition.steps:
        return len(history) >= condition.most_epochs
    accuracies = [epoch.dev for epoch in history]
    best = accuracies.index(max(accuracies))  # the first epoch to reach the best
    return len(history) - 1 - best >= condition.patience or len(history) >= condition.max_epochs
