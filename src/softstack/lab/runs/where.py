"""What `--where` says, as SQL: names of columns compared with values, by and, or, not and parentheses.

Only the words and signs listed here pass, so that nothing but an expression over the columns can be said.
SQLite then says whether it is one, on an empty table.
"""

import re
import sqlite3
from collections.abc import Mapping

from softstack.errors import BadInput, unknown

TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?%?)
  | (?P<text>'[^'\0]*'|"[^"\0]*")
  | (?P<word>[A-Za-z_][A-Za-z_0-9]*)
  | (?P<sign><=|>=|!=|<>|==|[=<>(),])
  | (?P<end>$)
  )""",
    re.VERBOSE,
)
WORDS = ("and", "or", "not", "in", "like")
KINDS = {str: "text", int: "number", float: "number", bool: "truth"}  # the kind of token that a column takes
SHOWN = {"text": "text in quotes", "number": "a number", "truth": "true or false"}
MOST_CHARACTERS = 10_000
EXAMPLE = "task = 'parenthesis' and test > 0.99"


def parse(text: str, columns: Mapping[str, type]) -> str:
    """The part of a query after WHERE, from an expression over `columns` of type str, int, float or bool."""
    if len(text) > MOST_CHARACTERS:
        raise BadInput(f"--where has {len(text)} characters: {MOST_CHARACTERS} at most")
    if not text.strip():
        raise BadInput(f"--where is empty: write something like  {EXAMPLE}")
    sql: list[str] = []
    column, at = "", 0  # column: what values are compared with
    while token := TOKEN.match(text, at):
        kind, at = token.lastgroup or "", token.end()
        piece, start = token[kind], token.start(kind)
        name = piece.lower()
        if kind == "end":
            return _checked(" ".join(sql), columns)
        if kind == "word" and name in columns:
            column = name
            sql.append(f'"{name}"')
        elif kind == "word" and name in WORDS:
            column = "" if name in ("and", "or") else column
            sql.append(name.upper())
        elif kind == "sign":
            sql.append(piece)
        else:
            kind = "truth" if name in ("true", "false") else kind
            if not column and kind == "word":
                raise unknown("column in --where,", piece, columns)
            column_kind = KINDS[columns[column]] if column else ""
            if kind != column_kind:
                expected = SHOWN.get(column_kind, "the name of a column")
                raise BadInput(f"--where has {piece} at character {start + 1} where {expected} should be")
            sql.append(_literal(kind, piece))
    at += len(text[at:]) - len(text[at:].lstrip())
    raise BadInput(f"--where has {text[at]!r} at character {at + 1}: write something like  {EXAMPLE}")


def _literal(kind: str, piece: str) -> str:
    """A value as SQLite writes it. 99% is 0.99."""
    if kind == "text":
        return "'" + piece[1:-1].replace("'", "''") + "'"
    return repr(float(piece[:-1]) / 100) if piece.endswith("%") else piece


def _checked(sql: str, columns: Mapping[str, type]) -> str:
    database = sqlite3.connect(":memory:")
    try:
        names = ", ".join(f'"{name}"' for name in columns)
        database.execute(f"CREATE TABLE runs ({names})")
        database.execute(f"SELECT 1 FROM runs WHERE {sql}")
    except (sqlite3.Error, UnicodeEncodeError) as error:
        raise BadInput(f"--where is no expression ({error}): write something like  {EXAMPLE}") from None
    finally:
        database.close()
    return sql
