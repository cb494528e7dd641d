"""`softstack runs`, `compare` and `reindex`: which runs there are, and how two conditions compare."""

import json
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.table import Table

from softstack.errors import BadInput
from softstack.lab.cli.options import Json, say_left_out
from softstack.lab.cli.screen import say, show
from softstack.lab.runs import compare as comparing
from softstack.lab.runs import disk, index, listing
from softstack.words import counted

Format = Literal["table", "csv", "json", "parquet"]


def runs(
    root: Path = Path("runs"),
    /,
    *,
    where: str | None = None,
    sort: str = "path",
    format: Format = "table",
    out: Path | None = None,
) -> None:
    """List results.

    softstack runs --where "task = 'parenthesis' and test > 0.99" --sort test

    softstack runs --where "controller in ('lstm', 'gru') and dev < 90%"

    Parameters
    ----------
    root
        where run directories are, or folders with them
    where
        which ones: names of columns (those of `--format csv`) compared with numbers, 'text', true or false by
        = != < <= > >= or in (...), put together by and, or, not and parentheses
    sort
        by which column; with a minus before it (--sort=-test) from the largest
    format
        table, csv, json or parquet
    out
        a file to write to; standard output if not given
    """
    with index.opened(root, say) as database:
        rows = [{**row, "path": str(root / row["path"])} for row in index.query(database, where, sort)]
        left_out = index.unreadable(database)
    say_left_out(root, left_out)
    if format == "table":
        if out:
            raise BadInput("--out needs --format csv, json or parquet")
        names = listing.told_apart(rows)
        screen = Table(*names)
        for row in rows:
            screen.add_row(*(listing.text(name, row[name]) for name in names))
        show(screen)
        print(counted(len(rows), "run"))
        return
    content = listing.FORMATS[format](rows)
    if out:
        disk.write(out, content)
    elif format == "parquet" and sys.stdout.isatty():
        raise BadInput("Parquet is not text: give --out FILE.parquet")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def compare(
    first: str,
    second: str,
    root: Path = Path("runs"),
    /,
    *,
    on: Literal["dev", "test"] = "test",
    threshold: float = 0.99,
    confidence: float = 0.95,
    as_json: Json = False,
) -> None:
    """Put two conditions side by side: medians, their difference, and how often a trial succeeds.

    softstack compare "controller = 'lstm'" "controller = 'gru'" runs/mine

    softstack compare "memory = 'stack'" "memory = 'none'" runs/table1

    Parameters
    ----------
    first
        a condition, by the name of its directory, or an expression as for `softstack runs --where`
    second
        another one
    root
        where run directories are
    on
        which accuracy: dev or test
    threshold
        above which a trial counts as a success
    confidence
        of the intervals
    """
    if not 0 <= threshold < 1:
        raise BadInput(f"--threshold must lie between 0 and 1, as 0.99 does; got {threshold}")
    if not 0 < confidence < 1:
        raise BadInput(f"--confidence must lie between 0 and 1; got {confidence}")
    sides = []
    with index.opened(root, say) as database:
        for text in (first, second):
            named = any(row["condition"] == text for row in index.query(database))
            rows = index.query(database, f"condition = '{text}'" if named else text)
            if not rows:
                raise BadInput(f"no run under {root} is {text}: `softstack runs {root}` lists them")
            sides.append([row[on] for row in rows])
        left_out = index.unreadable(database)
    say_left_out(root, left_out)
    comparison = comparing.compare(sides[0], sides[1], threshold, np.random.default_rng(0), confidence)
    if as_json:
        print(json.dumps({k: _nested(v) for k, v in comparison._asdict().items()}))
        return
    screen = Table(
        "", "trials", f"{on}: min / median / max", f"above {threshold:.1%}", f"{confidence:.0%} interval"
    )
    for name, side in ((first, comparison.first), (second, comparison.second)):
        accuracy = " / ".join(f"{x:.1%}" for x in (side.minimum, side.median, side.maximum))
        share, low, high = side.success
        screen.add_row(name, str(side.trials), accuracy, f"{share:.1%}", f"{low:.1%} to {high:.1%}")
    show(screen)
    value, low, high = (100 * x for x in comparison.difference)
    print(
        f"The second median lies {abs(value):.1f} points {'below' if value < 0 else 'above'} the first "
        f"({confidence:.0%} bootstrap interval: {low:+.1f} to {high:+.1f})."
    )


def _nested(value: Any) -> Any:
    return {k: _nested(v) for k, v in value._asdict().items()} if hasattr(value, "_asdict") else value


def reindex(root: Path = Path("runs"), /) -> None:
    """Make index.sqlite anew from the run directories, which are the truth.

    Parameters
    ----------
    root
        where run directories are
    """
    count, left_out = index.rebuild(root)
    for path, reason in left_out.items():
        say(f"{root / path} is left out: {reason}")
    unread = counted(len(left_out), "directory", "directories")
    print(f"{root / index.FILE}: {counted(count, 'run')}; {unread} cannot be read")
