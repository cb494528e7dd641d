"""The index mirrors the directories, whatever happens to it; statistics are what they say they are."""

import json
import os
import shutil
import sqlite3
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from softstack.errors import BadInput
from softstack.lab.runs import index, listing, store
from softstack.lab.runs.compare import bootstrap, compare, wilson
from softstack.lab.training.conditions import Condition
from softstack.lab.training.train import train

SMALL = Condition("reversal", "linear", "stack", train_size=20, dev_size=5, test_size=5, max_epochs=1)
OTHER = replace(SMALL, task="xor", hidden_size=3)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    for condition in (SMALL, OTHER):
        for trial in train(condition, range(4)):
            store.save(root, trial)
    return root


@pytest.fixture
def root(made, tmp_path):
    shutil.copytree(made, tmp_path / "runs")
    return tmp_path / "runs"


def ask(root, *given):
    said = []
    with index.opened(root, said.append) as database:
        return index.query(database, *given), index.unreadable(database), said


def test_the_index_says_what_the_directories_say(root):
    rows, unreadable, said = ask(root)
    assert len(rows) == 8
    assert (unreadable, said) == ({}, [])
    for row in rows:
        run = store.load(root / row["path"])
        assert {name: row[name] for name in run.result} == run.result
        assert Condition(**{name: row[name] for name in vars(run.condition)}) == run.condition
        assert type(row["buffered"]) is bool


def test_it_follows_the_directories(root):
    ask(root)
    shutil.rmtree(root / SMALL.name / "seed-1")
    store.save(root, train(SMALL, [9])[0])
    (root / OTHER.name / "seed-0" / "result.json").write_text("{")
    rows, unreadable, _ = ask(root, None, "seed")
    assert [row["seed"] for row in rows] == [0, 1, 2, 2, 3, 3, 9]
    assert list(unreadable) == [f"{OTHER.name}/seed-0"]
    assert "it was damaged" in unreadable[f"{OTHER.name}/seed-0"]


def test_what_other_numerics_made_is_not_mixed_in(root):
    path = root / SMALL.name / "seed-2" / "config.toml"
    path.write_text(path.read_text().replace("numerics = ", "numerics = 9"))
    rows, unreadable, _ = ask(root)
    assert len(rows) == 7
    assert "of the numerics and this softstack has" in unreadable[f"{SMALL.name}/seed-2"]


def test_a_damaged_index_is_made_anew_and_said(root):
    expected = ask(root)[0]
    content, told = (root / "index.sqlite").read_bytes(), 0
    for offset in [*range(100), *range(100, len(content), 509)]:
        (root / "index.sqlite").write_bytes(content[:offset])
        rows, _, said = ask(root)
        assert rows == expected
        told += any("it is made anew from the run directories" in sentence for sentence in said)
    assert told > 20  # of about 150: less than a page is as good as new, and empty space is not missed
    for junk in (b"junk" * 1000, content[:100] + b"\xff" * (len(content) - 100)):
        (root / "index.sqlite").write_bytes(junk)
        rows, _, said = ask(root)
        assert rows == expected
        assert "it is made anew" in said[0]
    other = sqlite3.connect(root / "index.sqlite")
    other.executescript("DROP TABLE runs; CREATE TABLE runs (path); PRAGMA user_version = 1")
    other.close()
    assert ask(root)[0] == expected


def test_links_out_of_the_root_are_not_followed(root):
    outside = root.parent / "outside"
    shutil.copytree(root / SMALL.name, outside)
    (root / "linked").symlink_to(outside)
    assert len(ask(root)[0]) == 8


def test_a_root_that_takes_no_file(root):
    """Read-only for everyone; root may write all the same, so that takes a read-only mount."""
    if os.geteuid() == 0:
        mounted = subprocess.run(["mount", "--bind", "-o", "ro", root, root], capture_output=True, text=True)
        if mounted.returncode:
            pytest.skip(f"cannot mount read-only here: {mounted.stderr.strip()}")
    else:
        root.chmod(0o555)
    try:
        rows, _, _ = ask(root)
        assert len(rows) == 8
        assert not (root / "index.sqlite").exists()
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", "-l", root], check=True)
        else:
            root.chmod(0o755)


def test_runs_are_listed(softstack, root):
    code, out, err = softstack("runs", "--where", "task = 'xor' and seed < 2", "--sort=-seed")
    assert (code, err) == (0, "")
    assert "2 runs" in out
    assert out.index("seed-1") < out.index("seed-0")
    code, out, _ = softstack("runs", "--format", "json", "--where", "hidden_size = 3")
    assert [row["seed"] for row in json.loads(out)] == [0, 1, 2, 3]
    code, out, _ = softstack("runs", "--format", "csv")
    lines = out.splitlines()
    assert lines[0].split(",") == list(index.COLUMNS)
    assert len(lines) == 9


