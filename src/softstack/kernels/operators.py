"""PyTorch operators: how they are registered, what they do under vmap, and that they have one gradient.

Each is an operator, so that torch.compile and torch.export see one node, under an autograd.Function, so
that torch.func does. A vmapped axis is folded into the first.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softstack.errors import BadInput
from softstack.kernels import KERNELS


def operator(name: str, schema: str, function: Callable[..., Any], fake: Callable[..., Any]) -> Any:
    """The operator softstack::name, whose results look like those of `fake`. As torch.library.custom_op, but
    that has the first call import torch._dynamo: a second of every process."""
    full = f"softstack::{name}"
    torch.library.define(full, schema, tags=(torch.Tag.pt2_compliant_tag,))
    torch.library.impl(full, sorted({"cpu", *(kernel.DEVICE for kernel in KERNELS.values())}), function)
    torch.library.register_fake(full, fake)
    op = getattr(torch.ops.softstack, name).default
    torch.library.register_vmap(full, partial(fold, op))
    return op


def fold(op: Any, info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> tuple[Any, Any]:
    """vmap of an operator whose tensors all begin with a batch axis: the new axis joins that one."""
    size = info.batch_size
    folded = []
    for x, dim in zip(arguments, in_dims, strict=True):
        if isinstance(x, Tensor):
            x = x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
            x = x.flatten(0, 1)
        folded.append(x)
    outputs = op(*folded)
    return [x.unflatten(0, (size, -1)) for x in outputs], [0 for _ in outputs]


class Once(torch.autograd.Function):
    """An operator that has no gradient, and says so."""

    generate_vmap_rule = True

    @staticmethod
    def forward(op: Any, *arguments: Any) -> Any:
        return tuple(op(*arguments))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise BadInput("a fused kernel cannot be differentiated twice: use backend='reference', which can be")


def once(op: Any, *arguments: Any) -> Any:
    """An operator's results, in a backward pass. That it cannot be differentiated again is noted only where
    it may be: noting takes time."""
    return Once.apply(op, *arguments) if torch.is_grad_enabled() else op(*arguments)  # type: ignore[no-untyped-call]  # torch's apply


PLAIN = (Tensor, torch.nn.Parameter)


def plain(*tensors: Tensor) -> bool:
    """Whether nothing but autograd looks at a call: it is not traced, transformed or watched."""
    return (
        all(type(x) in PLAIN for x in tensors)
        and not torch.compiler.is_compiling()
        and torch._C._functorch.peek_interpreter_stack() is None
        and not torch._C._len_torch_dispatch_stack()
    )


New = Callable[..., Tensor]  # Tensor.new_empty, or `empty`
TORCHS = range(1 << 12, 1 << 25)  # bytes: what torch's allocator uses again and again, measured
NUMPY = {torch.float32: np.float32, torch.float64: np.float64, torch.int32: np.int32, torch.int64: np.int64}


def empty(like: Tensor, shape: tuple[int, ...], dtype: torch.dtype | None = None) -> Tensor:
    """As Tensor.new_empty. On the CPU small and very large memory is numpy's: the small is made faster, and
    the large written to for the first time in a third of the time, for numpy asks for huge pages."""
    dtype = dtype or like.dtype
    size = math.prod(shape) * dtype.itemsize
    if not like.is_cpu or size in TORCHS or torch.are_deterministic_algorithms_enabled():
        return like.new_empty(shape, dtype=dtype)  # in the last case filled with NaN, as the tests want it
    if size < TORCHS.start:
        return torch.from_numpy(np.empty(shape, NUMPY[dtype]))
    memory = np.empty(size + 64, np.uint8)
    begin = -memory.ctypes.data % 64  # torch aligns to as much, and kernels are faster so
    return torch.from_numpy(memory[begin : begin + size].view(NUMPY[dtype]).reshape(shape))


def zeros(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The same for Tensor.new_zeros."""
    if not like.is_cpu or math.prod(shape) * like.itemsize in TORCHS or like.dtype not in NUMPY:
        return like.new_zeros(shape)
    return torch.from_numpy(np.zeros(shape, NUMPY[like.dtype]))


def whole(x: Tensor) -> Tensor:
    """Contiguous."""
    return x if x.is_contiguous() else empty(x, x.shape).copy_(x)


def own(x: Tensor | None, like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A gradient that a kernel may write to: a copy, or zeros where there is none."""
    return zeros(like, shape) if x is None else empty(like, shape).copy_(x)
