"""Trials that are asked for and not there yet: trained, saved, and shown as they come."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from softstack.lab import store
from softstack.lab.engine import Progress, Unit, run
from softstack.lab.experiments import Condition


def train_missing(root: Path, conditions: Sequence[Condition], seeds: Sequence[int], where: str) -> int:
    """Train the trials that `root` does not have, and save each block as it comes: how many those were."""
    units = []
    for condition in conditions:
        left = tuple(seed for seed in seeds if not store.finished(root, condition, seed))
        if left:
            units.append(Unit(condition, left))
    root.mkdir(parents=True, exist_ok=True)
    total, there = len(conditions) * len(seeds), sum(len(unit.seeds) for unit in units)
    with _bar("trials", total, total - there) as advance:
        for unit, trials in run(units, where, advance):
            for trial in trials:
                store.save(root, trial)
            advance(unit, 0, 0)
    return there


@contextmanager
def _bar(what: str, total: int, done: int) -> Iterator[Progress]:
    """A bar on a terminal, nothing elsewhere. A trial counts as soon as its training stops."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(what),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Bar(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("starting", total=total, completed=done)
        stopped: dict[Unit, int] = {}

        def advance(unit: Unit, epoch: int, training: int) -> None:
            stopped[unit] = len(unit.seeds) - training
            c = unit.condition
            text = f"{c.task} {c.controller} {c.memory}{' buffered' if c.buffered else ''}"
            bar.update(
                task,
                completed=done + sum(stopped.values()),
                description=f"{text}, epoch {epoch}" if epoch else f"{text}, done",
            )

        yield advance
