"""What a team of programs does in a step of a large StackRNN: the kernels of `gpu/teams.py`.

A team takes some of a model's sequences. Each of its members makes some of the numbers of every step, for all
of these sequences: some units of the controller, some of the actions, and the memories of some sequences.
What one makes the others need: they write to the tape, wait for each other, and read. They meet three times:

    forward    units of h_t, from [r; h]     the actions u, d, v, from h_t     the memory: r_t
    backward   the memory: to u, d, v        units of `pre`                    columns of r and units of h

`joined` (P, R, m + H) is the map from [r; h] to `pre`, gate by gate: R = H (RNN), 4 H (LSTM, and GRU: reset,
z, n's part from r, n's part from h), A (linear, whose `pre` are its actions). The tape is that of
`gpu/rnn.py`, with the sequences of a step side by side; `at_` is where its parts begin.

All programs of a cooperative launch run at the same time: nobody waits for one that has not begun.
"""

import triton
import triton.language as tl

from softstack.kernels.gpu.cells import (
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
    ungated,
)
from softstack.kernels.gpu.memory import (
    column_faults,
    faults,
    finish,
    pop,
    push_and_read,
    row,
    start,
    undo,
    unlink,
)


@triton.jit
def arrive(counter, members):
    """Say that this member has written what the others need."""
    tl.debug_barrier()
    if members > 1:
        tl.atomic_add(counter, 1, sem="release", scope="gpu")


@triton.jit
def wait(counter, met, members):
    """Until every member of the team has arrived, and see what all have written. Gives how many have arrived
    in all meetings so far."""
    met += members
    if members > 1:
        here = tl.atomic_add(counter, 0, sem="acquire", scope="gpu")
        while here < met:
            here = tl.atomic_add(counter, 0, sem="acquire", scope="gpu")
    tl.debug_barrier()
    return met


@triton.jit
def begin_kernel(s0, links, tape, n, N, B, T, size, chains, at_level, at_top, LIFO: tl.constexpr):
    """The memory before the first step."""
    q = tl.program_id(0).to(tl.int64)
    links, tape, i = links + q * chains, tape + q // B * B * size, q % B
    head, strength = start(s0 + q * n, links, tape + at_level + i * N, n, LIFO)
    tl.store(links + N, head)
    tl.store(tape + at_top + i * (T + 1), strength)


@triton.jit
def finish_kernel(s, links, tape, lengths, B, N, T, m, size, chains, at_r, at_level, at_top):
    """What the memory holds after the last."""
    q = tl.program_id(0).to(tl.int64)
    links, tape, i = links + q * chains, tape + q // B * B * size, q % B
    end = tl.minimum(T, tl.load(lengths + q)).to(tl.int32)
    fault = faults(tape + at_r + (end * B + i) * m, m)
    head, strength = tl.load(links + N + end), tl.load(tape + at_top + i * (T + 1) + end)
    finish(s + q * N, links, tape + at_level + i * N, head, strength, fault, N)


