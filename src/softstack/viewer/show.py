"""`ss.show(trace)`: the page of a run that was recorded, for a notebook or a file."""

import html
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from softstack.errors import BadInput
from softstack.trace import Trace
from softstack.viewer import page, recorded
from softstack.viewer.declared import described, words_for


class Shown:
    """A page. A notebook displays it; `save` writes it to a file."""

    def __init__(self, text: str, height: int) -> None:
        self.text, self.height = text, height

    def _repr_html_(self) -> str:
        style = f"width:100%;height:{self.height}px;border:0"
        return (
            f'<iframe srcdoc="{html.escape(self.text)}" style="{style}" title="What a network did"></iframe>'
        )

    def save(self, path: str | Path) -> None:
        Path(path).write_text(self.text, encoding="utf-8")


def show(
    trace: Trace,
    symbols: Sequence[str] | None = None,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    sequence: int = 0,
    height: int = 820,
) -> Shown:
    """What a network did, step by step, as a page: `y, state, trace = rnn(x, return_trace=True)`, then this.

    `symbols` are names for the T steps, such as the words that were read; `inputs` and `outputs` are names
    for the features of x and y. Of a batch, one `sequence` is shown.

    A network of several layers or directions has a trace for each cell, in the order of `rnn.cells`: show one
    of them. The first step of a cell that reads backwards is the last item.
    """
    trace = _one(trace, sequence)
    steps = len(trace.x)
    if not steps:
        raise BadInput("the trace has no steps: run the network on at least one")
    letters, alphabet = _names("inputs", inputs, trace.x), _names("outputs", outputs, trace.y)
    labels = list(map(str, symbols)) if symbols is not None else _labels(trace.x, inputs, letters)
    if len(labels) != steps:
        raise BadInput(f"symbols must name the {steps} steps of the trace; got {len(labels)} names")
    buffered = bool((trace.i != 1).any() or (trace.o != 1).any())
    run = {**recorded.run(trace), "symbols": labels, "input": labels, "target": None, "fed": labels}
    network = {
        **described(trace.memory, buffered=buffered),
        "title": f"{steps} {'step' if steps == 1 else 'steps'}",
        "facts": words_for(trace.memory),
        "label": "",
        "task": "recorded",
        "controller": "",
        "buffered": False,  # what lay in the buffers is not in a trace
        "runs": [run],
    }
    task = {"alphabet": alphabet, "letters": letters, "inputs": [], "kind": None, "pdt": None, "title": ""}
    data = {"networks": [network], "tasks": {"recorded": task}, "bare": True}
    return Shown(page(data, "What a network did"), height)


def _one(trace: Trace, sequence: int) -> Trace:
    """A trace without a batch axis."""
    if not isinstance(trace, Trace):
        several = isinstance(trace, tuple) and trace and isinstance(trace[0], Trace)
        raise BadInput(
            f"show takes one Trace, and this network has {len(trace)}, one for each of rnn.cells: "
            "show one of them, such as traces[0]"
            if several
            else f"show takes a Trace, as rnn(x, return_trace=True) gives it; got {type(trace).__name__}"
        )
    if trace.x.ndim == 2:
        return trace
    if not 0 <= sequence < len(trace.x):
        raise BadInput(f"sequence must be one of the batch, 0 to {len(trace.x) - 1}; got {sequence}")
    return trace.map(lambda values: values[sequence])


def _names(what: str, names: Sequence[str] | None, values: Tensor) -> list[str]:
    size = values.shape[-1]
    if names is not None and len(names) != size:
        raise BadInput(f"{what} must name {size} features; got {len(names)} names")
    return [str(k + 1) for k in range(size)] if names is None else list(map(str, names))


def _labels(x: Tensor, inputs: Sequence[str] | None, names: list[str]) -> list[str]:
    """The symbol at each step where x is one-hot and its features have names; else the steps' numbers."""
    one_hot = bool(((x == 0) | (x == 1)).all() and (x.sum(-1) == 1).all())
    if inputs is None or not one_hot:
        return [str(t + 1) for t in range(len(x))]
    return [names[k] for k in x.argmax(-1).tolist()]
