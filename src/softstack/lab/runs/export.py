"""A trained network in a form that needs no softstack, or little: weights, a graph, or text."""

import io
import json
import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple

import safetensors.torch
import torch
from torch import Tensor, nn

from softstack.buffered import BufferedStackRNN
from softstack.lab import tasks
from softstack.lab.runs import store
from softstack.networks import StackRNN


class Outputs(nn.Module):
    """x (B, T, letters), one-hot -> y (B, T, letters): the network without its state."""

    def __init__(self, network: StackRNN | BufferedStackRNN) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.network(x)[0]
        return y


def as_safetensors(run: store.Run, length: int) -> bytes:
    """The plain state dict, as `load_state_dict` takes it."""
    return safetensors.torch.save(store.network(run).state_dict())


def as_graph(run: store.Run, length: int) -> bytes:
    """What torch.export makes of the reference: any batch of strings of `length` steps."""
    network = store.network(run)
    network.backend = "reference"
    x = torch.zeros(2, length, len(tasks.find(run.condition.task).alphabet))
    graph = torch.export.export(Outputs(network), (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    file = io.BytesIO()
    torch.export.save(graph, file)
    return file.getvalue()


def as_json(run: store.Run, length: int) -> bytes:
    task = tasks.find(run.condition.task)
    content = {
        "condition": asdict(run.condition),
        "seed": run.seed,
        "result": run.result,
        "alphabet": task.alphabet,
        "weights": {name: plain(w.tolist()) for name, w in store.network(run).state_dict().items()},
    }
    return json.dumps(content, indent=1).encode() + b"\n"


def plain(value: Any) -> Any:
    """A number, or nested lists of them, for JSON: null where one is infinite or none at all."""
    if isinstance(value, list):
        return [plain(part) for part in value]
    return value if math.isfinite(value) else None


class Format(NamedTuple):
    suffix: str
    write: Callable[[store.Run, int], bytes]


FORMATS: dict[str, Format] = {
    "safetensors": Format(".safetensors", as_safetensors),
    "torch": Format(".pt2", as_graph),
    "json": Format(".json", as_json),
}
