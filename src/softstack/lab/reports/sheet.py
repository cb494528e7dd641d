"""A report of many networks as a page: what came out, every trial as a dot, and the numbers in a table.

`softstack table` and `softstack solve` write theirs with it; a report of your own is `page` of groups.
"""

import html
import re
from collections.abc import Sequence

from softstack import viewer
from softstack.lab.reports import dots


def key(*, paper: bool = False) -> str:
    """What the marks of the drawing stand for."""
    marks = {"dot": "a trial", "range ours": "least, median and most of them"}
    if paper:
        marks |= {"range ours": "our least, median and most", "range paper": "the paper's"}
    spans = "".join(f'<span><i class="{kind}"></i>{html.escape(text)}</span>' for kind, text in marks.items())
    return f'<p class="key">{spans}</p>'


def page(title: str, lead: str, groups: Sequence[dots.Group], table: str, stamp: str) -> str:
    parts = [f"<p>{prose(lead)}</p>", key(paper=True), dots.groups(groups), table]
    return viewer.report(title, "\n".join(parts), stamp=stamp.replace("`", ""))


def table(
    legend: str,
    header: Sequence[str],
    lines: Sequence[Sequence[str]],
    kinds: Sequence[str] = (),
    *,
    title: str = "In numbers",
    kind: str = "numbers",
) -> str:
    """Numbers under the drawing. `kind` and the `kinds` of lines are classes in viewer/report.css."""
    head = "".join(f"<th scope=col>{html.escape(name)}</th>" for name in header)
    body = "\n".join(
        f'<tr class="{line_kind}">' + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>"
        for line, line_kind in zip(lines, kinds or [""] * len(lines), strict=True)
    )
    return (
        f'<section class="panel"><h2>{html.escape(title)}</h2><p>{prose(legend)}</p>'
        f'<div class="wide"><table class="{kind}"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div></section>"
    )


def prose(text: str) -> str:
    """Text as HTML; what stands between backticks is code."""
    return re.sub("`(.+?)`", r"<code>\1</code>", html.escape(text))
