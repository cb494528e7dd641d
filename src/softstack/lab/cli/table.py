"""`softstack table`."""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from softstack.errors import BadInput
from softstack.lab.cli.options import EngineName, Names, Trials, at_least_one
from softstack.lab.cli.screen import print_table, say
from softstack.lab.reports import distributions, row_page, table_page, writing
from softstack.lab.reports import table1 as report
from softstack.lab.runs import store
from softstack.lab.sweeps.jobs import train_missing
from softstack.lab.training.conditions import TABLE_1, corrected


def table(
    *, trials: Trials = 10, rows: Names = None, out: Path = Path("runs/table1"), engine: EngineName = "local"
) -> None:
    """Reproduce the paper's Table 1, side by side with the paper's own numbers.

    Trains what is missing under `--out` and writes table1.html, .md and .json there (rows.html and so on, if
    only some rows are asked for). Each row of the page leads to its trials: how they learnt, and three of
    them at work. With 100 trials or more it also says how likely each of the paper's figures is, if its ten
    trials were drawn from ours (distributions.md). Stop it at any time and run it again: finished trials are
    kept.

    softstack table --rows 1 8            # the two rows that take seconds

    softstack table --rows parenthesis    # all rows of a task

    Parameters
    ----------
    rows
        numbers of rows, from 1 to 18, or names of tasks; all if not given
    out
        where run directories and reports go
    """
    began = time.perf_counter()
    numbers = _row_numbers(rows)
    seeds = range(at_least_one("--trials", trials))
    conditions = [c for n in numbers for c in (TABLE_1[n - 1], corrected(TABLE_1[n - 1])) if c is not None]
    trained = train_missing(out, conditions, seeds, engine, "table1", say=say)
    reproduced = report.table(out, numbers, seeds)
    meta = writing.meta(out, conditions, seeds, trained, began, writing.former(out))
    name = report.write(out, reproduced, meta)
    store.write(out / f"{name}.html", table_page.page(reproduced, meta, links=True))
    row_page.write(out, reproduced, f"{name}.html")
    if len(seeds) >= distributions.ENOUGH:
        say("scoring every trial on strings that the trials of a row share")
        shared = [distributions.on_common_strings(out, TABLE_1[row["row"] - 1], seeds) for row in reproduced]
        rng = np.random.default_rng(0)
        common = [scores.on_sets(rng, TABLE_1[0].test_size) for scores in shared]
        lines = distributions.rows(reproduced, common)
        distributions.write(out, lines, meta)
        print(distributions.verdict(lines))
    print_table(report.HEADER, report.cells(reproduced))
    print(report.verdict(reproduced))
    print(f"Report: {out / name}.html, and .md and .json beside it")


def _row_numbers(rows: Sequence[str] | None) -> list[int]:
    """Rows of Table 1 by number or task."""
    if rows is None:
        return list(range(1, len(TABLE_1) + 1))
    if not rows:
        raise BadInput(
            f"--rows needs numbers from 1 to {len(TABLE_1)}, or names of tasks; leave it out for all"
        )
    numbers: list[int] = []
    for name in rows:
        matches = [n for n, c in enumerate(TABLE_1, 1) if name in (str(n), c.task)]
        if not matches:
            names = ", ".join(dict.fromkeys(c.task for c in TABLE_1))
            raise BadInput(
                f"--rows {name} is not in Table 1: give numbers from 1 to {len(TABLE_1)}, or {names}"
            )
        numbers += matches
    return sorted(set(numbers))
