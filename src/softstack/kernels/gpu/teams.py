"""A large StackRNN on the GPU, whose weights one program cannot hold: the whole loop by teams of programs.

A team takes some of a model's sequences. Each of its members makes some of the numbers of every step, for all
of these sequences: some units of the controller, some of the actions, and the memories of some sequences. What
one makes the others need, so the members meet between: they write to the tape, wait for each other, and read.

    forward    units of h_t from [r; h]      meet   actions u, d, v from h_t         meet   the memory: r_t    meet
    backward   the memory: gradients of u, d, v   meet   units of `pre` from them   meet   those of [r; h]   meet

`joined` (P, R, m + H) is the map from [r; h] to `pre`, gate by gate: R = H (RNN), 4 H (LSTM, and GRU: reset,
z, n's part from r, n's part from h), A (linear, whose `pre` are its actions). The tape is that of
`gpu/rnn.py`; `at_` is where its parts begin.

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


class Team(NamedTuple):
    """How the work is cut up."""

    SEQUENCES: int  # of a team
    UNITS: int  # of the controller that a member makes
    ACTIONS: int
    COLUMNS: int  # of r
    members: int


@triton.jit
def meet(counter, met, members):
    """Wait until every member of the team is here, and see what all have written: how many have arrived in
    all meetings."""
    met += members
    tl.debug_barrier()
    if members > 1:
        tl.atomic_add(counter, 1, sem="release", scope="gpu")
        here = tl.atomic_add(counter, 0, sem="acquire", scope="gpu")
        while here < met:
            here = tl.atomic_add(counter, 0, sem="acquire", scope="gpu")
        tl.debug_barrier()
    return met


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
def sequences_of(team, teams, B, lane, SEQUENCES: tl.constexpr):
    """The sequences of a team, by lane, and whether there are such."""
    p = (team // teams).to(tl.int64)
    local = team % teams * SEQUENCES + lane
    return p * B + local, local < B


@triton.jit
def sum_of(
    total, at, here, weights, there, count, stride, scale,
    COUNT: tl.constexpr, BLOCK: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """total (S, N) + A W. Row s of A begins at at[s] and is multiplied by scale[s]; column n of W begins at
    weights[n], and its numbers lie `stride` apart. There are `count` of each; COUNT is no less."""
    real: tl.constexpr = total.dtype
    for begin in tl.static_range(0, COUNT, BLOCK):
        j = begin + tl.arange(0, BLOCK)
        a = tl.load(at[:, None] + j[None, :], mask=here[:, None] & (j < count)[None, :], other=0)
        w = tl.load(
            weights[None, :] + j[:, None].to(tl.int64) * stride,
            mask=(j < count)[:, None] & there[None, :], other=0,
        )  # fmt: skip
        a = (a * scale[:, None]).to(w.dtype)
        total = tl.dot(a, w, total, input_precision=PRECISION, out_dtype=real)
    return total


@triton.jit
def remember(
    V, s0, tape, links, t, m, N, n, at_r, at_acts, at_level, at_top, MP: tl.constexpr, LIFO: tl.constexpr
):  # fmt: skip
    """Step t of one sequence's memory, by the actions on its tape: r_t."""
    column = tl.arange(0, MP)
    inside = column < m
    act, level, first, top = row(tape + at_acts, t, 2 + m, 0), tape + at_level, links + N + t, tape + at_top + t
    u, d = tl.load(act), tl.load(act + 1)
    v = tl.load(act + 2 + column, mask=inside, other=0)
    head, strength = pop(links, level, tl.load(first), tl.load(top), u)
    head, strength = push(links, level, head, strength, n + t, d, LIFO)
    tl.store(first + 1, head)
    tl.store(top + 1, strength)
    fault = v - v + (d - d)
    if n + t > 0:
        fault += u - u
    if t == 0:
        fault += column_faults(V, n, m, column) + faults(s0, n)
    r = read(V, links, level, head, strength, fault, m, column)
    tl.store(row(tape + at_r, t + 1, m, column), r, mask=inside)


