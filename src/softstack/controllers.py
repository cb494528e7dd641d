"""§2.2: controllers. A core turns [x_t; r_{t-1}] and its recurrent state into features; Heads turns
features into everything a network does in a step, by one linear map split by name.

The paper's linear controller is the core that has no parameters: its features are [x_t; r_{t-1}] itself.
Every core is a module with `features` (its output width), `init(batch, like)` and
`forward(z, h) -> (features, h)`, where h is a tuple of tensors: (h, c) for the LSTM, () for a feedforward
core. It draws its own first weights in `reset_parameters`, which may take a `generator`; without that method
its layers draw theirs, as PyTorch does. docs/add/controller.md has one in a file.
"""

import copy
from collections.abc import Callable, Collection, Iterable, Mapping
from inspect import signature
from typing import Any, cast

import torch
from torch import Tensor, nn

from softstack.checks import described
from softstack.errors import BadInput, unknown
from softstack.memory.protocol import Head
from softstack.memory.shapes import Batch

Hidden = tuple[Tensor, ...]


@torch.no_grad()
def draw_weights(module: nn.Module, generator: torch.Generator | None = None) -> None:
    """The authors' first weights, for every layer of a module: variance 1/rows, and biases of 0."""
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            parameter.zero_()
        elif not parameter.is_meta:  # a meta tensor has no numbers to draw
            parameter.normal_(0.0, parameter.shape[0] ** -0.5, generator=generator)


def reset(core: Any, generator: torch.Generator | None) -> None:
    """A core's first weights: as its own `reset_parameters` draws them, or else each of its layers'."""
    own = getattr(core, "reset_parameters", None)
    if own is not None and "generator" in signature(own).parameters:
        own(generator=generator)
        return
    layers = core.modules() if own is None else [core]
    with torch.random.fork_rng(enabled=generator is not None):
        if generator is not None:  # PyTorch's layers draw from the global generator alone
            torch.manual_seed(int(torch.randint(2**62, (), generator=generator)))
        for layer in layers:
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()


class Linear(nn.Module):
    """§2.2, the linear controller: the heads see [x_t; r_{t-1}] itself. It has no hidden units."""

    reset_parameters = draw_weights

    def __init__(self, input_size: int, hidden_size: int | None = None, **kind: Any) -> None:
        super().__init__()
        self.features = input_size

    def init(self, batch: Batch, like: Tensor) -> Hidden:
        return ()

    def forward(self, z: Tensor, h: Hidden) -> tuple[Tensor, Hidden]:
        return z, h


class MLP(nn.Module):
    """A feedforward controller with one hidden layer of tanh units."""

    reset_parameters = draw_weights

    def __init__(self, input_size: int, hidden_size: int, **kind: Any) -> None:
        super().__init__()
        self.features = hidden_size
        self.layer = nn.Linear(input_size, hidden_size, **kind)

    def init(self, batch: Batch, like: Tensor) -> Hidden:
        return ()

    def forward(self, z: Tensor, h: Hidden) -> tuple[Tensor, Hidden]:
        return torch.tanh(self.layer(z)), h


class RNN(nn.Module):
    """Elman's simple recurrent network, as torch.nn.RNNCell computes it."""

    reset_parameters = draw_weights

    def __init__(self, input_size: int, hidden_size: int, **kind: Any) -> None:
        super().__init__()
        self.features = hidden_size
        self.from_input = nn.Linear(input_size, hidden_size, **kind)
        self.from_hidden = nn.Linear(hidden_size, hidden_size, **kind)

    def init(self, batch: Batch, like: Tensor) -> Hidden:
        return (like.new_zeros(*batch, self.features),)

    def forward(self, z: Tensor, h: Hidden) -> tuple[Tensor, Hidden]:
        new = torch.tanh(self.from_input(z) + self.from_hidden(h[0]))
        return new, (new,)


class GRU(nn.Module):
    """A gated recurrent unit, as torch.nn.GRUCell computes it."""

    reset_parameters = draw_weights

    def __init__(self, input_size: int, hidden_size: int, **kind: Any) -> None:
        super().__init__()
        self.features = hidden_size
        self.from_input = nn.Linear(input_size, 3 * hidden_size, **kind)
        self.from_hidden = nn.Linear(hidden_size, 3 * hidden_size, **kind)

    def init(self, batch: Batch, like: Tensor) -> Hidden:
        return (like.new_zeros(*batch, self.features),)

    def forward(self, z: Tensor, h: Hidden) -> tuple[Tensor, Hidden]:
        reset_z, update_z, new_z = self.from_input(z).chunk(3, -1)
        reset_h, update_h, new_h = self.from_hidden(h[0]).chunk(3, -1)
        update = torch.sigmoid(update_z + update_h)
        new = torch.tanh(new_z + torch.sigmoid(reset_z + reset_h) * new_h)
        new = new + update * (h[0] - new)
        return new, (new,)


