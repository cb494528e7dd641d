"""Two sets of trials side by side: medians, their difference, and how often a trial succeeds."""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np


class Interval(NamedTuple):
    value: float
    low: float
    high: float


class Side(NamedTuple):
    trials: int
    minimum: float
    median: float
    maximum: float
    success: Interval  # share of trials above the threshold, with its Wilson interval


class Comparison(NamedTuple):
    first: Side
    second: Side
    difference: Interval  # median of the second minus median of the first, with its bootstrap interval


def compare(
    first: Sequence[float],
    second: Sequence[float],
    threshold: float,
    rng: np.random.Generator,
    confidence: float = 0.95,
) -> Comparison:
    difference = bootstrap(first, second, rng, confidence)
    return Comparison(side(first, threshold, confidence), side(second, threshold, confidence), difference)


def side(values: Sequence[float], threshold: float, confidence: float) -> Side:
    above = sum(value > threshold for value in values)
    success = wilson(above, len(values), confidence)
    return Side(len(values), min(values), float(np.median(values)), max(values), success)


def wilson(successes: float, trials: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for a share (1927): it stays in [0, 1] and holds for few trials too."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / trials
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials**2))
    low = 0.0 if successes == 0 else centre - half  # exact at the ends, where the two cancel but for rounding
    high = 1.0 if successes == trials else centre + half
    return Interval(share, low, high)


def bootstrap(
    first: Sequence[float],
    second: Sequence[float],
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 10_000,
) -> Interval:
    """The difference of medians, and percentiles of it over trials drawn again with replacement."""
    medians = []
    for values in (np.asarray(first, float), np.asarray(second, float)):
        most = max(1, 4_000_000 // len(values))  # resamples at a time, so as not to take much memory
        sizes = [min(most, resamples - start) for start in range(0, resamples, most)]
        parts = [np.median(values[rng.integers(len(values), size=(n, len(values)))], axis=1) for n in sizes]
        medians.append(np.concatenate(parts))
    tail = (1 - confidence) / 2
    low, high = np.quantile(medians[1] - medians[0], [tail, 1 - tail])
    return Interval(float(np.median(second) - np.median(first)), float(low), float(high))
