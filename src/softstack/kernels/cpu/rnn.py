"""StackRNN over a whole sequence on the CPU: the controller, the heads and the memory in one call each way.

What every sequence has at every step lies as (T, blocks, rows, LANES), so that a row is one vector; the tape
of a model holds all of it for the backward pass (`cpu/layout.py`). A long memory is worked as a chain, one
sequence at a time, for its control flow depends on its strengths; a short one by rows as well, and so are one
whose cells stand for depths and a deque. README.md derives the backward pass.

`rows`, `chained` and so on say what there is, as True or None (`Paths`): numba leaves out what a None rules
out, and takes half as long to compile the rest.
"""

from softstack.kernels.cpu.cells import (
    act,
    add_sums,
    clear,
    copy,
    gru_backward,
    hold,
    lstm_backward,
    scale,
    subtract,
    unchoose,
    unsquash,
    untanh,
    zero,
)
from softstack.kernels.cpu.compiling import compiled
from softstack.kernels.cpu.depths import (
    gather_cells,
    mix,
    pop_and_push,
    replay,
    spread_cells,
    unmix,
    unpop_and_unpush,
)
from softstack.kernels.cpu.ends import (
    final_strengths,
    finish_ends,
    spread_ends,
    start_ends,
    step_ends,
    unspread_ends,
    unstep_ends,
)
from softstack.kernels.cpu.lanes import add_back, add_outer
from softstack.kernels.cpu.layout import LANES, SEGMENT
from softstack.kernels.cpu.memory import (
    END,
    column_faults,
    faults,
    finish,
    pop,
    push,
    read,
    settle,
    start,
    unlink,
    unpop,
    unread,
)
from softstack.kernels.cpu.short import rows_before, step, unstep
from softstack.kernels.cpu.tape import (
    chain_of_buffer,
    chain_of_memory,
    depths_of_memory,
    ends_of_memory,
    gather,
    gather_step,
    places,
    rows_of_memory,
    spread,
    spread_lane,
    spread_step,
    tracks,
)
from softstack.kernels.kinds import GRU, LINEAR, LSTM, RNN, STACK
from softstack.kernels.tuples import Weights


