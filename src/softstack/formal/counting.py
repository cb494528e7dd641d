"""Tables of a grammar: derivations by depth or length, and the strings of nonterminals that have few."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from softstack.errors import BadInput
from softstack.formal.grammar import NOTHING, Alternative, BinaryForm

MAX_BITS = 1 << 20  # of a number of derivations; strings drawn from more would have some 10^6 symbols
FAR = 1 << 62  # stands for the shortest length where there is no string, the longest where there is no limit


class Counts:
    """How many derivations each node has: trees of at most a depth, or those of strings of just a length."""

    def __init__(self, form: BinaryForm, by_length: bool) -> None:
        if by_length and form.loop:
            raise BadInput(
                f"{form.loop} derives itself, so a string can have endless derivations: give a depth (not a"
                " length), or remove the unit and empty rules that lead back to it"
            )
        self._form = form
        self._by_length = by_length
        self._order = form.order if by_length else range(len(form.nodes))
        self._rows: dict[int, list[int]] = {}
        self._lengths: dict[int, list[float]] = {}
        self._ways_of: dict[tuple[int, int], list[tuple[Alternative, int, int, int]]] = {}

    def row(self, measure: int) -> list[int]:
        """The number for each node, NOTHING last, at one depth or length."""
        for m in range(len(self._rows), measure + 1):
            row = [0] * len(self._form.nodes) + [int(m == 0 or not self._by_length)]
            rows = {**self._rows, m: row}
            for node in self._order:
                row[node] = sum(number for *_, number in self._ways(node, m, rows))
            if max(row).bit_length() > MAX_BITS:
                what = "length" if self._by_length else "depth"
                raise BadInput(f"{what} {m} has more than 2^{MAX_BITS} derivations: ask for a smaller {what}")
            self._rows[m] = row
        return self._rows[measure]

    def _ways(
        self, node: int, measure: int, rows: dict[int, list[int]]
    ) -> Iterator[tuple[Alternative, int, int, int]]:
        """Alternatives with a measure for x and one for y, and how many derivations go that way."""
        below = measure - (node < len(self._form.names))
        for a in self._form.nodes[node]:
            if self._by_length:
                free = measure - a.size
                lengths = range(max(free, 0) if a.y == NOTHING else 0, free + 1)
                measures = [(k, free - k) for k in lengths]
            else:
                measures = [(below, below)] if fits(a, below) else []
            for mx, my in measures:
                if number := rows[mx][a.x] * rows[my][a.y]:
                    yield a, mx, my, number

    def lengths(self, depth: int) -> list[float]:
        """The mean length of each node's derivations within a depth; 0 where it has none."""
        self.row(depth)
        for d in range(len(self._lengths), depth + 1):
            row = [0.0] * (len(self._form.nodes) + 1)
            lengths = {**self._lengths, d: row}
            for node in self._order:
                row[node] = sum(
                    number / self._rows[d][node] * (a.size + lengths[below][a.x] + lengths[below][a.y])
                    for a, below, _, number in self._ways(node, d, self._rows)
                )
            self._lengths[d] = row
        return self._lengths[depth]

    def unrank(
        self, measure: int, r: int, listing: "Callable[[int, int], Listing | None] | None" = None
    ) -> str:
        """The string of derivation r, by the tables' order of derivations where there is a table."""
        self.row(measure)
        out: list[str] = []
        stack: list[str | tuple[int, int, int]] = [(0, measure, r)]
        while stack:
            piece = stack.pop()
            if isinstance(piece, str):
                out.append(piece)
                continue
            node, measure, r = piece
            if node == NOTHING:
                continue
            if listing and (block := listing(node, measure)):
                out.append(block.strings[bisect_right(block.up_to, r)])
                continue
            ways = self._ways_of.get((node, measure))
            if ways is None:
                ways = list(self._ways(node, measure, self._rows))
                if len(ways) < 100:  # by length there are as many as places to cut: too many to keep
                    self._ways_of[node, measure] = ways
            for a, mx, my, number in ways:
                if r < number:
                    rx, ry = divmod(r, self._rows[my][a.y])
                    stack += (a.after, (a.y, my, ry), a.between, (a.x, mx, rx), a.before)
                    break
                r -= number
        return "".join(out)


class Listing(NamedTuple):
    strings: list[str]
    up_to: list[int]  # the number of derivations of the strings up to and with each


class Level(NamedTuple):
    """What each node, NOTHING last, derives within one depth."""

    shortest: list[int]
    longest: list[int]
    tables: list[dict[str, int] | None]  # string -> number of derivations; None where they would be too many


_State = tuple[int, int, int, int]  # a grade (see below), a node's rank, and where a stretch begins and ends


