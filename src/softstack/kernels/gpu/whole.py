"""A whole sequence of a small StackRNN on the GPU: one program for each, its model's weights on the chip.

A controller's rows lie four to a unit, (unit, gate), so that a reshape parts them; the RNN's one to a unit.
What a step needs of the tape is loaded a step ahead: it comes from far away.
"""

import triton
import triton.language as tl

from softstack.kernels.gpu.cells import (
    GRU,
    LINEAR,
    LSTM,
    NONE,
    RNN,
    STACK,
    apart,
    gated,
    note,
    noted,
    tanh,
    together,
    ungated,
)
from softstack.kernels.gpu.memory import (
    END,
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
    unpop,
    unread,
)


@triton.jit
def sources(unit, gate, H, CORE: tl.constexpr):
    """For the row (unit, gate): its row in W and in Wh, and whether it has one there."""
    there = unit < H
    if CORE == GRU:
        return gate * H + unit, there & (gate < 3), tl.minimum(gate, 2) * H + unit, there & (gate != 2)
    else:
        return gate * H + unit, there, gate * H + unit, there


@triton.jit
def added(a, b, more_a, more_b):
    return a + more_a, b + more_b


@triton.jit
def taped(
    acts, to_f, gates, hs, cs, t, at_v, m, F, H, column, feature, unit, CORE: tl.constexpr
):  # fmt: skip
    """What the way back needs of step t: u, d and v, the gradient of its features, its gates, and h and c
    before it (of an RNN h after it); zeros before the first step."""
    act = row(acts, t, at_v + m, 0)
    u, d = tl.load(act, mask=t >= 0, other=0), tl.load(act + 1, mask=t >= 0, other=0)
    v = tl.load(act + at_v + column, mask=tl.where(column < m, t, -1) >= 0, other=0)
    f_grad = tl.load(row(to_f, t, F, feature), mask=tl.where(feature < F, t, -1) >= 0, other=0)
    exists = tl.where(unit < H, t, -1) >= 0
    g1, g2, g3, g4 = f_grad, f_grad, f_grad, f_grad
    h, c = f_grad, f_grad
    if CORE == RNN:
        h = tl.load(row(hs, t + 1, H, unit), mask=exists, other=0)
    elif CORE != LINEAR:
        g1, g2, g3, g4 = noted(row(gates, t, 4 * H, unit), H, exists)
        h = tl.load(row(hs, t, H, unit), mask=exists, other=0)
        if CORE == LSTM:
            c = tl.load(row(cs, t, H, unit), mask=exists, other=0)
    return u, d, v, f_grad, g1, g2, g3, g4, h, c