@triton.jit
def sequences_of(team, teams, B, lane, SEQUENCES: tl.constexpr):
    """The sequences of a team, by lane, and whether there are such."""
    p = (team // teams).to(tl.int64)
    local = team % teams * SEQUENCES + lane
    return p * B + local, local < B


@triton.jit
def rows_of(at, here, count, j):
    """Numbers j of the rows that begin at `at`, and zeros outside: (S, J), or (PARTS, S, J)."""
    if len(j.shape) == 1:
        return tl.load(at[:, None] + j[None, :], mask=here[:, None] & (j < count)[None, :], other=0)
    else:
        inside = here[None, :, None] & (j < count)[:, None, :]
        return tl.load(at[None, :, None] + j[:, None, :], mask=inside, other=0)


@triton.jit
def product(
    total, at, here, scale, weights, there, held, count, COUNT: tl.constexpr, HELD: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """total (S, N) + A W'. Row s of A begins at at[s] and is multiplied by scale[s]; row n of W begins at
    weights[n], or W' is `held`. Both have `count` numbers; COUNT is no less."""
    real: tl.constexpr = total.dtype
    BLOCK: tl.constexpr = COUNT if HELD else 32
    for begin in tl.range(0, COUNT, BLOCK, num_stages=1 if HELD else 3):
        j = begin + tl.arange(0, BLOCK)
        w = held if HELD else tl.trans(rows_of(weights, there, count, j))
        a = (rows_of(at, here, count, j) * scale[:, None]).to(w.dtype)
        total = tl.dot(a, w, total, input_precision=PRECISION, out_dtype=real)
    return total


@triton.jit
def long_product(
    total, at, here, weights, there, held, count, COUNT: tl.constexpr, PARTS: tl.constexpr,
    HELD: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The same, in PARTS, one by each warp. For few columns: there one addition waits for the other, and that
    takes longer than all products."""
    real: tl.constexpr = total.dtype
    BLOCK: tl.constexpr = COUNT // PARTS if HELD else 32
    sums = tl.zeros((PARTS, total.shape[0], total.shape[1]), real)
    for begin in tl.range(0, COUNT, PARTS * BLOCK, num_stages=1 if HELD else 2):
        j = in_parts(begin, PARTS, BLOCK)
        w = held if HELD else tl.permute(rows_of(weights, there, count, j), (0, 2, 1))
        a = rows_of(at, here, count, j).to(w.dtype)
        sums = tl.dot(a, w, sums, input_precision=PRECISION, out_dtype=real)
    return total + added_up(sums, PARTS)


@triton.jit
def added_up(sums, PARTS: tl.constexpr):
    """(PARTS, S, N) -> (S, N). A sum over the first axis, of which each warp has a part, would go through
    shared memory number by number; here each half is added to the other."""
    S: tl.constexpr = sums.shape[1]
    N: tl.constexpr = sums.shape[2]
    x = tl.permute(sums, (1, 2, 0))
    if PARTS >= 8:
        first, second = tl.split(tl.reshape(x, (S, N, PARTS // 2, 2)))
        x = first + second
    if PARTS >= 4:
        first, second = tl.split(tl.reshape(x, (S, N, 2, 2)))
        x = first + second
    first, second = tl.split(tl.reshape(x, (S, N, 2)))
    return first + second


@triton.jit
def in_parts(begin, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    return begin + tl.arange(0, PARTS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]


@triton.jit
def remember(V, s0, act, level, top, r, links, t, m, N, n, MP: tl.constexpr, LIFO: tl.constexpr):
    """Step t of one sequence's memory, by its actions: r_t."""
    column = tl.arange(0, MP)
    inside = column < m
    first, top = links + N + t, top + t
    u, d = tl.load(act), tl.load(act + 1)
    v = tl.load(act + 2 + column, mask=inside, other=0)
    tl.store(row(V, n + t, m, column), v, mask=inside)
    head, strength = pop(links, level, tl.load(first), tl.load(top), u)
    fault = v - v + (d - d)
    if n + t > 0:
        fault += u - u
    if t == 0:
        fault += column_faults(V, n, m, column) + faults(s0, n)
    head, strength, read_r = push_and_read(
        V, links, level, head, strength, n + t, d, v, fault, m, column, LIFO
    )
    tl.store(first + 1, head)
    tl.store(top + 1, strength)
    tl.store(r + column, read_r, mask=inside)


@triton.jit
def forward_kernel(
    joined, bias, Wo, bo, keep, noise, lengths, s0, V, tape, links, counters, first_team,
    teams, members, B, T, m, H, A, G, R, N, n, size, chains,
    at_h, at_c, at_r, at_acts, at_gates, at_level, at_top,
    CORE: tl.constexpr, MEMORY: tl.constexpr, DISTURBED: tl.constexpr, RAGGED: tl.constexpr,
    SEQUENCES: tl.constexpr, UNITS: tl.constexpr, ACTIONS: tl.constexpr, GATES: tl.constexpr,
    MP: tl.constexpr, FROM_R: tl.constexpr, FROM_H: tl.constexpr, HELD: tl.constexpr, PARTS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    real: tl.constexpr = tape.dtype.element_ty
    team, member = first_team + tl.program_id(0) // members, tl.program_id(0) % members
    counter, met = counters + team * 32, 0
    q, there = sequences_of(team, teams, B, tl.arange(0, SEQUENCES), SEQUENCES)
    ends = tl.load(lengths + q, mask=there, other=0).to(tl.int32)
    end = tl.minimum(tl.max(ends, 0), T)
    p = (team // teams).to(tl.int64)
    joined, bias, Wo, bo = joined + p * R * (m + H), bias + p * R, Wo + p * A * H, bo + p * A
    tape += p * B * size
    b = q - p * B
    always = tl.full((SEQUENCES,), 1, real)
    action = member * ACTIONS + tl.arange(0, ACTIONS)
    acts = action < 2 + m
    if CORE == LINEAR:
        heads, F, to_acts = joined + action * m, m, tl.load(bias + action, mask=acts, other=0)
        W_o = heads
    else:
        heads, F, to_acts = Wo + action * H, H, tl.load(bo + action, mask=acts, other=0)
        W_o = heads
        if HELD and MEMORY != NONE:
            W_o = tl.permute(rows_of(heads, acts, H, in_parts(0, PARTS, FROM_H // PARTS)), (0, 2, 1))
        slot = tl.arange(0, GATES * UNITS)
        unit, gate = member * UNITS + slot // GATES, slot % GATES
        of_row = gate * H + unit
        is_row, from_W = unit < H, (unit < H) & (of_row < G)  # the GRU's last part sees no x
        to_pre = tl.load(bias + of_row, mask=is_row, other=0)
        from_r, from_h = joined + of_row * (m + H), joined + of_row * (m + H) + m
        W_r, W_h = from_r, from_h
        if HELD:
            W_r = tl.trans(rows_of(from_r, is_row, m, tl.arange(0, FROM_R)))
            W_h = tl.trans(rows_of(from_h, is_row, H, tl.arange(0, FROM_H)))
        flat = tl.arange(0, SEQUENCES * UNITS)  # one sequence after the other
        mine, exists = sequences_of(team, teams, B, flat // UNITS, SEQUENCES)
        own = member * UNITS + flat % UNITS
        exists &= own < H
        until = tl.load(lengths + mine, mask=exists, other=0).to(tl.int32)
        my_b = mine - p * B
    for t in range(end):
        live = t < ends
        if CORE != LINEAR:
            going = t < until
            from_x = tl.load(
                (tape + (t * B + b) * G)[:, None] + of_row[None, :], mask=live[:, None] & from_W[None, :],
                other=0,
            )  # fmt: skip
            kept, my_kept = always, tl.full((SEQUENCES * UNITS,), 1, real)
            if DISTURBED:
                kept = tl.load(keep + q * T + t, mask=live, other=1)
                my_kept = tl.load(keep + mine * T + t, mask=going, other=1)
            my_step = t * B + my_b
            h = tl.load(tape + at_h + my_step * H + own, mask=going, other=0) * my_kept
            c = h
            if CORE == LSTM:
                c = tl.load(tape + at_c + my_step * H + own, mask=going, other=0) * my_kept
            pre = product(
                from_x + to_pre[None, :], tape + at_h + (t * B + b) * H, live, kept, from_h, is_row, W_h, H,
                FROM_H, HELD, PRECISION,
            )  # fmt: skip
            if MEMORY != NONE and t > 0:
                met = wait(counter, met, members)  # for r_t; all of the above needs h_t alone
            pre = product(
                pre, tape + at_r + (t * B + b) * m, live, always, from_r, is_row, W_r, m, FROM_R, HELD,
                PRECISION,
            )  # fmt: skip
            if CORE == RNN:
                h = tanh(tl.reshape(pre, (SEQUENCES * UNITS,)))
            else:
                p1, p2, p3, p4 = apart(pre, SEQUENCES * UNITS)
                h, c, g1, g2, g3, g4 = gated(p1, p2, p3, p4, h, c, CORE)
            if DISTURBED:
                h += tl.load(noise + (mine * T + t) * H + own, mask=going, other=0)
            tl.store(tape + at_h + (my_step + B) * H + own, h, mask=going)
            arrive(counter, members)
            if CORE != RNN:  # nobody else needs these
                note(tape + at_gates + my_step * 4 * H + own, H, going, g1, g2, g3, g4)
            if CORE == LSTM:
                tl.store(tape + at_c + (my_step + B) * H + own, c, mask=going)
            met = wait(counter, met, members)
        if MEMORY != NONE:
            if CORE == LINEAR:
                if t > 0:
                    met = wait(counter, met, members)
                features = tape + at_r + (t * B + b) * m
                out = to_acts[None, :] + tl.load(
                    (tape + (t * B + b) * G)[:, None] + action[None, :], mask=live[:, None] & acts[None, :],
                    other=0,
                )  # fmt: skip
            else:
                features = tape + at_h + ((t + 1) * B + b) * H
                out = to_acts[None, :] + tl.zeros((SEQUENCES, ACTIONS), real)
            out = long_product(
                out, features, live, heads, acts, W_o, F, FROM_R if CORE == LINEAR else FROM_H, PARTS,
                HELD and CORE != LINEAR, PRECISION,
            )  # fmt: skip
            tl.store(
                (tape + at_acts + (t * B + b) * (2 + m))[:, None] + action[None, :], tl.sigmoid(out),
                mask=live[:, None] & acts[None, :],
            )  # fmt: skip
            arrive(counter, members)
            met = wait(counter, met, members)
            for lane in range(member, SEQUENCES, members):
                one, is_there = sequences_of(team, teams, B, lane, SEQUENCES)
                if is_there:
                    if not RAGGED or t < tl.load(lengths + one):
                        i = one - p * B
                        remember(
                            V + one * N * m, s0 + one * n, tape + at_acts + (t * B + i) * (2 + m),
                            tape + at_level + i * N, tape + at_top + i * (T + 1),
                            tape + at_r + ((t + 1) * B + i) * m, links + one * chains, t, m, N, n, MP,
                            MEMORY == STACK,
                        )  # fmt: skip
            arrive(counter, members)


@triton.jit
def unremember(
    V, s0, gr, gs, gV, out, act, level, top, links, t, m, N, n, MP: tl.constexpr, LIFO: tl.constexpr
):
    """The reverse of `remember`: the gradients of u, d and v before their sigmoids."""
    column = tl.arange(0, MP)
    inside = column < m
    u, d, v = tl.load(act), tl.load(act + 1), tl.load(act + 2 + column, mask=inside, other=0)
    g = tl.load(gr + column, mask=inside, other=0)
    gu, gd, popped = undo(V, links, level, links + N, top, n, t, u, d, v, g, gs, gV, m, column, LIFO)
    if t == 0:
        unlink(s0, gs, n, gu, popped, LIFO)
    gv = tl.load(row(gV, n + t, m, column), mask=inside, other=0)
    tl.store(out, gu * u * (1 - u))
    tl.store(out + 1, gd * d * (1 - d))
    tl.store(out + 2 + column, gv * v * (1 - v), mask=inside)


@triton.jit
def backward_kernel(
    joined, Wo, to_f, gout, gpre, gh, gc, gr, keep, noise, lengths, s0, V, gV, gs, tape, links, counters,
    first_team, teams, members, B, T, m, H, A, R, F, N, n, size, chains,
    at_h, at_c, at_acts, at_gates, at_level, at_top,
    CORE: tl.constexpr, MEMORY: tl.constexpr, DISTURBED: tl.constexpr, RAGGED: tl.constexpr,
    SEQUENCES: tl.constexpr, UNITS: tl.constexpr, MP: tl.constexpr, FROM_ACTIONS: tl.constexpr,
    FROM_PRE: tl.constexpr, HELD: tl.constexpr, PARTS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """`joined` and Wo come transposed."""
    real: tl.constexpr = tape.dtype.element_ty
    team, member = first_team + tl.program_id(0) // members, tl.program_id(0) % members
    counter, met = counters + team * 32, 0
    q, there = sequences_of(team, teams, B, tl.arange(0, SEQUENCES), SEQUENCES)
    ends = tl.load(lengths + q, mask=there, other=0).to(tl.int32)
    end = tl.minimum(tl.max(ends, 0), T)
    p = (team // teams).to(tl.int64)
    joined, Wo = joined + p * R * (m + H), Wo + p * A * H
    tape += p * B * size
    gout, gpre, to_f = gout + p * B * T * A, gpre + p * B * T * R, to_f + p * B * T * F
    b = q - p * B
    column = member * UNITS + tl.arange(0, UNITS)  # of r, and units of h
    inside = column < m
    if CORE == LINEAR:
        to_columns, W_r = joined + column * R, joined + column * R
    else:
        is_unit, to_units = column < H, Wo + column * A
        both = tl.arange(0, 2 * UNITS)  # columns of r, then units of h
        index = member * UNITS + both % UNITS
        is_r = both < UNITS
        is_one = tl.where(is_r, index < m, index < H)
        to_both = joined + tl.where(is_r, index, m + index) * R
        W_both, W_o = to_both, to_units
        if HELD:
            in_pre, in_acts = in_parts(0, PARTS, FROM_PRE // PARTS), in_parts(0, PARTS, FROM_ACTIONS // PARTS)
            W_both = tl.permute(rows_of(to_both, is_one, R, in_pre), (0, 2, 1))
            if MEMORY != NONE:
                W_o = tl.permute(rows_of(to_units, is_unit, 2 + m, in_acts), (0, 2, 1))
        flat = tl.arange(0, SEQUENCES * UNITS)
        mine, exists = sequences_of(team, teams, B, flat // UNITS, SEQUENCES)
        own = member * UNITS + flat % UNITS
        exists &= own < H
        until = tl.load(lengths + mine, mask=exists, other=0).to(tl.int32)
        my_b = mine - p * B
        h_grad = tl.load(gh + mine * H + own, mask=exists, other=0)
        c_grad = tl.zeros_like(h_grad)
        if CORE == LSTM:
            c_grad = tl.load(gc + mine * H + own, mask=exists, other=0)
    for back in range(end):
        t = end - 1 - back
        live = t < ends
        step = t * B + b
        if CORE != LINEAR:  # what the tape holds of this step
            going, my_step = t < until, t * B + my_b
            grad = h_grad + tl.load(to_f + my_step * H + own, mask=going, other=0)
            keep_t = tl.full((SEQUENCES * UNITS,), 1, real)
            if DISTURBED:
                keep_t = tl.load(keep + mine * T + t, mask=going, other=1)
            if CORE == RNN:
                h = tl.load(tape + at_h + (my_step + B) * H + own, mask=going, other=0)
                if DISTURBED:
                    h -= tl.load(noise + (mine * T + t) * H + own, mask=going, other=0)
            else:
                g1, g2, g3, g4 = noted(tape + at_gates + my_step * 4 * H + own, H, going)
                h = tl.load(tape + at_h + my_step * H + own, mask=going, other=0) * keep_t
                c, c_new = h, h
                if CORE == LSTM:
                    c = tl.load(tape + at_c + my_step * H + own, mask=going, other=0) * keep_t
                    c_new = tl.load(tape + at_c + (my_step + B) * H + own, mask=going, other=0)
        if MEMORY != NONE:
            if back > 0:
                met = wait(counter, met, members)  # for the gradient of r_t
            for lane in range(member, SEQUENCES, members):
                one, is_there = sequences_of(team, teams, B, lane, SEQUENCES)
                if is_there:
                    if not RAGGED or t < tl.load(lengths + one):
                        i = one - p * B
                        unremember(
                            V + one * N * m, s0 + one * n, gr + one * m, gs + one * N, gV + one * N * m,
                            gout + (t * B + i) * A, tape + at_acts + (t * B + i) * (2 + m),
                            tape + at_level + i * N, tape + at_top + i * (T + 1), links + one * chains,
                            t, m, N, n, MP, MEMORY == STACK,
                        )  # fmt: skip
            arrive(counter, members)
            met = wait(counter, met, members)
        if CORE == LINEAR:
            to_r = tl.load(
                (to_f + step * m)[:, None] + column[None, :], mask=live[:, None] & inside[None, :], other=0
            )
            to_r = long_product(
                to_r, gout + step * A, live, to_columns, inside, W_r, 2 + m, FROM_ACTIONS, PARTS, False,
                PRECISION,
            )  # fmt: skip
            tl.store((gr + q * m)[:, None] + column[None, :], to_r, mask=live[:, None] & inside[None, :])
            arrive(counter, members)
        else:
            if MEMORY != NONE:
                to_h = long_product(
                    tl.zeros((SEQUENCES, UNITS), real), gout + step * A, live, to_units, is_unit, W_o, 2 + m,
                    FROM_ACTIONS, PARTS, HELD, PRECISION,
                )  # fmt: skip
                grad += tl.reshape(to_h, (SEQUENCES * UNITS,))
            pre = gpre + my_step * R + own
            kept = tl.zeros_like(grad)
            through = c_grad
            if CORE == RNN:
                tl.store(pre, grad * (1 - h * h), mask=going)
            else:
                p1, p2, p3, p4, through, kept = ungated(grad, c_grad, g1, g2, g3, g4, h, c, c_new, CORE)
                note(pre, H, going, p1, p2, p3, p4)
            arrive(counter, members)
            met = wait(counter, met, members)
            to_both_ = long_product(
                tl.zeros((SEQUENCES, 2 * UNITS), real), gpre + step * R, live, to_both, is_one, W_both, R,
                FROM_PRE, PARTS, HELD, PRECISION,
            )  # fmt: skip
            to_r, to_h = tl.split(tl.permute(tl.reshape(to_both_, (SEQUENCES, 2, UNITS)), (0, 2, 1)))
            tl.store((gr + q * m)[:, None] + column[None, :], to_r, mask=live[:, None] & inside[None, :])
            if MEMORY != NONE:
                arrive(counter, members)
            kept = (kept + tl.reshape(to_h, (SEQUENCES * UNITS,))) * keep_t
            h_grad = tl.where(going, kept, h_grad)
            c_grad = tl.where(going, through * keep_t, c_grad)
    if CORE != LINEAR:
        tl.store(gh + mine * H + own, h_grad, mask=exists)
    if CORE == LSTM:
        tl.store(gc + mine * H + own, c_grad, mask=exists)