@triton.jit
def forward_kernel(
    joined, bias, Wo, bo, keep, noise, lengths, s0, V, tape, links, counters, first_team,
    teams, members, B, T, m, H, A, G, R, N, n, size, chains,
    at_h, at_c, at_r, at_acts, at_gates, at_level, at_top,
    CORE: tl.constexpr, MEMORY: tl.constexpr, DISTURBED: tl.constexpr,
    SEQUENCES: tl.constexpr, UNITS: tl.constexpr, ACTIONS: tl.constexpr, COLUMNS: tl.constexpr,
    GATES: tl.constexpr, MP: tl.constexpr, FROM_R: tl.constexpr, FROM_H: tl.constexpr, BLOCK: tl.constexpr,
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
    tapes = tape + q * size
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
    my_tapes = tape + mine * size + own
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
                pre, tapes + at_r + t * m, live, joined + of_row * (m + H), unit < H, m, 1, always, FROM_R,
                BLOCK, PRECISION,
            )  # fmt: skip
            pre = sum_of(
                pre, tapes + at_h + t * H, live, joined + of_row * (m + H) + m, unit < H, H, 1, kept, FROM_H,
                BLOCK, PRECISION,
            )  # fmt: skip
            pre += tl.load(bias + of_row, mask=unit < H, other=0)[None, :]
            pre += tl.load(
                (tapes + t * G)[:, None] + of_row[None, :], mask=live[:, None] & from_W[None, :], other=0
            )
            if CORE == RNN:
                h = tanh(tl.reshape(pre, (SEQUENCES * UNITS,)))
            else:
                old = tl.load(my_tapes + at_h + t * H, mask=going, other=0) * my_kept
                c = old
                if CORE == LSTM:
                    c = tl.load(my_tapes + at_c + t * H, mask=going, other=0) * my_kept
                p1, p2, p3, p4 = apart(pre, SEQUENCES * UNITS)
                h, c, g1, g2, g3, g4 = gated(p1, p2, p3, p4, old, c, CORE)
                note(my_tapes + at_gates + t * 4 * H, H, going, g1, g2, g3, g4)
                if CORE == LSTM:
                    tl.store(my_tapes + at_c + (t + 1) * H, c, mask=going)
            if DISTURBED:
                h += tl.load(noise + (mine * T + t) * H + own, mask=going, other=0)
            tl.store(my_tapes + at_h + (t + 1) * H, h, mask=going)
            met = meet(counter, met, members)
        if MEMORY != NONE:
            out = tl.zeros((SEQUENCES, ACTIONS), real)
            if CORE == LINEAR:
                out = sum_of(
                    out, tapes + at_r + t * m, live, joined + action * m, acts, m, 1, always, FROM_R, BLOCK,
                    PRECISION,
                )  # fmt: skip
                out += tl.load(bias + action, mask=acts, other=0)[None, :]
                out += tl.load(
                    (tapes + t * G)[:, None] + action[None, :], mask=live[:, None] & acts[None, :], other=0
                )
            else:
                out = sum_of(
                    out, tapes + at_h + (t + 1) * H, live, Wo + action * H, acts, H, 1, always, FROM_H,
                    BLOCK, PRECISION,
                )  # fmt: skip
                out += tl.load(bo + action, mask=acts, other=0)[None, :]
            out = tl.sigmoid(out)
            tl.store(
                (tapes + at_acts + t * (2 + m))[:, None] + action[None, :], out,
                mask=live[:, None] & acts[None, :],
            )  # fmt: skip
            tl.store(
                (V + (q * N + n + t) * m)[:, None] + action[None, :] - 2, out,
                mask=live[:, None] & (acts & (action >= 2))[None, :],
            )  # fmt: skip
            met = meet(counter, met, members)
            for lane in range(member, SEQUENCES, members):
                one, is_there = sequences_of(team, teams, B, lane, SEQUENCES)
                if is_there:
                    if t < tl.load(lengths + one):
                        remember(
                            V + one * N * m, s0 + one * n, tape + one * size, links + one * chains, t, m, N,
                            n, at_r, at_acts, at_level, at_top, MP, MEMORY == STACK,
                        )  # fmt: skip
            met = meet(counter, met, members)


@triton.jit
def unremember(
    V, s0, gr, gs, gV, out, tape, links, t, m, N, n, at_acts, at_level, at_top, MP: tl.constexpr,
    LIFO: tl.constexpr,
):  # fmt: skip
    """The reverse of `remember`: the gradients of u, d and v before their sigmoids."""
    column = tl.arange(0, MP)
    inside = column < m
    act = row(tape + at_acts, t, 2 + m, 0)
    u, d, v = tl.load(act), tl.load(act + 1), tl.load(act + 2 + column, mask=inside, other=0)
    g = tl.load(gr + column, mask=inside, other=0)
    gu, gd, popped = undo(
        V, links, tape + at_level, links + N, tape + at_top, n, t, u, d, g, gs, gV, m, column, LIFO
    )
    if t == 0:
        unlink(s0, gs, n, gu, popped, LIFO)
    gv = tl.load(row(gV, n + t, m, column), mask=inside, other=0)
    tl.store(out, gu * u * (1 - u))
    tl.store(out + 1, gd * d * (1 - d))
    tl.store(out + 2 + column, gv * v * (1 - v), mask=inside)


