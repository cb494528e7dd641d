"""Arguments checked where they enter the library: what was given, what is expected.

Shapes and dtypes are checked always. Values are checked on the CPU, where looking costs little; on CUDA by
an asynchronous assertion, which needs no synchronisation and fails as an index out of range does there;
and not at all inside torch.func transforms and torch.compile, where a tensor has no values to look at.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softstack.errors import BadInput


def described(value: object) -> str:
    """A value in words, for messages."""
    if isinstance(value, Tensor):
        return f"a tensor of {tuple(value.shape)}"
    if isinstance(value, tuple | list):
        kind = type(value).__name__
        return f"a {kind} of {', '.join(map(described, value))}" if value else f"an empty {kind}"
    return type(value).__name__


def shape(name: str, x: Tensor, axes: tuple[str, ...], expected: tuple[int, ...], against: str) -> None:
    if tuple(x.shape) != tuple(expected):
        named = f"({axes[0]},)" if len(axes) == 1 else f"({', '.join(axes)})"
        text = f"{named} = {tuple(expected)}" if expected else "one number, of shape (),"
        raise BadInput(f"{name} must be {text} to match {against}; got {tuple(x.shape)}")


def tensor(name: str, x: object) -> None:
    if not isinstance(x, Tensor):
        hint = ": torch.as_tensor makes one" if isinstance(x, list | np.ndarray) else ""
        raise BadInput(f"{name} must be a tensor; got {type(x).__name__}{hint}")
    if x.layout != torch.strided or x.is_nested:
        raise BadInput(f"{name} must be a dense tensor; got one that is sparse or nested")


def positive(name: str, size: object) -> None:
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise BadInput(f"{name} must be a whole number of at least 1; got {size!r}")


def finite(name: str, number: object) -> None:
    if not isinstance(number, int | float) or not math.isfinite(number):
        raise BadInput(f"{name} must be a finite number; got {number!r}")


def floating(dtype: torch.dtype | None) -> None:
    """The dtype of a network's parameters; None for PyTorch's default."""
    if dtype is not None and not dtype.is_floating_point:
        raise BadInput(f"dtype must be floating point, such as torch.float32; got {dtype}")


def width(v: Tensor) -> int:
    """m of v (B, T, m) or (T, m)."""
    tensor("v", v)
    if v.ndim not in (2, 3):
        raise BadInput(f"v must be (B, T, m) or (T, m); got {tuple(v.shape)}")
    return v.shape[-1]


def sequence(x: Tensor, width: int, weight: Tensor, size: str = "input_size") -> Tensor:
    """The input of a network whose parameters are like `weight`; under autocast, in their dtype. `size` is
    what its width is called."""
    tensor("x", x)
    if x.ndim not in (2, 3) or x.shape[-1] != width:
        raise BadInput(f"x must be (B, T, {size}) or (T, {size}) with {size} = {width}; got {tuple(x.shape)}")
    if not x.is_floating_point():
        raise BadInput(f"x must be floating point, such as one-hot rows in {weight.dtype}; got {x.dtype}")
    if x.dtype == weight.dtype and x.device == weight.device:
        return x
    kind = x.device.type
    if (
        x.device == weight.device
        and torch.amp.is_autocast_available(kind)
        and torch.is_autocast_enabled(kind)
    ):
        return x.to(weight.dtype)
    raise BadInput(
        f"x must be of the parameters' dtype and device, {weight.dtype} on {weight.device}; "
        f"got {x.dtype} on {x.device}"
    )


def same_state(
    state: object, fresh: object, batch: tuple[int, ...], name: str = "state", cells: bool = False
) -> None:
    """A state against a fresh one for the same input: the same parts, of the same shapes, dtype and device.
    The parts called memory, input and output may hold any number of cells. A part may check more itself."""
    if isinstance(fresh, Tensor):
        if not isinstance(state, Tensor):
            raise BadInput(f"{name} must be a tensor; got {type(state).__name__}")
        if state.dtype != fresh.dtype or state.device != fresh.device:
            raise BadInput(
                f"{name} must be {fresh.dtype} on {fresh.device}; got {state.dtype} on {state.device}"
            )
        same = state.shape[: len(batch)] == fresh.shape[: len(batch)] and state.ndim == fresh.ndim
        if not (same if cells else state.shape == fresh.shape):
            raise BadInput(f"{name} must be {tuple(fresh.shape)} to match x; got {tuple(state.shape)}")
        return
    assert isinstance(fresh, tuple)
    if type(state) is not type(fresh) or len(state) != len(fresh):
        raise BadInput(f"{name} is not one that this network gave: start from None, or from its own")
    assert isinstance(state, tuple)
    fields = getattr(fresh, "_fields", range(len(fresh)))
    for field, part, fresh_part in zip(fields, state, fresh, strict=True):
        of_cells = cells or field in ("memory", "input", "output")
        same_state(part, fresh_part, batch, f"{name}.{field}", of_cells)
    if hasattr(state, "check"):
        state.check(f"{name}.", fresh)


def items(
    prefix: str, V: Tensor, s: Tensor, *, batch: tuple[int, ...], size: int, values: bool = True
) -> None:
    """The vectors and strengths of a stack or a queue: shapes that fit each other, and no bad strength."""
    axes = ("B",) * len(batch)
    slots = s.shape[-1] if s.ndim else 0
    shape(f"{prefix}s", s, (*axes, "N"), (*batch, slots), "x")
    shape(f"{prefix}V", V, (*axes, "N", "m"), (*batch, slots, size), f"x and {prefix}s")
    if values:
        strengths(f"{prefix}s", s)


def instructions(
    v: Tensor,
    u: Tensor,
    d: Tensor,
    state: tuple[Tensor, Tensor] | None,
    size: int,
    *,
    time: bool,
    live: Tensor | None = None,
    values: bool = True,
) -> None:
    """v, u, d of one step, or of a sequence if `time`, against each other and against the state. Where `live`
    (B, T) is false they are padding, which may hold anything. `values=False` leaves strengths to a kernel."""
    for name, x in (("v", v), ("u", u), ("d", d)):
        tensor(name, x)
    axes = ("T",) if time else ()
    if v.ndim not in (len(axes) + 1, len(axes) + 2) or v.shape[-1] != size:
        step = ", ".join([*axes, "m"])
        raise BadInput(f"v must be (B, {step}) or ({step}) with m = {size}; got {tuple(v.shape)}")
    batch = ("B",) if v.ndim == len(axes) + 2 else ()
    for name, x in (("u", u), ("d", d)):
        shape(name, x, batch + axes, v.shape[:-1], "v")
        same_kind(name, x, v)
        if values:
            strengths(name, x if live is None else x.masked_fill(~live, 0.0))
    if state is None:
        return
    V, s = state
    same_kind("state.V", V, v)
    same_kind("state.s", s, v)
    items("state.", V, s, batch=tuple(v.shape[: len(batch)]), size=size, values=values)


def sequences(memory: object, heads: Mapping[str, Any], parts: Mapping[str, Tensor]) -> None:
    """The instructions of a memory with these heads, by name, each with a time axis: (B, T, ...)."""
    if not isinstance(parts, Mapping):
        raise BadInput(f"{memory} is told {', '.join(heads)} by name, in a dict; got {described(parts)}")
    if set(parts) != set(heads):
        raise BadInput(f"{memory} is told {', '.join(heads)}; got {', '.join(parts)}")
    for name, part in parts.items():
        tensor(name, part)
    name, head = next(iter(heads.items()))
    steps = parts[name].shape[: parts[name].ndim - len(head.shape)]  # (B, T) or (T,)
    axes = ("B", "T")[-len(steps) :]
    if len(steps) not in (1, 2) or parts[name].shape[len(steps) :] != head.shape:
        inner = ", ".join(["T", *map(str, head.shape)])
        raise BadInput(f"{name} must be (B, {inner}) or ({inner}); got {tuple(parts[name].shape)}")
    for other, head in heads.items():
        shape(other, parts[other], (*axes, *map(str, head.shape)), (*steps, *head.shape), name)


def same_kind(name: str, x: Tensor, v: Tensor) -> None:
    if x.dtype != v.dtype or x.device != v.device or not x.is_floating_point():
        raise BadInput(
            f"{name} must be a floating point tensor of v's dtype and device, {v.dtype} on {v.device}; "
            f"got {x.dtype} on {x.device}"
        )


def strengths(name: str, x: Tensor) -> None:
    """Strengths are finite and not negative."""
    if transformed(x) or not x.numel():
        return
    if x.device.type == "cpu":
        fine = (x >= 0) & (x < torch.inf)
        if not bool(fine.all()):
            wrong = x[~fine].flatten()[0].item()
            raise BadInput(f"{name} holds a strength of {wrong}; strengths must be finite and not negative")
    elif x.device.type == "cuda":
        total = x.detach().sqrt().sum(dtype=torch.float64)  # NaN or infinite where one strength is bad
        torch._assert_async(total < torch.inf, f"{name} holds a strength that is negative or not finite")


def lengths(counts: Tensor, x: Tensor) -> None:
    """lengths (B,) against x (B, T, ...)."""
    if not isinstance(counts, Tensor):
        raise BadInput(f"lengths must be a tensor of whole numbers; got {type(counts).__name__}")
    if counts.is_floating_point() or counts.is_complex() or counts.dtype == torch.bool:
        raise BadInput(f"lengths must be whole numbers; got {counts.dtype}")
    shape("lengths", counts, ("B",) if x.ndim == 3 else (), x.shape[:-2], "x")
    if counts.device.type != "cpu" or transformed(counts) or not counts.numel():
        return
    low, high, steps = int(counts.min()), int(counts.max()), x.shape[-2]
    if low < 0 or high > steps:
        raise BadInput(f"lengths must lie between 0 and T = {steps}; got {low if low < 0 else high}")


def transformed(x: Tensor) -> bool:
    """Whether x stands for values that cannot be looked at now."""
    return torch.compiler.is_compiling() or torch._C._functorch.is_functorch_wrapped_tensor(x)
