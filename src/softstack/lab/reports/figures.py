"""Figures 5 and 6: what a network did on an input, drawn against time.

As in the paper, time runs down and lighter is more. There is a column for each head of the network's memory
(of a stack: pop strength, push strength, pushed vectors), for the input and for the predicted output. A
buffered network has three more: what it took of its input, what it gave to its output, and what was read off.
"""

import html
import io
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor

from softstack.buffered import BufferedStackRNN
from softstack.errors import BadInput
from softstack.lab import tasks
from softstack.lab.tasks.data import UNSCORED, Example, check_symbols, one_hot
from softstack.lab.training.conditions import TABLE_1, Condition, Network
from softstack.trace import Trace
from softstack.viewer.declared import Column, columns, said


class Shown(NamedTuple):
    """A network of the paper's figures, and the input on which it is shown."""

    name: str
    title: str
    condition: Condition
    symbols: tuple[str, ...]


FIGURES: list[Shown] = [
    Shown("figure5-left", "Reversal, 2 symbols, linear controller", TABLE_1[0], tuple("100111")),
    Shown(
        "figure5-centre",
        "Reversal of 0 and 1 among 4 symbols, linear controller",
        Condition("selective_reversal", "linear", "stack"),
        tuple("223030123112"),
    ),
    Shown("figure5-right", "Reversal, 2 symbols, LSTM controller", TABLE_1[2], tuple("100111")),
    Shown("figure6-left", "Delayed XOR, linear controller", TABLE_1[7], tuple("110110000110")),
    Shown("figure6-right", "Parenthesis, linear controller", TABLE_1[8], tuple("[([[]])][[()]]()[]")),
]


class Observed(NamedTuple):
    """A network's run on one example."""

    example: Example
    trace: Trace  # without a batch axis
    output: Tensor  # (T, K) probabilities; of a buffered network, as read off its output buffer
    predicted: tuple[str, ...]


@torch.no_grad()
def traced(network: Network, alphabet: Sequence[str], symbols: Sequence[str]) -> tuple[Tensor, Trace]:
    """What a network of one cell puts out for symbols, (T, K), and what it did."""
    if len(network.cells) > 1:
        raise BadInput(
            f"a figure or a page shows one cell, and this network has {len(network.cells)} of them, in "
            "layers or directions: show them one by one, with "
            "y, state, traces = network(x, return_trace=True) and ss.show(traces[0])"
        )
    indices = torch.tensor([alphabet.index(symbol) for symbol in symbols])
    y, _, trace = network(one_hot(indices, len(alphabet), next(network.parameters())), return_trace=True)
    return y, trace


def observe(network: Network, condition: Condition, symbols: Sequence[str]) -> Observed:
    """Run a network on a string; a reversal's #s are added where they are missing."""
    task = tasks.find(condition.task)
    check_symbols(task, symbols)
    example = task.example(tuple(symbols))
    y, trace = traced(network, task.alphabet, example.input)
    output = y[: len(example.input)].softmax(-1)
    predicted = tuple(task.alphabet[k] for k in output.argmax(-1).tolist())
    return Observed(example, trace, output, predicted)


class Block(NamedTuple):
    """Columns that stand together: a vector at each step."""

    title: str
    values: Tensor  # (steps, k)
    labels: Sequence[str]  # of the k numbers


def draw(network: Network, condition: Condition, seen: Observed, title: str = "") -> Figure:
    """The columns of Figures 5 and 6."""
    task, buffered = tasks.find(condition.task), isinstance(network, BufferedStackRNN)
    blocks = _blocks(seen, task.alphabet, buffered)
    steps = len(seen.trace.x)
    size = (2 + 0.32 * sum(len(block.labels) + 1.2 for block in blocks), 1.6 + 0.22 * steps)
    figure = Figure(figsize=size)
    ratios = [len(block.labels) for block in blocks]
    axes = figure.subplots(1, len(blocks), squeeze=False, width_ratios=ratios)[0]
    for axis, (name, values, labels) in zip(axes, blocks, strict=True):
        image = axis.imshow(
            values.numpy(), cmap="viridis", vmin=0, vmax=1, aspect="auto", interpolation="nearest"
        )
        axis.set_title(name, fontsize=9)
        turned = 90 if max(map(len, labels)) > 2 else 0
        axis.set_xticks(range(len(labels)), labels, fontsize=8, rotation=turned)
        axis.set_yticks([])
    names = [str(t + 1) for t in range(steps)] if buffered else seen.example.input
    axes[0].set_yticks(range(steps), names, fontsize=8)
    axes[0].set_ylabel("step" if buffered else "input, step by step")
    figure.suptitle(title or f"{task.name.replace('_', ' ')}, {condition.controller} controller", fontsize=10)
    longest = max(len(label) for block in blocks for label in block.labels)
    height, room = figure.get_figheight(), 0.3 + 0.07 * longest if longest > 2 else 0.0  # inches
    figure.subplots_adjust(
        left=0.12, right=0.88, top=1 - 0.85 / height, bottom=max(0.12, room / height), wspace=0.35
    )
    bar = figure.colorbar(image, ax=list(axes), fraction=0.04, pad=0.03)
    bar.ax.tick_params(labelsize=8)
    return figure


