"""Networks that the page cannot run: why not, and runs of them that it plays back."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from softstack.controllers import GRU, LSTM, MLP, RNN, Linear
from softstack.lab import tasks
from softstack.lab.reports.figures import traced
from softstack.lab.tasks import Task
from softstack.lab.training.conditions import Condition, Network
from softstack.lab.training.draws import fed
from softstack.memory import NoMemory, Queue, Stack
from softstack.viewer import recorded

CORES: tuple[type, ...] = (Linear, MLP, RNN, GRU, LSTM)  # that forward.js has
MEMORIES: tuple[type, ...] = (Stack, Queue, NoMemory)  # that forward.js has
SHORT = 12  # recorded strings like those of training
LONG = 200  # symbols of the long one, at most


def why_not_run(network: Network) -> str:
    """What of a network the page cannot run; "" where it can run all of it."""
    if len(network.cells) > 1:
        return "several layers"
    cell = network.cell
    if type(cell.memory) not in MEMORIES:
        return f"the memory {cell.memory.name!r}"
    return "" if type(cell.core) in CORES else f"the controller {cell.controller_name!r}"


def note(reason: str) -> str:
    """The note on a network that is played back."""
    return (
        f"This network is played back, not run, in this page, which cannot run {reason}: "
        "choose one of the strings that were recorded."
    )


def strings(task: Task, first: Sequence[str]) -> list[tuple[str, ...]]:
    """The first input, short strings of the task, and a long one."""
    rng = np.random.default_rng(0)
    short = dict.fromkeys(task.sample(rng, 5 * SHORT, "train"))
    long = [symbols for symbols in task.sample(rng, 5 * SHORT, "test") if len(symbols) <= LONG]
    by_length = [*sorted([*short][:SHORT], key=len), *sorted(long, key=len)[-1:]]
    return list(dict.fromkeys([tuple(first), *by_length]))


def record(network: Network, condition: Condition, symbols: Sequence[str]) -> list[dict[str, Any]]:
    """A run on a string, for each layer: what it did between the network's input and output. A buffered
    network is given the string padded as in training: it can tell the difference."""
    task = tasks.find(condition.task)
    typed = tasks.typed(task, tuple(symbols))
    example = tasks.whole(task, typed.example)
    padded = fed(condition, example.input)
    y, traces = traced(network, task.alphabet, padded)
    string = {
        "symbols": list(symbols),
        "input": list(example.input),
        "target": list(example.target) if typed.known else None,
        "left": typed.left,
        "fed": list(padded),
    }
    first, last, output = traces[0], traces[-1], y if condition.buffered else None
    return [{**string, **recorded.run(trace._replace(x=first.x, y=last.y), output)} for trace in traces]
