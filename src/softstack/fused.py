"""Cells over whole sequences through a fused kernel: what the kernel needs of a cell, and back."""

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from softstack.cell import StackCell, State
from softstack.disturbance import Disturbance
from softstack.fit import CORE_NAMES, choices, memory_name
from softstack.memory import MemoryState
from softstack.memory.depths import Depths

if TYPE_CHECKING:
    from softstack.kernels.rnn import Input
    from softstack.kernels.tuples import Weights


class Final(NamedTuple):
    """A fused run: y (B, T, K) and the state after it. With buffers also the strengths in the input buffer,
    i, and those o with which y enters the output buffer."""

    y: Tensor
    state: State
    strengths: Tensor
    i: Tensor
    o: Tensor


def run(
    cell: StackCell,
    x: Tensor,
    state: State,
    lengths: Tensor | None,
    kernel: str,
    buffer: "Input | None" = None,
    disturbance: Disturbance | None = None,
) -> Final:
    """x (B, T, input_size), or the items of an input buffer, and the state before it; the batch axis may be
    missing. What comes out has the same axes."""
    from softstack.kernels import rnn, tuples

    axes = 4 - x.ndim  # those missing: of models, and of sequences

    def grow(z: Tensor) -> Tensor:
        return z[(None,) * axes]

    def shrink(z: Tensor) -> Tensor:
        return z[(0,) * axes]

    weights = weights_of(CORE_NAMES[type(cell.core)], dict(cell.named_parameters()))
    if cell.output_size is None:
        weights = saying_features(weights, cell.core.features)
    h, c = (*state.h, *(x.new_zeros(*state.r.shape[:-1], 0) for _ in range(2 - len(state.h))))
    outputs = rnn.run(
        grow(x),
        tuples.Weights(*(w.unsqueeze(0) for w in weights)),
        tuples.State(*map(grow, (h, c, state.r, *held(state.memory)))),
        None if lengths is None else grow(lengths),
        CORE_NAMES[type(cell.core)],
        memory_name(cell.memory),
        None if buffer is None else rnn.Input(grow(buffer.strengths), grow(buffer.i), buffer.steps),
        None if disturbance is None else tuples.Disturbance(*map(grow, disturbance)),
        kernel,
        choices(cell.head_kinds),
        getattr(cell.memory, "depth", None) or 0,
    )
    hidden = (outputs.final.h, outputs.final.c)[: len(state.h)]
    V, s = shrink(outputs.final.V), shrink(outputs.final.s)
    by_depths = isinstance(state.memory, Depths)
    memory = Depths(torch.cat((V, s.unsqueeze(-1)), -1)) if by_depths else MemoryState(V, s)
    final = State(tuple(map(shrink, hidden)), memory, shrink(outputs.final.r))
    return Final(shrink(outputs.y), final, *map(shrink, (*outputs.buffer, outputs.o)))


def held(memory: MemoryState | Depths) -> tuple[Tensor, Tensor]:
    """V (B, N, m) and s (B, N): the vectors in cells, and how much of each there is."""
    if isinstance(memory, Depths):
        return memory.cells[..., :-1], memory.cells[..., -1]
    return memory.V, memory.s


def weights_of(controller: str, p: dict[str, Tensor]) -> "Weights":
    """A cell's parameters by name, or a population's, stacked, as the kernel takes them."""
    from softstack.kernels.tuples import Weights

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
