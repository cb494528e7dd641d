"""A large StackRNN on the GPU, whose weights one program cannot hold: the whole loop by teams of programs.

A team takes some of a model's sequences. Each of its members makes some of the numbers of every step, for all
of these sequences: some units of the controller, some of the actions, and the memories of some sequences. What
one makes the others need, so the members meet between: they write to the tape, wait for each other, and read.

    forward    units of h_t from [r; h]      meet   actions u, d, v from h_t         meet   the memory: r_t    meet
    backward   the memory: gradients of u, d, v   meet   units of `pre` from them   meet   those of [r; h]   meet

`joined` (P, R, m + H) is the map from [r; h] to `pre`, gate by gate: R = H (RNN), 4 H (LSTM, and GRU: reset,
z, n's part from r, n's part from h), A (linear, whose `pre` are its actions). The tape is that of
`gpu/rnn.py`, with the sequences of a step side by side: what a step touches then lies in few pages of memory.
`at_` is where its parts begin.

All programs of a launch run at the same time, which a cooperative launch guarantees: nobody waits for one that
has not begun.
"""

import os
from typing import NamedTuple

import torch
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
    ungated,
)
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

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
PRECISIONS = {torch.float32: "tf32x3", torch.float64: "ieee", torch.bfloat16: "ieee", torch.float16: "ieee"}
LEAST = 16  # sequences of a team: a tensor core multiplies as many
NARROW = 8  # columns
WARPS = 8


