"""§4-5: exact counts of a grammar's derivations and strings, and uniform samples of either.

Depth is nltk's: a terminal has depth 1 and a tree is one deeper than its deepest child, so depth 6 means at
most 5 nested levels of nonterminals (and an ε node, which has no child, counts as a terminal does).

    >>> count_derivations(parenthesis, depth=6), count_strings(parenthesis, depth=6)
    (51270, 31466)

A sample over derivations is an unranking: draw an integer below their number, and let quotients and
remainders choose the rules. A sample over distinct strings keeps such a draw with probability exactly one in
the number of the string's derivations. What makes that fast is tabulation: as long as a nonterminal has few
strings within a depth, they are listed once with their numbers of derivations, and looked up from then on.
"""

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, count
from typing import NamedTuple

import numpy as np

from softstack.errors import BadInput
from softstack.formal.grammar import NOTHING, Alternative, BinaryForm, Grammar

String = tuple[str, ...]

TABLE_BUDGET = 1 << 17  # concatenations spent on tables before sampling: some 50 ms
ENUMERATION_BUDGET = 1 << 22  # concatenations before an enumeration is refused: some seconds and 500 MB
MAX_BITS = 1 << 20  # of a number of derivations; strings drawn from more would have some 10^6 symbols
PATIENCE = 20_000  # derivations drawn for one string kept, before a uniform sample of strings is given up

_FAR = 1 << 62  # the shortest length of what has no string


def count_derivations(grammar: Grammar, depth: int) -> int:
    """The number of derivation trees of at most this depth."""
    return _by_depth(grammar).ways(_whole("depth", depth))[0]


def count_derivations_of_length(grammar: Grammar, length: int) -> int:
    """The number of derivation trees whose string has exactly this length."""
    length = _whole("length", length)
    return _by_length(grammar).ways(length)[0] if length >= 0 else 0


def count_strings(grammar: Grammar, depth: int) -> int:
    """The number of distinct strings of at most this depth, found by listing them all."""
    return len(_table_of_start(grammar, depth))


def enumerate_strings(grammar: Grammar, depth: int) -> Iterator[String]:
    """The distinct strings of at most this depth: shorter first, then in the order of `grammar.terminals`."""
    table = _table_of_start(grammar, depth)
    return (_decoded(grammar, w) for w in sorted(sorted(table), key=len))


def derivations(grammar: Grammar, string: Sequence[str], depth: int | None = None) -> int:
    """The number of derivations of one string, of at most `depth` where it is given; 0 if it has none."""
    letters = BinaryForm.of(grammar).letters
    if not all(symbol in letters for symbol in string):
        return 0
    w = "".join(letters[symbol] for symbol in string)
    return _by_length(grammar).derivations(w) if depth is None else _by_depth(grammar).derivations(w, depth)


def sample_derivations(grammar: Grammar, rng: np.random.Generator, n: int, depth: int) -> list[String]:
    """The strings of n derivations, uniform over the derivation trees of at most this depth."""
    counts, depth, total = _counts_at_depth(grammar, depth)
    return [_decoded(grammar, counts.unrank(depth, randbelow(rng, total))) for _ in range(_size(n))]


def sample_strings(grammar: Grammar, rng: np.random.Generator, n: int, depth: int) -> list[String]:
    """n strings, drawn with replacement, uniform over the distinct strings of at most this depth."""
    counts, depth, total = _counts_at_depth(grammar, depth)
    listing = counts.listing(0, depth)
    if listing is not None:
        strings = listing[0]
        return [_decoded(grammar, strings[randbelow(rng, len(strings))]) for _ in range(_size(n))]
    kept = _thinned(
        rng,
        _size(n),
        lambda: counts.unrank(depth, randbelow(rng, total)),
        lambda w: counts.derivations(w, depth),
    )
    return [_decoded(grammar, w) for w in kept]


def sample_of_length(
    grammar: Grammar, rng: np.random.Generator, n: int, length: int, *, distinct: bool = True
) -> list[String]:
    """n strings of exactly this length, uniform over distinct strings, or over their derivations."""
    length = _whole("length", length)
    total = count_derivations_of_length(grammar, length)
    counts = _by_length(grammar)
    if not total:
        raise BadInput(f"no string has length {length}: the nearest that one has is {counts.nearest(length)}")
    draw = lambda: counts.unrank(length, randbelow(rng, total))  # noqa: E731
    kept = _thinned(rng, _size(n), draw, counts.derivations) if distinct else [draw() for _ in range(_size(n))]
    return [_decoded(grammar, w) for w in kept]


