"""`softstack suite`."""

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table

from softstack.controllers import CONTROLLERS
from softstack.errors import BadInput, unknown
from softstack.lab import tasks as known
from softstack.lab.cli.options import Whole, at_least_one
from softstack.lab.cli.screen import say, wide
from softstack.lab.explain import published as figures
from softstack.lab.reports import suite as report
from softstack.lab.reports import suite_page, table1
from softstack.lab.runs import store
from softstack.lab.sweeps.jobs import missing, train_missing
from softstack.lab.training import suite as plan
from softstack.lab.training.published import CLAIMS
from softstack.memory import MEMORIES
from softstack.words import counted

Names = Annotated[list[str] | None, Parameter(consume_multiple=True)]


def suite(
    *,
    tasks: Names = None,
    memories: Names = None,
    controllers: Names = None,
    recipe: Names = None,
    trials: Whole = plan.TRIALS,
    steps: Whole = plan.STEPS,
    restarts: Whole = plan.RESTARTS,
    published: bool = False,
    finished: bool = False,
    out: Path = Path("runs/suite"),
    engine: str = "local",
) -> None:
    """Compare memories: each with each controller on each task, with the recipe of `solve` and without.

    Trains every cell in several trials, scores them on strings as long as those of the training and 2, 5 and
    10 times as long, measures what a step costs, and writes suite.html, which sorts and filters, .md and
    .json under `--out`. Stop it at any time and run it again: finished trials are kept. docs/suite.md tells
    what comes out.

    softstack suite --tasks reversal --controllers lstm --trials 2 --steps 500

    softstack suite --plugin mine.py --memories mine stack    # one of your own

    Trials of a memory without a kernel train together, so that their last bits depend on how many there are.

    Parameters
    ----------
    tasks
        names from `softstack tasks`; those of docs/suite.md if not given
    memories
        stack, queue, none and others; if not given all that are known, but for variants of
        others and the nondeterministic stack, which is slow
    controllers
        linear, rnn, gru and lstm if not given
    recipe
        solve: as `softstack solve` trains; plain: as the paper does; both if not given
    trials
        how many for each cell, with seeds 0, 1, ...
    steps
        of training, with 10 strings each
    restarts
        networks of a trial; the one with the lowest dev loss is kept
    published
        look for the figures that papers publish too, on the papers' strings: long on a CPU
    finished
        train nothing, and report the cells all of whose trials are there
    out
        where run directories and reports go
    engine
        see `softstack table --help`
    """
    began = time.perf_counter()
    budget = plan.Budget(at_least_one("--steps", steps), at_least_one("--restarts", restarts))
    cells = plan.cells(
        _chosen("task", tasks, known.TASKS, plan.TASKS),
        _chosen("memory", memories, MEMORIES, plan.memories()),
        _chosen("controller", controllers, CONTROLLERS, plan.CONTROLLERS),
        _chosen("recipe", recipe, plan.RECIPES, plan.RECIPES),
        budget,
    )
    seeds = range(at_least_one("--trials", trials))
    if finished:
        cells = [cell for cell in cells if not missing(out, cell.condition, seeds)]
        if not cells:
            raise BadInput(f"no cell is finished under {out}: train some first, without --finished")
    conditions = [cell.condition for cell in cells]
    if published:
        conditions += [condition for claim in CLAIMS for condition in claim.conditions]
    trained = train_missing(out, conditions, seeds, engine, "suite", say=say, together=True)
    if not trained:
        count = len(seeds) * len(set(conditions))
        say(f"nothing was trained: {counted(count, 'trial was', 'trials were')} there already")
    rows = report.rows(out, cells, seeds)
    devices = {
        store.load(store.place(out, c, seed)).provenance["device"] for c in conditions for seed in seeds
    }
    meta = {
        **store.provenance("cpu"),
        "commit": table1.commits(out, conditions, seeds),
        "device": " and ".join(sorted(devices)),
        "trained": trained,
        "cores": os.cpu_count(),
        "seeds": list(seeds),
        **budget._asdict(),
        "seconds": round(time.perf_counter() - began, 1),
    }
    claims = figures.rows(out, seeds) if published else []
    report.write(out, rows, meta, figures.markdown(claims) if claims else "")
    suite_page.write(out, rows, meta, figures.section(claims) if claims else "")
    screen = Table(*report.HEADER)
    for row in rows:
        screen.add_row(*report.line(row))
    wide().print(screen)
    print(report.verdict(rows))
    if claims:
        figures.write(out, claims)
        screen = Table(*figures.HEADER[:-1])
        for cells_of_line in figures.lines(claims):
            screen.add_row(*cells_of_line[:-1])
        wide().print(screen)
        print(figures.verdict(claims))
    print(f"Report: {out / 'suite.html'}, and .md and .json beside it")


def _chosen(
    what: str, names: Sequence[str] | None, accepted: Iterable[str], default: Iterable[str]
) -> list[str]:
    accepted = list(accepted)
    for name in names or ():
        if name not in accepted:
            advice = "" if what == "recipe" else "; one of your own needs --plugin FILE.py"
            raise BadInput(f"{unknown(what, name, accepted)}{advice}")
    return list(dict.fromkeys(default if names is None else names))
