"""`ss.show(trace)`: the page of a run that was recorded, for a notebook or a file."""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from softstack.errors import BadInput
from softstack.trace import Trace
from softstack.viewer import page, recorded
from softstack.viewer.declared import described, words_for
from softstack.words import counted


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
    trace: Trace | Sequence[Trace],
    symbols: Sequence[str] | None = None,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    sequence: int = 0,
    height: int = 820,
) -> Shown:
    """What a network did, step by step, as a page: `y, state, trace = rnn(x, return_trace=True)`, then this.

    `symbols` are names for the T steps, such as the words that were read; `inputs` and `outputs` are names
    for the numbers of x and y. Of a batch, one `sequence` is shown. Without an `output_size`, y is the
    controller's features, and no output is shown unless you name it.

    A network of several layers or directions has a trace for each cell, in the order of `rnn.cells`. All of
    them are shown, one below the other. The first reads x, and the last puts out y. The first step of a cell
    that reads backwards is the last item.
    """
    cells = [_one(cell, sequence) for cell in ([trace] if isinstance(trace, Trace) else _several(trace))]
    first, last = cells[0], cells[-1]
    if not len(first.x):
        raise BadInput("the trace has no steps: run the network on at least one")
    letters, alphabet = _names("inputs", inputs, first.x), _outputs(last, outputs)
    labels = list(map(str, symbols)) if symbols is not None else _labels(first.x, inputs, letters)
    if len(labels) != len(first.x):
        steps, given = counted(len(first.x), "step"), counted(len(labels), "name")
        raise BadInput(f"symbols must name the {steps} of the trace; got {given}")
    networks, tasks = [], {}
    for k, cell in enumerate(cells):
        names = {
            "letters": letters if cell.x.shape[-1] == len(letters) else _names("inputs", None, cell.x),
            "alphabet": alphabet if cell.y.shape[-1] == len(alphabet) else _outputs(cell),
        }
        tasks[str(k)] = {**names, "inputs": [], "kind": None, "pdt": None, "title": ""}
        networks.append({**_network(cell, _numbers(cell.x) if cell.backwards else labels), "task": str(k)})
        if len(cells) > 1:
            direction = ", backwards" if cell.backwards else ""
            networks[-1]["title"] = f"Cell {k + 1} of {len(cells)}{direction}: {networks[-1]['title']}"
    return Shown(page({"networks": networks, "tasks": tasks, "bare": True}, "What a network did"), height)


def _network(trace: Trace, labels: list[str]) -> dict[str, Any]:
    """A cell as data of the page; `labels` are the names of its steps."""
    steps = len(trace.x)
    buffered = bool((trace.i != 1).any() or (trace.o != 1).any())
    run = {**recorded.run(trace), "symbols": labels, "input": labels, "target": None, "fed": labels}
    return {
        **described(trace.memory, buffered=buffered),
        "title": f"{steps} {'step' if steps == 1 else 'steps'}",
        "facts": words_for(trace.memory),
        "label": "",
        "controller": "",
        "buffered": False,  # what lay in the buffers is not in a trace
        "runs": [run],
    }


def _several(traces: Any) -> list[Trace]:
    if not isinstance(traces, tuple | list) or not traces or not isinstance(traces[0], Trace):
        raise BadInput(
            f"show takes a Trace, as rnn(x, return_trace=True) gives it; got {type(traces).__name__}"
        )
    return list(traces)


def _one(trace: Trace, sequence: int) -> Trace:
    """A trace without a batch axis."""
    if trace.x.ndim == 2:
        return trace
    if not 0 <= sequence < len(trace.x):
        raise BadInput(f"sequence must be one of the batch, 0 to {len(trace.x) - 1}; got {sequence}")
    return trace.map(lambda values: values[sequence])


def _outputs(trace: Trace, names: Sequence[str] | None = None) -> list[str]:
    """Names of what a cell puts out; none where that is its features, which say nothing by themselves."""
    if names is None and trace.y.shape == trace.h.shape and _alike(trace.y, trace.h):
        return []
    return _names("outputs", names, trace.y)


def _alike(y: Tensor, h: Tensor) -> bool:
    return torch.allclose(y, h.to(y.dtype), rtol=0, atol=0, equal_nan=True)


def _names(what: str, names: Sequence[str] | None, values: Tensor) -> list[str]:
    size = values.shape[-1]
    if names is not None and len(names) != size:
        raise BadInput(f"{what} must name {size} features; got {counted(len(names), 'name')}")
    return [str(k + 1) for k in range(size)] if names is None else list(map(str, names))


def _labels(x: Tensor, inputs: Sequence[str] | None, names: list[str]) -> list[str]:
    """The symbol at each step where x is one-hot and its features have names; else the steps' numbers."""
    one_hot = bool(((x == 0) | (x == 1)).all() and (x.sum(-1) == 1).all())
    if inputs is None or not one_hot:
        return _numbers(x)
    return [names[k] for k in x.argmax(-1).tolist()]


def _numbers(x: Tensor) -> list[str]:
    """The steps', from 1."""
    return [str(t + 1) for t in range(len(x))]