def randbelow(rng: np.random.Generator, n: int) -> int:
    """An integer uniform over 0 ... n - 1, however large n is."""
    bits = (n - 1).bit_length()
    size = (bits + 7) // 8
    while bits:
        draw = int.from_bytes(rng.bytes(size), "little") >> (8 * size - bits)
        if draw < n:
            return draw
    return 0


def _thinned(
    rng: np.random.Generator, n: int, draw: Callable[[], str], derivations: Callable[[str], int]
) -> list[str]:
    """n strings, uniform where draws are uniform over derivations: each kept once in its derivations."""
    kept: list[str] = []
    draws = 0
    while len(kept) < n:
        w = draw()
        draws += 1
        if not randbelow(rng, derivations(w)):
            kept.append(w)
        elif draws > PATIENCE * (len(kept) + 1):
            raise BadInput(
                f"the grammar is too ambiguous: of {draws:,} derivations drawn {len(kept):,} could be kept for a"
                " uniform sample of strings; ask for shorter strings, or write an unambiguous grammar"
            )
    return kept


class _Level(NamedTuple):
    """What each node derives within one depth, NOTHING last."""

    shortest: list[int]
    longest: list[int]  # -1 where there is no string
    tables: list[dict[str, int] | None]  # string -> number of derivations; None where there are too many


class _ByDepth:
    """Counts by depth, computed once a depth, from the smallest up."""

    def __init__(self, form: BinaryForm, budget: int) -> None:
        self.form = form
        self._budget = budget
        self._ways: dict[int, list[int]] = {}
        self._levels: dict[int, _Level] = {}
        self._listings: dict[tuple[int, int], tuple[list[str], list[int]]] = {}

    def ways(self, depth: int) -> list[int]:
        """The number of derivations from each node within a depth."""
        for d in range(len(self._ways), depth + 1):
            row = [0] * len(self.form.nodes) + [1]
            for node, body in enumerate(self.form.nodes if d else ()):
                below = d - (node < len(self.form.names))
                under = self._ways.get(below, row)
                row[node] = sum(under[a.x] * under[a.y] for a in body if below or not a.size)
                if row[node].bit_length() > MAX_BITS:
                    raise BadInput(f"depth {d} has more than 2^{MAX_BITS} derivations: ask for a smaller depth")
            self._ways[d] = row
        return self._ways[max(depth, 0)]

    def level(self, depth: int) -> _Level:
        for d in range(len(self._levels), depth + 1):
            size = len(self.form.nodes)
            level = _Level([_FAR] * size + [0], [-1] * size + [0], [*({} for _ in range(size)), {"": 1}])
            for node, body in enumerate(self.form.nodes if d else ()):
                below = d - (node < len(self.form.names))
                under = self._levels.get(below, level)
                able = [
                    a
                    for a in body
                    if (below or not a.size) and max(under.shortest[a.x], under.shortest[a.y]) < _FAR
                ]
                if able:
                    level.shortest[node] = min(a.size + under.shortest[a.x] + under.shortest[a.y] for a in able)
                    level.longest[node] = max(a.size + under.longest[a.x] + under.longest[a.y] for a in able)
                    level.tables[node] = self._tabulated(able, under.tables)
            self._levels[d] = level
        return self._levels[max(depth, 0)]

    def _tabulated(
        self, body: list[Alternative], tables: list[dict[str, int] | None]
    ) -> dict[str, int] | None:
        parts = []
        for a in body:
            first, second = tables[a.x], tables[a.y]
            if first is None or second is None:
                return None
            parts.append((a, first, second))
        cost = sum(len(first) * len(second) for _, first, second in parts)
        if cost > self._budget:
            return None
        self._budget -= cost
        table: dict[str, int] = {}
        for a, first, second in parts:
            for left, p in first.items():
                head = a.before + left + a.between
                for right, q in second.items():
                    w = head + right + a.after
                    table[w] = table.get(w, 0) + p * q
        return table

    def listing(self, node: int, depth: int) -> tuple[list[str], list[int]] | None:
        """A table's strings, and for each the number of derivations up to and with its own."""
        known = self._listings.get((node, depth))
        if known is None and (table := self.level(depth).tables[node]) is not None:
            known = self._listings[node, depth] = list(table), list(accumulate(table.values()))
        return known

    def unrank(self, depth: int, r: int) -> str:
        """The string of derivation number r of those within a depth."""

        def step(node: int, depth: int, r: int) -> tuple[_Piece, ...]:
            listing = self.listing(node, depth)
            if listing is not None:
                return (listing[0][bisect_right(listing[1], r)],)
            below = depth - (node < len(self.form.names))
            ways = self._ways[below]
            for a in self.form.nodes[node]:
                here = ways[a.x] * ways[a.y] if below or not a.size else 0
                if r < here:
                    rx, ry = divmod(r, ways[a.y])
                    return a.before, (a.x, below, rx), a.between, (a.y, below, ry), a.after
                r -= here
            raise AssertionError("a rank is below the number of derivations")

        self.ways(depth)
        return _unranked((0, depth, r), step)

    def derivations(self, w: str, depth: int) -> int:
        if not self.form.loop:  # nested nodes with the same string are all different: no tree is deeper
            depth = min(depth, len(self.form.names) * (len(w) + 1) + 1)
        table = self.level(depth).tables[0]
        if table is not None:
            return table.get(w, 0)
        return _parses(self.form, w, range(len(self.form.nodes)), self._levels, depth)