@triton.jit
def forward_kernel(
    W, b, packed, bn, Wo, bo, h0, c0, r0, s0, strengths0, i0, keep, noise, lengths, V, s, strengths, o,
    h, c, r, i, tape, links, B, T, k, m, H, A, G, N, n_in, size, chains,
    at_h, at_c, at_r, at_acts, at_gates, at_level, at_top, at_items, at_level_in, at_top_in,
    CORE: tl.constexpr, MEMORY: tl.constexpr, BUFFERED: tl.constexpr, DISTURBED: tl.constexpr,
    HP: tl.constexpr, MP: tl.constexpr, FP: tl.constexpr, GP: tl.constexpr, GATES: tl.constexpr,
):  # fmt: skip
    """`packed` are the maps of r and h (`rnn.packed`). They lie so that a thread holds whole sums, or most of
    them: numbers that are spread over the threads of a warp take five exchanges to add up."""
    q = tl.program_id(0).to(tl.int64)
    p = q // B
    n = N - T
    at_v = 4 if BUFFERED else 2
    V, s, tape, links = V + q * N * m, s + q * N, tape + q * size, links + q * chains
    xs, hs, cs, rs, acts, gates = (
        tape, tape + at_h, tape + at_c, tape + at_r, tape + at_acts, tape + at_gates,
    )  # fmt: skip
    level, top, link, first = tape + at_level, tape + at_top, links, links + N
    items, level_in, top_in = tape + at_items, tape + at_level_in, tape + at_top_in
    link_in = links if MEMORY == NONE else links + N + T + 1
    first_in = link_in + n_in
    W, b, Wo, bo, bn = W + p * G * (k + m), b + p * G, Wo + p * A * H, bo + p * A, bn + p * H
    INNER: tl.constexpr = 0 if CORE == LINEAR else (MP + HP) * GATES * HP
    packed += p * (INNER + FP * MP)
    column, inside = tl.arange(0, MP), tl.arange(0, MP) < m
    unit, exists = tl.arange(0, HP), tl.arange(0, HP) < H
    read_r = tl.load(r0 + q * m + column, mask=inside, other=0)
    tl.store(rs + column, read_r, mask=inside)
    if CORE == LINEAR:
        heads, stride, F = W + k, k + m, m
    else:
        heads, stride, F = Wo, H, H
        hidden = tl.load(h0 + q * H + unit, mask=exists, other=0)
        tl.store(hs + unit, hidden, mask=exists)
        slots = tl.arange(0, GATES * HP)
        in_W, has_W, _, has_Wh = sources(slots // GATES, slots % GATES, H, CORE)
        Wr = tl.load(packed + column[:, None] * (GATES * HP) + slots[None, :])
        Whh = tl.load(packed + (MP + unit)[:, None] * (GATES * HP) + slots[None, :])
        bias = tl.load(b + in_W, mask=has_W, other=0)
        if CORE == GRU:
            bias += tl.load(bn + slots // GATES, mask=has_Wh & (slots % GATES == 3), other=0)
        if CORE == LSTM:
            cell = tl.load(c0 + q * H + unit, mask=exists, other=0)
            tl.store(cs + unit, cell, mask=exists)
    feature = tl.arange(0, FP)
    Wu = tl.load(heads + feature, mask=feature < F, other=0)
    Wd = tl.load(heads + stride + feature, mask=feature < F, other=0)
    Wv = tl.load(packed + INNER + feature[:, None] * MP + column[None, :])
    base = b if CORE == LINEAR else bo
    bias_u, bias_d = tl.load(base), tl.load(base + 1)
    bias_v = tl.load(base + at_v + column, mask=inside, other=0)
    if MEMORY != NONE:
        head, strength = start(s0 + q * n, link, level, n, MEMORY == STACK)
        tl.store(first, head)
        tl.store(top, strength)
        fault, in_columns = faults(s0 + q * n, n), column_faults(V, n, m, column)
    end = tl.minimum(T, tl.load(lengths + q)).to(tl.int32)
    if CORE != LINEAR and not BUFFERED:
        coming = tl.load(xs + in_W, mask=tl.where(has_W, 0, end) < end, other=0)
    if BUFFERED:
        Wi = tl.load(heads + 2 * stride + feature, mask=feature < F, other=0)
        Wout = tl.load(heads + 3 * stride + feature, mask=feature < F, other=0)
        bias_i, bias_o = tl.load(base + 2), tl.load(base + 3)
        all_rows = tl.arange(0, GP)
        fault_in, items_fault = faults(strengths0 + q * n_in, n_in), column_faults(items, n_in, G, all_rows)
        front, left = start(strengths0 + q * n_in, link_in, level_in, n_in, False)
        tl.store(first_in, front)
        tl.store(top_in, left)
        take = tl.load(i0 + q)
    for t in range(end):
        if BUFFERED:  # §2.3: take i_{t-1} from the front, then read x_t
            front, left = pop(link_in, level_in, front, left, take)
            tl.store(first_in + t + 1, front)
            tl.store(top_in + t + 1, left)
            fault_in += take - take
            x = read(items, link_in, level_in, front, left, items_fault + fault_in, G, all_rows)
            tl.store(row(xs, t, G, all_rows), x, mask=all_rows < G)
            tl.debug_barrier()
        from_x_t = row(xs, t, G, 0)
        if CORE == LINEAR:
            f = read_r
        else:
            if DISTURBED:
                kept = tl.load(keep + q * T + t)
                hidden *= kept
                if CORE == LSTM:
                    cell *= kept
            if BUFFERED:
                pre = tl.load(from_x_t + in_W, mask=has_W, other=0) + bias
            else:
                pre = coming + bias
                coming = tl.load(row(xs, t + 1, G, in_W), mask=tl.where(has_W, t + 1, end) < end, other=0)
            if MP == HP:  # one sum is one exchange between warps
                pre += tl.sum(Wr * read_r[:, None] + Whh * hidden[:, None], 0)
            else:
                pre += tl.sum(Wr * read_r[:, None], 0)
                pre += tl.sum(Whh * hidden[:, None], 0)
            if CORE == RNN:
                hidden = tanh(pre)
            else:
                p1, p2, p3, p4 = apart(pre, HP)
                before = cell if CORE == LSTM else hidden
                hidden, after, g1, g2, g3, g4 = gated(p1, p2, p3, p4, hidden, before, CORE)
                note(row(gates, t, 4 * H, unit), H, exists, g1, g2, g3, g4)
                if CORE == LSTM:
                    cell = after
                    tl.store(row(cs, t + 1, H, unit), cell, mask=exists)
            if DISTURBED:
                hidden += tl.load(row(noise, q * T + t, H, unit), mask=exists, other=0)
            tl.store(row(hs, t + 1, H, unit), hidden, mask=exists)
            f = hidden
        u, d = tl.reduce((Wu * f, Wd * f), 0, added)
        u, d = bias_u + u, bias_d + d
        v = bias_v + tl.sum(Wv * f[:, None], 0)
        if CORE == LINEAR:
            u += tl.load(from_x_t)
            d += tl.load(from_x_t + 1)
            v += tl.load(from_x_t + at_v + column, mask=inside, other=0)
        u, d, v = tl.sigmoid(u), tl.sigmoid(d), tl.sigmoid(v)
        act = row(acts, t, at_v + m, 0)
        tl.store(act, u)
        tl.store(act + 1, d)
        tl.store(act + at_v + column, v, mask=inside)
        if BUFFERED:
            take, put = bias_i + tl.sum(Wi * f), bias_o + tl.sum(Wout * f)
            if CORE == LINEAR:
                take += tl.load(from_x_t + 2)
                put += tl.load(from_x_t + 3)
            take, put = tl.sigmoid(take), tl.sigmoid(put)
            tl.store(act + 2, take)
            tl.store(act + 3, put)
            tl.store(o + q * T + t, put)
        if MEMORY != NONE:
            tl.store(row(V, n + t, m, column), v, mask=inside)
            head, strength = pop(link, level, head, strength, u)
            head, strength = push(link, level, head, strength, n + t, d, MEMORY == STACK)
            tl.store(first + t + 1, head)
            tl.store(top + t + 1, strength)
            fault += d - d
            fault += tl.where(n + t > 0, u - u, 0)
            in_columns += v - v
            read_r = read(V, link, level, head, strength, in_columns + fault, m, column)
        else:
            read_r = tl.zeros_like(read_r)
        tl.store(row(rs, t + 1, m, column), read_r, mask=inside)
    tl.store(r + q * m + column, read_r, mask=inside)
    if CORE != LINEAR:
        tl.store(h + q * H + unit, hidden, mask=exists)
    if CORE == LSTM:
        tl.store(c + q * H + unit, cell, mask=exists)
    if MEMORY != NONE:
        finish(s, link, level, head, strength, fault, N)
    if BUFFERED:
        finish(strengths + q * n_in, link_in, level_in, front, left, fault_in, n_in)
        tl.store(i + q, take)


@triton.jit
def backward_kernel(
    W, Wh, Wo, s0, strengths0, i0, keep, noise, lengths, V, tape, links, to_f, go, gh, gc, gr, gV, gs, gi,
    gstrengths, gout, gpre, gitems,
    B, T, k, m, H, A, G, N, n_in, size, chains,
    at_h, at_c, at_acts, at_gates, at_level, at_top, at_items, at_level_in, at_top_in,
    CORE: tl.constexpr, MEMORY: tl.constexpr, BUFFERED: tl.constexpr, DISTURBED: tl.constexpr,
    HP: tl.constexpr, MP: tl.constexpr, FP: tl.constexpr, GP: tl.constexpr, GATES: tl.constexpr,
):  # fmt: skip
    q = tl.program_id(0).to(tl.int64)
    p = q // B
    n = N - T
    at_v = 4 if BUFFERED else 2
    V, gV, gs, tape, links = V + q * N * m, gV + q * N * m, gs + q * N, tape + q * size, links + q * chains
    hs, cs, acts, gates = tape + at_h, tape + at_c, tape + at_acts, tape + at_gates
    level, top, link, first = tape + at_level, tape + at_top, links, links + N
    items, level_in, top_in = tape + at_items, tape + at_level_in, tape + at_top_in
    link_in = links if MEMORY == NONE else links + N + T + 1
    first_in = link_in + n_in
    W, Wo, Wh = W + p * G * (k + m), Wo + p * A * H, Wh + p * G * H
    R = 4 * H if CORE == GRU else G  # with the GRU's two parts of n, one more than W has
    gout, gpre, go = gout + q * T * A, gpre + q * T * R, go + q * T
    column, inside = tl.arange(0, MP), tl.arange(0, MP) < m
    unit, exists = tl.arange(0, HP), tl.arange(0, HP) < H
    r_grad = tl.load(gr + q * m + column, mask=inside, other=0)
    if CORE == LINEAR:
        heads, stride, F = W + k, k + m, m
    else:
        heads, stride, F = Wo, H, H
        h_grad = tl.load(gh + q * H + unit, mask=exists, other=0)
        slots = tl.arange(0, GATES * HP)
        in_W, has_W, in_Wh, has_Wh = sources(slots // GATES, slots % GATES, H, CORE)
        Wr = tl.load(
            W + in_W[:, None] * (k + m) + k + column[None, :], mask=has_W[:, None] & inside[None, :], other=0
        )
        Whh = tl.load(
            Wh + in_Wh[:, None] * H + unit[None, :], mask=has_Wh[:, None] & exists[None, :], other=0
        )
        if CORE == LSTM:
            c_grad = tl.load(gc + q * H + unit, mask=exists, other=0)
    feature = tl.arange(0, FP)
    Wu = tl.load(heads + feature, mask=feature < F, other=0)
    Wd = tl.load(heads + stride + feature, mask=feature < F, other=0)
    Wv = tl.load(
        heads + (at_v + column[:, None]) * stride + feature[None, :],
        mask=inside[:, None] & (feature < F)[None, :], other=0,
    )  # fmt: skip
    if BUFFERED:
        Wi = tl.load(heads + 2 * stride + feature, mask=feature < F, other=0)
        Wout = tl.load(heads + 3 * stride + feature, mask=feature < F, other=0)
        all_rows = tl.arange(0, GP)
        gitems, gstrengths = gitems + q * n_in * G, gstrengths + q * n_in
        take_grad = tl.load(gi + q)
    end = tl.minimum(T, tl.load(lengths + q)).to(tl.int32)
    to_f += q * T * F
    u_, d_, v_, f_, g1_, g2_, g3_, g4_, h_, c_ = taped(
        acts, to_f, gates, hs, cs, end - 1, at_v, m, F, H, column, feature, unit, CORE
    )
    if CORE == LSTM:
        c_now = tl.load(row(cs, end, H, unit), mask=exists, other=0)
    for back in range(end):
        t = end - 1 - back
        act, out = row(acts, t, at_v + m, 0), row(gout, t, A, 0)
        u, d, v, f_grad, g1, g2, g3, g4, h_before, c_before = u_, d_, v_, f_, g1_, g2_, g3_, g4_, h_, c_
        u_, d_, v_, f_, g1_, g2_, g3_, g4_, h_, c_ = taped(
            acts, to_f, gates, hs, cs, t - 1, at_v, m, F, H, column, feature, unit, CORE
        )
        if MEMORY != NONE:
            to_u, to_d, popped = undo(
                V, link, level, first, top, n, t, u, d, v, r_grad, gs, gV, m, column, MEMORY == STACK
            )
            if t == 0:
                unlink(s0 + q * n, gs, n, to_u, popped, MEMORY == STACK)
            to_v = tl.load(row(gV, n + t, m, column), mask=inside, other=0)
            to_u, to_d, to_v = to_u * u * (1 - u), to_d * d * (1 - d), to_v * v * (1 - v)
            tl.store(out, to_u)
            tl.store(out + 1, to_d)
            tl.store(out + at_v + column, to_v, mask=inside)
            f_grad += to_u * Wu + to_d * Wd + tl.sum(Wv * to_v[:, None], 0)
        if BUFFERED:
            take, put = tl.load(act + 2), tl.load(act + 3)
            to_i, to_o = take_grad * take * (1 - take), tl.load(go + t) * put * (1 - put)
            tl.store(out + 2, to_i)
            tl.store(out + 3, to_o)
            f_grad += to_i * Wi + to_o * Wout
        if CORE == LINEAR:
            r_grad = f_grad
        else:
            h_grad += f_grad
            keep_t = tl.load(keep + q * T + t) if DISTURBED else 1.0
            if CORE == RNN:
                hidden = h_before
                if DISTURBED:
                    hidden -= tl.load(row(noise, q * T + t, H, unit), mask=exists, other=0)
                pre_grad = h_grad * (1 - hidden * hidden)
                kept = tl.zeros_like(h_grad)
            else:
                old = h_before * keep_t
                was, became, through = old, old, old
                if CORE == LSTM:
                    was, became, through = c_before * keep_t, c_now, c_grad
                    c_now = c_before
                p1, p2, p3, p4, through, kept = ungated(
                    h_grad, through, g1, g2, g3, g4, old, was, became, CORE
                )
                pre_grad = together(p1, p2, p3, p4, HP)
                if CORE == LSTM:
                    c_grad = through * keep_t
            gate_by_gate = (slots % GATES) * H + slots // GATES
            tl.store(row(gpre, t, R, gate_by_gate), pre_grad, mask=slots // GATES < H)
            if MP == HP:
                r_grad, to_h = tl.reduce((Wr * pre_grad[:, None], Whh * pre_grad[:, None]), 0, added)
            else:
                r_grad, to_h = tl.sum(Wr * pre_grad[:, None], 0), tl.sum(Whh * pre_grad[:, None], 0)
            h_grad = (kept + to_h) * keep_t
        if BUFFERED:
            tl.debug_barrier()
            front = tl.load(first_in + t + 1)
            x_grad = tl.load(row(gpre, t, R, all_rows), mask=all_rows < G, other=0)
            unread(
                items, link_in, level_in, front, tl.load(top_in + t + 1), n_in, END, False, x_grad, x_grad,
                gstrengths, gitems, G, all_rows,
            )  # fmt: skip
            if t > 0:
                taken = tl.load(act - (at_v + m) + 2)
            else:
                taken = tl.load(i0 + q)
            take_grad = unpop(
                link_in, level_in, front, tl.load(first_in + t), tl.load(top_in + t), n_in, taken, gstrengths,
                False,
            )  # fmt: skip
            if t == 0:
                unlink(strengths0 + q * n_in, gstrengths, n_in, take_grad, front, False)
    tl.store(gr + q * m + column, r_grad, mask=inside)
    if CORE != LINEAR:
        tl.store(gh + q * H + unit, h_grad, mask=exists)
    if CORE == LSTM:
        tl.store(gc + q * H + unit, c_grad, mask=exists)
    if BUFFERED:
        tl.store(gi + q, take_grad)
