"""How a sweep is run: what is asked for and not there yet is trained, saved, and shown as it comes."""

import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import torch

from softstack import fit, kernels
from softstack.errors import BadInput
from softstack.lab import plugins, tasks
from softstack.lab.runs import copies, disk, store, unfinished
from softstack.lab.sweeps import plans, tally, workers
from softstack.lab.sweeps.engine import Failure, Say, run, silent
from softstack.lab.sweeps.plans import Sweep
from softstack.lab.sweeps.units import Unit
from softstack.lab.sweeps.workers import Engine
from softstack.lab.training.conditions import Condition, build, shapes
from softstack.words import counted

BLOCKS = {"cpu": 50, "cuda": 1000}  # trials that train best together
LEAST = 10  # trials below which a block costs more than it gains in balance
PLANS = "sweeps"  # the directory with what was asked for


class Outcome(NamedTuple):
    trained: int
    failed: list[Path]  # records of blocks that were given up
    seconds: float = 0.0  # that it took, by the clock on the wall
    work: float = 0.0  # seconds of training, of all workers together


def train_missing(
    root: Path,
    conditions: Sequence[Condition],
    seeds: Sequence[int],
    where: str,
    name: str = "trials",
    say: Say = silent,
    *,
    together: bool = False,
) -> int:
    """Train the trials that `root` does not have, all of them: how many those were. Where there was nothing
    to train, that is said. See `blocks` for `together`."""
    sweep = Sweep(name, tuple(conditions), tuple(seeds))
    outcome = run_sweep(root, sweep, Engine(where), say, together=together)
    if outcome.failed:
        blocks, records = counted(len(outcome.failed), "block"), ", ".join(map(str, outcome.failed))
        raise BadInput(f"{blocks} of trials failed: {reason(outcome.failed[0])}; see {records}")
    if not outcome.trained:
        say(f"nothing was trained: {counted(sweep.trials, 'trial was', 'trials were')} there already")
    return outcome.trained


def run_sweep(
    root: Path,
    sweep: Sweep,
    engine: Engine,
    say: Say = silent,
    sink: Callable[[store.Run], None] | None = None,
    *,
    together: bool = False,
) -> Outcome:
    """Train what `root` does not have of a sweep. What fails is recorded, and the rest goes on."""
    workers.check(engine)
    _refuse_other_plugins(root, sweep)
    unfinished.forget_finished(root, sweep.conditions)
    concerned = [c for c in sweep.conditions if missing(root, c, sweep.seeds)]
    if not concerned:
        return Outcome(0, [])
    if risk := workers.risk(engine):
        say(risk)
    workers.reach(engine)
    root.mkdir(parents=True, exist_ok=True)
    with disk.claimed(root, [*(c.name for c in concerned), f"{PLANS}/{plan_name(sweep)}"]):
        store.sweep_up(root, concerned)
        # asked again: another driver may have trained some before this claim
        seeds_of = {c: missing(root, c, sweep.seeds) for c in concerned}
        _tell_of_damage(root, seeds_of, say)
        for condition in concerned:
            copies.keep(root, store.folders(root, condition)[0].name, condition.task)
        plan = root / PLANS / f"{plan_name(sweep)}.toml"
        disk.write(plan, plans.dumps(sweep))
        count = sum(map(len, seeds_of.values()))
        counts = tally.Tally(sweep.trials, sweep.trials - count)
        failed = []
        with tally.live(counts, plan.with_suffix(".json")) as show:

            def progress(unit: Unit, epoch: int, training: int) -> None:
                counts.epoch(unit, epoch, training)
                show()

            for outcome in run(blocks(seeds_of, engine, together=together), engine, root, progress, say):
                counts.end(outcome)
                show()
                if isinstance(outcome, Failure):
                    failed.append(record(root, outcome))
                    continue
                for seed in outcome.diverged:
                    say(_lost(store.place(root, outcome.unit.condition, seed)))
                if sink:
                    for seed in outcome.unit.seeds:
                        sink(store.load(store.place(root, outcome.unit.condition, seed)))
        return Outcome(counts.trained, failed, counts.seconds, counts.work)


