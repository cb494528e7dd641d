"""One step of a stack or a queue for LANES sequences at once, and its reverse: for short sequences.

Here a step meets every cell, empty or not, as the equations of `memory.py` read. That is quadratic in T, but
without a branch: for the paper's lengths it takes an eighth of the time of LANES chains (`cpu/memory.py`).

    strengths (rows, LANES)   those after every step: a row for each of the n + t cells before step t
    V (N m, LANES)            vectors, slot by slot
"""

from softstack.kernels.cpu.compiling import inlined
from softstack.kernels.cpu.row import full, if_less, load, store, times_plus


@inlined
def rows_before(n, t):
    """How many rows of strengths come before those that step t finds."""
    return t * n + t * (t - 1) // 2


@inlined
def step(strengths, V, n, t, act, lifo, weights, r):
    """§2.1: pop u, push v with strength d, read r (m, LANES). `act` begins with u and d; v is in its slot.
    `weights` is room for n + t + 1 rows."""
    zero, one = full(strengths, 0.0), full(strengths, 1.0)
    cells, m = n + t, r.shape[0]
    was, new = rows_before(n, t), rows_before(n, t + 1)
    u, d = load(act, 0), load(act, 1)
    ahead, met = zero, zero  # strengths met by the pop and by the read
    if lifo:
        store(weights, cells, if_less(d, one, d, one))
        met = d
    for i in range(cells):
        j = cells - 1 - i if lifo else i
        s = load(strengths, was + j)
        left = if_less(ahead, u, u - ahead, zero)
        ahead = ahead + s
        s = if_less(left, s, s - left, zero)
        rho = if_less(met, one, one - met, zero)
        met = met + s
        store(strengths, new + j, s)
        store(weights, j, if_less(s, rho, s, rho))
    store(strengths, new + cells, d)
    if not lifo:
        rho = if_less(met, one, one - met, zero)
        store(weights, cells, if_less(d, rho, d, rho))
    for k in range(m):
        total = zero
        for j in range(cells + 1):
            total = times_plus(load(weights, j), load(V, j * m + k), total)
        store(r, k, total)


@inlined
def unstep(strengths, V, n, t, act, lifo, through, surplus, gr, gs, gV, out):
    """The reverse: from gr (m, LANES) and the gradients gs (N, LANES) of the strengths after the step, those
    before it, what the read adds to gV, and into the first two rows of `out` the gradients of u and d.
    `through` and `surplus` are room for n + t + 1 rows each."""
    zero, one = full(strengths, 0.0), full(strengths, 1.0)
    half = full(strengths, 0.5)
    cells, m = n + t, gr.shape[0]
    was, new = rows_before(n, t), rows_before(n, t + 1)
    u = load(act, 0)
    ahead, met = zero, zero
    for i in range(cells + 1):  # as they were met
        j = cells - i if lifo else i
        s = load(strengths, new + j)
        room = one - met
        rho = if_less(zero, room, room, zero)
        w = if_less(s, rho, s, rho)
        met = met + s
        q = zero
        for k in range(m):
            g, at = load(gr, k), j * m + k
            q = times_plus(g, load(V, at), q)
            store(gV, at, times_plus(w, g, load(gV, at)))
        own = q * if_less(s, rho, one, if_less(rho, s, zero, half))  # a tie gives each half
        store(gs, j, load(gs, j) + own)
        store(through, j, if_less(zero, room, q - own, zero))  # goes to all strengths before, negated
        if j < cells:
            store(surplus, j, u - ahead)
            ahead = ahead + load(strengths, was + j)
    of_read, of_pop = zero, zero  # what the read and the pop pass on to all strengths before a cell
    for i in range(cells + 1):  # and back
        j = i if lifo else cells - i
        g = load(gs, j) - of_read
        of_read = of_read + load(through, j)
        if j == cells:
            store(out, 1, g)
            g = zero
        else:
            g = if_less(zero, load(strengths, new + j), g, zero)
            part = if_less(zero, load(surplus, j), g, zero)
            g = g + of_pop
            of_pop = of_pop + part
        store(gs, j, g)
    store(out, 0, zero - of_pop)
