"""What the recipe depends on: one of its numbers is changed at a time, for single networks, without a choice
between restarts.

A cell of the study is a condition with many seeds, trained as one population. study.jsonl has a line for each
cell; a cell that is there is not trained again.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from softstack.lab.training.conditions import Condition
from softstack.lab.training.recipes import HARD, single
from softstack.lab.training.train import train
from softstack_command import forks

SEEDS = range(2000, 2064)  # no other result uses them
NOISE = 0.2  # what the recipe had when it was studied
AXES: dict[str, tuple[Any, ...]] = {
    "state_reset": (0.0, 0.1, 0.25, 0.5, 0.75, 0.9),
    "hidden_noise": (0.0, 0.1, 0.2, 0.4),
    "steps": (3_000, 10_000, 30_000),
    "train_size": (200, 800, 2_000, 8_000),
    "memory_size": (2, 4, 8),
    "hidden_size": (5, 10, 20, 40),
}


class Cell(NamedTuple):
    """One number of the recipe, changed."""

    axis: str  # a field of Condition; "neither" for no resets and no noise
    value: float | int
    condition: Condition
    seeds: Sequence[int] = SEEDS

    @property
    def name(self) -> str:
        return f"{self.condition.task} {self.axis} {self.value}"


def cells(names: Sequence[str] = HARD) -> list[Cell]:
    """All cells. The unchanged recipe is a cell of every axis."""
    all_cells = []
    for task in names:
        base = replace(single(Condition(task)), hidden_noise=NOISE)
        all_cells += [
            Cell(axis, value, replace(base, **{axis: value}))
            for axis, values in AXES.items()
            for value in values
        ]
        all_cells.append(Cell("neither", 0.0, replace(base, state_reset=0.0, hidden_noise=0.0)))
    few = SEEDS[: len(SEEDS) // 2]  # where strings take longer to draw than networks to train
    return [cell._replace(seeds=few) if cell.condition.train_size > 2_000 else cell for cell in all_cells]


def measured(cell: Cell) -> dict[str, Any]:
    """A line of study.jsonl."""
    trials = train(cell.condition, cell.seeds, "cuda" if torch.cuda.is_available() else "cpu")
    return {
        "name": cell.name,
        "axis": cell.axis,
        "value": cell.value,
        "condition": asdict(cell.condition),
        "trials": [{"seed": t.seed, "dev": t.dev, "dev_loss": t.dev_loss, "test": t.test} for t in trials],
    }


def run(file: Path, cells: Sequence[Cell], processes: int) -> Iterator[str]:
    """Train the cells that a file does not have, several at a time, and give their names as they come."""
    done = {line["name"] for line in read(file)}
    same: dict[Condition, list[Cell]] = {}  # the recipe itself is on every axis, and is trained once
    for cell in cells:
        if cell.name not in done:
            same.setdefault(cell.condition, []).append(cell)
    file.parent.mkdir(parents=True, exist_ok=True)
    jobs = [partial(measured, twins[0]) for twins in same.values()]
    with file.open("a") as lines:
        for line in forks.results(jobs, processes):
            for cell in same[Condition(**line["condition"])]:
                twin = {**line, "name": cell.name, "axis": cell.axis, "value": cell.value}
                lines.write(json.dumps(twin) + "\n")
                lines.flush()
                yield cell.name


def read(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]
