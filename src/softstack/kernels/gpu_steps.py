"""A large StackRNN on the GPU, step by step: matrix products, and between them a kernel for the controller's
gates and one for the memory. For weights that a chip cannot hold. Each of the four takes Python longer to
launch than the GPU to run: capture the call in a CUDA graph (torch.cuda.make_graphed_callables) where that
matters.

`z` (P, B, m + H) is what the controller sees of the step before, [r; h], and `pre` (P, B, R) what it makes of
it, gate by gate: R = H (RNN), 4 H (LSTM, and GRU: reset, z, n's part from r, n's part from h), A (linear).
The tape is that of `gpu_rnn.py`.
"""

import torch
import triton
import triton.language as tl

from softstack.kernels.gpu_memory import finish, pop, push, read, row, start, undo, unlink
from softstack.kernels.gpu_whole import GRU, LINEAR, LSTM, NONE, RNN, STACK, tanh


@triton.jit
def begin_kernel(s0, links, level, n, N, size, chains, LIFO: tl.constexpr, top):
    q = tl.program_id(0).to(tl.int64)
    head, strength = start(s0 + q * n, links + q * chains, level + q * size, n, LIFO)
    tl.store(links + q * chains + N, head)
    tl.store(top + q * size, strength)


@triton.jit
def finish_kernel(s, links, level, top, N, T, lengths, size, chains):
    q = tl.program_id(0).to(tl.int64)
    end = tl.minimum(T, tl.load(lengths + q)).to(tl.int32)
    head, strength = tl.load(links + q * chains + N + end), tl.load(top + q * size + end)
    finish(s + q * N, links + q * chains, level + q * size, head, strength)


@triton.jit
def gates_kernel(
    pre, z, lengths, xs, hs, cs, gates, t, m, H, G, R, size, CORE: tl.constexpr, UNITS: tl.constexpr
):  # fmt: skip
    """h_t, and c_t, from `pre` and x's projection; h_{t-1} where the sequence has ended."""
    q = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    exists = unit < H
    pre, given, made = (
        pre + q * R + unit,
        row(xs + q * size, t, G, unit),
        row(gates + q * size, t, 4 * H, unit),
    )
    h, c = row(hs + q * size, t, H, unit), row(cs + q * size, t, H, unit)
    hidden = tl.load(h, mask=exists, other=0)
    live = t < tl.load(lengths + q)
    first = tl.load(pre, mask=exists, other=0) + tl.load(given, mask=exists, other=0)
    if CORE == RNN:
        hidden = tl.where(live, tanh(first), hidden)
    else:
        first = tl.sigmoid(first)
        second = tl.sigmoid(tl.load(pre + H, mask=exists, other=0) + tl.load(given + H, mask=exists, other=0))
        third = tl.load(pre + 2 * H, mask=exists, other=0) + tl.load(given + 2 * H, mask=exists, other=0)
        fourth = tl.load(pre + 3 * H, mask=exists, other=0)
        if CORE == LSTM:
            third = tanh(third)
            fourth = tl.sigmoid(fourth + tl.load(given + 3 * H, mask=exists, other=0))
            was = tl.load(c, mask=exists, other=0)
            cell = tl.where(live, second * was + first * third, was)
            tl.store(c + H, cell, mask=exists)
            hidden = tl.where(live, fourth * tanh(cell), hidden)
        else:
            third = tanh(third + first * fourth)
            hidden = tl.where(live, third + second * (hidden - third), hidden)
        tl.store(made, first, mask=exists)
        tl.store(made + H, second, mask=exists)
        tl.store(made + 2 * H, third, mask=exists)
        tl.store(made + 3 * H, fourth, mask=exists)
    tl.store(h + H, hidden, mask=exists)
    tl.store(z + q * (m + H) + m + unit, hidden, mask=exists)


@triton.jit
def memory_kernel(
    raw, z, lengths, V, rs, acts, links, level, top, t, m, Z, R, N, n, size, chains,
    MEMORY: tl.constexpr, MP: tl.constexpr,
):  # fmt: skip
    """Squash u, d and v, then pop, push and read."""
    q = tl.program_id(0).to(tl.int64)
    column, inside = tl.arange(0, MP), tl.arange(0, MP) < m
    raw, V, act = raw + q * R, V + q * N * m, row(acts + q * size, t, 2 + m, 0)
    links, level, top, r = (
        links + q * chains,
        level + q * size,
        top + q * size,
        row(rs + q * size, t, m, column),
    )
    first = links + N
    if t < tl.load(lengths + q):
        u, d = tl.sigmoid(tl.load(raw)), tl.sigmoid(tl.load(raw + 1))
        v = tl.sigmoid(tl.load(raw + 2 + column, mask=inside, other=0))
        tl.store(act, u)
        tl.store(act + 1, d)
        tl.store(act + 2 + column, v, mask=inside)
        found = tl.zeros_like(v)
        if MEMORY != NONE:
            tl.store(row(V, n + t, m, column), v, mask=inside)
            head, strength = pop(links, level, tl.load(first + t), tl.load(top + t), u)
            head, strength = push(links, level, head, strength, n + t, d, MEMORY == STACK)
            tl.store(first + t + 1, head)
            tl.store(top + t + 1, strength)
            found = read(V, links, level, head, strength, m, column)
    else:
        found = tl.load(r, mask=inside, other=0)
    tl.store(r + m, found, mask=inside)
    tl.store(z + q * Z + column, found, mask=inside)


