"""What commands print beside their own lines."""

import sys

from rich.console import Console
from rich.table import Table

MOST_WIDTH = 2000


def say(sentence: str) -> None:
    """A sentence beside the output."""
    errors = Console(stderr=True)
    errors.print(f"softstack: {sentence}", markup=False, highlight=False, soft_wrap=True)


def wide() -> Console:
    """Standard output; wide where it is not a terminal."""
    return Console(width=None if sys.stdout.isatty() else 200)


def show(table: Table) -> None:
    """A table on standard output, as wide as it is: no path in it is cut, so that it can be pasted."""
    screen = Console()
    needed = screen.measure(table, options=screen.options.update(width=MOST_WIDTH)).maximum
    Console(width=max(needed, screen.width if sys.stdout.isatty() else 0)).print(table)
