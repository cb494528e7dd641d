"""`ss.show(trace)`: the page of a run that was recorded, for a notebook or a file."""

import html
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import pad

from softstack.errors import BadInput
from softstack.memory import Ahead, MemoryState, above, before, pop, read
from softstack.trace import Trace
from softstack.viewer import page


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
    """
    if not isinstance(trace, Trace):
        raise BadInput(
            f"show takes a Trace, as rnn(x, return_trace=True) gives it; got {type(trace).__name__}"
        )
    if trace.u.ndim == 2:
        if not 0 <= sequence < len(trace.u):
            raise BadInput(f"sequence must be one of the batch, 0 to {len(trace.u) - 1}; got {sequence}")
        trace = trace.map(lambda values: values[sequence])
    trace = trace.map(lambda values: values.detach().double().cpu())
    steps, slots = trace.s.shape
    if not steps:
        raise BadInput("the trace has no steps: run the network on at least one")
    kind = _kind(trace)
    letters, said = _names("inputs", inputs, trace.x), _names("outputs", outputs, trace.y)
    labels = list(symbols) if symbols is not None else _labels(trace.x, inputs, letters)
    if len(labels) != steps:
        raise BadInput(f"symbols must name the {steps} steps of the trace; got {len(labels)} names")
    gates = bool((trace.i != 1).any() or (trace.o != 1).any())
    network = {
        "title": f"{steps} steps",
        "facts": {"stack": "stack", "queue": "queue", "none": "no memory"}[kind]
        + ("" if kind == "none" else f" of vectors of {trace.v.shape[-1]}"),
        "label": "",
        "task": "recorded",
        "controller": "",
        "memory": kind,
        "buffered": False,
        "gates": gates,
        "weights": {},
    }
    task = {"alphabet": said, "letters": letters, "inputs": [], "kind": None, "pdt": None, "title": ""}
    run = {name: values.tolist() for name, values in trace.tensors().items()}
    earlier = 0 if kind == "none" else slots - steps
    recorded = {"run": run, "symbols": labels, "earlier": earlier, "queue": kind == "queue"}
    data = {"networks": [network], "tasks": {"recorded": task}, "recorded": recorded}
    return Shown(page(data, "What a network did"), height)


def _kind(trace: Trace) -> str:
    """Which memory was at work: the one whose pops and reads the trace follows, a stack if both do."""
    if not trace.s.shape[-1]:
        return "none"
    return "queue" if _misfit(trace, before) < _misfit(trace, above) else "stack"


def _misfit(trace: Trace, ahead: Ahead) -> float:
    """How far strengths and reads are from those of a memory that meets its items in the order of `ahead`."""
    steps, slots = trace.s.shape
    filled = torch.arange(slots) < torch.arange(slots - steps, slots).unsqueeze(-1)  # before each step
    popped = (pop(trace.s[:-1], trace.u[1:], ahead) - trace.s[1:]) * filled[1:]
    V = pad(trace.v, (0, 0, slots - steps, 0)).expand(steps, slots, -1)
    reads = read(MemoryState(V, trace.s), ahead) - trace.r
    known = slots == steps  # else some vectors were pushed before the trace began, and are not in it
    return float(popped.abs().sum() + known * reads.abs().sum())


def _names(what: str, given: Sequence[str] | None, values: Tensor) -> list[str]:
    size = values.shape[-1]
    if given is not None and len(given) != size:
        raise BadInput(f"{what} must name {size} features; got {len(given)} names")
    return [str(k + 1) for k in range(size)] if given is None else list(given)


def _labels(x: Tensor, inputs: Sequence[str] | None, names: list[str]) -> list[str]:
    """The symbol at each step where x is one-hot and its features have names; else the steps' numbers."""
    one_hot = bool(((x == 0) | (x == 1)).all() and (x.sum(-1) == 1).all())
    if inputs is None or not one_hot:
        return [str(t + 1) for t in range(len(x))]
    return [names[k] for k in x.argmax(-1).tolist()]
