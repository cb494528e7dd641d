"""Arguments checked where they enter the library: what was given, what is expected.

Shapes and dtypes are checked always. Values are checked on the CPU, where looking costs little; on CUDA by
an asynchronous assertion, which needs no synchronisation and fails as an index out of range does there;
and not at all inside torch.func transforms and torch.compile, where a tensor has no values to look at.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from softstack.errors import BadInput

if TYPE_CHECKING:
    from softstack.memory import Instructions, MemoryState


def shape(name: str, given: Tensor, axes: str, expected: tuple[int, ...], against: str) -> None:
    if tuple(given.shape) != tuple(expected):
        raise BadInput(
            f"{name} must be {axes} = {tuple(expected)} to match {against}; got {tuple(given.shape)}"
        )


def positive(name: str, size: object) -> None:
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise BadInput(f"{name} must be a whole number of at least 1; got {size!r}")


def width(v: Tensor) -> int:
    """m of v (B, T, m) or (T, m)."""
    if v.ndim not in (2, 3):
        raise BadInput(f"v must be (B, T, m) or (T, m); got {tuple(v.shape)}")
    return v.shape[-1]


def sequence(x: Tensor, width: int, weight: Tensor) -> Tensor:
    """The input of a network whose parameters are like `weight`; under autocast, in their dtype."""
    if x.ndim not in (2, 3) or x.shape[-1] != width:
        raise BadInput(
            f"x must be (B, T, input_size) or (T, input_size) with input_size = {width}; got {tuple(x.shape)}"
        )
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


def state(given: object, expected: object, name: str = "state") -> None:
    """A state against a fresh one for the same input: the same parts, of the same shapes, dtype and device.
    Memories and buffers alone may hold any number of items."""
    if isinstance(expected, Tensor):
        if not isinstance(given, Tensor):
            raise BadInput(f"{name} must be a tensor; got {type(given).__name__}")
        if given.dtype != expected.dtype or given.device != expected.device:
            raise BadInput(
                f"{name} must be {expected.dtype} on {expected.device}; got {given.dtype} on {given.device}"
            )
        if given.shape != expected.shape:
            raise BadInput(f"{name} must be {tuple(expected.shape)} to match x; got {tuple(given.shape)}")
        return
    assert isinstance(expected, tuple)
    if type(given) is not type(expected) or len(given) != len(expected):
        raise BadInput(f"{name} is not one that this network gave: start from None, or from its own")
    assert isinstance(given, tuple)
    fields = getattr(expected, "_fields", range(len(expected)))
    if fields == ("V", "s"):  # the items of a memory: their number is its own affair
        s = given[1]
        items = s.shape[-1] if isinstance(s, Tensor) and s.ndim else 0
        batch, size = expected[1].shape[:-1], expected[0].shape[-1]
        expected = type(expected)(
            expected[0].new_empty(*batch, items, size), expected[1].new_empty(*batch, items)
        )  # type: ignore[call-arg]  # a MemoryState
    for field, part, wanted in zip(fields, given, expected, strict=True):
        state(part, wanted, f"{name}.{field}")
    if fields == ("V", "s"):
        strengths(f"{name}.s", given[1])


def instructions(given: "Instructions", state: "MemoryState", size: int, *, time: bool) -> None:
    """v, u, d of one step, or of a sequence if `time`, against each other and against the state."""
    v, u, d = given
    axes = ["T"] if time else []
    if v.ndim not in (len(axes) + 1, len(axes) + 2) or v.shape[-1] != size:
        step = ", ".join([*axes, "m"])
        raise BadInput(f"v must be (B, {step}) or ({step}) with m = {size}; got {tuple(v.shape)}")
    batch = ["B"] if v.ndim == len(axes) + 2 else []
    for name, x in (("u", u), ("d", d)):
        shape(name, x, f"({', '.join(batch + axes)})", v.shape[:-1], "v")
        same_kind(name, x, v)
        strengths(name, x)
    lead = v.shape[: len(batch)]
    slots = state.s.shape[-1] if state.s.ndim else 0
    shape("state.s", state.s, f"({', '.join([*batch, 'N'])})", (*lead, slots), "v")
    shape("state.V", state.V, f"({', '.join([*batch, 'N', 'm'])})", (*lead, slots, size), "v and state.s")
    same_kind("state.V", state.V, v)
    same_kind("state.s", state.s, v)
    strengths("state.s", state.s)


def same_kind(name: str, x: Tensor, v: Tensor) -> None:
    if x.dtype != v.dtype or x.device != v.device or not x.is_floating_point():
        raise BadInput(
            f"{name} must be a floating point tensor of v's dtype and device, {v.dtype} on {v.device}; "
            f"got {x.dtype} on {x.device}"
        )


def strengths(name: str, x: Tensor) -> None:
    """Strengths are finite and not negative."""
    if transformed(x):
        return
    fine = (x >= 0) & (x < torch.inf)
    if x.device.type == "cpu":
        if not bool(fine.all()):
            wrong = x[~fine].flatten()[0].item()
            raise BadInput(f"{name} holds a strength of {wrong}; strengths must be finite and not negative")
    elif x.device.type == "cuda":
        torch._assert_async(fine.all(), f"{name} holds a strength that is negative or not finite")


def lengths(given: Tensor, x: Tensor) -> None:
    """lengths (B,) against x (B, T, ...)."""
    if not isinstance(given, Tensor):
        raise BadInput(f"lengths must be a tensor of whole numbers; got {type(given).__name__}")
    if given.is_floating_point() or given.is_complex() or given.dtype == torch.bool:
        raise BadInput(f"lengths must be whole numbers; got {given.dtype}")
    shape("lengths", given, "(B,)" if x.ndim == 3 else "()", x.shape[:-2], "x")
    if given.device.type != "cpu" or transformed(given) or not given.numel():
        return
    low, high, steps = int(given.min()), int(given.max()), x.shape[-2]
    if low < 0 or high > steps:
        raise BadInput(f"lengths must lie between 0 and T = {steps}; got {low if low < 0 else high}")


def transformed(x: Tensor) -> bool:
    """Whether x stands for values that cannot be looked at now."""
    return torch.compiler.is_compiling() or torch._C._functorch.is_functorch_wrapped_tensor(x)
