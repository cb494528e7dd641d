"""Words for messages."""

from collections.abc import Sequence


def counted(number: int, noun: str, several: str = "") -> str:
    """`1 run`, `2 runs`; `several` is for nouns that do not just take an s."""
    return f"{number} {noun if number == 1 else several or noun + 's'}"


def of_seeds(seeds: Sequence[int]) -> str:
    """`seed 0`, `seeds 0 to 9`; they follow each other."""
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def shown(text: str) -> str:
    """Text as a terminal can show it: control characters, and bytes that are not UTF-8, are written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
