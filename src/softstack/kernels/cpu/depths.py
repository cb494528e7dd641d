"""One step of a superposition stack for LANES sequences at once, and its reverse (`memory/superposition.py`).

    cells (N w, LANES)   what is at each depth, the top first, and how likely it is that something is there:
                         w = m + 1 rows for each of N cells
    act (A, LANES)       begins with the probabilities of push, pop and, where there is one, no-op; then v

A row of cells is pushed to the row w below it and popped to the row w above it. There is no choice between
numbers, so that what is not a number goes where the equations take it.
"""

from softstack.kernels.cpu.cells import copy
from softstack.kernels.cpu.compiling import inlined, internal
from softstack.kernels.cpu.layout import LANES, SEGMENT
from softstack.kernels.cpu.math import exp
from softstack.kernels.cpu.row import full, if_less, load, store, times_plus


@inlined
def choose(act, raw, count):
    """The softmax of the first `count` rows of raw."""
    most, mass = load(raw, 0), full(raw, 0.0)
    for i in range(1, count):
        most = if_less(most, load(raw, i), load(raw, i), most)
    for i in range(count):
        share = exp(load(raw, i) - most)
        store(act, i, share)
        mass = mass + share
    for i in range(count):
        store(act, i, load(act, i) / mass)


@inlined
def unchoose(g, act, count):
    """The gradients before that softmax, from those after it."""
    mean = full(act, 0.0)
    for i in range(count):
        mean = times_plus(load(act, i), load(g, i), mean)
    for i in range(count):
        store(g, i, load(act, i) * (load(g, i) - mean))


@inlined
def stay(new, count, was, held, lengths, t, begin):
    """Sequences that have ended before step t keep the first `held` rows; the others of `count` are 0."""
    for lane in range(min(LANES, lengths.shape[0] - begin)):
        if t >= lengths[begin + lane]:
            for j in range(count):
                new[j, lane] = was[j, lane] if j < held else 0


@inlined
def mix(was, new, n, N, t, act, at_v, m, lengths, begin):
    """Step t of a stack that began with n cells and may have N: from the cells before it those after it. From
    its length on a sequence keeps what it has. What is read is the first cell."""
    w, noop = m + 1, at_v == 3
    held, count = min(n + t, N) * w, min(n + t + 1, N) * w
    push, pop = load(act, 0), load(act, 1)
    for j in range(count):
        cell = push  # of what is pushed, all is there
        if j < m:
            cell = push * load(act, at_v + j)
        elif j > m:
            cell = push * load(was, j - w)
        if j + w < held:
            cell = times_plus(pop, load(was, j + w), cell)
        if noop and j < held:
            cell = times_plus(load(act, 2), load(was, j), cell)
        store(new, j, cell)
    stay(new, count, was, held, lengths, t, begin)


@inlined
def unmix(was, n, N, t, act, at_v, lengths, begin, gr, g, g_was, out):
    """The reverse: from gr (m, LANES) and the gradients g of the cells after the step, g_was of those before
    it, and into `out` those of the probabilities and of v."""
    m, noop = gr.shape[0], at_v == 3
    w = m + 1
    held, count = min(n + t, N) * w, min(n + t + 1, N) * w
    push, pop, zero = load(act, 0), load(act, 1), full(act, 0.0)
    for k in range(m):
        store(g, k, load(g, k) + load(gr, k))
        store(out, at_v + k, push * load(g, k))
    of_push, of_pop, of_noop = load(g, m), zero, zero
    for j in range(count):
        if j < m:
            of_push = times_plus(load(act, at_v + j), load(g, j), of_push)
        elif j > m:
            of_push = times_plus(load(was, j - w), load(g, j), of_push)
        if j + w < held:
            of_pop = times_plus(load(was, j + w), load(g, j), of_pop)
        if noop and j < held:
            of_noop = times_plus(load(was, j), load(g, j), of_noop)
    for j in range(held):
        cell = zero
        if j + w < count:
            cell = push * load(g, j + w)
        if j >= w:
            cell = times_plus(pop, load(g, j - w), cell)
        if noop and j < count:
            cell = times_plus(load(act, 2), load(g, j), cell)
        store(g_was, j, cell)
    store(out, 0, of_push)
    store(out, 1, of_pop)
    if noop:
        store(out, 2, of_noop)
    stay(g_was, held, g, held, lengths, t, begin)


@inlined
def replay(segment, notes, n, N, t, acts, block, at_v, m, lengths, begin):
    """The cells before each step of a segment whose last step is t, from those noted before its first."""
    D, steps = N * (m + 1), t % SEGMENT
    copy(segment, 0, notes[t // SEGMENT, : min(n + t - steps, N) * (m + 1)])
    for i in range(steps):
        then, at = t - steps + i, i * D
        was, new = segment[at : at + D], segment[at + D : at + 2 * D]
        mix(was, new, n, N, then, acts[then, block], at_v, m, lengths, begin)


@internal
def spread_cells(cells, V, s, count, first):
    """The first cells of V (B, N, m) and s (B, N) as rows, of sequence `first` and those after it; 0 for what
    is beyond the last sequence."""
    B, m = V.shape[0], V.shape[2]
    for i in range(count):
        for lane in range(LANES):
            there = first + lane < B
            for k in range(m):
                cells[i * (m + 1) + k, lane] = V[first + lane, i, k] if there else 0
            cells[i * (m + 1) + m, lane] = s[first + lane, i] if there else 0


@internal
def gather_cells(V, s, count, cells, first):
    """The other way."""
    m = V.shape[2]
    for i in range(count):
        for lane in range(min(LANES, V.shape[0] - first)):
            for k in range(m):
                V[first + lane, i, k] = cells[i * (m + 1) + k, lane]
            s[first + lane, i] = cells[i * (m + 1) + m, lane]
