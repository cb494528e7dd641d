"""What commands print beside their own lines."""

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from softstack.words import shown

MOST_WIDTH = 2000


def say(sentence: str) -> None:
    """A sentence beside the output."""
    errors = Console(stderr=True, markup=False, emoji=False)
    errors.print(f"softstack: {shown(sentence)}", highlight=False, soft_wrap=True)


def wide() -> Console:
    """Standard output; wide where it is not a terminal. Brackets and colons in names are just that."""
    return Console(width=None if sys.stdout.isatty() else 200, markup=False, emoji=False)


def print_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """On standard output."""
    screen = Table(*header)
    for cells in lines:
        screen.add_row(*cells)
    wide().print(screen)


def show(table: Table) -> None:
    """A table on standard output, as wide as it is: no path in it is cut, so that it can be pasted."""
    screen = Console(markup=False, emoji=False)
    needed = screen.measure(table, options=screen.options.update(width=MOST_WIDTH)).maximum
    width = max(needed, screen.width if sys.stdout.isatty() else 0)
    Console(width=width, markup=False, emoji=False).print(table)
