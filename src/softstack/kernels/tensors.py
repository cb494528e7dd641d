"""New tensors for kernels to fill."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

New = Callable[..., Tensor]  # Tensor.new_empty, or `empty`
TORCHS = range(1 << 12, 1 << 25)  # bytes: what torch's allocator uses again and again, measured
NUMPY = {torch.float32: np.float32, torch.float64: np.float64, torch.int32: np.int32, torch.int64: np.int64}


def empty(like: Tensor, shape: tuple[int, ...], dtype: torch.dtype | None = None) -> Tensor:
    """As Tensor.new_empty. On the CPU small and very large memory is numpy's: the small is made faster, and
    the large written to for the first time in a third of the time, for numpy asks for huge pages."""
    if not like.is_cpu:
        return like.new_empty(shape, dtype=dtype)
    dtype = dtype or like.dtype
    size = math.prod(shape) * dtype.itemsize
    if size in TORCHS or torch.are_deterministic_algorithms_enabled():
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


def zeros_together(parts: Sequence[tuple[Tensor, tuple[int, ...]]]) -> list[Tensor]:
    """`zeros` of all these (like, shape). On a GPU those of a dtype are filled in one go, in one piece of
    memory, each at a multiple of 128 bytes."""
    if not parts or parts[0][0].is_cpu:
        return [zeros(like, shape) for like, shape in parts]
    rooms = {
        dtype: iter(one_piece([(like, shape) for like, shape in parts if like.dtype == dtype]))
        for dtype in {like.dtype for like, _ in parts}
    }
    return [next(rooms[like.dtype]) for like, _ in parts]


def one_piece(parts: list[tuple[Tensor, tuple[int, ...]]]) -> list[Tensor]:
    sizes = [math.prod(shape) for _, shape in parts]
    aligned = [-(-size // 64) * 64 for size in sizes]
    pieces = parts[0][0].new_zeros(sum(aligned)).split(aligned)
    return [piece[:size].view(shape) for piece, size, (_, shape) in zip(pieces, sizes, parts, strict=True)]


def own_together(
    gradients: Sequence[Tensor | None], like: Tensor, shapes: Sequence[tuple[int, ...]]
) -> list[Tensor]:
    """`own` of each: copies of those that are there, and zeros for the others."""
    missing = [(like, shape) for x, shape in zip(gradients, shapes, strict=True) if x is None]
    zeroed = iter(zeros_together(missing))
    return [
        next(zeroed) if x is None else own(x, like, shape) for x, shape in zip(gradients, shapes, strict=True)
    ]
