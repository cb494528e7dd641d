"""`softstack solve`."""

import os
import time
from pathlib import Path

from softstack.errors import unknown
from softstack.lab.cli.options import EngineName, Names, Trials, at_least_one, chosen
from softstack.lab.cli.screen import print_table, say
from softstack.lab.explain import solved, solved_page
from softstack.lab.reports import writing
from softstack.lab.sweeps.jobs import train_missing
from softstack.lab.training import recipes


def solve(
    names: Names = None,
    /,
    *,
    controllers: Names = None,
    trials: Trials = 10,
    out: Path = Path("runs/solved"),
    engine: EngineName = "local",
) -> None:
    """Train controllers so that they use their stacks, and show that they do.

    Trains each network by the paper's recipe, by that with 16 restarts, and by a recipe in which the
    controller's state is lost now and then; and LSTMs by that recipe without a stack. Tests them at 2, 10 and
    50 times the training length, asks what they do with their stacks, reads the machines off them, and writes
    solved.html, .md and .json under `--out`, with pages in which they run. Stop it at any time and run it
    again: finished trials are kept. docs/solved.md tells what comes out and why.

    softstack solve parenthesis --controllers linear --trials 2    # a minute

    Parameters
    ----------
    names
        tasks of the paper; all if not given
    controllers
        lstm, linear, gru or rnn; all if not given
    out
        where run directories and reports go
    """
    began = time.perf_counter()
    every = recipes.rows()
    kinds = list(dict.fromkeys(row.condition.controller for row in every))
    tasks = chosen("task of the paper", names, list(dict.fromkeys(row.condition.task for row in every)))
    cores = chosen("controller", controllers or None, kinds)
    plan = [row for row in every if row.condition.task in tasks and row.condition.controller in cores]
    if not plan:
        raise unknown("network", f"{', '.join(controllers or [])} on {', '.join(names or [])}", kinds)
    seeds = range(at_least_one("--trials", trials))
    conditions = [row.condition for row in plan]
    trained = train_missing(out, conditions, seeds, engine, "solved", say=say)
    rows = solved.rows(out, plan, seeds, processes=os.cpu_count() or 1)
    meta = writing.meta(out, conditions, seeds, trained, began, writing.former(out))
    solved.write(out, rows, meta)
    solved_page.write(out, plan, rows, meta)
    print_table(solved.HEADER, solved.lines(rows))
    print(solved.verdict(rows))
    print(f"Report: {out / 'solved.html'}, and .md and .json beside it")
