"""Figures 5 and 6: what a network did on an input, drawn against time.

As in the paper, time runs down and lighter is more. There is a column for each head of the network's memory
(of a stack: pop strength, push strength, pushed vectors), for the input and for the predicted output. A
buffered network has three more: what it took of its input, what it gave to its output, and what was read off.
"""

import io
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from matplotlib.figure import Figure
from matplotlib.text import Text
from torch import Tensor

from softstack.buffered import BufferedStackRNN
from softstack.lab import tasks
from softstack.lab.runs.export import plain
from softstack.lab.tasks.data import UNSCORED, Example, check_symbols, one_hot
from softstack.lab.training.conditions import TABLE_1, Condition, Network
from softstack.lab.training.draws import fed
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
    traces: tuple[Trace, ...]  # of each layer, without a batch axis
    output: Tensor  # (T, K) probabilities; of a buffered network, as read off its output buffer
    predicted: tuple[str, ...]
    fed: tuple[str, ...]  # what the network was given: of a buffered one, padded as in training
    made_at: tuple[int | None, ...]  # the step at which each prediction was whole, from 0; None: at none
    known: bool  # whether its targets are
    note: str  # that the string leaves the task's language, that its targets are not known, or nothing

    @property
    def trace(self) -> Trace:
        """Of the first layer, which reads the input."""
        return self.traces[0]


@torch.no_grad()
def traced(
    network: Network, alphabet: Sequence[str], symbols: Sequence[str]
) -> tuple[Tensor, tuple[Trace, ...]]:
    """What a network puts out for symbols, (T, K), and what each of its layers did."""
    indices = torch.tensor([alphabet.index(symbol) for symbol in symbols])
    y, _, trace = network(one_hot(indices, len(alphabet), next(network.parameters())), return_trace=True)
    return y, (trace,) if isinstance(trace, Trace) else trace


def observe(network: Network, condition: Condition, symbols: Sequence[str]) -> Observed:
    """Run a network on a string; a reversal's #s are added where they are missing."""
    task = tasks.find(condition.task)
    check_symbols(task, symbols)
    typed = tasks.typed(task, tuple(symbols))
    example = tasks.whole(task, typed.example)
    padded = fed(condition, example.input)
    y, traces = traced(network, task.alphabet, padded)
    output = y[: len(example.input)].softmax(-1)
    predicted = tuple(task.alphabet[k] for k in output.argmax(-1).tolist())
    made_at: tuple[int | None, ...] = tuple(range(len(predicted)))
    if isinstance(network, BufferedStackRNN):
        made_at = steps_of_outputs(traces[0].o, len(predicted), discard_first=network.discard_first)
    return Observed(example, traces, output, predicted, padded, made_at, typed.known, typed.sentence)


def steps_of_outputs(o: Tensor, count: int, *, discard_first: bool) -> tuple[int | None, ...]:
    """§2.3: the step at which each of the first outputs was whole: when the strengths given so far reach its
    end in the output buffer. No step gives more than 1, so none makes two. None: never. o is (steps,)."""
    whole = o.double().cumsum(0) + 1e-6  # (steps,)
    ends = range(1 + discard_first, count + 1 + discard_first)
    return tuple(next((t for t, held in enumerate(whole.tolist()) if held >= end), None) for end in ends)


class Block(NamedTuple):
    """Columns that stand together: a vector at each step."""

    title: str
    values: Tensor  # (steps, k)
    labels: Sequence[str]  # of the k numbers


