"""§2.2: one step of Figure 1, a controller and the memory that it works."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from softstack import checks
from softstack.controllers import CONTROLLERS, Heads, Hidden, Linear, require, require_names, reset
from softstack.disturbance import Disturbance
from softstack.errors import BadInput, unknown
from softstack.memory import MEMORIES, Memory, Scores, Sequences, Strength, batch_of
from softstack.memory.checking import require as require_memory
from softstack.memory.protocol import Head, instructions_type, trusting
from softstack.memory.scan import stepped
from softstack.memory.states import cut_off, detach, kept, leaf_by_leaf, only_where, storable


@storable
class State(NamedTuple):
    """All that a StackRNN carries from step to step."""

    h: Hidden  # the controller's recurrent state: () if feedforward, (h, c) for the LSTM
    memory: Any  # the memory's own: ⟨V_t, s_t⟩, a MemoryState, of a stack or a queue
    r: Tensor  # (B, m) what was read last

    def detach(self) -> "State":
        return detach(self)


class Actions(NamedTuple):
    """Everything a controller does in one step (§2.2, §2.3)."""

    instructions: Any  # what it tells its memory: a NamedTuple with the memory's heads
    y: Tensor  # (B, K) output
    i: Tensor | None = None  # (B,) strength to take from the input buffer before the next step
    o: Tensor | None = None  # (B,) strength with which y enters the output buffer


class Edit(NamedTuple):
    """Changes made in each step: to the state that it starts from, and to what the controller does."""

    state: Callable[[State], State] = lambda state: state
    actions: Callable[[Actions], Actions] = lambda actions: actions


Edits = Edit | Sequence[Edit | None]  # one for all cells of a network, or one for each, None for none


class StackCell(nn.Module):
    """One step of Figure 1: the controller acts on x_t, h_{t-1} and r_{t-1}, and the memory obeys.

    Arguments are those of `StackRNN`.
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
        buffered: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        checks.positive("input_size", input_size)
        if output_size is not None:
            checks.positive("output_size", output_size)
        checks.floating(dtype)
        self.input_size = input_size
        kind: dict[str, Any] = dict(device=device, dtype=dtype)
        self.memory = memory_of(memory, memory_size, kind)
        self.memory_size = memory_size or self.memory.width
        self.core: Any = _core(controller, input_size + self.memory.width, hidden_size, kind)
        self.hidden_size = hidden_size or self.core.features
        self.output_size = output_size
        self.controller_name = (
            controller if isinstance(controller, str) else type(controller).__name__.lower()
        )
        self.buffered = buffered
        self.head_kinds = _heads(self.memory, output_size, buffered)
        self.heads = Heads(self.core.features, self.head_kinds, **kind)
        if isinstance(controller, str):  # a core that the caller made keeps its weights
            reset(self.core, None)
        self.heads.reset_parameters()

    def reset_parameters(
        self, generator: torch.Generator | None = None, biases: Mapping[str, float] | None = None
    ) -> None:
        """First weights: the core's own, and the authors' for the heads. `biases` are those of heads, by
        name, where they should differ from what the memory asks for."""
        require_names(biases or {}, self.head_kinds)
        reset(self.core, generator)
        self.heads.reset_parameters(generator, biases)

    def init(self, batch: Sequences, like: Tensor) -> State:
        """h_0 = 0, an empty memory and r_0 = 0, of the dtype and on the device of `like`."""
        batch = batch_of(batch)
        memory = self.memory.init(batch, device=like.device, dtype=like.dtype)
        return State(self.core.init(batch, like), memory, like.new_zeros(*batch, self.memory.width))

    def forward(
        self,
        x: Tensor,
        state: State,
        live: Tensor | None = None,
        edit: Edit | None = None,
        disturbance: Disturbance | None = None,
    ) -> tuple[Tensor, Tensor, Actions, State]:
        """x (B, input_size) -> y, the controller's features, all its actions, and the state after the step.

        Where `live` (B,) is false the step is padding: nothing changes and every action is 0. `disturbance`
        is what training does to the controller's state in this step.
        """
        if not isinstance(state, State):
            raise BadInput(f"state must be a State, as init gives it; got {checks.described(state)}")
        start = state if edit is None else edit.state(state)
        if not isinstance(start, State):
            raise BadInput(f"the `state` of an Edit must give a State; got {checks.described(start)}")
        if disturbance is not None:
            start = start._replace(h=disturbance.kept(start.h))
        features, h = self.core(torch.cat((x, start.r), -1), start.h)
        if disturbance is not None:
            noisy = h[0] + disturbance.noise
            features, h = noisy if features is h[0] else features, (noisy, *h[1:])
        h = tuple(new.to(old.dtype) for new, old in zip(h, state.h, strict=True))  # under autocast
        actions = self.act(features, like=state.r)
        if edit is not None:
            actions = edit.actions(actions)
            if not isinstance(actions, Actions):
                raise BadInput(f"the `actions` of an Edit must give Actions; got {checks.described(actions)}")
        memory, instructions = start.memory, actions.instructions
        if live is not None:
            memory, instructions = cut_off(live, (memory, instructions))
        memory, r = stepped(self.memory, memory, instructions)
        if live is not None:
            h, memory, r = kept(live, (h, memory, r), (state.h, state.memory, state.r))
            features, actions = leaf_by_leaf(
                lambda part: part if part is None else only_where(live, part), (features, actions)
            )
        return actions.y, features, actions, State(h, memory, r)

    def act(self, features: Tensor, like: Tensor) -> Actions:
        """What the heads say, in the dtype of `like`: under autocast strengths keep full precision."""
        raw = self.heads(features).to(like.dtype)
        parts = raw.split([kind.size for kind in self.head_kinds.values()], -1)
        heads = zip(self.head_kinds.items(), parts, strict=True)
        values = {name: kind.value(part) for (name, kind), part in heads}
        names = tuple(self.memory.heads)
        instructions = instructions_type(names)(*(values[name] for name in names))
        y = values["y"] if "y" in values else features.to(like.dtype)
        return Actions(instructions, y, values.get("i"), values.get("o"))

    @property
    def any_weight(self) -> Tensor:
        """A parameter, for the dtype and device that all of them have. A layer put in the place of the heads
        need not have a weight."""
        weight = getattr(self.heads, "weight", None)
        if isinstance(weight, Tensor) and weight.is_floating_point():
            return weight
        return next((p for p in self.parameters() if p.is_floating_point()), torch.empty(0))

    @property
    def output_width(self) -> int:
        """Numbers in y: `output_size`, or as many as the controller has features."""
        return self.output_size or int(self.core.features)

    def extra_repr(self) -> str:
        sizes = ("input_size", "hidden_size", "memory_size", "output_size")
        return ", ".join(f"{name}={getattr(self, name)}" for name in sizes) + (
            f", controller={self.controller_name!r}, memory={self.memory.name!r}"
        )


