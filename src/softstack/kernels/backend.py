"""What a backend is: a package with these members, and a line in `KERNELS`."""

from typing import Protocol

from torch import Tensor

from softstack.kernels.tuples import Gradients, Inputs, Kept, Log, Options, Outputs, Sizes, Steps


class Backend(Protocol):
    """All tensors are contiguous. What kernels put out they write into tensors that they are given."""

    @property
    def DEVICE(self) -> str:
        """The kind of device that it is for: `backend="auto"` takes it there."""

    @property
    def COMPILER(self) -> str:
        """The package that must be installed."""

    def why_not(self, x: Tensor) -> str:
        """Why it does not fit a call with tensors like x; "" where it does."""

    def tape_sizes(self, options: Options, sizes: Sizes) -> tuple[int, int]:
        """How many numbers and cells a model's tape and links have. Asked while torch traces, too, with
        symbols for sizes: no bool in arithmetic, and nothing to import."""

    def scan_forward(self, steps: Steps, lifo: bool, r: Tensor, s: Tensor, log: Log) -> None:
        """Out: r (B, T, m), s (B, N) after the last step, and the log."""

    def scan_backward(
        self, steps: Steps, lifo: bool, s: Tensor, log: Log,
        gr: Tensor, gs: Tensor, gV: Tensor, gu: Tensor, gd: Tensor,
    ) -> None:  # fmt: skip
        """In: s, the log, gr (B, T, m), gs (B, N) of the final strengths, gV (B, N, m). Out: gu and gd
        (B, T); gs becomes the gradient of the first strengths; gV is added to."""

    def scan_step(
        self, V: Tensor, link: Tensor, level: Tensor, head: Tensor, strength: Tensor, slot: int,
        u: Tensor, d: Tensor, lifo: bool, r: Tensor,
    ) -> None:  # fmt: skip
        """One step of B chains with room (`memory/cells.py`): slot of V (B, C, m) has been written. In and
        out: head and strength (B,). Out: r (B, m), and what the slot adds to link and level (B, C)."""

    def rnn_forward(self, options: Options, sizes: Sizes, inputs: Inputs, outputs: Outputs) -> None:
        """The final V comes in with what the memory holds at first."""

    def rnn_backward(
        self, options: Options, sizes: Sizes, kept: Kept, gradients: Gradients, to_x: bool
    ) -> None:
        """The gradients of x are made where `to_x`, and where it is buffered."""
