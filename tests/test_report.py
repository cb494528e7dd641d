"""The report: statistics, agreement, and that what is published is what was measured."""

import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from softstack import buffered, networks
from softstack.lab import tasks
from softstack.lab.explain import solved
from softstack.lab.explain.diagnosis import accuracy_at
from softstack.lab.reports import distributions, suite
from softstack.lab.reports import table1 as report
from softstack.lab.runs import store
from softstack.lab.sweeps.jobs import train_missing
from softstack.lab.training.conditions import TABLE_1, Condition
from softstack.words import counted, of_seeds

ROOT = Path(__file__).parent.parent
rng = np.random.default_rng
RESULTS = ROOT / "results" / "table1"


def test_summary_is_min_median_max_in_percent():
    trials = [{"dev": d, "test": t} for d, t in ((0.5, 0.1), (1.0, 0.2), (0.9996, 0.40049), (0.75, 0.3))]
    assert report.summary(trials) == {
        "dev_min": 50.0, "dev_median": 87.5, "dev_max": 100.0,
        "test_min": 10.0, "test_median": 25.0, "test_max": 40.0,
    }  # fmt: skip


def test_agreement_is_the_median_inside_the_papers_range_or_above():
    paper = {"dev_min": 50.0, "dev_max": 60.0, "test_min": 40.0, "test_max": 45.0}
    assert report.agrees({"dev_median": 50.0, "test_median": 99.0}, paper)
    assert not report.agrees({"dev_median": 49.9, "test_median": 42.0}, paper)
    assert not report.agrees({"dev_median": 55.0, "test_median": 39.9}, paper)


def test_the_papers_table_is_the_papers():
    rows = report.paper_rows()
    assert len(rows) == 18
    assert rows[8] == {
        "task": "parenthesis", "buffered": "no", "controller": "linear", "stack": "yes",
        "dev_min": 72.8, "dev_median": 97.0, "dev_max": 99.3,
        "test_min": 59.9, "test_median": 80.3, "test_max": 83.2,
    }  # fmt: skip


@pytest.fixture(scope="module")
def published():
    return json.loads((RESULTS / "table1.json").read_text())


def test_published_rows_follow_from_published_trials(published):
    """18 rows with the columns of the paper's table; each statistic recomputed from its ten trials."""
    names = list(report.paper_rows()[0])
    assert len(published) == 18
    for row, paper, condition in zip(published, report.paper_rows(), TABLE_1, strict=True):
        assert set(names) | {"trials"} <= set(row)
        assert report.columns(condition) == {
            key: row[key] for key in ("task", "buffered", "controller", "stack")
        }
        assert row["paper"] == {key: paper[key] for key in report.STATISTICS}
        assert row["agrees"] == report.agrees(row, paper)
        for part in (row, row["corrected"]) if condition.buffered else (row,):
            assert [trial["seed"] for trial in part["trials"]] == list(range(10))
            assert {key: part[key] for key in report.STATISTICS} == report.summary(part["trials"])
            assert len({trial["condition"] for trial in part["trials"]}) == 1
        assert row["trials"][0]["condition"] in condition.names


def test_published_trials_are_all_there(published):
    lines = [json.loads(line) for line in (RESULTS / "trials.jsonl").read_text().splitlines()]
    assert len(lines) == 200
    assert lines[:10] == published[0]["trials"]


def test_published_reports_say_the_same(published):
    meta = json.loads((RESULTS / "meta.json").read_text())
    assert (RESULTS / "table1.md").read_text() == report.markdown(published, meta)
    assert re.fullmatch(r"[0-9a-f]{12}", meta["commit"]), "the published table was made from uncommitted code"


def test_the_readme_says_what_the_results_say():
    check = subprocess.run(
        [sys.executable, ROOT / "tools" / "publish.py", "--check"], capture_output=True, text=True
    )
    assert check.returncode == 0, check.stderr


