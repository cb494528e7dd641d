"""What a backend is: a package with these members, and a line in `KERNELS`."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from softstack.kernels.tuples import Gradients, Inputs, Kept, Options, Outputs, Sizes, Steps

LOG = 4


class Backend(Protocol):
    """All tensors are contiguous. Kernels write their results into tensors that they are given."""

    @property
    def DEVICE(self) -> str:
        """The kind of device that it is for. `backend="auto"` takes the first of `KERNELS` for each."""

    @property
    def COMPILER(self) -> str:
        """The package that must be installed."""

    def why_not(self, x: Tensor) -> str:
        """Why it does not fit a call with tensors like x; "" where it does."""

    def tape_sizes(self, options: Options, sizes: Sizes) -> tuple[int, int]:
        """How many numbers and cells a model's tape and links have. Asked while torch traces, too, with
        symbols for sizes: no bool in arithmetic, and nothing to import."""

    def log_parts(
        self, B: int, N: int, T: int, real: torch.dtype
    ) -> list[tuple[tuple[int, ...], torch.dtype]]:
        """The shapes and dtypes of what a scan notes for its backward pass: at most LOG tensors that begin
        with the axis of sequences. Asked while torch traces, too."""

    def scan_forward(
        self, v: Tensor, V0: Tensor | None, steps: Steps, lifo: bool, r: Tensor, s: Tensor,
        log: Sequence[Tensor], checked: bool,
    ) -> None:  # fmt: skip
        """Out: V of the steps, which is V0, where there is one, and then v, r (B, T, m), s (B, N) after the
        last step, and the log. If `checked`, a strength that is negative or not finite is an error; a backend
        may rely on its caller for that."""

    def scan_backward(
        self, steps: Steps, lifo: bool, s: Tensor, log: Sequence[Tensor],
        gr: Tensor, gV: Tensor | None, gs: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """The gradients of V, u, d and s0, from s, the log, gr (B, T, m) and, where there are any, gV
        (B, N, m) and gs (B, N) of the final state."""

    def scan_step(
        self, V: Tensor, link: Tensor, level: Tensor, head: Tensor, strength: Tensor, slot: int,
        u: Tensor, d: Tensor, lifo: bool, fault: Tensor, r: Tensor,
    ) -> None:  # fmt: skip
        """One step of B chains with room (`memory/cells.py`): slot of V (B, C, m) has been written. In and
        out: head and strength (B,), and fault (B, m), which is NaN from where something came in that is not
        a number. Out: r (B, m), and what the slot adds to link and level (B, C)."""

    def rnn_forward(self, options: Options, sizes: Sizes, inputs: Inputs, outputs: Outputs) -> None:
        """The final V comes in with what the memory holds at first."""

    def rnn_backward(
        self,
        options: Options,
        sizes: Sizes,
        kept: Kept,
        gradients: Gradients,
        to_x: bool,
        from_strengths: bool,
    ) -> None:
        """The gradients of x are made where `to_x`, and where it is buffered. `from_strengths` says whether
        the final strengths have a gradient: else it is 0."""
