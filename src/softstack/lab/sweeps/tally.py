"""How far a sweep is: counted once, shown live on a terminal, and left in a file for `softstack status`."""

import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from softstack.lab.sweeps.engine import Done, Failure
from softstack.lab.sweeps.units import Unit
from softstack.words import counted

REFRESH = 2.0  # seconds from one writing of the file to the next


@dataclass
class Tally:
    """Trials: asked for, there, failed, and in hand. Times are the monotonic clock's, which does not jump."""

    total: int
    done: int
    failed: int = 0
    trained: int = 0
    work: float = 0.0  # seconds of training, of all workers together
    running: dict[Unit, tuple[int, int]] = field(default_factory=dict)  # epoch, trials still training
    began: float = field(default_factory=time.monotonic)

    def epoch(self, unit: Unit, epoch: int, training: int) -> None:
        self.running[unit] = (epoch, training)

    def end(self, outcome: Done | Failure) -> None:
        unit = outcome.unit
        for running in [u for u in self.running if u.condition == unit.condition]:
            if set(running.seeds) & set(unit.seeds):
                del self.running[running]
        if isinstance(outcome, Failure):
            self.failed += len(unit.seeds)
        else:
            self.done += len(unit.seeds)
            self.trained += len(unit.seeds)
            self.work += outcome.seconds

    @property
    def stopped(self) -> int:
        """Trials of running units whose training is over."""
        return sum(len(unit.seeds) - training for unit, (_, training) in self.running.items())

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def rate(self) -> float:
        """Trials per second, since the start."""
        return (self.trained + self.stopped) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        rest = self.total - self.done - self.failed - self.stopped
        return rest / self.rate if self.rate else None

    def as_dict(self) -> dict[str, Any]:
        return {
            "total": self.total,
            "done": self.done,
            "failed": self.failed,
            "running": sum(training for _, training in self.running.values()),
            "rate": round(self.rate, 3),
            "seconds_left": None if self.seconds_left is None else round(self.seconds_left, 1),
            "blocks": [
                {
                    "condition": unit.condition.name,
                    "trials": len(unit.seeds),
                    "epoch": epoch,
                    "training": training,
                }
                for unit, (epoch, training) in self.running.items()
            ],
            "process": os.getpid(),
            "host": platform.node(),
        }


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    minutes, hours = seconds / 60, seconds / 3600
    return (
        f"{seconds:.0f} s" if seconds < 100 else f"{minutes:.0f} min" if minutes < 100 else f"{hours:.1f} h"
    )


@contextmanager
def live(tally: Tally, file: Path) -> Iterator[Any]:
    """A function to call whenever the tally has changed. On a terminal it draws; off one it is quiet."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("trials{task.fields[text]}"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    last_writing = time.monotonic()
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("starting", total=tally.total, completed=tally.done, text="")

        def show() -> None:
            nonlocal last_writing
            running = [f"{unit.condition.name} epoch {epoch}" for unit, (epoch, _) in tally.running.items()]
            text = f", {counted(len(running), 'block')} running, {tally.failed} failed, {tally.rate:.1f}/s, "
            text += f"{duration(tally.seconds_left)} left"
            name = running[-1] if running else "starting"
            bar.update(task, completed=tally.done + tally.stopped, description=name, text=text)
            if time.monotonic() - last_writing > REFRESH:
                last_writing = time.monotonic()
                _leave(file, tally)

        yield show
    with suppress(OSError):
        file.unlink(missing_ok=True)


def _leave(file: Path, tally: Tally) -> None:
    """Whole or not at all, but not worth waiting for the disk."""
    temporary = file.with_name(f".{file.name}")
    temporary.write_text(json.dumps(tally.as_dict()))
    temporary.replace(file)
