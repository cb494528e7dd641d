"""One step of a stack or a queue on the GPU, and its reverse: `cpu/memory.py`, one program a sequence.

Pointers here are a sequence's own: V and gV to its rows of m numbers, link, level, gs to its N cells. `k` are
the columns of a row. Chains are walked by scalars; rows of V are read or written by the whole program, on the
way back WIDE of them at a time: one after the other, each would be waited for.

A store by one thread is seen by another only after a barrier, so each phase of a step ends with one.
"""

import triton
import triton.language as tl

END: tl.constexpr = tl.constexpr(-1)
WIDE: tl.constexpr = tl.constexpr(8)  # cells whose vectors are loaded together


@triton.jit
def row(V, cell, m, k):
    return V + tl.cast(cell, tl.int64) * m + k


@triton.jit
def start(s0, link, level, n, LIFO: tl.constexpr):
    """Chain the cells that are there before the first step, with strengths s0: the head and its strength."""
    real: tl.constexpr = level.dtype.element_ty
    head = tl.full((), END, tl.int32)
    strength = tl.full((), 0, real)
    under = tl.full((), 0, real)
    for i in range(n):
        holds = tl.load(s0 + i)
        if LIFO:
            tl.store(link + i, head)
            tl.store(level + i, strength)
            head = tl.where(holds > 0, i, head)
            strength = tl.where(holds > 0, holds, strength)
        else:
            more = i + 1 < n
            under = tl.load(s0 + i + 1, mask=more, other=0)
            tl.store(link + i, tl.where(more, i + 1, END))
            tl.store(level + i, under)
            begins = (head == END) & (holds > 0)
            head = tl.where(begins, i, head)
            strength = tl.where(begins, holds, strength)
    tl.debug_barrier()
    return head, strength


@triton.jit
def pop(link, level, head, strength, u):
    """Take u, nearest cell first: the new head, and what is left of it."""
    real: tl.constexpr = level.dtype.element_ty
    ahead = tl.full((), 0, tl.float64)
    going = head != END
    while going:
        left = u - ahead.to(real)
        whole = (strength <= left) | (strength <= 0)
        below = tl.load(link + head, mask=whole, other=0)
        under = tl.load(level + head, mask=whole, other=0)
        ahead += strength
        strength = tl.where(whole, under, tl.where(left > 0, strength - left, strength))
        head = tl.where(whole, below, head)
        going = whole & (head != END)
    return head, strength


@triton.jit
def push(link, level, head, strength, slot, d, LIFO: tl.constexpr):
    """Row `slot` of V joins with strength d: the new head and its strength."""
    if LIFO:
        tl.store(link + slot, head)
        tl.store(level + slot, strength)
        head = slot
        strength = d
    else:
        tl.store(link + slot, END)
        tl.store(level + slot, 0)
        tl.store(link + slot - 1, slot, mask=slot > 0)
        tl.store(level + slot - 1, d, mask=slot > 0)
        strength = tl.where(head == END, d, strength)
        head = tl.where(head == END, slot, head)
    tl.debug_barrier()
    return head, strength


@triton.jit
def faults(s, n):
    """0, or NaN where one of n strengths is not finite."""
    fault = tl.full((), 0, s.dtype.element_ty)
    for i in range(n):
        strength = tl.load(s + i)
        fault += strength - strength
    return fault


@triton.jit
def column_faults(V, n, m, k):
    """Of n vectors, column by column."""
    fault = tl.zeros(k.shape, V.dtype.element_ty)
    for i in range(n):
        vector = tl.load(row(V, i, m, k), mask=k < m, other=0)
        fault += vector - vector
    return fault


@triton.jit
def rows(V, cells, m, k):
    """Where rows `cells` of V are, and which of their numbers are there: END has none."""
    at = V + cells.to(tl.int64)[:, None] * m + k[None, :]
    return at, (cells >= 0)[:, None] & (k < m)[None, :]


@triton.jit
def read(V, link, level, head, strength, fault, m, k):
    """The nearest cells, until strength 1 is used up, and what is not a number (see `cpu/memory.py`)."""
    nothing = tl.full((), 0, tl.float64)
    r = tl.zeros(k.shape, level.dtype.element_ty) + fault
    return read_on(V, link, level, head, strength, r, nothing, m, k)


