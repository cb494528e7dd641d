"""The page of a row of Table 1: its charts, and the trials it shows."""

import re

import pytest

from softstack.lab.reports import row_page, table_page
from softstack.lab.reports import table1 as report
from softstack.lab.runs import store
from softstack.lab.training.conditions import TABLE_1, corrected
from softstack.lab.training.draws import initial
from softstack.lab.training.epochs import Epoch
from softstack.lab.training.train import Trial

DEV = (0.5, 1.0, 0.75, 0.9, 0.7)


def made(root, condition):
    runs = []
    for seed, dev in enumerate(DEV):
        epochs = [Epoch(3.0 - n, dev * n / 3) for n in range(1, 4 if seed else 6)]
        weights = dict(initial(condition, seed).state_dict())
        trial = Trial(condition, seed, epochs, dev, dev - 0.2, weights, 0.1, 0.5)
        runs.append(store.load(store.save(root, trial)))
    return runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return made(tmp_path_factory.mktemp("runs"), TABLE_1[0])


def test_best_median_and_worst_are_by_dev_accuracy(runs):
    assert {place: run.seed for place, run in row_page.ordered(runs).items()} == {
        "best": 1,
        "median": 2,
        "worst": 0,
    }
    assert {place: run.seed for place, run in row_page.ordered(runs[:2]).items()} == {"best": 1, "worst": 0}
    assert {place: run.seed for place, run in row_page.ordered(runs[:1]).items()} == {"best": 0}


def test_a_curve_for_each_trial_with_a_point_for_each_epoch(runs):
    chart = row_page.curves(runs, {1: "best"}, "dev")
    lines = re.findall(r'<polyline class="(\w+)" points="([^"]+)"><title>seed (\d)</title>', chart)
    assert sorted(seed for _, _, seed in lines) == list("01234")
    assert {seed: len(points.split()) for _, points, seed in lines} == {
        "0": 5,
        "1": 3,
        "2": 3,
        "3": 3,
        "4": 3,
    }
    assert [kind for kind, _, seed in lines if seed == "1"] == ["best"]
    heights = [float(point.split(",")[1]) for point in next(p for _, p, s in lines if s == "1").split()]
    assert heights == sorted(heights, reverse=True)  # accuracy rises, so the line goes up


def test_ranges_reach_from_the_least_to_the_most(runs):
    figures = {"min": 40, "median": 70, "max": 100}
    paper = {f"{split}_{name}": value for split in ("dev", "test") for name, value in figures.items()}
    drawn = row_page.accuracies(runs, paper)
    said = re.findall(r'aria-label="(dev|test): [^"]*: ours ([^"]+); the paper\'s ([^"]+)"', drawn)
    theirs = "40.0 / 70.0 / 100.0"
    assert said == [("dev", "50.0 / 75.0 / 100.0", theirs), ("test", "30.0 / 55.0 / 80.0", theirs)]
    assert drawn.count("<circle") == 2 * len(DEV)
    assert "paper" not in row_page.accuracies(runs, None)


def test_rows_lead_to_their_pages(tmp_path):
    """A buffered row has two: as the authors ran it, and corrected."""
    condition = TABLE_1[6]
    for one in (condition, corrected(condition)):
        made(tmp_path, one)
    seeds = range(len(DEV))
    rows = report.table(tmp_path, [7], seeds)
    meta = {**store.provenance("cpu"), "trained": 0, "cores": 1, "seeds": list(seeds), "seconds": 1.0}
    name = report.write(tmp_path, rows, meta)
    store.write(tmp_path / f"{name}.html", table_page.page(rows, meta, links=True))
    row_page.write(tmp_path, rows, f"{name}.html")
    links = re.findall(r'<a href="([\w.-]+)">', (tmp_path / "rows.html").read_text())
    assert links == ["row-7.html", "row-7-corrected.html"]
    for link in links:
        text = (tmp_path / link).read_text()
        assert '<a href="rows.html">' in text
        assert all(f"{place} of 5" in text for place in row_page.PLACES)
        assert text.count("<polyline") == 2 * len(DEV)
        assert ('class="range paper"' in text) == (link == "row-7.html")


def test_names_of_curves_that_end_together_are_set_apart():
    taken = []
    for _ in range(3):
        taken.append(row_page._free(100.0, taken))
    assert taken == [100, 115, 85]
    assert row_page._free(107.0, taken) == 137  # neither between two of them nor back and forth
    assert row_page._free(18.0, [18.0, 33.0]) == 48  # not above the chart


def test_a_name_finds_a_place_between_any_two_others():
    for above in range(12, 60):
        for below in range(above + 15, 120):
            place = row_page._free(18.0, [float(above), float(below)])
            assert place >= row_page.TOP - 2
            assert all(abs(place - other) >= 15 for other in (above, below))
