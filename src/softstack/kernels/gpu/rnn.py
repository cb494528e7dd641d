"""StackRNN over a whole sequence on the GPU: the products that need no recurrence, and between them the loop.

Left to matrix products over all steps at once are the map of x before the loop, the outputs y after it, and
the gradients of the weights at the end. A buffered network reads its input buffer through the map of x too,
for both are linear: its buffer holds W x_j.

The loop is one kernel: a program for each sequence where one can hold the model's weights (`gpu/whole.py`),
and elsewhere teams of programs (`gpu/teams.py`). Both keep what the backward pass needs on a tape:

    x's projection (T, G)   h, c (T + 1, H)   r (T + 1, m)   u, d, i, o, v (T, 2 or 4 + m)   gates (T, 4 H)
    the memory's level (N) and top (T + 1)   the input buffer's items (n_in, G), level (n_in) and top (T + 1)
"""

import torch

from softstack.kernels.gpu import teams as gpu_teams
from softstack.kernels.gpu import whole as gpu_whole
from softstack.kernels.gpu.launching import launch, power_of_2
from softstack.kernels.gpu.layout import on_chip, places, weights_held
from softstack.kernels.gpu.scan import settle
from softstack.kernels.kinds import GRU, LINEAR, LSTM, NONE, RNN


