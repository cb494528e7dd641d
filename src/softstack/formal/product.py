"""Two PDTs run at once as one pushdown machine, as long as their stacks rise and fall together.

The i-th symbols of both stacks, counted from the bottom, are one cell of the common stack. What one stack has
more than the other, and the top of each, is part of the state of the product (a `Node`), so that there are
finitely many nodes if the heights differ by no more than a bound.

A *fact* (entry, node) says that from `entry`, the node in which a cell was just pushed, `node` is reached
without that cell having been looked at. Facts are found in the order of the shortest word that leads from one
to the other (Knuth's generalisation of Dijkstra's algorithm), so that the shortest difference is known too.
"""

from collections import defaultdict
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from softstack.formal.transducer import BOTTOM, Rule, Transducer
from softstack.words import counted

Word = tuple[str, ...]
Cell = tuple[str, str]
AHEAD = 1_000  # symbols that one machine may write before the other, between two inputs
LONGEST = 100_000  # symbols of a word that is still shown


class Side(NamedTuple):
    """One of the machines."""

    state: str
    pile: Word  # what lies above the common cells, top last; () if it must look at a cell
    rests: bool  # it waits for input


class Node(NamedTuple):
    first: Side
    second: Side
    ahead: int  # which machine has written more, 0 or 1,
    unmatched: Word  # and what

    @property
    def rests(self) -> bool:
        return self.first.rests and self.second.rests


Fact = tuple[Node, Node]  # entry, node


class Step(NamedTuple):
    """A step from a node: a symbol is read or none, a cell is pushed or none."""

    node: Node
    symbol: str = ""
    pushed: Cell | None = None


