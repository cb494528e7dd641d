"""Words for messages."""


def counted(number: int, noun: str, several: str = "") -> str:
    """`1 run`, `2 runs`; `several` is for nouns that do not just take an s."""
    return f"{number} {noun if number == 1 else several or noun + 's'}"
