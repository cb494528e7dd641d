"""The table of compiled and trained networks: rows from real runs, the page, and its command."""

import json

import pytest

from softstack.lab.explain import transducer_table
from softstack.lab.training.conditions import TABLE_1
from softstack_command import main


def test_which_networks_are_in_it():
    chosen = transducer_table.conditions()
    assert len(chosen) == 11
    assert set(chosen) < set(TABLE_1)
    assert {c.task for c in chosen} == set(transducer_table.TASKS)


def test_the_command_makes_the_page(tmp_path, capsys):
    """One task with two trials of its one network; the compiled one is right in every column."""
    places = ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "docs")]
    with pytest.raises(SystemExit) as end:
        main(["transducers", "--tasks", "delayed_xor", "--trials", "2", "--engine", "inline", *places])
    assert end.value.code == 0
    made = json.loads((tmp_path / "docs" / "transducers.json").read_text())
    assert [row["network"] for row in made["rows"]] == [
        "compiled",
        "linear, best trial",
        "linear, median trial",
    ]
    compiled = made["rows"][0]
    assert set(compiled["accuracy"].values()) == {1.0}
    assert list(compiled["accuracy"]) == ["1", "2", "10", "100"]
    assert compiled["diagnosis"]["verdict"] == "ignores its stack"
    assert compiled["extraction"]["states"] == 2
    page = (tmp_path / "docs" / "transducers.md").read_text()
    ignored = "ignores its stack | 2 states, 0 stack"
    assert f"| delayed xor | compiled | 100.0 | 100.0 | 100.0 | 100.0 | {ignored}" in page
    assert made["commit"] in page
    for line in page.splitlines():
        if line.startswith("!["):
            assert (tmp_path / "docs" / line.split("(")[1].rstrip(")")).is_file()


def test_unknown_tasks_are_refused(capsys):
    with pytest.raises(SystemExit) as end:
        main(["transducers", "--tasks", "parentheses"])
    assert end.value.code == 2
    assert "did you mean 'parenthesis'" in capsys.readouterr().err
