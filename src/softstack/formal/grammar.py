"""§4: context-free grammars, read from text in the paper's notation.

    >>> parenthesis = Grammar.parse('''
    ... S -> S T | T S | T
    ... T -> ( T ) | ( )
    ... T -> [ T ] | [ ]
    ... ''')
    >>> parenthesis.terminals
    ('(', ')', '[', ']')

One rule per line; lines for the same nonterminal add up; symbols are separated by spaces and alternatives by
`|`; `ε`, or nothing at all, is the empty right-hand side; a line that begins with `#` is a comment. What has
a rule is a nonterminal. A terminal that begins with an upper-case letter is quoted, so that a misspelt
nonterminal is never taken for one, and so is `|`: `S -> S S '|' | S S & | 'T' | 'F'`. A part in parentheses
that touch it may be left out: `S -> a (S (b))`.

Counting and sampling are in `sampling.py`; they work on the `BinaryForm` below.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from softstack.errors import BadInput, unknown

EMPTY = "ε"
_QUOTED = re.compile(r"'[^'\s]+'" + r'|"[^"\s]+"')
_STANDING = re.compile(r"(?<![^\s|])[()]+(?![^\s|])")  # parentheses by themselves: a symbol
_TOKEN = re.compile(rf"(?:{_QUOTED.pattern})(?=[\s|)]|$)|\||{_STANDING.pattern}|[()]|[^\s|()]+")
_BARE = re.compile(r"""[^\s|'"][^\s|]*""")


@dataclass(frozen=True)
class Grammar:
    """A context-free grammar; every nonterminal can be reached and derives some string."""

    start: str
    rules: Mapping[str, tuple[tuple[str, ...], ...]]  # the start symbol's first
    terminals: tuple[str, ...] = field(init=False)  # in order of first appearance in `rules`

    def __post_init__(self) -> None:
        if self.start not in self.rules:
            raise unknown("start symbol", self.start, self.rules)
        rules = {self.start: self.rules[self.start], **self.rules}
        symbols = dict.fromkeys(s for alternatives in rules.values() for body in alternatives for s in body)
        object.__setattr__(self, "rules", rules)
        object.__setattr__(self, "terminals", tuple(s for s in symbols if s not in rules))
        self._check_names()
        self._check_use()

    def __hash__(self) -> int:
        return hash((self.start, self.terminals, frozenset(self.rules.items())))

    @classmethod
    def parse(cls, text: str, start: str | None = None) -> "Grammar":
        """The grammar written in `text`, which starts from its first rule unless `start` is given."""
        rules: dict[str, tuple[tuple[str, ...], ...]] = {}
        bare: dict[str, int] = {}  # symbol -> the first line that has it without quotes
        quoted: dict[str, int] = {}
        for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
            if not line or line.startswith("#"):
                continue
            name, arrow, right = (part.strip() for part in line.replace("→", "->").partition("->"))
            if not (arrow and _is_nonterminal_name(name)):
                comment = ". A comment begins with #" if line.startswith("%") else ""
                raise BadInput(
                    f"line {number} is {line!r}: write a rule as NAME -> symbols | symbols{comment}"
                )
            for body in _alternatives(right, number, bare, quoted):
                if body in rules.get(name, ()):
                    written = " ".join(body) or EMPTY
                    raise BadInput(
                        f"line {number} repeats {name} -> {written}: remove one, or it counts twice"
                    )
                rules[name] = (*rules.get(name, ()), body)
        if not rules:
            raise BadInput("the text has no rules: write at least one, such as S -> a S | a")
        for symbol, number in quoted.items():
            if symbol in rules:
                raise BadInput(f"line {number} quotes {symbol!r}, which has rules: rename one of the two")
        for symbol, number in bare.items():
            if symbol[0].isupper() and symbol not in rules:
                raise BadInput(
                    f"line {number} uses {symbol}, which has no rule: add one, or quote a terminal"
                )
        return cls(next(iter(rules)) if start is None else start, rules)

    def __str__(self) -> str:
        """The text that `parse` reads back to an equal grammar, one nonterminal per line."""
        return "\n".join(
            f"{name} -> " + " | ".join(" ".join(map(self._written, body)) or EMPTY for body in alternatives)
            for name, alternatives in self.rules.items()
        )

    def _written(self, symbol: str) -> str:
        if symbol in self.rules or (_is_bare(symbol) and not symbol[0].isupper()):
            return symbol
        return f'"{symbol}"' if "'" in symbol else f"'{symbol}'"

    def _check_names(self) -> None:
        for name, alternatives in self.rules.items():
            if not _is_nonterminal_name(name):
                raise BadInput(f"{name!r} cannot name a nonterminal: use a word without spaces, quotes or |")
            if len(set(alternatives)) < len(alternatives):
                raise BadInput(f"{name} has the same alternative twice: remove one, or it counts twice")
        for symbol in self.terminals:
            written = self._written(symbol) if symbol else ""
            if not (_QUOTED.fullmatch(written) or _is_bare(written)):
                raise BadInput(
                    f"{symbol!r} cannot be a terminal: use a word with no space and one kind of quote"
                )

    def _check_use(self) -> None:
        productive: set[str] = set()
        for _ in self.rules:  # each round but the last adds a nonterminal, so there are enough rounds
            for name, bodies in self.rules.items():
                if any(all(s in productive or s not in self.rules for s in body) for body in bodies):
                    productive.add(name)
        reached = [self.start]
        for name in reached:  # grows as it is read
            symbols = dict.fromkeys(s for body in self.rules[name] for s in body)
            reached += [s for s in symbols if s in self.rules and s not in reached]
        endless = [name for name in self.rules if name not in productive]
        unreached = [name for name in self.rules if name not in reached]
        if endless:
            raise BadInput(f"no finite string comes from {', '.join(endless)}: give each a rule that ends")
        if unreached:
            raise BadInput(
                f"{self.start} never leads to {', '.join(unreached)}: use each, or remove its rules"
            )


def _alternatives(
    right: str, number: int, bare: dict[str, int], quoted: dict[str, int]
) -> Iterator[tuple[str, ...]]:
    """The alternatives of one line's right-hand side; notes in `bare` and `quoted` what was written how."""
    for tokens in _expanded(right, number):
        body = []
        for token in tokens:
            if _is_bare(token):
                body.append(token)
                bare.setdefault(token, number)
            elif _QUOTED.fullmatch(token):
                body.append(token[1:-1])
                quoted.setdefault(token[1:-1], number)
            elif token != EMPTY:
                raise BadInput(f"line {number} has {token}: put a symbol with -> or a quote in it in quotes")
            elif len(tokens) > 1:
                raise BadInput(f"line {number} has {EMPTY} among other symbols: write it alone, or quote it")
        yield tuple(body)


def _expanded(right: str, number: int) -> list[list[str]]:
    """The alternatives as tokens, with the paper's optional groups written out: a (B | C) is a | a B | a C.

    A group's parentheses touch what is inside them, and nothing else but another group's; parentheses between
    spaces are symbols.
    """
    whole: list[list[list[str]]] = [[]]  # of each group that is open, outermost first: alternatives that end,
    growing: list[list[list[str]]] = [[[]]]  # and the one that is being read, once for each choice in it
    for mark in _TOKEN.finditer(right):
        token, outside = mark[0], right[: mark.start()][-1:] if mark[0] == "(" else right[mark.end() :][:1]
        if token in ("(", ")") and not _STANDING.match(right, mark.start()):
            if outside.strip("|" + token).strip():
                raise BadInput(
                    f"line {number} has a {token} that touches {outside} on its outer side: put a space "
                    "there if the part inside may be left out, or spaces on both sides if it is a symbol"
                )
            if token == "(":
                whole.append([])
                growing.append([[]])
            elif len(whole) == 1:
                raise BadInput(f"line {number} closes a group that is not open: put spaces around a symbol )")
            else:
                options = [[], *whole.pop(), *growing.pop()]
                growing[-1] = [body + option for body in growing[-1] for option in options]
        elif token == "|":
            whole[-1] += growing[-1]
            growing[-1] = [[]]
        else:
            growing[-1] = [[*body, token] for body in growing[-1]]
    if len(whole) > 1:
        raise BadInput(f"line {number} opens a group that is not closed: put spaces around a symbol (")
    return whole[0] + growing[0]


def _is_bare(symbol: str) -> bool:
    grouped = set("()") & set(symbol) and not _STANDING.fullmatch(symbol)
    return bool(_BARE.fullmatch(symbol)) and not grouped and "->" not in symbol and symbol != EMPTY


def _is_nonterminal_name(symbol: str) -> bool:
    return _is_bare(symbol) and not symbol.startswith("#")


NOTHING = -1  # the node that derives the empty string, once: every row of per-node values has its entry last


class Alternative(NamedTuple):
    """`before x between y after`: fixed text around two nodes, either of which may be NOTHING."""

    before: str
    x: int
    between: str
    y: int
    after: str
    size: int  # letters of fixed text
    cut: re.Pattern[str]  # matches, with width 0, wherever x may end for `between` and y to follow


@dataclass(frozen=True)
class BinaryForm:
    """A grammar with at most two nodes in a rule and a letter for each terminal, so that strings are `str`.

    Nodes 0, 1, ... are the nonterminals, the start symbol first. The rest each stand for the tail of a rule
    of three nonterminals or more, and cost no depth: `A -> X Y Z` is `A -> X n`, `n -> Y Z`. A tail's own
    tail has the smaller number.
    """

    names: tuple[str, ...]
    letters: dict[str, str]  # terminal -> letter
    nodes: tuple[tuple[Alternative, ...], ...]
    order: tuple[int, ...]  # nodes such that those a node may derive at its own length come before it
    loop: str  # a nonterminal that derives itself, or "": then one string can have endless derivations

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, grammar: Grammar) -> "BinaryForm":
        names = tuple(grammar.rules)
        letters = {terminal: chr(k) for k, terminal in enumerate(grammar.terminals)}
        number = {name: k for k, name in enumerate(names)}
        bodies: list[list[_Body]] = [[] for _ in names]
        for name, alternatives in grammar.rules.items():
            for alternative in alternatives:
                texts, nodes = [""], []
                for symbol in alternative:
                    if symbol in number:
                        nodes.append(number[symbol])
                        texts.append("")
                    else:
                        texts[-1] += letters[symbol]
                while len(nodes) > 2:
                    y, after, x, between = nodes.pop(), texts.pop(), nodes.pop(), texts.pop()
                    nodes.append(len(bodies))
                    texts.append("")
                    bodies.append([("", x, between, y, after)])
                x, y = (*nodes, NOTHING, NOTHING)[:2]
                texts[1:1] = [""] * (3 - len(texts))
                bodies[number[name]].append((texts[0], x, texts[1], y, texts[2]))
        firsts = _first_letters(bodies)
        lasts = _first_letters([[(e[::-1], y, c[::-1], x, a[::-1]) for a, x, c, y, e in b] for b in bodies])
        rules = tuple(
            tuple(
                Alternative(*b, len(b[0] + b[2] + b[4]), _cut(lasts[b[1]], b[2], firsts[b[3]])) for b in body
            )
            for body in bodies
        )
        return cls(names, letters, rules, *_same_length_order(rules, firsts, names))