@triton.jit
def read_on(V, link, level, head, strength, r, ahead, m, k):
    """r, and what is read from this cell on, where strength `ahead` was read before it."""
    real: tl.constexpr = level.dtype.element_ty
    rho = 1 - ahead.to(real)
    going = (head != END) & (rho > 0)
    while going:
        below, under = tl.load(link + head), tl.load(level + head)
        r += tl.minimum(strength, rho) * tl.load(row(V, head, m, k), mask=k < m, other=0)
        ahead += strength
        rho = 1 - ahead.to(real)
        head, strength = below, under
        going = (head != END) & (rho > 0)
    return r


@triton.jit
def push_and_read(V, link, level, head, strength, slot, d, v, fault, m, k, LIFO: tl.constexpr):
    """Row `slot` of V, which is v, joins with strength d, and the memory is read: its head then, the strength
    of that, and r. A stack reads v first, and what it reads next is known before the push."""
    under, holds = head, strength
    head, strength = push(link, level, head, strength, slot, d, LIFO)
    if LIFO:
        r = fault + tl.minimum(d, 1) * v
        r = read_on(V, link, level, under, holds, r, d.to(tl.float64), m, k)
    else:
        r = read(V, link, level, head, strength, fault, m, k)
    return head, strength, r


@triton.jit
def finish(s, link, level, head, strength, fault, N):
    """What every cell holds at the end; s comes in with zeros."""
    while head != END:
        tl.store(s + head, strength)
        strength = tl.load(level + head)
        head = tl.load(link + head)
    if fault != 0:  # it is not a number
        for i in range(N):
            tl.store(s + i, fault)


@triton.jit
def add(pointer, x):
    tl.store(pointer, tl.load(pointer) + x)


@triton.jit
def unread(V, link, level, head, strength, last, slot, behind, newest, gr, gs, gV, m, k):
    """The reverse of `read`: from gr, what r adds to the gradients gs of strengths and gV of vectors.

    `slot` is the cell that was pushed just before, and `newest` its vector; END if none was. `behind` says
    that this was with strength 0 and at the end of a queue.
    """
    real: tl.constexpr = level.dtype.element_ty
    lane = tl.arange(0, WIDE)
    ahead = tl.full((), 0, tl.float64)
    rho = tl.full((), 1, real)
    cell = head
    holds = strength
    through = tl.full((), 0, real)  # of the cell of which a part was read
    rounds = 0
    going = (cell > END) & (cell <= last)
    while going:
        cells = tl.full((WIDE,), END, tl.int32)
        held = tl.zeros((WIDE,), real)
        weights = tl.zeros((WIDE,), real)
        part = tl.full((), WIDE, tl.int32)  # the lane of that cell
        tie = tl.full((), 0, tl.int32)
        count = tl.full((), 0, tl.int32)
        more = going
        while more:
            whole = holds < rho
            here = lane == tl.where(whole | (rho > 0), count, WIDE)
            cells = tl.where(here, cell, cells)
            held = tl.where(here, holds, held)
            weights = tl.where(here, tl.minimum(holds, rho), weights)
            part = tl.where(whole, part, count)
            tie = tl.where(whole, tie, (holds == rho).to(tl.int32))
            below = tl.load(link + cell, mask=whole, other=0)
            under = tl.load(level + cell, mask=whole, other=0)
            ahead = tl.where(whole, ahead + holds, ahead)
            rho = tl.where(whole, 1 - ahead.to(real), rho)
            cell, holds = tl.where(whole, below, cell), tl.where(whole, under, holds)
            count += 1
            going = whole & (cell > END) & (cell <= last)
            more = going & (count < WIDE)
        known = (cells == slot)[:, None]
        at, there = rows(V, cells, m, k)
        vectors = tl.where(known, newest[None, :], tl.load(at, mask=there & (known == 0), other=0))
        at, there = rows(gV, cells, m, k)
        so_far = tl.load(at, mask=there, other=0)
        # an older empty cell has slope 0
        slopes = (cells >= 0) & ((held > 0) | (cells == slot))
        before = tl.load(gs + cells, mask=slopes, other=0)
        tl.store(at, so_far + weights[:, None] * gr[None, :], mask=there)
        along = tl.sum(vectors * gr[None, :], 1)
        through = tl.sum(tl.where((lane == part) & (cells >= 0), along, 0), 0)
        through = tl.where(tie > 0, 0.5 * through, through)  # a tie gives each half
        # the rest goes through rho, which is 1 less all strengths before
        own = tl.where(lane == part, tl.where(tie > 0, through, 0), along - through)
        tl.store(gs + cells, before + own, mask=slopes)
        rounds += 1
    tl.debug_barrier()
    used_up = (cell > END) & (cell <= last)
    if (rounds > 1) & (through != 0):
        cell = head
        holds = strength
        for _ in range((rounds - 1) * WIDE):
            if (holds > 0) | (cell == slot):
                add(gs + cell, -through)
            holds = tl.load(level + cell)
            cell = tl.load(link + cell)
        tl.debug_barrier()
    if behind:
        if used_up:  # after a full read: s = rho = 0, a tie
            add(gs + slot, 0.5 * tl.sum(newest * gr))
        tl.debug_barrier()


