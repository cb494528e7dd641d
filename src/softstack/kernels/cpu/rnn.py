"""StackRNN over a whole sequence on the CPU: the controller, the heads and the memory in one call each way.

    P models   B sequences each, in nb blocks of LANES   T steps   k inputs   m memory width   H hidden
    A = 2 + m + K actions: u, d, v and y   G rows of the map that sees [x; r], C = k + m columns:
    the heads' A (linear), H (RNN), 3 H (GRU), 4 H (LSTM)

What every sequence has at every step lies as (T, nb, rows, LANES), flat, so that a row is one vector; the
`tape` of a model holds all of it for the backward pass. A long memory is worked one sequence at a time, for
its control flow depends on its strengths; a short one by rows as well. README.md derives the backward pass.
"""

import numpy as np

from softstack.kernels.cpu.cells import (
    clear,
    copy,
    gru,
    gru_backward,
    hold,
    lstm,
    lstm_backward,
    sigmoids,
    tanhs,
    unsquash,
    untanh,
    zero,
)
from softstack.kernels.cpu.compiling import compiled
from softstack.kernels.cpu.lanes import add_map, add_outer, affine
from softstack.kernels.cpu.layout import KEPT, LANES, SHORT
from softstack.kernels.cpu.memory import (
    END,
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
from softstack.kernels.cpu.tape import gather, layout, spread, spread_lane
from softstack.kernels.kinds import GRU, LINEAR, LSTM, NONE, RNN, STACK


@compiled
def forward(
    core, memory, ragged, buffered, x, W, b, Wh, bn, Wo, bo, h0, c0, r0, s0, strengths0, i0, lengths, V,
    s, strengths, y, o, h, c, r, i, tape, links,
):  # fmt: skip
    """Each model over its own sequences. x (P, B, T, k), W (P, G, C), b (P, G), Wh (P, G, H), bn (P, H),
    Wo (P, A, H), bo (P, A), h0 and c0 (P, B, H), r0 (P, B, m), lengths (P, B), where `ragged`: steps at or
    after it change nothing. V (P, B, N, m) comes in with what the memory holds before the first step, and s0
    (P, B, N - T) are the strengths of that. Where `buffered`, x (P, B, n_in, k) and strengths0 (P, B, n_in)
    are the input buffer, and i0 (P, B) is taken from it before the first of T steps.

    Out: V, y (P, B, T, K), o (P, B, T) with buffers, the final s (P, B, N), strengths, i, h, c and r, and for
    the backward pass the tape and the links.
    """
    P, B, n_in, k = x.shape
    T, K, H, m, N = y.shape[2], y.shape[3], h0.shape[2], r0.shape[2], V.shape[2]
    at_v = 4 if buffered else 2  # the strengths u, d, and i, o come before v
    at_y = at_v + m
    A, C, G = at_y + K, k + m, b.shape[1]
    HL, mL, AL, SL = H * LANES, m * LANES, A * LANES, KEPT[core] * H * LANES
    nb, n = -(-B // LANES), N - T if memory != NONE else N
    lifo, short = memory == STACK, memory != NONE and N <= SHORT
    at_x, at_h, at_c, at_r, at_acts, at_gates, at_level, at_top, at_level_in, at_top_in, end = layout(
        core, memory, short, B, T, k, m, H, A, N, n_in, buffered
    )
    chains = B * N + B * (T + 1)  # of the memory; those of the input buffer follow
    item = np.empty(k, x.dtype)
    pre, out, row = np.empty(G * LANES, x.dtype), np.empty(AL, x.dtype), np.empty(m, x.dtype)
    heads, fronts = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    held, left = np.empty(LANES, x.dtype), np.empty(LANES, x.dtype)  # the strengths of those
    NmL, history = N * mL, rows_before(n, T + 1) * LANES
    weights = np.empty(N * LANES if short else 0, x.dtype)
    for p in range(P):
        xs, hs, cs, rs = tape[p, at_x:at_h], tape[p, at_h:at_c], tape[p, at_c:at_r], tape[p, at_r:at_acts]
        acts, gates = tape[p, at_acts:at_gates], tape[p, at_gates:at_level]
        w, wb, wh = W[p].reshape(G * C), b[p], Wh[p].reshape(G * H)
        wn, wo, wbo = bn[p], Wo[p].reshape(Wo.shape[1] * H), bo[p]
        Vp = V[p]
        if memory != NONE and not short:
            level, top = tape[p, at_level:at_top].reshape(B, N), tape[p, at_top:at_level_in].reshape(B, T + 1)
            link, first = links[p, : B * N].reshape(B, N), links[p, B * N : chains].reshape(B, T + 1)
        if buffered:
            level_in = tape[p, at_level_in:at_top_in].reshape(B, n_in)
            top_in = tape[p, at_top_in:end].reshape(B, T + 1)
            link_in = links[p, chains : chains + B * n_in].reshape(B, n_in)
            first_in = links[p, chains + B * n_in :].reshape(B, T + 1)
        for block in range(nb):
            lanes = min(LANES, B - block * LANES)
            row0 = block * LANES
            spread(hs[block * HL : (block + 1) * HL], h0[p], block)
            spread(rs[block * mL : (block + 1) * mL], r0[p], block)
            if core == LSTM:
                spread(cs[block * HL : (block + 1) * HL], c0[p], block)
            if short:
                vectors = tape[p, at_level + block * NmL : at_level + (block + 1) * NmL]
                log = tape[p, at_top + block * history : at_top + (block + 1) * history]
                spread(vectors, Vp.reshape(B, N * m)[:, : n * m], block)
                spread(log, s0[p], block)
            elif memory != NONE:
                for lane in range(lanes):
                    q = row0 + lane
                    heads[lane], held[lane] = start(s0[p], link, level, q, lifo)
                    first[q, 0], top[q, 0] = heads[lane], held[lane]
            if buffered:
                for lane in range(lanes):
                    q = row0 + lane
                    fronts[lane], left[lane] = start(strengths0[p], link_in, level_in, q, False)
                    first_in[q, 0], top_in[q, 0] = fronts[lane], left[lane]
                    i[p, q] = i0[p, q]
            for t in range(T):
                was = t * nb + block
                new = was + nb
                given = xs[was * k * LANES : (was + 1) * k * LANES]
                if buffered:  # §2.3: take i_{t-1} from the front, then read x_t
                    zero(given)
                    for lane in range(lanes):
                        q = row0 + lane
                        if not ragged or t < lengths[p, q]:
                            front, strength = pop(link_in, level_in, q, fronts[lane], left[lane], i[p, q])
                            read(x[p], link_in, level_in, q, front, strength, item)
                            fronts[lane], left[lane] = front, strength
                            first_in[q, t + 1], top_in[q, t + 1] = front, strength
                            for j in range(k):
                                given[j * LANES + lane] = item[j]
                else:
                    spread(given, x[p, :, t], block)
                seen = G if core in (RNN, LSTM) else 2 * H if core == GRU else 0  # rows that see h
                affine(pre, seen, wb, w, xs, was * k * LANES, k, rs, was * mL, m, wh, hs, was * HL, H)
                affine(
                    pre[seen * LANES :], G - seen, wb[seen:], w[seen * C :], xs, was * k * LANES, k,
                    rs, was * mL, m, wh, hs, 0, 0,
                )  # fmt: skip
                act = acts[was * AL : (was + 1) * AL]
                h_was, h_new = hs[was * HL : (was + 1) * HL], hs[new * HL : (new + 1) * HL]
                raw = pre
                if core != LINEAR:
                    gate = gates[was * SL : (was + 1) * SL]
                    if core == RNN:
                        tanhs(h_new, pre)
                    elif core == GRU:
                        rec = gate[3 * HL :]
                        affine(rec, H, wn, w, xs, 0, 0, rs, 0, 0, wh[2 * H * H :], hs, was * HL, H)
                        gru(h_new, h_was, gate, pre)
                    else:
                        c_new, c_was = cs[new * HL : (new + 1) * HL], cs[was * HL : (was + 1) * HL]
                        lstm(h_new, c_new, gate[4 * HL :], gate, c_was, pre)
                    affine(out, A, wbo, w, xs, 0, 0, rs, 0, 0, wo, hs, new * HL, H)
                    raw = out
                sigmoids(act[: at_y * LANES], raw)
                copy(act[at_y * LANES :], raw[at_y * LANES :])
                r_was, r_new = rs[was * mL : (was + 1) * mL], rs[new * mL : (new + 1) * mL]
                if ragged:
                    for lane in range(lanes):
                        if t >= lengths[p, row0 + lane]:
                            clear(act, lane)
                            hold(h_new, h_was, lane)
                            if core == LSTM:
                                hold(cs[new * HL : (new + 1) * HL], cs[was * HL : (was + 1) * HL], lane)
                if short:
                    copy(vectors[(n + t) * mL : (n + t + 1) * mL], act[at_v * LANES :])
                    step(log, vectors, n, t, act, m, lifo, weights, r_new)
                else:
                    zero(r_new)
                for lane in range(lanes):
                    q = row0 + lane
                    if memory != NONE and not short:
                        for j in range(m):
                            Vp[q, n + t, j] = act[(at_v + j) * LANES + lane]
                        if not ragged or t < lengths[p, q]:
                            head, strength = pop(link, level, q, heads[lane], held[lane], act[lane])
                            d = act[LANES + lane]
                            head, strength = push(link, level, q, head, strength, n + t, d, lifo)
                            read(Vp, link, level, q, head, strength, row)
                            first[q, t + 1], top[q, t + 1] = head, strength
                            heads[lane], held[lane] = head, strength
                            for j in range(m):
                                r_new[j * LANES + lane] = row[j]
                    if ragged and t >= lengths[p, q]:
                        hold(r_new, r_was, lane)
                    elif buffered:
                        i[p, q] = act[2 * LANES + lane]
                    if buffered:
                        o[p, q, t] = act[3 * LANES + lane]
                gather(y[p, :, t], act[at_y * LANES :], block)
            last = T * nb + block
            gather(h[p], hs[last * HL : (last + 1) * HL], block)
            gather(r[p], rs[last * mL : (last + 1) * mL], block)
            if core == LSTM:
                gather(c[p], cs[last * HL : (last + 1) * HL], block)
            if short:
                gather(Vp.reshape(B, N * m), vectors, block)
                gather(s[p], log[rows_before(n, T) * LANES :], block)
            for lane in range(lanes):
                q = row0 + lane
                if memory != NONE and not short:
                    finish(s[p], link, level, q, heads[lane], held[lane])
                if buffered:
                    finish(strengths[p], link_in, level_in, q, fronts[lane], left[lane])


@compiled
def backward(
    core, memory, ragged, buffered, x, W, Wh, Wo, s0, strengths0, i0, lengths, V, s, strengths, tape,
    links, gy, go, gh, gc, gr, gV, gs, gi, gstrengths, to_x, gx, gW, gb, gWh, gbn, gWo, gbo,
):  # fmt: skip
    """gy (P, B, T, K), go (P, B, T) and the gradients of the final state, shaped as that is: gh, gc, gr, gV,
    gs, gi and gstrengths.

    Out: the gradients of the first state, in their place; of x, where `to_x`; and of the weights, added to
    what is there.
    """
    P, B, T, K = gy.shape
    C, G, H, m, N, n_in = W.shape[2], W.shape[1], gh.shape[2], gr.shape[2], V.shape[2], x.shape[2]
    at_v = 4 if buffered else 2
    at_y = at_v + m
    k, A = C - m, at_y + K
    HL, mL, AL, GL, SL = H * LANES, m * LANES, A * LANES, G * LANES, KEPT[core] * H * LANES
    nb, n = -(-B // LANES), N - T if memory != NONE else N
    lifo, short = memory == STACK, memory != NONE and N <= SHORT
    at_x, at_h, at_c, at_r, at_acts, at_gates, at_level, at_top, at_level_in, at_top_in, end = layout(
        core, memory, short, B, T, k, m, H, A, N, n_in, buffered
    )
    chains = B * N + B * (T + 1)
    one, item = np.ones(LANES, W.dtype), np.empty(k, W.dtype)
    row = np.empty(m, W.dtype)
    h_grad, c_grad, r_grad = np.empty(HL, W.dtype), np.empty(HL, W.dtype), np.empty(mL, W.dtype)
    h_kept, c_kept, r_kept = np.empty(HL, W.dtype), np.empty(HL, W.dtype), np.empty(mL, W.dtype)
    x_grad = np.empty(k * LANES, W.dtype)
    NmL, history = N * mL, rows_before(n, T + 1) * LANES
    rows = N * LANES if short else 0
    s_grad, V_grad = np.empty(rows, W.dtype), np.empty(rows * m, W.dtype)
    through, left = np.empty(rows, W.dtype), np.empty(rows, W.dtype)
    # of one model, every step: what the weights' gradients are made of
    outs = np.empty(T * nb * AL, W.dtype)
    pres = outs if core == LINEAR else np.empty(T * nb * GL, W.dtype)
    recs = np.empty(T * nb * HL if core == GRU else 0, W.dtype)
    for p in range(P):
        xs, hs, cs, rs = tape[p, at_x:at_h], tape[p, at_h:at_c], tape[p, at_c:at_r], tape[p, at_r:at_acts]
        acts, gates = tape[p, at_acts:at_gates], tape[p, at_gates:at_level]
        w, wh, wo = W[p].reshape(G * C), Wh[p].reshape(G * H), Wo[p].reshape(Wo.shape[1] * H)
        Vp, sp, gVp, gsp = V[p], s[p], gV[p], gs[p]
        if memory != NONE and not short:
            level, top = tape[p, at_level:at_top].reshape(B, N), tape[p, at_top:at_level_in].reshape(B, T + 1)
            link, first = links[p, : B * N].reshape(B, N), links[p, B * N : chains].reshape(B, T + 1)
        if buffered:
            level_in = tape[p, at_level_in:at_top_in].reshape(B, n_in)
            top_in = tape[p, at_top_in:end].reshape(B, T + 1)
            link_in = links[p, chains : chains + B * n_in].reshape(B, n_in)
            first_in = links[p, chains + B * n_in :].reshape(B, T + 1)
        for block in range(nb):
            lanes = min(LANES, B - block * LANES)
            row0 = block * LANES
            spread(h_grad, gh[p], block)
            spread(r_grad, gr[p], block)
            if core == LSTM:
                spread(c_grad, gc[p], block)
            if short:
                vectors = tape[p, at_level + block * NmL : at_level + (block + 1) * NmL]
                log = tape[p, at_top + block * history : at_top + (block + 1) * history]
                spread(s_grad, gsp, block)
                spread(V_grad, gVp.reshape(B, N * m), block)
            for lane in range(lanes):
                q = row0 + lane
                made = min(T, lengths[p, q]) if ragged else T  # steps
                if made > 0 and memory != NONE and not short:
                    settle(sp, gsp, q, n + made - 1)
                if made > 0 and buffered:
                    settle(strengths[p], gstrengths[p], q, END)
            for t in range(T - 1, -1, -1):
                was = t * nb + block
                new = was + nb
                act, out = acts[was * AL : (was + 1) * AL], outs[was * AL : (was + 1) * AL]
                zero(out[: at_y * LANES])
                spread(out[at_y * LANES :], gy[p, :, t], block)
                if buffered:
                    for lane in range(lanes):
                        out[2 * LANES + lane] = gi[p, row0 + lane]
                        out[3 * LANES + lane] = go[p, row0 + lane, t]
                if ragged:  # a sequence that has ended has no part in this step: its gradients wait
                    copy(h_kept, h_grad)
                    copy(c_kept, c_grad)
                    copy(r_kept, r_grad)
                    for lane in range(lanes):
                        if t >= lengths[p, row0 + lane]:
                            clear(r_grad, lane)
                        elif short and t == lengths[p, row0 + lane] - 1:
                            spread_lane(s_grad, gsp, row0, lane)
                if short:
                    unstep(log, vectors, n, t, act, m, lifo, through, left, r_grad, s_grad, V_grad, out)
                    copy(out[at_v * LANES : at_y * LANES], V_grad[(n + t) * mL :])
                elif memory != NONE:
                    for lane in range(lanes):
                        q = row0 + lane
                        if ragged and t >= lengths[p, q]:
                            continue
                        for j in range(m):
                            row[j] = r_grad[j * LANES + lane]
                        slot, head = n + t, first[q, t + 1]
                        behind = not lifo and not act[LANES + lane] > 0
                        unread(Vp, link, level, q, head, top[q, t + 1], slot, slot, behind, row, gsp, gVp)
                        out[LANES + lane] = gsp[q, slot]
                        gsp[q, slot] = 0
                        popped = link[q, slot] if lifo else END if head == slot else head
                        out[lane] = unpop(
                            link, level, q, popped, first[q, t], top[q, t], slot - 1, act[lane], lifo, gsp
                        )
                        if t == 0:
                            unlink(s0[p], gsp, q, out[lane], popped, lifo)
                        for j in range(m):
                            out[(at_v + j) * LANES + lane] = gVp[q, n + t, j]
                unsquash(out[: at_y * LANES], act)
                if ragged:
                    for lane in range(lanes):
                        if t >= lengths[p, row0 + lane]:
                            clear(out, lane)
                pre = pres[was * GL : (was + 1) * GL]
                if core != LINEAR:
                    gate = gates[was * SL : (was + 1) * SL]
                    rec = recs[was * HL : (was + 1) * HL]
                    add_map(h_grad, 0, wo, 0, 1, H, H, A, outs, was * AL)
                    if core == RNN:
                        untanh(pre, h_grad, hs[new * HL : (new + 1) * HL])
                        zero(h_grad)
                    elif core == GRU:
                        gru_backward(pre, rec, h_grad, hs[was * HL : (was + 1) * HL], gate)
                    else:
                        lstm_backward(
                            pre, c_grad, h_grad, gate[4 * HL :], cs[was * HL : (was + 1) * HL], gate
                        )
                        zero(h_grad)
                    if ragged:
                        for lane in range(lanes):
                            if t >= lengths[p, row0 + lane]:
                                clear(pre, lane)
                                clear(rec, lane)
                    if core == GRU:
                        add_map(h_grad, 0, wh, 0, 1, H, H, 2 * H, pres, was * GL)
                        add_map(h_grad, 0, wh, 2 * H * H, 1, H, H, H, recs, was * HL)
                    else:
                        add_map(h_grad, 0, wh, 0, 1, H, H, G, pres, was * GL)
                zero(r_grad)
                add_map(r_grad, 0, w, k, 1, C, m, G, pres, was * GL)
                if ragged:
                    for lane in range(lanes):
                        if t >= lengths[p, row0 + lane]:
                            hold(h_grad, h_kept, lane)
                            hold(c_grad, c_kept, lane)
                            hold(r_grad, r_kept, lane)
                if to_x or buffered:
                    zero(x_grad)
                    add_map(x_grad, 0, w, 0, 1, C, k, G, pres, was * GL)
                if buffered:
                    for lane in range(lanes):
                        q = row0 + lane
                        if ragged and t >= lengths[p, q]:
                            continue
                        for j in range(k):
                            item[j] = x_grad[j * LANES + lane]
                        front = first_in[q, t + 1]
                        unread(
                            x[p], link_in, level_in, q, front, top_in[q, t + 1], n_in, END, False, item,
                            gstrengths[p], gx[p],
                        )  # fmt: skip
                        taken = acts[((was - nb) * A + 2) * LANES + lane] if t > 0 else i0[p, q]
                        gi[p, q] = unpop(
                            link_in, level_in, q, front, first_in[q, t], top_in[q, t], n_in, taken, False,
                            gstrengths[p],
                        )  # fmt: skip
                        if t == 0:
                            unlink(strengths0[p], gstrengths[p], q, gi[p, q], front, False)
                elif to_x:
                    gather(gx[p, :, t], x_grad, block)
            if short:
                for lane in range(lanes):
                    if ragged and lengths[p, row0 + lane] <= 0:
                        spread_lane(s_grad, gsp, row0, lane)
                gather(gsp[:, :n], s_grad, block)
                gather(gVp.reshape(B, N * m)[:, : n * m], V_grad, block)
            gather(gh[p], h_grad, block)
            gather(gr[p], r_grad, block)
            if core == LSTM:
                gather(gc[p], c_grad, block)
        steps = T * nb
        to_w, to_wh, to_wo = gW[p].reshape(G * C), gWh[p].reshape(G * H), gWo[p].reshape(Wo.shape[1] * H)
        add_outer(to_w, 0, C, G, k, pres, 0, GL, xs, 0, k * LANES, steps)
        add_outer(to_w, k, C, G, m, pres, 0, GL, rs, 0, mL, steps)
        add_outer(gb[p], 0, 1, G, 1, pres, 0, GL, one, 0, 0, steps)
        if core != LINEAR:
            if core == GRU:
                add_outer(to_wh, 0, H, 2 * H, H, pres, 0, GL, hs, 0, HL, steps)
                add_outer(to_wh, 2 * H * H, H, H, H, recs, 0, HL, hs, 0, HL, steps)
                add_outer(gbn[p], 0, 1, H, 1, recs, 0, HL, one, 0, 0, steps)
            else:
                add_outer(to_wh, 0, H, G, H, pres, 0, GL, hs, 0, HL, steps)
            add_outer(to_wo, 0, H, A, H, outs, 0, AL, hs, nb * HL, HL, steps)
            add_outer(gbo[p], 0, 1, A, 1, outs, 0, AL, one, 0, 0, steps)
