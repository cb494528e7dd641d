"""Triton's kernels, launched without its look-up of what it compiled: that takes longer than most of them."""

import os
from typing import Any

import torch

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
LARGEST = 2**31 - 1  # of the whole numbers that Triton passes in 32 bits
_compiled: dict[tuple[Any, ...], Any] = {}


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """As kernel[grid](*arguments, **options), from the second call of a kind on in a few microseconds.
    Arguments are tensors and whole numbers. The kernel's constants are its last parameters, and among the
    options.

    The key has what of an argument Triton compiles for: a tensor's dtype and alignment, a number's size and
    divisors. Triton looks at less than this, so that it is asked too often rather than too seldom.
    """
    if INTERPRETED:
        kernel[grid](*arguments, **options)
        return
    device = arguments[0].get_device()
    values = [x if type(x) is int else x.data_ptr() for x in arguments]
    key = [id(kernel), device, *options.values()]
    for x, value in zip(arguments, values, strict=True):
        key.append(value & 15 == 0)
        key.append((value == 1, value > LARGEST) if x is value else x.dtype)
    ready = _compiled.get(tuple(key))
    if ready is None:
        compiled = kernel[grid](*arguments, **options)
        constants = [options[parameter.name] for parameter in kernel.params if parameter.name in options]
        _compiled[tuple(key)] = compiled, constants
    else:
        compiled, constants = ready
        stream = torch._C._cuda_getCurrentRawStream(device)
        # three times None: what is told of a launch, and whom to tell before and after it
        compiled.run(
            *(*grid, 1, 1)[:3], stream, compiled.function, compiled.packed_metadata, None, None, None,
            *values, *constants,
        )  # fmt: skip


def cdiv(a: int, b: int) -> int:
    """triton.cdiv, which may be called in kernels too and takes 20 us."""
    return -(-a // b)


def power_of_2(size: int) -> int:
    """The next one, as triton.next_power_of_2."""
    return 1 << (size - 1).bit_length()
