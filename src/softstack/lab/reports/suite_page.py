"""The report of `softstack suite` as a page: the memories by the tasks, and every cell in a table that sorts
and filters. One file, without a server or a library: viewer/suite.js."""

import html
from collections.abc import Sequence
from pathlib import Path

from softstack import viewer
from softstack.lab.reports import names, suite
from softstack.lab.reports.scores import FACTORS
from softstack.lab.reports.suite import Row
from softstack.lab.runs import store

FIELDS = ("task", "memory", "controller", "recipe")  # what is filtered by
MEASURES = {
    "own": "what the task is judged by, %",
    "right": "right positions, %",
    "whole": "strings right throughout, %",
    "nats": "cross-entropy of a position, nats",
}


def page(rows: Sequence[Row], meta: Row, notes: str = "") -> str:
    """`notes` is HTML of the caller's that stands between the matrix and the table."""
    parts = [
        f"<p>{_plain(suite.verdict(rows))}</p>",
        _matrix(rows),
        notes,
        _cells(rows, meta),
        f"<script>{viewer.asset('suite.js')}</script>",
    ]
    return viewer.report(suite.TITLE, "\n".join(parts), stamp=suite.stamp(meta).replace("`", ""))


def _matrix(rows: Sequence[Row]) -> str:
    listed = suite.values(rows, "task")
    head = "".join(f"<th scope=col>{html.escape(names.task(task))}</th>" for task in listed)
    lines = []
    for memory in suite.values(rows, "memory"):
        cells = "".join(_best(suite.best(rows, task, memory)) for task in listed)
        lines.append(f"<tr><th scope=row>{html.escape(memory)}</th>{cells}</tr>")
    return (
        '<section class="panel"><h2>Ten times as long as in training</h2>'
        "<p>The median trial of each memory's best controller and recipe, in percent. Press a "
        "number for the cells behind it.</p>"
        f'<div class="wide"><table class="numbers matrix"><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div></section>"
    )


def _best(row: Row | None) -> str:
    share = suite.middle(row, 10) if row else None
    if row is None or share is None:
        return "<td></td>"
    who = f"{names.controller(row['controller'])}, {row['recipe']}"
    return (
        f'<td><button type="button" class="cell" style="--share:{share:.3f}" title="{html.escape(who)}" '
        f'data-task="{html.escape(row["task"])}" data-memory="{html.escape(row["memory"])}">'
        f"{100 * share:.1f}</button></td>"
    )


def _cells(rows: Sequence[Row], meta: Row) -> str:
    filters = "".join(_filter(field, suite.values(rows, field)) for field in FIELDS)
    options = "".join(f'<option value="{name}">{text}</option>' for name, text in MEASURES.items())
    head = "".join(
        f'<th scope=col aria-sort="none"><button type="button">{html.escape(name)}</button></th>'
        for name in suite.HEADER
    )
    body = "\n".join(map(_line, rows))
    return (
        f'<section class="panel" id="cells"><h2>Every cell</h2><p>{_plain(suite.legend(meta))} Press a '
        "heading to sort; point at a number for the trials behind it.</p>"
        f'<form class="filters">{filters}<label>show <select id="measure">{options}</select></label> '
        '<output id="count"></output></form><div class="wide"><table class="numbers sortable">'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div></section>"
    )


def _filter(field: str, names_of_values: Sequence[str]) -> str:
    boxes = "".join(
        f'<label><input type="checkbox" name="{field}" value="{html.escape(value)}" checked>'
        f"{html.escape(_shown(field, value))}</label>"
        for value in names_of_values
    )
    return f"<fieldset><legend>{field}</legend>{boxes}</fieldset>"


def _shown(field: str, value: str) -> str:
    return {"task": names.task, "controller": names.controller}.get(field, str)(value)


def _line(row: Row) -> str:
    data = "".join(f' data-{field}="{html.escape(row[field])}"' for field in FIELDS)
    texts = suite.line(row)
    cells = [f"<td>{html.escape(text)}</td>" for text in texts[: len(FIELDS)]]
    cells += [_scored(row, factor) for factor in FACTORS]
    count, ms, kib = texts[-3:]
    share = suite.solved(row) / len(row["trials"])
    cells.append(f'<td data-sort="{share:.4f}">{count}</td>')
    cells += [f'<td data-sort="{row[what]:.4f}">{text}</td>' for what, text in (("ms", ms), ("kib", kib))]
    return f"<tr{data}>{''.join(cells)}</tr>"


def _scored(row: Row, factor: int) -> str:
    """A cell with the medians of all measures: the script shows one of them."""
    own = suite.middle(row, factor)
    if own is None:
        return "<td></td>"
    medians = {what: suite.middle(row, factor, "" if what == "own" else what) for what in MEASURES}
    shown = " ".join(f'data-{what}="{value:.6g}"' for what, value in medians.items())
    trials = sorted((trial[f"{factor}x"][row["measure"]] for trial in row["trials"]), reverse=True)
    percents = " ".join(f"{100 * value:.1f}" for value in trials)
    return (
        f'<td class="share" style="--share:{own:.3f}" {shown} '
        f'title="{factor}x, each trial: {percents}">{100 * own:.1f}</td>'
    )


def _plain(text: str) -> str:
    return html.escape(text.replace("`", ""))


def write(out: Path, rows: Sequence[Row], meta: Row, notes: str = "") -> None:
    store.write(out / "suite.html", page(rows, meta, notes).encode())
