"""The one exception for what a person got wrong: what was given, what is accepted, what to do."""

import difflib
from collections.abc import Iterable


class BadInput(ValueError):
    """Something given is not acceptable. The message is one sentence made to be shown as it is."""


def install(extra: str) -> str:
    """How to get what a part of softstack needs; softstack_command/advice.py says the same."""
    return f"pip install 'softstack[{extra}]', or in a checkout pip install '.[{extra}]'"


def unknown(kind: str, name: str, accepted: Iterable[str]) -> BadInput:
    """A name that is not in a registry: names the nearest right one and lists the rest."""
    names = list(accepted)
    by_letters = {right.lower(): right for right in names}
    near = difflib.get_close_matches(name.lower(), by_letters, n=1, cutoff=0.5)
    hint = f"did you mean {by_letters[near[0]]!r}? " if near else ""
    return BadInput(f"unknown {kind} {name!r}: {hint}accepted: {', '.join(names)}")
