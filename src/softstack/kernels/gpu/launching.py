"""Triton's kernels, launched without its look-up of what it compiled: that takes longer than most of them."""

import os
from typing import Any

import torch

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
LARGEST = 2**31 - 1  # of the whole numbers that Triton passes in 32 bits
_compiled: dict[tuple[Any, ...], Any] = {}
_seen: dict[tuple[Any, ...], Any] = {}  # the same for calls that are quite alike, a few of them
MANY = 1000


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """As kernel[grid](*arguments, **options), from the second call of a kind on in a few microseconds.
    Arguments are tensors and whole numbers. The kernel's constants are its last parameters, and among the
    options.

    Calls are quite alike where numbers and dtypes are the same, and all tensors are aligned.
    """
    if INTERPRETED:
        kernel[grid](*arguments, **options)
        return
    device = arguments[0].get_device()
    values: list[int] = []
    kinds: list[Any] = [id(kernel), device]
    last_digits = 0
    for x in arguments:
        if type(x) is int:
            values.append(x)
            kinds.append(x)
        else:
            pointer = x.data_ptr()
            values.append(pointer)
            kinds.append(x.dtype)
            last_digits |= pointer
    key = (*kinds, last_digits & 15, *options.values())
    ready = _seen.get(key)
    if ready is None:
        found = _look_up(kernel, grid, arguments, values, options, device)
        if not last_digits & 15:
            if len(_seen) >= MANY:
                _seen.clear()
            _seen[key] = found
        return
    run, function, metadata, constants = ready
    stream = torch._C._cuda_getCurrentRawStream(device)
    # three times None: what is told of a launch, and whom to tell before and after it
    run(*(*grid, 1, 1)[:3], stream, function, metadata, None, None, None, *values, *constants)


def _look_up(
    kernel: Any, grid: tuple[int, ...], arguments: Any, values: list[int], options: Any, device: int
) -> Any:
    """Launch, and say what to launch the next time. The key has what of an argument Triton compiles for: a
    tensor's dtype and alignment, a number's size and divisors. Triton looks at less than this, so that it is
    asked too often rather than too seldom."""
    key = [id(kernel), device, *options.values()]
    for x, value in zip(arguments, values, strict=True):
        key.append(value & 15 == 0)
        key.append((value == 1, value > LARGEST) if x is value else x.dtype)
    ready = _compiled.get(tuple(key))
    if ready is None:
        compiled = kernel[grid](*arguments, **options)
        constants = [options[parameter.name] for parameter in kernel.params if parameter.name in options]
        ready = compiled.run, compiled.function, compiled.packed_metadata, constants
        _compiled[tuple(key)] = ready
    else:
        run, function, metadata, constants = ready
        stream = torch._C._cuda_getCurrentRawStream(device)
        run(*(*grid, 1, 1)[:3], stream, function, metadata, None, None, None, *values, *constants)
    return ready


def cdiv(a: int, b: int) -> int:
    """triton.cdiv, which may be called in kernels too and takes 20 us."""
    return -(-a // b)


def power_of_2(size: int) -> int:
    """The next one, as triton.next_power_of_2."""
    return 1 << (size - 1).bit_length()
