"""How far a string can be the beginning of a word of a grammar: Earley's recogniser.

Every nonterminal of a grammar can be reached and derives some string. So what has been read is the beginning
of a word for as long as some rule that may be under way wants the next symbol. `viewer/beginnings.js` is its
twin.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from softstack.formal.grammar import Grammar


class Item(NamedTuple):
    """A rule, and how many symbols of its body are read."""

    name: str
    body: tuple[str, ...]
    read: int

    @property
    def wanted(self) -> str:
        """The symbol of the body that comes next; "" where all is read."""
        return self.body[self.read] if self.read < len(self.body) else ""

    @property
    def further(self) -> "Item":
        return self._replace(read=self.read + 1)


Waiting = dict[str, dict[Item, int]]
"""By the symbol that they want, all items that may be under way at a place of the string. With each goes a
number whose bit j says that its rule may have begun after j symbols."""


def beginning(grammar: Grammar, symbols: Sequence[str]) -> int:
    """How many of the symbols, from the first one on, are the beginning of a word."""
    empty = _deriving_nothing(grammar)
    chart: list[Waiting] = []  # for each number of symbols read
    items = [(Item(grammar.start, body, 0), 1) for body in grammar.rules[grammar.start]]
    for place, symbol in enumerate(symbols):
        chart.append(_under_way(grammar, empty, chart, items))
        if symbol not in chart[-1]:
            return place
        items = [(item.further, begun) for item, begun in chart[-1][symbol].items()]
    return len(symbols)


def _under_way(
    grammar: Grammar, empty: set[str], chart: Sequence[Waiting], items: list[tuple[Item, int]]
) -> Waiting:
    """All that may be under way where these items are: what they want begins here, and where a rule is read
    to its end, those that waited for it go on."""
    waiting: Waiting = {}
    while items:
        item, begun = items.pop()
        waiters = waiting.setdefault(item.wanted, {})
        if not (begun := begun & ~waiters.get(item, 0)):
            continue
        waiters[item] = waiters.get(item, 0) | begun
        if item.wanted in grammar.rules:
            items += [(Item(item.wanted, body, 0), 1 << len(chart)) for body in grammar.rules[item.wanted]]
            if item.wanted in empty:
                items.append((item.further, begun))
        elif not item.wanted:
            for place in _bits(begun & ~(1 << len(chart))):  # one that begins here has read nothing
                items += [(one.further, since) for one, since in chart[place].get(item.name, {}).items()]
    return waiting


def _deriving_nothing(grammar: Grammar) -> set[str]:
    """The nonterminals that derive the empty string."""
    empty: set[str] = set()
    for _ in grammar.rules:
        empty |= {name for name, bodies in grammar.rules.items() if any(set(b) <= empty for b in bodies)}
    return empty


def _bits(number: int) -> Iterator[int]:
    while number:
        yield (lowest := number & -number).bit_length() - 1
        number ^= lowest