def _blocks(seen: Observed, alphabet: Sequence[str], buffered: bool) -> list[Block]:
    trace = seen.trace
    blocks = []
    for column in columns(trace.memory, buffered=buffered):
        alone = "" if column.title == column.name else column.name  # the label of a number without one
        labels = [label or alone for label in column.labels]
        values = _of_head(trace, column)
        least, most = _range(values)
        title = column.title if (least, most) == (0, 1) else f"{column.title}\n{least:.2g} to {most:.2g}"
        blocks.append(Block(title, (values - least) / (most - least), labels))
    blocks.append(Block("input", trace.x, alphabet))
    blocks.append(Block("output", trace.y.softmax(-1) if buffered else seen.output, alphabet))
    if buffered:
        blocks.append(Block("read off", seen.output, alphabet))
    return blocks


def _of_head(trace: Trace, column: Column) -> Tensor:
    """What a head said, (steps, k)."""
    return said(trace)[column.name].reshape(len(trace.x), -1)


def _range(values: Tensor) -> tuple[float, float]:
    """What the darkest and the lightest colour stand for: 0 and 1, or less and more where values need it."""
    known = values[values.isfinite()].tolist()
    return min([0.0, *known]), max([1.0, *known])


def rendered(figure: Figure, kind: str) -> bytes:
    """The figure as the bytes of a PNG or SVG file."""
    file = io.BytesIO()
    figure.savefig(file, format=kind, dpi=150)
    return file.getvalue()


def as_json(seen: Observed) -> dict[str, Any]:
    """Everything that was seen, as plain lists; null where a number is infinite or none at all."""
    return {
        "input": list(seen.example.input),
        "target": [target or UNSCORED for target in seen.example.target],
        "predicted": list(seen.predicted),
        "output": _plain(seen.output.tolist()),
        "trace": {name: _plain(values.tolist()) for name, values in seen.trace.tensors().items()},
    }


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value if math.isfinite(value) else None


def as_html(figure: Figure, seen: Observed, title: str) -> str:
    """A page of its own: the figure, and the steps in a table."""
    svg = rendered(figure, "svg").decode()
    svg = svg[svg.index("<svg") :]
    heads = [column for column in columns(seen.trace.memory) if column.kind in ("strength", "choice")]
    names = ("step", "input", "target", "predicted", *(column.title for column in heads))
    header = "".join(f"<th scope=col>{html.escape(name)}</th>" for name in names)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
        for cells in _steps(seen, heads)
    )
    return (
        f"<!doctype html>\n<html lang=en><meta charset=utf-8><title>{html.escape(title)}</title>"
        "<style>body{font:16px system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}"
        "svg{max-width:100%;height:auto;background:#fff}td,th{padding:.1rem .8rem;text-align:left}</style>\n"
        f"<h1>{html.escape(title)}</h1>\n{svg}\n"
        f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>\n</html>\n"
    )


def _steps(seen: Observed, heads: Sequence[Column]) -> list[list[str]]:
    """Each step in words. A buffered network may make more steps than its input has symbols."""
    steps: list[list[str]] = []
    for t in range(len(seen.trace.x)):
        symbol = seen.example.input[t] if t < len(seen.example.input) else ""
        target = (seen.example.target[t] or UNSCORED) if symbol else ""
        says = seen.predicted[t] if symbol else ""
        steps.append([str(t + 1), symbol, target, says, *(_words(seen.trace, head, t) for head in heads)])
    return steps


def _words(trace: Trace, head: Column, t: int) -> str:
    """A strength as a number, a choice as the action that is likeliest."""
    values = _of_head(trace, head)[t].tolist()
    if head.kind == "choice":
        most = max(values)
        return f"{head.labels[values.index(most)]} {most:.3f}"
    return ", ".join(f"{value:.3f}" for value in values)
