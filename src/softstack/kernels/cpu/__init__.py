"""The kernels of the CPU, compiled by numba: the members that every backend has (`backend.py`).

numba is imported by the first call that needs it: that takes a while, and cannot be done while torch traces.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softstack.kernels.cpu.layout import SHORT, links, places, tape_length
from softstack.kernels.cpu.layout import paths as paths
from softstack.kernels.tensors import empty, own
from softstack.kernels.tuples import Gradients, Inputs, Kept, Log, Options, Outputs, Sizes, Steps

DEVICE = "cpu"
COMPILER = "numba"
SHARE = 1 << 19  # numbers that a scan reads in each thread, at least: some milliseconds of work


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


def side_by_side(run: Callable[..., None], size: int, *parts: Any) -> None:
    """Sequences are computed apart: where there is much to do, on as many cores as torch may use."""
    B = parts[0].V.shape[0]
    count = min(B, torch.get_num_threads(), size // SHARE)
    if count < 2:
        run(*parts)
        return
    bounds = [B * k // count for k in range(count + 1)]
    with ThreadPoolExecutor(count) as pool:  # compiled code lets go of Python's lock
        tasks = [
            pool.submit(run, *(slice_of(part, slice(*ends)) for part in parts)) for ends in pairwise(bounds)
        ]
        for task in tasks:
            task.result()


def slice_of(part: Any, sequences: slice) -> Any:
    """Some sequences of an array or of a named tuple of them."""
    return type(part)(*(x[sequences] for x in part)) if isinstance(part, tuple) else part[sequences]


def log_parts(B: int, N: int, T: int, real: torch.dtype) -> list[tuple[tuple[int, ...], torch.dtype]]:
    """The shapes and dtypes of a `Log`."""
    return [((B, N), torch.int32), ((B, N), real), ((B, T + 1), torch.int32), ((B, T + 1), real)]


def scan_forward(
    v: Tensor, V0: Tensor | None, steps: Steps, lifo: bool, r: Tensor, s: Tensor,
    log: Sequence[Tensor], checked: bool,
) -> None:  # fmt: skip
    from softstack.kernels.cpu import far, scan

    def run(steps: Any, r: Any, s: Any, log: Any) -> None:
        _, N, m = steps.V.shape
        scan.forward(np.empty(m, r.dtype), steps, lifo, r, s, log, far.room(N, m, r.dtype))

    n = steps.V.shape[1] - v.shape[1]
    steps.V[:, n:] = v
    if V0 is not None and n:
        steps.V[:, :n] = V0
    side_by_side(run, r.numel(), *map(arrays, (steps, r, s, Log(*log))))


def scan_backward(
    steps: Steps, lifo: bool, s: Tensor, log: Sequence[Tensor],
    gr: Tensor, gV: Tensor | None, gs: Tensor | None,
) -> list[Tensor]:  # fmt: skip
    from softstack.kernels.cpu import far, scan

    def run(steps: Any, s: Any, log: Any, *gradients: Any) -> None:
        _, N, m = steps.V.shape
        scan.backward(steps, lifo, s, log, *gradients, far.room(N, m, s.dtype))

    V, u, d, *_ = steps
    to_V, to_s = own(gV, V, V.shape), own(gs, u, s.shape)
    to_u, to_d = empty(u, u.shape), empty(d, d.shape)
    side_by_side(run, gr.numel(), *map(arrays, (steps, s, Log(*log), gr, to_s, to_V, to_u, to_d)))
    return [to_V, to_u, to_d, to_s[:, : V.shape[1] - u.shape[1]].clone()]


def scan_step(
    V: Tensor, link: Tensor, level: Tensor, head: Tensor, strength: Tensor, slot: int,
    u: Tensor, d: Tensor, lifo: bool, fault: Tensor, r: Tensor,
) -> None:  # fmt: skip
    from softstack.kernels.cpu import scan

    chains = map(arrays, (V, link, level, head, strength))
    scan.step(*chains, slot, *map(arrays, (u, d)), lifo, *map(arrays, (fault, r)))


def rnn_forward(options: Options, sizes: Sizes, inputs: Inputs, outputs: Outputs) -> None:
    from softstack.kernels.cpu import rnn, room

    space = room.for_forward(options, sizes, arrays(inputs.x).dtype)
    rnn.forward(space, options, sizes, arrays(inputs), arrays(outputs), *paths(options, sizes.N))


def rnn_backward(
    options: Options, sizes: Sizes, kept: Kept, gradients: Gradients, to_x: bool, from_strengths: bool
) -> None:
    from softstack.kernels.cpu import rnn, room

    space = room.for_backward(options, sizes, arrays(kept.x).dtype)
    rnn.backward(space, options, sizes, arrays(kept), arrays(gradients), to_x, *paths(options, sizes.N))
