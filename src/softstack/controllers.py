"""§2.2: controllers. A core turns [x_t; r_{t-1}] and its recurrent state into features; Heads turns
features into everything a network does in a step, by one linear map split by name.

The paper's linear controller is the core that has no parameters: its features are [x_t; r_{t-1}] itself.
Every core is a module with `features` (its output width), `init(batch, like)` and
`forward(z, h) -> (features, h)`, where h is a tuple of tensors: (h, c) for the LSTM, () for a feedforward
core. A new one is a class and a line in CONTROLLERS.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

Hidden = tuple[Tensor, ...]
Batch = tuple[int, ...]  # (B,), or () for one sequence


class Linear(nn.Module):
    """§2.2, the linear controller: the heads see [x_t; r_{t-1}] itself."""

    def __init__(self, input_size: int, hidden_size: int, **kind: Any) -> None:
        super().__init__()
        self.features = input_size

    def init(self, batch: Batch, like: Tensor) -> Hidden:
        return ()

    def forward(self, z: Tensor, h: Hidden) -> tuple[Tensor, Hidden]:
        return z, h


class MLP(nn.Module):
    """A feedforward controller with one hidden layer of tanh units."""

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


class Actions(NamedTuple):
    """Everything a controller does in one step (§2.2, §2.3)."""

    v: Tensor  # (B, m) vector to push
    u: Tensor  # (B,)   pop strength
    d: Tensor  # (B,)   push strength
    y: Tensor  # (B, K) output
    i: Tensor | None = None  # (B,) strength to take from the input buffer before the next step
    o: Tensor | None = None  # (B,) strength with which y enters the output buffer


class Heads(nn.Linear):
    """§2.2: u, d, i, o and v through a sigmoid, y as it is, all from one linear map.

    Only a buffered network (§2.3) has the heads i and o.
    """

    def __init__(
        self, features: int, memory_size: int, output_size: int, buffered: bool = False, **kind: Any
    ) -> None:
        buffers = {"i": 1, "o": 1} if buffered else {}
        sizes = {"u": 1, "d": 1, **buffers, "v": memory_size, "y": output_size}
        super().__init__(features, sum(sizes.values()), **kind)
        self.sizes = sizes

    def forward(self, features: Tensor) -> Actions:  # type: ignore[override]  # split, not one tensor
        raw = super().forward(features)
        if raw.dtype != self.weight.dtype:
            raw = raw.to(self.weight.dtype)  # under autocast: strengths in full precision
        v, y = self.rows("v"), self.rows("y")
        squashed = torch.sigmoid(raw[..., : v.stop])
        strengths = squashed[..., : v.start].unbind(-1)  # u, d and, in a buffered network, i, o
        return Actions(squashed[..., v], strengths[0], strengths[1], raw[..., y], *strengths[2:])

    def rows(self, name: str) -> slice:
        """Where the head called `name` lies in the map's rows."""
        names = list(self.sizes)
        start = sum(self.sizes[n] for n in names[: names.index(name)])
        return slice(start, start + self.sizes[name])

    def bias_of(self, name: str) -> Tensor:
        return self.bias[self.rows(name)]
