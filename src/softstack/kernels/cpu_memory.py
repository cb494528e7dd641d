"""One step of a stack or a queue in amortised constant time, and its reverse. README.md derives both.

    V (B, N, m)   vectors, slot by slot; step t pushes into its own slot and nothing else is ever moved
    s (B, N)      strengths now
    after (B, N)  the next cell in the order in which cells are met, END if none
    gone (B, N)   a cell's strength just before it was emptied

A row b of these is a sequence. `head` is the cell met first; a queue also keeps its `tail`.
"""

from numba import njit

END = -1


@njit(cache=True, nogil=True, error_model="numpy")
def link(s, after, b, n, lifo):
    """Chain the cells of the first n slots that hold anything: head and tail."""
    head = END
    tail = END
    for i in range(n):
        after[b, i] = END
        if s[b, i] > 0:
            if lifo:
                after[b, i] = head
                head = i
            else:
                if tail == END:
                    head = i
                else:
                    after[b, tail] = i
                tail = i
    return head, tail


@njit(cache=True, nogil=True, error_model="numpy")
def pop(s, after, gone, b, head, u):
    """Take u, nearest cell first: the new head, and the `old` strength of the cell that keeps a part of it,
    -1 if there is none."""
    real = s.dtype.type
    met = 0.0
    while head != END:
        strength = s[b, head]
        left = real(u - real(met))
        if strength > 0 and not left > 0:
            break
        if strength > left:
            s[b, head] = strength - left
            return head, strength
        gone[b, head] = strength
        s[b, head] = 0
        met += strength
        head = after[b, head]
    return head, real(-1)


@njit(cache=True, nogil=True, error_model="numpy")
def push(s, after, b, head, tail, slot, d, lifo):
    """V[b, slot] joins with strength d: head and tail."""
    s[b, slot] = d
    if lifo:
        after[b, slot] = head
        return slot, tail
    after[b, slot] = END
    if head == END:
        return slot, slot
    after[b, tail] = slot
    return head, slot


@njit(cache=True, nogil=True, error_model="numpy")
def read(V, s, after, b, head, r):
    """Into r (m,): the nearest cells, until strength 1 is used up."""
    real = s.dtype.type
    m = V.shape[2]
    for k in range(m):
        r[k] = 0
    met = 0.0
    cell = head
    while cell != END:
        rho = real(1 - real(met))
        if not rho > 0:
            break
        strength = s[b, cell]
        w = min(strength, rho)
        for k in range(m):
            r[k] += w * V[b, cell, k]
        met += strength
        cell = after[b, cell]


@njit(nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def unread(V, s, after, b, head, slot, lifo, gr, gs, gV, q):
    """The reverse of `read`: from gr, what r adds to the gradients gs[b] of strengths and gV[b] of vectors.

    `slot` is the cell that was pushed just before, END if none was. q (N,) is room to work in.
    """
    real = s.dtype.type
    m = V.shape[2]
    met = 0.0
    cell = head
    count = 0
    through = real(0)  # the gradient that goes through the one rho that was the smaller
    while cell != END:
        rho = real(1 - real(met))
        if not rho > 0:
            break
        strength = s[b, cell]
        w = min(strength, rho)
        along = dot(V, b, cell, gr)
        for k in range(m):
            gV[b, cell, k] += w * gr[k]
        if strength < rho:
            q[count] = along
        else:
            through = along if strength > rho else real(0.5) * along  # a tie gives each half
            q[count] = along - through
        count += 1
        met += strength
        cell = after[b, cell]
    if cell != END and slot != END and not lifo and not s[b, slot] > 0:
        gs[b, slot] += real(0.5) * dot(V, b, slot, gr)  # pushed with 0 behind a full read: s = rho = 0
    cell = head
    for j in range(count):
        if s[b, cell] > 0 or cell == slot:  # an older empty cell has slope 0
            gs[b, cell] += q[j] - (through if j < count - 1 else real(0))
        cell = after[b, cell]


@njit(cache=True, nogil=True, error_model="numpy")
def unpush(s, after, gs, b, head, slot, lifo):
    """The reverse of `push`: the gradient of d, and the head before."""
    gd = gs[b, slot]
    gs[b, slot] = 0
    s[b, slot] = 0
    if lifo:
        return gd, after[b, slot]
    return gd, END if head == slot else head


@njit(cache=True, nogil=True, error_model="numpy")
def unpop(s, after, gone, gs, b, head, before, old, slot, lifo):
    """The reverse of `pop`: the gradient of u. `head` is the first cell after it, `before` the first before
    it, and `slot` the cell that was pushed after it, END if none was."""
    real = s.dtype.type
    gp = real(0)
    if old >= 0:  # of this cell a part was taken, and all of those before it
        gp = gs[b, head]
        s[b, head] = old
    cell = before
    while cell != head and cell != END and cell != slot:
        s[b, cell] = gone[b, cell]
        gs[b, cell] = gp if gone[b, cell] > 0 or lifo else real(0)
        cell = after[b, cell]
    return -gp


@njit(cache=True, nogil=True, error_model="numpy")
def unlink(s, gs, b, n, gu, head, lifo):
    """After the first step's `unpop` gave gu: the gradients of cells that came in empty, which no chain
    holds. `head` is the cell of which a part was taken; those before it are in what was met before it."""
    for i in range(n):
        if not s[b, i] > 0 and (i > head if lifo else i < head):
            gs[b, i] = -gu


@njit(cache=True, nogil=True, error_model="numpy")
def settle(s, gs, b, last):
    """Before all that: an empty cell has slope 0, unless it is `last`, pushed by the very last step."""
    for i in range(s.shape[1]):
        if not s[b, i] > 0 and i != last:
            gs[b, i] = 0
