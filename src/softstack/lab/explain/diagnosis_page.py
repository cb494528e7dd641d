"""A diagnosis as a page of its own, and its numbers as tables."""

import html
from collections.abc import Sequence
from typing import NamedTuple

from softstack import viewer
from softstack.lab.explain.diagnosis import Bin, Diagnosis
from softstack.words import counted


class Line(NamedTuple):
    """A measure: its name, and a share that is drawn as a bar; None where there was nothing to measure."""

    name: str
    share: float | None
    more: str  # what stands beside the share


class Measured(NamedTuple):
    """A table under a title. `names` are those of the lines, of their shares and of what stands beside."""

    title: str
    names: tuple[str, str, str]
    lines: Sequence[Line]


def tables(diagnosis: Diagnosis) -> list[Measured]:
    """All that was measured; without those tables that have nothing in them."""
    ablations = [Line(n, a, f"{diagnosis.agreement[n]:.1%}") for n, a in diagnosis.ablated.items()]
    effects = diagnosis.use.effects.items()
    swaps = [Line(name, e.share if e.grafts else None, f"{e.grafts:,}") for name, e in effects]
    lengths = [Line(counted(n, "symbol"), a, "") for n, a in diagnosis.lengths]
    depths, distances = _lines(diagnosis.depth), _lines(diagnosis.distance)
    sections = [
        Measured("With something taken away", ("taken away", "accuracy", "answers that stay"), ablations),
        Measured("With what another run held", ("swapped", "next answers that change", "swaps"), swaps),
        Measured("By length", ("string of", "accuracy", ""), lengths),
        Measured("By depth", ("height of the stack", "accuracy", "scored"), depths),
        Measured("By how long ago what decides was pushed", ("symbols ago", "accuracy", "scored"), distances),
    ]
    return [measured for measured in sections if measured.lines]


def _lines(bins: Sequence[Bin]) -> list[Line]:
    return [Line(b.name, b.right / b.scored, f"{b.scored:,}") for b in bins]


def text(measured: Measured) -> str:
    """A table as lines of text, with headings."""
    rows = [list(measured.names), *([line.name, _percent(line), line.more] for line in measured.lines)]
    a, b, c = (max(map(len, column)) for column in zip(*rows, strict=True))  # widths
    return "\n".join(f"{name:{a}}  {share:>{b}}  {more:>{c}}".rstrip() for name, share, more in rows)


def page(diagnosis: Diagnosis, title: str) -> str:
    """The verdict, and every number beside a bar."""
    verdict, _, numbers = diagnosis.sentence.partition(". ")
    panels = "\n".join([*map(_panel, tables(diagnosis)), _strengths(diagnosis)])
    return viewer.report(
        title,
        f"<p><b>{html.escape(verdict)}.</b> {html.escape(numbers)}</p><p>{html.escape(diagnosis.fall)}</p>\n"
        f'<div class="measured">{panels}</div>',
    )


def _panel(measured: Measured) -> str:
    head = "".join(f"<th scope=col>{html.escape(name)}</th>" for name in _cells(*measured.names))
    rows = (_cells(html.escape(line.name), _bar(line), line.more) for line in measured.lines)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<section class="panel"><h2>{html.escape(measured.title)}</h2><table class="numbers">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></section>"
    )


def _cells(*cells: str) -> list[str]:
    return [cell for cell in cells if cell]


def _percent(line: Line) -> str:
    return "nothing to swap" if line.share is None else f"{line.share:.1%}"


def _bar(line: Line) -> str:
    if line.share is None:
        return _percent(line)
    return f'<span class="bar"><i style="--share:{line.share:.4f}"></i></span> {_percent(line)}'


def _strengths(diagnosis: Diagnosis) -> str:
    """How often each strength was how large, as ten columns from 0 to 1."""
    if not diagnosis.histogram:
        return ""
    lines = []
    for name, counts in diagnosis.histogram.items():
        total, most = max(1, sum(counts)), max(1, *counts)
        columns = "".join(
            f'<i style="--share:{n / most:.3f}" title="{k / 10} to {(k + 1) / 10}: {n / total:.1%}"></i>'
            for k, n in enumerate(counts)
        )
        lines.append(f'<div class="columns"><b>{html.escape(name)}</b><span>{columns}</span></div>')
    off = diagnosis.drift[-1] / len(diagnosis.drift) if diagnosis.drift else 0.0
    return (
        f'<section class="panel"><h2>Strengths</h2>{"".join(lines)}<div class="columns"><b></b>'
        "<small><span>0</span><span>1</span></small></div>"
        f"<p>Added up over the strengths of a step, they are {off:.2g} away from 0 or 1 on average.</p>"
        "</section>"
    )
