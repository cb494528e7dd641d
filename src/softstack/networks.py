"""§2.2-2.3: StackRNN (Figure 1) and BufferedStackRNN (Figure 2).

The loops here are the reference: fused kernels compute the same, and are held to them.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, overload

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from softstack import buffers, checks, kernels
from softstack.controllers import CONTROLLERS, Actions, Batch, Heads, Hidden
from softstack.errors import BadInput, unknown
from softstack.memory import MEMORIES, Instructions, MemoryState, empty, full_precision, only_where, running


class State(NamedTuple):
    """All that a StackRNN carries from step to step."""

    h: Hidden  # the controller's recurrent state: () if feedforward, (h, c) for the LSTM
    memory: MemoryState  # ⟨V_t, s_t⟩
    r: Tensor  # (B, m) what was read last


class BufferedState(NamedTuple):
    """All that a BufferedStackRNN carries from step to step."""

    network: State
    input: MemoryState  # ⟨I_t, i_t⟩
    i: Tensor  # (B,) strength to take from the input buffer next
    output: MemoryState  # ⟨O_t, o_t⟩


class Trace(NamedTuple):
    """What a network did at each step. N counts the slots of the final memory."""

    x: Tensor  # (B, T, input_size) what the controller was given: from a buffer, a mixture of items
    y: Tensor  # (B, T, output_size) what it put out: in a buffered network, before the output buffer
    v: Tensor  # (B, T, m) pushed vectors
    u: Tensor  # (B, T) pop strengths
    d: Tensor  # (B, T) push strengths
    r: Tensor  # (B, T, m) what was read
    s: Tensor  # (B, T, N) strengths of all slots after the step; 0 where a slot is yet to come
    h: Tensor  # (B, T, features) the controller's features: its hidden state if it has one
    i: Tensor  # (B, T) strength taken from the input buffer after the step; 1 without buffers
    o: Tensor  # (B, T) strength given to the output buffer; 1 without buffers


class StackCell(nn.Module):
    """One step of Figure 1: the controller acts on x_t, h_{t-1} and r_{t-1}, and the memory obeys."""

    def __init__(
        self,
        input_size: int,
        output_size: int,
        controller: str = "lstm",
        hidden_size: int = 10,
        memory: str = "stack",
        memory_size: int = 2,
        *,
        buffered: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if controller not in CONTROLLERS:
            raise unknown("controller", controller, CONTROLLERS)
        if memory not in MEMORIES:
            raise unknown("memory", memory, MEMORIES)
        self.sizes = dict(
            input_size=input_size, output_size=output_size, hidden_size=hidden_size, memory_size=memory_size
        )
        for name, size in self.sizes.items():
            checks.positive(name, size)
        self.controller_name, self.memory_name = controller, memory
        self.memory = MEMORIES[memory](memory_size)
        self.core = CONTROLLERS[controller](input_size + memory_size, hidden_size, device=device, dtype=dtype)
        self.heads = Heads(self.core.features, memory_size, output_size, buffered, device=device, dtype=dtype)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(
        self, generator: torch.Generator | None = None, *, pop_bias: float = -1.0, buffer_bias: float = 1.0
    ) -> None:
        """The authors' initialisation: weights of variance 1/rows, biases 0 but those of u, i and o."""
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            else:
                rows = parameter.shape[0]
                parameter.normal_(0.0, rows**-0.5, generator=generator)
        for head, bias in {"u": pop_bias, "i": buffer_bias, "o": buffer_bias}.items():
            if head in self.heads.sizes:
                self.heads.bias_of(head).fill_(bias)

    def init(self, batch: Batch, like: Tensor) -> State:
        """h_0 = 0, an empty memory and r_0 = 0, of the dtype and on the device of `like`."""
        m = self.memory.size
        return State(self.core.init(batch, like), empty(m, batch, like), like.new_zeros(*batch, m))

    def forward(self, x: Tensor, state: State, live: Tensor | None = None) -> tuple[Actions, Tensor, State]:
        """x (B, input_size) -> the controller's actions and features, and the state after the step.

        Where `live` (B,) is false the step is padding: nothing changes and every action is 0.
        """
        features, h = self.core(torch.cat((x, state.r), -1), state.h)
        actions: Actions = self.heads(features)
        if live is not None:
            actions = Actions(*(None if a is None else only_where(live, a) for a in actions))  # type: ignore[arg-type]  # i and o alone may be None
        with full_precision(x):
            instructions = Instructions(actions.v, actions.u, actions.d)
            memory, r = self.memory.step(state.memory, instructions, validate=False)
        if live is not None:
            h = tuple(only_where(live, new, old) for new, old in zip(h, state.h, strict=True))
            r = only_where(live, r, state.r)
        return actions, features, State(h, memory, r)

    def extra_repr(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        return f"{sizes}, controller={self.controller_name!r}, memory={self.memory_name!r}"


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
        checks.sequence(x, self.cell.sizes["input_size"], self.cell.heads.weight)
        batch = x.shape[:-2]
        state = self.cell.init(batch, x) if state is None else state
        checks.shape("state.r", state.r, "(B, m)", (*batch, self.cell.memory.size), "x")
        live = None if lengths is None else running(lengths, x)  # (B, T)
        x = x if live is None else only_where(live, x)
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
        steps: Callable[[int], int] = lambda T: 2 * T,
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
        checks.sequence(x, self.cell.sizes["input_size"], self.cell.heads.weight)
        batch, T = x.shape[:-2], x.shape[-2]
        state = self.init(batch, x) if state is None else state
        checks.shape("state.i", state.i, "(B,)", batch, "x")
        filled = None if lengths is None else running(lengths, x)  # (B, T)
        x = x if filled is None else only_where(filled, x)
        live = None if lengths is None else self._running(lengths, x)  # (B, steps)
        network, input, i, output = state
        input = buffers.fill(input, x, filled)
        trail: list[Step] = []
        for t in range(self._count(T)):
            now = None if live is None else live[..., t]
            with full_precision(x):
                input, x_t = buffers.take(input, i)
            actions, features, network = self.cell(x_t, network, now)
            assert actions.i is not None and actions.o is not None
            with full_precision(x):
                output = buffers.give(output, actions.y, actions.o)
            i = actions.i if now is None else only_where(now, actions.i, i)
            if return_trace:
                trail.append(Step(x_t, actions, features, network.r, network.memory.s))
        with full_precision(x):
            y = buffers.read_off(output, output.s.shape[-1], discard_first=self.discard_first)
        state = BufferedState(network, input, i, output)
        return (y, state, gather(trail, self.cell, x)) if return_trace else (y, state)

    def _count(self, length: int) -> int:
        steps = self.steps(length)
        if not isinstance(steps, int) or steps < 0:
            raise BadInput(f"steps({length}) must be a whole number of at least 0; got {steps!r}")
        return steps

    def _running(self, lengths: Tensor, x: Tensor) -> Tensor:
        """(B, steps): whether a sequence of that length is still running at step t."""
        each = torch.tensor([self._count(n) for n in lengths.reshape(-1).tolist()], device=x.device)
        return torch.arange(self._count(x.shape[-2]), device=x.device) < each.view(lengths.shape).unsqueeze(
            -1
        )

    def extra_repr(self) -> str:
        return f"backend={self.backend!r}, discard_first={self.discard_first}"


class Step(NamedTuple):
    """What a trace keeps of one step."""

    x: Tensor
    actions: Actions
    features: Tensor
    r: Tensor
    s: Tensor


def over_time(steps: list[Tensor], x: Tensor, *shape: int) -> Tensor:
    """Tensors (B, ...), one a step, put together as (B, T, ...); their shape is needed if there are none."""
    batch = x.ndim - 2
    return torch.stack(steps, batch) if steps else x.new_zeros(*x.shape[:batch], 0, *shape)


def gather(steps: list[Step], cell: StackCell, x: Tensor) -> Trace:
    m, K = cell.memory.size, cell.sizes["output_size"]
    slots = steps[-1].s.shape[-1] if steps else 0
    one = x.new_ones(x.shape[:-2])
    acts = [step.actions for step in steps]
    return Trace(
        x=over_time([step.x for step in steps], x, cell.sizes["input_size"]),
        y=over_time([a.y for a in acts], x, K),
        v=over_time([a.v for a in acts], x, m),
        u=over_time([a.u for a in acts], x),
        d=over_time([a.d for a in acts], x),
        r=over_time([step.r for step in steps], x, m),
        s=over_time([pad(step.s, (0, slots - step.s.shape[-1])) for step in steps], x, slots),
        h=over_time([step.features for step in steps], x, cell.core.features),
        i=over_time([one if a.i is None else a.i for a in acts], x),
        o=over_time([one if a.o is None else a.o for a in acts], x),
    )
