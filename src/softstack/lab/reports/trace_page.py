"""`softstack trace --out FILE.html`: the figure of a run, and its steps in a table."""

import html
from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure

from softstack import viewer
from softstack.buffered import BufferedStackRNN
from softstack.lab import tasks
from softstack.lab.reports.figures import Observed, heads_of, of_head, rendered, titled
from softstack.lab.tasks.data import UNSCORED
from softstack.lab.training.conditions import Condition, Network
from softstack.trace import Trace
from softstack.viewer.declared import Column

LEAST_SHARE = 0.01  # of what a step reads, for the symbol to be named


def page(network: Network, condition: Condition, seen: Observed, figure: Figure, title: str) -> str:
    """A page of its own."""
    buffered = isinstance(network, BufferedStackRNN)
    svg = rendered(figure, "svg").decode()
    every = heads_of(seen, buffered=buffered)
    heads = [(layer, column) for layer, column in every if column.kind in ("strength", "choice")]
    names = ["step", "reads" if buffered else "input", "says", "target", *(titled(seen, *h) for h in heads)]
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
        f'<section class="panel figure">{svg[svg.index("<svg") :]}</section>'
        f'<section class="panel"><h2>Step by step</h2><div class="wide"><table class="steps"><thead><tr>'
        f"{header}</tr></thead><tbody>{body}</tbody></table></div></section>",
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
        said = _said(seen, outputs[t]) if t in outputs else [_cell(""), _cell("")]
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
    return [_cell(seen.predicted[j], f"symbol {verdict}"), _cell(target or UNSCORED, "symbol")]


def _cell(text: str, kind: str = "") -> str:
    return f'<td class="{kind.strip()}">{html.escape(text)}</td>' if kind else f"<td>{html.escape(text)}</td>"


def _words(trace: Trace, head: Column, t: int) -> str:
    """A strength as a number, a choice as the action that is likeliest."""
    values = of_head(trace, head)[t].tolist()
    if head.kind == "choice":
        most = max(values)
        return f"{head.labels[values.index(most)]} {most:.3f}"
    return ", ".join(f"{value:.3f}" for value in values)
