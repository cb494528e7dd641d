"""How far sweeps are, as anyone can see who sees the run root."""

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from softstack.lab.runs import disk, store
from softstack.lab.sweeps import jobs
from softstack.lab.sweeps import plans as sweeps


class Standing(NamedTuple):
    """A sweep and where it stands, in trials."""

    name: str
    trials: int
    done: int
    running: int
    failed: int
    missing: int
    rate: float | None  # trials a second, of a sweep that is running
    seconds_left: float | None
    records: list[str]  # of blocks that failed


def plans(root: Path) -> list[Path]:
    return sorted((root / jobs.PLANS).glob("*.toml"))


def read(plan: Path) -> Standing:
    """A sweep runs if its driver holds its claim, whatever any clock says."""
    root = plan.parent.parent
    sweep = sweeps.load(plan)
    done = {
        (condition.name, seed)
        for condition in sweep.conditions
        for seed in sweep.seeds
        if store.finished(root, condition, seed)
    }
    failed: dict[Path, set[tuple[str, int]]] = {}
    for path in _records(root, [condition.name for condition in sweep.conditions]):
        with suppress(ValueError, KeyError, TypeError):
            said = json.loads(disk.read(path, 1 << 20))
            seeds = {(str(said["condition"]), int(seed)) for seed in said["seeds"]}
            failed[path] = {each for each in seeds - done if each[1] in set(sweep.seeds)}
    count = len(set().union(*failed.values()))
    live: dict[str, Any] = {}
    if disk.is_claimed(root, f"{jobs.PLANS}/{plan.stem}"):
        live = {"running": 0}
        with suppress(OSError, ValueError):
            live |= dict(json.loads(disk.read(plan.with_suffix(".json"), 1 << 20)))
    return Standing(
        plan.stem,
        sweep.trials,
        len(done),
        int(live.get("running", 0)),
        count,
        sweep.trials - len(done) - count,
        live.get("rate"),
        live.get("seconds_left"),
        [str(path) for path, trials in failed.items() if trials],
    )


def _records(root: Path, names: Iterable[str]) -> list[Path]:
    return [path for name in names for path in sorted((root / name).glob("failed-*.json"))]