class Tables:
    """The strings of each node within a depth while they are few, and with their help any string's count."""

    def __init__(self, form: BinaryForm, budget: int) -> None:
        self._form = form
        self._budget = budget
        self._levels: dict[int, Level] = {}
        self._listings: dict[tuple[int, int], Listing] = {}

    def level(self, depth: int) -> Level:
        size = len(self._form.nodes)
        for d in range(len(self._levels), depth + 1):
            level = Level([FAR] * size + [0], [-1] * size + [0], [*({} for _ in range(size)), {"": 1}])
            for node, body in enumerate(self._form.nodes):
                below = d - (node < len(self._form.names))
                low, high, tables = self._levels.get(below, level)
                able = [a for a in body if fits(a, below) and low[a.x] < FAR and low[a.y] < FAR]
                if able:
                    level.shortest[node] = min(a.size + low[a.x] + low[a.y] for a in able)
                    level.longest[node] = max(a.size + high[a.x] + high[a.y] for a in able)
                    parts = [(a, tables[a.x], tables[a.y]) for a in able]
                    level.tables[node] = self._tabulated(parts, 1 + level.longest[node] // 100)
            self._levels[d] = level
        return self._levels[max(depth, 0)]

    def _tabulated(
        self, parts: list[tuple[Alternative, dict[str, int] | None, dict[str, int] | None]], price: int
    ) -> dict[str, int] | None:
        table: dict[str, int] = {}
        for a, xs, ys in parts:
            if xs is None or ys is None or len(xs) * len(ys) * price > self._budget:
                return None
            self._budget -= len(xs) * len(ys) * price
            for x, p in xs.items():
                head = a.before + x + a.between
                for y, q in ys.items():
                    w = head + y + a.after
                    table[w] = table.get(w, 0) + p * q
        return table if max(table.values()).bit_length() < 1000 else None

    def listing(self, node: int, depth: int) -> Listing | None:
        listing = self._listings.get((node, depth))
        if listing is None and (table := self.level(depth).tables[node]) is not None:
            listing = Listing(list(table), list(accumulate(table.values())))
            self._listings[node, depth] = listing
        return listing

    def shortest(self) -> list[int]:
        """The length of each node's shortest string; the tree of one nests no nonterminal in itself."""
        return self.level(len(self._form.names) + 1).shortest

    def derivations(self, w: str, depth: int | None) -> int:
        """The number of derivations of w, at most this deep or, in a grammar without loops, at any depth.

        States are found from the whole string down and summed from the smallest up, so nothing recurses. A
        state's grade is the depth it is given or, at any depth, its length: what it needs sorts before it.
        """
        names, nodes, size = len(self._form.names), self._form.nodes, len(self._form.nodes)
        order: Sequence[int] = range(size)
        if depth is not None and not self._form.loop and depth > names * (len(w) + 1):
            depth = None  # nodes nested around one string all differ, so no tree is deeper than that
        if depth is None:
            order = self._form.order
            level = Level(self.shortest(), [FAR] * size + [0], [*(None for _ in nodes), {"": 1}])
        elif (table := self.level(depth).tables[0]) is not None:
            return table.get(w, 0)
        rank = {node: k for k, node in enumerate(order)}
        cuts: dict[int, list[int]] = {}
        sums: dict[_State, list[tuple[int, _State | None, _State | None]]] = {}
        agenda: list[_State] = [(len(w) if depth is None else depth, rank[0], 0, len(w))]
        for state in agenda:  # grows as it is read
            if state in sums:
                continue
            terms = sums[state] = []
            grade, place, start, end = state
            node = order[place]
            below = FAR
            if depth is not None:
                below = grade - (node < names)
                level = self._levels[below]
            shortest, longest, tables = level
            for a in nodes[node]:
                before, x, between, y, after, _, cut = a
                i, j, gap = start + len(before), end - len(after), len(between)
                low, least = i + shortest[x], j - gap - longest[y]
                high, most = i + longest[x], j - gap - shortest[y]
                if least > low:
                    low = least
                if most < high:
                    high = most
                if low > high or (before and not w.startswith(before, start)):
                    continue
                if (after and not w.endswith(after, i, end)) or (below == 0 and not fits(a, below)):
                    continue
                meets: Sequence[int] = (low,)
                if y != NOTHING:
                    starts = cuts.get(id(cut))
                    if starts is None:
                        starts = cuts[id(cut)] = [match.start() for match in cut.finditer(w)]
                    meets = starts[bisect_left(starts, low) : bisect_right(starts, high)]
                xs, ys = tables[x], tables[y]
                for k in meets:
                    p = q = None
                    number = xs.get(w[i:k], 0) if xs is not None else 1
                    if number and ys is not None:
                        number *= ys.get(w[k + gap : j], 0)
                    if not number:
                        continue
                    if xs is None:
                        p = (k - i if depth is None else below, rank[x], i, k)
                        agenda.append(p)
                    if ys is None:
                        q = (j - k - gap if depth is None else below, rank[y], k + gap, j)
                        agenda.append(q)
                    terms.append((number, p, q))
        totals: dict[_State | None, int] = {None: 1}
        for state in sorted(sums):
            total = 0
            for number, p, q in sums[state]:
                total += number * totals[p] * totals[q]
            if total.bit_length() > MAX_BITS:
                raise BadInput(f"the string has more than 2^{MAX_BITS} derivations: give a smaller depth")
            totals[state] = total
        return totals[agenda[0]]


def fits(a: Alternative, below: int) -> bool:
    """Whether an alternative's own symbols have the depth they need: 1 for text, none for ε."""
    return below > 0 or (below == 0 and not a.size)
