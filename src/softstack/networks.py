"""§2.2-2.3: StackRNN (Figure 1) and BufferedStackRNN (Figure 2).

The loops here are the reference: fused kernels compute the same, and are held to them.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, overload

import torch
from torch import Tensor, nn

from softstack import buffers, checks, fused, kernels
from softstack.cell import StackCell, State
from softstack.controllers import Batch
from softstack.errors import BadInput
from softstack.memory import MemoryState, empty, full_precision, only_where, running
from softstack.trace import Step, Trace, gather, over_time


class BufferedState(NamedTuple):
    """All that a BufferedStackRNN carries from step to step."""

    network: State
    input: MemoryState  # ⟨I_t, i_t⟩
    i: Tensor  # (B,) strength to take from the input buffer next
    output: MemoryState  # ⟨O_t, o_t⟩


class StackRNN(nn.Module):
    """Figure 1: a controller with a differentiable memory, to be used as `nn.LSTM(batch_first=True)` is.

    >>> rnn = StackRNN(input_size=3, output_size=3, controller="linear")
    >>> y, state = rnn(torch.randn(10, 24, 3))
    >>> y.shape
    torch.Size([10, 24, 3])
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        controller: str = "lstm",
        hidden_size: int = 10,
        memory: str = "stack",
        memory_size: int = 2,
        backend: str = "auto",
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        kernels.require(backend)
        self.backend = backend
        self.cell = StackCell(
            input_size, output_size, controller, hidden_size, memory, memory_size, device=device, dtype=dtype
        )

    @overload
    def forward(
        self,
        x: Tensor,
        state: State | None = None,
        lengths: Tensor | None = None,
        *,
        return_trace: Literal[False] = False,
    ) -> tuple[Tensor, State]: ...

    @overload
    def forward(
        self,
        x: Tensor,
        state: State | None = None,
        lengths: Tensor | None = None,
        *,
        return_trace: Literal[True],
    ) -> tuple[Tensor, State, Trace]: ...

    def forward(
        self,
        x: Tensor,
        state: State | None = None,
        lengths: Tensor | None = None,
        *,
        return_trace: bool = False,
    ) -> tuple[Tensor, State] | tuple[Tensor, State, Trace]:
        """x (B, T, input_size) or (T, input_size) -> y (B, T, output_size) and the state after the last step.

        Give the state back to go on with the same sequences. Steps at or after `lengths` (B,) are padding:
        they put out 0 and change neither the state nor a gradient.
        """
        x = checks.sequence(x, self.cell.sizes["input_size"], self.cell.heads.weight)
        fresh = self.cell.init(x.shape[:-2], x)
        if state is None:
            state = fresh
        checks.state(state, fresh)
        live = None if lengths is None else running(lengths, x)  # (B, T)
        x = x if live is None else only_where(live, x)
        reason = fused.why_not(self.cell, x, x.shape[-2], return_trace)
        kernel = kernels.choose(self.backend, x, reason)
        if kernel != "reference":
            final = fused.run(self.cell, x, state, lengths, kernel)
            return final.y, fused.state_of(final)
        outputs: list[Tensor] = []
        steps: list[Step] = []
        for t, x_t in enumerate(x.unbind(-2)):
            actions, features, state = self.cell(x_t, state, None if live is None else live[..., t])
            outputs.append(actions.y)
            if return_trace:
                steps.append(Step(x_t, actions, features, state.r, state.memory.s))
        y = over_time(outputs, x, self.cell.sizes["output_size"])
        return (y, state, gather(steps, self.cell, x)) if return_trace else (y, state)

    def extra_repr(self) -> str:
        return f"backend={self.backend!r}"


def twice(T: int) -> int:
    return 2 * T


