"""One step of a stack or a queue for LANES sequences at once, and its reverse: for short sequences.

Here a step meets every cell, empty or not, as the equations of `memory.py` read. That is quadratic in T, but
without a branch: for the paper's lengths it takes an eighth of the time of LANES chains (`cpu/memory.py`).

    held (..., LANES)   the strengths after every step: a row for each of the n + t cells before step t
    V (N, m, LANES)     vectors, slot by slot
"""

from softstack.kernels.cpu.compiling import inlined
from softstack.kernels.cpu.layout import LANES
from softstack.kernels.cpu.row import full, if_less, load, store, times_plus


@inlined
def rows_before(n, t):
    """How many rows of strengths come before those that step t finds."""
    return t * n + t * (t - 1) // 2


@inlined
def step(held, V, n, t, act, m, lifo, weights, r):
    """§2.1: pop u, push v with strength d, read r (m rows). `act` begins with u and d; v is in its slot.
    `weights` is room for n + t + 1 rows."""
    zero, one = full(held, 0.0), full(held, 1.0)
    cells = n + t
    was, new = rows_before(n, t) * LANES, rows_before(n, t + 1) * LANES
    u, d = load(act, 0), load(act, LANES)
    ahead, met = zero, zero  # strengths met by the pop and by the read
    if lifo:
        store(weights, cells * LANES, if_less(d, one, d, one))
        met = d
    for i in range(cells):
        j = (cells - 1 - i if lifo else i) * LANES
        s = load(held, was + j)
        left = if_less(ahead, u, u - ahead, zero)
        ahead = ahead + s
        s = if_less(left, s, s - left, zero)
        rho = if_less(met, one, one - met, zero)
        met = met + s
        store(held, new + j, s)
        store(weights, j, if_less(s, rho, s, rho))
    store(held, new + cells * LANES, d)
    if not lifo:
        rho = if_less(met, one, one - met, zero)
        store(weights, cells * LANES, if_less(d, rho, d, rho))
    for k in range(m):
        total = zero
        for j in range(cells + 1):
            total = times_plus(load(weights, j * LANES), load(V, (j * m + k) * LANES), total)
        store(r, k * LANES, total)


@inlined
def unstep(held, V, n, t, act, m, lifo, through, left, gr, gs, gV, out):
    """The reverse: from gr (m rows) and the gradients gs (N rows) of the strengths after the step, those
    before it, what the read adds to gV, and into the first two rows of `out` the gradients of u and d.
    `through` and `left` are room for n + t + 1 rows each."""
    zero, one = full(held, 0.0), full(held, 1.0)
    half = full(held, 0.5)
    cells = n + t
    was, new = rows_before(n, t) * LANES, rows_before(n, t + 1) * LANES
    u = load(act, 0)
    ahead, met = zero, zero
    for i in range(cells + 1):  # as they were met
        j = (cells - i if lifo else i) * LANES
        s = load(held, new + j)
        room = one - met
        rho = if_less(zero, room, room, zero)
        w = if_less(s, rho, s, rho)
        met = met + s
        q = zero
        for k in range(m):
            g, at = load(gr, k * LANES), (j * m) + k * LANES
            q = times_plus(g, load(V, at), q)
            store(gV, at, times_plus(w, g, load(gV, at)))
        own = q * if_less(s, rho, one, if_less(rho, s, zero, half))  # a tie gives each half
        store(gs, j, load(gs, j) + own)
        store(through, j, if_less(zero, room, q - own, zero))  # goes to all strengths before, negated
        if j < cells * LANES:
            store(left, j, u - ahead)
            ahead = ahead + load(held, was + j)
    later, taken = zero, zero  # of the read and of the pop: what all strengths before it get
    for i in range(cells + 1):  # and back
        j = (i if lifo else cells - i) * LANES
        g = load(gs, j) - later
        later = later + load(through, j)
        if j == cells * LANES:
            store(out, LANES, g)
            g = zero
        else:
            g = if_less(zero, load(held, new + j), g, zero)
            part = if_less(zero, load(left, j), g, zero)
            g = g + taken
            taken = taken + part
        store(gs, j, g)
    store(out, 0, zero - taken)
