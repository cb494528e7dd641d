"""--where: what it means, and that nothing but our own SQL ever reaches the database."""

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
    ],
)
def test_what_it_means(database, text, expected):
    clause = where.parse(text, COLUMNS)
    found = database.execute(f"SELECT seed FROM runs WHERE {clause.sql} ORDER BY seed", clause.values)
    assert [seed for (seed,) in found] == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "--where is empty"),
        ("tsk = 'xor'", "unknown column in --where, 'tsk': did you mean 'task'"),
        ("task = xor", "has 'xor' at character 8 where text, as in task = 'abc', should be"),
        ("test = 'high'", "where a number should be"),
        ("buffered = 1", "where true or false should be"),
        ("task =", "has the end at character 7 where"),
        ("task 'xor'", "where =, !=, <, <=, >, >= or in should be"),
        ("(task = 'xor'", r"where \) should be"),
        ("task = 'xor')", r"has '\)' at character 13 where and, or, or the end should be"),
        ("task = 'xor' test > 1", "has 'test' at character 14"),
        ("task = 'xor'; DROP TABLE runs", "has ';' at character 13"),
        ("1 = 1", "where the name of a column should be"),
        ("task in ()", "where text"),
        ("seed in (1", r"where , or \) should be"),
        ("task = 'xor", 'has "\'" at character 8'),
        ("(" * 60 + "seed = 1" + ")" * 60, "nested more than 50 deep"),
        ("not " * 60 + "seed = 1", "nested more than 50 deep"),
        ("seed = 1 or " * 1000, "10000 at most"),
    ],
)
def test_refusals(text, message):
    with pytest.raises(BadInput, match=message):
        where.parse(text, COLUMNS)


OURS = re.compile(r'(?:"(?:task|test|seed|buffered)"|<>|<=|>=|[=<>?(), ]|NOT|AND|OR|IN)*')
PIECES = st.sampled_from(
    ["task", "test", "seed", "buffered", "'xor'", "0.5", "1", "true", "=", "<", "in", "(", ")", ",", "and",
     "or", "not", "--", ";", "/*", "'", '"', "SELECT", "DROP TABLE runs", "\\", "\0", "1e999", "%", "é", "١"]
)  # fmt: skip


@given(st.text(max_size=60) | st.builds(str.join, st.sampled_from([" ", ""]), st.lists(PIECES, max_size=25)))
def test_whatever_is_said_it_is_our_sql_or_a_sentence(database, text):
    try:
        clause = where.parse(text, COLUMNS)
    except BadInput as error:
        assert str(error)
    else:
        assert OURS.fullmatch(clause.sql)
        assert clause.sql.count("?") == len(clause.values)
        database.execute(f"SELECT seed FROM runs WHERE {clause.sql}", clause.values).fetchall()
