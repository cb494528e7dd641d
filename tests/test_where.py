"""--where: what it means, and that nothing but our own words ever reach the database."""

import re
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softstack.errors import BadInput
from softstack.lab.runs import where

COLUMNS = {"task": str, "test": float, "seed": int, "buffered": bool}
ROWS = [("xor", 0.5, 0, 0), ("xor", 0.995, 1, 1), ("it's", 1.0, 2, 0), ("formula", 0.25, 30, 1)]


@pytest.fixture(scope="module")
def database():
    made = sqlite3.connect(":memory:")
    made.execute("CREATE TABLE runs (task, test, seed, buffered)")
    made.executemany("INSERT INTO runs VALUES (?, ?, ?, ?)", ROWS)
    return made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("task = 'xor'", [0, 1]),
        ("task = 'xor' and test > 0.99", [1]),
        ("test > 99%", [1, 2]),
        ("TASK='xor' AND NOT test>.99", [0]),
        ("seed in (0, 2, 7)", [0, 2]),
        ("seed not in (0,2)", [1, 30]),
        ('task = "it\'s"', [2]),
        ("buffered = true", [1, 30]),
        ("buffered != true or seed = 1", [0, 1, 2]),
        ("task = 'xor' or task = 'formula' and test > 0.9", [0, 1]),  # and binds closer
        ("(task = 'xor' or task = 'formula') and test > 0.9", [1]),
        ("not not seed >= 2", [2, 30]),
        ("seed < 3e0 and seed <> 0", [1, 2]),
        ("seed <= -1", []),
        ("task = 'x; DROP TABLE runs'", []),
        ("seed < 99999999999999999999999999", [0, 1, 2, 30]),
        ("task like '%o%'", [0, 1, 30]),
        ("buffered and not seed = 1", [30]),
        ("(" * 60 + "seed = 1" + ")" * 60, [1]),
    ],
)
def test_what_it_means(database, text, expected):
    rows = database.execute(f"SELECT seed FROM runs WHERE {where.parse(text, COLUMNS)} ORDER BY seed")
    assert [seed for (seed,) in rows] == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "--where is empty"),
        ("tsk = 'xor'", "unknown column in --where, 'tsk': did you mean 'task'"),
        ("task = xor", "has xor at character 8 where text in quotes should be"),
        ("test = 'high'", "has 'high' at character 8 where a number should be"),
        ("seed in (1, true)", "has true at character 13 where a number should be"),
        ("buffered = 1", "where true or false should be"),
        ("test > 0.5 and 1 < seed", "has 1 at character 16 where the name of a column should be"),
        ("task =", r"is no expression \(incomplete input\): write something like"),
        ("task = 'it''s'", "is no expression"),  # write "it's"
        ("task 'xor'", r"is no expression \(near \"'xor'\": syntax error\)"),
        ("(task = 'xor'", "is no expression"),
        ("task = 'xor')", "is no expression"),
        ("task = 'xor' test > 1", "is no expression"),
        ("task = 'xor'; DROP TABLE runs", "has ';' at character 13"),
        ("task = 'xor' -- or not", "has '-' at character 14"),
        ("seed in (select seed)", "has select at character 10 where a number should be"),
        ("abs(seed) = 1", "unknown column in --where, 'abs'"),
        ("1 = 1", "where the name of a column should be"),
        ("seed in (1", "is no expression"),
        ("task = 'xor", 'has "\'" at character 8'),
        ("(" * 5000, "is no expression"),
        ("not " * 2400 + "seed = 1", "is no expression"),
        ("seed = 1 or " * 1000, "10000 at most"),
    ],
)
def test_refusals(text, message):
    with pytest.raises(BadInput, match=message):
        where.parse(text, COLUMNS)


OURS = re.compile(
    r"""(?:"(?:task|test|seed|buffered)"|<>|!=|<=|>=|==|[=<>(), ]|NOT|AND|OR|IN|LIKE|true|false
        |'(?:[^']|'')*'|[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)*""",
    re.VERBOSE,
)
PIECES = st.sampled_from(
    ["task", "test", "seed", "buffered", "'xor'", "0.5", "1", "true", "=", "<", "in", "(", ")", ",", "and",
     "or", "not", "--", ";", "/*", "'", '"', "SELECT", "DROP TABLE runs", "\\", "\0", "1e999", "%", "é", "١"]
)  # fmt: skip


@given(st.text(max_size=60) | st.builds(str.join, st.sampled_from([" ", ""]), st.lists(PIECES, max_size=25)))
def test_whatever_is_said_it_is_our_sql_or_a_sentence(database, text):
    try:
        sql = where.parse(text, COLUMNS)
    except BadInput as error:
        assert str(error)
    else:
        assert OURS.fullmatch(sql)
        database.execute(f"SELECT seed FROM runs WHERE {sql} ORDER BY seed").fetchall()
