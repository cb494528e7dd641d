"""A StackCell over a whole sequence through a fused kernel: what the kernel needs of the cell, and back."""

import torch
from torch import Tensor

from softstack.cell import StackCell, State
from softstack.memory import MemoryState


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
    """x (B, T, input_size), or without the batch axis, and the state before it -> y and the state after it."""
    from softstack.kernels import rnn

    if x.ndim == 2:
        one = State(
            tuple(h.unsqueeze(0) for h in state.h),
            MemoryState(state.memory.V.unsqueeze(0), state.memory.s.unsqueeze(0)),
            state.r.unsqueeze(0),
        )
        y, (h, memory, r) = run(cell, x.unsqueeze(0), one, None if lengths is None else lengths.unsqueeze(0))
        memory = MemoryState(memory.V.squeeze(0), memory.s.squeeze(0))
        return y.squeeze(0), State(tuple(part.squeeze(0) for part in h), memory, r.squeeze(0))
    made = rnn.run(
        x, _weights(cell), state.h, *state.memory, state.r, lengths,
        cell.sizes["output_size"], cell.controller_name, cell.memory_name,
    )  # fmt: skip
    memory = state.memory if cell.memory_name == "none" else MemoryState(made.V, made.s)
    return made.y, State(made.h, memory, made.r)


def _weights(cell: StackCell) -> "rnn.Weights":  # noqa: F821 (imported where it is used)
    from softstack.kernels import rnn

    heads, core = cell.heads, cell.core
    if cell.controller_name == "linear":
        none = heads.weight.new_zeros(heads.out_features, 0)
        return rnn.Weights(heads.weight, heads.bias, none, none[0], none, torch.zeros_like(heads.bias))
    bias, inner = core.from_hidden.bias, core.from_hidden.bias.new_zeros(core.features)
    if cell.controller_name == "gru":
        H = core.features
        bias, inner = torch.cat((bias[: 2 * H], inner)), bias[2 * H :]
    first = core.from_input
    return rnn.Weights(
        first.weight, first.bias + bias, core.from_hidden.weight, inner, heads.weight, heads.bias
    )
