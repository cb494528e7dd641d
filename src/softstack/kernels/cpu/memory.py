"""One step of a stack or a queue in amortised constant time, and its reverse. README.md derives both.

    V (B, N, m)   vectors, slot by slot; step t pushes into its own slot and nothing is ever moved
    link (B, N)   the cell that is met after this one, END if none
    level (B, N)  its strength when this one is met

A row b of these is a sequence. `head` is the cell met first and `strength` what it holds. What is written in
a step is not changed by a later one, so that nothing has to be undone on the way back; but a queue's chain
has grown since, and ends for step t at `last`, the slot that t filled.

What is not a number must show: the equations multiply every cell by something, if only by 0, and a chain
leaves cells out. So what comes in is also added up as x - x, which is 0 or NaN, and that `fault` is added to
all that is read.
"""

from softstack.kernels.cpu.compiling import inlined

END = -1


@inlined
def start(s0, link, level, b, lifo):
    """Chain the cells that are there before the first step, with strengths s0[b]: the head and its strength.

    A stack's chain leaves empty cells out; a queue's begins with one that is not.
    """
    zero = s0.dtype.type(0)
    n = s0.shape[1]
    head = END
    for i in range(n):
        if lifo:
            link[b, i] = head
            level[b, i] = s0[b, head] if head != END else zero
        else:
            link[b, i] = i + 1 if i + 1 < n else END
            level[b, i] = s0[b, i + 1] if i + 1 < n else zero
        if s0[b, i] > 0 and (lifo or head == END):
            head = i
    return head, s0[b, head] if head != END else zero


@inlined
def pop(link, level, b, head, strength, u):
    """Take u, nearest cell first: the new head, and what is left of it."""
    real = level.dtype.type
    ahead = 0.0
    while head != END:
        if strength > 0:
            left = real(u - real(ahead))
            if not left > 0:
                break
            if strength > left:
                return head, real(strength - left)
        ahead += strength
        strength = level[b, head]
        head = link[b, head]
    return head, strength


@inlined
def push(link, level, b, head, strength, slot, d, lifo):
    """V[b, slot] joins with strength d: the new head and its strength."""
    if lifo:
        link[b, slot], level[b, slot] = head, strength
        return slot, d
    link[b, slot], level[b, slot] = END, 0
    if slot > 0:
        link[b, slot - 1], level[b, slot - 1] = slot, d
    if head == END:
        return slot, d
    return head, strength


@inlined
def read(V, link, level, b, head, strength, r):
    """Add to r (m,): the nearest cells, until strength 1 is used up."""
    real = level.dtype.type
    m = V.shape[2]
    ahead, rho = 0.0, real(1)
    while head != END and rho > 0:
        w = min(strength, rho)
        for k in range(m):
            r[k] += w * V[b, head, k]
        ahead += strength
        rho = real(1 - real(ahead))
        strength = level[b, head]
        head = link[b, head]


@inlined
def faults(s, b):
    """0, or NaN where one of the strengths s[b] is not finite."""
    fault = s.dtype.type(0)
    for i in range(s.shape[1]):
        fault += s[b, i] - s[b, i]
    return fault


@inlined
def column_faults(row, V, b, count):
    """The same for each column of the first vectors of V[b], into row (m,)."""
    for k in range(row.shape[0]):
        row[k] = 0
    for i in range(count):
        for k in range(row.shape[0]):
            row[k] += V[b, i, k] - V[b, i, k]


@inlined
def finish(s, link, level, b, head, strength, fault):
    """s[b]: what every cell holds at the end."""
    for i in range(s.shape[1]):
        s[b, i] = fault
    while head != END:
        s[b, head] = strength + fault
        strength = level[b, head]
        head = link[b, head]


@inlined
def dot(V, b, slot, g):
    """Four sums side by side, always in the same order."""
    m = V.shape[2]
    zero = V.dtype.type(0)
    p, q, r, s = zero, zero, zero, zero
    for k in range(0, m - 3, 4):
        p += g[k] * V[b, slot, k]
        q += g[k + 1] * V[b, slot, k + 1]
        r += g[k + 2] * V[b, slot, k + 2]
        s += g[k + 3] * V[b, slot, k + 3]
    for k in range(m - m % 4, m):
        p += g[k] * V[b, slot, k]
    return (p + q) + (r + s)


@inlined
def unread(V, link, level, b, head, strength, last, slot, behind, gr, gs, gV):
    """The reverse of `read`: from gr, what r adds to the gradients gs[b] of strengths and gV[b] of vectors.

    `slot` is the cell that was pushed just before, END if none was; `behind` says that this was with strength
    0 and at the end of a queue.
    """
    real = level.dtype.type
    m = V.shape[2]
    ahead, rho = 0.0, real(1)
    cell, holds = head, strength
    while END < cell <= last and holds < rho:  # read whole
        for k in range(m):
            gV[b, cell, k] += holds * gr[k]
        if holds > 0 or cell == slot:  # an older empty cell has slope 0
            gs[b, cell] += dot(V, b, cell, gr)
        ahead += holds
        rho = real(1 - real(ahead))
        holds = level[b, cell]
        cell = link[b, cell]
    if not END < cell <= last:
        return
    if behind:
        gs[b, slot] += real(0.5) * dot(V, b, slot, gr)  # after a full read: s = rho = 0, a tie
    if rho > 0:  # a part of this one
        for k in range(m):
            gV[b, cell, k] += rho * gr[k]
        through = dot(V, b, cell, gr)  # goes through rho, which is 1 less all strengths before
        if not holds > rho:  # a tie gives each half
            through *= real(0.5)
            gs[b, cell] += through
        final = cell
        cell, holds = head, strength
        while cell != final:
            if holds > 0 or cell == slot:
                gs[b, cell] -= through
            holds = level[b, cell]
            cell = link[b, cell]


@inlined
def unpop(link, level, b, head, before, strength, last, u, lifo, gs):
    """The reverse of `pop`: the gradient of u. `head` is the first cell after it, END if none was left, and
    `before` the first before it, with its strength then."""
    real = level.dtype.type
    ahead = 0.0
    cell, holds = before, strength
    while cell != head and END < cell <= last:
        ahead += holds
        holds = level[b, cell]
        cell = link[b, cell]
    # of the cell at `head` a part was taken, and all of those before it
    gp = gs[b, head] if head != END and real(u - real(ahead)) > 0 else real(0)
    cell, holds = before, strength
    while cell != head and END < cell <= last:
        gs[b, cell] = gp if holds > 0 or lifo else real(0)
        holds = level[b, cell]
        cell = link[b, cell]
    return -gp


@inlined
def unlink(s0, gs, b, gu, head, lifo):
    """After the first step's `unpop` gave gu: the gradients of cells that came in empty, which no chain
    holds. `head` is the cell of which a part was taken; those before it are in what was met before it."""
    if gu != 0:
        for i in range(s0.shape[1]):
            if not s0[b, i] > 0 and (i > head if lifo else i < head):
                gs[b, i] = -gu


@inlined
def settle(s, gs, b, last):
    """Before all that: an empty cell has slope 0, unless it is `last`, pushed by the sequence's last step.
    For sequences that had a step: where no pop has passed, nothing is dropped."""
    for i in range(s.shape[1]):
        if not s[b, i] > 0 and i != last:
            gs[b, i] = 0