@triton.jit
def unmemory_kernel(
    gz, gout, lengths, s0, V, gV, gs, acts, links, level, top, t, T, m, Z, A, N, n, size, chains,
    MEMORY: tl.constexpr, MP: tl.constexpr,
):  # fmt: skip
    """The reverse: the gradients of u, d and v before they were squashed, from that of r."""
    q = tl.program_id(0).to(tl.int64)
    if t < tl.load(lengths + q):
        column, inside = tl.arange(0, MP), tl.arange(0, MP) < m
        V, gV, gs, links = V + q * N * m, gV + q * N * m, gs + q * N, links + q * chains
        level, top, act, out = (
            level + q * size,
            top + q * size,
            row(acts + q * size, t, 2 + m, 0),
            row(gout, q * T + t, A, 0),
        )
        u, d, v = tl.load(act), tl.load(act + 1), tl.load(act + 2 + column, mask=inside, other=0)
        gr = tl.load(gz + q * Z + column, mask=inside, other=0)
        gu, gd, popped = undo(
            V, links, level, links + N, top, n, t, u, d, gr, gs, gV, m, column, MEMORY == STACK
        )
        if t == 0:
            unlink(s0 + q * n, gs, n, gu, popped, MEMORY == STACK)
        tl.store(out, gu * u * (1 - u))
        tl.store(out + 1, gd * d * (1 - d))
        gv = tl.load(row(gV, n + t, m, column), mask=inside, other=0)
        tl.store(out + 2 + column, gv * v * (1 - v), mask=inside)


@triton.jit
def ungates_kernel(
    gf, gz, gpre, gc, lengths, hs, cs, gates, t, T, m, H, R, size, CORE: tl.constexpr, UNITS: tl.constexpr
):  # fmt: skip
    """The reverse of `gates_kernel`: that of `pre`, from that of h_t, gf. What does not go through `pre` is
    left in gz: nothing for r, and for h what the GRU kept; everything where the sequence has ended."""
    q = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    exists = unit < H
    live = t < tl.load(lengths + q)
    h, c = row(hs + q * size, t, H, unit), row(cs + q * size, t, H, unit)
    made, out = row(gates + q * size, t, 4 * H, unit), row(gpre, q * T + t, R, unit)
    grad = tl.load(gf + q * H + unit, mask=exists, other=0)
    kept = tl.where(live, tl.zeros_like(grad), grad)
    if CORE == RNN:
        hidden = tl.load(h + H, mask=exists, other=0)
        tl.store(out, tl.where(live, grad * (1 - hidden * hidden), 0), mask=exists)
    else:
        first, second = tl.load(made, mask=exists, other=0), tl.load(made + H, mask=exists, other=0)
        third, fourth = (
            tl.load(made + 2 * H, mask=exists, other=0),
            tl.load(made + 3 * H, mask=exists, other=0),
        )
        if CORE == LSTM:
            squashed = tanh(tl.load(c + H, mask=exists, other=0))
            to_c = tl.load(gc + q * H + unit, mask=exists, other=0)
            through = to_c + grad * fourth * (1 - squashed * squashed)
            tl.store(gc + q * H + unit, tl.where(live, through * second, to_c), mask=exists)
            g1 = through * third * first * (1 - first)
            g2 = through * tl.load(c, mask=exists, other=0) * second * (1 - second)
            g3 = through * first * (1 - third * third)
            g4 = grad * squashed * fourth * (1 - fourth)
        else:
            g3 = grad * (1 - second) * (1 - third * third)
            g1 = g3 * fourth * first * (1 - first)
            g2 = grad * (tl.load(h, mask=exists, other=0) - third) * second * (1 - second)
            g4 = g3 * first
            kept = tl.where(live, grad * second, grad)
        tl.store(out, tl.where(live, g1, 0), mask=exists)
        tl.store(out + H, tl.where(live, g2, 0), mask=exists)
        tl.store(out + 2 * H, tl.where(live, g3, 0), mask=exists)
        tl.store(out + 3 * H, tl.where(live, g4, 0), mask=exists)
    tl.store(gz + q * (m + H) + m + unit, kept, mask=exists)
    if (tl.program_id(1) == 0) & live:
        for begin in range(0, m, UNITS):
            column = begin + tl.arange(0, UNITS)
            tl.store(gz + q * (m + H) + column, tl.zeros_like(grad), mask=column < m)


