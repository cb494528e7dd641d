"""Weighted grammars: strings of a given length, drawn by their weight, and what a string weighs.

A rule has a weight, a derivation the product of its rules' weights, and a string the sum over its
derivations. With probabilities for weights this is a PCFG, and what is drawn is conditioned on the length.

    >>> coin = Weighted.of({"S": [(0.75, "a S"), (0.25, "a")]})
    >>> coin.total(2)
    0.1875

Totals are numbers of float64, computed length by length as `counting.py` counts derivations; weights of
strings by the inside algorithm, for many strings of a length at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from softstack.errors import BadInput
from softstack.formal.grammar import NOTHING, Alternative, BinaryForm, Grammar

String = tuple[str, ...]
Choice = tuple[Alternative, int, int]  # an alternative, and the lengths of x and y
KEPT = 256  # the longest strings whose choices are kept: those of longer ones are many, and hardly come again


@dataclass(frozen=True, eq=False)
class Weighted:
    """A grammar without loops, and a weight for each alternative of each nonterminal."""

    grammar: Grammar
    weights: Mapping[str, Sequence[float]]
    _choices: dict[tuple[int, int], tuple[list[Choice], np.ndarray]] = field(default_factory=dict, init=False)
    _totals: list[np.ndarray] = field(default_factory=list, init=False)  # by node, NOTHING last, and length

    @classmethod
    def of(cls, rules: Mapping[str, Sequence[tuple[float, str]]]) -> "Weighted":
        """From alternatives with their weights, symbols separated by spaces; the first nonterminal starts."""
        bodies = {name: tuple(tuple(body.split()) for _, body in rules[name]) for name in rules}
        weights = {name: [weight for weight, _ in rules[name]] for name in rules}
        return cls(Grammar(next(iter(rules)), bodies), weights)

    @cached_property
    def _form(self) -> BinaryForm:
        form = BinaryForm.of(self.grammar)
        if form.loop:
            raise BadInput(f"{form.loop} derives itself: remove unit and empty rules that lead back to it")
        return form

    @cached_property
    def _nodes(self) -> list[list[tuple[float, Alternative]]]:
        """The alternatives of each node with their weights; those of a rule's tail count for nothing more."""
        form = self._form
        weights = [self.weights[name] for name in form.names]
        weights += [[1.0]] * (len(form.nodes) - len(form.names))
        return [list(zip(w, body, strict=True)) for w, body in zip(weights, form.nodes, strict=True)]

    def total(self, length: int) -> float:
        """What all strings of this length weigh together."""
        return float(self._by_length(length)[0][length])

    def _by_length(self, length: int) -> list[np.ndarray]:
        size_before = len(self._totals[0]) if self._totals else 0
        if size_before <= length:
            size = max(length + 1, 2 * size_before)
            grown = [np.zeros(size) for _ in range(len(self._nodes) + 1)]
            grown[NOTHING][0] = 1
            for new, old in zip(grown[:-1], self._totals[:-1], strict=False):
                new[:size_before] = old
            for m in range(size_before, size):
                for node in self._form.order:
                    grown[node][m] = sum(w * _ways(a, m, grown).sum() for w, a in self._nodes[node])
            self._totals[:] = grown
        return self._totals

    def draw(self, rng: np.random.Generator, length: int) -> String:
        """A string of this length, as likely as it is heavy."""
        if not self.total(length):
            raise BadInput(f"no string has length {length}")
        out: list[str] = []
        agenda: list[str | tuple[int, int]] = [(0, length)]
        while agenda:
            piece = agenda.pop()
            if isinstance(piece, str):
                out.append(piece)
            elif piece[0] != NOTHING:
                choices, up_to = self._choices_of(*piece)
                place = int(up_to.searchsorted(rng.random() * up_to[-1], "right"))
                a, x, y = choices[min(place, len(choices) - 1)]
                agenda += (a.after, (a.y, y), a.between, (a.x, x), a.before)
        return tuple(self.grammar.terminals[ord(letter)] for letter in "".join(out))

    def draw_within(self, rng: np.random.Generator, low: int, high: int) -> String:
        """A string of a length from low to high, as likely as it is heavy."""
        up_to = np.cumsum([self.total(length) for length in range(low, high + 1)])
        return self.draw(rng, low + int(up_to.searchsorted(rng.random() * up_to[-1], "right")))

    def _choices_of(self, node: int, length: int) -> tuple[list[Choice], np.ndarray]:
        """The alternatives of a node with all ways to share a length, and their weights, summed up."""
        entry = self._choices.get((node, length))
        if entry is None:
            choices: list[Choice] = []
            heaps = []
            for weight, a in self._nodes[node]:
                ways = weight * _ways(a, length, self._totals)
                free = length - a.size
                lengths = range(free, free + 1) if a.y == NOTHING else range(free + 1)
                choices += [(a, k, free - k) for k in lengths if free >= 0]
                heaps.append(ways)
            entry = choices, np.cumsum(np.concatenate(heaps))
            if length <= KEPT:
                self._choices[node, length] = entry
        return entry

    def weigh(self, strings: Sequence[String]) -> np.ndarray:
        """What each string weighs, (n,); 0 where it is none of the grammar's."""
        weights = np.zeros(len(strings))
        letters = {symbol: k for k, symbol in enumerate(self.grammar.terminals)}
        for length in {len(string) for string in strings}:
            places = [k for k, string in enumerate(strings) if len(string) == length]
            codes = [[letters.get(symbol, -1) for symbol in strings[k]] for k in places]
            weights[places] = self._inside(np.array(codes, dtype=int).reshape(len(places), length))
        return weights

    def _inside(self, w: np.ndarray) -> np.ndarray:
        """The weights (B,) of strings w (B, n) of letters.

        from_start[node][b, i, d] and to_end[node][b, j, d] are what the node's derivations of the d symbols
        after place i, and before place j, weigh.
        """
        B, n = w.shape
        shape = (len(self._nodes) + 1, B, n + 1, n + 1)
        from_start, to_end = np.zeros(shape), np.zeros(shape)
        from_start[NOTHING, :, :, 0] = to_end[NOTHING, :, :, 0] = 1
        texts = {t for body in self._nodes for _, a in body for t in (a.before, a.between, a.after)}
        stands = {text: _stands(w, text) for text in texts}
        for d in range(n + 1):
            for node in self._form.order:
                for weight, a in self._nodes[node]:
                    if d < a.size:
                        continue
                    free, starts = d - a.size, n + 1 - d
                    i, gap = len(a.before), len(a.between)
                    here = stands[a.before][:, :starts] * stands[a.after][:, d - len(a.after) :][:, :starts]
                    if a.y == NOTHING:
                        here = here * from_start[a.x, :, i : i + starts, free]
                    else:
                        xs = from_start[a.x, :, i : i + starts, : free + 1]
                        end = d - len(a.after)
                        ys = to_end[a.y, :, end : end + starts, free::-1]
                        if gap:
                            between = sliding_window_view(stands[a.between], free + 1, axis=1)
                            xs = xs * between[:, i : i + starts]
                        here = here * np.einsum("bik,bik->bi", xs, ys)
                    from_start[node, :, :starts, d] += weight * here
                    to_end[node, :, d:, d] += weight * here
        inside: np.ndarray = from_start[0, :, 0, n]
        return inside


def _ways(a: Alternative, length: int, totals: Sequence[np.ndarray]) -> np.ndarray:
    """What the derivations by an alternative weigh, for each length of x; without y, x has all of it."""
    free = length - a.size
    if free < 0:
        return np.zeros(0)
    if a.y == NOTHING:
        return totals[a.x][free : free + 1]
    products: np.ndarray = totals[a.x][: free + 1] * totals[a.y][free::-1]
    return products


def _stands(w: np.ndarray, text: str) -> np.ndarray:
    """(B, n + 1) whether a text stands at each place of strings (B, n), 1.0 or 0.0."""
    B, n = w.shape
    stands = np.zeros((B, n + 1))
    places = max(0, n + 1 - len(text))
    stands[:, :places] = 1
    for k, letter in enumerate(text):
        stands[:, :places] *= w[:, k : k + places] == ord(letter)
    return stands
