"""Cells over whole sequences through a fused kernel: what the kernel needs of a cell, and back."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from softstack.cell import StackCell, State
from softstack.memory import MemoryState

if TYPE_CHECKING:
    from softstack.kernels.rnn import Final, Input, Weights


def why_not(cell: StackCell, x: Tensor, steps: int, return_trace: bool) -> str:
    """Why no kernel fits this call; "" where one does."""
    from softstack.kernels.rnn import CORES, MEMORIES, on_chip

    if cell.controller_name not in CORES:
        return f"there is no kernel for the {cell.controller_name} controller"
    if cell.memory_name not in MEMORIES:
        return f"there is no kernel for the memory {cell.memory_name}"
    if x.dtype != cell.heads.weight.dtype:
        return f"x is {x.dtype} and the parameters are {cell.heads.weight.dtype}"
    if return_trace:
        return "a trace is kept step by step"
    if not steps or 0 in x.shape[:-1]:
        return "there is nothing to compute"
    sizes = cell.sizes["memory_size"], cell.sizes["hidden_size"]
    if x.is_cuda and "i" in cell.heads.sizes and not on_chip(CORES[cell.controller_name], *sizes, x.dtype):
        return "on a GPU, only unbuffered networks may have more weights than fit a chip"
    return ""


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

    weights = weights_of(cell.controller_name, dict(cell.named_parameters()))
    made = rnn.run(
        grow(x),
        rnn.Weights(*(w.unsqueeze(0) for w in weights)),
        tuple(map(grow, state.h)),
        grow(state.memory.V),
        grow(state.memory.s),
        grow(state.r),
        None if lengths is None else grow(lengths),
        cell.controller_name,
        cell.memory_name,
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
