"""How far sweeps are, for anyone who can read the run root."""

import math
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from softstack.errors import BadInput
from softstack.lab.plugins import MissingPlugin
from softstack.lab.runs import disk, store
from softstack.lab.sweeps import jobs
from softstack.lab.sweeps import plans as sweep_plans


class Standing(NamedTuple):
    """A sweep and where it stands, in trials."""

    name: str
    trials: int
    done: int
    running: int
    failed: int
    missing: int  # not begun, or broken off
    rate: float | None  # trials per second, of a sweep that is running
    seconds_left: float | None
    records: list[str]  # of blocks that failed
    root: str  # where its run directories are


def plans(root: Path) -> list[Path]:
    """The plans of the sweeps under a directory, and under those in it."""
    return sorted(plan for folder in disk.folders(root) for plan in (folder / jobs.PLANS).glob("*.toml"))


def read(plan: Path) -> Standing:
    """A sweep runs if its driver holds its claim, whatever any clock says."""
    root = plan.parent.parent
    if not re.search("-[0-9a-f]{8}$", plan.stem):
        raise BadInput("it is not the plan of a sweep that was started here")
    try:
        sweep = sweep_plans.load(plan, root)
    except BadInput:
        _require_plugins(root)
        raise
    done = {
        (condition.name, seed)
        for condition in sweep.conditions
        for seed in sweep.seeds
        if store.finished(root, condition, seed)
    }
    failed: dict[Path, set[tuple[str, int]]] = {}
    for condition in sweep.conditions:
        for path in jobs.records(root, condition):
            with suppress(OSError, ValueError, KeyError, TypeError, OverflowError):
                seeds = {int(seed) for seed in disk.read_json(path, 1 << 20)["seeds"]}
                failed[path] = {(condition.name, seed) for seed in seeds & set(sweep.seeds)} - done
    count = len(set().union(*failed.values()))
    live: dict[str, Any] = {}
    if disk.is_claimed(root, f"{jobs.PLANS}/{plan.stem}"):
        live = {"running": 0}
        with suppress(OSError, BadInput):
            report = disk.read_json(plan.with_suffix(".json"), 1 << 20)
            live |= {key: value for key, value in report.items() if _is_number(value)}
    running = int(live.get("running", 0))
    return Standing(
        plan.stem,
        sweep.trials,
        len(done),
        running,
        count,
        max(0, sweep.trials - len(done) - count - running),
        live.get("rate"),
        live.get("seconds_left"),
        [str(path) for path, trials in failed.items() if trials],
        str(root),
    )


def _require_plugins(root: Path) -> None:
    """Where a plan cannot be read, a run beside it may say which plugin it needs."""
    for path in root.glob("*/seed-*"):
        try:
            store.load(path)
        except MissingPlugin:
            raise
        except (OSError, BadInput):
            continue


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