@compiled
def forward(room, options, sizes, inputs, outputs, rows, chained, depths, mixed, pops, ends, buffered):
    """Each model over its own sequences. The final V comes in with what the memory holds at first."""
    core, memory, T, ragged, _, disturbed, choices, _ = options
    B, _, k, m, _, K, _, N, n_in, A, R = sizes
    x, weights, before, buffer_before, (keep, noise), lengths = inputs
    y, o, final, buffer, tape, links = outputs
    at = places(options, sizes, chained is not None)
    n = before.s.shape[2]
    at_y, at_v, at_p = A - K, A - K - R, A - K - R - choices  # where y, vectors and probabilities begin
    lifo = memory == STACK
    pre, out, shares, cells, item, row = room.pre, room.out, room.shares, room.cells, room.item, room.row
    heads, tops, fault = room.heads[0], room.tops[0], room.faults[0]
    fronts, left, fault_in = room.heads[1], room.tops[1], room.faults[1]
    keep_t, noise_t, h_in, c_in = room.keep, room.noise, room.h_in, room.c_in
    D = N * (m + 1)  # rows of a stack by depths
    for p in range(x.shape[0]):
        xs, hs, cs, rs, acts, gates = tracks(tape[p], at, options, sizes)
        w = Weights(weights.W[p], weights.b[p], weights.Wh[p], weights.bn[p], weights.Wo[p], weights.bo[p])
        V = final.V[p]
        if chained is not None:
            link, level, first, top = chain_of_memory(tape[p], links[p], at, sizes)
        if buffered is not None:
            link_in, level_in, first_in, top_in = chain_of_buffer(tape[p], links[p], at, sizes)
        for block in range(xs.shape[1]):
            begin = block * LANES
            lanes = min(LANES, B - begin)
            spread(hs[0, block], before.h[p], begin)
            spread(rs[0, block], before.r[p], begin)
            spread(cs[0, block], before.c[p], begin)
            if rows is not None:
                vectors, strengths = rows_of_memory(tape[p], at, sizes, block)
                spread(vectors[: n * m], V.reshape(B, N * m), begin)
                spread(strengths[:n], before.s[p], begin)
            if depths is not None:
                (notes,) = depths_of_memory(tape[p], at, sizes, block)
                cells_was, cells_new = cells[:D], cells[D:]
                spread_cells(cells_was, before.V[p], before.s[p], n, begin)
            if ends is not None:
                vectors, notes = ends_of_memory(tape[p], at, sizes, block)
                cells_was, cells_new = cells[:N], cells[N:]
                start_ends(vectors, cells_was, before.V[p], before.s[p], T, begin)
            for lane in range(lanes):
                q = begin + lane
                if chained is not None:
                    heads[lane], tops[lane] = start(before.s[p], link, level, q, lifo)
                    first[q, 0], top[q, 0] = heads[lane], tops[lane]
                    column_faults(row, V, q, n)
                    fault[lane] = faults(before.s[p], q) + row.sum()
                if buffered is not None:
                    strengths_in = buffer_before.strengths[p]
                    fronts[lane], left[lane] = start(strengths_in, link_in, level_in, q, False)
                    first_in[q, 0], top_in[q, 0] = fronts[lane], left[lane]
                    column_faults(item, x[p], q, n_in)
                    fault_in[lane] = faults(strengths_in, q) + item.sum()
                    buffer.i[p, q] = buffer_before.i[p, q]
            for t in range(T):
                x_t, action = xs[t, block], acts[t, block]
                r_was, r_new, h_was, h_new = rs[t, block], rs[t + 1, block], hs[t, block], hs[t + 1, block]
                c_was, c_new = cs[t, block], cs[t + 1, block]
                if buffered is None:
                    spread_step(x_t, x[p], t, begin)
                else:  # §2.3: take i_{t-1} from the front, then read x_t
                    zero(x_t)
                    for lane in range(lanes):
                        q = begin + lane
                        if not ragged or t < lengths[p, q]:
                            i = buffer.i[p, q]
                            fault_in[lane] += i - i
                            front, strength = pop(link_in, level_in, q, fronts[lane], left[lane], i)
                            for j in range(k):
                                item[j] = fault_in[lane]
                            read(x[p], link_in, level_in, q, front, strength, item)
                            fronts[lane], left[lane] = front, strength
                            first_in[q, t + 1], top_in[q, t + 1] = front, strength
                            for j in range(k):
                                x_t[j, lane] = item[j]
                h_from, c_from = h_was, c_was
                if disturbed:
                    spread_step(keep_t, keep[p].reshape(B, T, 1), t, begin)
                    spread_step(noise_t, noise[p], t, begin)
                    scale(h_in, h_was, keep_t)
                    scale(c_in, c_was, keep_t)
                    h_from, c_from = h_in, c_in
                act(
                    core, w, x_t, r_was, h_from, h_new, c_from, c_new, gates[t, block], pre, out, at_p,
                    at_v, at_y, action, noise_t, depths, disturbed,
                )  # fmt: skip
                if ragged:
                    for lane in range(lanes):
                        if t >= lengths[p, begin + lane]:
                            clear(action, lane)
                            hold(h_new, h_was, lane)
                            hold(c_new, c_was, lane)
                if rows is not None:
                    copy(vectors, (n + t) * m, action[at_v:at_y])
                    step(strengths, vectors, n, t, action, lifo, shares, r_new)
                elif depths is not None:
                    if t % SEGMENT == 0:
                        copy(notes[t // SEGMENT], 0, cells_was)
                    if pops is not None:
                        pop_and_push(
                            cells_was, room.middle, cells_new, n, t, action, at_v, m, lengths[p], begin
                        )
                    if mixed is not None:
                        mix(cells_was, cells_new, n, N, t, action, at_v, m, lengths[p], begin)
                    cells_was, cells_new = cells_new, cells_was
                    copy(r_new, 0, cells_was[:m])
                elif ends is not None:
                    step_ends(cells_was, cells_new, notes, vectors, n, T, t, action, at_v, shares, r_new)
                    cells_was, cells_new = cells_new, cells_was
                else:
                    zero(r_new)
                for lane in range(lanes):
                    q = begin + lane
                    if chained is not None:
                        for j in range(m):
                            V[q, n + t, j] = action[at_v + j, lane]
                        if not ragged or t < lengths[p, q]:
                            u, d = action[0, lane], action[1, lane]
                            head, strength = pop(link, level, q, heads[lane], tops[lane], u)
                            head, strength = push(link, level, q, head, strength, n + t, d, lifo)
                            first[q, t + 1], top[q, t + 1] = head, strength
                            heads[lane], tops[lane] = head, strength
                            fault[lane] += d - d
                            if n + t > 0:
                                fault[lane] += u - u
                            for j in range(m):
                                fault[lane] += V[q, n + t, j] - V[q, n + t, j]
                            for j in range(m):
                                row[j] = fault[lane]
                            read(V, link, level, q, head, strength, row)
                            for j in range(m):
                                r_new[j, lane] = row[j]
                    if ragged and t >= lengths[p, q]:
                        hold(r_new, r_was, lane)
                    elif buffered is not None:
                        buffer.i[p, q] = action[2, lane]
                    if buffered is not None:
                        o[p, q, t] = action[3, lane]
                gather_step(y[p], action, at_y, t, begin)
            gather(final.h[p], hs[T, block], begin)
            gather(final.r[p], rs[T, block], begin)
            gather(final.c[p], cs[T, block], begin)
            if rows is not None:
                gather(V.reshape(B, N * m), vectors, begin)
                gather(final.s[p], strengths[rows_before(n, T) :], begin)
            if depths is not None:
                gather_cells(V, final.s[p], N, cells_was, begin)
            if ends is not None:
                finish_ends(V, final.s[p], vectors, cells_was, T, lengths[p], begin)
            for lane in range(lanes):
                q = begin + lane
                if chained is not None:
                    finish(final.s[p], link, level, q, heads[lane], tops[lane], fault[lane])
                if buffered is not None:
                    finish(
                        buffer.strengths[p], link_in, level_in, q, fronts[lane], left[lane], fault_in[lane]
                    )


@compiled
def backward(
    room, options, sizes, kept, gradients, to_x, rows, chained, depths, mixed, pops, ends, buffered
):  # fmt: skip
    """The gradients of x are made where `to_x`, and where it is buffered."""
    core, memory, T, ragged, _, disturbed, choices, _ = options
    x, W, Wh, Wo, lengths, s0, strengths0, i0, keep, noise, V, s, strengths_in, tape, links = kept
    gy, go, to_state, to_buffer, gx, to_weights = gradients
    B, _, k, m, H, K, _, N, n_in, A, R = sizes
    at = places(options, sizes, chained is not None)
    n = s0.shape[2]
    at_y, at_v = A - K, A - K - R
    lifo = memory == STACK
    h_grad, c_grad, r_grad, s_grad, V_grad, x_grad = room.h, room.c, room.r, room.s, room.V, room.x
    D = N * (m + 1)
    cells_grad, cells_grad_was, segment = room.cells[:D], room.cells[D:], room.segment
    h_kept, c_kept, r_kept, item, row = room.h_kept, room.c_kept, room.r_kept, room.item, room.row
    outs, pres, recs = room.outs, room.pres, room.recs
    keep_t, noise_t, c_in = room.keep, room.noise, room.c_in
    for p in range(x.shape[0]):
        xs, hs, cs, rs, acts, gates = tracks(tape[p], at, options, sizes)
        gVp, gsp = to_state.V[p], to_state.s[p]
        if chained is not None:
            link, level, first, top = chain_of_memory(tape[p], links[p], at, sizes)
        if buffered is not None:
            link_in, level_in, first_in, top_in = chain_of_buffer(tape[p], links[p], at, sizes)
        for block in range(xs.shape[1]):
            begin = block * LANES
            lanes = min(LANES, B - begin)
            spread(h_grad, to_state.h[p], begin)
            spread(r_grad, to_state.r[p], begin)
            if core == LSTM:
                spread(c_grad, to_state.c[p], begin)
            if rows is not None:
                vectors, strengths = rows_of_memory(tape[p], at, sizes, block)
                spread(s_grad, gsp, begin)
                spread(V_grad, gVp.reshape(B, N * m), begin)
            if depths is not None:
                (notes,) = depths_of_memory(tape[p], at, sizes, block)
                spread_cells(cells_grad, gVp, gsp, N, begin)
            if ends is not None:
                vectors, notes = ends_of_memory(tape[p], at, sizes, block)
                spread_ends(V_grad, s_grad, gVp, gsp, T, lengths[p], begin)
            for lane in range(lanes):
                q = begin + lane
                end = min(T, lengths[p, q]) if ragged else T
                if end > 0 and chained is not None:
                    settle(s[p], gsp, q, n + end - 1)
                if end > 0 and buffered is not None:
                    settle(strengths_in[p], to_buffer.strengths[p], q, END)
            for t in range(T - 1, -1, -1):
                action, out, pre, rec = acts[t, block], outs[t, block], pres[t, block], recs[t, block]
                zero(out)
                spread_step(out[at_y:], gy[p], t, begin)
                if buffered is not None:
                    for lane in range(lanes):
                        out[2, lane] = to_buffer.i[p, begin + lane]
                        out[3, lane] = go[p, begin + lane, t]
                if ragged:  # a sequence that has ended has no part in this step: its gradients wait
                    copy(h_kept, 0, h_grad)
                    copy(c_kept, 0, c_grad)
                    copy(r_kept, 0, r_grad)
                    for lane in range(lanes):
                        if t >= lengths[p, begin + lane]:
                            clear(r_grad, lane)
                        elif rows is not None and t == lengths[p, begin + lane] - 1:
                            spread_lane(s_grad, gsp, begin, lane)
                if rows is not None:
                    unstep(
                        strengths, vectors, n, t, action, lifo, room.through, room.left, r_grad, s_grad,
                        V_grad, out,
                    )  # fmt: skip
                    copy(out, at_v, V_grad[(n + t) * m : (n + t + 1) * m])
                if chained is not None:
                    for lane in range(lanes):
                        q = begin + lane
                        if ragged and t >= lengths[p, q]:
                            continue
                        for j in range(m):
                            row[j] = r_grad[j, lane]
                        slot, head = n + t, first[q, t + 1]
                        behind = not lifo and not action[1, lane] > 0
                        unread(V[p], link, level, q, head, top[q, t + 1], slot, slot, behind, row, gsp, gVp)
                        out[1, lane] = gsp[q, slot]
                        gsp[q, slot] = 0
                        popped = link[q, slot] if lifo else END if head == slot else head
                        out[0, lane] = unpop(
                            link,
                            level,
                            q,
                            popped,
                            first[q, t],
                            top[q, t],
                            slot - 1,
                            action[0, lane],
                            lifo,
                            gsp,
                        )
                        if t == 0:
                            unlink(s0[p], gsp, q, out[0, lane], popped, lifo)
                        for j in range(m):
                            out[at_v + j, lane] = gVp[q, slot, j]
                if ends is not None:
                    final_strengths(s_grad, gsp, T, t + 1, lengths[p], begin)
                    unstep_ends(
                        segment, room.middle, room.after, notes, vectors, n, T, t, acts, block, at_v,
                        room.left, r_grad, s_grad, V_grad, out,
                    )  # fmt: skip
                if depths is not None:
                    if t == T - 1 or (t + 1) % SEGMENT == 0:
                        replay(
                            segment, notes, n, N, t, acts, block, at_v, m, room.middle, mixed, pops,
                            lengths[p], begin,
                        )  # fmt: skip
                    cells_was = segment[t % SEGMENT * D : (t % SEGMENT + 1) * D]
                    if pops is not None:
                        unpop_and_unpush(
                            cells_was, room.middle, n, t, action, at_v, lengths[p], begin, r_grad, cells_grad,
                            cells_grad_was, out,
                        )  # fmt: skip
                        unsquash(out, action, 1)
                        unchoose(out, action, 1, choices)
                    if mixed is not None:
                        unmix(
                            cells_was, n, N, t, action, at_v, lengths[p], begin, r_grad, cells_grad,
                            cells_grad_was, out,
                        )  # fmt: skip
                        unchoose(out, action, 0, choices)
                    cells_grad, cells_grad_was = cells_grad_was, cells_grad
                    unsquash(out[at_v:], action[at_v:], m)
                else:
                    unsquash(out, action, at_y)
                if ragged:
                    for lane in range(lanes):
                        if t >= lengths[p, begin + lane]:
                            clear(out, lane)
                if core != LINEAR:
                    add_back(h_grad, Wo[p], 0, out)
                    h_was, c_was, h_new = hs[t, block], cs[t, block], hs[t + 1, block]
                    if disturbed:
                        spread_step(keep_t, keep[p].reshape(B, T, 1), t, begin)
                        scale(room.h_in[t, block], h_was, keep_t)
                        h_was = room.h_in[t, block]
                        if core == LSTM:
                            scale(c_in, c_was, keep_t)
                            c_was = c_in
                        if core == RNN:
                            spread_step(noise_t, noise[p], t, begin)
                            subtract(noise_t, h_new, noise_t)
                            h_new = noise_t
                    if core == RNN:
                        untanh(pre, h_grad, h_new)
                        zero(h_grad)
                    elif core == GRU:
                        gru_backward(pre, rec, h_grad, h_was, gates[t, block])
                    else:
                        lstm_backward(pre, c_grad, h_grad, c_was, gates[t, block])
                        zero(h_grad)
                    if ragged:
                        for lane in range(lanes):
                            if t >= lengths[p, begin + lane]:
                                clear(pre, lane)
                                clear(rec, lane)
                    if core == GRU:
                        add_back(h_grad, Wh[p], 0, pre[: 2 * H])
                        add_back(h_grad, Wh[p, 2 * H :], 0, rec)
                    else:
                        add_back(h_grad, Wh[p], 0, pre)
                    if disturbed:
                        scale(h_grad, h_grad, keep_t)
                        scale(c_grad, c_grad, keep_t)
                zero(r_grad)
                add_back(r_grad, W[p], k, pre)
                if ragged:
                    for lane in range(lanes):
                        if t >= lengths[p, begin + lane]:
                            hold(h_grad, h_kept, lane)
                            hold(c_grad, c_kept, lane)
                            hold(r_grad, r_kept, lane)
                if to_x or buffered is not None:
                    zero(x_grad)
                    add_back(x_grad, W[p], 0, pre)
                if buffered is None:
                    if to_x:
                        gather_step(gx[p], x_grad, 0, t, begin)
                    continue
                for lane in range(lanes):
                    q = begin + lane
                    if ragged and t >= lengths[p, q]:
                        continue
                    for j in range(k):
                        item[j] = x_grad[j, lane]
                    front, of_strengths = first_in[q, t + 1], to_buffer.strengths[p]
                    unread(
                        x[p], link_in, level_in, q, front, top_in[q, t + 1], n_in, END, False, item,
                        of_strengths, gx[p],
                    )  # fmt: skip
                    amount = acts[t - 1, block, 2, lane] if t > 0 else i0[p, q]
                    to_buffer.i[p, q] = unpop(
                        link_in, level_in, q, front, first_in[q, t], top_in[q, t], n_in, amount, False,
                        of_strengths,
                    )  # fmt: skip
                    if t == 0:
                        unlink(strengths0[p], of_strengths, q, to_buffer.i[p, q], front, False)
            if rows is not None:
                for lane in range(lanes):
                    if ragged and lengths[p, begin + lane] <= 0:
                        spread_lane(s_grad, gsp, begin, lane)
                gather(gsp, s_grad[:n], begin)
                gather(gVp.reshape(B, N * m), V_grad[: n * m], begin)
            if ends is not None:
                final_strengths(s_grad, gsp, T, 0, lengths[p], begin)
                unspread_ends(gVp, gsp, V_grad, s_grad, n, T, begin)
            if depths is not None:
                gather_cells(gVp, gsp, n, cells_grad, begin)
            gather(to_state.h[p], h_grad, begin)
            gather(to_state.r[p], r_grad, begin)
            if core == LSTM:
                gather(to_state.c[p], c_grad, begin)
        add_outer(to_weights.W[p], 0, pres, xs)
        add_outer(to_weights.W[p], k, pres, rs)
        add_sums(to_weights.b[p], pres)
        if core == LINEAR:
            continue
        h_in = room.h_in if disturbed else hs
        if core == GRU:
            add_outer(to_weights.Wh[p, : 2 * H], 0, pres, h_in)
            add_outer(to_weights.Wh[p, 2 * H :], 0, recs, h_in)
            add_sums(to_weights.bn[p], recs)
        else:
            add_outer(to_weights.Wh[p], 0, pres, h_in)
        add_outer(to_weights.Wo[p], 0, outs, hs[1:])
        add_sums(to_weights.bo[p], outs)