def test_the_readmes_code_runs():
    """The Python in the README, as it stands."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    for block, shape in zip(blocks, [(10, 24, 16), (2, 512)], strict=True):
        names: dict = {}
        exec(compile(block, "README.md", "exec"), names)
        assert isinstance(names["y"], torch.Tensor)
        assert names["y"].shape == shape


@pytest.mark.parametrize("module", [networks, buffered])
def test_docstring_examples_run(module):
    assert doctest.testmod(module, extraglobs={"torch": torch}) == doctest.TestResults(failed=0, attempted=3)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((1, "run"), "1 run"),
        ((0, "run"), "0 runs"),
        ((2, "run"), "2 runs"),
        ((1, "directory", "directories"), "1 directory"),
        ((3, "directory", "directories"), "3 directories"),
    ],
)
def test_one_is_not_several(words, text):
    assert counted(*words) == text


def test_one_seed_is_not_several():
    assert of_seeds([3]) == "seed 3"
    assert of_seeds(range(10)) == "seeds 0 to 9"
    meta = {"seeds": [0], "commit": "", "softstack": "", "device": "cpu", "trained": 0}
    assert suite.stamp(meta).endswith("on cpu, seed 0.")
    assert solved.stamp(meta).endswith("on cpu, seed 0.")
    call = {"trained": 1, "cores": 2, "seconds": 90.0}
    assert solved.stamp(meta | call).endswith("The call trained 1 trial and took 2 minutes on 2 cores.")


def test_the_papers_figures_are_likely_if_they_are_drawn_from_ours_and_not_if_they_are_not():
    """Held to a literal count over draws of another generator, and to what must be so at the ends."""
    rng = np.random.default_rng(7)
    ours = [{"seed": n, "dev": d, "test": d - 0.1} for n, d in enumerate(rng.uniform(0.8, 0.9, 200))]
    middle = {"dev_min": 80.9, "dev_median": 85.0, "dev_max": 89.1}
    paper = {**middle, "test_min": 60.0, "test_median": 75.0, "test_max": 79.1}
    chances = distributions.probabilities(ours, paper)
    draws = [sorted(rng.choice([100 * t["dev"] for t in ours], 10)) for _ in range(4000)]
    medians = [round((draw[4] + draw[5]) / 2, 1) for draw in draws]
    below, above = (sum(m <= 85.0 for m in medians) / 4000, sum(m >= 85.0 for m in medians) / 4000)
    assert abs(chances["dev_median"] - min(1, 2 * min(below, above))) < 0.06
    assert chances["test_min"] == 0 and chances["dev_min"] > 0.3


def test_trials_of_a_row_share_their_test_strings():
    """Two sets of strings, on which all trials score the same: 52.3 on one, 51.9 on the other. So the median
    and the maximum of ten are the same figure, which trials with strings of their own hardly ever show."""
    rng = np.random.default_rng(3)
    ours = [{"seed": n, "dev": 0.5, "test": 0.519 + 0.004 * (n % 2)} for n in range(200)]
    common = np.array([[0.523] * 200, [0.519] * 200]) + rng.uniform(-1e-5, 1e-5, (2, 200))
    paper = {f"dev_{name}": 50.0 for name in distributions.STATISTICS}
    paper |= {f"test_{name}": 51.9 for name in distributions.STATISTICS}
    assert distributions.probabilities(ours, paper)["test_max"] < 0.01
    assert distributions.probabilities(ours, paper, common)["test_max"] > 0.9


def test_common_strings_score_as_the_trials_own(tmp_path):
    condition = Condition("xor", "linear", train_size=20, dev_size=10, test_size=30, max_epochs=1)
    train_missing(tmp_path, [condition], range(3), "inline")
    common = distributions.on_common_strings(tmp_path, condition, range(3), 40)
    strings = [tasks.find("xor").example(w) for w in tasks.find("xor").sample(rng(10**6), 40, "test")]
    network = store.network(store.load(store.place(tmp_path, condition, 2)))
    assert common.right[:, 2].sum() / common.scored.sum() == accuracy_at(network, condition, strings)
    assert common.scored.tolist() == [len(example.input) for example in strings]


def test_sets_of_strings_are_drawn_with_replacement():
    """Half of the strings are right in one trial and the other half in the other: no set has both right."""
    right = np.array([[2.0, 0.0], [0.0, 4.0]] * 500)
    common = distributions.Common(right, np.array([2.0, 4.0] * 500))
    scores = common.on_sets(rng(0), 1000)
    assert scores.shape == (distributions.SETS, 2)
    assert np.allclose(scores.sum(1), 1)
    assert abs(scores[:, 0].mean() - 1 / 3) < 0.003
    # the share of the first kind has a standard deviation of 1/2 / sqrt(1000), and d(2p / (4 - 2p))/dp = 8/9
    assert abs(scores[:, 0].std() - 8 / 9 * 0.5 / np.sqrt(1000)) < 0.002


def test_figures_that_are_unlikely_are_named():
    row = {
        "row": 1, "task": "reversal", "buffered": "no", "controller": "lstm", "stack": "no",
        "paper": dict.fromkeys(report.STATISTICS, 50.0), "probability": dict.fromkeys(report.STATISTICS, 0.5),
        "trials": [{}] * 200, **dict.fromkeys(report.STATISTICS, 51.0),
    }  # fmt: skip
    assert "0 of the paper's 6 figures" in distributions.verdict([row])
    row["probability"]["test_max"] = 0.002
    assert "reversal, lstm without a stack: test max 50.0." in distributions.verdict([row])
    assert "50.0 (**0.002**)" in distributions.cells(row)[-1]
