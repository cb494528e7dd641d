"""Reports as pages: every trial a dot, at its place, and nothing cut off."""

import json
import re
from pathlib import Path

import pytest

from browser import needs_chromium
from softstack.lab.explain import solved_page
from softstack.lab.reports import dots, table_page

RESULTS = Path(__file__).parent.parent / "results"


@pytest.fixture(scope="module")
def published():
    return json.loads((RESULTS / "table1" / "table1.json").read_text())


def drawn(row, paper, **kind):
    """Dots and ranges of a lane, as places in percent."""
    trials = [dots.Trial(f"seed {n}", value) for n, value in enumerate(row)]
    lane = dots.Lane("", trials, [dots.range_of(trials), *([dots.Range("paper", *paper)] if paper else [])])
    svg = dots.axis(lane, "dev", kind.get("least", 40.0))
    marks = {level: float(x) for x, level in zip(
        re.findall(r'class="level" x1="([\d.]+)%"', svg), range(40, 101, 10), strict=True
    )}  # fmt: skip
    per = (marks[100] - marks[40]) / 60

    def accuracy(x):
        return 40 + (float(x) - marks[40]) / per

    circles = re.findall(r'<circle class="dot" cx="([\d.]+)%" cy="([\d.]+)"[^>]*><title>([^<]*)</title>', svg)
    ends = r'<line class="hit" x1="([\d.]+)%" x2="([\d.]+)%"'
    ranges = re.findall(rf'<g class="range (\w+)"><title>(.*?)</title>{ends}', svg)
    medians = re.findall(r'class="median" x1="([\d.]+)%"', svg)
    return [(accuracy(x), float(y), said) for x, y, said in circles], [
        (kind, said, accuracy(low), accuracy(middle), accuracy(high))
        for (kind, said, low, high), middle in zip(ranges, medians, strict=True)
    ]  # fmt: skip


def test_each_trial_is_a_dot_and_ranges_reach_from_the_least_to_the_most():
    values = [55.3, 99.0, 100.0, 100.0, 71.25]
    circles, ranges = drawn(values, (49.9, 98.7, 99.4))
    assert [x for x, _, _ in circles] == pytest.approx(sorted(values), abs=0.01)
    assert {said for _, _, said in circles} == {f"seed {n}: {v:.1f} %" for n, v in enumerate(values)}
    (ours, said, *three), (paper, _, *theirs) = ranges
    assert (ours, paper) == ("ours", "paper")
    assert three == pytest.approx([55.3, 99.0, 100.0], abs=0.01)
    assert theirs == pytest.approx([49.9, 98.7, 99.4], abs=0.01)
    assert said == "ours: 55.3 / 99.0 / 100.0, least / median / most"


def test_dots_that_would_hide_each_other_stand_one_above_the_other():
    circles, _ = drawn([100.0] * 10 + [60.0, 80.0], None)
    heights = [y for x, y, _ in circles if x > 99]
    assert len(set(heights)) == 10
    assert max(heights) <= dots.BAND - dots.RADIUS and min(heights) >= dots.RADIUS
    assert len({y for x, y, _ in circles if x < 99}) == 1
    assert {said.count("seed") for x, _, said in circles if x > 99} == {10}  # none can be pointed at alone
    assert {said.count("seed") for x, _, said in circles if x < 99} == {1}
    lane = dots.Lane("", [dots.Trial("a", 100.0)] * 10 + [dots.Trial("b", 60.0)] * 3, [])
    assert re.findall(r'<text class="count".*?>(\d+)</text>', dots.axis(lane, "dev", 40.0)) == ["10"]


@pytest.mark.parametrize(
    ("values", "least"),
    [([49.3, 100.0], 40), ([100.0], 90), ([99.9], 90), ([50.0], 40), ([0.0, 3.0], 0), ([], 80)],
)
def test_axes_begin_at_a_ten_below_everything(values, least):
    assert dots.beginning(values) == least


def test_rows_stand_by_experiment_with_their_verdicts_beside_them(published):
    groups = table_page.groups(published, links=True)
    assert [len(group.entries) for group in groups] == [5, 5, 4, 6]  # the corrected rows with theirs
    assert [group.title.split(":")[0] for group in groups] == [f"Experiment {n}" for n in range(1, 5)]
    first, second, corrected = groups[0].entries[:3]
    assert (first.name, first.detail, first.link) == ("Reversal", "linear, stack", "row-1.html")
    assert first.verdicts == [("right", "agrees")]
    assert corrected.link == "row-2-corrected.html"
    assert [len(lanes[0].ranges) for lanes in (*second.columns, *corrected.columns)] == [2, 2, 1, 1]
    (wrong,) = table_page.groups([{**published[0], "agrees": False}], links=False)
    assert wrong.entries[0].verdicts == [("wrong", "below the paper's least")]


@needs_chromium
@pytest.mark.parametrize("width", [390, 1280, 1440, 1920])
def test_nothing_of_the_report_is_cut_off(tab, tmp_path, published, width):
    """No page is wider than its screen, every verdict and dot is on it, and beyond a phone the table."""
    file = tmp_path / "table1.html"
    file.write_text(table_page.page(published, json.loads((RESULTS / "table1" / "meta.json").read_text())))
    page = tab(file, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = page.evaluate(
        """[...document.querySelectorAll('.chip, .dot, .range line, .ticks text')]
          .filter((e) => e.checkVisibility())
          .map((e) => e.getBoundingClientRect())
          .map((box) => [box.left, box.right])"""
    )
    assert len(boxes) > 600
    assert min(left for left, _ in boxes) >= 0 and max(right for _, right in boxes) <= width
    if width > 400:
        assert page.evaluate("(w => w.scrollWidth <= w.clientWidth)(document.querySelector('.wide'))")


@needs_chromium
def test_the_report_of_solve_is_drawn_the_same_way(tab, tmp_path):
    """A lane for each way of training, the paper's with a range alone, and counts beside the name."""
    files = (RESULTS / "solved" / name for name in ("solved.json", "meta.json"))
    rows, meta = (json.loads(file.read_text()) for file in files)
    groups = solved_page.groups(rows)
    first = groups[0].entries[0]
    assert (first.name, first.detail, first.link) == ("Reversal", "LSTM", "reversal-lstm.html")
    names = ["the paper", "its recipe", "with 16 restarts", "this recipe", "this one, no stack"]
    assert [lane.name for lane in first.columns[0]] == names
    assert [len(lane.trials) for lane in first.columns[0]] == [0, 10, 10, 10, 10]
    solved = next(row for row in rows if (row["recipe"], row["memory"]) == ("solve", "stack"))
    count = sum(trial["test"] >= 0.995 for trial in solved["trials"])
    assert first.verdicts[0] == ("right", f"{count} of 10 solved")
    file = tmp_path / "solved.html"
    file.write_text(solved_page.page(rows, meta))
    for width in (390, 1280):
        page = tab(file, width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        lanes = [lane for group in groups for entry in group.entries for c in entry.columns for lane in c]
        assert page.locator(".axis").count() == len(lanes)
