"""`softstack solve`."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table

from softstack.errors import unknown
from softstack.lab.cli.options import Whole, at_least_one
from softstack.lab.cli.screen import say, wide
from softstack.lab.explain import solved, solved_page
from softstack.lab.runs import store
from softstack.lab.sweeps.jobs import train_missing
from softstack.lab.training import recipes

Names = Annotated[list[str] | None, Parameter(consume_multiple=True)]


def solve(
    names: Names = None,
    /,
    *,
    controllers: Names = None,
    trials: Whole = 10,
    out: Path = Path("runs/solved"),
    engine: str = "local",
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
    trials
        how many for each row, with seeds 0, 1, ...
    out
        where run directories and reports go
    engine
        see `softstack table --help`
    """
    began = time.perf_counter()
    wanted = recipes.rows()
    tasks = list(dict.fromkeys(row.condition.task for row in wanted))
    wanted = [row for row in wanted if row.condition.task in _chosen("task of the paper", names, tasks)]
    kinds = list(dict.fromkeys(row.condition.controller for row in recipes.rows()))
    wanted = [row for row in wanted if row.condition.controller in _chosen("controller", controllers, kinds)]
    if not wanted:
        raise unknown("network", f"{', '.join(controllers or [])} on {', '.join(names or [])}", kinds)
    seeds = range(at_least_one("--trials", trials))
    conditions = [row.condition for row in wanted]
    trained = train_missing(out, conditions, seeds, engine, "solved", say=say)
    rows = solved.rows(out, wanted, seeds, processes=os.cpu_count() or 1)
    devices = {
        store.load(store.place(out, c, seed)).provenance["device"] for c in conditions for seed in seeds
    }
    meta = {
        **store.provenance("cpu"),
        "commit": solved.commits(out, conditions, seeds),
        "device": " and ".join(sorted(devices)),
        "trained": trained,
        "cores": os.cpu_count(),
        "seeds": list(seeds),
        "seconds": round(time.perf_counter() - began, 1),
    }
    solved.write(out, rows, meta)
    solved_page.write(out, wanted, rows, meta)
    screen = Table(*solved.HEADER)
    for cells in solved.lines(rows):
        screen.add_row(*cells)
    wide().print(screen)
    print(solved.verdict(rows))
    print(f"Report: {out / 'solved.html'}, and .md and .json beside it")


def _chosen(what: str, names: Sequence[str] | None, accepted: Sequence[str]) -> Sequence[str]:
    for name in names or ():
        if name not in accepted:
            raise unknown(what, name, accepted)
    return names or accepted
