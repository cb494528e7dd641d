"""The kernels of the CPU, compiled by numba: the members that every backend has (`backend.py`).

numba is imported by the first call that needs it: that takes a while, and cannot be done while torch traces.
"""

from typing import Any

import torch
from torch import Tensor

from softstack.kernels.cpu.layout import SHORT, links, places, tape_length
from softstack.kernels.cpu.layout import paths as paths
from softstack.kernels.tuples import Gradients, Inputs, Kept, Log, Options, Outputs, Sizes, Steps

DEVICE = "cpu"
COMPILER = "numba"


def why_not(x: Tensor) -> str:
    return "" if x.device.type == "cpu" else f"its tensors are on {x.device}"


def tape_sizes(options: Options, sizes: Sizes) -> tuple[int, int]:
    chained, rows = (tape_length(places(options, sizes, chained)) for chained in (True, False))
    return torch.sym_ite(sizes.N > SHORT, chained, rows), links(options, sizes)


def arrays(parts: Any) -> Any:
    """A named tuple of tensors as one of numpy arrays, in the same memory."""
    if isinstance(parts, Tensor):
        return (parts.detach() if parts.requires_grad else parts).numpy()
    return type(parts)(*[arrays(part) for part in parts])


def scan_forward(steps: Steps, lifo: bool, r: Tensor, s: Tensor, log: Log) -> None:
    from softstack.kernels.cpu import scan

    row = r.new_empty(r.shape[2])
    scan.forward(arrays(row), arrays(steps), lifo, arrays(r), arrays(s), arrays(log))


def scan_backward(
    steps: Steps, lifo: bool, s: Tensor, log: Log, gr: Tensor, gs: Tensor, gV: Tensor, gu: Tensor, gd: Tensor
) -> None:
    from softstack.kernels.cpu import scan

    scan.backward(arrays(steps), lifo, arrays(s), arrays(log), *map(arrays, (gr, gs, gV, gu, gd)))


def rnn_forward(options: Options, sizes: Sizes, inputs: Inputs, outputs: Outputs) -> None:
    from softstack.kernels.cpu import rnn, room

    space = room.for_forward(options, sizes, arrays(inputs.x).dtype)
    rnn.forward(space, options, sizes, arrays(inputs), arrays(outputs), *paths(options, sizes.N))


def rnn_backward(options: Options, sizes: Sizes, kept: Kept, gradients: Gradients, to_x: bool) -> None:
    from softstack.kernels.cpu import rnn, room

    space = room.for_backward(options, sizes, arrays(kept.x).dtype)
    rnn.backward(space, options, sizes, arrays(kept), arrays(gradients), to_x, *paths(options, sizes.N))
