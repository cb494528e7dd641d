"""A PDT run symbol by symbol, in time that does not grow with its stack, and random words that it reads.

`Transducer.steps` is the definition, and keeps every configuration; this keeps one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from softstack.formal.transducer import BOTTOM, Rule, Transducer


@dataclass
class Live:
    """A machine in the middle of an input. `pushed_at` says which input symbol each symbol came with."""

    machine: Transducer
    state: str = ""
    stack: list[str] = field(default_factory=lambda: [BOTTOM])
    pushed_at: list[int] = field(default_factory=lambda: [-1])
    position: int = 0  # symbols read
    look: tuple[int, int] | None = None
    """Of the last rule that wrote: the height of the stack, and how many symbols ago what it looked at there
    was pushed, 0 if it looked at nothing."""

    def __post_init__(self) -> None:
        self.state = self.state or self.machine.start

    def settle(self) -> tuple[str, ...]:
        """Make the ε-moves that are due: what they write. The machine must have no endless ones."""
        written: tuple[str, ...] = ()
        while (rule := self.machine.enabled(self.state, "", self.stack[-1])) is not None:
            self._make(rule)
            written += rule.write
        return written

    def feed(self, symbol: str) -> tuple[str, ...] | None:
        """Read a symbol where no ε-move is due, and settle: what is written, or None where it is stuck."""
        rule = self.machine.enabled(self.state, symbol, self.stack[-1])
        if rule is None:
            return None
        self.position += 1
        self._make(rule)
        return rule.write + self.settle()

    def readable(self) -> tuple[str, ...]:
        """The symbols that can be read here."""
        alphabet = self.machine.alphabet
        return tuple(x for x in alphabet if self.machine.enabled(self.state, x, self.stack[-1]) is not None)

    def wander(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Read at most so many random symbols, each uniform over those that can be read there."""
        word: list[str] = []
        while len(word) < length and (choices := self.readable()):
            word.append(choices[rng.integers(len(choices))])
            self.feed(word[-1])
        return tuple(word)

    def copy(self) -> "Live":
        return Live(self.machine, self.state, self.stack[:], self.pushed_at[:], self.position)

    def _make(self, rule: Rule) -> None:
        if rule.write:
            ago = self.position - 1 - self.pushed_at[-1] if rule.pop and rule.pop != BOTTOM else 0
            self.look = (len(self.stack) - 1, ago)
        keep = bool(rule.pop) and rule.push[:1] == (rule.pop,)
        if rule.pop and not keep:
            self.stack.pop()
            self.pushed_at.pop()
        new = rule.push[1:] if keep else rule.push
        self.stack.extend(new)
        self.pushed_at.extend([self.position - 1] * len(new))
        self.state = rule.next


def transduced(machine: Transducer, word: Iterable[str]) -> list[tuple[str, ...]]:
    """What is written at each symbol, as far as the machine reads; what comes before the first is with it."""
    live = Live(machine)
    before = live.settle()
    outputs: list[tuple[str, ...]] = []
    for symbol in word:
        written = live.feed(symbol)
        if written is None:
            break
        outputs.append(before + written)
        before = ()
    return outputs or ([before] if before else [])


def looks(machine: Transducer, word: Iterable[str]) -> list[tuple[int, int]]:
    """For each symbol, as far as the machine reads: how deep the stack was where it last wrote, and how long
    ago what it looked at there had been pushed."""
    live = Live(machine)
    live.settle()
    places: list[tuple[int, int]] = []
    for symbol in word:
        if live.feed(symbol) is None:
            break
        places.append(live.look or (0, 0))
    return places


def walk(machine: Transducer, rng: np.random.Generator, length: int) -> tuple[str, ...]:
    """A random word of at most `length` symbols, each uniform over those that the machine can read there."""
    live = Live(machine)
    live.settle()
    return live.wander(rng, length)


def deep_walk(machine: Transducer, rng: np.random.Generator, length: int) -> tuple[str, ...]:
    """A random word that fills the stack and empties it again.

    It rises for a while and falls for a while, by turns: of the symbols that can be read, most often one that
    changes the height of the stack accordingly, and now and then one that leaves it and tells what lies on
    top. States from which no rule that looks at the stack can be reached, such as those for errors, are
    avoided.
    """
    useful, telling = _looking_ahead(machine), _telling(machine)
    live = Live(machine)
    live.settle()
    word: list[str] = []
    rising, turn = True, int(rng.integers(1, 2 + length // 3))
    while len(word) < length and (choices := live.readable()):
        if len(word) >= turn:
            rising, turn = not rising, len(word) + int(rng.integers(1, 2 + length // 3))
        rules = {x: machine.enabled(live.state, x, live.stack[-1]) for x in choices}
        growth = {x: len(r.push) - bool(r.pop) for x, r in rules.items() if r and r.next in useful}
        asks = tuple(x for x, n in growth.items() if n == 0 and (live.state, x) in telling)
        if asks and rng.random() < 0.3:
            choices = asks
        elif growth and rng.random() < 0.85:
            best = (max if rising else min)(growth.values())
            choices = tuple(x for x, n in growth.items() if n == best)
        elif growth:
            choices = tuple(growth)
        word.append(choices[rng.integers(len(choices))])
        live.feed(word[-1])
    return tuple(word)


def _looking_ahead(machine: Transducer) -> set[str]:
    """The states from which some path of rules leads to one that looks at a symbol on the stack."""
    states = {rule.state for rule in machine.rules if rule.pop and rule.pop != BOTTOM}
    while more := {rule.state for rule in machine.rules if rule.next in states} - states:
        states |= more
    return states


def _telling(machine: Transducer) -> set[tuple[str, str]]:
    """States and symbols of which what is written there, or where that leads, depends on the stack's top."""
    answers: dict[tuple[str, str], set[tuple[tuple[str, ...], str]]] = {}
    for rule in machine.rules:
        if rule.read:
            answers.setdefault((rule.state, rule.read), set()).add((rule.write, rule.next))
    return {place for place, different in answers.items() if len(different) > 1}
