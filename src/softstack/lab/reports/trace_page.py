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
from softstack.lab.reports.figures import Block, Observed, blocks, heads_of, of_head
from softstack.lab.tasks.data import UNSCORED
from softstack.lab.training.conditions import Condition, Network
from softstack.trace import Trace
from softstack.viewer.declared import Column

LEAST_SHARE = 0.01  # of what a step reads, for the symbol to be named


def page(network: Network, condition: Condition, run: Observed, title: str) -> str:
    """A page of its own."""
    buffered = isinstance(network, BufferedStackRNN)
    all_heads = heads_of(run, buffered=buffered)
    heads = [head for head in all_heads if head[1].kind in ("strength", "choice")]
    names = ["step", "reads" if buffered else "input", "says", *(["target"] if run.known else [])]
    names += [title for _, _, title in heads]
    header = "".join(f"<th scope=col>{html.escape(name)}</th>" for name in names)
    alphabet = tasks.find(condition.task).alphabet
    lines = [*_steps(run, heads, alphabet if buffered else ()), *_missing(run, len(heads))]
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in lines)
    notes = [run.note]
    if buffered:
        notes.append(
            "Each symbol of the output stands beside the step at which it was whole: when strengths of 1 in "
            "all had been given for it."
        )
    return viewer.report(
        title,
        f"{''.join(f'<p>{html.escape(note)}</p>' for note in notes if note)}"
        f'<section class="panel">{_drawing(run, alphabet, buffered=buffered)}</section>'
        f'<section class="panel"><h2>Step by step</h2><div class="wide"><table class="steps"><thead><tr>'
        f"{header}</tr></thead><tbody>{body}</tbody></table></div></section>",
    )


def _drawing(run: Observed, alphabet: Sequence[str], *, buffered: bool) -> str:
    """Time runs down, and lighter is more."""
    steps = len(run.trace.x)
    names = [str(t + 1) for t in range(steps)] if buffered else run.fed
    first = "".join(f"<span>{html.escape(name)}</span>" for name in names)
    panels = blocks(run, alphabet, buffered=buffered)
    widths = " ".join(f"minmax({8 * len(b.labels)}px, {len(b.labels)}fr)" for b in panels)
    what = "step" if buffered else "input"
    return (
        f'<div class="run" style="grid-template-columns: auto {widths}"><b>{what}</b>'
        f'<div class="names">{first}</div><div></div>{"".join(map(_block, panels))}</div>'
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
    run: Observed, heads: Sequence[tuple[Trace, Column, str]], alphabet: Sequence[str]
) -> Iterator[list[str]]:
    """Each step and its output. `alphabet` is given where the input comes from a buffer: then a step reads a
    mixture of its symbols."""
    outputs = {step: j for j, step in enumerate(run.made_at) if step is not None}
    for t, x in enumerate(run.trace.x):
        symbol = run.fed[t] if not alphabet else ""
        if alphabet and x.max() >= LEAST_SHARE:
            symbol = alphabet[int(x.argmax())]
        output = _output(run, outputs[t]) if t in outputs else [_cell("")] * (1 + run.known)
        numbers = [_cell(_words(trace, column, t)) for trace, column, _ in heads]
        yield [_cell(str(t + 1)), _cell(symbol, "symbol"), *output, *numbers]


def _missing(run: Observed, heads: int) -> Iterator[list[str]]:
    """Outputs that were never whole: what is read off where the buffer holds less, or nothing."""
    for j, step in enumerate(run.made_at):
        if step is None:
            yield [_cell("never whole"), _cell(""), *_output(run, j), *[_cell("")] * heads]


def _output(run: Observed, j: int) -> list[str]:
    target = run.example.target[j]
    verdict = "" if target is None else "right" if run.predicted[j] == target else "wrong"
    cells = [_cell(run.predicted[j], f"symbol {verdict}"), _cell(target or UNSCORED, "symbol")]
    return cells if run.known else cells[:1]


def _cell(text: str, kind: str = "") -> str:
    return f'<td class="{kind.strip()}">{html.escape(text)}</td>' if kind else f"<td>{html.escape(text)}</td>"


def _words(trace: Trace, column: Column, t: int) -> str:
    """A strength as a number, a choice as the action that is likeliest."""
    values = of_head(trace, column)[t].tolist()
    if column.kind == "choice":
        most = max(values)
        return f"{column.labels[values.index(most)]} {most:.3f}"
    return ", ".join(f"{value:.3f}" for value in values)
