"""§2.2: one step of Figure 1, a controller and the memory that it works."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from softstack import checks
from softstack.controllers import CONTROLLERS, Actions, Batch, Heads, Hidden
from softstack.errors import unknown
from softstack.memory import MEMORIES, Instructions, MemoryState, empty, only_where


class State(NamedTuple):
    """All that a StackRNN carries from step to step."""

    h: Hidden  # the controller's recurrent state: () if feedforward, (h, c) for the LSTM
    memory: MemoryState  # ⟨V_t, s_t⟩
    r: Tensor  # (B, m) what was read last


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
            elif (
                not parameter.is_meta
            ):  # which has no numbers to draw, and would import torch._dynamo to say so
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
        h = tuple(new.to(old.dtype) for new, old in zip(h, state.h, strict=True))  # under autocast
        instructions = Instructions(actions.v, actions.u, actions.d)
        memory, r = self.memory.step(state.memory, instructions, validate=False)
        if live is not None:
            h = tuple(only_where(live, new, old) for new, old in zip(h, state.h, strict=True))
            r = only_where(live, r, state.r)
        return actions, features, State(h, memory, r)

    def extra_repr(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        return f"{sizes}, controller={self.controller_name!r}, memory={self.memory_name!r}"