def joined(core, W, Wh, k, H):
    """(P, R, m + H): the map from [r; h] to `pre`."""
    from_r = W[..., k:]
    if core == LINEAR.value:
        return from_r
    if core != GRU.value:
        return torch.cat((from_r, Wh), 2)
    top = torch.cat((from_r[:, : 2 * H], Wh[:, : 2 * H]), 2)
    n_r, n_h = from_r[:, 2 * H :], Wh[:, 2 * H :]
    new = torch.cat((n_r, torch.zeros_like(n_h)), 2), torch.cat((torch.zeros_like(n_r), n_h), 2)
    return torch.cat((top, *new), 1)


def blocks(P, B, H):
    """The grid of the gates' kernels."""
    units = min(256, triton.next_power_of_2(max(1, H)))
    return (P * B, triton.cdiv(max(1, H), units)), {"UNITS": units, "num_warps": max(1, units // 64)}


def forward(
    core, memory, W, b, Wh, bn, Wo, bo, h0, c0, r0, s0, lengths, V, s, h, c, r, tape, links, at, parts, k
):
    """All steps; x's projection is on the tape. `parts` are the tape's sections by step."""
    xs, hs, cs, rs, acts, gates, level, top = parts
    (P, B, T, G), m, H, N = xs.shape, r0.shape[2], h0.shape[2], V.shape[2]
    n, size, chains, linear, Z = N - T, at[-1], links.shape[1] // B, core == LINEAR.value, m + h0.shape[2]
    grid, shape = blocks(P, B, H)
    MP, lifo = triton.next_power_of_2(m), memory == STACK.value
    rs[:, :, 0] = r0
    if not linear:
        hs[:, :, 0] = h0
    if core == LSTM.value:
        cs[:, :, 0] = c0
    if memory != NONE.value:
        begin_kernel[(P * B,)](s0, links, level, n, N, size, chains, lifo, top)
    z, matrix = torch.cat((r0, h0), 2), joined(core, W, Wh, k, H).mT
    bias = (torch.cat((b, bn), 1) if core == GRU.value else b).unsqueeze(1)
    strengths, base = Wo[:, : 2 + m].mT, bo[:, None, : 2 + m]
    for t in range(T):
        pre = torch.baddbmm(bias, z, matrix)  # (P, B, R)
        if linear:
            raw = pre + xs[:, :, t]
        else:
            gates_kernel[grid](
                pre, z, lengths, xs, hs, cs, gates, t, m, H, G, pre.shape[2], size, CORE=core, **shape
            )
            raw = torch.baddbmm(base, z[..., m:], strengths)
        memory_kernel[(P * B,)](
            raw, z, lengths, V, rs, acts, links, level, top, t, m, Z, raw.shape[2], N, n, size, chains,
            MEMORY=memory, MP=MP, num_warps=max(1, min(8, MP // 128)),
        )  # fmt: skip
    r.copy_(rs[:, :, T])
    if not linear:
        h.copy_(hs[:, :, T])
    if core == LSTM.value:
        c.copy_(cs[:, :, T])
    if memory != NONE.value:
        finish_kernel[(P * B,)](s, links, level, top, N, T, lengths, size, chains)


def backward(
    core, memory, W, Wh, Wo, s0, lengths, V, links, to_f, gh, gc, gr, gV, gs, gout, gpre, at, parts, k
):
    """All steps, from the last: gout and gpre are filled, and the gradients of the final state become those
    of the first."""
    _, hs, cs, _, acts, gates, level, top = parts
    (P, B, T, A), m, H, N, R = gout.shape, gr.shape[2], gh.shape[2], V.shape[2], gpre.shape[3]
    n, size, chains, linear, Z = N - T, at[-1], links.shape[1] // B, core == LINEAR.value, m + gh.shape[2]
    grid, shape = blocks(P, B, H)
    MP = triton.next_power_of_2(m)
    gz, matrix, strengths = torch.cat((gr, gh), 2), joined(core, W, Wh, k, H), Wo[:, : 2 + m]
    for t in reversed(range(T)):
        if memory != NONE.value:
            unmemory_kernel[(P * B,)](
                gz, gout, lengths, s0, V, gV, gs, acts, links, level, top, t, T, m, Z, A, N, n, size, chains,
                MEMORY=memory, MP=MP, num_warps=max(1, min(8, MP // 128)),
            )  # fmt: skip
        if linear:  # what y and the strengths and v send back to r; where the sequence has ended, gz stays
            live = (t < lengths).unsqueeze(-1)
            gz = torch.where(live, torch.bmm(gpre[:, :, t], matrix), gz)
        else:
            gf = torch.baddbmm(gz[..., m:] + to_f[:, :, t], gout[:, :, t, : 2 + m], strengths)
            ungates_kernel[grid](
                gf, gz, gpre, gc, lengths, hs, cs, gates, t, T, m, H, R, size, CORE=core, **shape
            )
            gz = torch.baddbmm(gz, gpre[:, :, t], matrix)
    gr.copy_(gz[..., :m])
    gh.copy_(gz[..., m:])
