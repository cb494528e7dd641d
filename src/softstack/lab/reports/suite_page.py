"""The report of `softstack suite` as a page: the memories by the tasks, the trials of each memory's best cell
as dots, and every cell in a table that sorts and filters. One file, without a server or a library:
viewer/suite.js."""

import html
from collections.abc import Sequence

from softstack import viewer
from softstack.lab.reports import dots, names, sheet, suite
from softstack.lab.reports.scores import FACTORS
from softstack.lab.reports.suite import Row
from softstack.lab.reports.writing import SOLVED

LENGTHS = {1: "as long as in training", 2: "twice as long", 10: "ten times as long"}  # that are drawn
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
        f"<p>{sheet.prose(suite.verdict(rows))} {sheet.prose(suite.counting(rows))}</p>",
        _matrix(rows),
        sheet.key(),
        *(dots.groups([group]) for group in groups(rows)),
        notes,
        _cells(rows, meta),
        f"<script>{viewer.asset('suite.js')}</script>",
    ]
    return viewer.report(suite.TITLE, "\n".join(parts), stamp=suite.stamp(meta).replace("`", ""))


def groups(rows: Sequence[Row]) -> list[dots.Group]:
    """The tasks, and in each the best cell of every memory as it is drawn."""
    sections = []
    for task in suite.values(rows, "task"):
        tops = [top for memory in suite.values(rows, "memory") if (top := suite.best(rows, task, memory))]
        if tops:
            measure = MEASURES[tops[0]["measure"]].capitalize()
            solved = f"solved: {SOLVED:.1%} on strings {LENGTHS[2]}"
            text = f"{measure}; {solved}. A name leads to the cells behind it."
            sections.append(
                dots.Group(names.task(task), text, list(LENGTHS.values()), list(map(_entry, tops)))
            )
    return sections


def _entry(row: Row) -> dots.Entry:
    columns = []
    for factor in LENGTHS:
        values = {t["seed"]: t[f"{factor}x"][row["measure"]] for t in row["trials"] if f"{factor}x" in t}
        trials = [dots.Trial(f"seed {seed}", 100 * value) for seed, value in values.items()]
        columns.append([dots.Lane("", trials, [dots.range_of(trials)] if trials else [])])
    verdict = dots.verdict(suite.solved(row), len(row["trials"]), "solved")
    return dots.Entry(row["memory"], _training(row), _link(row), [verdict], columns)


def _training(row: Row) -> str:
    return f"{names.controller(row['controller'])}, {row['recipe']}"


def _link(row: Row) -> str:
    """To the cells of its task and memory, which viewer/suite.js then shows alone."""
    return f"#task={row['task']}&memory={row['memory']}"


def _matrix(rows: Sequence[Row]) -> str:
    memories = suite.values(rows, "memory")
    head = "".join(f"<th scope=col><span>{html.escape(memory)}</span></th>" for memory in memories)
    lines = []
    for task in suite.values(rows, "task"):
        cells = "".join(_best(suite.best(rows, task, memory)) for memory in memories)
        lines.append(f"<tr><th scope=row>{html.escape(names.task(task))}</th>{cells}</tr>")
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
    return (
        f'<td><a class="cell" href="{html.escape(_link(row))}" style="--share:{share:.3f}" '
        f'title="{html.escape(_training(row))}">{suite.percent(share)}</a></td>'
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
        f'<section class="panel" id="cells"><h2>Every cell</h2><p>{sheet.prose(suite.legend(meta))} Press a '
        "heading to sort; point at a number for the trials behind it.</p>"
        f'<form class="filters">{filters}<label>show <select id="measure">{options}</select></label> '
        '<output id="count"></output></form><div class="wide"><table class="numbers sortable">'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div></section>"
    )


def _filter(field: str, values: Sequence[str]) -> str:
    title = {"task": names.task, "controller": names.controller}.get(field, str)
    boxes = "".join(
        f'<label><input type="checkbox" name="{field}" value="{html.escape(value)}" checked>'
        f"{html.escape(title(value))}</label>"
        for value in values
    )
    return f"<fieldset><legend>{field}</legend>{boxes}</fieldset>"


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
    share = suite.middle(row, factor)
    if share is None:
        return "<td></td>"
    medians = {what: suite.middle(row, factor, "" if what == "own" else what) for what in MEASURES}
    data = " ".join(f'data-{what}="{_text(what, value)}"' for what, value in medians.items())
    trials = sorted((trial[f"{factor}x"][row["measure"]] for trial in row["trials"]), reverse=True)
    return (
        f'<td class="share" style="--share:{share:.3f}" {data} '
        f'title="{factor}x, each trial: {" ".join(map(suite.percent, trials))}">{suite.percent(share)}</td>'
    )


def _text(what: str, value: float | None) -> str:
    """A median as it is shown: "inf" nats are those of a network that diverged."""
    return f"{value or 0:.3f}" if what == "nats" else suite.percent(value or 0)
