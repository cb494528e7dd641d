"""One step of a stack or a queue whose cells are linked: what a language model does token by token."""

import triton
import triton.language as tl

from softstack.kernels.gpu.memory import pop, push, read


@triton.jit(do_not_specialize=["slot", "C"])
def step_kernel(
    V, link, level, head, strength, u, d, r, slot, C, m, LIFO: tl.constexpr, M: tl.constexpr
):  # fmt: skip
    """`Backend.scan_step`: one program is one sequence."""
    b = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, M)
    V, link, level = V + b * C * m, link + b * C, level + b * C
    first, holds = pop(link, level, tl.load(head + b), tl.load(strength + b), tl.load(u + b))
    first, holds = push(link, level, first, holds, slot, tl.load(d + b), LIFO)
    tl.store(head + b, first)
    tl.store(strength + b, holds)
    seen = read(V, link, level, first, holds, tl.zeros((M,), level.dtype.element_ty), m, k)
    tl.store(r + b * m + k, seen.to(r.dtype.element_ty), mask=k < m)
