"""`softstack transducers`."""

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from softstack.lab.cli.options import EngineName, Trials, at_least_one, chosen
from softstack.lab.cli.screen import say
from softstack.lab.explain import transducer_table
from softstack.lab.runs import store
from softstack.lab.sweeps.jobs import train_missing


def transducers(
    *,
    names: Annotated[list[str] | None, Parameter(name="--tasks", consume_multiple=True)] = None,
    runs: Path = Path("runs/table1"),
    trials: Trials = 10,
    engine: EngineName = "local",
    out: Path = Path("runs/transducers"),
) -> None:
    """Put compiled and trained networks side by side: accuracy by length, verdicts, extracted machines.

    Writes the page transducers.md, the numbers behind it in transducers.json, and drawings of the
    machines that training found. Trials that `--runs` has are loaded, the rest are trained and kept there.

    Parameters
    ----------
    names
        tasks of the paper; all six if not given
    runs
        where run directories are; that of `softstack table` by default
    out
        where the page goes; `--out docs` makes the page of the documentation
    """
    began = time.perf_counter()
    tasks = chosen("task of the paper", names, transducer_table.TASKS)
    seeds = range(at_least_one("--trials", trials))
    train_missing(runs, transducer_table.conditions(tasks), seeds, engine, say=say)
    rows: list[transducer_table.Row] = []
    pictures: dict[str, str] = {}  # by drawing: the same machine is shown once
    (out / "transducers").mkdir(parents=True, exist_ok=True)
    print("  ".join(transducer_table.HEADER), flush=True)
    for row, machine in transducer_table.rows(runs, seeds, tasks):
        rows.append(row)
        print("  ".join(transducer_table.cells(row)), flush=True)
        name, svg = transducer_table.picture(row, machine) or ("", "")
        if svg and svg not in pictures:
            store.write(out / "transducers" / name, svg)
            pictures[svg] = f"transducers/{name}"
    meta = {**store.provenance("cpu"), "seeds": list(seeds), "seconds": round(time.perf_counter() - began, 1)}
    store.write_json(out / "transducers.json", {**meta, "rows": rows})
    store.write(out / "transducers.md", transducer_table.page(rows, meta, [*pictures.values()]))
    print(f"Written: {out / 'transducers.md'}, and transducers.json beside it")
