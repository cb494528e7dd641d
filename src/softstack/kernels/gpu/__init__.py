"""The kernels of the GPU, compiled by Triton: the members that every backend has (`backend.py`).

Triton is imported by the first call that needs it.
"""

import os
from collections.abc import Sequence

import torch
from torch import Tensor

from softstack.errors import BadInput
from softstack.kernels.gpu.layout import geometry_size, places
from softstack.kernels.kinds import UNBUFFERED
from softstack.kernels.tuples import Gradients, Inputs, Kept, Options, Outputs, Sizes, Steps

DEVICE = "cuda"
COMPILER = "triton"


def why_not(x: Tensor) -> str:
    """Triton can also interpret kernels on the CPU, slowly, to test them."""
    if x.is_cuda or (x.is_cpu and os.environ.get("TRITON_INTERPRET") == "1"):
        return ""
    return f"its tensors are on {x.device}"


def tape_sizes(options: Options, sizes: Sizes) -> tuple[int, int]:
    starts, links = places(options, sizes)
    return sizes.B * starts[-1], sizes.B * links


def log_parts(B: int, N: int, T: int, real: torch.dtype) -> list[tuple[tuple[int, ...], torch.dtype]]:
    return [((B, geometry_size(N)), torch.float64)]


def scan_forward(
    v: Tensor, V0: Tensor | None, steps: Steps, lifo: bool, r: Tensor, s: Tensor,
    log: Sequence[Tensor], checked: bool,
) -> None:  # fmt: skip
    from softstack.kernels.gpu import scan

    scan.forward(v, V0, steps, lifo, r, s, log, checked)


def scan_backward(
    steps: Steps, lifo: bool, s: Tensor, log: Sequence[Tensor],
    gr: Tensor, gV: Tensor | None, gs: Tensor | None,
) -> list[Tensor]:  # fmt: skip
    from softstack.kernels.gpu import scan

    gradients: list[Tensor] = scan.backward(steps, lifo, log, gr, gV, gs)
    return gradients


def scan_step(
    V: Tensor, link: Tensor, level: Tensor, head: Tensor, strength: Tensor, slot: int,
    u: Tensor, d: Tensor, lifo: bool, fault: Tensor, r: Tensor,
) -> None:  # fmt: skip
    from softstack.kernels.gpu import scan

    scan.step(V, link, level, head, strength, slot, u, d, lifo, fault, r)


def rnn_forward(options: Options, sizes: Sizes, inputs: Inputs, outputs: Outputs) -> None:
    from softstack.kernels.gpu import rnn

    for name, kind in UNBUFFERED.items():
        if options.memory == kind:
            raise BadInput(f"there is no kernel for the memory {name!r} on a GPU: use 'auto' or 'reference'")
    rnn.forward(options, sizes, inputs, outputs)


def rnn_backward(
    options: Options, sizes: Sizes, kept: Kept, gradients: Gradients, to_x: bool, from_strengths: bool
) -> None:
    from softstack.kernels.gpu import rnn

    rnn.backward(options, sizes, kept, gradients, to_x, from_strengths)
