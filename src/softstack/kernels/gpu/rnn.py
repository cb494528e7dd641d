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


def in_line(z, by_step):
    """(P, B, T, width) -> (P, B T, width), in the order in which the tape lies."""
    return (z.transpose(1, 2) if by_step else z).flatten(1, 2)


def room(like, P, B, T, width, by_step, zeroed, dtype):
    """(P, B, T, width), as the tape lies."""
    new = like.new_zeros if zeroed else like.new_empty
    if by_step:
        return new(P, T, B, width, dtype=dtype).transpose(1, 2)
    return new(P, B, T, width, dtype=dtype)


def forward(options, sizes, inputs, outputs):
    core, memory, _, ragged, buffered, disturbed, *_ = options
    x, weights, start, before, disturbance, lengths = inputs
    y, o, final, buffer, tape, links = outputs
    W, b, _, _, Wo, bo = weights
    P, (B, T, k, m, H, K, G, N, n_in, A, _) = x.shape[0], sizes
    at, chains = places(options, sizes)
    if ragged:
        for tensor in (tape, o, *((final.V[:, :, N - T :],) if memory != NONE else ())):
            tensor.zero_()
    final.s.zero_()
    if buffered:
        buffer.strengths.zero_()
    alone = on_chip(core, m, H, x.dtype)
    parts = sections(tape, at, P, B, T, H, m, G, core == LSTM, not alone)
    xs, hs, _, rs = parts
    if buffered:
        items = tape.view(P, B, -1)[..., at[8] : at[8] + n_in * G].unflatten(-1, (n_in, G))
        items.copy_(times(x, W[:, None, :, :k].mT))  # (P, B, n_in, G)
    elif P == 1 and not alone and W.dtype == tape.dtype:
        torch.mm(in_line(x, True)[0], W[0, :, :k].mT, out=in_line(xs, True)[0])
    else:
        in_order = times(in_line(x, not alone), W[..., :k].mT)
        xs.copy_(in_order.view(P, B, T, G) if alone else in_order.view(P, T, B, G).transpose(1, 2))
    with torch.cuda.device_of(x):
        if alone:
            shape = padded(core, buffered, m, H, G)
            launch(
                gpu_whole.forward_kernel, (P * B,),
                (
                    *weights, start.h, start.c, start.r, start.s, *before, *disturbance, lengths, final.V,
                    final.s, buffer.strengths, o, final.h, final.c, final.r, buffer.i, tape, links,
                ),
                (B, T, k, m, H, A, G, N, n_in, at[-1], chains, *at[1:11]),
                CORE=core, MEMORY=memory, BUFFERED=buffered, DISTURBED=disturbed, **shape,
            )  # fmt: skip
        else:
            gpu_teams.forward(options, inputs, outputs, at, parts)
    if core == LINEAR:
        scores = times(rs[:, :, :T], W[:, None, -K:, k:].mT) + b[:, None, None, -K:] + xs[..., -K:]
    else:
        in_order = times(in_line(hs[:, :, 1:], not alone), Wo[:, -K:].mT) + bo[:, None, -K:]
        scores = in_order.view(P, B, T, K) if alone else in_order.view(P, T, B, K).transpose(1, 2)
    y.copy_(scores.masked_fill(dead(lengths, T), 0) if ragged else scores)


def backward(options, sizes, kept, gradients, to_x, from_strengths):
    core, memory, _, ragged, buffered, disturbed, *_ = options
    x, W, Wh, Wo, lengths, s0, strengths0, i0, keep, noise, V, s, strengths, tape, links = kept
    gy, go, state, buffer, gx, to_weights = gradients
    P, (B, T, k, m, H, K, G, N, n_in, A, _) = x.shape[0], sizes
    linear = core == LINEAR
    at, chains = places(options, sizes)
    alone = on_chip(core, m, H, x.dtype)
    by_step = not alone
    parts = sections(tape, at, P, B, T, H, m, G, core == LSTM, by_step)
    _, hs, _, rs = parts
    if ragged:
        gy = gy.masked_fill(dead(lengths, T), 0)
    heads = W[:, -K:, k:] if linear else Wo[:, -K:]
    sent = times(in_line(gy, by_step), heads).to(gy.dtype)  # what y sends back
    to_f = sent.view(P, T, B, -1).transpose(1, 2) if by_step else sent.view(P, B, T, -1)
    # the kernels write every number but those of padding, and of actions that no memory is told
    gout = room(gy, P, B, T, A, by_step, ragged or memory == NONE, gy.dtype)
    gout[..., -K:] = gy
    # in the dtype in which it is multiplied: a team's members read all of it from each other
    gpre = gout if linear else room(gy, P, B, T, 4 * H if core == GRU else G, by_step, ragged, W.dtype)
    gitems = gy.new_zeros(P, B, n_in if buffered else 0, G)
    if memory != NONE and from_strengths:
        settle(s, state.s, lengths, T)
    if buffered:
        buffer.strengths.masked_fill_(~(strengths > 0) & (lengths > 0).unsqueeze(-1), 0)
    with torch.cuda.device_of(x):
        if alone:
            launch(
                gpu_whole.backward_kernel, (P * B,),
                (
                    W, Wh, Wo, s0, strengths0, i0, keep, noise, lengths, V, tape, links, to_f, go, *state,
                    buffer.i, buffer.strengths, gout, gpre, gitems,
                ),
                (
                    B, T, k, m, H, A, G, N, n_in, at[-1], chains,
                    *(at[j] for j in (1, 2, 4, 5, 6, 7, 8, 9, 10)),
                ),
                CORE=core, MEMORY=memory, BUFFERED=buffered, DISTURBED=disturbed,
                **padded(core, buffered, m, H, G),
            )  # fmt: skip
        else:
            gpu_teams.backward(options, kept, state, to_f, gout, gpre, at)

    def line(z):
        return in_line(z, by_step).to(W.dtype)

    first = line(gpre[..., :G])
    if buffered:
        to_weights.W[..., :k] = torch.bmm(gitems.flatten(1, 2).mT, x.flatten(1, 2))
        if to_x:
            gx.copy_(times(gitems, W[:, None, :, :k]))
    else:
        to_weights.W[..., :k] = torch.bmm(first.mT, line(x))
        if to_x:
            in_order = torch.bmm(first, W[..., :k])
            gx.copy_(in_order.view(P, T, B, k).transpose(1, 2) if by_step else in_order.view(P, B, T, k))
    to_weights.W[..., k:] = torch.bmm(first.mT, line(rs[:, :, :T]))
    to_weights.b.copy_(gpre[..., :G].sum((1, 2), dtype=gy.dtype))
    if not linear:
        h_in = line(hs[:, :, :T] * keep.unsqueeze(-1) if disturbed else hs[:, :, :T])
        to_weights.Wh.copy_(torch.bmm(first.mT, h_in))
        if core == GRU:
            to_weights.Wh[:, 2 * H :] = torch.bmm(line(gpre[..., G:]).mT, h_in)
            to_weights.bn.copy_(gpre[..., G:].sum((1, 2), dtype=gy.dtype))
        to_weights.Wo.copy_(torch.bmm(line(gout).mT, line(hs[:, :, 1:])))
        to_weights.bo.copy_(gout.sum((1, 2)))
