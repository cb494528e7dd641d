"""A whole sequence of a small StackRNN on the GPU: one program for each, its model's weights on the chip.

A matrix lies so that a thread adds up most of a column by itself (`matrix`): README.md says why.
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
    gated,
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
    push_and_read,
    read,
    row,
    start,
    undo,
    unlink,
    unpop,
    unread,
)


@triton.jit
def spread(x, ROWS: tl.constexpr):
    """(ROWS,) -> (1, LOW, 1, HIGH), beside which a `matrix` lies."""
    LOW: tl.constexpr = 4 if ROWS >= 4 else ROWS
    return tl.reshape(x, (LOW, ROWS // LOW))[None, :, None, :]


@triton.jit
def numbers_of(SIZE: tl.constexpr, H):
    """0, 1, ..., not known to be neighbours: else a thread would take four of them in a row, and sums would
    be spread over more threads."""
    number = tl.arange(0, SIZE)
    return number + number * tl.minimum(H, 0)


@triton.jit
def columns(COLUMNS: tl.constexpr, H):
    """(NEAR, 1, FAR, 1), the columns of a `matrix`."""
    NEAR: tl.constexpr = 8 if COLUMNS >= 8 else COLUMNS
    return tl.trans(tl.reshape(numbers_of(COLUMNS, H), (COLUMNS // NEAR, NEAR)))[:, None, :, None]


@triton.jit
def matrix(at, row, there, by_column, count, H, COLUMNS: tl.constexpr):
    """(NEAR, LOW, FAR, HIGH): rows that begin at at + row (spread), where they are `there`, and `count`
    columns that lie by_column apart. NEAR x LOW are the threads of a warp and FAR its warps, so that a thread
    adds up most of a sum by itself, and its neighbours have the rest."""
    column = columns(COLUMNS, H)
    return tl.load(at + row + column * by_column, mask=there & (column < count), other=0)


@triton.jit
def vector(at, count, H, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """`count` numbers, (LOW, HIGH), in the threads that hold a matrix of so many columns."""
    row = spread(numbers_of(ROWS, H), ROWS)
    first = columns(COLUMNS, H) == 0
    return tl.sum(tl.sum(tl.load(at + row, mask=(row < count) & first, other=0), 2), 0)


@triton.jit
def by_threads(W, x):
    """A matrix times x, which is spread: what each thread can add up by itself, (NEAR, LOW, FAR)."""
    return tl.sum(W * x, 3)


@triton.jit
def by_warps(sums, SIZE: tl.constexpr):
    """The rest of the sum: (SIZE,)."""
    return tl.reshape(tl.trans(tl.sum(sums, 1)), (SIZE,))


@triton.jit
def both(from_r, from_h, SIZE: tl.constexpr):
    """The sum of two products."""
    if from_r.shape[1] == from_h.shape[1]:
        return by_warps(from_r + from_h, SIZE)
    else:
        return by_warps(from_r, SIZE) + by_warps(from_h, SIZE)


@triton.jit
def scalar(W, x, ROWS: tl.constexpr):
    """The product of a `vector` with x (ROWS,)."""
    LOW: tl.constexpr = 4 if ROWS >= 4 else ROWS
    return tl.sum(tl.sum(W * tl.reshape(x, (LOW, ROWS // LOW)), 1), 0)


@triton.jit
def put(at, x, count, SIZE: tl.constexpr):
    """Store x (SIZE,), of which the first `count` are there, by the threads that have it after `by_warps`;
    else it would be handed to others first."""
    NEAR: tl.constexpr = 8 if SIZE >= 8 else SIZE
    index = tl.trans(tl.reshape(tl.arange(0, SIZE), (SIZE // NEAR, NEAR)))[:, None, :]
    value = tl.trans(tl.reshape(x, (SIZE // NEAR, NEAR)))[:, None, :]
    part = tl.arange(0, 4)[None, :, None]
    index, value = index + tl.zeros_like(part), value + tl.zeros_like(part).to(x.dtype)
    tl.store(at + index, value, mask=(index < count) & (part == 0))


@triton.jit
def from_inputs(at, H, unit, there, CORE: tl.constexpr):
    """What lies gate by gate, H numbers apart, four vectors; the GRU's last part sees no x."""
    first = tl.load(at + unit, mask=there, other=0)
    second, third, fourth = tl.zeros_like(first), tl.zeros_like(first), tl.zeros_like(first)
    if CORE != RNN:
        second = tl.load(at + H + unit, mask=there, other=0)
        third = tl.load(at + 2 * H + unit, mask=there, other=0)
    if CORE == LSTM:
        fourth = tl.load(at + 3 * H + unit, mask=there, other=0)
    return first, second, third, fourth