@triton.jit
def backward_kernel(
    joined, Wo, to_f, gout, gpre, gh, gc, gr, keep, noise, lengths, s0, V, gV, gs, tape, links, counters,
    first_team, teams, members, B, T, m, H, A, R, N, n, size, chains,
    at_h, at_c, at_acts, at_gates, at_level, at_top,
    CORE: tl.constexpr, MEMORY: tl.constexpr, DISTURBED: tl.constexpr,
    SEQUENCES: tl.constexpr, UNITS: tl.constexpr, ACTIONS: tl.constexpr, COLUMNS: tl.constexpr,
    GATES: tl.constexpr, MP: tl.constexpr, FROM_ACTIONS: tl.constexpr, FROM_PRE: tl.constexpr,
    BLOCK: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    real: tl.constexpr = tape.dtype.element_ty
    team, member = first_team + tl.program_id(0) // members, tl.program_id(0) % members
    counter, met = counters + team * 32, 0
    q, there = sequences_of(team, teams, B, tl.arange(0, SEQUENCES), SEQUENCES)
    ends = tl.load(lengths + q, mask=there, other=0).to(tl.int32)
    end = tl.minimum(tl.max(ends, 0), T)
    p = (team // teams).to(tl.int64)
    joined, Wo = joined + p * R * (m + H), Wo + p * A * H
    always = tl.full((SEQUENCES,), 1, real)
    column = member * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < m
    unit = member * UNITS + tl.arange(0, UNITS)
    flat = tl.arange(0, SEQUENCES * UNITS)
    mine, exists = sequences_of(team, teams, B, flat // UNITS, SEQUENCES)
    own = member * UNITS + flat % UNITS
    exists &= own < H
    until = tl.load(lengths + mine, mask=exists, other=0).to(tl.int32)
    my_tapes = tape + mine * size + own
    h_grad = tl.load(gh + mine * H + own, mask=exists, other=0)
    c_grad = tl.zeros_like(h_grad)
    if CORE == LSTM:
        c_grad = tl.load(gc + mine * H + own, mask=exists, other=0)
    for back in range(end):
        t = end - 1 - back
        live, going = t < ends, t < until
        step = q * T + t
        if MEMORY != NONE:
            for lane in range(member, SEQUENCES, members):
                one, is_there = sequences_of(team, teams, B, lane, SEQUENCES)
                if is_there:
                    if t < tl.load(lengths + one):
                        unremember(
                            V + one * N * m, s0 + one * n, gr + one * m, gs + one * N, gV + one * N * m,
                            gout + (one * T + t) * A, tape + one * size, links + one * chains, t, m, N, n,
                            at_acts, at_level, at_top, MP, MEMORY == STACK,
                        )  # fmt: skip
            met = meet(counter, met, members)
        to_r = tl.zeros((SEQUENCES, COLUMNS), real)
        if CORE == LINEAR:
            at = (to_f + step * m)[:, None] + column[None, :]
            to_r += tl.load(at, mask=live[:, None] & inside[None, :], other=0)
            to_r = sum_of(
                to_r, gout + step * A, live, joined + column, inside, 2 + m, m, always, FROM_ACTIONS, BLOCK,
                PRECISION,
            )  # fmt: skip
            tl.store((gr + q * m)[:, None] + column[None, :], to_r, mask=live[:, None] & inside[None, :])
            met = meet(counter, met, members)
        else:
            to_h = tl.zeros((SEQUENCES, UNITS), real)
            if MEMORY != NONE:
                to_h = sum_of(
                    to_h, gout + step * A, live, Wo + unit, unit < H, 2 + m, H, always, FROM_ACTIONS, BLOCK,
                    PRECISION,
                )  # fmt: skip
            grad = h_grad + tl.reshape(to_h, (SEQUENCES * UNITS,))
            grad += tl.load(to_f + (mine * T + t) * H + own, mask=going, other=0)
            pre = gpre + (mine * T + t) * R + own
            keep_t = tl.full((SEQUENCES * UNITS,), 1, real)
            if DISTURBED:
                keep_t = tl.load(keep + mine * T + t, mask=going, other=1)
            kept = tl.zeros_like(grad)
            through = c_grad
            if CORE == RNN:
                h = tl.load(my_tapes + at_h + (t + 1) * H, mask=going, other=0)
                if DISTURBED:
                    h -= tl.load(noise + (mine * T + t) * H + own, mask=going, other=0)
                tl.store(pre, grad * (1 - h * h), mask=going)
            else:
                g1, g2, g3, g4 = noted(my_tapes + at_gates + t * 4 * H, H, going)
                h = tl.load(my_tapes + at_h + t * H, mask=going, other=0) * keep_t
                c, c_new = h, h
                if CORE == LSTM:
                    c = tl.load(my_tapes + at_c + t * H, mask=going, other=0) * keep_t
                    c_new = tl.load(my_tapes + at_c + (t + 1) * H, mask=going, other=0)
                p1, p2, p3, p4, through, kept = ungated(grad, c_grad, g1, g2, g3, g4, h, c, c_new, CORE)
                note(pre, H, going, p1, p2, p3, p4)
            met = meet(counter, met, members)
            to_h = tl.zeros((SEQUENCES, UNITS), real)
            to_h = sum_of(
                to_h, gpre + step * R, live, joined + m + unit, unit < H, R, m + H, always, FROM_PRE, BLOCK,
                PRECISION,
            )  # fmt: skip
            kept = (kept + tl.reshape(to_h, (SEQUENCES * UNITS,))) * keep_t
            h_grad = tl.where(going, kept, h_grad)
            c_grad = tl.where(going, through * keep_t, c_grad)
            if MEMORY != NONE or t == 0:
                to_r = sum_of(
                    to_r, gpre + step * R, live, joined + column, inside, R, m + H, always, FROM_PRE, BLOCK,
                    PRECISION,
                )  # fmt: skip
                tl.store((gr + q * m)[:, None] + column[None, :], to_r, mask=live[:, None] & inside[None, :])
                met = meet(counter, met, members)
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
        options.update(num_warps=4, launch_cooperative_grid=True)
    for first in range(0, P * count, at_once):
        programs = min(at_once, P * count - first) * members
        kernel[(programs,)](*tensors, counters, first, count, members, *sizes, **options, **constants)


def processors_of(x):
    return torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 1


def constants_of(core, memory, disturbed, m, dtype):
    return {
        "CORE": core, "MEMORY": memory, "DISTURBED": disturbed, "GATES": 4 if core >= GRU.value else 1,
        "MP": triton.next_power_of_2(m), "BLOCK": 16 if INTERPRETED else 64, "PRECISION": PRECISIONS[dtype],
    }  # fmt: skip


def forward(options, inputs, outputs, at, parts):
    """All steps; x's projection is on the tape. `parts` are the tape's, by step."""
    core, memory, T, ragged, _, disturbed = options
    x, (W, b, Wh, bn, Wo, bo), start, _, (keep, noise), lengths = inputs
    _, _, final, _, tape, links = outputs
    xs, hs, cs, rs = parts[:4]
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
        begin_kernel[grid](start.s, links, tape, n, N, size, chains, at[6], at[7], LIFO=memory == STACK.value)
    if core != LINEAR.value or memory != NONE.value:
        matrix = joined(core, W, Wh, k, H)
        bias = torch.cat((b, bn), 1) if core == GRU.value else b
        processors = processors_of(x)
        launched(
            forward_kernel, teamed(core, P, B, m, H, processors), P, B, processors,
            (matrix, bias, Wo, bo, keep, noise, lengths, start.s, final.V, tape, links),
            (B, T, m, H, Wo.shape[1], G, matrix.shape[1], N, n, size, chains, *at[1:8]),
            dict(constants_of(core, memory, disturbed, m, tape.dtype), FROM_R=m, FROM_H=H),
        )  # fmt: skip
    ends = lengths.clamp(max=T) if ragged else None
    for result, by_step in zip((final.r, final.h, final.c), (rs, hs, cs), strict=True):
        if result.numel():
            result.copy_(by_step[:, :, T] if ends is None else at_end(by_step, ends))
    if memory != NONE.value:
        finish_kernel[grid](final.s, links, tape, lengths, N, T, m, size, chains, at[3], at[6], at[7])


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
        (matrix, Wo, to_f, gout, gpre, gh, gc, gr, keep, noise, lengths, s0, V, gV, gs, tape, links),
        (B, T, m, H, A, matrix.shape[1], N, n, size, chains, *(at[j] for j in (1, 2, 4, 5, 6, 7))),
        dict(constants_of(core, memory, disturbed, m, tape.dtype), FROM_ACTIONS=2 + m, FROM_PRE=R),
    )  # fmt: skip
