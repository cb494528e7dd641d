"""A large StackRNN on the GPU, step by step, for weights that a chip cannot hold: one matrix product for all
sequences, then one kernel, a program a sequence, that makes everything else of it.

`z` (P, B, m + H) is what the controller sees of the step before, [r; h], and `pre` (P, B, R) what it makes of
it, gate by gate: R = H (RNN), 4 H (LSTM, and GRU: reset, z, n's part from r, n's part from h), A (linear).
The tape is that of `gpu/rnn.py`; `at_` is where its parts begin.

For small batches Python takes longer to launch these than the GPU to run them: capture the call in a CUDA
graph (torch.cuda.make_graphed_callables) where that matters.
"""

import torch
import triton
import triton.language as tl

from softstack.kernels.gpu.memory import (
    column_faults,
    faults,
    finish,
    pop,
    push,
    read,
    row,
    start,
    undo,
    unlink,
)
from softstack.kernels.gpu.whole import GRU, LINEAR, LSTM, NONE, RNN, STACK, tanh

BLOCK = 32  # columns, or rows, of the heads' matrix that are loaded at once


@triton.jit
def begin_kernel(s0, links, tape, n, N, size, chains, at_level, at_top, LIFO: tl.constexpr):
    """The memory before the first step."""
    q = tl.program_id(0).to(tl.int64)
    links, tape = links + q * chains, tape + q * size
    head, strength = start(s0 + q * n, links, tape + at_level, n, LIFO)
    tl.store(links + N, head)
    tl.store(tape + at_top, strength)


@triton.jit
def finish_kernel(s, links, tape, lengths, N, T, m, size, chains, at_r, at_level, at_top):
    """What the memory holds after the last."""
    q = tl.program_id(0).to(tl.int64)
    links, tape = links + q * chains, tape + q * size
    end = tl.minimum(T, tl.load(lengths + q)).to(tl.int32)
    fault = faults(row(tape + at_r, end, m, 0), m)
    finish(
        s + q * N, links, tape + at_level, tl.load(links + N + end), tl.load(tape + at_top + end), fault, N
    )


@triton.jit
def part(pre, from_x, exists):
    return tl.load(pre, mask=exists, other=0) + tl.load(from_x, mask=exists, other=0)


