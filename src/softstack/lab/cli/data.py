"""`softstack tasks` and `softstack sample`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from softstack.lab.cli.options import Whole, at_least_one, seeds, whole
from softstack.lab.cli.screen import say
from softstack.lab.tasks import TASKS, draw, find, shown, source_of, sources
from softstack.lab.tasks.data import UNSCORED, Split, write_tsv
from softstack.lab.training.draws import stream


def tasks() -> None:
    """List the tasks by the paper that they come from, their alphabets and an example of each."""
    for source in dict.fromkeys(map(source_of, TASKS.values())):
        print(f"--- {source or 'of plugins'}")
        for name, task in TASKS.items():
            if source_of(task) != source:
                continue
            symbols, target = shown(task)
            print(name)
            print(f"  symbols  {_some(task.inputs)}   targets  {_some(task.outputs)}")
            print(f"  input    {' '.join(symbols)}")
            print(f"  target   {' '.join(t or UNSCORED for t in target)}")


def _some(symbols: Sequence[str]) -> str:
    """Symbols, or a few of them where there are very many."""
    return " ".join(symbols if len(symbols) <= 16 else [*symbols[:3], "...", *symbols[-2:]])


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
        `softstack tasks` lists them; or a file with a pushdown transducer, FILE.pdt
    n
        how many
    split
        train, dev or test: whose distribution
    seed
        the same seed gives the same examples
    """
    rng = stream(seeds(seed)[0], split)
    if source := sources.read(task, Path()):
        for note in source.notes:
            say(note)
        task = source.task
    write_tsv(sys.stdout, draw(find(task), rng, at_least_one("-n", n), split))