def _lost(path: Path) -> str:
    return (
        f"{path} diverged and was stopped: it no longer computes numbers; a lower learning_rate or a "
        "gradient_clip may help"
    )


def _refuse_other_plugins(root: Path, sweep: Sweep) -> None:
    """A condition names a memory and not its code: trials of two versions of a plugin must not be mixed."""
    for condition in sweep.conditions:
        if not plugins.needed(condition.task, condition.memory, condition.controller):
            continue
        for seed in sweep.seeds:
            if store.finished(root, condition, seed):
                run = store.load(store.place(root, condition, seed))
                for path in plugins.changed(run.provenance.get("plugins", ())):
                    raise BadInput(
                        f"{run.path} was trained with another version of {path}: give another --out, "
                        "or remove what was trained with it"
                    )


def plan_name(sweep: Sweep) -> str:
    return f"{sweep.name}-{sweep.digest}"


def missing(root: Path, condition: Condition, seeds: Sequence[int]) -> tuple[int, ...]:
    return tuple(seed for seed in seeds if not store.finished(root, condition, seed))


def blocks(
    seeds_of: dict[Condition, tuple[int, ...]], engine: Engine, *, together: bool = False
) -> list[Unit]:
    """Work in pieces: large enough to train well together, and smaller towards the end, so that all workers
    come to it at about the same time.

    On a CPU a trial without a kernel trains alone, for its last bits depend on who is beside it. With
    `together` that is put up with: what a step costs there hardly depends on how many it is for.
    """
    where = "cuda" if torch.cuda.is_available() else "cpu"
    count = engine.workers or (os.cpu_count() or 1 if engine.where in ("local", "inline") else 8)
    after = sum(map(len, seeds_of.values()))
    units = []
    for condition, seeds in seeds_of.items():
        kernel = exact(condition)
        while seeds:
            if kernel or (where == "cuda" and not together):
                size = min(BLOCKS[where], max(LEAST, math.ceil(after / (4 * count))))
                size = max(1, size // condition.restarts)
            else:
                size = len(seeds) if together else 1
            units.append(Unit(condition, seeds[:size]))
            after -= len(units[-1].seeds)
            seeds = seeds[size:]
    return units


def exact(condition: Condition) -> bool:
    """Whether a trial has the same bits whoever trains beside it: the fused kernels see to that."""
    shapes(condition)  # what is far too large is refused here
    x = torch.zeros(1, 1, len(tasks.find(condition.task).alphabet))
    cells = build(condition, device="meta").cells
    fused = not any(fit.why_not(cell, x, steps=1) for cell in cells)
    return fused and not kernels.why_not("cpu", x)  # numba need not be imported


def record(root: Path, failure: Failure) -> Path:
    """Write down why a block was given up. It is tried again when its sweep is run again."""
    condition, seeds = failure.unit
    path = store.folders(root, condition)[0] / f"failed-{seeds[0]}.json"
    content = {"condition": condition.name, "seeds": seeds, "log": failure.log.splitlines()}
    disk.write_json(path, content)
    return path


def reason(record: Path) -> str:
    """Why a block was given up: the last line of what is written down; "" where that cannot be read."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        return str(disk.read_json(record, 1 << 20)["log"][-1])
    return ""


def records(root: Path, condition: Condition) -> list[Path]:
    """The records of a condition's blocks that were given up."""
    folders = store.folders(root, condition)
    return [path for folder in folders for path in sorted(folder.glob("failed-*.json"))]


def _tell_of_damage(root: Path, seeds_of: dict[Condition, tuple[int, ...]], say: Say) -> None:
    """Say which trials cannot be read: they are trained again."""
    for condition, seeds in seeds_of.items():
        for record in records(root, condition):
            record.unlink()
        for seed in seeds:
            path = store.place(root, condition, seed)
            try:
                if path.exists():
                    store.load(path)
                unfinished.begun(root, condition, seed)
            except BadInput as error:
                say(f"{error}; it is trained again")