def padded(core, buffered, m, H, G):
    """Sizes to powers of two, and the warps that hold the weights between them."""
    two = power_of_2
    HP, MP, gates = two(max(1, H)), two(m), 1 if core <= RNN else 4
    FP = MP if core == LINEAR else HP
    warps = min(8, max(1, two(weights_held(core, m, H)) // 4096))
    return {
        "HP": HP, "MP": MP, "FP": FP, "GP": two(G) if buffered else 1, "GATES": gates, "num_warps": warps,
    }  # fmt: skip


def sections(tape, at, P, B, T, H, m, G, lstm, by_step):
    """The tape's first parts, (P, B, steps, ...): x's projection, h, c and r. They lie sequence by sequence,
    or step by step."""
    shapes = (T, G), (T + 1, H), (T + 1, H if lstm else 0), (T + 1, m)
    if by_step:
        tape = tape.view(P, -1)
        return [
            tape[:, B * start : B * (start + steps * width)].view(P, steps, B, width).transpose(1, 2)
            for start, (steps, width) in zip(at, shapes, strict=False)
        ]
    tape = tape.view(P, B, -1)
    return [
        tape[..., start : start + steps * width].unflatten(-1, (steps, width))
        for start, (steps, width) in zip(at, shapes, strict=False)
    ]


def dead(lengths, T):
    """(P, B, T, 1): the steps that are padding."""
    return (torch.arange(T, device=lengths.device) >= lengths.unsqueeze(-1)).unsqueeze(-1)


def times(x, weights):
    """A product in the dtype of the weights."""
    return torch.matmul(x.to(weights.dtype), weights)


def forward(options, sizes, inputs, outputs):
    core, memory, _, ragged, buffered, disturbed = options
    x, weights, start, before, disturbance, lengths = inputs
    y, o, final, buffer, tape, links = outputs
    W, b, _, _, Wo, bo = weights
    P, (B, T, k, m, H, K, G, N, n_in) = x.shape[0], sizes
    A = (4 if buffered else 2) + m + K
    at, chains = places(options, sizes)
    if ragged:
        for tensor in (tape, o, *((final.V[:, :, N - T :],) if memory != NONE else ())):
            tensor.zero_()
    final.s.zero_()
    buffer.strengths.zero_()
    alone = on_chip(core, m, H, x.dtype)
    parts = sections(tape, at, P, B, T, H, m, G, core == LSTM, not alone)
    xs, hs, _, rs = parts
    items = tape.view(P, B, -1)[..., at[8] : at[8] + n_in * G].unflatten(-1, (n_in, G)) if buffered else xs
    items.copy_(times(x, W[:, None, :, :k].mT))  # (P, B, n_in, G)
    with torch.cuda.device_of(x):
        if alone:
            launch(
                gpu_whole.forward_kernel, (P * B,), *weights, start.h, start.c, start.r, start.s, *before,
                *disturbance, lengths, final.V, final.s, buffer.strengths, o, final.h, final.c, final.r,
                buffer.i, tape, links, B, T, k, m, H, A, G, N, n_in, at[-1], chains, *at[1:11],
                CORE=core, MEMORY=memory, BUFFERED=buffered, DISTURBED=disturbed,
                **padded(core, buffered, m, H, G),
            )  # fmt: skip
        else:
            gpu_teams.forward(options, inputs, outputs, at, parts)
    if core == LINEAR:
        scores = times(rs[:, :, :T], W[:, None, -K:, k:].mT) + b[:, None, None, -K:] + xs[..., -K:]
    else:
        scores = times(hs[:, :, 1:], Wo[:, None, -K:].mT) + bo[:, None, None, -K:]
    y.copy_(scores.masked_fill(dead(lengths, T), 0) if ragged else scores)


def backward(options, sizes, kept, gradients, to_x):
    core, memory, _, ragged, buffered, disturbed = options
    x, W, Wh, Wo, lengths, s0, strengths0, i0, keep, noise, V, s, strengths, tape, links = kept
    gy, go, state, buffer, gx, to_weights = gradients
    P, (B, T, k, m, H, K, G, N, n_in) = x.shape[0], sizes
    A, linear = (4 if buffered else 2) + m + K, core == LINEAR
    at, chains = places(options, sizes)
    alone = on_chip(core, m, H, x.dtype)
    parts = sections(tape, at, P, B, T, H, m, G, core == LSTM, not alone)
    _, hs, _, rs = parts
    if ragged:
        gy = gy.masked_fill(dead(lengths, T), 0)
    heads = W[:, None, -K:, k:] if linear else Wo[:, None, -K:]

    def room(width):
        """(P, B, T, width), as the tape lies."""
        if alone:
            return gy.new_zeros(P, B, T, width)
        return gy.new_zeros(P, T, B, width).transpose(1, 2)

    to_f = room(heads.shape[-1]).copy_(times(gy, heads))  # what y sends back
    gout = room(A)
    gout[..., -K:] = gy
    gpre = gout if linear else room(4 * H if core == GRU else G)
    gitems = gy.new_zeros(P, B, n_in if buffered else 0, G)
    if memory != NONE:
        settle(s, state.s, lengths, T)
    buffer.strengths.masked_fill_(~(strengths > 0) & (lengths > 0).unsqueeze(-1), 0)
    with torch.cuda.device_of(x):
        if alone:
            launch(
                gpu_whole.backward_kernel, (P * B,), W, Wh, Wo, s0, strengths0, i0, keep, noise, lengths, V,
                tape, links, to_f, go, *state, buffer.i, buffer.strengths, gout, gpre, gitems,
                B, T, k, m, H, A, G, N, n_in, at[-1], chains,
                *(at[j] for j in (1, 2, 4, 5, 6, 7, 8, 9, 10)),
                CORE=core, MEMORY=memory, BUFFERED=buffered, DISTURBED=disturbed,
                **padded(core, buffered, m, H, G),
            )  # fmt: skip
        else:
            gpu_teams.backward(options, kept, state, to_f, gout, gpre, at)

    def outer(left, right):
        """The sum over all steps of all sequences."""
        return times(left.flatten(1, 2).mT, right.flatten(1, 2).to(W.dtype))

    first = gpre[..., :G]
    to_items = gitems if buffered else first
    to_weights.W[..., :k], to_weights.W[..., k:] = outer(to_items, x), outer(first, rs[:, :, :T])
    to_weights.b.copy_(first.sum((1, 2)))
    if to_x:
        gx.copy_(times(to_items, W[:, None, :, :k]))
    if not linear:
        h_in = hs[:, :, :T] * keep.unsqueeze(-1) if disturbed else hs[:, :, :T]
        to_weights.Wh.copy_(outer(first, h_in))
        if core == GRU:
            to_weights.Wh[:, 2 * H :] = outer(gpre[..., G:], h_in)
            to_weights.bn.copy_(gpre[..., G:].sum((1, 2)))
        to_weights.Wo.copy_(outer(gout, hs[:, :, 1:]))
        to_weights.bo.copy_(gout.sum((1, 2)))
