"""StackRNN over a whole sequence as PyTorch operators: `softstack::rnn` and its backward, on the CPU.

Registered as the scan is. Every tensor begins with an axis of models, which a vmapped axis joins: a
population is one call. Shapes are those of cpu_rnn.py.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from softstack.errors import BadInput
from softstack.kernels.scan import fold

CORES = {"linear": 0, "rnn": 1, "gru": 2, "lstm": 3}
MEMORIES = {"stack": 0, "queue": 1, "none": 2}
LANES = 16


@torch.library.custom_op("softstack::rnn", mutates_args=(), device_types="cpu")
def rnn_op(
    X: Tensor, Wr: Tensor, Wh: Tensor, bn: Tensor, Wo: Tensor, bo: Tensor,
    V0: Tensor, s0: Tensor, h0: Tensor, c0: Tensor, r0: Tensor, lengths: Tensor,
    outputs: int, core: int, memory: int, sequences: int, ragged: bool,
) -> list[Tensor]:  # fmt: skip
    """y, the final h, c, r, V and s, and what the backward pass needs: every step's h, c and r, acts, gates,
    gone, after, first and old."""
    from softstack.kernels import cpu_rnn

    made = _results(X, Wr, Wh, V0, outputs, core)
    y, h, c, r, V, s, hs, cs, rs, acts, gates, gone, after, first, old = made
    n = s0.shape[2]
    V[:, :, :n], s[:, :, :n] = V0, s0
    hs[:, :, 0], cs[:, :, 0], rs[:, :, 0] = h0, c0, r0
    arrays = (_numpy(lengths.flatten(0, 1)), ragged, *map(_numpy, (X, Wr, Wh, bn, Wo, bo)))
    rows = (x.flatten(0, 1).numpy() for x in (V, s))
    log = (x.flatten(0, 1).numpy() for x in (gone, after, first, old))
    steps = (x.numpy() for x in (hs, cs, rs, y, acts, gates))
    cpu_rnn.forward(core, memory, sequences, *arrays, *rows, *steps, *log)
    h.copy_(hs[:, :, -1])
    c.copy_(cs[:, :, -1])
    r.copy_(rs[:, :, -1])
    return made


def _numpy(x: Tensor) -> Any:
    return x.detach().contiguous().numpy()


def _results(X: Tensor, Wr: Tensor, Wh: Tensor, V0: Tensor, outputs: int, core: int) -> list[Tensor]:
    """The results of the operator, not yet computed. Rows of padding are never written, so they are 0."""
    P, _, T, B = X.shape
    m, H, N = Wr.shape[1], Wh.shape[1], V0.shape[2] + T
    cells, gates = (H if core == CORES["lstm"] else 0), (4 * H if core >= CORES["gru"] else 0)
    shapes = [(P, outputs, T, B), (P, H, B), (P, cells, B), (P, m, B), (P, B, N, m), (P, B, N)]
    shapes += [(P, H, T + 1, B), (P, cells, T + 1, B), (P, m, T + 1, B), (P, 2 + m, T, B), (P, gates, T, B)]
    results = [X.new_zeros(shape) for shape in [*shapes, (P, B, N)]]
    return [
        *results,
        X.new_zeros(P, B, N, dtype=torch.int32),
        X.new_zeros(P, B, T + 1, dtype=torch.int32),
        X.new_zeros(P, B, T),
    ]


@rnn_op.register_fake
def _(
    X: Tensor, Wr: Tensor, Wh: Tensor, bn: Tensor, Wo: Tensor, bo: Tensor,
    V0: Tensor, s0: Tensor, h0: Tensor, c0: Tensor, r0: Tensor, lengths: Tensor,
    outputs: int, core: int, memory: int, sequences: int, ragged: bool,
) -> list[Tensor]:  # fmt: skip
    return _results(X, Wr, Wh, V0, outputs, core)


@torch.library.custom_op("softstack::rnn_backward", mutates_args=(), device_types="cpu")
def rnn_backward_op(
    Wr: Tensor, Wh: Tensor, Wo: Tensor, lengths: Tensor, V: Tensor, s: Tensor, h: Tensor, c: Tensor, r: Tensor,
    acts: Tensor, gates: Tensor, gone: Tensor, after: Tensor, first: Tensor, old: Tensor,
    gy: Tensor, gh: Tensor, gc: Tensor, gr: Tensor, gV: Tensor, gs: Tensor,
    core: int, memory: int, sequences: int, ragged: bool,
) -> list[Tensor]:  # fmt: skip
    """The gradients of X, Wr, Wh, bn, Wo, bo, V0, s0, h0, c0 and r0."""
    from softstack.kernels import cpu_rnn

    (P, G, T, B), n = _first_map(gy, Wr), V.shape[2] - gy.shape[2]
    H, A = Wh.shape[1], Wo.shape[2]
    gh, gc, gr, gV, gs, s = (x.clone(memory_format=torch.contiguous_format) for x in (gh, gc, gr, gV, gs, s))
    gX, gout = gy.new_empty(P, G, T, B), gy.new_empty(P, A if H else 0, T, B)
    grec = gy.new_empty(P, H if core == CORES["gru"] else 0, T, B)
    weights = map(_numpy, (Wr, Wh, Wo))
    rows = (_numpy(V.flatten(0, 1)), s.flatten(0, 1).numpy())
    saved = map(_numpy, (h, c, acts, gates))
    log = (_numpy(x.flatten(0, 1)) for x in (gone, after, first, old))
    state = (gh.numpy(), gc.numpy(), gr.numpy(), gs.flatten(0, 1).numpy(), gV.flatten(0, 1).numpy())
    cpu_rnn.backward(
        core, memory, sequences, _numpy(lengths.flatten(0, 1)), ragged, *weights, *rows, *saved, *log,
        _numpy(gy), *state, gX.numpy(), gout.numpy(), grec.numpy(),
    )  # fmt: skip
    before, flat = h[:, :, :T].flatten(2), gX.flatten(2)
    gWr = r[:, :, :T].flatten(2) @ flat.mT
    if core == CORES["gru"]:
        gated = torch.cat((flat[:, : 2 * H], grec.flatten(2)), 1)
        gWh, gbn = before @ gated.mT, grec.sum((2, 3))
    else:
        gWh, gbn = before @ flat.mT, gy.new_zeros(P, H)
    gWo, gbo = h[:, :, 1:].flatten(2) @ gout.flatten(2).mT, gout.sum((2, 3))
    if not H:
        gWo, gbo = gy.new_zeros(Wo.shape), gy.new_zeros(P, A)
    return [gX, gWr, gWh, gbn, gWo, gbo, gV[:, :, :n].clone(), gs[:, :, :n].clone(), gh, gc, gr]


def _first_map(gy: Tensor, Wr: Tensor) -> tuple[int, int, int, int]:
    return gy.shape[0], Wr.shape[2], gy.shape[2], gy.shape[3]


@rnn_backward_op.register_fake
def _(
    Wr: Tensor, Wh: Tensor, Wo: Tensor, lengths: Tensor, V: Tensor, s: Tensor, h: Tensor, c: Tensor, r: Tensor,
    acts: Tensor, gates: Tensor, gone: Tensor, after: Tensor, first: Tensor, old: Tensor,
    gy: Tensor, gh: Tensor, gc: Tensor, gr: Tensor, gV: Tensor, gs: Tensor,
    core: int, memory: int, sequences: int, ragged: bool,
) -> list[Tensor]:  # fmt: skip
    P, H, n = gy.shape[0], Wh.shape[1], V.shape[2] - gy.shape[2]
    B, m = gy.shape[3], Wr.shape[1]
    like = [_first_map(gy, Wr), Wr.shape, Wh.shape, (P, H), Wo.shape, (P, Wo.shape[2]), (P, B, n, m), (P, B, n)]
    return [gy.new_empty(shape) for shape in [*like, gh.shape, gc.shape, gr.shape]]


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
        Wr: Tensor, Wh: Tensor, Wo: Tensor, lengths: Tensor, V: Tensor, s: Tensor, h: Tensor, c: Tensor,
        r: Tensor, acts: Tensor, gates: Tensor, gone: Tensor, after: Tensor, first: Tensor, old: Tensor,
        gy: Tensor, gh: Tensor, gc: Tensor, gr: Tensor, gV: Tensor, gs: Tensor,
        core: int, memory: int, sequences: int, ragged: bool,
    ) -> Any:  # fmt: skip
        return tuple(
            rnn_backward_op(
                Wr, Wh, Wo, lengths, V, s, h, c, r, acts, gates, gone, after, first, old,
                gy, gh, gc, gr, gV, gs, core, memory, sequences, ragged,
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
        X: Tensor, Wr: Tensor, Wh: Tensor, bn: Tensor, Wo: Tensor, bo: Tensor,
        V0: Tensor, s0: Tensor, h0: Tensor, c0: Tensor, r0: Tensor, lengths: Tensor,
        outputs: int, core: int, memory: int, sequences: int, ragged: bool,
    ) -> Any:  # fmt: skip
        return tuple(
            rnn_op(
                X, Wr, Wh, bn, Wo, bo, V0, s0, h0, c0, r0, lengths, outputs, core, memory, sequences, ragged
            )
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        _, Wr, Wh, _, Wo, *_ = inputs
        _, _, _, _, V, s, *steps = output
        ctx.sizes = inputs[13:]
        ctx.mark_non_differentiable(*steps)
        ctx.save_for_backward(Wr, Wh, Wo, inputs[11], V, s, *steps)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        made = RNNBackward.apply(*ctx.saved_tensors, *gradients[:6], *ctx.sizes)  # type: ignore[no-untyped-call]
        return (*made, *[None] * 6)


class Final(NamedTuple):
    """A fused run: y (B, T, K) and the final state; h has h and, for the LSTM, c."""

    y: Tensor
    h: tuple[Tensor, ...]
    V: Tensor
    s: Tensor
    r: Tensor


class Weights(NamedTuple):
    """The parameters of a cell. `first` is the map that sees [x; r]: a linear controller's heads."""

    first: Tensor  # (G, k + m)
    bias: Tensor  # (G,), all that is added to the first map's result
    hidden: Tensor  # (G, H)
    bias_new: Tensor  # (H,) the GRU's bias inside its reset gate
    heads: Tensor  # (A, H)
    bias_heads: Tensor  # (A,)


