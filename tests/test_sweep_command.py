"""`softstack sweep` and `softstack status`, as a person uses them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from softstack.lab.sweeps import jobs
from softstack.lab.sweeps import plans as sweeps
from softstack.lab.sweeps.engine import Failure
from softstack.lab.sweeps.units import Unit
from softstack.lab.training.conditions import TABLE_1

FILE = """
seeds = 2
[condition]
task = "xor"
train_size = 20
dev_size = 5
test_size = 5
max_epochs = 1
[product]
controller = ["linear", "mlp"]
"""


def test_a_sweep_is_done_once(softstack):
    Path("mine.toml").write_text(FILE)
    code, out, err = softstack("sweep", "mine.toml", "--engine", "inline", "--dry-run")
    assert (code, err) == (0, "")
    assert out == "2 conditions with 2 seeds each; 4 of 4 trials to train under runs/mine, in 3 blocks\n"
    assert not Path("runs").exists()
    code, out, err = softstack("sweep", "mine.toml", "--engine", "inline")
    assert (code, err) == (0, "")
    assert out.startswith("runs/mine: 4 of 4 trials are there, 4 trained now\n")
    times = {p: p.stat().st_mtime_ns for p in Path("runs/mine").glob("*/seed-*/result.json")}
    code, out, err = softstack("sweep", "mine.toml", "--engine", "inline", "--json")
    said = json.loads(out)
    assert (said["trials"], said["there"], said["trained"], said["failed"]) == (4, 4, 0, [])
    assert {p: p.stat().st_mtime_ns for p in times} == times


def test_status_counts_what_is_there(softstack):
    Path("mine.toml").write_text(FILE)
    softstack("sweep", "mine.toml", "--engine", "inline")
    (plan,) = Path("runs/mine/sweeps").glob("*.toml")
    asked = sweeps.load(Path("mine.toml"))
    assert sweeps.load(plan).conditions == asked.conditions
    gone = Path("runs/mine") / asked.conditions[0].name / "seed-1"
    gone.rename(gone.with_name("elsewhere"))
    jobs.record(Path("runs/mine"), Failure(Unit(asked.conditions[0], (1,)), "attempt 1: the worker died\n"))
    code, out, err = softstack("status", "runs/mine", "--json")
    assert (code, err) == (0, "")
    (standing,) = json.loads(out)
    assert {k: standing[k] for k in ("trials", "done", "running", "failed", "missing", "rate")} == {
        "trials": 4, "done": 3, "running": 0, "failed": 1, "missing": 0, "rate": None,
    }  # fmt: skip
    code, out, _ = softstack("status", "runs/mine")
    assert f"failed: {standing['records'][0]}: attempt 1: the worker died" in out
    softstack("sweep", "mine.toml", "--engine", "inline")  # what failed is tried again
    (standing,) = json.loads(softstack("status", "runs/mine", "--json")[1])
    assert (standing["done"], standing["failed"], standing["records"]) == (4, 0, [])
    plan.write_text(plan.read_text().replace("xor", "sorting"))
    code, _, err = softstack("status", "runs/mine")
    assert code == 2
    assert f"{plan} is left out: unknown task 'sorting'" in err
    assert "no sweep under runs/mine could be read" in err


def test_a_sweep_with_something_that_cannot_be_trained(softstack):
    Path("mine.toml").write_text(FILE.replace('controller = ["linear", "mlp"]', "hidden_size = [1000000, 5]"))
    code, out, err = softstack("sweep", "mine.toml", "--workers", "1", "--json")
    said = json.loads(out)
    assert code == 1
    assert said["trials"] == 4
    assert said["there"] == 2
    huge = next(c for c in sweeps.load(Path("mine.toml")).conditions if c.hidden_size == 1000000)
    assert {Path(path).parent.name for path in said["failed"]} == {huge.name}
    assert "Traceback" not in err


def test_table_1_is_a_sweep(softstack, monkeypatch):
    few = {"train_size": 20, "dev_size": 5, "test_size": 5, "max_epochs": 1}
    small = [replace(condition, **few) for condition in TABLE_1]
    monkeypatch.setattr("softstack.lab.cli.table.TABLE_1", small)
    monkeypatch.setattr("softstack.lab.reports.table1.TABLE_1", small)
    assert softstack("table", "--rows", "8", "--trials", "2", "--engine", "inline", "--out", "t")[0] == 0
    (plan,) = Path("t/sweeps").glob("table1-*.toml")
    code, out, _ = softstack("sweep", str(plan), "--out", "t", "--engine", "inline")
    assert code == 0
    assert out == "t: 2 of 2 trials are there, 0 trained now\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("sweep", "none.toml"), "none.toml: no such file or directory"),
        (("sweep", "bad.toml"), "bad.toml is not TOML"),
        (("sweep", "mine.toml", "--engine", "clowd"), "unknown engine 'clowd'"),
        (
            ("sweep", "mine.toml", "--engine", "tcp://127.0.0.1:9"),
            "no dask scheduler answers at tcp://127.0.0.1:9",
        ),
        (("sweep", "mine.toml", "--engine", "tls://127.0.0.1:9"), "TLS needs all of"),
        (("sweep", "mine.toml", "--workers", "0"), "--workers must be more than 0"),
        (("sweep", "mine.toml", "--stall", "-1"), "--stall"),
    ],
)
def test_refusals(softstack, arguments, sentence):
    Path("mine.toml").write_text(FILE)
    Path("bad.toml").write_text("seeds = = 3")
    code, out, err = softstack(*arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert "Traceback" not in err
    assert not Path("runs").exists()
