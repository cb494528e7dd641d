"""§2.3: BufferedStackRNN (Figure 2).

The loop here is the reference: fused kernels compute the same, and are held to it.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from softstack import buffers, checks, fit, fused, kernels
from softstack.cell import Edit, StackCell, State
from softstack.disturbance import Disturbance, Disturbances, Disturbed, of_call, warn_without_state
from softstack.errors import BadInput
from softstack.memory import Memory, MemoryState, Sequences, batch_of, empty
from softstack.memory.states import detach, full_precision, only_where, running, storable
from softstack.trace import Moment, Trace, gather


@storable
class BufferedState(NamedTuple):
    """All that a BufferedStackRNN carries from step to step."""

    network: State
    input: MemoryState  # ⟨I_t, i_t⟩
    i: Tensor  # (B,) strength to take from the input buffer next
    output: MemoryState  # ⟨O_t, o_t⟩

    def detach(self) -> "BufferedState":
        return detach(self)


def twice(T: int) -> int:
    return 2 * T


class BufferedStackRNN(Disturbed):
    """Figure 2: a StackRNN that takes its input from one queue and puts its output into another.

    For T items of input it makes `steps(T)` steps, and at each decides how much to take and how much to
    give, so that it can pause and can put out more or less than it takes in.

    * `steps`: how many steps for T items, a function that gives a whole number; twice T by default
    * `discard_first`: throw the first whole item of the output away, as the authors' code does
    * all others are those of StackRNN; there is one layer, in one direction

    >>> net = BufferedStackRNN(3, controller="linear", memory_size=2, output_size=3, steps=lambda T: 2 * T)
    >>> y, state = net(torch.randn(10, 12, 3))
    >>> y.shape
    torch.Size([10, 24, 3])
    """

    def __init__(
        self,
        input_size: int,
        *,
        hidden_size: int | None = None,
        memory_size: int | None = None,
        output_size: int | None = None,
        controller: str | nn.Module = "lstm",
        memory: str | Memory = "stack",
        steps: Callable[[int], int] = twice,
        discard_first: bool = False,
        state_reset: float = 0.0,
        hidden_noise: float = 0.0,
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(state_reset, hidden_noise)
        kernels.require(backend)
        if not callable(steps):
            raise BadInput(f"steps must be a function of the number of items, such as twice; got {steps!r}")
        self.backend = backend
        self.steps = steps
        self.discard_first = discard_first
        self.cell = StackCell(
            input_size,
            hidden_size=hidden_size,
            memory_size=memory_size,
            output_size=output_size,
            controller=controller,
            memory=memory,
            buffered=True,
            device=device,
            dtype=dtype,
        )
        self.input_size, self.output_size = input_size, output_size
        self.hidden_size, self.memory_size = self.cell.hidden_size, self.cell.memory_size
        warn_without_state(state_reset, hidden_noise, self.cell.core.init((), self.cell.any_weight))

    @property
    def cells(self) -> list[StackCell]:
        return [self.cell]

    def reset_parameters(
        self, generator: torch.Generator | None = None, biases: Mapping[str, float] | None = None
    ) -> None:
        """Draw every weight anew. `biases` are those of heads, by name ("i": take, "o": give)."""
        self.cell.reset_parameters(generator, biases)

    def init(self, batch: Sequences, like: Tensor) -> BufferedState:
        """Empty buffers, and i_0 = 0: the first step reads the first item without taking it."""
        batch = batch_of(batch)
        return BufferedState(
            network=self.cell.init(batch, like),
            input=empty(self.input_size, batch, like),
            i=like.new_zeros(batch),
            output=empty(self.cell.output_width, batch, like),
        )

    def explain(self, x: Tensor, *, return_trace: bool = False, edit: Edit | None = None) -> str:
        """Which backend runs on this input, and why, in a sentence."""
        x = checks.sequence(x, self.input_size, self.cell.any_weight)
        reason = fit.kept(return_trace, edit) or fit.why_not(self.cell, x, self._count(x.shape[-2]))
        return kernels.explain(self.backend, x, reason)

    def forward(
        self,
        x: Tensor,
        state: BufferedState | None = None,
        lengths: Tensor | None = None,
        *,
        return_trace: bool = False,
        edit: Edit | None = None,
        disturbance: Disturbances | None = None,
    ) -> tuple[Tensor, BufferedState] | tuple[Tensor, BufferedState, Trace]:
        """x (B, T, input_size) or (T, input_size) -> y and the state after `steps(T)` steps.

        y (B, n, output_size) is what the output buffer holds, read off with a strength of 1 for each item; n
        is the number of steps made so far, the most that the buffer can hold, and items it does not hold are
        0.
        Give the state back to go on: x joins the input buffer, and y again begins with the first output.
        A sequence of length L (`lengths`) puts only L items into its buffer and makes only steps(L) steps.
        `return_trace`, `edit` and `disturbance` are as for StackRNN.
        """
        x = checks.sequence(x, self.input_size, self.cell.any_weight)
        T, batch = x.shape[-2], tuple(x.shape[:-2])
        fresh = self.init(batch, x)
        if state is None:
            state = fresh
        checks.same_state(state, fresh, batch)
        filled = None if lengths is None else running(lengths, x)  # (B, T)
        x = x if filled is None else only_where(filled, x)
        steps = self._count(T)
        counts = None if lengths is None else self._counts(lengths, x)  # (B,)
        network, input, i, output = state
        input = buffers.fill(input, x, None if filled is None else filled.to(x.dtype))
        if edit is not None and not isinstance(edit, Edit):
            raise BadInput(f"edit must be an ss.Edit; got {checks.described(edit)}")
        (cell_disturbance,) = of_call(self, disturbance, batch, [network.h], steps)
        reason = fit.kept(return_trace, edit) or fit.why_not(self.cell, x, steps)
        kernel = kernels.choose(self.backend, x, reason)
        if kernel != "reference":
            state = BufferedState(network, input, i, output)
            return self._fused(state, counts, steps, cell_disturbance, kernel)
        moments: list[Moment] = []
        for t in range(steps):
            live = None if counts is None else t < counts  # (B,)
            with full_precision(x):
                input, x_t = buffers.take(input, i, live)
            disturbance_t = None if cell_disturbance is None else cell_disturbance.at(t)
            y_t, features, actions, network = self.cell(x_t, network, live, edit, disturbance_t)
            assert actions.i is not None and actions.o is not None
            with full_precision(x):
                output = buffers.give(output, y_t, actions.o)
            i = actions.i if live is None else only_where(live, actions.i, i)
            if return_trace:
                contents = self.cell.memory.contents(network.memory)
                moments.append(Moment(x_t, y_t, features, actions, network.r, contents))
        state = BufferedState(network, input, i, output)
        y = self._read_off(output, kernel)
        return (y, state, gather(moments, self.cell, x)) if return_trace else (y, state)

    def _fused(
        self,
        state: BufferedState,
        counts: Tensor | None,
        steps: int,
        disturbance: Disturbance | None,
        kernel: str,
    ) -> tuple[Tensor, BufferedState]:
        """The same through a kernel, from buffers that are filled."""
        from softstack.kernels.rnn import Input

        buffer = Input(state.input.s, state.i, steps)
        final = fused.run(self.cell, state.input.V, state.network, counts, kernel, buffer, disturbance)
        output = MemoryState(
            torch.cat((state.output.V, final.y), -2), torch.cat((state.output.s, final.o), -1)
        )
        rest = MemoryState(state.input.V, final.strengths)
        return self._read_off(output, kernel), BufferedState(final.state, rest, final.i, output)

    def _read_off(self, output: MemoryState, kernel: str) -> Tensor:
        with full_precision(output.s):
            items = output.s.shape[-1]
            return buffers.read_off(output, items, discard_first=self.discard_first, backend=kernel)

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