_Body = tuple[str, int, str, int, str]


def _first_letters(bodies: list[list[_Body]]) -> list[set[str]]:
    """For each node and NOTHING, the letters its strings begin with, and "" if it derives the empty one."""
    firsts: list[set[str]] = [set() for _ in bodies] + [{""}]
    growing = True
    while growing:
        growing = False
        for node, body in enumerate(bodies):
            begins: set[str] = set()
            for before, x, between, y, after in body:
                here = {""}
                for letters in ({before[:1]}, firsts[x], {between[:1]}, firsts[y], {after[:1]}):
                    if "" in here:
                        here = (here - {""}) | letters
                begins |= here
            growing |= begins != firsts[node]
            firsts[node] = begins
    return firsts


def _cut(lasts: set[str], between: str, firsts: set[str]) -> re.Pattern[str]:
    """Where `between` stands with one of `lasts` before it and one of `firsts` after ("" is anything)."""
    behind = "" if "" in lasts else "(?<=[" + "".join(map(re.escape, sorted(lasts))) + "])"
    ahead = "" if "" in firsts else "[" + "".join(map(re.escape, sorted(firsts))) + "]"
    return re.compile(f"{behind}(?={re.escape(between)}{ahead})")


def _same_length_order(
    nodes: tuple[tuple[Alternative, ...], ...], firsts: list[set[str]], names: tuple[str, ...]
) -> tuple[tuple[int, ...], str]:
    nullable = ["" in letters for letters in firsts]
    needs = {
        node: {
            child
            for alternative in body
            for child, other in ((alternative.x, alternative.y), (alternative.y, alternative.x))
            if child != NOTHING and alternative.size == 0 and nullable[other]
        }
        for node, body in enumerate(nodes)
    }
    try:
        return tuple(TopologicalSorter(needs).static_order()), ""
    except CycleError as error:
        return (), names[min(error.args[1])]  # a cycle passes through a nonterminal: tails only lead down
