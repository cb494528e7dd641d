"""Figures 5 and 6: what a network did on an input, drawn against time.

As in the paper, columns are pop strength, push strength, pushed vectors, input and predicted output, time
runs down, and lighter is more. A buffered network has two columns more: how much it took of its input and
gave to its output at each step.
"""

import html
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.functional import one_hot

from softstack.lab import tasks
from softstack.lab.tasks.data import UNSCORED, Example, check_symbols
from softstack.lab.training.conditions import TABLE_1, Condition
from softstack.networks import BufferedStackRNN
from softstack.trace import Trace


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
def observe(network: nn.Module, condition: Condition, symbols: Sequence[str]) -> Observed:
    """Run a network on a string; a reversal's #s are added where they are missing."""
    task = tasks.find(condition.task)
    check_symbols(task, symbols)
    example = task.example(tuple(symbols))
    indices = torch.tensor([task.alphabet.index(symbol) for symbol in example.input])
    x = one_hot(indices, len(task.alphabet)).to(next(network.parameters()).dtype)
    y, _, trace = network(x, return_trace=True)
    output = y[: len(x)].softmax(-1)
    predicted = tuple(task.alphabet[k] for k in output.argmax(-1).tolist())
    return Observed(example, trace, output, predicted)


def draw(network: nn.Module, condition: Condition, seen: Observed, title: str = "") -> Figure:
    """The columns of Figures 5 and 6."""
    alphabet = tasks.find(condition.task).alphabet
    trace, buffered = seen.trace, isinstance(network, BufferedStackRNN)
    vectors = [str(k + 1) for k in range(trace.v.shape[-1])]
    columns: list[tuple[str, Tensor, Sequence[str]]] = [
        ("pop", trace.u.unsqueeze(-1), ["u"]),
        ("push", trace.d.unsqueeze(-1), ["d"]),
        ("pushed vector", trace.v, vectors),
        ("input", trace.x, alphabet),
        ("output", trace.y.softmax(-1) if buffered else seen.output, alphabet),
    ]
    if buffered:
        columns[3:3] = [("take", trace.i.unsqueeze(-1), ["i"]), ("give", trace.o.unsqueeze(-1), ["o"])]
        columns.append(("read off", seen.output, alphabet))
    steps = trace.u.shape[0]
    figure = Figure(figsize=(2 + 0.32 * sum(len(names) + 1.2 for _, _, names in columns), 1.6 + 0.22 * steps))
    ratios = [len(names) for _, _, names in columns]
    axes = figure.subplots(1, len(columns), squeeze=False, width_ratios=ratios)[0]
    for axis, (name, values, names) in zip(axes, columns, strict=True):
        image = axis.imshow(
            values.numpy(), cmap="viridis", vmin=0, vmax=1, aspect="auto", interpolation="nearest"
        )
        axis.set_title(name, fontsize=9)
        axis.set_xticks(range(len(names)), names, fontsize=8, rotation=90 if max(map(len, names)) > 2 else 0)
        axis.set_yticks([])
    symbols = seen.example.input
    axes[0].set_yticks(
        range(steps), [symbols[t] if t < len(symbols) else "" for t in range(steps)], fontsize=8
    )
    axes[0].set_ylabel("input, step by step" if not buffered else "step")
    if buffered:
        axes[0].set_yticks(range(steps), [str(t + 1) for t in range(steps)], fontsize=8)
    figure.suptitle(
        title or f"{tasks.find(condition.task).name.replace('_', ' ')}, {condition.controller} controller",
        fontsize=10,
    )
    figure.subplots_adjust(
        left=0.12, right=0.88, top=1 - 0.85 / figure.get_figheight(), bottom=0.12, wspace=0.35
    )
    bar = figure.colorbar(image, ax=list(axes), fraction=0.04, pad=0.03)
    bar.ax.tick_params(labelsize=8)
    return figure


def rendered(figure: Figure, kind: str) -> bytes:
    """The figure as the bytes of a PNG or SVG file."""
    file = io.BytesIO()
    figure.savefig(file, format=kind, dpi=150)
    return file.getvalue()


def as_json(seen: Observed) -> dict[str, Any]:
    """Everything that was seen, as plain lists."""
    return {
        "input": list(seen.example.input),
        "target": [target or UNSCORED for target in seen.example.target],
        "predicted": list(seen.predicted),
        "output": seen.output.tolist(),
        "trace": {name: values.tolist() for name, values in seen.trace.tensors().items()},
    }


def as_html(figure: Figure, seen: Observed, title: str) -> str:
    """A page of its own: the figure, and the steps in a table."""
    svg = rendered(figure, "svg").decode()
    svg = svg[svg.index("<svg") :]
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
        for cells in _steps(seen)
    )
    heads = "".join(
        f"<th scope=col>{name}</th>" for name in ("step", "input", "target", "predicted", "pop", "push")
    )
    return (
        f"<!doctype html>\n<html lang=en><meta charset=utf-8><title>{html.escape(title)}</title>"
        "<style>body{font:16px system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}"
        "svg{max-width:100%;height:auto;background:#fff}td,th{padding:.1rem .8rem;text-align:left}</style>\n"
        f"<h1>{html.escape(title)}</h1>\n{svg}\n<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>\n</html>\n"
    )


def _steps(seen: Observed) -> list[tuple[str, ...]]:
    """Each step in words. A buffered network may make more steps than its input has symbols."""
    steps: list[tuple[str, ...]] = []
    for t, (u, d) in enumerate(zip(seen.trace.u.tolist(), seen.trace.d.tolist(), strict=True)):
        symbol = seen.example.input[t] if t < len(seen.example.input) else ""
        target = (seen.example.target[t] or UNSCORED) if symbol else ""
        steps.append(
            (str(t + 1), symbol, target, seen.predicted[t] if symbol else "", f"{u:.3f}", f"{d:.3f}")
        )
    return steps
