"""Triton's kernels, launched without its look-up of what it compiled: that takes longer than most of them."""

import os
from typing import Any

from torch import Tensor

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
_compiled: dict[tuple[Any, ...], Any] = {}


def kind(argument: Any) -> Any:
    """What of an argument Triton compiles for: a tensor's dtype and alignment, a number's size and divisors.
    It looks at less than this, so that it is asked too often rather than too seldom."""
    if isinstance(argument, Tensor):
        return argument.dtype, argument.data_ptr() % 16 == 0
    return argument == 1, argument % 16 == 0, argument.bit_length() > 31


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """As kernel[grid](*arguments, **options), from the second call of a kind on in a few microseconds. The
    kernel's constants are its last parameters, and among the options."""
    if INTERPRETED:
        kernel[grid](*arguments, **options)
        return
    device = arguments[0].get_device()
    key = (kernel, device, *map(kind, arguments), *options.values())
    ready = _compiled.get(key)
    if ready is None:
        compiled = kernel[grid](*arguments, **options)
        constants = [options[parameter.name] for parameter in kernel.params if parameter.name in options]
        _compiled[key] = compiled, constants
    else:
        compiled, constants = ready
        compiled[(*grid, 1, 1)[:3]](*arguments, *constants)


def cdiv(a: int, b: int) -> int:
    """triton.cdiv, which may be called in kernels too and takes 20 us."""
    return -(-a // b)


def power_of_2(size: int) -> int:
    """The next one, as triton.next_power_of_2."""
    return 1 << (size - 1).bit_length()
