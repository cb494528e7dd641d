"""StackRNN over a whole sequence as PyTorch operators: `softstack::rnn` and its backward.

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
from softstack.kernels.cpu import layout as cpu_layout
from softstack.kernels.gpu import layout as gpu_layout
from softstack.kernels.kinds import CORES as CORES
from softstack.kernels.kinds import LINEAR, NONE
from softstack.kernels.kinds import MEMORIES as MEMORIES
from softstack.kernels.kinds import RNN as ELMAN
from softstack.kernels.scan import arrays, native, operator

ON_CHIP = 160 * 1024  # bytes of weights that a program on the GPU holds in its registers


def weights_held(core: int, m: int, H: int) -> int:
    """How many numbers these are: the maps that see r and h, padded to powers of two."""
    M, H = (1 << (size - 1).bit_length() for size in (m, max(1, H)))
    if core == LINEAR:
        return M * M
    return (1 if core == ELMAN else 4) * H * (M + H) + M * H


def on_chip(core: int, m: int, H: int, dtype: torch.dtype) -> bool:
    return weights_held(core, m, H) * dtype.itemsize <= ON_CHIP


def shapes(
    x: Tensor, b: Tensor, bo: Tensor, V0: Tensor, h0: Tensor, c0: Tensor, r0: Tensor,
    core: int, memory: int, T: int, buffered: bool, gpu: bool,
) -> tuple[list[tuple[int, ...]], int]:  # fmt: skip
    """The shapes of all results but the links, and the size of those."""
    P, B, n_in, k = x.shape
    m, H, A = r0.shape[2], h0.shape[2], (b if core == LINEAR else bo).shape[1]
    N = V0.shape[2] + (0 if memory == NONE else T)
    K = A - m - (4 if buffered else 2)
    if gpu:
        starts, links = gpu_layout.layout(core, memory, T, m, H, b.shape[1], N, n_in, buffered)
        size, links = B * starts[-1], B * links
    else:
        either = (
            cpu_layout.layout(core, memory, short, B, T, k, m, H, A, N, n_in, buffered)[-1]
            for short in (True, False)
        )
        size = torch.sym_ite(N <= cpu_layout.SHORT, *either)
        links = cpu_layout.links(B, T, N, n_in, buffered)
    inside = (P, B, n_in if buffered else 0)
    state = [tuple(z.shape) for z in (h0, c0, r0)] + [(P, B, N, m), (P, B, N), inside, (P, B)]
    return [(P, B, T, K), *state, (P, B, T if buffered else 0), (P, size)], links


def _results(
    x: Tensor, W: Tensor, b: Tensor, Wh: Tensor, bn: Tensor, Wo: Tensor, bo: Tensor,
    V0: Tensor, s0: Tensor, h0: Tensor, c0: Tensor, r0: Tensor, lengths: Tensor,
    strengths0: Tensor, i0: Tensor,
    core: int, memory: int, steps: int, ragged: bool, buffered: bool, gpu: bool,
) -> list[Tensor]:  # fmt: skip
    sizes, size = shapes(x, b, bo, V0, h0, c0, r0, core, memory, steps, buffered, gpu)
    return [*(x.new_empty(shape) for shape in sizes), x.new_empty(x.shape[0], size, dtype=torch.int32)]


@operator("rnn", _results)
def rnn_op(
    x: Tensor, W: Tensor, b: Tensor, Wh: Tensor, bn: Tensor, Wo: Tensor, bo: Tensor,
    V0: Tensor, s0: Tensor, h0: Tensor, c0: Tensor, r0: Tensor, lengths: Tensor,
    strengths0: Tensor, i0: Tensor,
    core: int, memory: int, steps: int, ragged: bool, buffered: bool, gpu: bool,
) -> list[Tensor]:  # fmt: skip
    """y (P, B, T, K), the final h, c, r, V, s, strengths and i, the output strengths o (P, B, T), and what
    the backward pass needs: tape and links."""
    made = _results(
        x, W, b, Wh, bn, Wo, bo, V0, s0, h0, c0, r0, lengths, strengths0, i0,
        core, memory, steps, ragged, buffered, gpu,
    )  # fmt: skip
    y, h, c, r, V, s, strengths, i, o, tape, links = made
    V[:, :, : V0.shape[2]] = V0
    given = (x, W, b, Wh, bn, Wo, bo, h0, c0, r0, s0, strengths0, i0, lengths)
    native("rnn", gpu).forward(
        core, memory, ragged, buffered, *arrays((z.contiguous() for z in given), gpu),
        *arrays((V, s, strengths, y, o, h, c, r, i, tape, links), gpu),
    )  # fmt: skip
    return made


def _gradients(
    x: Tensor, W: Tensor, Wh: Tensor, Wo: Tensor, s0: Tensor, lengths: Tensor, strengths0: Tensor, i0: Tensor,
    V: Tensor, s: Tensor, strengths: Tensor, tape: Tensor, links: Tensor,
    gy: Tensor, gh: Tensor, gc: Tensor, gr: Tensor, gV: Tensor, gs: Tensor, gstrengths: Tensor, gi: Tensor,
    go: Tensor,
    core: int, memory: int, ragged: bool, buffered: bool, to_x: bool, gpu: bool,
) -> list[Tensor]:  # fmt: skip
    P, B, T, _ = gy.shape
    m, H = gr.shape[2], gh.shape[2]
    n = V.shape[2] - (0 if memory == NONE else T)
    weights = [W.shape, W.shape[:2], Wh.shape, (P, H), Wo.shape, (P, Wo.shape[1] if H else 0)]
    state = [(P, B, n, m), (P, B, n), gh.shape, gc.shape, gr.shape, gstrengths.shape, gi.shape]
    return [gy.new_empty(shape) for shape in [x.shape, *weights, *state]]


@operator("rnn_backward", _gradients)
def rnn_backward_op(
    x: Tensor, W: Tensor, Wh: Tensor, Wo: Tensor, s0: Tensor, lengths: Tensor, strengths0: Tensor, i0: Tensor,
    V: Tensor, s: Tensor, strengths: Tensor, tape: Tensor, links: Tensor,
    gy: Tensor, gh: Tensor, gc: Tensor, gr: Tensor, gV: Tensor, gs: Tensor, gstrengths: Tensor, gi: Tensor,
    go: Tensor,
    core: int, memory: int, ragged: bool, buffered: bool, to_x: bool, gpu: bool,
) -> list[Tensor]:  # fmt: skip
    """The gradients of x (0 unless `to_x` or buffered), W, b, Wh, bn, Wo, bo, V0, s0, h0, c0, r0, strengths0
    and i0."""
    P, _, T, _ = gy.shape
    H = gh.shape[2]
    n = V.shape[2] - (0 if memory == NONE else T)
    whole = torch.contiguous_format
    state = [z.clone(memory_format=whole) for z in (gh, gc, gr, gV, gs, gi, gstrengths)]
    gx, gW, gWh, gWo = (torch.zeros_like(z, memory_format=whole) for z in (x, W, Wh, Wo))
    gb, gbn, gbo = gy.new_zeros(W.shape[:2]), gy.new_zeros(P, H), gy.new_zeros(P, Wo.shape[1] if H else 0)
    given = (x, W, Wh, Wo, s0, strengths0, i0, lengths, V, s, strengths, tape, links, gy, go)
    native("rnn", gpu).backward(
        core, memory, ragged, buffered, *arrays((z.contiguous() for z in given), gpu), *arrays(state, gpu),
        to_x, *arrays((gx, gW, gb, gWh, gbn, gWo, gbo), gpu),
    )  # fmt: skip
    gh, gc, gr, gV, gs, gi, gstrengths = state
    first = (gV[:, :, :n].clone(), gs[:, :, :n].clone(), gh, gc, gr, gstrengths, gi)
    return [gx, gW, gb, gWh, gbn, gWo, gbo, *first]


class RNNBackward(torch.autograd.Function):
    """`softstack::rnn_backward`, which has no gradient of its own, and says so."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        x: Tensor, W: Tensor, Wh: Tensor, Wo: Tensor, s0: Tensor, lengths: Tensor, strengths0: Tensor,
        i0: Tensor, V: Tensor, s: Tensor, strengths: Tensor, tape: Tensor, links: Tensor,
        gy: Tensor, gh: Tensor, gc: Tensor, gr: Tensor, gV: Tensor, gs: Tensor, gstrengths: Tensor,
        gi: Tensor, go: Tensor,
        core: int, memory: int, ragged: bool, buffered: bool, to_x: bool, gpu: bool,
    ) -> Any:  # fmt: skip
        return tuple(
            rnn_backward_op(
                x, W, Wh, Wo, s0, lengths, strengths0, i0, V, s, strengths, tape, links,
                gy, gh, gc, gr, gV, gs, gstrengths, gi, go,
                core, memory, ragged, buffered, to_x, gpu,
            )
        )  # fmt: skip

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
        strengths0: Tensor, i0: Tensor,
        core: int, memory: int, steps: int, ragged: bool, buffered: bool, gpu: bool,
    ) -> Any:  # fmt: skip
        return tuple(
            rnn_op(
                x, W, b, Wh, bn, Wo, bo, V0, s0, h0, c0, r0, lengths, strengths0, i0,
                core, memory, steps, ragged, buffered, gpu,
            )
        )  # fmt: skip

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        x, W, _, Wh, _, Wo, _, _, s0, *_ = inputs
        lengths, strengths0, i0, ctx.core, ctx.memory, _, ctx.ragged, ctx.buffered, ctx.gpu = inputs[12:]
        ctx.shapes = [z.shape for z in output[:9]]
        _, _, _, _, V, s, strengths, _, _, tape, links = output
        ctx.mark_non_differentiable(tape, links)
        ctx.set_materialize_grads(False)  # the tape has none, and is large
        ctx.save_for_backward(x, W, Wh, Wo, s0, lengths, strengths0, i0, V, s, strengths, tape, links)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        saved = ctx.saved_tensors  # once: gradient checkpointing computes them again for each reading
        x = saved[0]
        given = [x.new_zeros(z) if g is None else g for g, z in zip(gradients, ctx.shapes, strict=False)]
        options = (ctx.core, ctx.memory, ctx.ragged, ctx.buffered, ctx.needs_input_grad[0], ctx.gpu)
        arguments = (*saved, *given, *options)
        # to be differentiated again it must say that it cannot be; that costs, so only where it may be
        made = RNNBackward.apply(*arguments) if torch.is_grad_enabled() else rnn_backward_op(*arguments)  # type: ignore[no-untyped-call]  # torch's apply
        return (*made[:12], None, *made[12:], None, None, None, None, None, None)


