"""Reads that reach far down: a read of many cells leaps over blocks of them.

A read ends where strengths add up to 1. Where they are tiny that is far away, and cell by cell a sequence
would take time quadratic in its length. What lies under a stack's cell does not change while that cell is
there, nor what stands behind a queue's cell. So under every cell whose depth is a multiple of `block` (in a
queue, behind every slot whose number is) the sum of the next `block` - 1 cells is kept, made by the first
read that comes by. Blocks of about as many cells as there are blocks make a read of N cells take sqrt(N)
steps. On the way back a leap leaves its gradient with the block, and the cells get theirs when that cell's
own push is undone: until then nobody asks for them.

The nearest NEAR cells are read one by one, so that this costs nothing where reads are short.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from softstack.kernels.cpu.compiling import inlined, internal
from softstack.kernels.cpu.memory import END, dot

LEAST = 64  # cells in a block
NEAR = 64


class Far(NamedTuple):
    """For one sequence at a time, K blocks."""

    block: int  # cells that a block and its owner are
    depth: Any  # (N,) how many cells lie under a stack's cell
    owner: Any  # (K,) the cell that a block lies under or behind, END if none
    mass: Any  # (K,) how much the block holds
    after: Any  # (K,) the cell met after it
    under: Any  # (K,) its strength then
    used: Any  # (K,) whether a leap left a gradient
    through: Any  # (K,) what was taken from each cell's gradient
    vectors: Any  # (K, m) the sum of the block; on the way back, of what comes in for it


def room(N: int, m: int, dtype: Any) -> Far:
    block = max(LEAST, math.isqrt(N))
    K = N // block + 1
    return Far(
        block, np.empty(N, np.int32), np.empty(K, np.int32), np.empty(K), np.empty(K, np.int32),
        np.empty(K, dtype), np.empty(K, np.bool_), np.empty(K, dtype), np.empty((K, m), dtype),
    )  # fmt: skip


@inlined
def clear(far):
    """Before a sequence."""
    for k in range(far.owner.shape[0]):
        far.owner[k], far.used[k], far.through[k] = END, False, 0


@inlined
def note_depth(far, link, b, cell):
    below = link[b, cell]
    far.depth[cell] = far.depth[below] + 1 if below != END else 0


@inlined
def block_after(far, cell, slot, lifo):
    """The block that lies under or behind a cell when `slot` was the last to be filled, -1 if none does."""
    if lifo:
        depth = far.depth[cell]
        return depth // far.block if depth % far.block == 0 and depth > 0 else -1
    return cell // far.block if cell % far.block == 0 and cell + far.block - 1 < slot else -1


@internal
def own_block(far, V, link, level, b, cell, k, with_vectors):
    """Measure the block that belongs to `cell`; and add its vectors up, or clear them for gradients."""
    m = V.shape[2]
    far.owner[k], far.mass[k] = cell, 0.0
    for c in range(m):
        far.vectors[k, c] = 0
    strength, cell = level[b, cell], link[b, cell]
    for _ in range(far.block - 1):
        far.mass[k] += strength
        if with_vectors:
            for c in range(m):
                far.vectors[k, c] += strength * V[b, cell, c]
        strength, cell = level[b, cell], link[b, cell]
    far.after[k], far.under[k] = cell, strength


@inlined
def leaps(far, V, link, level, b, cell, ahead, slot, lifo, with_vectors):
    """The block after a cell that was just read, -1 if there is none or a read cannot take all of it."""
    real = level.dtype.type
    k = block_after(far, cell, slot, lifo)
    if k < 0:
        return -1
    if far.owner[k] != cell:
        own_block(far, V, link, level, b, cell, k, with_vectors)
    return k if real(1 - real(ahead + far.mass[k])) > 0 else -1


@internal
def read_on(far, V, link, level, b, cell, strength, ahead, slot, lifo, r):
    """`read` from a cell on, with `ahead` before it, in leaps."""
    real = level.dtype.type
    rho = real(1 - real(ahead))
    while cell != END and rho > 0:
        w = min(strength, rho)
        for c in range(V.shape[2]):
            r[c] += w * V[b, cell, c]
        ahead += strength
        k = leaps(far, V, link, level, b, cell, ahead, slot, lifo, True)
        if k >= 0:
            for c in range(V.shape[2]):
                r[c] += far.vectors[k, c]
            ahead += far.mass[k]
            strength, cell = far.under[k], far.after[k]
        else:
            strength, cell = level[b, cell], link[b, cell]
        rho = real(1 - real(ahead))


@inlined
def read(far, V, link, level, b, head, strength, slot, lifo, r):
    """As `memory.read`: add to r (m,) the nearest cells, until strength 1 is used up."""
    real = level.dtype.type
    m = V.shape[2]
    ahead, rho, near = 0.0, real(1), 0
    while head != END and rho > 0:
        if near == NEAR:
            read_on(far, V, link, level, b, head, strength, ahead, slot, lifo, r)
            return
        w = min(strength, rho)
        for c in range(m):
            r[c] += w * V[b, head, c]
        ahead += strength
        rho = real(1 - real(ahead))
        strength = level[b, head]
        head = link[b, head]
        near += 1


@internal
def unread_on(far, V, link, level, b, cell, holds, ahead, last, slot, lifo, gr, gs, gV):
    """The reverse of `read_on` for cells that were read whole: the first that was not, what it holds, and
    what was met before it."""
    real = level.dtype.type
    m = V.shape[2]
    rho = real(1 - real(ahead))
    while END < cell <= last and holds < rho:
        for c in range(m):
            gV[b, cell, c] += holds * gr[c]
        if holds > 0 or cell == slot:
            gs[b, cell] += dot(V, b, cell, gr)
        ahead += holds
        k = leaps(far, V, link, level, b, cell, ahead, slot, lifo, False)
        if k >= 0:
            for c in range(m):
                far.vectors[k, c] += gr[c]
            far.used[k] = True
            ahead += far.mass[k]
            holds, cell = far.under[k], far.after[k]
        else:
            holds, cell = level[b, cell], link[b, cell]
        rho = real(1 - real(ahead))
    return cell, holds, ahead


@internal
def take(far, V, link, level, b, cell, holds, ahead, final, slot, lifo, through, gs):
    """Take `through` from the gradients of all cells before `final`."""
    while cell != final:
        if holds > 0 or cell == slot:
            gs[b, cell] -= through
        ahead += holds
        k = leaps(far, V, link, level, b, cell, ahead, slot, lifo, False)
        if k >= 0:
            far.through[k] += through
            ahead += far.mass[k]
            holds, cell = far.under[k], far.after[k]
        else:
            holds, cell = level[b, cell], link[b, cell]


@inlined
def unread(far, V, link, level, b, head, strength, last, slot, behind, lifo, gr, gs, gV):
    """As `memory.unread`."""
    real = level.dtype.type
    m = V.shape[2]
    ahead, rho, near = 0.0, real(1), 0
    cell, holds = head, strength
    while END < cell <= last and holds < rho:  # read whole
        if near == NEAR:
            cell, holds, ahead = unread_on(
                far, V, link, level, b, cell, holds, ahead, last, slot, lifo, gr, gs, gV
            )
            rho = real(1 - real(ahead))
            break
        for c in range(m):
            gV[b, cell, c] += holds * gr[c]
        if holds > 0 or cell == slot:  # an older empty cell has slope 0
            gs[b, cell] += dot(V, b, cell, gr)
        ahead += holds
        rho = real(1 - real(ahead))
        holds = level[b, cell]
        cell = link[b, cell]
        near += 1
    if not END < cell <= last:
        return
    if behind:
        gs[b, slot] += real(0.5) * dot(V, b, slot, gr)  # after a full read: s = rho = 0, a tie
    if rho > 0:  # a part of this one
        for c in range(m):
            gV[b, cell, c] += rho * gr[c]
        through = dot(V, b, cell, gr)  # goes through rho, which is 1 less all strengths before
        if not holds > rho:  # a tie gives each half
            through *= real(0.5)
            gs[b, cell] += through
        final = cell
        cell, holds, ahead, near = head, strength, 0.0, 0
        while cell != final:
            if near == NEAR:
                take(far, V, link, level, b, cell, holds, ahead, final, slot, lifo, through, gs)
                return
            if holds > 0 or cell == slot:
                gs[b, cell] -= through
            ahead += holds
            holds = level[b, cell]
            cell = link[b, cell]
            near += 1


@internal
def give(far, V, link, level, b, k, gs, gV):
    """To the cells of a block, what leaps left with it."""
    far.used[k] = False
    holds, cell = level[b, far.owner[k]], link[b, far.owner[k]]
    for _ in range(far.block - 1):
        for c in range(V.shape[2]):
            gV[b, cell, c] += holds * far.vectors[k, c]
        if holds > 0:
            gs[b, cell] += dot(V, b, cell, far.vectors[k]) - far.through[k]
        holds, cell = level[b, cell], link[b, cell]
    for c in range(V.shape[2]):
        far.vectors[k, c] = 0
    far.through[k] = 0


@inlined
def give_before(far, V, link, level, b, slot, lifo, gs, gV):
    """Before the push into `slot` is undone: the block that is none without it."""
    if lifo:
        k = far.depth[slot] // far.block if far.depth[slot] % far.block == 0 else -1
    else:
        k = slot // far.block if slot % far.block == far.block - 1 else -1
    if k >= 0 and far.used[k]:
        give(far, V, link, level, b, k, gs, gV)


@inlined
def give_all(far, V, link, level, b, gs, gV):
    for k in range(far.used.shape[0]):
        if far.used[k]:
            give(far, V, link, level, b, k, gs, gV)