def run(
    x: Tensor, weights: Weights, h: tuple[Tensor, ...], V: Tensor, s: Tensor, r: Tensor,
    lengths: Tensor | None, outputs: int, core: str, memory: str,
) -> Final:  # fmt: skip
    """x (B, T, k) with B at least 1, and the state before it, batch first."""
    B, T, k = x.shape
    more = -B % LANES
    columns = pad(x, (0, 0, 0, 0, 0, more)).permute(2, 1, 0).flatten(1)  # (k, T B)
    X = (weights.first[:, :k] @ columns + weights.bias.unsqueeze(-1)).unflatten(1, (T, B + more))
    rows = [pad(state.mT, (0, more)) for state in (*h, r)]  # (H, B), (m, B)
    H = weights.hidden.shape[1]
    h0 = rows[0] if H else x.new_zeros(0, B + more)
    c0 = rows[1] if core == "lstm" else x.new_zeros(0, B + more)
    each = x.new_zeros(B, dtype=torch.int64) + T if lengths is None else lengths.to(torch.int64)
    given = (
        X, weights.first[:, k:].mT, weights.hidden.mT, weights.bias_new, weights.heads.mT, weights.bias_heads,
        pad(V, (0, 0, 0, 0, 0, more)), pad(s, (0, 0, 0, more)), h0, c0, rows[-1], pad(each, (0, more)),
    )  # fmt: skip
    sizes = (outputs, CORES[core], MEMORIES[memory], B, lengths is not None)
    made = RNN.apply(*(one.unsqueeze(0) for one in given), *sizes)  # type: ignore[no-untyped-call]
    y, hT, cT, rT, VT, sT = (one.squeeze(0) for one in made[:6])
    hidden = tuple(state.mT[:B] for state in (hT, cT) if state.shape[0])
    return Final(y.permute(2, 1, 0)[:B], hidden, VT[:B], sT[:B], rT.mT[:B])
