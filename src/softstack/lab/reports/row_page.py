"""A page for each row of Table 1: how its trials learnt, how they compare with the paper's, and three of them
at work: the best, the one in the middle and the worst, in the order of their dev accuracy.

The charts are SVG written here, so that the page's stylesheet gives them its colours, light and dark.
matplotlib takes 47 ms for a chart where this takes 0.06, and its charts have twelve times the bytes.
"""

import html
import math
from collections.abc import Sequence
from pathlib import Path

from softstack import viewer
from softstack.lab.reports import dots, network_page, sheet, table_page
from softstack.lab.reports import table1 as report
from softstack.lab.reports.writing import ranked
from softstack.lab.runs import store
from softstack.words import counted

Row = report.Row
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 560, 300, 56, 44, 14
PLACES = ("best", "median", "worst")


def write(root: Path, rows: Sequence[Row], index: str) -> None:
    """The pages of some rows of the report called `index`, written beside it, of the trials under `root`."""
    for row in rows:
        for part, paper in ((row, row["paper"]), (row.get("corrected"), None)):
            if part is not None:
                places = [root / trial["condition"] / f"seed-{trial['seed']}" for trial in part["trials"]]
                name = report.link(row, corrected=paper is None)
                store.write(root / name, page([store.load(place) for place in places], paper, index))


def page(runs: Sequence[store.Run], paper: Row | None, index: str, title: str = "Table 1") -> str:
    """The page of one condition's trials; without `paper` there is nothing to compare them with. A link leads
    back to the report of this title, in the file `index`."""
    examples = ordered(runs)
    marks = {run.seed: place for place, run in examples.items()}
    charts = {
        "Dev accuracy after each epoch": curves(runs, marks, "dev"),
        "Loss in each epoch": curves(runs, marks, "loss"),
    }
    figures = (f"<figure><figcaption>{name}</figcaption>{svg}</figure>" for name, svg in charts.items())
    before = (
        f"<style>{viewer.asset('report.css')}</style>"
        f'<p class="back"><a href="{html.escape(index)}">← {html.escape(title)}</a></p>'
        f'<section class="panel report"><h2>{counted(len(runs), "trial")}</h2>'
        '<p class="caption">Best, median and worst are by dev accuracy: '
        "one who has not seen the test would choose so.</p>"
        f'<div class="charts">{"".join(figures)}</div>{_table(runs, marks)}</section>'
        f"{sheet.key(paper=bool(paper))}{accuracies(runs, paper)}"
    )
    notes = [f"{place} of {len(runs)} by dev" for place in examples]
    return network_page.page([*examples.values()], notes=notes, before=before)


def ordered(runs: Sequence[store.Run]) -> dict[str, store.Run]:
    """Three trials by name; of fewer than three trials, as many as there are."""
    worst_first = ranked(runs)
    examples: dict[str, store.Run] = {}
    for place, k in zip(PLACES, (-1, len(runs) // 2, 0), strict=True):
        if worst_first[k] not in examples.values():
            examples[place] = worst_first[k]
    return examples


def curves(runs: Sequence[store.Run], marks: dict[int, str], what: str) -> str:
    """One line per trial, of its dev accuracy ("dev") or its "loss". Those with marks, by seed, stand out by
    width, dashes and a name at their end."""
    longest = max(len(run.epochs) for run in runs)
    values = {run.seed: [float(getattr(epoch, what)) for epoch in run.epochs] for run in runs}
    numbers = [value for line in values.values() for value in line]
    if what == "dev":
        name, form, most = "Dev accuracy", ".0%", 1.0
        least = max(0.0, (math.floor(10 * min(numbers)) - 1) / 10)  # a tenth below the least of them
        levels = _tenths(least)
    else:
        name, form, most, least = "Loss", ".3g", max(numbers) or 1.0, 0.0
        levels = [most * k / 4 for k in range(5)]

    def x(epoch: float) -> float:
        return LEFT + (WIDTH - LEFT - 78) * (epoch - 1) / max(longest - 1, 1)

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - least) / (most - least))

    parts = [_level(y(level), f"{level:{form}}") for level in levels]
    parts += [_text(x(n), HEIGHT - BOTTOM + 18, str(n), "middle") for n in _ticks(longest)]
    parts.append(_text((WIDTH + LEFT - 78) / 2, HEIGHT - 2, "epoch", "middle"))
    heights: list[float] = []  # of names
    for run in sorted(runs, key=lambda run: run.seed in marks):  # those with marks are drawn on top
        points = " ".join(f"{x(n):.1f},{y(v):.1f}" for n, v in enumerate(values[run.seed], 1))
        mark = marks.get(run.seed, "other")
        parts.append(f'<polyline class="{mark}" points="{points}"><title>seed {run.seed}</title></polyline>')
        if run.seed in marks:
            heights.append(_free(y(values[run.seed][-1]) + 4, heights))
            parts.append(_text(x(len(run.epochs)) + 5, heights[-1], mark, "start strong"))
    label = html.escape(f"{name} of {counted(len(runs), 'trial')} by epoch")
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _free(height: float, others: Sequence[float]) -> float:
    """The height nearest to this one where a name is not cut off and does not touch the names at the heights
    `others`, three at most."""
    heights = (height + 15 * step for step in (0, 1, -1, 2, -2, 3, -3, 4))
    free = (height for height in heights if all(abs(height - other) >= 15 for other in others))
    return next(height for height in free if height >= TOP - 2)


def accuracies(runs: Sequence[store.Run], paper: Row | None) -> str:
    """Dev and test: one dot per trial, with their least, median and most, and the paper's below them."""
    columns = []
    for split in ("dev", "test"):
        trials = [dots.Trial(f"seed {run.seed}", 100 * run.result[split]) for run in runs]
        ranges = [dots.range_of(trials)]
        if paper:
            ranges.append(dots.Range("paper", *(paper[f"{split}_{name}"] for name in dots.THREE)))
        columns.append([dots.Lane("", trials, ranges)])
    title = "Accuracy against the paper's" if paper else "Accuracy of every trial"
    entry = dots.Entry(counted(len(runs), "trial"), "", "", [], columns)
    return dots.groups([dots.Group(title, "", table_page.COLUMNS, [entry])])


def _tenths(least: float) -> list[float]:
    """From the least to 1, but only every second one where they are many."""
    tenths = range(round(10 * least), 11)
    return [k / 10 for k in tenths if len(tenths) < 7 or (10 - k) % 2 == 0]


def _ticks(longest: int) -> list[int]:
    apart = next(n for n in (1, 2, 5, 10, 20, 50, 10**9) if longest / n <= 8)
    return [1] if longest == 1 else [n for n in range(1, longest + 1) if n == 1 or n % apart == 0]


def _level(y: float, name: str) -> str:
    line = f'<line class="level" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return line + _text(LEFT - 6, y + 4, name, "end")


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{html.escape(text)}</text>'


def _table(runs: Sequence[store.Run], marks: dict[int, str]) -> str:
    rows = "".join(
        f"<tr><td>{run.seed}</td><td>{run.result['epochs']}</td><td>{run.result['dev']:.1%}</td>"
        f"<td>{run.result['test']:.1%}</td><td>{marks.get(run.seed, '')}</td></tr>"
        for run in runs
    )
    heads = "".join(f"<th scope=col>{name}</th>" for name in ("seed", "epochs", "dev", "test", ""))
    return f"<details><summary>Every trial</summary><table><tr>{heads}</tr>{rows}</table></details>"
