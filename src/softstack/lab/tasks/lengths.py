"""Strings of the tasks at any length, for networks that are asked to go far beyond their training.

Grammars are sampled uniformly up to the lengths of §5 (`formal.sampling`). Here strings of thousands of
symbols are built in linear time, and their depth grows with their length.
"""

from collections.abc import Callable

import numpy as np

from softstack.errors import BadInput
from softstack.formal.running import walk
from softstack.lab import tasks
from softstack.lab.tasks.data import Example
from softstack.lab.tasks.transduction import Transduction

String = tuple[str, ...]


def bits(rng: np.random.Generator, length: int) -> String:
    return tuple("01"[b] for b in rng.integers(2, size=length))


def to_reverse(symbols: str) -> Callable[[np.random.Generator, int], String]:
    def half(rng: np.random.Generator, length: int) -> String:
        return tuple(symbols[k] for k in rng.integers(len(symbols), size=max(1, length // 2)))

    return half


def nests(rng: np.random.Generator, length: int) -> String:
    """§4.3: nests side by side, each of a depth that is uniform up to a quarter of the length."""
    string: list[str] = []
    while (left := (length - len(string)) // 2) > 0:
        deep = int(rng.integers(1, max(2, min(left, length // 4) + 1)))
        pairs = [("(", ")") if b else ("[", "]") for b in rng.integers(2, size=deep)]
        string += [a for a, _ in pairs] + [b for _, b in reversed(pairs)]
    return tuple(string)


def formula(rng: np.random.Generator, length: int) -> String:
    """§4.4: uniform over the shapes of formulas of this length, or one more: of the rotations of n values and
    n - 1 operators exactly one is a formula (the cycle lemma)."""
    n = length // 2 + 1
    values = np.array(["T", "F"])[rng.integers(2, size=n)]
    operators = np.array(["&", "|"])[rng.integers(2, size=n - 1)]
    string = rng.permutation(np.concatenate([values, operators]))
    height = np.cumsum(np.where(np.isin(string, ["T", "F"]), 1, -1))
    # begin behind the last lowest point: from there the height stays above 0
    lowest = len(height) - 1 - int(np.argmin(height[::-1]))
    return tuple(np.roll(string, -(lowest + 1)).tolist())


def sentence(rng: np.random.Generator, length: int) -> String:
    """§4.5: noun phrases within noun phrases, each kind of nesting as likely as the others."""
    front: list[str] = []
    back: list[str] = []
    plural = bool(rng.integers(2))
    back.append("have" if plural else "has")
    front += ["the", "lobsters" if plural else "lobster"]
    while len(front) + len(back) + 5 <= length:
        kind = rng.integers(3)
        aux = "have" if plural else "has"
        plural = bool(rng.integers(2))
        noun = ["the", "lobsters" if plural else "lobster"]
        if kind == 0:
            front += ["in", *noun]
        elif kind == 1:
            front += ["that", aux, "devoured", *noun]
        else:
            front += ["that", *noun]
            back += ["devoured", "have" if plural else "has"]
    return (*front, *reversed(back))


BUILDERS: dict[str, Callable[[np.random.Generator, int], String]] = {
    "reversal": to_reverse("01"),
    "selective_reversal": to_reverse("0123"),
    "xor": bits,
    "delayed_xor": bits,
    "parenthesis": nests,
    "formula": formula,
    "agreement": sentence,
}


def draw(task: str, rng: np.random.Generator, n: int, length: int) -> list[Example]:
    """n examples of about this many symbols, the #s of a reversal among them."""
    found = tasks.find(task)
    if isinstance(found, Transduction):
        words = [walk(found.machine, rng, length) for _ in range(n)]
        made = [found.example(word) for word in words if word]
        if not made:
            raise BadInput(f"the machine of {found.name} reads nothing: there are no strings of any length")
        return made
    return [found.example(BUILDERS[task](rng, length)) for _ in range(n)]
