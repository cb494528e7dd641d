"""One step of a deque for LANES sequences at once, and its reverse (`memory/deque.py`).

    strengths (N, LANES)   from the bottom to the top
    V (N m, LANES)         vectors, slot by slot
    act (A, LANES)         begins with u and d at the top, then u and d at the bottom

A deque that begins with n cells grows from the middle outwards: before step t it has the slots from T - t to
T + n + t - 1, and the step fills those on either side. So nothing is ever moved. The steps after the end of a
sequence push 0 with strength 0: one of L steps has its own slots from T - L on.

A step meets every cell, empty or not, as in `short.py`, in each pop and each read. The cells are those from
`low` to `high` - 1, and they are met the one `way`, from the top, or the other.
"""

from softstack.kernels.cpu.cells import copy
from softstack.kernels.cpu.compiling import inlined, internal
from softstack.kernels.cpu.layout import LANES, SEGMENT
from softstack.kernels.cpu.row import full, if_less, load, store, times_plus
from softstack.kernels.cpu.tape import gather, spread

DOWN, UP = -1, 1


@internal
def pop(was, new, low, high, way, u):
    """From the strengths before a pop those after it; both may be the same array. u (1, LANES)."""
    zero, amount = full(was, 0.0), load(u, 0)
    ahead, first = zero, low if way == UP else high - 1
    for i in range(high - low):
        j = first + i * way
        s = load(was, j)
        left = if_less(ahead, amount, amount - ahead, zero)
        ahead = ahead + s
        store(new, j, if_less(left, s, s - left, zero))


@internal
def unpop(was, new, low, high, way, u, room, g, of_u):
    """The reverse: from the gradients g of the strengths after it those before it, in the same place, and
    that of u. `room` is for N rows."""
    zero, amount = full(was, 0.0), load(u, 0)
    ahead, first = zero, low if way == UP else high - 1
    for i in range(high - low):
        j = first + i * way
        store(room, j, amount - ahead)
        ahead = ahead + load(was, j)
    passed_on = zero  # to all strengths before a cell
    for i in range(high - low - 1, -1, -1):
        j = first + i * way
        own = if_less(zero, load(new, j), load(g, j), zero)
        store(g, j, own + passed_on)
        passed_on = passed_on + if_less(zero, load(room, j), own, zero)
    store(of_u, 0, zero - passed_on)


@internal
def read(strengths, V, low, high, way, weights, r):
    """What an end shows, r (m, LANES). `weights` is room for N rows."""
    zero, one, m = full(strengths, 0.0), full(strengths, 1.0), r.shape[0]
    ahead, first = zero, low if way == UP else high - 1
    for i in range(high - low):
        j = first + i * way
        s = load(strengths, j)
        rho = if_less(ahead, one, one - ahead, zero)
        ahead = ahead + s
        store(weights, j, if_less(s, rho, s, rho))
    for k in range(m):
        total = zero
        for j in range(low, high):
            total = times_plus(load(weights, j), load(V, j * m + k), total)
        store(r, k, total)


@internal
def unread(strengths, V, low, high, way, room, gr, g, gV):
    """The reverse: from gr, what r adds to the gradients g of strengths and gV of vectors."""
    zero, one, half = full(strengths, 0.0), full(strengths, 1.0), full(strengths, 0.5)
    ahead, m, first = zero, gr.shape[0], low if way == UP else high - 1
    for i in range(high - low):
        j = first + i * way
        s = load(strengths, j)
        left = one - ahead
        rho = if_less(zero, left, left, zero)
        w = if_less(s, rho, s, rho)
        ahead = ahead + s
        q = zero
        for k in range(m):
            of_r, at = load(gr, k), j * m + k
            q = times_plus(of_r, load(V, at), q)
            store(gV, at, times_plus(w, of_r, load(gV, at)))
        own = q * if_less(s, rho, one, if_less(rho, s, zero, half))  # a tie gives each half
        store(g, j, load(g, j) + own)
        store(room, j, if_less(zero, left, q - own, zero))
    later = zero  # of the cells met after a cell: what its strength kept from them
    for i in range(high - low - 1, -1, -1):
        j = first + i * way
        store(g, j, load(g, j) - later)
        later = later + load(room, j)


@inlined
def pop_both(was, middle, new, low, high, act):
    """Equations 6 to 9: from the strengths before a step those between its pops and those after it."""
    for end in range(2):
        before, after = (middle, new) if end else (was, middle)
        pop(before, after, low, high, UP if end else DOWN, act[2 * end : 2 * end + 1])
    copy(new, high, act[1:2])
    copy(new, low - 1, act[3:4])


