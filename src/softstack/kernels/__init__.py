"""Which implementation runs. The reference, the loops in `memory/` and `networks.py`, fits everything.

`backend="auto"` takes a fused kernel where there is one and the reference elsewhere; the numbers agree to
rounding. `explain` says what would run, and why.
"""

import importlib
import importlib.util
import warnings
from functools import cache

import torch
from torch import Tensor
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from softstack.errors import BadInput, unknown
from softstack.kernels import cpu, gpu
from softstack.kernels.backend import Backend

KERNELS: dict[str, Backend] = {"cpu": cpu, "gpu": gpu}
DEVICES = {kernel.DEVICE: name for name, kernel in reversed(KERNELS.items())}  # the first for each
BACKENDS = ("auto", "reference", *KERNELS)
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)  # the last two computed in float32
INSTALLED = {name for name, kernel in KERNELS.items() if importlib.util.find_spec(kernel.COMPILER)}


def require(backend: str) -> None:
    """Refuse a backend that is unknown."""
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)


def why_not(kernel: str, x: Tensor) -> str:
    """Why a kernel does not fit tensors like x, as far as one can tell before it is loaded; "" if it does."""
    reason = KERNELS[kernel].why_not(x)
    if not reason and x.dtype not in DTYPES:
        return f"its dtype is {x.dtype}, and kernels take {', '.join(str(dtype)[6:] for dtype in DTYPES)}"
    return reason or ("" if kernel in INSTALLED else f"{KERNELS[kernel].COMPILER} is not installed")


@cache
def unusable(kernel: str) -> str:
    """Why compiled code cannot be loaded; "" where it can. It warns that the reference runs instead."""
    try:
        importlib.import_module(f"{KERNELS[kernel].__name__}.scan")  # type: ignore[attr-defined]  # it is a package
    except Exception as error:  # an optional compiler may fail in any way
        reason = f"its kernels cannot be loaded: {error}"
        sentence = f"softstack runs without compiled kernels, and slowly: {reason}"
        warnings.warn(sentence, RuntimeWarning, stacklevel=2)
        return reason
    return ""


def _active_mode() -> str:
    """Which TorchFunctionMode may change what torch computes, in words; "" where none does. A default device
    is one too, and changes nothing."""
    if torch.compiler.is_compiling() or not torch._C._len_torch_function_stack():
        return ""
    modes = [mode for mode in _get_current_function_mode_stack() if not isinstance(mode, DeviceContext)]
    return f"{type(modes[-1]).__name__} may change what torch computes" if modes else ""


def _candidate(backend: str, x: Tensor, reason: str) -> tuple[str, str]:
    """The kernel that might run, and the reason why it does not, if any."""
    require(backend)
    kernel = backend if backend in KERNELS else DEVICES.get(x.device.type, "cpu")
    if backend == "reference":
        return kernel, "it was asked for"
    reason = why_not(kernel, x) or reason or _active_mode()
    if reason or torch.compiler.is_compiling():  # while torch traces, no compiler may be imported
        return kernel, reason
    return kernel, unusable(kernel)


def choose(backend: str, x: Tensor, why_not: str = "") -> str:
    """'reference', or the kernel for a call with tensors like x; `why_not` is what else stands against a
    kernel."""
    kernel, reason = _candidate(backend, x, why_not)
    if backend in KERNELS and reason:
        raise BadInput(f"backend {backend!r} does not fit this call: {reason}; use 'auto' or 'reference'")
    return "reference" if reason else kernel


def explain(backend: str, x: Tensor, why_not: str = "") -> str:
    """Which backend runs for tensors like x, and why, in a sentence."""
    kernel = choose(backend, x, why_not)
    if kernel == "reference":
        return f"reference: {_candidate(backend, x, why_not)[1]}"
    return f"{kernel}: the fused kernel runs"