class BufferedStackRNN(nn.Module):
    """Figure 2: a StackRNN that takes its input from one queue and puts its output into another.

    For T items of input it makes `steps(T)` steps, and at each decides how much to take and how much to
    give, so that it can pause and can put out more or less than it takes in.

    >>> net = BufferedStackRNN(input_size=3, output_size=3, controller="linear", steps=lambda T: 2 * T)
    >>> y, state = net(torch.randn(10, 12, 3))
    >>> y.shape
    torch.Size([10, 24, 3])
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        controller: str = "lstm",
        hidden_size: int = 10,
        memory: str = "stack",
        memory_size: int = 2,
        backend: str = "auto",
        *,
        steps: Callable[[int], int] = twice,
        discard_first: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        kernels.require(backend)
        self.backend = backend
        self.steps = steps
        self.discard_first = discard_first
        self.cell = StackCell(
            input_size,
            output_size,
            controller,
            hidden_size,
            memory,
            memory_size,
            buffered=True,
            device=device,
            dtype=dtype,
        )

    def init(self, batch: Batch, like: Tensor) -> BufferedState:
        """Empty buffers, and i_0 = 0: the first step reads the first item without taking it."""
        sizes = self.cell.sizes
        return BufferedState(
            network=self.cell.init(batch, like),
            input=empty(sizes["input_size"], batch, like),
            i=like.new_zeros(batch),
            output=empty(sizes["output_size"], batch, like),
        )

    @overload
    def forward(
        self,
        x: Tensor,
        state: BufferedState | None = None,
        lengths: Tensor | None = None,
        *,
        return_trace: Literal[False] = False,
    ) -> tuple[Tensor, BufferedState]: ...

    @overload
    def forward(
        self,
        x: Tensor,
        state: BufferedState | None = None,
        lengths: Tensor | None = None,
        *,
        return_trace: Literal[True],
    ) -> tuple[Tensor, BufferedState, Trace]: ...

    def forward(
        self,
        x: Tensor,
        state: BufferedState | None = None,
        lengths: Tensor | None = None,
        *,
        return_trace: bool = False,
    ) -> tuple[Tensor, BufferedState] | tuple[Tensor, BufferedState, Trace]:
        """x (B, T, input_size) or (T, input_size) -> y and the state after `steps(T)` steps.

        y (B, n, output_size) is what the output buffer holds, read off with strength 1 an item; n is the
        number of steps made so far, the most that the buffer can hold, and items it does not hold are 0.
        Give the state back to go on: x joins the input buffer, and y again begins with the first output.
        A sequence of length L (`lengths`) puts only L items into its buffer and makes only steps(L) steps.
        """
        x = checks.sequence(x, self.cell.sizes["input_size"], self.cell.heads.weight)
        T = x.shape[-2]
        fresh = self.init(x.shape[:-2], x)
        if state is None:
            state = fresh
        checks.state(state, fresh)
        filled = None if lengths is None else running(lengths, x)  # (B, T)
        x = x if filled is None else only_where(filled, x)
        steps = self._count(T)
        each = None if lengths is None else self._counts(lengths, x)  # (B,)
        network, input, i, output = state
        input = buffers.fill(input, x, None if filled is None else filled.to(x.dtype))
        reason = fused.why_not(self.cell, x, steps, return_trace)
        kernel = kernels.choose(self.backend, x, reason)
        if kernel != "reference":
            return self._fused(BufferedState(network, input, i, output), each, steps, kernel)
        trail: list[Step] = []
        for t in range(steps):
            now = None if each is None else t < each  # (B,)
            with full_precision(x):
                input, x_t = buffers.take(input, i if now is None else only_where(now, i))
            if now is not None:
                x_t = only_where(now, x_t)
            actions, features, network = self.cell(x_t, network, now)
            assert actions.i is not None and actions.o is not None
            with full_precision(x):
                output = buffers.give(output, actions.y, actions.o)
            i = actions.i if now is None else only_where(now, actions.i, i)
            if return_trace:
                trail.append(Step(x_t, actions, features, network.r, network.memory.s))
        state = BufferedState(network, input, i, output)
        y = self._read_off(output)
        return (y, state, gather(trail, self.cell, x)) if return_trace else (y, state)

    def _fused(
        self, state: BufferedState, each: Tensor | None, steps: int, kernel: str
    ) -> tuple[Tensor, BufferedState]:
        """The same through a kernel, from buffers that are filled."""
        from softstack.kernels.rnn import Input

        buffer = Input(state.input.s, state.i, steps)
        final = fused.run(self.cell, state.input.V, state.network, each, kernel, buffer)
        output = MemoryState(
            torch.cat((state.output.V, final.y), -2), torch.cat((state.output.s, final.o), -1)
        )
        left = MemoryState(state.input.V, final.strengths)
        return self._read_off(output), BufferedState(fused.state_of(final), left, final.i, output)

    def _read_off(self, output: MemoryState) -> Tensor:
        with full_precision(output.s):
            items = output.s.shape[-1]
            return buffers.read_off(output, items, discard_first=self.discard_first, backend=self.backend)

    def _count(self, length: int) -> int:
        steps = self.steps(length)
        if not isinstance(steps, int) or steps < 0:
            raise BadInput(f"steps({length}) must be a whole number of at least 0; got {steps!r}")
        return steps

    def _counts(self, lengths: Tensor, x: Tensor) -> Tensor:
        """(B,): the steps that a sequence of each length makes."""
        counts = torch.tensor([self._count(n) for n in range(x.shape[-2] + 1)], device=x.device)
        return counts[lengths.to(x.device, torch.int64)]

    def extra_repr(self) -> str:
        return f"backend={self.backend!r}, discard_first={self.discard_first}"
