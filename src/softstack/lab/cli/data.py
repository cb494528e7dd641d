"""`softstack tasks` and `softstack sample`."""

import sys
from typing import Annotated

import numpy as np
from cyclopts import Parameter

from softstack.lab.cli.options import Whole, at_least_one, not_negative, whole
from softstack.lab.tasks import TASKS, draw, find
from softstack.lab.tasks.data import Split, write_tsv
from softstack.lab.training.draws import stream


def tasks() -> None:
    """List the tasks, their alphabets and an example of each."""
    for name, task in TASKS.items():
        symbols, target = draw(task, np.random.default_rng(0), 1, "train")[0]
        print(name)
        print(f"  symbols  {' '.join(task.inputs)}   targets  {' '.join(task.outputs)}")
        print(f"  input    {' '.join(symbols)}")
        print(f"  target   {' '.join(t or '_' for t in target)}")


def sample(
    task: str,
    /,
    *,
    n: Annotated[int, Parameter(name=["-n", "--n"], converter=whole)] = 10,
    split: Split = "train",
    seed: Whole = 0,
) -> None:
    """Write examples of a task as TSV, as `softstack evaluate --data` reads it.

    softstack sample parenthesis -n 1000 --split test > mine.tsv

    Parameters
    ----------
    task
        `softstack tasks` lists them
    n
        how many
    split
        train, dev or test: whose distribution
    seed
        the same seed gives the same examples
    """
    rng = stream(not_negative("--seed", seed), split)
    write_tsv(sys.stdout, draw(find(task), rng, at_least_one("-n", n), split))