@triton.jit
def unpop(link, level, head, before, strength, last, u, gs, LIFO: tl.constexpr):
    """The reverse of `pop`: the gradient of u. `head` is the first cell after it, END if none was left, and
    `before` the first before it, with its strength then."""
    real: tl.constexpr = level.dtype.element_ty
    lane = tl.arange(0, WIDE)
    ahead = tl.full((), 0, tl.float64)
    cells = tl.full((WIDE,), END, tl.int32)
    slopes = tl.full((WIDE,), 0, tl.int32)
    count = 0
    cell = before
    holds = strength
    while (cell != head) & (cell > END) & (cell <= last):
        cells = tl.where(lane == count, cell, cells)
        slopes = tl.where(lane == count, tl.where((holds > 0) | LIFO, 1, 0), slopes)
        count += 1
        ahead += holds
        holds = tl.load(level + cell)
        cell = tl.load(link + cell)
    # of the cell at `head` a part was taken, and all of those before it
    part = (head != END) & ((u - ahead.to(real)) > 0)
    gp = tl.load(gs + head, mask=part, other=0)
    tl.store(gs + cells, tl.where(slopes > 0, gp, 0), mask=cells >= 0)
    if count > WIDE:
        cell = before
        holds = strength
        while (cell != head) & (cell > END) & (cell <= last):
            tl.store(gs + cell, tl.where((holds > 0) | LIFO, gp, 0))
            holds = tl.load(level + cell)
            cell = tl.load(link + cell)
    tl.debug_barrier()
    return -gp


@triton.jit
def undo(V, link, level, first, top, n, t, u, d, v, gr, gs, gV, m, k, LIFO: tl.constexpr):
    """The reverse of step t, which popped, pushed v into slot n + t, and read: the gradients of u and d, and
    the head between pop and push."""
    slot = n + t
    head = tl.load(first + t + 1)
    if LIFO:
        popped = tl.load(link + slot)
        behind = False
    else:
        popped = tl.where(head == slot, END, head)
        behind = d <= 0
    unread(V, link, level, head, tl.load(top + t + 1), slot, slot, behind, v, gr, gs, gV, m, k)
    gd = tl.load(gs + slot)
    tl.debug_barrier()
    tl.store(gs + slot, 0)
    gu = unpop(link, level, popped, tl.load(first + t), tl.load(top + t), slot - 1, u, gs, LIFO)
    return gu, gd, popped


@triton.jit
def unlink(s0, gs, n, gu, head, LIFO: tl.constexpr):
    """After the first step's `unpop` gave gu: the gradients of cells that came in empty, which no chain
    holds. `head` is the cell of which a part was taken; those before it are in what was met before it."""
    if gu != 0:
        for i in range(n):
            if LIFO:
                ahead = i > head
            else:
                ahead = i < head
            tl.store(gs + i, -gu, mask=ahead & (tl.load(s0 + i) <= 0))