def test_parquet(softstack, root):
    import pyarrow.parquet

    code, _, _ = softstack("runs", "--format", "parquet", "--out", "mine.parquet")
    assert code == 0
    table = pyarrow.parquet.read_table("mine.parquet")
    assert table.column_names == list(index.COLUMNS)
    expected = [{**row, "path": f"runs/{row['path']}"} for row in ask(Path("runs"))[0]]
    assert table.to_pylist() == expected


def test_reindex(softstack, root):
    Path("runs/index.sqlite").write_bytes(b"no index")
    code, out, err = softstack("reindex")
    assert (code, err) == (0, "")
    assert out == "runs/index.sqlite: 8 runs; 0 directories cannot be read\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("runs", "nowhere"), "nowhere is not a directory of runs"),
        (("reindex", "nowhere"), "nowhere is not a directory of runs"),
        (("runs", "--where", "test >"), "--where is no expression (incomplete input)"),
        (("runs", "--sort", "tset"), "unknown column to sort by, 'tset': did you mean 'test'"),
        (("runs", "--out", "x"), "--out needs --format csv, json or parquet"),
        (("compare", "seed < 0", "seed = 1"), "no run under runs is seed < 0"),
        (("compare", "seed = 0", "sead = 1"), "did you mean 'seed'"),
        (("compare", "seed = 0", "seed = 1", "--confidence", "1"), "--confidence must lie between 0 and 1"),
        (("compare", "seed = 0", "seed = 1", "--threshold", "99"), "--threshold must lie between 0 and 1"),
        (("status", "nowhere"), "no sweep was started under nowhere"),
    ],
)
def test_refusals(softstack, root, arguments, sentence):
    code, out, err = softstack(*arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert "Traceback" not in err


def test_conditions_are_compared(softstack, root):
    code, out, _ = softstack("compare", SMALL.name, "task = 'xor'", "runs", "--threshold", "0.4")
    assert code == 0
    assert "95% bootstrap interval" in out
    code, out, _ = softstack("compare", SMALL.name, "task = 'xor'", "--threshold", "0.4", "--json")
    made = json.loads(out)
    tests = [
        [store.load(p).result["test"] for p in sorted((root / c.name).iterdir())] for c in (SMALL, OTHER)
    ]
    assert made["first"]["median"] == np.median(tests[0])
    assert made["second"]["success"]["value"] == np.mean([t > 0.4 for t in tests[1]])
    assert made["difference"]["value"] == np.median(tests[1]) - np.median(tests[0])


def test_wilsons_interval():
    """Of 8 in 10 and 1 in 29 by the formula worked by hand to four places; and at the ends."""
    assert wilson(8, 10) == pytest.approx((0.8, 0.4902, 0.9433), abs=5e-5)
    assert wilson(1, 29) == pytest.approx((1 / 29, 0.0061, 0.1718), abs=5e-5)
    assert wilson(0, 10)[1] == 0.0
    assert wilson(10, 10) == pytest.approx((1.0, 0.7225, 1.0), abs=5e-5)
    low, high = wilson(3, 7, 0.9)[1:]
    z = 1.6448536269514722
    for end in (low, high):  # the ends are where the share is z standard errors away
        assert abs(3 / 7 - end) == pytest.approx(z * (end * (1 - end) / 7) ** 0.5)


def test_the_bootstrap_interval():
    """Against all 27 x 27 resamples of three and three, which can be listed."""
    first, second = [0.1, 0.2, 0.4], [0.3, 0.7, 0.9]
    every = [[np.median(x) for x in np.array(np.meshgrid(v, v, v)).reshape(3, -1).T] for v in (first, second)]
    differences = np.subtract.outer(every[1], every[0]).ravel()
    value, low, high = bootstrap(first, second, np.random.default_rng(0), 0.8, 100_000)
    assert value == pytest.approx(0.5)
    assert (low, high) == pytest.approx(tuple(np.quantile(differences, [0.1, 0.9])))
    assert bootstrap(first, second, np.random.default_rng(5)) == bootstrap(
        first, second, np.random.default_rng(5)
    )
    same = compare([0.5] * 4, [0.5] * 3, 0.4, np.random.default_rng(0))
    assert same.difference == (0.0, 0.0, 0.0)
    assert same.second.success.value == 1.0


def test_only_what_differs_is_shown():
    row = dict.fromkeys(index.COLUMNS, 1)
    rows = [row, {**row, "patience": 2, "dev_loss": 2.0}]  # a loss is a result, and not a setting
    assert listing.told_apart(rows) == [
        "task", "controller", "memory", "patience", "seed", "dev", "test", "epochs", "path",
    ]  # fmt: skip


def test_a_root_that_is_no_directory(tmp_path):
    with pytest.raises(BadInput, match="is not a directory of runs"):
        ask(tmp_path / "none")