def draw(network: Network, condition: Condition, seen: Observed, title: str = "") -> Figure:
    """The columns of Figures 5 and 6."""
    task, buffered = tasks.find(condition.task), isinstance(network, BufferedStackRNN)
    drawn = blocks(seen, task.alphabet, buffered=buffered)
    steps = len(seen.trace.x)
    size = (2 + 0.32 * sum(len(block.labels) + 1.2 for block in drawn), 1.6 + 0.22 * steps)
    figure = Figure(figsize=size)
    ratios = [len(block.labels) for block in drawn]
    axes = figure.subplots(1, len(drawn), squeeze=False, width_ratios=ratios)[0]
    for axis, (name, values, labels) in zip(axes, drawn, strict=True):
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
    longest = max(len(label) for block in drawn for label in block.labels)
    height, room = figure.get_figheight(), 0.3 + 0.07 * longest if longest > 2 else 0.0  # inches
    figure.subplots_adjust(
        left=0.12, right=0.88, top=1 - 0.85 / height, bottom=max(0.12, room / height), wspace=0.35
    )
    bar = figure.colorbar(image, ax=list(axes), fraction=0.04, pad=0.03)
    bar.ax.tick_params(labelsize=8)
    return as_written(figure)


def as_written(figure: Figure) -> Figure:
    """With names and symbols as they are: a $ in them begins no formula."""
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    return figure


def blocks(seen: Observed, alphabet: Sequence[str], *, buffered: bool) -> list[Block]:
    """What is drawn of a run: values from 0, which is dark, to 1; NaN where there is nothing."""
    trace = seen.trace
    listed = []
    for layer, column in heads_of(seen, buffered=buffered):
        alone = "" if column.title == column.name else column.name  # the label of a number without one
        labels = [label or alone for label in column.labels]
        values = of_head(seen.traces[layer], column)
        least, most = _range(values)
        title = titled(seen, layer, column)
        title = title if (least, most) == (0, 1) else f"{title}\n{least:.2g} to {most:.2g}"
        listed.append(Block(title, (values - least) / (most - least), labels))
    listed.append(Block("input", trace.x, alphabet))
    listed.append(Block("output", trace.y.softmax(-1) if buffered else seen.output, alphabet))
    if buffered:  # beside the step at which each was whole
        read_off = torch.full((len(trace.x), len(alphabet)), torch.nan)
        for step, output in zip(seen.made_at, seen.output, strict=True):
            if step is not None:
                read_off[step] = output
        listed.append(Block("read off", read_off, alphabet))
    return listed


def heads_of(seen: Observed, *, buffered: bool) -> list[tuple[int, Column]]:
    """The heads of all layers, each with the number of its layer from 0."""
    every = [columns(trace.memory, buffered=buffered) for trace in seen.traces]
    return [(layer, column) for layer, heads in enumerate(every) for column in heads]


def titled(seen: Observed, layer: int, column: Column) -> str:
    """What stands above a head: with its layer where there are several."""
    return column.title if len(seen.traces) == 1 else f"{column.title}\nlayer {layer + 1}"


def of_head(trace: Trace, column: Column) -> Tensor:
    """What a head said, (steps, k)."""
    return said(trace)[column.name].reshape(len(trace.x), -1)


def _range(values: Tensor) -> tuple[float, float]:
    """What the darkest and the lightest colour stand for: 0 and 1, or less and more where values need it."""
    known = values[values.isfinite()].tolist()
    return min([0.0, *known]), max([1.0, *known])


def rendered(figure: Figure, kind: str, dpi: int = 150) -> bytes:
    """The figure as the bytes of a PNG or SVG file."""
    file = io.BytesIO()
    figure.savefig(file, format=kind, dpi=dpi)
    return file.getvalue()


def as_json(seen: Observed) -> dict[str, Any]:
    """Everything that was seen, as plain lists; null where a number is infinite or none at all. A network of
    several layers has `layers`, a trace of each."""
    layers = [
        {name: plain(values.tolist()) for name, values in trace.tensors().items()} for trace in seen.traces
    ]
    return {
        "input": list(seen.example.input),
        "target": [target or UNSCORED for target in seen.example.target],
        "predicted": list(seen.predicted),
        "fed": list(seen.fed),
        "made_at": list(seen.made_at),
        "output": plain(seen.output.tolist()),
        **({"trace": layers[0]} if len(layers) == 1 else {"layers": layers}),
    }
