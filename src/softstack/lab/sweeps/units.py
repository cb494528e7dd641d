"""The unit of work: a condition and a block of seeds, trained as one population by one process."""

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from softstack.lab.runs import store, unfinished
from softstack.lab.training.checkpoints import Networks, epochs_done
from softstack.lab.training.conditions import Condition
from softstack.lab.training.train import Report, train


class Unit(NamedTuple):
    condition: Condition
    seeds: tuple[int, ...]


class Work(NamedTuple):
    """A block that was trained."""

    trials: dict[int, store.Files]  # what their directories should hold, by seed
    seconds: float  # that it took
    diverged: tuple[int, ...]  # seeds of those that no longer compute numbers


def device(name: Any = 0) -> str:
    """The CPU, or the GPU of the worker of this name: workers are numbered."""
    if not torch.cuda.is_available():
        return "cpu"
    return f"cuda:{(name if isinstance(name, int) else 0) % torch.cuda.device_count()}"


def parts(root: Path, unit: Unit) -> list[Unit]:
    """What is left of a unit, as units of trials that have done as many epochs."""
    groups: dict[int, list[int]] = {}
    for seed in unit.seeds:
        if not store.finished(root, unit.condition, seed):
            networks = unfinished.resumable(root, unit.condition, seed)
            groups.setdefault(len(epochs_done(networks)) if networks else 0, []).append(seed)
    return [Unit(unit.condition, tuple(seeds)) for seeds in groups.values()]


def begun_trials(root: Path, unit: Unit) -> list[Networks]:
    """Where the trials of a unit were: all of them, or none."""
    trials = [unfinished.resumable(root, unit.condition, seed) for seed in unit.seeds]
    return [networks for networks in trials if networks]


def work(
    unit: Unit, begun: Sequence[Networks], root: Path | None, every: float, report: Report, where: str
) -> Work:
    """Train a block. With a root, trials that are not finished yet are kept there."""
    began = time.perf_counter()
    keep = partial(unfinished.keep, root, unit.condition) if root else None
    trials = train(*unit, where, report, begun=begun, keep=keep, every=every)
    files = {trial.seed: store.files(trial) for trial in trials}
    diverged = tuple(trial.seed for trial in trials if trial.diverged)
    return Work(files, time.perf_counter() - began, diverged)