@triton.jit(do_not_specialize=["t"])
def step_kernel(
    pre, z, Wo, bo, keep, noise, lengths, s0, V, tape, links, t, B, T, m, H, A, G, R, N, n, size, chains,
    at_h, at_c, at_r, at_acts, at_gates, at_level, at_top,
    CORE: tl.constexpr, MEMORY: tl.constexpr, DISTURBED: tl.constexpr,
    HP: tl.constexpr, MP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    q = tl.program_id(0).to(tl.int64)
    column, inside = tl.arange(0, MP), tl.arange(0, MP) < m
    unit, exists = tl.arange(0, HP), tl.arange(0, HP) < H
    V, tape, links, pre, z = V + q * N * m, tape + q * size, links + q * chains, pre + q * R, z + q * (m + H)
    Wo, bo = Wo + q // B * A * H, bo + q // B * A
    r, h, c = row(tape + at_r, t, m, column), row(tape + at_h, t, H, unit), row(tape + at_c, t, H, unit)
    if t < tl.load(lengths + q):
        from_x = row(tape, t, G, 0)
        if CORE == LINEAR:
            u, d = tl.load(pre) + tl.load(from_x), tl.load(pre + 1) + tl.load(from_x + 1)
            v = part(pre + 2 + column, from_x + 2 + column, inside)
        else:
            first = part(pre + unit, from_x + unit, exists)
            if CORE == RNN:
                hidden = tanh(first)
            else:
                first = tl.sigmoid(first)
                second = tl.sigmoid(part(pre + H + unit, from_x + H + unit, exists))
                third = part(pre + 2 * H + unit, from_x + 2 * H + unit, exists)
                if CORE == LSTM:
                    third = tanh(third)
                    fourth = tl.sigmoid(part(pre + 3 * H + unit, from_x + 3 * H + unit, exists))
                    cell = tl.load(c, mask=exists, other=0)
                    if DISTURBED:
                        cell *= tl.load(keep + q * T + t)
                    cell = second * cell + first * third
                    tl.store(c + H, cell, mask=exists)
                    hidden = fourth * tanh(cell)
                else:
                    fourth = tl.load(pre + 3 * H + unit, mask=exists, other=0)
                    third = tanh(third + first * fourth)
                    hidden = third + second * (tl.load(z + m + unit, mask=exists, other=0) - third)
                gate = row(tape + at_gates, t, 4 * H, unit)
                tl.store(gate, first, mask=exists)
                tl.store(gate + H, second, mask=exists)
                tl.store(gate + 2 * H, third, mask=exists)
                tl.store(gate + 3 * H, fourth, mask=exists)
            if DISTURBED:
                hidden += tl.load(row(noise, q * T + t, H, unit), mask=exists, other=0)
            tl.store(h + H, hidden, mask=exists)
            tl.store(z + m + unit, hidden, mask=exists)
            tl.debug_barrier()
            u = tl.load(bo) + tl.sum(tl.load(Wo + unit, mask=exists, other=0) * hidden)
            d = tl.load(bo + 1) + tl.sum(tl.load(Wo + H + unit, mask=exists, other=0) * hidden)
            v = tl.load(bo + 2 + column, mask=inside, other=0)
            for begin in range(0, H, BLOCK):
                f = begin + tl.arange(0, BLOCK)
                weights = tl.load(
                    row(Wo, 2 + column[:, None], H, f[None, :]),
                    mask=inside[:, None] & (f < H)[None, :], other=0,
                )  # fmt: skip
                v += tl.sum(weights * tl.load(z + m + f, mask=f < H, other=0)[None, :], 1)
        u, d, v = tl.sigmoid(u), tl.sigmoid(d), tl.sigmoid(v)
        act = row(tape + at_acts, t, 2 + m, 0)
        tl.store(act, u)
        tl.store(act + 1, d)
        tl.store(act + 2 + column, v, mask=inside)
        r_new = tl.zeros_like(v)
        if MEMORY != NONE:
            level, first_at, top = tape + at_level, links + N + t, tape + at_top + t
            tl.store(row(V, n + t, m, column), v, mask=inside)
            head, strength = pop(links, level, tl.load(first_at), tl.load(top), u)
            head, strength = push(links, level, head, strength, n + t, d, MEMORY == STACK)
            tl.store(first_at + 1, head)
            tl.store(top + 1, strength)
            fault = v - v + (d - d)
            if n + t > 0:
                fault += u - u
            if t == 0:
                fault += column_faults(V, n, m, column) + faults(s0 + q * n, n)
            r_new = read(V, links, level, head, strength, fault, m, column)
        tl.store(r + m, r_new, mask=inside)
        tl.store(z + column, r_new, mask=inside)
    else:  # the sequence has ended: everything stays
        tl.store(r + m, tl.load(r, mask=inside, other=0), mask=inside)
        if CORE != LINEAR:
            tl.store(h + H, tl.load(h, mask=exists, other=0), mask=exists)
        if CORE == LSTM:
            tl.store(c + H, tl.load(c, mask=exists, other=0), mask=exists)


@triton.jit(do_not_specialize=["t"])
def unstep_kernel(
    gz, to_f, gout, gpre, gc, Wo, keep, noise, lengths, s0, V, gV, gs, tape, links, t, B, T, m, H, A, R, N, n,
    size, chains, at_h, at_c, at_acts, at_gates, at_level, at_top,
    CORE: tl.constexpr, MEMORY: tl.constexpr, DISTURBED: tl.constexpr,
    HP: tl.constexpr, MP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The reverse: from the gradients of r_t and h_t, gz, that of `pre`. What does not go through `pre` is
    left in gz: nothing for r, and for h what the GRU kept; everything where the sequence has ended."""
    q = tl.program_id(0).to(tl.int64)
    if t < tl.load(lengths + q):
        column, inside = tl.arange(0, MP), tl.arange(0, MP) < m
        unit, exists = tl.arange(0, HP), tl.arange(0, HP) < H
        V, gV, gs, tape, links = (
            V + q * N * m,
            gV + q * N * m,
            gs + q * N,
            tape + q * size,
            links + q * chains,
        )
        Wo, gz, step = Wo + q // B * A * H, gz + q * (m + H), q * T + t
        act, out = row(tape + at_acts, t, 2 + m, 0), row(gout, step, A, 0)
        if MEMORY != NONE:
            u, d, v = tl.load(act), tl.load(act + 1), tl.load(act + 2 + column, mask=inside, other=0)
            gr = tl.load(gz + column, mask=inside, other=0)
            gu, gd, popped = undo(
                V, links, tape + at_level, links + N, tape + at_top, n, t, u, d, gr, gs, gV, m, column,
                MEMORY == STACK,
            )  # fmt: skip
            if t == 0:
                unlink(s0 + q * n, gs, n, gu, popped, MEMORY == STACK)
            gv = tl.load(row(gV, n + t, m, column), mask=inside, other=0) * v * (1 - v)
            gu, gd = gu * u * (1 - u), gd * d * (1 - d)
            tl.store(out, gu)
            tl.store(out + 1, gd)
            tl.store(out + 2 + column, gv, mask=inside)
            tl.debug_barrier()
        if CORE != LINEAR:
            grad = tl.load(gz + m + unit, mask=exists, other=0)
            grad += tl.load(row(to_f, step, H, unit), mask=exists, other=0)
            if MEMORY != NONE:
                grad += gu * tl.load(Wo + unit, mask=exists, other=0)
                grad += gd * tl.load(Wo + H + unit, mask=exists, other=0)
                for begin in range(0, m, BLOCK):
                    j = begin + tl.arange(0, BLOCK)
                    weights = tl.load(
                        row(Wo, 2 + j[:, None], H, unit[None, :]),
                        mask=(j < m)[:, None] & exists[None, :], other=0,
                    )  # fmt: skip
                    grad += tl.sum(weights * tl.load(out + 2 + j, mask=j < m, other=0)[:, None], 0)
            h, c = row(tape + at_h, t, H, unit), row(tape + at_c, t, H, unit)
            gate, to_pre = row(tape + at_gates, t, 4 * H, unit), row(gpre, step, R, unit)
            kept = tl.zeros_like(grad)
            keep_t = tl.load(keep + step) if DISTURBED else 1.0
            if CORE == RNN:
                hidden = tl.load(h + H, mask=exists, other=0)
                if DISTURBED:
                    hidden -= tl.load(row(noise, step, H, unit), mask=exists, other=0)
                tl.store(to_pre, grad * (1 - hidden * hidden), mask=exists)
            else:
                first, second = tl.load(gate, mask=exists, other=0), tl.load(gate + H, mask=exists, other=0)
                third, fourth = (
                    tl.load(gate + 2 * H, mask=exists, other=0), tl.load(gate + 3 * H, mask=exists, other=0),
                )  # fmt: skip
                if CORE == LSTM:
                    squashed = tanh(tl.load(c + H, mask=exists, other=0))
                    c_grad = row(gc, q, H, unit)
                    through = tl.load(c_grad, mask=exists, other=0)
                    through += grad * fourth * (1 - squashed * squashed)
                    tl.store(c_grad, through * second * keep_t, mask=exists)
                    g1 = through * third * first * (1 - first)
                    g2 = through * tl.load(c, mask=exists, other=0) * keep_t * second * (1 - second)
                    g3 = through * first * (1 - third * third)
                    g4 = grad * squashed * fourth * (1 - fourth)
                else:
                    g3 = grad * (1 - second) * (1 - third * third)
                    g1 = g3 * fourth * first * (1 - first)
                    old = tl.load(h, mask=exists, other=0) * keep_t
                    g2 = grad * (old - third) * second * (1 - second)
                    g4 = g3 * first
                    kept = grad * second
                tl.store(to_pre, g1, mask=exists)
                tl.store(to_pre + H, g2, mask=exists)
                tl.store(to_pre + 2 * H, g3, mask=exists)
                tl.store(to_pre + 3 * H, g4, mask=exists)
            tl.store(gz + m + unit, kept, mask=exists)
        tl.store(gz + column, tl.zeros([MP], tape.dtype.element_ty), mask=inside)


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


def sizes(core, memory, disturbed, m, H):
    two = triton.next_power_of_2
    HP, MP = two(max(1, H)), two(m)
    warps = min(16, max(1, max(HP, MP) * BLOCK // 1024))
    return {
        "CORE": core, "MEMORY": memory, "DISTURBED": disturbed, "HP": HP, "MP": MP, "BLOCK": BLOCK,
        "num_warps": warps,
    }  # fmt: skip


def launcher(kernel, programs, options):
    """Calls a kernel again and again, with arguments of the same kinds. Triton looks up what it compiled for
    them only once: that takes longer than a step does."""
    grid = (programs, 1, 1)
    constants = [value for name, value in options.items() if name != "num_warps"]
    ready = None

    def launch(*arguments):
        nonlocal ready
        if ready:
            ready(*arguments, *constants)
        else:
            compiled = kernel[grid](*arguments, **options)
            ready = compiled and compiled[grid]  # none where it is interpreted

    return launch


def forward(options, inputs, outputs, at, parts):
    """All steps; x's projection is on the tape. `parts` are the tape's, by step."""
    core, memory, T, _, _, disturbed = options
    x, (W, b, Wh, bn, Wo, bo), start, _, (keep, noise), lengths = inputs
    _, _, final, _, tape, links = outputs
    xs, hs, cs, rs = parts[:4]
    (P, B, _, G), m, H, N, k = xs.shape, start.r.shape[2], start.h.shape[2], final.V.shape[2], x.shape[3]
    n, size, chains = N - T, at[-1], links.shape[1] // B
    rs[:, :, 0] = start.r
    if core != LINEAR.value:
        hs[:, :, 0] = start.h
    if core == LSTM.value:
        cs[:, :, 0] = start.c
    grid = (P * B,)
    if memory != NONE.value:
        begin_kernel[grid](start.s, links, tape, n, N, size, chains, at[6], at[7], LIFO=memory == STACK.value)
    z, matrix = torch.cat((start.r, start.h), 2), joined(core, W, Wh, k, H).mT
    bias = (torch.cat((b, bn), 1) if core == GRU.value else b).unsqueeze(1)
    step = launcher(step_kernel, P * B, sizes(core, memory, disturbed, m, H))
    pre, reset = z.new_empty(P, B, matrix.shape[2]), disturbed and core != LINEAR.value
    for t in range(T):
        if reset:
            z[..., m:] *= keep[:, :, t, None]
        torch.baddbmm(bias, z, matrix, out=pre)
        step(
            pre, z, Wo, bo, keep, noise, lengths, start.s, final.V, tape, links, t, B, T, m, H, Wo.shape[1],
            G, pre.shape[2], N, n, size, chains, *at[1:8],
        )  # fmt: skip
    final.r.copy_(rs[:, :, T])
    if core != LINEAR.value:
        final.h.copy_(hs[:, :, T])
    if core == LSTM.value:
        final.c.copy_(cs[:, :, T])
    if memory != NONE.value:
        finish_kernel[grid](final.s, links, tape, lengths, N, T, m, size, chains, at[3], at[6], at[7])


def backward(options, kept, state, to_f, gout, gpre, at):
    """All steps, from the last: gout and gpre are filled, and the gradients of the final state become those
    of the first."""
    core, memory, _, _, _, disturbed = options
    x, W, Wh, Wo, lengths, s0, _, _, keep, noise, V, _, _, tape, links = kept
    gh, gc, gr, gV, gs = state
    (P, B, T, A), (N, m), H, R, k = gout.shape, V.shape[2:], gh.shape[2], gpre.shape[3], x.shape[3]
    n, size, chains = N - T, at[-1], links.shape[1] // B
    gz, matrix = torch.cat((gr, gh), 2), joined(core, W, Wh, k, H)
    starts = [at[j] for j in (1, 2, 4, 5, 6, 7)]
    unstep = launcher(unstep_kernel, P * B, sizes(core, memory, disturbed, m, H))
    for t in reversed(range(T)):
        unstep(
            gz, to_f, gout, gpre, gc, Wo, keep, noise, lengths, s0, V, gV, gs, tape, links, t, B, T, m, H, A,
            R, N, n, size, chains, *starts,
        )  # fmt: skip
        gz.baddbmm_(gpre[:, :, t], matrix)
        if disturbed and core != LINEAR.value:
            gz[..., m:] *= keep[:, :, t, None]
    gr.copy_(gz[..., :m])
    gh.copy_(gz[..., m:])