torch.library.register_autograd(
    "softstack::rnn", lambda ctx, gradients: RNN.backward(ctx, *gradients), setup_context=RNN.setup_context
)


class Weights(NamedTuple):
    """The parameters of a cell, each with an axis of models before it."""

    W: Tensor
    b: Tensor
    Wh: Tensor
    bn: Tensor
    Wo: Tensor
    bo: Tensor


class Final(NamedTuple):
    """A fused run: y (P, B, T, K) and the final state; h has h and, for the LSTM, c. With buffers also the
    strengths in the input buffer, i, and those o with which y enters the output buffer."""

    y: Tensor
    h: tuple[Tensor, ...]
    V: Tensor
    s: Tensor
    r: Tensor
    strengths: Tensor
    i: Tensor
    o: Tensor


class Input(NamedTuple):
    """Where a buffered network's input comes from (§2.3)."""

    strengths: Tensor  # (P, B, n_in)
    i: Tensor  # (P, B) to be taken before the first step
    steps: int


def run(
    x: Tensor, weights: Weights, h: tuple[Tensor, ...], V: Tensor, s: Tensor, r: Tensor,
    lengths: Tensor | None, core: str, memory: str, buffer: Input | None, gpu: bool,
) -> Final:  # fmt: skip
    """Each of P models over its own sequences, x (P, B, T, k), or what is in its input buffer, from a state
    with axes (P, B, ...). `lengths` counts steps."""
    P, B, T, _ = x.shape
    h0, c0 = (*h, *(x.new_zeros(P, B, 0) for _ in range(2 - len(h))))  # no tensor twice: torch.compile
    strengths, i, steps = buffer or Input(x.new_zeros(P, B, 0), x.new_zeros(P, B), T)
    each = (
        torch.full((P, B), steps, device=x.device) if lengths is None else lengths.to(x.device, torch.int64)
    )
    y, hT, cT, rT, VT, sT, left, iT, o, *_ = RNN.apply(  # type: ignore[no-untyped-call]  # torch's apply
        x, *weights, V, s, h0, c0, r, each, strengths, i,
        CORES[core], MEMORIES[memory], steps, lengths is not None, buffer is not None, gpu,
    )  # fmt: skip
    return Final(y, (hT, cT)[: len(h)], VT, sT, rT, left, iT, o)
