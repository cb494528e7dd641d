"""How papers score networks. A metric is a function of what a network said of some strings, and a line in
METRICS; a task names those of its paper in `metrics`.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Answers(NamedTuple):
    """What a network said of n strings: tensors (n,) of float64, one number for each string."""

    right: Tensor  # scored symbols that are right
    scored: Tensor  # scored symbols
    before_error: Tensor  # scored symbols before the first wrong one
    surprise: Tensor  # the nats that the network needs for all scored symbols
    bound: Tensor  # the nats that the source of the strings needs for them; 0 where the task does not say
    length: Tensor  # symbols that the network was given


class Metric(NamedTuple):
    words: str  # what it is, in a report
    is_share: bool  # a number in [0, 1], which is shown in percent
    of: Callable[[Answers], Tensor]

    def text(self, value: float) -> str:
        return f"{self.words} {value:.2%}" if self.is_share else f"{self.words} {value:.4f}"


def symbols(answers: Answers) -> Tensor:
    return answers.right.sum() / answers.scored.sum()


def strings(answers: Answers) -> Tensor:
    return (answers.right == answers.scored).double().mean()


def before_error(answers: Answers) -> Tensor:
    return (answers.before_error / answers.scored).mean()


def lengths(answers: Answers) -> Tensor:
    shares = answers.right / answers.scored
    means = [shares[answers.length == length].mean() for length in answers.length.unique()]
    return torch.stack(means).mean()


def nats(answers: Answers) -> Tensor:
    return (answers.surprise - answers.bound).sum() / answers.scored.sum()


METRICS: dict[str, Metric] = {
    "symbols": Metric("scored symbols right", True, symbols),
    # Grefenstette et al. 2015 call it coarse accuracy.
    "strings": Metric("strings right from beginning to end", True, strings),
    # Their fine accuracy: the share of a string before its first error, on average.
    "before_error": Metric("share of a string before its first error", True, before_error),
    # Delétang et al. 2023: accuracy at each length, and the mean of these.
    "lengths": Metric("accuracy, averaged over lengths", True, lengths),
    # DuSell and Chiang 2020: what the network needs beyond the source's own entropy.
    "nats": Metric("nats per symbol above the lower bound", False, nats),
}