class LSTM(nn.Module):
    """§2.2, the LSTM controller, as torch.nn.LSTMCell computes it."""

    reset_parameters = draw_weights

    def __init__(self, input_size: int, hidden_size: int, **kind: Any) -> None:
        super().__init__()
        self.features = hidden_size
        self.from_input = nn.Linear(input_size, 4 * hidden_size, **kind)
        self.from_hidden = nn.Linear(hidden_size, 4 * hidden_size, **kind)

    def init(self, batch: Batch, like: Tensor) -> Hidden:
        zeros = like.new_zeros(*batch, self.features)
        return zeros, zeros

    def forward(self, z: Tensor, h: Hidden) -> tuple[Tensor, Hidden]:
        hidden, cell = h
        gates = self.from_input(z) + self.from_hidden(hidden)  # (B, 4 hidden)
        into, forget, new, out = gates.chunk(4, -1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(into) * torch.tanh(new)
        hidden = torch.sigmoid(out) * torch.tanh(cell)
        return hidden, (hidden, cell)


CONTROLLERS: dict[str, Callable[..., Any]] = {
    "linear": Linear,
    "mlp": MLP,
    "rnn": RNN,
    "gru": GRU,
    "lstm": LSTM,
}


@torch.no_grad()
def require(core: Any, input_size: int, kind: Mapping[str, Any]) -> None:
    """Refuse a core of someone's own whose `init` or `forward` gives the wrong thing.

    A copy of it makes one step, so that the loops need not check anything. What fails inside that step is
    left to the first call, which has the real input. `kind` is a device and a dtype, for a core without
    parameters.
    """
    if type(core) in (Linear, MLP, RNN, GRU, LSTM):
        return
    name = f"the controller {type(core).__name__}"
    if not isinstance(core, nn.Module):
        raise BadInput(f"{name} must be an nn.Module; docs/add/controller.md has a whole one")
    lacking = [member for member in ("features", "init", "forward") if not hasattr(core, member)]
    if lacking:
        raise BadInput(f"{name} lacks {' and '.join(lacking)}: docs/add/controller.md has a whole one")
    batch = (2,)
    like = next((p for p in core.parameters() if p.is_floating_point()), torch.empty(0, **kind))
    try:
        h: Any = cast(Any, core).init(batch, like)
    except Exception as error:
        raise BadInput(f"{name} fails in init(batch={batch}, like): {error}") from error
    expected = f"a tuple of tensors, each with the batch {batch} first, or () if it has no state"
    if not _is_state(h) or any(part.shape[:1] != batch for part in h):
        raise BadInput(f"{name}: init(batch={batch}, like) must give {expected}; got {described(h)}")
    before = [part.clone() for part in h]
    try:
        with torch.random.fork_rng(devices=[]):
            result = copy.deepcopy(core)(like.new_zeros(*batch, input_size), h)
    except Exception:
        return
    if not like.is_meta and not all(map(torch.equal, before, h)):
        raise BadInput(f"{name}: forward(z, h) writes into the h that it is given: give a new one back")
    if not isinstance(result, tuple) or len(result) != 2:
        raise BadInput(f"{name}: forward(z, h) must give two things, features and h; got {described(result)}")
    features, new = result
    if not isinstance(features, Tensor) or features.shape != (*batch, core.features):
        raise BadInput(
            f"{name}: forward(z, h) must give features of {(*batch, core.features)} for a batch of 2, "
            f"because its `features` is {core.features}; got {described(features)}"
        )
    if not _is_state(new) or [part.shape for part in new] != [part.shape for part in h]:
        raise BadInput(
            f"{name}: forward(z, h) must give h as init does, {described(h)}; got {described(new)}"
        )


def _is_state(h: Any) -> bool:
    return isinstance(h, tuple) and all(isinstance(part, Tensor) for part in h)


def require_names(biases: Iterable[str], heads: Collection[str]) -> None:
    """Biases are of heads that there are."""
    for name in biases:
        if name not in heads:
            raise unknown("head", name, heads)


class Heads(nn.Linear):
    """§2.2: the linear map behind all that a controller says in a step; each head has rows of its own.

    `heads` are those of its memory, in a buffered network (§2.3) also i and o, and y. Their rows lie in the
    order of the names: strengths, vectors and choices, y. The cell makes their values of what comes out, so
    that this is a layer like any other: hooks see a tensor, and it can be replaced.
    """

    def __init__(self, features: int, heads: Mapping[str, Head], **kind: Any) -> None:
        super().__init__(features, sum(head.size for head in heads.values()), **kind)
        self.heads = dict(heads)

    @torch.no_grad()
    def reset_parameters(
        self, generator: torch.Generator | None = None, biases: Mapping[str, float] | None = None
    ) -> None:
        """The authors' first weights, and the bias of each head: its own, or that in `biases`."""
        require_names(biases or {}, getattr(self, "heads", {}))
        draw_weights(self, generator)
        for name, head in getattr(self, "heads", {}).items():  # nn.Linear draws once before there are any
            bias = (biases or {}).get(name, head.bias)
            if bias is not None:
                self.bias_of(name).copy_(torch.as_tensor(bias, dtype=self.bias.dtype))

    @property
    def sizes(self) -> dict[str, int]:
        """The rows of each head, in their order."""
        return {name: head.size for name, head in self.heads.items()}

    def rows(self, name: str) -> slice:
        """Where the head called `name` lies in the map's rows."""
        names = list(self.heads)
        start = sum(self.heads[n].size for n in names[: names.index(name)])
        return slice(start, start + self.heads[name].size)

    def bias_of(self, name: str) -> Tensor:
        return self.bias[self.rows(name)]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, heads={', '.join(self.heads)}"