class Team(NamedTuple):
    """How the work is cut up."""

    SEQUENCES: int  # of a team
    UNITS: int  # of the controller that a member makes
    ACTIONS: int
    COLUMNS: int  # of r
    members: int


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
def sum_of(
    total, at, here, weights, there, count, scale,
    COUNT: tl.constexpr, PARTS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """total (S, N) + A W'. Row s of A begins at at[s] and is multiplied by scale[s]; row n of W begins at
    weights[n]. Both have `count` numbers; COUNT is no less.

    A sum is made in PARTS, one by each warp: one after the other, its products would take longer to follow
    each other than to compute.
    """
    real: tl.constexpr = total.dtype
    BLOCK: tl.constexpr = 64 if COUNT > 32 * PARTS else 32 if COUNT > 16 * PARTS else 16
    sums = tl.zeros((PARTS, total.shape[0], total.shape[1]), real)
    for begin in range(0, COUNT, PARTS * BLOCK):
        j = begin + tl.arange(0, PARTS)[:, None, None] * BLOCK + tl.arange(0, BLOCK)[None, None, :]
        a = tl.load(at[None, :, None] + j, mask=here[None, :, None] & (j < count), other=0)
        w = tl.load(weights[None, :, None] + j, mask=there[None, :, None] & (j < count), other=0)
        a = (a * scale[None, :, None]).to(w.dtype)
        w = tl.permute(w, (0, 2, 1))
        sums = tl.dot(a, w, sums, input_precision=PRECISION, out_dtype=real)
    return total + tl.sum(sums, 0)


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
    head, strength = push(links, level, head, strength, n + t, d, LIFO)
    tl.store(first + 1, head)
    tl.store(top + 1, strength)
    fault = v - v + (d - d)
    if n + t > 0:
        fault += u - u
    if t == 0:
        fault += column_faults(V, n, m, column) + faults(s0, n)
    tl.store(r + column, read(V, links, level, head, strength, fault, m, column), mask=inside)


@triton.jit
def forward_kernel(
    joined, bias, Wo, bo, keep, noise, lengths, s0, V, tape, links, counters, first_team,
    teams, members, B, T, m, H, A, G, R, N, n, size, chains,
    at_h, at_c, at_r, at_acts, at_gates, at_level, at_top,
    CORE: tl.constexpr, MEMORY: tl.constexpr, DISTURBED: tl.constexpr,
    SEQUENCES: tl.constexpr, UNITS: tl.constexpr, ACTIONS: tl.constexpr, COLUMNS: tl.constexpr,
    GATES: tl.constexpr, MP: tl.constexpr, FROM_R: tl.constexpr, FROM_H: tl.constexpr, PARTS: tl.constexpr,
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
    slot = tl.arange(0, GATES * UNITS)
    unit, gate = member * UNITS + slot // GATES, slot % GATES
    of_row = gate * H + unit
    from_W = (unit < H) & (of_row < G)  # the GRU's last part sees no x
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
            kept, my_kept = always, tl.full((SEQUENCES * UNITS,), 1, real)
            if DISTURBED:
                kept = tl.load(keep + q * T + t, mask=live, other=1)
                my_kept = tl.load(keep + mine * T + t, mask=going, other=1)
            pre = tl.zeros((SEQUENCES, GATES * UNITS), real)
            pre = sum_of(
                pre, tape + at_h + (t * B + b) * H, live, joined + of_row * (m + H) + m, unit < H, H, kept, FROM_H,
                PARTS, PRECISION,
            )  # fmt: skip
            if MEMORY != NONE and t > 0:
                met = wait(counter, met, members)  # for r_t; all of the above needs h_t alone
            pre = sum_of(
                pre, tape + at_r + (t * B + b) * m, live, joined + of_row * (m + H), unit < H, m, always, FROM_R,
                PARTS, PRECISION,
            )  # fmt: skip
            pre += tl.load(bias + of_row, mask=unit < H, other=0)[None, :]
            pre += tl.load(
                (tape + (t * B + b) * G)[:, None] + of_row[None, :], mask=live[:, None] & from_W[None, :], other=0
            )
            if CORE == RNN:
                h = tanh(tl.reshape(pre, (SEQUENCES * UNITS,)))
            else:
                old = tl.load(tape + at_h + (t * B + my_b) * H + own, mask=going, other=0) * my_kept
                c = old
                if CORE == LSTM:
                    c = tl.load(tape + at_c + (t * B + my_b) * H + own, mask=going, other=0) * my_kept
                p1, p2, p3, p4 = apart(pre, SEQUENCES * UNITS)
                h, c, g1, g2, g3, g4 = gated(p1, p2, p3, p4, old, c, CORE)
                note(tape + at_gates + (t * B + my_b) * 4 * H + own, H, going, g1, g2, g3, g4)
                if CORE == LSTM:
                    tl.store(tape + at_c + ((t + 1) * B + my_b) * H + own, c, mask=going)
            if DISTURBED:
                h += tl.load(noise + (mine * T + t) * H + own, mask=going, other=0)
            tl.store(tape + at_h + ((t + 1) * B + my_b) * H + own, h, mask=going)
            arrive(counter, members)
            met = wait(counter, met, members)
        if MEMORY != NONE:
            if CORE == LINEAR and t > 0:
                met = wait(counter, met, members)
            out = tl.zeros((SEQUENCES, ACTIONS), real)
            if CORE == LINEAR:
                out = sum_of(
                    out, tape + at_r + (t * B + b) * m, live, joined + action * m, acts, m, always, FROM_R, PARTS,
                    PRECISION,
                )  # fmt: skip
                out += tl.load(bias + action, mask=acts, other=0)[None, :]
                out += tl.load(
                    (tape + (t * B + b) * G)[:, None] + action[None, :], mask=live[:, None] & acts[None, :], other=0
                )
            else:
                out = sum_of(
                    out, tape + at_h + ((t + 1) * B + b) * H, live, Wo + action * H, acts, H, always, FROM_H,
                    PARTS, PRECISION,
                )  # fmt: skip
                out += tl.load(bo + action, mask=acts, other=0)[None, :]
            out = tl.sigmoid(out)
            tl.store(
                (tape + at_acts + (t * B + b) * (2 + m))[:, None] + action[None, :], out,
                mask=live[:, None] & acts[None, :],
            )  # fmt: skip
            arrive(counter, members)
            met = wait(counter, met, members)
            for lane in range(member, SEQUENCES, members):
                one, is_there = sequences_of(team, teams, B, lane, SEQUENCES)
                if is_there:
                    if t < tl.load(lengths + one):
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
    gu, gd, popped = undo(V, links, level, links + N, top, n, t, u, d, g, gs, gV, m, column, LIFO)
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
    CORE: tl.constexpr, MEMORY: tl.constexpr, DISTURBED: tl.constexpr,
    SEQUENCES: tl.constexpr, UNITS: tl.constexpr, ACTIONS: tl.constexpr, COLUMNS: tl.constexpr,
    GATES: tl.constexpr, MP: tl.constexpr, FROM_ACTIONS: tl.constexpr, FROM_PRE: tl.constexpr,
    PARTS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    real: tl.constexpr = tape.dtype.element_ty
    team, member = first_team + tl.program_id(0) // members, tl.program_id(0) % members
    counter, met = counters + team * 32, 0
    q, there = sequences_of(team, teams, B, tl.arange(0, SEQUENCES), SEQUENCES)
    ends = tl.load(lengths + q, mask=there, other=0).to(tl.int32)
    end = tl.minimum(tl.max(ends, 0), T)
    p = (team // teams).to(tl.int64)
    joined, Wo = joined + p * R * (m + H), Wo + p * A * H
    tape, gout, gpre, to_f = tape + p * B * size, gout + p * B * T * A, gpre + p * B * T * R, to_f + p * B * T * F
    b = q - p * B
    always = tl.full((SEQUENCES,), 1, real)
    column = member * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < m
    unit = member * UNITS + tl.arange(0, UNITS)
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
        live, going = t < ends, t < until
        step, my_step = t * B + b, t * B + my_b
        if MEMORY != NONE:
            if back > 0:
                met = wait(counter, met, members)  # for the gradient of r_t
            for lane in range(member, SEQUENCES, members):
                one, is_there = sequences_of(team, teams, B, lane, SEQUENCES)
                if is_there:
                    if t < tl.load(lengths + one):
                        i = one - p * B
                        unremember(
                            V + one * N * m, s0 + one * n, gr + one * m, gs + one * N, gV + one * N * m,
                            gout + (t * B + i) * A, tape + at_acts + (t * B + i) * (2 + m),
                            tape + at_level + i * N, tape + at_top + i * (T + 1), links + one * chains,
                            t, m, N, n, MP, MEMORY == STACK,
                        )  # fmt: skip
            arrive(counter, members)
            met = wait(counter, met, members)
        to_r = tl.zeros((SEQUENCES, COLUMNS), real)
        if CORE == LINEAR:
            at = (to_f + step * m)[:, None] + column[None, :]
            to_r += tl.load(at, mask=live[:, None] & inside[None, :], other=0)
            to_r = sum_of(
                to_r, gout + step * A, live, joined + column * R, inside, 2 + m, always, FROM_ACTIONS, PARTS,
                PRECISION,
            )  # fmt: skip
            tl.store((gr + q * m)[:, None] + column[None, :], to_r, mask=live[:, None] & inside[None, :])
            arrive(counter, members)
        else:
            to_h = tl.zeros((SEQUENCES, UNITS), real)
            if MEMORY != NONE:
                to_h = sum_of(
                    to_h, gout + step * A, live, Wo + unit * A, unit < H, 2 + m, always, FROM_ACTIONS, PARTS,
                    PRECISION,
                )  # fmt: skip
            grad = h_grad + tl.reshape(to_h, (SEQUENCES * UNITS,))
            grad += tl.load(to_f + my_step * H + own, mask=going, other=0)
            pre = gpre + my_step * R + own
            keep_t = tl.full((SEQUENCES * UNITS,), 1, real)
            if DISTURBED:
                keep_t = tl.load(keep + mine * T + t, mask=going, other=1)
            kept = tl.zeros_like(grad)
            through = c_grad
            if CORE == RNN:
                h = tl.load(tape + at_h + ((t + 1) * B + my_b) * H + own, mask=going, other=0)
                if DISTURBED:
                    h -= tl.load(noise + (mine * T + t) * H + own, mask=going, other=0)
                tl.store(pre, grad * (1 - h * h), mask=going)
            else:
                g1, g2, g3, g4 = noted(tape + at_gates + (t * B + my_b) * 4 * H + own, H, going)
                h = tl.load(tape + at_h + (t * B + my_b) * H + own, mask=going, other=0) * keep_t
                c, c_new = h, h
                if CORE == LSTM:
                    c = tl.load(tape + at_c + (t * B + my_b) * H + own, mask=going, other=0) * keep_t
                    c_new = tl.load(tape + at_c + ((t + 1) * B + my_b) * H + own, mask=going, other=0)
                p1, p2, p3, p4, through, kept = ungated(grad, c_grad, g1, g2, g3, g4, h, c, c_new, CORE)
                note(pre, H, going, p1, p2, p3, p4)
            arrive(counter, members)
            met = wait(counter, met, members)
            if MEMORY != NONE or t == 0:
                to_r = sum_of(
                    to_r, gpre + step * R, live, joined + column * R, inside, R, always, FROM_PRE, PARTS,
                    PRECISION,
                )  # fmt: skip
                tl.store((gr + q * m)[:, None] + column[None, :], to_r, mask=live[:, None] & inside[None, :])
            if MEMORY != NONE:
                arrive(counter, members)
            to_h = tl.zeros((SEQUENCES, UNITS), real)
            to_h = sum_of(
                to_h, gpre + step * R, live, joined + (m + unit) * R, unit < H, R, always, FROM_PRE, PARTS,
                PRECISION,
            )  # fmt: skip
            kept = (kept + tl.reshape(to_h, (SEQUENCES * UNITS,))) * keep_t
            h_grad = tl.where(going, kept, h_grad)
            c_grad = tl.where(going, through * keep_t, c_grad)
    tl.store(gh + mine * H + own, h_grad, mask=exists)
    if CORE == LSTM:
        tl.store(gc + mine * H + own, c_grad, mask=exists)


def joined(core, W, Wh, k, H):
    """(P, R, m + H): the map from [r; h] to `pre`."""
    from_r = W[..., k:]
    if core == LINEAR.value:
        return from_r.contiguous()
    if core != GRU.value:
        return torch.cat((from_r, Wh), 2)
    top = torch.cat((from_r[:, : 2 * H], Wh[:, : 2 * H]), 2)
    n_r, n_h = from_r[:, 2 * H :], Wh[:, 2 * H :]
    new = torch.cat((n_r, torch.zeros_like(n_h)), 2), torch.cat((torch.zeros_like(n_r), n_h), 2)
    return torch.cat((top, *new), 1)


def teamed(core, P, B, m, H, processors):
    """Teams as large as fill the processors, with as little to load for each member as can be: the rows of
    its sequences and of its weights."""
    two, cdiv = triton.next_power_of_2, triton.cdiv
    if INTERPRETED:  # one program after the other: nobody can be waited for
        return Team(2, two(max(1, H)), two(2 + m), two(m), 1)
    rows = max(H, 2 + m)
    gates = 4 if core >= GRU.value else 1

    def cut(sequences):
        most = max(processors // (P * cdiv(B, sequences)), cdiv(rows, 4 * NARROW))
        share = two(cdiv(rows, min(most, cdiv(rows, NARROW))))
        members = cdiv(rows, share)
        units, actions, columns = (max(NARROW, two(cdiv(size, members))) for size in (H, 2 + m, m))
        return Team(sequences, units, actions, columns, members)

    return min((cut(LEAST << k) for k in range(3)), key=lambda team: team.SEQUENCES + gates * team.UNITS)


def launched(kernel, team, P, B, processors, tensors, sizes, constants):
    """Call a kernel for all teams, as many at once as can run at the same time."""
    count = triton.cdiv(B, team.SEQUENCES)
    at_once = max(1, processors // team.members)
    counters = tensors[0].new_zeros(P * count * 32, dtype=torch.int32)
    options = team._asdict()
    members = options.pop("members")
    if not INTERPRETED:
        options.update(num_warps=WARPS, num_stages=1, launch_cooperative_grid=True)
    for first in range(0, P * count, at_once):
        programs = min(at_once, P * count - first) * members
        kernel[(programs,)](*tensors, counters, first, count, members, *sizes, **options, **constants)


def processors_of(x):
    return torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 1


def constants_of(core, memory, disturbed, m, dtype):
    return {
        "CORE": core, "MEMORY": memory, "DISTURBED": disturbed, "GATES": 4 if core >= GRU.value else 1,
        "MP": triton.next_power_of_2(m), "PARTS": 2 if INTERPRETED else WARPS, "PRECISION": PRECISIONS[dtype],
    }  # fmt: skip


def forward(options, inputs, outputs, at, parts):
    """All steps; x's projection is on the tape. `parts` are the tape's, by step."""
    core, memory, T, ragged, _, disturbed = options
    x, (W, b, Wh, bn, Wo, bo), start, _, (keep, noise), lengths = inputs
    _, _, final, _, tape, links = outputs
    xs, hs, cs, rs = parts
    (P, B, _, G), m, H, N, k = xs.shape, start.r.shape[2], start.h.shape[2], final.V.shape[2], x.shape[3]
    n, size, chains = N - T if memory != NONE.value else N, at[-1], links.shape[1] // B
    rs[:, :, 0] = start.r
    if core != LINEAR.value:
        hs[:, :, 0] = start.h
    if core == LSTM.value:
        cs[:, :, 0] = start.c
    grid = (P * B,)
    if memory == NONE.value:
        rs[:, :, 1:] = 0
    else:
        begin_kernel[grid](
            start.s, links, tape, n, N, B, T, size, chains, B * at[6], B * at[7], LIFO=memory == STACK.value
        )
    if core != LINEAR.value or memory != NONE.value:
        matrix = joined(core, W, Wh, k, H)
        bias = torch.cat((b, bn), 1) if core == GRU.value else b
        processors = processors_of(x)
        launched(
            forward_kernel, teamed(core, P, B, m, H, processors), P, B, processors,
            (matrix, bias, Wo, bo, keep, noise, lengths, start.s, final.V, tape, links),
            (B, T, m, H, Wo.shape[1], G, matrix.shape[1], N, n, size, chains, *(B * start for start in at[1:8])),
            dict(constants_of(core, memory, disturbed, m, W.dtype), FROM_R=m, FROM_H=H),
        )  # fmt: skip
    ends = lengths.clamp(max=T) if ragged else None
    for result, by_step in zip((final.r, final.h, final.c), (rs, hs, cs), strict=True):
        if result.numel():
            result.copy_(by_step[:, :, T] if ends is None else at_end(by_step, ends))
    if memory != NONE.value:
        finish_kernel[grid](
            final.s, links, tape, lengths, B, N, T, m, size, chains, B * at[3], B * at[6], B * at[7]
        )


def at_end(by_step, ends):
    """(P, B, T + 1, H), ends (P, B) -> (P, B, H)."""
    return by_step.take_along_dim(ends[..., None, None], 2).squeeze(2)


def backward(options, kept, state, to_f, gout, gpre, at):
    """All steps, from the last: gout and gpre are filled, and the gradients of the final state become those
    of the first."""
    core, memory, _, _, _, disturbed = options
    x, W, Wh, Wo, lengths, s0, _, _, keep, noise, V, _, _, tape, links = kept
    gh, gc, gr, gV, gs = state
    (P, B, T, A), (N, m), H, R, k = gout.shape, V.shape[2:], gh.shape[2], gpre.shape[3], x.shape[3]
    n, size, chains = N - T if memory != NONE.value else N, at[-1], links.shape[1] // B
    if core == LINEAR.value and memory == NONE.value:  # r_0 is all that is read
        gr.copy_(torch.where((lengths > 0).unsqueeze(-1), to_f[:, :, 0], gr))
        return
    matrix, processors = joined(core, W, Wh, k, H), processors_of(x)
    launched(
        backward_kernel, teamed(core, P, B, m, H, processors), P, B, processors,
        (matrix.mT.contiguous(), Wo.mT.contiguous(), to_f, gout, gpre, gh, gc, gr, keep, noise, lengths, s0, V, gV, gs, tape, links),
        (B, T, m, H, A, R, to_f.shape[3], N, n, size, chains, *(B * at[j] for j in (1, 2, 4, 5, 6, 7))),
        dict(constants_of(core, memory, disturbed, m, W.dtype), FROM_ACTIONS=2 + m, FROM_PRE=R),
    )  # fmt: skip
