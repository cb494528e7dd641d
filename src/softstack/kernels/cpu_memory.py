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
def step(V, s, after, gone, b, head, tail, slot, u, d, lifo, r):
    """Pop u, push V[b, slot] with strength d, read into r (m,): head, tail, and the `old` strength of the
    cell of which a part was popped, -1 if there was none."""
    real = s.dtype.type
    old = real(-1)
    met = 0.0
    while head != END:  # pop: the nearest cells are emptied, and at most one keeps a part
        strength = s[b, head]
        left = real(u - real(met))
        if strength > 0 and not left > 0:
            break
        if strength > left:
            old = strength
            s[b, head] = strength - left
            break
        gone[b, head] = strength
        s[b, head] = 0
        met += strength
        head = after[b, head]
    s[b, slot] = d
    if lifo:
        after[b, slot] = head
        head = slot
    else:
        after[b, slot] = END
        if head == END:
            head = slot
        else:
            after[b, tail] = slot
        tail = slot
    m = V.shape[2]
    for k in range(m):
        r[k] = 0
    met = 0.0
    cell = head
    while cell != END:  # read: until strength 1 is used up
        rho = real(1 - real(met))
        if not rho > 0:
            break
        strength = s[b, cell]
        w = min(strength, rho)
        for k in range(m):
            r[k] += w * V[b, cell, k]
        met += strength
        cell = after[b, cell]
    return head, tail, old


@njit(nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def dot(V, b, slot, g):
    total = V.dtype.type(0)
    for k in range(V.shape[2]):
        total += g[k] * V[b, slot, k]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def unstep(V, s, after, gone, b, head, before, old, slot, n, lifo, gr, gs, gV, q):
    """The reverse of `step`: gradients of u and d. `head` is the first cell after the step, `before` the
    first cell before it; n tells the slots that were there before the first step.

    gs (B, N) and gV (B, N, m) are the gradients of the strengths and vectors; gs[b] comes in as that after
    the step, goes out as that before it, and s[b] is rewound with it. q (N,) is room to work in.
    """
    real = s.dtype.type
    m = V.shape[2]
    met = 0.0
    cell = head
    count = 0
    through = real(0)  # the gradient that goes through the one rho that was the smaller
    while cell != END:  # read
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
    unread = cell
    cell = head
    for j in range(count):
        if s[b, cell] > 0 or cell == slot:  # an older empty cell has slope 0
            gs[b, cell] += q[j] - (through if j < count - 1 else real(0))
        cell = after[b, cell]
    if unread != END and not lifo and not s[b, slot] > 0:
        gs[b, slot] += real(0.5) * dot(V, b, slot, gr)  # pushed with 0 behind a full read: s = rho = 0
    gd = gs[b, slot]  # push
    gs[b, slot] = 0
    s[b, slot] = 0
    if lifo:
        head = after[b, slot]
    elif head == slot:
        head = END
    gp = real(0)
    if old >= 0:  # pop: of this cell a part, and all of those before it
        gp = gs[b, head]
        s[b, head] = old
    cell = before
    while cell != head and cell != END and cell != slot:
        s[b, cell] = gone[b, cell]
        gs[b, cell] = gp if gone[b, cell] > 0 or lifo else real(0)
        cell = after[b, cell]
    if slot == n and old >= 0:  # empty cells that were there from the start are not in the chain
        for i in range(n):
            if not s[b, i] > 0 and (i > head if lifo else i < head):
                gs[b, i] = gp
    return -gp, gd


@njit(cache=True, nogil=True, error_model="numpy")
def settle(s, gs, b, padded):
    """Before the first `unstep`: an empty cell has slope 0, unless it was pushed by the very last step."""
    last = s.shape[1] - 1
    for i in range(last + 1):
        if not s[b, i] > 0 and (i != last or padded):
            gs[b, i] = 0
