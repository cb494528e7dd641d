"""What `--where` says, as SQL of our own: names from a list, every value a parameter, nothing else.

or          and ("or" and)*
and         not ("and" not)*
not         "not" not | "(" or ")" | comparison
comparison  name ("=" | "!=" | "<" | "<=" | ">" | ">=") value
          | name ["not"] "in" "(" value ("," value)* ")"
value       number | 'text' | "text" | true | false
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from softstack.errors import BadInput, unknown

Value = str | int | float
TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?)
  | (?P<text>'[^']*'|"[^"]*")
  | (?P<word>[A-Za-z_][A-Za-z_0-9]*)
  | (?P<sign><=|>=|!=|<>|==|[=<>(),])
  )""",
    re.VERBOSE,
)
SIGNS = {"=": "=", "==": "=", "!=": "<>", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
MOST_CHARACTERS = 10_000
MOST_DEPTH = 50
EXAMPLE = "task = 'parenthesis' and test > 0.99"


class Clause(NamedTuple):
    """The part of a query after WHERE."""

    sql: str
    values: tuple[Value, ...]
    names: frozenset[str]


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def parse(text: str, columns: Mapping[str, type]) -> Clause:
    """A clause from an expression over `columns`, each of type str, int, float or bool."""
    if len(text) > MOST_CHARACTERS:
        raise BadInput(f"--where has {len(text)} characters: {MOST_CHARACTERS} at most")
    if not text.strip():
        raise BadInput(f"--where is empty: write something like  {EXAMPLE}")
    reader = _Reader(_tokens(text), columns)
    sql, values = reader.either(0)
    if reader.token.kind != "end":
        raise reader.expected("and, or, or the end")
    return Clause(sql, tuple(values), frozenset(reader.names))


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    while text[at:].strip():
        found = TOKEN.match(text, at)
        if found is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise BadInput(f"--where has {text[at]!r} at character {at + 1}: write something like  {EXAMPLE}")
        kind = found.lastgroup or ""
        tokens.append(_Token(kind, found[kind], found.start(kind)))
        at = found.end()
    return [*tokens, _Token("end", "", len(text))]


Part = tuple[str, list[Value]]


class _Reader:
    """Reads tokens one after the other; a method a line of the grammar."""

    def __init__(self, tokens: list[_Token], columns: Mapping[str, type]) -> None:
        self.tokens, self.columns, self.names, self.at = tokens, columns, set[str](), 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def take(self, *texts: str) -> str:
        """The next token if it is one of these, and on to the one after."""
        text = self.token.text.lower() if self.token.kind == "word" else self.token.text
        if text in texts and self.token.kind in ("word", "sign"):
            self.at += 1
            return text
        return ""

    def expected(self, what: str) -> BadInput:
        found = repr(self.token.text) if self.token.kind != "end" else "the end"
        return BadInput(f"--where has {found} at character {self.token.at + 1} where {what} should be")

    def either(self, depth: int) -> Part:
        return self.joined("or", depth)

    def joined(self, word: str, depth: int) -> Part:
        inner = self.negated if word == "and" else lambda depth: self.joined("and", depth)
        sqls, values = [], []
        while True:
            sql, more = inner(depth)
            sqls.append(sql)
            values += more
            if not self.take(word):
                break
        return (sqls[0] if len(sqls) == 1 else f"({f' {word.upper()} '.join(sqls)})"), values

    def negated(self, depth: int) -> Part:
        if depth > MOST_DEPTH:
            raise BadInput(f"--where is nested more than {MOST_DEPTH} deep: write it more simply")
        if self.take("not"):
            sql, values = self.negated(depth + 1)
            return f"(NOT {sql})", values
        if self.take("("):
            part = self.either(depth + 1)
            if not self.take(")"):
                raise self.expected(")")
            return part
        return self.comparison()

    def comparison(self) -> Part:
        if self.token.kind != "word":
            raise self.expected("the name of a column")
        name = self.token.text.lower()
        if name not in self.columns:
            raise unknown("column in --where,", self.token.text, self.columns)
        self.at += 1
        self.names.add(name)
        sign = self.take(*SIGNS)
        if sign:
            return f'"{name}" {SIGNS[sign]} ?', [self.value(name)]
        negated = "NOT " if self.take("not") else ""
        if not self.take("in"):
            raise self.expected("=, !=, <, <=, >, >= or in")
        if not self.take("("):
            raise self.expected("(")
        values = [self.value(name)]
        while self.take(","):
            values.append(self.value(name))
        if not self.take(")"):
            raise self.expected(", or )")
        return f'"{name}" {negated}IN ({", ".join("?" * len(values))})', values

    def value(self, name: str) -> Value:
        """A value of the kind that the column holds."""
        kind, token = self.columns[name], self.token
        said = {str: f"text, as in {name} = 'abc',", bool: "true or false"}.get(kind, "a number")
        if kind is bool and token.kind == "word" and token.text.lower() in ("true", "false"):
            self.at += 1
            return int(token.text.lower() == "true")
        if kind is str and token.kind == "text":
            self.at += 1
            return token.text[1:-1]
        if kind in (int, float) and token.kind == "number":
            self.at += 1
            return _number(token.text)
        raise self.expected(said)


def _number(text: str) -> float:
    """99% is 0.99. Whole numbers compare as the nearest double, as SQLite itself would."""
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)
