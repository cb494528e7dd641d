"""Which implementation runs. The reference, the loops in `memory.py` and `networks.py`, fits everything.

`backend="auto"` takes a fused kernel where there is one and the reference elsewhere; the numbers agree to
rounding. `explain` says what would run, and why.
"""

import importlib.util

import torch
from torch import Tensor

from softstack.errors import BadInput, unknown

BACKENDS = ("auto", "reference", "cpu", "gpu")
DTYPES = (torch.float32, torch.float64)


def require(backend: str) -> None:
    """Refuse a backend that is unknown."""
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)


def why_not_cpu(x: Tensor) -> str:
    """Why the kernels of the CPU do not fit a call with tensors like x; "" where they do."""
    if x.device.type != "cpu":
        return f"its tensors are on {x.device}"
    if x.dtype not in DTYPES:
        return f"its dtype is {x.dtype}, and kernels compute in float32 and float64"
    if importlib.util.find_spec("numba") is None:
        return "numba is not installed"
    return ""


def choose(backend: str, x: Tensor, why_not: str = "") -> str:
    """'cpu' or 'reference' for a call with tensors like x, given what else may stand against a kernel."""
    require(backend)
    if backend == "reference":
        return "reference"
    if backend == "gpu":
        raise BadInput("backend 'gpu' asks for a fused kernel and this version has none: use 'auto'")
    reason = why_not_cpu(x) or why_not
    if not reason:
        return "cpu"
    if backend == "cpu":
        raise BadInput(f"backend 'cpu' does not fit this call: {reason}; use 'auto' or 'reference'")
    return "reference"


def explain(backend: str, x: Tensor, why_not: str = "") -> str:
    """Which backend runs for tensors like x, and why, in a sentence."""
    chosen = choose(backend, x, why_not)
    if chosen == "cpu":
        return "cpu: the fused kernel runs"
    reason = "it was asked for" if backend == "reference" else why_not_cpu(x) or why_not
    return f"reference: {reason}"