class _ByLength:
    """Counts by length, computed once a length, from the smallest up."""

    def __init__(self, form: BinaryForm) -> None:
        if form.loop:
            raise BadInput(
                f"{form.loop} derives itself, so strings have endless derivations: give a depth, not a length,"
                " or remove the unit or empty rules that lead back to it"
            )
        self.form = form
        self._rows: dict[int, list[int]] = {}

    def ways(self, length: int) -> list[int]:
        """The number of derivations from each node of strings of a length."""
        for n in range(len(self._rows), length + 1):
            row = [0] * len(self.form.nodes) + [int(n == 0)]
            rows = {**self._rows, n: row}
            for node in self.form.order:
                row[node] = sum(here for *_, here in _splits(self.form.nodes[node], n, rows))
            self._rows = rows
        return self._rows[length]

    def unrank(self, length: int, r: int) -> str:
        """The string of derivation number r of those of a length."""

        def step(node: int, length: int, r: int) -> tuple[_Piece, ...]:
            for a, k, rest, here in _splits(self.form.nodes[node], length, self._rows):
                if r < here:
                    rx, ry = divmod(r, self._rows[rest][a.y])
                    return a.before, (a.x, k, rx), a.between, (a.y, rest, ry), a.after
                r -= here
            raise AssertionError("a rank is below the number of derivations")

        self.ways(length)
        return _unranked((0, length, r), step)

    def derivations(self, w: str) -> int:
        shortest = _ByDepth(self.form, 0).level(len(self.form.names) + 1).shortest
        size = len(self.form.nodes)
        level = _Level(shortest, [_FAR] * size + [0], [*(None for _ in range(size)), {"": 1}])
        return _parses(self.form, w, self.form.order, {0: level}, None)

    def nearest(self, length: int) -> str:
        """The lengths nearest to one that has no string, in words."""
        shortest = next(n for n in count() if self.ways(n)[0])
        if length < shortest:
            return str(shortest)
        below = next(n for n in range(length, -1, -1) if self.ways(n)[0])
        above = next((n for n in range(length, length + 64) if self.ways(n)[0]), None)
        return str(below) if above is None else f"{below} or {above}"


_Piece = str | tuple[int, int, int]  # text, or the node, measure and rank of a derivation still to be written


def _splits(
    body: tuple[Alternative, ...], length: int, rows: dict[int, list[int]]
) -> Iterator[tuple[Alternative, int, int, int]]:
    """Each alternative with the lengths of its x and y, and its number of derivations at those."""
    for a in body:
        free = length - a.size
        for k in range(free if a.y == NOTHING else 0, free + 1):
            if k >= 0 and (here := rows[k][a.x] * rows[free - k][a.y]):
                yield a, k, free - k, here


def _unranked(root: _Piece, step: Callable[[int, int, int], tuple[_Piece, ...]]) -> str:
    out: list[str] = []
    stack = [root]
    while stack:
        piece = stack.pop()
        if isinstance(piece, str):
            out.append(piece)
        elif piece[0] != NOTHING:
            stack.extend(reversed(step(*piece)))
    return "".join(out)