@inlined
def step_ends(was, new, notes, V, n, T, t, act, at_v, weights, r):
    """Pop at the top, then at the bottom, push at both and read both: from the strengths before step t, which
    are noted, those after it, r = [r_top; r_bottom], and in their slots the vectors."""
    low, high, m = T - t, T + n + t, r.shape[0] // 2
    if t % SEGMENT == 0:
        copy(notes[t // SEGMENT], 0, was)
    pop_both(was, new, new, low, high, act)
    for end in range(2):
        at = at_v + end * m
        copy(V, (low - 1 if end else high) * m, act[at : at + m])
    for end in range(2):
        read(new, V, low - 1, high + 1, UP if end else DOWN, weights, r[end * m : end * m + m])


@inlined
def unstep_ends(segment, middle, new, notes, V, n, T, t, acts, block, at_v, room, gr, g, gV, out):
    """The reverse: from gr and the gradients g of the strengths after the step those before it, what the
    reads add to gV, and into `out` the gradients of what the memory was told. `segment` is room for SEGMENT
    N rows; `middle`, `new` and `room` for N each."""
    low, high, m, N = T - t, T + n + t, gr.shape[0] // 2, notes.shape[1]
    if t == T - 1 or (t + 1) % SEGMENT == 0:
        replay_ends(segment, notes, n, T, t, acts, block)
    act, was = acts[t, block], segment[t % SEGMENT * N : (t % SEGMENT + 1) * N]
    pop_both(was, middle, new, low, high, act)
    for end in range(2):
        unread(new, V, low - 1, high + 1, UP if end else DOWN, room, gr[end * m : end * m + m], g, gV)
    for end in range(2):
        slot = low - 1 if end else high
        copy(out, at_v + end * m, gV[slot * m : slot * m + m])
        copy(out, 1 + 2 * end, g[slot : slot + 1])
    for end in range(1, -1, -1):
        before, after = (middle, new) if end else (was, middle)
        u, of_u = act[2 * end : 2 * end + 1], out[2 * end : 2 * end + 1]
        unpop(before, after, low, high, UP if end else DOWN, u, room, g, of_u)


@inlined
def replay_ends(segment, notes, n, T, t, acts, block):
    """The strengths before each step of a segment whose last step is t, from those noted before its first."""
    N, steps = notes.shape[1], t % SEGMENT
    copy(segment, 0, notes[t // SEGMENT])
    for i in range(steps):
        then, at = t - steps + i, i * N
        was, new = segment[at : at + N], segment[at + N : at + 2 * N]
        pop_both(was, new, new, T - then, T + n + then, acts[then, block])


@internal
def start_ends(vectors, strengths, V, s, T, first):
    """The cells of V (B, n, m) and s (B, n) in their slots, of sequence `first` and those after it."""
    B, n, m = V.shape
    spread(vectors[T * m : (T + n) * m], V.reshape(B, n * m), first)
    spread(strengths[T : T + n], s, first)


@internal
def finish_ends(V, s, vectors, strengths, T, lengths, first):
    """V (B, N, m) and s (B, N): of each sequence its own slots, and 0 for those that it has not come to."""
    _, N, m = V.shape
    for lane in range(min(LANES, V.shape[0] - first)):
        below = T - min(T, lengths[first + lane])
        for i in range(N):
            there = i + below < N
            s[first + lane, i] = strengths[i + below, lane] if there else 0
            for k in range(m):
                V[first + lane, i, k] = vectors[(i + below) * m + k, lane] if there else 0


@internal
def spread_ends(vectors, strengths, V, s, T, lengths, first):
    """V and s as rows again: the reverse of `finish_ends`. 0 below, and beyond the last sequence."""
    B, N, m = V.shape
    for lane in range(LANES):
        below = T - min(T, lengths[first + lane]) if first + lane < B else N
        for i in range(N):
            there = i >= below
            strengths[i, lane] = s[first + lane, i - below] if there else 0
            for k in range(m):
                vectors[i * m + k, lane] = V[first + lane, i - below, k] if there else 0


@internal
def final_strengths(strengths, s, T, length, lengths, first):
    """The gradients of final strengths for sequences of this length: padded steps have changed them."""
    for lane in range(min(LANES, s.shape[0] - first)):
        if lengths[first + lane] == length:
            for i in range(T - length, strengths.shape[0]):
                strengths[i, lane] = s[first + lane, i - T + length]


@internal
def unspread_ends(V, s, vectors, strengths, n, T, first):
    """The gradients of the first n cells."""
    m = V.shape[2]
    gather(V.reshape(V.shape[0], V.shape[1] * m), vectors[T * m : (T + n) * m], first)
    gather(s, strengths[T : T + n], first)
