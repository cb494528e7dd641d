"""Triton's kernels, launched without its look-up of what it compiled: that takes longer than most of them."""

import os
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import itemgetter, or_
from typing import Any, NamedTuple

import torch
from torch import Tensor

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
LARGEST = 2**31 - 1  # of the whole numbers that Triton passes in 32 bits
_of_kind: dict[tuple[Any, ...], Any] = {}
_of_sizes: dict[tuple[Any, ...], Any] = {}
MANY = 1000  # sizes that are remembered


def launch(
    kernel: Any, grid: tuple[int, ...], tensors: Sequence[Tensor], numbers: Sequence[int], **options: Any
) -> None:
    """As kernel[grid](*tensors, *numbers, **options), from the second call with the same numbers on in a few
    microseconds. The kernel's constants are its last parameters, and among the options."""
    if INTERPRETED:
        kernel[grid](*tensors, *numbers, **options)
        return
    device = tensors[0].get_device()
    pointers = [x.data_ptr() for x in tensors]
    key = (id(kernel), device, *[x.dtype for x in tensors], *numbers, *options.values())
    ready = _of_sizes.get(key)
    if ready is None or reduce(or_, pointers) & 15:
        ready = launch_of_kind(kernel, grid, tensors, numbers, **options)
        if not reduce(or_, pointers) & 15:
            if len(_of_sizes) >= MANY:
                _of_sizes.clear()
            _of_sizes[key] = ready
        return
    _run(ready, grid, device, pointers, numbers)


def launch_of_kind(
    kernel: Any, grid: tuple[int, ...], tensors: Sequence[Tensor], numbers: Sequence[int], **options: Any
) -> Any:
    """The same where numbers change from call to call. Gives what to `_run` for such tensors and numbers.

    The key has what of an argument Triton compiles for: a tensor's dtype and alignment, a number's size and
    divisors. Triton looks at less than this, so that it is asked too often rather than too seldom.
    """
    if INTERPRETED:
        kernel[grid](*tensors, *numbers, **options)
        return None
    device = tensors[0].get_device()
    pointers = [x.data_ptr() for x in tensors]
    kinds: list[Any] = [id(kernel), device, *options.values()]
    for x, pointer in zip(tensors, pointers, strict=True):
        kinds += (x.dtype, pointer & 15 == 0)
    for number in numbers:
        kinds += (number == 1, number > LARGEST, number & 15 == 0)
    key = tuple(kinds)
    ready = _of_kind.get(key)
    if ready is None:
        compiled = kernel[grid](*tensors, *numbers, **options)
        constants = [options[parameter.name] for parameter in kernel.params if parameter.name in options]
        ready = _of_kind[key] = compiled.run, compiled.function, compiled.packed_metadata, constants
    else:
        _run(ready, grid, device, pointers, numbers)
    return ready


class Launch(NamedTuple):
    """A kernel with all its arguments but tensors, which it has by name."""

    kernel: Any
    grid: tuple[int, ...]
    tensors: tuple[str, ...]
    numbers: tuple[int, ...]
    options: dict[str, Any]


class Launches:
    """Kernels that run one after the other. They are made for tensors of one set of shapes and
    dtypes, and then called with any of those."""

    def __init__(self, *launches: Launch) -> None:
        self.launches = launches
        self.ready: dict[int, list[Any]] = {}  # by device

    def __call__(self, tensors: Mapping[str, Tensor]) -> None:
        pointers = {name: x.data_ptr() for name, x in tensors.items()}
        aligned = not reduce(or_, pointers.values()) & 15
        device = next(iter(tensors.values())).get_device()
        ready = self.ready.get(device) if aligned and not INTERPRETED else None
        if ready is None:
            ready = [self._first(launch, tensors) for launch in self.launches]
            if aligned and not INTERPRETED:
                self.ready[device] = ready
            return
        stream = torch._C._cuda_getCurrentRawStream(device)
        for run, function, metadata, grid, select, rest in ready:
            run(*grid, stream, function, metadata, None, None, None, *select(pointers), *rest)

    @staticmethod
    def _first(launch: Launch, tensors: Mapping[str, Tensor]) -> Any:
        """Run a kernel for the first time; gives what later calls need."""
        kernel, grid, names, numbers, options = launch
        ready = launch_of_kind(kernel, grid, [tensors[name] for name in names], numbers, **options)
        if ready is None:
            return None
        run, function, metadata, constants = ready
        return run, function, metadata, (*grid, 1, 1)[:3], itemgetter(*names), (*numbers, *constants)


def _run(ready: Any, grid: tuple[int, ...], device: int, pointers: list[int], numbers: Sequence[int]) -> None:
    run, function, metadata, constants = ready
    stream = torch._C._cuda_getCurrentRawStream(device)
    # three times None: what is told of a launch, and whom to tell before and after it
    run(*(*grid, 1, 1)[:3], stream, function, metadata, None, None, None, *pointers, *numbers, *constants)


def cdiv(a: int, b: int) -> int:
    """triton.cdiv, which may be called in kernels too and takes 20 us."""
    return -(-a // b)


def power_of_2(size: int) -> int:
    """The next one, as triton.next_power_of_2."""
    return 1 << (size - 1).bit_length()