_State = tuple[int, int, int, int]


def _parses(
    form: BinaryForm, w: str, order: Sequence[int], levels: Mapping[int, _Level], depth: int | None
) -> int:
    """The number of derivations of w: by depth with a level for each, or at any depth with the one level 0.

    A state is a grade, the rank of a node in `order`, and a stretch of w. The grade is the depth left or, at
    any depth, the stretch's length; either way what a state needs sorts before it. States are found from
    the whole string down and their numbers summed from the smallest up, so nothing here recurses.
    """
    rank = {node: k for k, node in enumerate(order)}
    cuts: dict[int, list[int]] = {}
    sums: dict[_State, list[tuple[int, _State | None, _State | None]]] = {}
    agenda: list[_State] = [(len(w) if depth is None else depth, rank[0], 0, len(w))]
    for state in agenda:  # grows as it is read
        if state in sums:
            continue
        grade, place, start, end = state
        node = order[place]
        below = 0 if depth is None else grade - (node < len(form.names))
        shortest, longest, tables = levels[below]
        terms = sums[state] = []
        for a in form.nodes[node]:
            before, x, between, y, after, size, cut = a
            i, k = start + len(before), end - len(after) - len(between)
            low = max(i + shortest[x], k - longest[y])
            high = min(i + longest[x], k - shortest[y])
            if low > high or not (w.startswith(before, start) and w.endswith(after, 0, end)):
                continue
            if size and not below and depth is not None:
                continue
            if y == NOTHING:
                meets = [low]
            else:
                meets = cuts.get(id(a))
                if meets is None:
                    meets = cuts[id(a)] = [m.start() for m in cut.finditer(w)]
                meets = meets[bisect_left(meets, low) : bisect_right(meets, high)]
            first, second = tables[x], tables[y]
            for m in meets:
                number = 1
                p = q = None
                if first is not None:
                    number = first.get(w[i:m], 0)
                    if not number:
                        continue
                if second is not None:
                    number *= second.get(w[m + len(between) : k + len(between)], 0)
                    if not number:
                        continue
                if first is None:
                    p = (m - i if depth is None else below, rank[x], i, m)
                    agenda.append(p)
                if second is None:
                    q = (k - m if depth is None else below, rank[y], m + len(between), k + len(between))
                    agenda.append(q)
                terms.append((number, p, q))
    totals: dict[_State, int] = {}
    for state in sorted(sums):
        total = 0
        for number, p, q in sums[state]:
            if p is not None:
                number *= totals[p]
            if q is not None:
                number *= totals[q]
            total += number
        totals[state] = total
    return totals[agenda[0]]


@lru_cache(maxsize=32)
def _by_depth(grammar: Grammar) -> _ByDepth:
    return _ByDepth(BinaryForm.of(grammar), TABLE_BUDGET)


@lru_cache(maxsize=32)
def _by_length(grammar: Grammar) -> _ByLength:
    return _ByLength(BinaryForm.of(grammar))


def _table_of_start(grammar: Grammar, depth: int) -> dict[str, int]:
    depth = _whole("depth", depth)
    table = _by_depth(grammar).level(depth).tables[0]
    if table is None:
        table = _ByDepth(BinaryForm.of(grammar), ENUMERATION_BUDGET).level(depth).tables[0]
    if table is None:
        raise BadInput(f"depth {depth} has too many strings to list: ask for a smaller depth, or for a sample")
    return table


def _counts_at_depth(grammar: Grammar, depth: int) -> tuple[_ByDepth, int, int]:
    depth = _whole("depth", depth)
    counts = _by_depth(grammar)
    total = counts.ways(depth)[0]
    if not total:
        least = next(d for d in count(1) if counts.ways(d)[0])
        raise BadInput(f"no string has depth {depth} or less: the smallest depth that has one is {least}")
    return counts, depth, total


def _decoded(grammar: Grammar, w: str) -> String:
    return tuple([grammar.terminals[ord(letter)] for letter in w])


def _whole(what: str, value: int) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise BadInput(f"{what} is {value!r}: give a whole number") from None


def _size(n: int) -> int:
    n = _whole("n", n)
    if n < 0:
        raise BadInput(f"n is {n}: ask for 0 strings or more")
    return n
