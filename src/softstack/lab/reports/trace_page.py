"""`softstack trace --out FILE.html`: a run as the paper's Figures 5 and 6 draw it, and its steps in a table.

The drawing is made of HTML and takes the width that there is: on a phone its columns are narrower, and its
text is not."""

import html
from collections.abc import Iterator, Sequence

import matplotlib
from matplotlib.colors import to_hex

from softstack import viewer
from softstack.buffered import BufferedStackRNN
from softstack.lab import tasks
from softstack.lab.reports.figures import Block, Observed, blocks, heads_of, of_head, titled
from softstack.lab.tasks.data import UNSCORED
from softstack.lab.training.conditions import Condition, Network
from softstack.trace import Trace
from softstack.viewer.declared import Column

LEAST_SHARE = 0.01  # of what a step reads, for the symbol to be named


def page(network: Network, condition: Condition, seen: Observed, title: str) -> str:
    """A page of its own."""
    buffered = isinstance(network, BufferedStackRNN)
    every = heads_of(seen, buffered=buffered)
    heads = [(layer, column) for layer, column in every if column.kind in ("strength", "choice")]
    names = ["step", "reads" if buffered else "input", "says", *(["target"] if seen.known else [])]
    names += [titled(seen, *head) for head in heads]
    header = "".join(f"<th scope=col>{html.escape(name)}</th>" for name in names)
    alphabet = tasks.find(condition.task).alphabet
    lines = [*_steps(seen, heads, alphabet if buffered else ()), *_unmade(seen, len(heads))]
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in lines)
    notes = [seen.note]
    if buffered:
        notes.append(
            "Each symbol of the output stands beside the step at which it was whole: when strengths of 1 in "
            "all had been given for it."
        )
    return viewer.report(
        title,
        f"{''.join(f'<p>{html.escape(note)}</p>' for note in notes if note)}"
        f'<section class="panel">{_run(seen, alphabet, buffered=buffered)}</section>'
        f'<section class="panel"><h2>Step by step</h2><div class="wide"><table class="steps"><thead><tr>'
        f"{header}</tr></thead><tbody>{body}</tbody></table></div></section>",
    )


def _run(seen: Observed, alphabet: Sequence[str], *, buffered: bool) -> str:
    """Time runs down, and lighter is more."""
    steps = len(seen.trace.x)
    names = [str(t + 1) for t in range(steps)] if buffered else seen.fed
    first = "".join(f"<span>{html.escape(name)}</span>" for name in names)
    listed = blocks(seen, alphabet, buffered=buffered)
    widths = " ".join(f"minmax({8 * len(b.labels)}px, {len(b.labels)}fr)" for b in listed)
    what = "step" if buffered else "input"
    return (
        f'<div class="run" style="grid-template-columns: auto {widths}"><b>{what}</b>'
        f'<div class="names">{first}</div><div></div>{"".join(map(_block, listed))}</div>'
    )


def _block(block: Block) -> str:
    """A title, cells, and what their columns are, one under the other."""
    colour = matplotlib.colormaps["viridis"]
    cells = "".join(
        f'<i style="background:{to_hex(colour(value))}"></i>' if value == value else "<i></i>"  # NaN
        for row in block.values.tolist()
        for value in row
    )
    labels = "".join(f"<span>{html.escape(label)}</span>" for label in block.labels)
    turned = " turned" if max(map(len, block.labels)) > 1 else ""  # a column is one letter wide on a phone
    columns_of = f'style="--k:{len(block.labels)}"'
    return (
        f'<b>{html.escape(block.title)}</b><div class="cells" {columns_of}>{cells}</div>'
        f'<div class="cells{turned}" {columns_of}>{labels}</div>'
    )


def _steps(
    seen: Observed, heads: Sequence[tuple[int, Column]], alphabet: Sequence[str]
) -> Iterator[list[str]]:
    """Each step, and what was said at it. `alphabet` is given where the input comes from a buffer: then a
    step reads a mixture of its symbols."""
    outputs = {step: j for j, step in enumerate(seen.made_at) if step is not None}
    for t, x in enumerate(seen.trace.x):
        symbol = seen.fed[t] if not alphabet else ""
        if alphabet and x.max() >= LEAST_SHARE:
            symbol = alphabet[int(x.argmax())]
        said = _said(seen, outputs[t]) if t in outputs else [_cell("")] * (1 + seen.known)
        numbers = [_cell(_words(seen.traces[layer], head, t)) for layer, head in heads]
        yield [_cell(str(t + 1)), _cell(symbol, "symbol"), *said, *numbers]


def _unmade(seen: Observed, heads: int) -> Iterator[list[str]]:
    """Outputs that were never whole: what is read off where the buffer holds less, or nothing."""
    for j, step in enumerate(seen.made_at):
        if step is None:
            yield [_cell("never whole"), _cell(""), *_said(seen, j), *[_cell("")] * heads]


def _said(seen: Observed, j: int) -> list[str]:
    target = seen.example.target[j]
    verdict = "" if target is None else "right" if seen.predicted[j] == target else "wrong"
    cells = [_cell(seen.predicted[j], f"symbol {verdict}"), _cell(target or UNSCORED, "symbol")]
    return cells if seen.known else cells[:1]


def _cell(text: str, kind: str = "") -> str:
    return f'<td class="{kind.strip()}">{html.escape(text)}</td>' if kind else f"<td>{html.escape(text)}</td>"


def _words(trace: Trace, head: Column, t: int) -> str:
    """A strength as a number, a choice as the action that is likeliest."""
    values = of_head(trace, head)[t].tolist()
    if head.kind == "choice":
        most = max(values)
        return f"{head.labels[values.index(most)]} {most:.3f}"
    return ", ".join(f"{value:.3f}" for value in values)
