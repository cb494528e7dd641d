"""Cells over whole sequences through a fused kernel: what the kernel needs of a cell, and back."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from softstack.cell import StackCell, State
from softstack.fit import CORE_NAMES, MEMORY_NAMES
from softstack.memory import MemoryState

if TYPE_CHECKING:
    from softstack.kernels.rnn import Final, Input, Weights


def run(
    cell: StackCell,
    x: Tensor,
    state: State,
    lengths: Tensor | None,
    kernel: str,
    buffer: "Input | None" = None,
) -> "Final":
    """x (B, T, input_size), or the items of an input buffer, and the state before it; the batch axis may be
    missing. What comes out has the same axes."""
    from softstack.kernels import rnn

    axes = x.ndim - 4  # those missing: of models, and of sequences

    def grow(z: Tensor) -> Tensor:
        return z[(None,) * -axes]

    def shrink(z: Tensor) -> Tensor:
        return z[(0,) * -axes]

    weights = weights_of(CORE_NAMES[type(cell.core)], dict(cell.named_parameters()))
    if cell.output_size is None:
        weights = saying_features(weights, cell.core.features)
    made = rnn.run(
        grow(x),
        rnn.Weights(*(w.unsqueeze(0) for w in weights)),
        tuple(map(grow, state.h)),
        grow(state.memory.V),
        grow(state.memory.s),
        grow(state.r),
        None if lengths is None else grow(lengths),
        CORE_NAMES[type(cell.core)],
        MEMORY_NAMES[type(cell.memory)],
        None if buffer is None else rnn.Input(grow(buffer.strengths), grow(buffer.i), buffer.steps),
        kernel == "gpu",
    )
    h = tuple(map(shrink, made.h))
    return rnn.Final(*(h if part is made.h else shrink(part) for part in made))  # type: ignore[arg-type]  # h alone is a tuple


def state_of(final: "Final") -> State:
    return State(final.h, MemoryState(final.V, final.s), final.r)


def weights_of(controller: str, p: dict[str, Tensor]) -> "Weights":
    """A cell's parameters by name, or a population's, stacked, as the kernel takes them."""
    from softstack.kernels.rnn import Weights

    weight, bias = p["heads.weight"], p["heads.bias"]
    if controller == "linear":
        none = weight[..., :0]
        return Weights(weight, bias, none, bias[..., :0], none, bias[..., :0])
    from_input, inner = p["core.from_input.bias"], p["core.from_hidden.bias"]
    hidden = p["core.from_hidden.weight"]
    H = hidden.shape[-1]
    if controller == "gru":
        outer = torch.cat((inner[..., : 2 * H], torch.zeros_like(inner[..., :H])), -1)
        new = inner[..., 2 * H :]
    else:
        outer, new = inner, torch.zeros_like(inner[..., :H])
    return Weights(p["core.from_input.weight"], from_input + outer, hidden, new, weight, bias)


def saying_features(weights: "Weights", features: int) -> "Weights":
    """The weights of a cell without a head for y, which then is what its heads see: y's rows are those of the
    identity, so that a kernel needs no other way to put features out."""
    linear = not weights.Wo.numel()
    W, b = (weights.W, weights.b) if linear else (weights.Wo, weights.bo)
    W, b = torch.cat((W, torch.eye(features).to(W))), torch.cat((b, b.new_zeros(features)))
    return weights._replace(W=W, b=b) if linear else weights._replace(Wo=W, bo=b)
