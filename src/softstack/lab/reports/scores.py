"""How networks are scored on strings of several lengths.

A trial is scored on strings as long as those of the training, and 2, 5 and 10 times as long (`tasks.longer`),
the same strings for every network of a task. A task that builds no strings of a length has no score there.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from softstack.lab import tasks
from softstack.lab.reports.writing import Line, measured, runs_of
from softstack.lab.runs import store
from softstack.lab.tasks import Task
from softstack.lab.tasks.data import Dataset, Example
from softstack.lab.training.conditions import Condition, Network
from softstack.lab.training.draws import encoded
from softstack.lab.training.population import Parameters, correct, tested

FACTORS = {1: 200, 2: 100, 5: 50, 10: 50}  # strings, by how many times they are as long as in training
STRINGS = 5_000  # the seed of the strings, which no trial has
ROOM = 4_000_000  # networks times strings times squared length that run at once: some memories need as much


class Score(NamedTuple):
    """The scores of a network on some strings."""

    right: float  # share of the scored positions at which it is right
    whole: float  # share of the strings in which it is right at all of them: Grefenstette et al.'s "coarse"
    nats: float | None  # mean cross-entropy of a scored position; None for a network that diverged


def strings(task: Task, factor: int) -> list[Example]:
    rng = np.random.default_rng([STRINGS, factor])
    if factor == 1:
        return [task.example(word) for word in task.sample(rng, FACTORS[factor], "train")]
    return tasks.longer(task, rng, FACTORS[factor], factor)


def stacked(networks: Sequence[Network]) -> Parameters:
    """The parameters of networks of one condition, as those of a population."""
    states = [network.state_dict() for network in networks]
    return {name: torch.stack([state[name] for state in states]) for name in states[0]}


def scores(network: Network, parameters: Parameters, condition: Condition, data: Dataset) -> list[Score]:
    """One for each network of a population, `data` (n, T) being the same for all."""
    letters = len(tasks.find(condition.task).alphabet)
    P, (n, T) = len(next(iter(parameters.values()))), data.x.shape
    size = max(1, ROOM // max(1, P * T * T))
    parts = []  # where each network is right or nothing is scored, (P, size, T), and its nats (P, size)
    for first in range(0, n, size):
        part = Dataset(*(t[first : first + size].expand(P, -1, -1) for t in data))
        y = tested(network, parameters, part.x, letters)  # (P, size, T, K)
        nats = cross_entropy(y.double().movedim(-1, 1), part.y, reduction="none")
        parts.append((correct(y, part) | ~part.mask, (nats * part.mask).sum(2)))
    right, losses = (torch.cat(tensors, 1) for tensors in zip(*parts, strict=True))
    positions = (right & data.mask).sum((1, 2)).double() / data.mask.sum()
    means = losses.sum(1) / data.mask.sum()
    columns = (positions.tolist(), right.all(2).double().mean(1).tolist(), means.tolist())
    return [
        Score(round(position, 6), round(whole, 6), float(f"{mean:.6g}") if math.isfinite(mean) else None)
        for position, whole, mean in zip(*columns, strict=True)
    ]


def trials(root: Path, condition: Condition, seeds: Sequence[int], device: str = "cpu") -> list[Line]:
    """The trials of a cell with their scores, which are kept under `root`."""
    runs = runs_of(root, condition, seeds)
    file = root / "measured" / f"{condition.name}.json"
    return measured(file, runs, lambda: _scored(condition, runs, device))


def _scored(condition: Condition, runs: Sequence[store.Run], device: str) -> list[Line]:
    networks = [store.network(run).to(device) for run in runs]
    parameters, task = stacked(networks), tasks.find(condition.task)
    lines: list[Line] = [
        {name: run.result[name] for name in ("seed", "dev", "dev_loss", "test")} for run in runs
    ]
    for factor in FACTORS:
        if examples := strings(task, factor):
            data = Dataset(*(x.to(device) for x in encoded(condition, examples)))
            for line, score in zip(lines, scores(networks[0], parameters, condition, data), strict=True):
                line[f"{factor}x"] = score._asdict()
    return lines
