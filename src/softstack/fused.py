"""Cells over whole sequences through a fused kernel: what the kernel needs of a cell, and back."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from softstack.cell import StackCell, State
from softstack.memory import MemoryState

if TYPE_CHECKING:
    from softstack.kernels.rnn import Weights


def why_not(cell: StackCell, x: Tensor, return_trace: bool) -> str:
    """Why no kernel fits this call; "" where one does."""
    from softstack.kernels.rnn import CORES, MEMORIES

    if cell.controller_name not in CORES:
        return f"there is no kernel for the {cell.controller_name} controller"
    if cell.memory_name not in MEMORIES:
        return f"there is no kernel for the memory {cell.memory_name}"
    if x.dtype != cell.heads.weight.dtype:
        return f"x is {x.dtype} and the parameters are {cell.heads.weight.dtype}"
    if return_trace:
        return "a trace is kept step by step"
    if 0 in x.shape[:-1]:
        return "there is nothing to compute"
    return ""


def run(cell: StackCell, x: Tensor, state: State, lengths: Tensor | None) -> tuple[Tensor, State]:
    """x (B, T, input_size), or without the batch axis, and the state before it -> y and the state after."""
    from softstack.kernels import rnn

    axes = (0,) if x.ndim == 3 else (0, 0)  # those missing: of models, and of sequences

    def grow(z: Tensor) -> Tensor:
        for axis in axes:
            z = z.unsqueeze(axis)
        return z

    def shrink(z: Tensor) -> Tensor:
        for axis in axes:
            z = z.squeeze(axis)
        return z

    weights = weights_of(cell.controller_name, dict(cell.named_parameters()))
    (V, s), r = state.memory, state.r
    made = rnn.run(
        grow(x),
        rnn.Weights(*(w.unsqueeze(0) for w in weights)),
        tuple(map(grow, state.h)),
        grow(V),
        grow(s),
        grow(r),
        None if lengths is None else grow(lengths),
        cell.controller_name,
        cell.memory_name,
    )
    memory = MemoryState(shrink(made.V), shrink(made.s))
    return shrink(made.y), State(tuple(map(shrink, made.h)), memory, shrink(made.r))


def population(cell: StackCell, parameters: dict[str, Tensor], x: Tensor) -> Tensor:
    """P networks like `cell`, each over its own sequences: x (P, B, T, k) -> y (P, B, T, K)."""
    from softstack.kernels import rnn

    state = cell.init(x.shape[:2], x)
    weights = weights_of(cell.controller_name, parameters)
    (V, s), r = state.memory, state.r
    return rnn.run(x, weights, state.h, V, s, r, None, cell.controller_name, cell.memory_name).y


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
