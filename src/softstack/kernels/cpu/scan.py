"""stack_scan and queue_scan on the CPU: every sequence, every step, forward and backward."""

from softstack.kernels.cpu import far as leaping
from softstack.kernels.cpu.compiling import compiled
from softstack.kernels.cpu.memory import (
    END,
    column_faults,
    faults,
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


@compiled
def forward(row, steps, lifo, r, s, log, far=None):
    """Out: r (B, T, m), s (B, N) after the last step, and the log. `row` (m,) is room, and so is `far`, which
    long reads want."""
    V, u, d, s0, lengths = steps
    link, level, first, top = log
    (B, N, m), T = V.shape, u.shape[1]
    n = N - T
    for b in range(B):
        head, strength = start(s0, link, level, b, lifo)
        first[b, 0], top[b, 0] = head, strength
        end = min(T, lengths[b])
        fault = faults(s0, b)
        column_faults(row, V, b, n)
        before = row
        if far is not None:
            leaping.clear(far)
            for cell in range(n):
                leaping.note_depth(far, link, b, cell)
        for t in range(end):
            head, strength = pop(link, level, b, head, strength, u[b, t])
            head, strength = push(link, level, b, head, strength, n + t, d[b, t], lifo)
            first[b, t + 1], top[b, t + 1] = head, strength
            fault += d[b, t] - d[b, t]
            if n + t > 0:
                fault += u[b, t] - u[b, t]
            now = r[b, t]
            for k in range(m):
                now[k] = (before[k] - before[k]) + fault
            if not lifo:  # what a queue is told it may not read for long
                for k in range(m):
                    now[k] += V[b, n + t, k] - V[b, n + t, k]
            if far is None:
                read(V, link, level, b, head, strength, now)
            else:
                leaping.note_depth(far, link, b, n + t)
                leaping.read(far, V, link, level, b, head, strength, n + t, lifo, now)
            before = now
        r[b, end:] = 0
        link[b, n + end :], level[b, n + end :], first[b, end + 1 :], top[b, end + 1 :] = END, 0, END, 0
        finish(s, link, level, b, head, strength, fault)


@compiled
def backward(steps, lifo, s, log, gr, gs, gV, gu, gd, far=None):
    """In: s after the last step, the log, gr (B, T, m), gs (B, N) of the final strengths, gV (B, N, m).

    Out: gu and gd (B, T); gs becomes the gradient of the first strengths; gV is added to.
    """
    V, u, d, s0, lengths = steps
    link, level, first, top = log
    (B, N, _), T = V.shape, u.shape[1]
    n = N - T
    for b in range(B):
        end = min(T, lengths[b])
        if end > 0:
            settle(s, gs, b, n + end - 1)
        gu[b, end:] = 0
        gd[b, end:] = 0
        if far is not None:
            leaping.clear(far)
            for cell in range(n + end if lifo else 0):
                leaping.note_depth(far, link, b, cell)
        for t in range(end - 1, -1, -1):
            slot, head = n + t, first[b, t + 1]
            behind = not lifo and not d[b, t] > 0
            strength = top[b, t + 1]
            if far is None:
                unread(V, link, level, b, head, strength, slot, slot, behind, gr[b, t], gs, gV)
            else:
                leaping.unread(
                    far, V, link, level, b, head, strength, slot, slot, behind, lifo, gr[b, t], gs, gV
                )
                leaping.give_before(far, V, link, level, b, slot, lifo, gs, gV)
            gd[b, t] = gs[b, slot]
            gs[b, slot] = 0
            popped = link[b, slot] if lifo else END if head == slot else head
            before, strength = first[b, t], top[b, t]
            gu[b, t] = unpop(link, level, b, popped, before, strength, slot - 1, u[b, t], lifo, gs)
        if far is not None:
            leaping.give_all(far, V, link, level, b, gs, gV)
        if end > 0:
            unlink(s0, gs, b, gu[b, 0], popped, lifo)


@compiled
def step(V, link, level, head, strength, slot, u, d, lifo, fault, r):
    """One step of every sequence, from chains that have room: `Backend.scan_step`."""
    for b in range(V.shape[0]):
        first, holds = pop(link, level, b, head[b], strength[b], u[b])
        first, holds = push(link, level, b, first, holds, slot, d[b], lifo)
        head[b], strength[b] = first, holds
        wrong = d[b] - d[b]
        if slot > 0:
            wrong += u[b] - u[b]
        for k in range(V.shape[2]):
            fault[b, k] += (V[b, slot, k] - V[b, slot, k]) + wrong
            r[b, k] = fault[b, k]
        read(V, link, level, b, first, holds, r[b])
