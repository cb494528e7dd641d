"""A sweep from Python: which controllers learn to reverse, and how often?

    python examples/sweep_from_python.py [FOLDER]

Every condition is trained with every seed, one process per core. Stop it and run it again: what is finished
is kept. The same can be written as a file for `softstack sweep`; from Python, conditions can be computed.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from softstack.lab.runs import compare, index
from softstack.lab.sweeps import jobs
from softstack.lab.sweeps.plans import Sweep
from softstack.lab.sweeps.workers import Engine
from softstack.lab.training.conditions import Condition

BASE = Condition("reversal", max_epochs=10)


def main(root: Path, *, base: Condition = BASE, seeds: int = 10, where: str = "local") -> list[index.Row]:
    conditions = tuple(replace(base, controller=name) for name in ("linear", "gru", "lstm"))
    outcome = jobs.run_sweep(
        root, Sweep("controllers", conditions, tuple(range(seeds))), Engine(where), print
    )
    print(f"{outcome.trained} trials trained now; what went wrong: {outcome.failed or 'nothing'}")
    with index.opened(root, print) as database:
        rows = index.query(database, "task = 'reversal'", sort="-test")
    tests = {
        condition.controller: [row["test"] for row in rows if row["controller"] == condition.controller]
        for condition in conditions
    }
    for name, values in tests.items():
        print(f"{name:7} {len(values)} trials, test accuracy from {min(values):.1%} to {max(values):.1%}")
    beside = compare.compare(tests["linear"], tests["lstm"], threshold=0.99, rng=np.random.default_rng(0))
    low, high = beside.difference.low, beside.difference.high
    print(
        f"lstm less linear, medians: {beside.difference.value:+.1%}, 95 % interval {low:+.1%} to {high:+.1%}"
    )
    return rows


if __name__ == "__main__":  # workers import this file, and must not begin a sweep of their own
    main(Path(sys.argv[1]) if sys.argv[1:] else Path("runs/controllers"))
