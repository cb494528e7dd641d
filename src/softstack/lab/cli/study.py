"""`softstack study`."""

import os
from pathlib import Path

import torch

from softstack.lab.cli.options import Names, Whole, at_least_one, chosen
from softstack.lab.explain import mechanism, study_figures
from softstack.lab.runs import store
from softstack.lab.training import recipes
from softstack.lab.training import study as cells


def study(names: Names = None, /, *, processes: Whole = 0, out: Path = Path("runs/study")) -> None:
    """Find out what the recipe of `softstack solve` depends on, one of its numbers at a time.

    Trains 64 single LSTMs for each value of the reset rate, the noise, the steps, the training strings, and
    the widths of stack and controller: study.jsonl has their accuracies, study.png draws them. Then it
    follows eight networks along their training, with resets and without, and measures where they keep what
    their answers need: mechanism.json and mechanism.png. Hours on two cores, ten minutes on a large GPU. Stop
    it at any time and run it again: what is finished is kept.

    Parameters
    ----------
    names
        reversal, parenthesis, formula or agreement; all if not given
    processes
        how many cells are trained at a time; as many as there are cores if not given
    out
        where the files go
    """
    tasks = chosen("task of the study", names, recipes.HARD)
    file, count = out / "study.jsonl", at_least_one("--processes", processes or os.cpu_count() or 1)
    for name in cells.run(file, cells.cells(tasks), count):
        print(f"trained: {name}", flush=True)
    lines = [line for line in cells.read(file) if line["condition"]["task"] in tasks]
    store.write(out / "study.png", study_figures.success(lines))
    moments = [line for task in tasks for line in mechanism.along(task)]
    store.write_json(out / "mechanism.json", moments)
    store.write(out / "mechanism.png", study_figures.needs(moments))
    where = store.provenance("cuda" if torch.cuda.is_available() else "cpu")
    store.write_json(out / "meta.json", {**where, "mechanism_commit": where["commit"]})
    print(f"Written: {file}, study.png, mechanism.json and mechanism.png")
