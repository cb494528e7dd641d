"""What commands print beside their own lines."""

import sys

from rich.console import Console


def say(sentence: str) -> None:
    """A sentence beside the output."""
    errors = Console(stderr=True)
    errors.print(f"softstack: {sentence}", markup=False, highlight=False, soft_wrap=True)


def wide() -> Console:
    """Standard output; wide where it is not a terminal."""
    return Console(width=None if sys.stdout.isatty() else 200)
