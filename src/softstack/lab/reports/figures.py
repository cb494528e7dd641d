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
        """The trace of the first layer, which reads the input."""
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
    sums = (o.double().cumsum(0) + 1e-6).tolist()  # by step
    ends = range(1 + discard_first, count + 1 + discard_first)
    return tuple(next((t for t, total in enumerate(sums) if total >= end), None) for end in ends)


class Block(NamedTuple):
    """Columns that stand together: a vector at each step."""

    title: str
    values: Tensor  # (steps, k)
    labels: Sequence[str]  # of the k numbers


def draw(network: Network, condition: Condition, run: Observed, title: str = "") -> Figure:
    """The columns of Figures 5 and 6."""
    task, buffered = tasks.find(condition.task), isinstance(network, BufferedStackRNN)
    panels = blocks(run, task.alphabet, buffered=buffered)
    steps = len(run.trace.x)
    size = (2 + 0.32 * sum(len(block.labels) + 1.2 for block in panels), 1.6 + 0.22 * steps)
    figure = Figure(figsize=size)
    ratios = [len(block.labels) for block in panels]
    axes = figure.subplots(1, len(panels), squeeze=False, width_ratios=ratios)[0]
    for axis, (name, values, labels) in zip(axes, panels, strict=True):
        image = axis.imshow(
            values.numpy(), cmap="viridis", vmin=0, vmax=1, aspect="auto", interpolation="nearest"
        )
        axis.set_title(name, fontsize=9)
        turned = 90 if max(map(len, labels)) > 2 else 0
        axis.set_xticks(range(len(labels)), labels, fontsize=8, rotation=turned)
        axis.set_yticks([])
    names = [str(t + 1) for t in range(steps)] if buffered else run.example.input
    axes[0].set_yticks(range(steps), names, fontsize=8)
    axes[0].set_ylabel("step" if buffered else "input, step by step")
    figure.suptitle(title or f"{task.name.replace('_', ' ')}, {condition.controller} controller", fontsize=10)
    longest = max(len(label) for block in panels for label in block.labels)
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


def blocks(run: Observed, alphabet: Sequence[str], *, buffered: bool) -> list[Block]:
    """The panels of a run: values from 0, which is dark, to 1; NaN where there is nothing. The scale of a
    head is wider where its values need that."""
    trace, panels = run.trace, []
    for layer_trace, column, title in heads_of(run, buffered=buffered):
        alone = "" if column.title == column.name else column.name  # the label of a number without one
        labels = [label or alone for label in column.labels]
        values = of_head(layer_trace, column)
        finite = values[values.isfinite()].tolist()
        least, most = min([0.0, *finite]), max([1.0, *finite])  # of the darkest and the lightest colour
        if (least, most) != (0, 1):
            title = f"{title}\n{least:.2g} to {most:.2g}"
        panels.append(Block(title, (values - least) / (most - least), labels))
    panels.append(Block("input", trace.x, alphabet))
    panels.append(Block("output", trace.y.softmax(-1) if buffered else run.output, alphabet))
    if buffered:  # beside the step at which each was whole
        read_off = torch.full((len(trace.x), len(alphabet)), torch.nan)
        for step, output in zip(run.made_at, run.output, strict=True):
            if step is not None:
                read_off[step] = output
        panels.append(Block("read off", read_off, alphabet))
    return panels


def heads_of(run: Observed, *, buffered: bool) -> list[tuple[Trace, Column, str]]:
    """The heads of all layers: the layer's trace, the head, and its title, with the layer where there are
    several."""
    several = len(run.traces) > 1
    return [
        (trace, column, f"{column.title}\nlayer {layer}" if several else column.title)
        for layer, trace in enumerate(run.traces, 1)
        for column in columns(trace.memory, buffered=buffered)
    ]


def of_head(trace: Trace, column: Column) -> Tensor:
    """What a head said, (steps, k)."""
    return said(trace)[column.name].reshape(len(trace.x), -1)


def rendered(figure: Figure, kind: str, dpi: int = 150) -> bytes:
    """The figure as the bytes of a PNG or SVG file."""
    file = io.BytesIO()
    figure.savefig(file, format=kind, dpi=dpi)
    return file.getvalue()


def as_json(run: Observed) -> dict[str, Any]:
    """Everything that was observed, as plain lists; null for infinity and NaN. A network of several layers
    has `layers`, a trace of each."""
    layers = [
        {name: plain(values.tolist()) for name, values in trace.tensors().items()} for trace in run.traces
    ]
    return {
        "input": list(run.example.input),
        "target": [target or UNSCORED for target in run.example.target],
        "predicted": list(run.predicted),
        "fed": list(run.fed),
        "made_at": list(run.made_at),
        "output": plain(run.output.tolist()),
        **({"trace": layers[0]} if len(layers) == 1 else {"layers": layers}),
    }
