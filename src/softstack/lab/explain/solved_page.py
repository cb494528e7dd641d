"""The report of `softstack solve` as a page: every trial as a dot, and pages in which the networks run."""

from collections.abc import Sequence
from pathlib import Path

from softstack.lab.explain import solved as report
from softstack.lab.explain.solved import TITLE, Key
from softstack.lab.reports import dots, names, row_page, sheet, writing
from softstack.lab.reports.table1 import paper_rows
from softstack.lab.reports.table_page import EXPERIMENTS
from softstack.lab.reports.writing import Line
from softstack.lab.runs import store
from softstack.lab.training.recipes import Row

LANES = {
    "paper": "its recipe",
    "restarts": "with 16 restarts",
    "solve": "this recipe",
    "alone": "this one, no stack",
}
LONGER = {"test_10x": "10 times", "test_50x": "50 times", "test_10x_deep": "10 times, deep"}
COLUMNS = ("test: about twice as long", "this recipe: longer still")


def groups(rows: Sequence[Line]) -> list[dots.Group]:
    """The networks by the paper's experiments, as they are drawn."""
    networks = report.networks(rows).items()
    sections = []
    for title, tasks in EXPERIMENTS.items():
        entries = [_entry(key, kinds) for key, kinds in networks if key.task in tasks]
        if entries:
            sections.append(dots.Group(title, "", COLUMNS, entries))
    return sections


def _entry(key: Key, kinds: dict[str, Line]) -> dots.Entry:
    row, number = kinds["solve"], kinds["solve"]["paper_row"]
    lanes = [_lane(name, kinds[kind], "test") for kind, name in LANES.items() if kind in kinds]
    if number:
        paper = paper_rows()[number - 1]
        three = dots.Range("paper", *(paper[f"test_{name}"] for name in dots.THREE))
        lanes.insert(0, dots.Lane("the paper", [], [three]))
    verdicts = [dots.verdict(count, of, what) for what, (count, of) in report.counts(row).items() if of]
    longer = [_lane(name, row, what) for what, name in LONGER.items()]
    network = names.network(key.controller, buffered=key.buffered)
    return dots.Entry(names.task(key.task), network, link(key), verdicts, [lanes, longer])


def _lane(name: str, row: Line, what: str) -> dots.Lane:
    trials = [dots.Trial(f"seed {trial['seed']}", 100 * trial[what]) for trial in row["trials"]]
    return dots.Lane(name, trials, [dots.range_of(trials)])


def link(key: Key) -> str:
    """The file of a network's own page."""
    buffered = "buffered-" if key.buffered else ""
    return f"{key.task.replace('_', '-')}-{buffered}{key.controller}.html"


def page(rows: Sequence[Line], meta: Line) -> str:
    lead = (
        f"{report.verdict(rows)} Point at a dot or a line for its numbers; medians are in the table below. A "
        "name leads to a page in which that network runs."
    )
    numbers = sheet.table(report.legend(len(meta["seeds"])), report.HEADER, report.lines(rows))
    return sheet.page(TITLE, lead, groups(rows), numbers, report.stamp(meta))


def write(out: Path, plan: Sequence[Row], rows: Sequence[Line], meta: Line) -> None:
    """The page, and one for each network in which its trials run."""
    store.write(out / "solved.html", page(rows, meta))
    conditions = [row.condition for row in plan if row.recipe == "solve" and row.condition.memory == "stack"]
    for condition, key in zip(conditions, report.networks(rows), strict=True):
        runs = writing.runs_of(out, condition, meta["seeds"])
        store.write(out / link(key), row_page.page(runs, None, "solved.html", TITLE))
