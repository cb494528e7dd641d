"""One step of a stack whose cells stand for depths, for LANES sequences at once, and its reverse: `mix` and
`unmix` of a superposition stack, `pop_and_push` and its reverse of a multipop stack (`memory/`).

    cells (N w, LANES)   what is at each depth, the top first, and how likely it is that something is there:
                         w = m + 1 rows for each of N cells
    act (A, LANES)       begins with the probabilities of push, pop and, where there is one, no-op; then v. Of
                         a multipop stack with d, and the probabilities of 0, 1, ... pops; then v

A row of cells is pushed to the row w below it and popped to the row w above it. There is no choice between
numbers, so that what is not a number goes where the equations take it.
"""

from softstack.kernels.cpu.cells import copy
from softstack.kernels.cpu.compiling import inlined, internal
from softstack.kernels.cpu.layout import LANES, SEGMENT
from softstack.kernels.cpu.row import full, load, store, times_plus


@inlined
def stay(new, count, was, count_was, lengths, t, begin):
    """Sequences that have ended before step t keep their first `count_was` rows; the rest of `count` is 0."""
    for lane in range(min(LANES, lengths.shape[0] - begin)):
        if t >= lengths[begin + lane]:
            for j in range(count):
                new[j, lane] = was[j, lane] if j < count_was else 0


@inlined
def mix(was, new, n, N, t, act, at_v, m, lengths, begin):
    """Step t of a stack that began with n cells and may have N: from the cells before it those after it. From
    its length on a sequence keeps what it has. What is read is the first cell."""
    w, noop = m + 1, at_v == 3
    count_was, count = min(n + t, N) * w, min(n + t + 1, N) * w
    push, pop = load(act, 0), load(act, 1)
    for j in range(count):
        cell = push  # of what is pushed, all is there
        if j < m:
            cell = push * load(act, at_v + j)
        elif j > m:
            cell = push * load(was, j - w)
        if j + w < count_was:
            cell = times_plus(pop, load(was, j + w), cell)
        if noop and j < count_was:
            cell = times_plus(load(act, 2), load(was, j), cell)
        store(new, j, cell)
    stay(new, count, was, count_was, lengths, t, begin)


@inlined
def unmix(was, n, N, t, act, at_v, lengths, begin, gr, g, g_was, out):
    """The reverse: from gr (m, LANES) and the gradients g of the cells after the step, g_was of those before
    it, and into `out` those of the probabilities and of v."""
    m, noop = gr.shape[0], at_v == 3
    w = m + 1
    count_was, count = min(n + t, N) * w, min(n + t + 1, N) * w
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
        if j + w < count_was:
            of_pop = times_plus(load(was, j + w), load(g, j), of_pop)
        if noop and j < count_was:
            of_noop = times_plus(load(was, j), load(g, j), of_noop)
    for j in range(count_was):
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
    stay(g_was, count_was, g, count_was, lengths, t, begin)


@inlined
def pop(was, cells, count, w, act, at_v):
    """What the first `count` rows are after the pops alone."""
    for j in range(count):
        cell = load(act, 1) * load(was, j)
        for k in range(1, min(at_v - 1, (count - j + w - 1) // w)):
            cell = times_plus(load(act, 1 + k), load(was, j + k * w), cell)
        store(cells, j, cell)


@inlined
def pop_and_push(was, middle, new, n, t, act, at_v, m, lengths, begin):
    """As `mix`, of a multipop stack; `middle` gets the cells between the pops and the push."""
    w = m + 1
    count_was = (n + t) * w
    push, left = load(act, 0), full(act, 1.0) - load(act, 0)
    pop(was, middle, count_was, w, act, at_v)
    for j in range(count_was + w):
        cell = push
        if j < m:
            cell = push * load(act, at_v + j)
        elif j > m:
            cell = push * load(middle, j - w)
        if j < count_was:
            cell = times_plus(left, load(middle, j), cell)
        store(new, j, cell)
    stay(new, count_was + w, was, count_was, lengths, t, begin)


@inlined
def unpop_and_unpush(was, middle, n, t, act, at_v, lengths, begin, gr, g, g_was, out):
    """As `unmix`, of a multipop stack; `middle` is room for as many cells."""
    m = gr.shape[0]
    w = m + 1
    count_was = (n + t) * w
    push, left, zero = load(act, 0), full(act, 1.0) - load(act, 0), full(act, 0.0)
    pop(was, middle, count_was, w, act, at_v)
    for k in range(m):
        store(g, k, load(g, k) + load(gr, k))
        store(out, at_v + k, push * load(g, k))
    of_push, of_left = load(g, m), zero
    for j in range(count_was + w):
        if j < m:
            of_push = times_plus(load(act, at_v + j), load(g, j), of_push)
        elif j > m:
            of_push = times_plus(load(middle, j - w), load(g, j), of_push)
        if j < count_was:
            of_left = times_plus(load(middle, j), load(g, j), of_left)
    store(out, 0, of_push - of_left)
    for j in range(count_was):  # from here on gradients
        store(middle, j, times_plus(left, load(g, j), push * load(g, j + w)))
    for k in range(at_v - 1):
        total = zero
        for j in range(count_was - k * w):
            total = times_plus(load(was, j + k * w), load(middle, j), total)
        store(out, 1 + k, total)
    for j in range(count_was):
        cell = load(act, 1) * load(middle, j)
        for k in range(1, min(at_v - 1, j // w + 1)):
            cell = times_plus(load(act, 1 + k), load(middle, j - k * w), cell)
        store(g_was, j, cell)
    stay(g_was, count_was, g, count_was, lengths, t, begin)


@inlined
def replay(segment, notes, n, N, t, acts, block, at_v, m, middle, mixed, pops, lengths, begin):
    """The cells before each step of a segment whose last step is t, from those noted before its first."""
    D, steps = N * (m + 1), t % SEGMENT
    copy(segment, 0, notes[t // SEGMENT, : min(n + t - steps, N) * (m + 1)])
    for i in range(steps):
        then, at = t - steps + i, i * D
        was, new = segment[at : at + D], segment[at + D : at + 2 * D]
        if pops is not None:
            pop_and_push(was, middle, new, n, then, acts[then, block], at_v, m, lengths, begin)
        if mixed is not None:
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
    """Rows of cells as V and s again: the reverse of `spread_cells`."""
    m = V.shape[2]
    for i in range(count):
        for lane in range(min(LANES, V.shape[0] - first)):
            for k in range(m):
                V[first + lane, i, k] = cells[i * (m + 1) + k, lane]
            s[first + lane, i] = cells[i * (m + 1) + m, lane]
