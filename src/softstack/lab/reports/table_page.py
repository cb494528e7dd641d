"""Table 1 as a page: the paper's four experiments, every trial as a dot, our ranges and the paper's."""

from collections.abc import Sequence

from softstack.lab.reports import dots, names, sheet
from softstack.lab.reports import table1 as report
from softstack.words import counted

Row = report.Row
EXPERIMENTS = {  # §5: the paper's four, by their tasks
    "Experiment 1: string reversal": ("reversal", "selective_reversal"),
    "Experiment 2: XOR": ("xor", "delayed_xor"),
    "Experiment 3: parenthesis prediction": ("parenthesis",),
    "Experiment 4: formulas and agreement": ("formula", "agreement"),
}
COLUMNS = ("dev: as long as in training", "test: about twice as long")


def groups(rows: Sequence[Row], *, links: bool) -> list[dots.Group]:
    """The rows by experiment, as they are drawn."""
    sections = []
    for title, tasks in EXPERIMENTS.items():
        entries = [entry for row in rows if row["task"] in tasks for entry in _entries(row, links)]
        if entries:
            sections.append(dots.Group(title, "", COLUMNS, entries))
    return sections


def _entries(row: Row, links: bool) -> list[dots.Entry]:
    """A row, and the same corrected where there is that."""
    verdict = ("right", "agrees") if row["agrees"] else ("wrong", "below the paper's least")
    entries = [_entry(row, row["paper"], report.link(row) if links else "", verdict)]
    if "corrected" in row:
        file = report.link(row, corrected=True) if links else ""
        entries.append(_entry(row["corrected"], None, file, ("", "read-off corrected")))
    return entries


def _entry(row: Row, paper: Row | None, file: str, verdict: tuple[str, str]) -> dots.Entry:
    columns = []
    for split in ("dev", "test"):
        trials = [dots.Trial(f"seed {trial['seed']}", 100 * trial[split]) for trial in row["trials"]]
        ranges = [
            dots.Range(kind, *(source[f"{split}_{name}"] for name in dots.THREE))
            for kind, source in (("ours", row), ("paper", paper))
            if source
        ]
        columns.append([dots.Lane("", trials, ranges)])
    network = names.network(row["controller"], buffered=row["buffered"] == "yes")
    stack = "stack" if row["stack"] == "yes" else "no stack"
    return dots.Entry(names.task(row["task"]), f"{network}, {stack}", file, [verdict], columns)


def page(rows: Sequence[Row], meta: Row, *, links: bool = False) -> str:
    """The report as a page; with `links`, each row leads to the page of its trials."""
    trials = counted(len(meta["seeds"]), "trial")
    lead = (
        f"{report.verdict(rows)} Each network was trained in {trials}, which differ by their seed alone. "
        "Accuracy is in percent. Point at a dot or a line for its numbers; all are in the table below."
    )
    columns = (k for k in range(4, len(report.HEADER)) if k != report.AGREES)
    order = [0, 1, 2, 3, report.AGREES, *columns]  # the verdict beside the network
    lines = report.cells(rows)
    numbers = sheet.table(
        report.legend(meta),
        [report.HEADER[k] for k in order],
        [[line[k] for k in order] for line in lines],
        [{"": "corrected", "yes": "agrees", "no": "differs"}[line[report.AGREES]] for line in lines],
    )
    return sheet.page("Table 1, reproduced", lead, groups(rows, links=links), numbers, report.stamp(meta))
