"""`softstack equal`."""

import sys
from pathlib import Path

from softstack.lab.cli.options import opened
from softstack.lab.explain import compiled, equality
from softstack.lab.runs import store

CODES = {"equal": 0, "different": 1, "undecided": 3}


def equal(first: str, second: str, /, *, within_first: bool = False) -> None:
    """Say whether two machines or networks say the same: equal, different, or undecided.

    Of a network the machine that `softstack extract` reads off it is compared; it is equal to nothing where
    some new strings did not agree with that machine. Exact for machines whose stacks rise and fall together,
    visibly pushdown ones among them. Exits with 0 if they are equal, 1 if they are different, and 3 if that
    is undecided.

    softstack equal parenthesis mine.pdt

    softstack equal reversal RUN_DIR

    Parameters
    ----------
    first
        the name of a task, a file with a machine, or the directory of a trial
    second
        the same
    within_first
        compare only on inputs that the first can read
    """
    parties = [_party(name) for name in (first, second)]
    for name, party in zip((first, second), parties, strict=True):
        if party.note:
            print(f"{name}: {party.note}")
    answer = equality.equal(*parties, within_first=within_first)
    print(answer)
    sys.exit(CODES[answer.answer])


def _party(name: str) -> equality.Party:
    if Path(name).is_dir():
        run = opened(Path(name))
        return equality.network_party(store.network(run), run.condition, run.seed)
    return equality.Party(compiled.find(name)[0])