def memory_of(memory: str | Memory, size: int | None, kind: dict[str, Any]) -> Memory:
    """A memory by name and size, or the caller's own. `kind` is a device and a dtype, for its weights."""
    if isinstance(memory, str):
        if memory not in MEMORIES:
            raise unknown("memory", memory, MEMORIES)
        if size is None:
            raise BadInput(f"memory_size is missing: how many numbers has a vector of the memory {memory!r}?")
        checks.positive("memory_size", size)
        try:
            memory = MEMORIES[memory](size)
        except TypeError as error:
            raise BadInput(f"the memory {memory!r} cannot be made with a size of {size} ({error})") from None
        require_memory(memory)
    else:
        require_memory(memory)
        if size not in (None, memory.width):
            raise BadInput(
                f"memory_size is {size}, but {memory} reads vectors of {memory.width}: leave memory_size out"
            )
    if isinstance(memory, nn.Module):  # it has weights of its own
        memory.to(**kind)
    trusted: Memory = trusting(memory)  # the heads keep strengths in [0, 1]
    return trusted


def _core(controller: str | nn.Module, input_size: int, hidden_size: int | None, kind: dict[str, Any]) -> Any:
    if not isinstance(controller, str):
        if not isinstance(controller, nn.Module) or not hasattr(controller, "features"):
            raise BadInput(
                "controller must be a name, or a module with features, init and forward, "
                f"such as MGU({input_size}, 10); got {controller!r}"
            )
        if hidden_size not in (None, controller.features):
            raise BadInput(
                f"hidden_size is {hidden_size}, but the controller has {controller.features} features: "
                "leave hidden_size out"
            )
        core: Any = controller.to(**kind)
        require(core, input_size, kind)
        return core
    if controller not in CONTROLLERS:
        raise unknown("controller", controller, CONTROLLERS)
    if hidden_size is None and CONTROLLERS[controller] is not Linear:
        raise BadInput(f"hidden_size is missing: how many hidden units has the {controller} controller?")
    if hidden_size is not None:
        checks.positive("hidden_size", hidden_size)
    try:
        core = CONTROLLERS[controller](input_size, hidden_size, **kind)
    except TypeError as error:
        call = f"({input_size}, {hidden_size}, device=..., dtype=...)"
        raise BadInput(f"the controller {controller!r} cannot be made with {call} ({error})") from None
    require(core, input_size, kind)
    return core


def _heads(memory: Memory, output_size: int | None, buffered: bool) -> dict[str, Head]:
    """All heads of a network: the memory's strengths, those of the buffers, the memory's other heads, y."""
    strengths = {name: head for name, head in memory.heads.items() if isinstance(head, Strength)}
    buffers = {"i": Strength(bias=1.0), "o": Strength(bias=1.0)} if buffered else {}
    output = {} if output_size is None else {"y": Scores(output_size)}
    return {**strengths, **buffers, **{n: h for n, h in memory.heads.items() if n not in strengths}, **output}