@triton.jit
def sources(unit, gate, H, CORE: tl.constexpr):
    """For the row (unit, gate) of `pre`: its row in W and in Wh, and whether it has one there."""
    there = unit < H
    if CORE == GRU:
        return gate * H + unit, there & (gate < 3), tl.minimum(gate, 2) * H + unit, there & (gate != 2)
    else:
        return gate * H + unit, there, gate * H + unit, there


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
    W, b, Wh, bn, Wo, bo, h0, c0, r0, s0, strengths0, i0, keep, noise, lengths, V, s, strengths, o,
    h, c, r, i, tape, links, B, T, k, m, H, A, G, N, n_in, size, chains,
    at_h, at_c, at_r, at_acts, at_gates, at_level, at_top, at_items, at_level_in, at_top_in,
    CORE: tl.constexpr, MEMORY: tl.constexpr, BUFFERED: tl.constexpr, DISTURBED: tl.constexpr,
    HP: tl.constexpr, MP: tl.constexpr, FP: tl.constexpr, GP: tl.constexpr, GATES: tl.constexpr,
):  # fmt: skip
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
    Wh += p * G * H
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
        from_columns, is_r = spread(numbers_of(MP, H), MP), spread(column, MP) < m
        from_units, is_h = spread(numbers_of(HP, H), HP), spread(unit, HP) < H
        next_gate, by_unit = H * (k + m), k + m
        R1 = matrix(W + k, from_columns, is_r, by_unit, H, H, HP)
        H1 = matrix(Wh, from_units, is_h, H, H, H, HP)
        old = spread(hidden, HP)
        h1 = by_threads(H1, old)
        if CORE != RNN:
            R2 = matrix(W + k + next_gate, from_columns, is_r, by_unit, H, H, HP)
            H2 = matrix(Wh + H * H, from_units, is_h, H, H, H, HP)
            R3 = matrix(W + k + 2 * next_gate, from_columns, is_r, by_unit, H, H, HP)
            H3 = matrix(Wh + 2 * H * H, from_units, is_h, H, H, H, HP)
            h2, h3 = by_threads(H2, old), by_threads(H3, old)
            if CORE == LSTM:
                R4 = matrix(W + k + 3 * next_gate, from_columns, is_r, by_unit, H, H, HP)
                H4 = matrix(Wh + 3 * H * H, from_units, is_h, H, H, H, HP)
                h4 = by_threads(H4, old)
        b1, b2, b3, b4 = from_inputs(b, H, unit, exists, CORE)
        if CORE == GRU:
            b4 = tl.load(bn + unit, mask=exists, other=0)
        if CORE == LSTM:
            cell = tl.load(c0 + q * H + unit, mask=exists, other=0)
            tl.store(cs + unit, cell, mask=exists)
    Wu, Wd = vector(heads, F, H, FP, MP), vector(heads + stride, F, H, FP, MP)
    is_feature = spread(tl.arange(0, FP), FP) < F
    Wv = matrix(heads + at_v * stride, spread(numbers_of(FP, H), FP), is_feature, stride, m, H, MP)
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
        x1, x2, x3, x4 = from_inputs(xs, H, unit, tl.where(exists, 0, end) < end, CORE)
    if BUFFERED:
        Wi, Wout = vector(heads + 2 * stride, F, H, FP, MP), vector(heads + 3 * stride, F, H, FP, MP)
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
                h1 *= kept
                if CORE != RNN:
                    h2, h3 = h2 * kept, h3 * kept
                if CORE == LSTM:
                    h4 *= kept
                    cell *= kept
            if BUFFERED:
                x1, x2, x3, x4 = from_inputs(from_x_t, H, unit, exists, CORE)
            were_read = spread(read_r, MP)
            p1 = both(by_threads(R1, were_read), h1, HP) + (x1 + b1)
            if CORE == RNN:
                hidden = tanh(p1)
            else:
                p2 = both(by_threads(R2, were_read), h2, HP) + (x2 + b2)
                if CORE == LSTM:
                    p3 = both(by_threads(R3, were_read), h3, HP) + (x3 + b3)
                    p4 = both(by_threads(R4, were_read), h4, HP) + (x4 + b4)
                else:
                    p3, p4 = by_warps(by_threads(R3, were_read), HP) + (x3 + b3), by_warps(h3, HP) + b4
                before = cell if CORE == LSTM else hidden
                hidden, after, g1, g2, g3, g4 = gated(p1, p2, p3, p4, hidden, before, CORE)
                at_gate = row(gates, t, 4 * H, 0)
                put(at_gate, g1, H, HP)
                put(at_gate + H, g2, H, HP)
                put(at_gate + 2 * H, g3, H, HP)
                put(at_gate + 3 * H, g4, H, HP)
                if CORE == LSTM:
                    cell = after
                    put(row(cs, t + 1, H, 0), cell, H, HP)
            if DISTURBED:
                hidden += tl.load(row(noise, q * T + t, H, unit), mask=exists, other=0)
            put(row(hs, t + 1, H, 0), hidden, H, HP)
            if not BUFFERED:
                x1, x2, x3, x4 = from_inputs(
                    row(xs, t + 1, G, 0), H, unit, tl.where(exists, t + 1, end) < end, CORE
                )
            f = hidden
        features = spread(f, FP)
        u, d = bias_u + scalar(Wu, f, FP), bias_d + scalar(Wd, f, FP)
        v = bias_v + by_warps(by_threads(Wv, features), MP)
        if CORE == LINEAR:
            u += tl.load(from_x_t)
            d += tl.load(from_x_t + 1)
            v += tl.load(from_x_t + at_v + column, mask=inside, other=0)
        u, d, v = tl.sigmoid(u), tl.sigmoid(d), tl.sigmoid(v)
        act = row(acts, t, at_v + m, 0)
        tl.store(act, u)
        tl.store(act + 1, d)
        put(act + at_v, v, m, MP)
        if BUFFERED:
            take, give = bias_i + scalar(Wi, f, FP), bias_o + scalar(Wout, f, FP)
            if CORE == LINEAR:
                take += tl.load(from_x_t + 2)
                give += tl.load(from_x_t + 3)
            take, give = tl.sigmoid(take), tl.sigmoid(give)
            tl.store(act + 2, take)
            tl.store(act + 3, give)
            tl.store(o + q * T + t, give)
        if MEMORY != NONE:
            put(row(V, n + t, m, 0), v, m, MP)
            head, strength = pop(link, level, head, strength, u)
            fault += d - d
            fault += tl.where(n + t > 0, u - u, 0)
            in_columns += v - v
            head, strength, read_r = push_and_read(
                V, link, level, head, strength, n + t, d, v, in_columns + fault, m, column, MEMORY == STACK
            )
            tl.store(first + t + 1, head)
            tl.store(top + t + 1, strength)
        else:
            read_r = tl.zeros_like(read_r)
        put(row(rs, t + 1, m, 0), read_r, m, MP)
        if CORE != LINEAR:
            h1 = by_threads(H1, features)
            if CORE != RNN:
                h2, h3 = by_threads(H2, features), by_threads(H3, features)
            if CORE == LSTM:
                h4 = by_threads(H4, features)
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
        slot = spread(tl.arange(0, GATES * HP), GATES * HP)
        in_W, has_W, in_Wh, has_Wh = sources(slot // GATES, slot % GATES, H, CORE)
        to_r = matrix(W + k, in_W * (k + m), has_W, 1, m, H, MP)
        to_h = matrix(Wh, in_Wh * H, has_Wh, 1, H, H, HP)
        if CORE == LSTM:
            c_grad = tl.load(gc + q * H + unit, mask=exists, other=0)
    feature = tl.arange(0, FP)
    Wu = tl.load(heads + feature, mask=feature < F, other=0)
    Wd = tl.load(heads + stride + feature, mask=feature < F, other=0)
    from_v = spread(column, MP)
    Wv = matrix(heads, (at_v + from_v) * stride, from_v < m, 1, F, H, FP)
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
            put(out + at_v, to_v, m, MP)
            f_grad += to_u * Wu + to_d * Wd + by_warps(by_threads(Wv, spread(to_v, MP)), FP)
        if BUFFERED:
            take, give = tl.load(act + 2), tl.load(act + 3)
            to_i, to_o = take_grad * take * (1 - take), tl.load(go + t) * give * (1 - give)
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
                put(row(gpre, t, R, 0), pre_grad, H, HP)
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
                put(row(gpre, t, R, 0), p1, H, HP)
                put(row(gpre, t, R, H), p2, H, HP)
                put(row(gpre, t, R, 2 * H), p3, H, HP)
                put(row(gpre, t, R, 3 * H), p4, H, HP)
                if CORE == LSTM:
                    c_grad = through * keep_t
            all_gates = spread(pre_grad, GATES * HP)
            r_grad = by_warps(by_threads(to_r, all_gates), MP)
            h_grad = (kept + by_warps(by_threads(to_h, all_gates), HP)) * keep_t
        if BUFFERED:
            tl.debug_barrier()
            front = tl.load(first_in + t + 1)
            x_grad = tl.load(row(gpre, t, R, all_rows), mask=all_rows < G, other=0)
            unread(
                items, link_in, level_in, front, tl.load(top_in + t + 1), n_in, END, False, x_grad, x_grad,
                gstrengths, gitems, G, all_rows,
            )  # fmt: skip
            if t > 0:
                amount = tl.load(act - (at_v + m) + 2)
            else:
                amount = tl.load(i0 + q)
            take_grad = unpop(
                link_in, level_in, front, tl.load(first_in + t), tl.load(top_in + t), n_in, amount,
                gstrengths, False,
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