class Product:
    def __init__(self, a: Transducer, b: Transducer, within_first: bool, drift: int, most: int) -> None:
        self.machines = (a, b)
        self.alphabet = tuple(dict.fromkeys([*a.alphabet, *b.alphabet]))
        self.within_first, self.most = within_first, most
        self.drift = drift + max([1, *(len(rule.push) for rule in (*a.rules, *b.rules))])
        first, second = (Side(machine.start, (BOTTOM,), False) for machine in self.machines)
        self.start = Node(first, second, 0, ())
        self.failed = ""  # why nothing was decided
        self.lengths: dict[Fact, int] = {}
        self.reasons: dict[Fact, tuple[Fact | None, str, Fact | None]] = {}  # before, symbol, and a detour

    def shortest(self) -> Word | None:
        """A shortest word that tells the machines apart; None if there is none, or `failed` says why not."""
        differences = self._saturate(self.start)
        if self.failed:
            return None
        distance = self._distances(self.start)
        best = min(
            (
                (distance[fact[0]][0] + self.lengths[fact] + len(last), fact, last)
                for fact, last in differences
            ),
            key=lambda option: option[0],
            default=None,
        )
        if best is None:
            return None
        length, fact, last = best
        if length > LONGEST:
            self.failed = f"the shortest word that does has {length:,} symbols"
            return None
        return self._access(fact, distance) + last

    def situations(self) -> dict[tuple[str, str], Word]:
        """A shortest word that leads the first machine to each state and top in which it rests."""
        distance = self._distances(self.start)
        shortest: dict[tuple[str, str], tuple[int, Fact]] = {}
        for fact, length in self.lengths.items():
            side, total = fact[1].first, distance[fact[0]][0] + length
            if fact[1].rests and total < shortest.get((side.state, side.pile[-1]), (total + 1, fact))[0]:
                shortest[side.state, side.pile[-1]] = total, fact
        return {
            head: self._access(fact, distance) for head, (total, fact) in shortest.items() if total <= LONGEST
        }

    def _access(self, fact: Fact, distance: dict[Node, tuple[int, Fact | None]]) -> Word:
        """A shortest word that leads from the start to the node of a fact."""
        words = [self._word(fact)]
        entry = fact[0]
        while (caller := distance[entry][1]) is not None:
            words.append(self._word(caller))
            entry = caller[0]
        return tuple(symbol for word in reversed(words) for symbol in word)

    def _saturate(self, start: Node) -> list[tuple[Fact, Word]]:
        """Every fact; those from which the machines differ, with the symbols after which they do."""
        queue: list[tuple[int, int, Fact]] = []
        differences: list[tuple[Fact, Word]] = []
        exits: dict[Node, list[Fact]] = defaultdict(list)
        self.callers: dict[Node, list[tuple[Fact, Cell]]] = defaultdict(list)
        facts: set[Fact] = set()

        def learn(fact: Fact, length: int, before: Fact | None, symbol: str, detour: Fact | None) -> None:
            if length < self.lengths.get(fact, length + 1):
                self.lengths[fact] = length
                self.reasons[fact] = before, symbol, detour
                heappush(queue, (length, len(self.lengths), fact))

        learn((start, start), 0, None, "", None)
        while queue and not self.failed:
            length, _, fact = heappop(queue)
            if fact in facts:
                continue
            facts.add(fact)
            if len(self.lengths) > self.most:
                self.failed = f"there is more to compare than {counted(self.most, 'fact')}"
            entry, node = fact
            if self._needs_cell(node):
                exits[entry].append(fact)
                for caller, cell in self.callers[entry]:
                    after = (caller[0], _with(node, cell))
                    learn(after, self.lengths[caller] + length, caller, "", fact)
                continue
            for step in self._steps(node):
                if not isinstance(step, Step):
                    differences.append((fact, step))
                elif step.pushed is None:
                    learn((entry, step.node), length + bool(step.symbol), fact, step.symbol, None)
                else:
                    self.callers[step.node].append((fact, step.pushed))
                    learn((step.node, step.node), 0, None, "", None)
                    for way in exits[step.node]:
                        after = (entry, _with(way[1], step.pushed))
                        learn(after, length + self.lengths[way], fact, "", way)
        return differences

    def _steps(self, node: Node) -> Iterator[Step | Word]:
        """What can follow; a word is a difference that shows after its symbols."""
        if min(len(node.first.pile), len(node.second.pile)) > 1:
            first, second = (side._replace(pile=side.pile[1:]) for side in node[:2])
            yield Step(
                node._replace(first=first, second=second), "", (node.first.pile[0], node.second.pile[0])
            )
        elif max(len(node.first.pile), len(node.second.pile)) > self.drift:
            self.failed = f"their stacks come to differ by more than {self.drift} symbols in height"
        elif len(node.unmatched) > AHEAD:
            self.failed = f"one writes {AHEAD:,} symbols before the other writes any"
        elif not node.rests:
            yield self._moved(node)
        elif len({side.state in machine.accepting for side, machine in self._sides(node)}) > 1:
            yield ()
        else:
            yield from self._reads(node)

    def _sides(self, node: Node) -> Iterator[tuple[Side, Transducer]]:
        return zip((node.first, node.second), self.machines, strict=True)

    def _reads(self, node: Node) -> Iterator[Step | Word]:
        for symbol in self.alphabet:
            rules = [
                machine.enabled(side.state, symbol, side.pile[-1]) for side, machine in self._sides(node)
            ]
            if rules[0] is None and (self.within_first or rules[1] is None):
                continue
            if rules[0] is None or rules[1] is None:
                yield (symbol,)
                continue
            after: Node | None = node
            for index, rule in enumerate(rules):
                after = None if after is None or rule is None else _made(after, index, rule)
            yield (symbol,) if after is None else Step(after, symbol)

    def _moves_next(self, node: Node) -> int:
        """Which machine makes the next ε-move: the one behind in writing, or with the higher pile."""
        if node.unmatched:
            return 1 - node.ahead
        if node.first.rests or node.second.rests:
            return int(node.first.rests)
        return int(len(node.second.pile) > len(node.first.pile))

    def _needs_cell(self, node: Node) -> bool:
        mover = node.second if self._moves_next(node) else node.first
        return not node.rests and not mover.pile

    def _moved(self, node: Node) -> Step | Word:
        """The next ε-move, or rest where there is none. A machine that rests writes no more."""
        index = self._moves_next(node)
        side = (node.first, node.second)[index]
        if side.rests:
            return ()  # it is behind, and stays so
        rule = self.machines[index].enabled(side.state, "", side.pile[-1])
        after = _put(node, index, side._replace(rests=True)) if rule is None else _made(node, index, rule)
        return () if after is None else Step(after)

    def _distances(self, start: Node) -> dict[Node, tuple[int, Fact | None]]:
        """The length of a shortest word to each entry, and the fact from which it is entered."""
        edges: dict[Node, list[tuple[Fact, Node]]] = defaultdict(list)
        for entry, callers in self.callers.items():
            for fact, _ in callers:
                edges[fact[0]].append((fact, entry))
        best: dict[Node, tuple[int, Fact | None]] = {start: (0, None)}
        queue: list[tuple[int, int, Node]] = [(0, 0, start)]
        while queue:
            length, _, entry = heappop(queue)
            if length > best[entry][0]:
                continue
            for fact, following in edges[entry]:
                further = length + self.lengths[fact]
                if following not in best or further < best[following][0]:
                    best[following] = further, fact
                    heappush(queue, (further, len(best), following))
        return best

    def _word(self, fact: Fact) -> Word:
        """The word of a fact, from its last symbol to its first."""
        symbols: list[str] = []
        pending: list[Fact] = [fact]
        while pending:
            before, symbol, detour = self.reasons[pending.pop()]
            if symbol:
                symbols.append(symbol)
            pending += [earlier for earlier in (before, detour) if earlier is not None]
        return tuple(reversed(symbols))


def _put(node: Node, index: int, side: Side) -> Node:
    return node._replace(second=side) if index else node._replace(first=side)


def _with(node: Node, cell: Cell) -> Node:
    """The node with a common cell taken apart: its symbols lie at the bottom of both piles."""
    first, second = (
        side._replace(pile=(symbol, *side.pile)) for side, symbol in zip(node[:2], cell, strict=True)
    )
    return node._replace(first=first, second=second)


def _made(node: Node, index: int, rule: Rule) -> Node | None:
    """The node after one machine made a move; None where that writes something else than the other did."""
    side = (node.first, node.second)[index]
    pile = (side.pile[:-1] if rule.pop else side.pile) + rule.push
    after = _put(node, index, Side(rule.next, pile, False))
    if not rule.write:
        return after
    if not node.unmatched or node.ahead == index:
        return after._replace(ahead=index, unmatched=node.unmatched + rule.write)
    n = min(len(node.unmatched), len(rule.write))
    if node.unmatched[:n] != rule.write[:n]:
        return None
    if n < len(rule.write):
        return after._replace(ahead=index, unmatched=rule.write[n:])
    rest = node.unmatched[n:]
    return after._replace(ahead=node.ahead if rest else 0, unmatched=rest)
