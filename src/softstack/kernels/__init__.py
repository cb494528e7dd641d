"""Which implementation runs. The reference, the loops in `memory.py` and `networks.py`, fits everything.

`backend="auto"` takes a fused kernel where there is one and the reference elsewhere; the numbers agree to
rounding. `explain` says what would run, and why.
"""

import importlib
import importlib.util
import os
import warnings
from functools import cache

import torch
from torch import Tensor

from softstack.errors import BadInput, unknown

BACKENDS = ("auto", "reference", "cpu", "gpu")
DTYPES = (torch.float32, torch.float64)
COMPILERS = [name for name in ("numba", "triton") if importlib.util.find_spec(name)]  # that are installed


def require(backend: str) -> None:
    """Refuse a backend that is unknown."""
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)


def why_not_cpu(x: Tensor) -> str:
    """Why the kernels of the CPU do not fit a call with tensors like x; "" where they do."""
    if x.device.type != "cpu":
        return f"its tensors are on {x.device}"
    return _lacks(x, "numba")


def why_not_gpu(x: Tensor) -> str:
    """The same for those of the GPU, which Triton can also interpret on the CPU, slowly, to test them."""
    if x.device.type != "cuda" and not (x.device.type == "cpu" and os.environ.get("TRITON_INTERPRET") == "1"):
        return f"its tensors are on {x.device}"
    return _lacks(x, "triton")


def _lacks(x: Tensor, compiler: str) -> str:
    if x.dtype not in DTYPES:
        return f"its dtype is {x.dtype}, and kernels compute in float32 and float64"
    return "" if compiler in COMPILERS else f"{compiler} is not installed"


WHY_NOT = {"cpu": why_not_cpu, "gpu": why_not_gpu}


@cache
def unusable(kernel: str) -> str:
    """Why compiled code cannot be loaded; "" where it can. Whoever is left with the reference is told."""
    try:
        importlib.import_module(f"softstack.kernels.{kernel}.scan")
    except Exception as error:  # an optional compiler may fail in any way
        reason = f"its kernels cannot be loaded: {error}"
        warnings.warn(
            f"softstack runs without compiled kernels, and slowly: {reason}", RuntimeWarning, stacklevel=2
        )
        return reason
    return ""


def _weigh(backend: str, x: Tensor, why_not: str) -> tuple[str, str]:
    """The kernel that is considered, and what stands against it."""
    require(backend)
    kernel = ("gpu" if x.is_cuda else "cpu") if backend in ("auto", "reference") else backend
    if backend == "reference":
        return kernel, "it was asked for"
    reason = WHY_NOT[kernel](x) or why_not
    if reason or torch.compiler.is_compiling():  # while torch traces, no compiler may be imported
        return kernel, reason
    return kernel, unusable(kernel)


def choose(backend: str, x: Tensor, why_not: str = "") -> str:
    """'cpu', 'gpu' or 'reference' for a call with tensors like x; `why_not` is what else stands against a
    kernel."""
    kernel, reason = _weigh(backend, x, why_not)
    if backend in WHY_NOT and reason:
        raise BadInput(f"backend {backend!r} does not fit this call: {reason}; use 'auto' or 'reference'")
    return "reference" if reason else kernel


def explain(backend: str, x: Tensor, why_not: str = "") -> str:
    """Which backend runs for tensors like x, and why, in a sentence."""
    if choose(backend, x, why_not) == "reference":
        return f"reference: {_weigh(backend, x, why_not)[1]}"
    return f"{choose(backend, x, why_not)}: the fused kernel runs"
