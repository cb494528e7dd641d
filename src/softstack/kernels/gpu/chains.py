"""One step of a stack or a queue whose cells are linked: what a language model does token by token."""

import triton
import triton.language as tl

from softstack.kernels.gpu.memory import pop, push, read, row


@triton.jit(do_not_specialize=["slot", "C"])
def step_kernel(
    V, link, level, head, strength, u, d, fault, r, slot, C, m, LIFO: tl.constexpr, M: tl.constexpr
):  # fmt: skip
    """`Backend.scan_step`: one program is one sequence."""
    b = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, M)
    V, link, level = V + b * C * m, link + b * C, level + b * C
    pops, pushes = tl.load(u + b), tl.load(d + b)
    first, holds = pop(link, level, tl.load(head + b), tl.load(strength + b), pops)
    first, holds = push(link, level, first, holds, slot, pushes, LIFO)
    tl.store(head + b, first)
    tl.store(strength + b, holds)
    v = tl.load(row(V, slot, m, k), mask=k < m, other=0).to(level.dtype.element_ty)
    wrong = tl.load(fault + b * m + k, mask=k < m, other=0)
    wrong += (v - v) + (pushes - pushes) + tl.where(slot > 0, pops - pops, 0)
    tl.store(fault + b * m + k, wrong, mask=k < m)
    seen = read(V, link, level, first, holds, wrong, m, k)
    tl.store(r + b * m + k, seen.to(r.dtype.element_ty), mask=k < m)
