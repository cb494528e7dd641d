"""`softstack suite`."""

import time
from pathlib import Path

from softstack.controllers import CONTROLLERS
from softstack.errors import BadInput
from softstack.lab import tasks as known
from softstack.lab.cli.options import EngineName, Names, Trials, Whole, at_least_one, chosen
from softstack.lab.cli.screen import print_table, say
from softstack.lab.explain import published as figures
from softstack.lab.reports import suite as report
from softstack.lab.reports import suite_page, writing
from softstack.lab.runs import store
from softstack.lab.sweeps.jobs import missing, train_missing
from softstack.lab.training import suite as plan
from softstack.lab.training.published import CLAIMS
from softstack.memory import MEMORIES

PLUGIN = "; one of your own needs --plugin FILE.py"


def suite(
    *,
    tasks: Names = None,
    memories: Names = None,
    controllers: Names = None,
    recipe: Names = None,
    trials: Trials = plan.TRIALS,
    steps: Whole = plan.STEPS,
    restarts: Whole = plan.RESTARTS,
    published: bool = False,
    finished: bool = False,
    out: Path = Path("runs/suite"),
    engine: EngineName = "local",
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
    """
    began = time.perf_counter()
    budget = plan.Budget(at_least_one("--steps", steps), at_least_one("--restarts", restarts))
    cells = plan.cells(
        chosen("task", tasks, known.TASKS, plan.TASKS, PLUGIN),
        chosen("memory", memories, MEMORIES, plan.memories(), PLUGIN),
        chosen("controller", controllers, CONTROLLERS, plan.CONTROLLERS, PLUGIN),
        chosen("recipe", recipe, plan.RECIPES),
        budget,
    )
    seeds = range(at_least_one("--trials", trials))
    if finished:
        cells = [cell for cell in cells if not missing(out, cell.condition, seeds)]
        if not cells:
            raise BadInput(f"no cell is finished under {out}: train some first, without --finished")
    former = writing.former(out)
    conditions = [cell.condition for cell in cells]
    trained = train_missing(out, conditions, seeds, engine, "suite", say=say, together=True)
    rows = report.rows(out, cells, seeds)
    meta = {**writing.meta(out, conditions, seeds, trained, began, former), **budget._asdict()}
    claims = []
    if published:
        began = time.perf_counter()
        networks = [condition for claim in CLAIMS for condition in claim.conditions]
        more = train_missing(out, networks, seeds, engine, "published", say=say, together=True)
        claims = figures.rows(out, seeds)
        meta["published"] = writing.meta(out, networks, seeds, more, began, former.get("published", {}))
    report.write(out, rows, meta, figures.markdown(claims, meta["published"]) if claims else "")
    section = figures.section(claims, meta["published"]) if claims else ""
    store.write(out / "suite.html", suite_page.page(rows, meta, section))
    print_table(report.HEADER, map(report.line, rows))
    print(report.verdict(rows))
    if claims:
        writing.write(out, {"published.json": writing.json_rows(claims)})
        print_table(figures.HEADER[:-1], [line[:-1] for line in figures.lines(claims)])
        print(figures.verdict(claims))
    print(f"Report: {out / 'suite.html'}, and .md and .json beside it")
