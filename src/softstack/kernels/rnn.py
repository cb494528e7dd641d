"""StackRNN over a whole sequence as PyTorch operators: `softstack::rnn` and its backward, on the CPU.

Registered as the scan is. Every tensor begins with an axis of models, which a vmapped axis joins, so that a
population is one call:

    x (P, B, T, k)   W (P, G, k + m), b (P, G), the map that sees [x; r]: a linear controller's heads
    Wh (P, G, H)   bn (P, H), the GRU's bias inside its reset gate   Wo (P, A, H), bo (P, A), the heads
    V0 (P, B, n, m), s0 (P, B, n), h0 and c0 (P, B, H), r0 (P, B, m): the state   lengths (P, B)
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from softstack.errors import BadInput
from softstack.kernels.scan import fold

CORES = {"linear": 0, "rnn": 1, "gru": 2, "lstm": 3}
MEMORIES = {"stack": 0, "queue": 1, "none": 2}


def _sizes(
    x: Tensor, b: Tensor, bo: Tensor, V0: Tensor, h0: Tensor, r0: Tensor, core: int, memory: int
) -> Any:
    """P, B, T, k, m, H, K and N."""
    heads = b if core == CORES["linear"] else bo
    m = r0.shape[2]
    N = V0.shape[2] + (0 if memory == MEMORIES["none"] else x.shape[2])
    return *x.shape, m, h0.shape[2], heads.shape[1] - 2 - m, N


def _arrays(*tensors: Tensor) -> list[Any]:
    return [x.detach().contiguous().numpy() for x in tensors]


@torch.library.custom_op("softstack::rnn", mutates_args=(), device_types="cpu")
def rnn_op(
    x: Tensor, W: Tensor, b: Tensor, Wh: Tensor, bn: Tensor, Wo: Tensor, bo: Tensor,
    V0: Tensor, s0: Tensor, h0: Tensor, c0: Tensor, r0: Tensor, lengths: Tensor,
    core: int, memory: int, ragged: bool,
) -> list[Tensor]:  # fmt: skip
    """y (P, B, T, K), the final h, c, r, V and s, and what the backward pass needs: tape and links."""
    from softstack.kernels import cpu_rnn

    P, B, T, k, m, H, K, N = _sizes(x, b, bo, V0, h0, r0, core, memory)
    n = V0.shape[2]
    size = cpu_rnn.layout(core, memory, B, T, k, m, H, K, N)[-1]
    V, s = x.new_empty(P, B, N, m), x.new_empty(P, B, N)
    V[:, :, :n], s[:, :, :n] = V0, s0
    y, h, c, r = x.new_empty(P, B, T, K), torch.empty_like(h0), torch.empty_like(c0), torch.empty_like(r0)
    tape, links = x.new_empty(P, size), x.new_empty(P, B * N + B * (T + 1), dtype=torch.int32)
    made = [y, h, c, r, V, s, tape, links]
    cpu_rnn.forward(
        core, memory, ragged, *_arrays(x, W, b, Wh, bn, Wo, bo, h0, c0, r0, lengths),
        *(z.numpy() for z in (V, s, y, h, c, r, tape, links)),
    )  # fmt: skip
    return made


@rnn_op.register_fake
def _(
    x: Tensor, W: Tensor, b: Tensor, Wh: Tensor, bn: Tensor, Wo: Tensor, bo: Tensor,
    V0: Tensor, s0: Tensor, h0: Tensor, c0: Tensor, r0: Tensor, lengths: Tensor,
    core: int, memory: int, ragged: bool,
) -> list[Tensor]:  # fmt: skip
    from softstack.kernels import cpu_rnn

    P, B, T, k, m, H, K, N = _sizes(x, b, bo, V0, h0, r0, core, memory)
    size = cpu_rnn.layout.py_func(core, memory, B, T, k, m, H, K, N)[-1]
    shapes = [(P, B, T, K), h0.shape, c0.shape, r0.shape, (P, B, N, m), (P, B, N), (P, size)]
    links = x.new_empty(P, B * N + B * (T + 1), dtype=torch.int32)
    return [*(x.new_empty(shape) for shape in shapes), links]


@torch.library.custom_op("softstack::rnn_backward", mutates_args=(), device_types="cpu")
def rnn_backward_op(
    W: Tensor, Wh: Tensor, Wo: Tensor, lengths: Tensor, V: Tensor, s: Tensor, tape: Tensor, links: Tensor,
    gy: Tensor, gh: Tensor, gc: Tensor, gr: Tensor, gV: Tensor, gs: Tensor,
    core: int, memory: int, ragged: bool, to_x: bool,
) -> list[Tensor]:  # fmt: skip
    """The gradients of x (0 unless `to_x`), W, b, Wh, bn, Wo, bo, V0, s0, h0, c0 and r0."""
    from softstack.kernels import cpu_rnn

    P, B, T, _ = gy.shape
    k, H = W.shape[2] - gr.shape[2], gh.shape[2]
    n = V.shape[2] - (0 if memory == MEMORIES["none"] else T)
    whole = torch.contiguous_format
    state = [z.clone(memory_format=whole) for z in (gh, gc, gr, gV, gs)]
    gx = gy.new_zeros(P, B, T, k)
    gW, gWh, gWo = (torch.zeros_like(z, memory_format=whole) for z in (W, Wh, Wo))
    gb, gbn, gbo = gy.new_zeros(W.shape[:2]), gy.new_zeros(P, H), gy.new_zeros(P, Wo.shape[1] if H else 0)
    cpu_rnn.backward(
        core, memory, ragged, *_arrays(W, Wh, Wo, lengths, V), s.clone(memory_format=whole).numpy(),
        *_arrays(tape, links, gy), *(z.numpy() for z in state), to_x,
        *(z.numpy() for z in (gx, gW, gb, gWh, gbn, gWo, gbo)),
    )  # fmt: skip
    gh, gc, gr, gV, gs = state
    return [gx, gW, gb, gWh, gbn, gWo, gbo, gV[:, :, :n].clone(), gs[:, :, :n].clone(), gh, gc, gr]


@rnn_backward_op.register_fake
def _(
    W: Tensor, Wh: Tensor, Wo: Tensor, lengths: Tensor, V: Tensor, s: Tensor, tape: Tensor, links: Tensor,
    gy: Tensor, gh: Tensor, gc: Tensor, gr: Tensor, gV: Tensor, gs: Tensor,
    core: int, memory: int, ragged: bool, to_x: bool,
) -> list[Tensor]:  # fmt: skip
    P, B, T, _ = gy.shape
    m, H = gr.shape[2], gh.shape[2]
    n = V.shape[2] - (0 if memory == MEMORIES["none"] else T)
    weights = [W.shape, W.shape[:2], Wh.shape, (P, H), Wo.shape, (P, Wo.shape[1] if H else 0)]
    shapes = [(P, B, T, W.shape[2] - m), *weights, (P, B, n, m), (P, B, n), gh.shape, gc.shape, gr.shape]
    return [gy.new_empty(shape) for shape in shapes]


def _folded(op: Any) -> Any:
    def rule(info: Any, in_dims: Any, *arguments: Any) -> tuple[Any, Any]:
        outputs, dims = fold(info, in_dims, arguments, op)
        return list(outputs), list(dims)

    return rule


rnn_op.register_vmap(_folded(rnn_op))
rnn_backward_op.register_vmap(_folded(rnn_backward_op))


class RNNBackward(torch.autograd.Function):
    """`softstack::rnn_backward`, which has no gradient of its own, and says so."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        W: Tensor, Wh: Tensor, Wo: Tensor, lengths: Tensor, V: Tensor, s: Tensor, tape: Tensor, links: Tensor,
        gy: Tensor, gh: Tensor, gc: Tensor, gr: Tensor, gV: Tensor, gs: Tensor,
        core: int, memory: int, ragged: bool, to_x: bool,
    ) -> Any:  # fmt: skip
        return tuple(
            rnn_backward_op(
                W, Wh, Wo, lengths, V, s, tape, links, gy, gh, gc, gr, gV, gs, core, memory, ragged, to_x
            )
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise BadInput("a fused kernel cannot be differentiated twice: use backend='reference', which can be")


class RNN(torch.autograd.Function):
    """`softstack::rnn` with its gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        x: Tensor, W: Tensor, b: Tensor, Wh: Tensor, bn: Tensor, Wo: Tensor, bo: Tensor,
        V0: Tensor, s0: Tensor, h0: Tensor, c0: Tensor, r0: Tensor, lengths: Tensor,
        core: int, memory: int, ragged: bool,
    ) -> Any:  # fmt: skip
        return tuple(rnn_op(x, W, b, Wh, bn, Wo, bo, V0, s0, h0, c0, r0, lengths, core, memory, ragged))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        _, W, _, Wh, _, Wo, *_ = inputs
        _, _, _, _, V, s, *log = output
        ctx.core, ctx.memory, ctx.ragged = inputs[13:]
        ctx.shapes = [z.shape for z in output[:6]]
        ctx.mark_non_differentiable(*log)
        ctx.set_materialize_grads(False)  # the tape has none, and is large
        ctx.save_for_backward(W, Wh, Wo, inputs[12], V, s, *log)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        W, *saved = ctx.saved_tensors
        given = [W.new_zeros(z) if g is None else g for g, z in zip(gradients, ctx.shapes, strict=False)]
        arguments = (W, *saved, *given, ctx.core, ctx.memory, ctx.ragged, ctx.needs_input_grad[0])
        # to be differentiated again it must say that it cannot be; that costs, so only where it may be
        made = RNNBackward.apply(*arguments) if torch.is_grad_enabled() else rnn_backward_op(*arguments)  # type: ignore[no-untyped-call]
        return (*made, None, None, None, None)


class Weights(NamedTuple):
    """The parameters of a cell, each with an axis of models before it."""

    W: Tensor
    b: Tensor
    Wh: Tensor
    bn: Tensor
    Wo: Tensor
    bo: Tensor


class Final(NamedTuple):
    """A fused run: y (P, B, T, K) and the final state; h has h and, for the LSTM, c."""

    y: Tensor
    h: tuple[Tensor, ...]
    V: Tensor
    s: Tensor
    r: Tensor


def run(
    x: Tensor, weights: Weights, h: tuple[Tensor, ...], V: Tensor, s: Tensor, r: Tensor,
    lengths: Tensor | None, core: str, memory: str,
) -> Final:  # fmt: skip
    """Each of P models over its own sequences x (P, B, T, k), from a state with axes (P, B, ...)."""
    P, B, T, _ = x.shape
    none = x.new_zeros(P, B, 0)
    h0, c0 = (*h, none, none)[:2]
    each = torch.full((P, B), T) if lengths is None else lengths.to(torch.int64)
    y, hT, cT, rT, VT, sT, *_ = RNN.apply(  # type: ignore[no-untyped-call]
        x, *weights, V, s, h0, c0, r, each, CORES[core], MEMORIES[memory], lengths is not None
    )
    return Final(y, (hT, cT)[: len(h)], VT, sT, rT)
