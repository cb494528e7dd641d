"""A run as data that the page plays back: for networks that it cannot run, and for `ss.show`."""

import math
from typing import Any

from torch import Tensor

from softstack.trace import Trace
from softstack.viewer.declared import said

DIGITS = 6  # significant, of a number in the page


def run(trace: Trace, output: Tensor | None = None) -> dict[str, Any]:
    """What a network did with one sequence, without a batch axis. `output` (T, K) is what it says in the end,
    where that differs from what it put out step by step, as with an output buffer."""
    steps, cells = trace.s.shape
    fixed = getattr(trace.memory, "append_only", False)
    tensors = {"x": trace.x, "y": trace.y, "r": trace.r, "h": trace.h, "s": trace.s}
    return {
        "steps": steps,
        "said": {name: numbers(values) for name, values in said(trace).items()},
        **{name: numbers(values) for name, values in tensors.items()},
        "fixed": fixed,  # whether a cell's vector never changes: then it is here once
        "V": numbers(trace.V[-1] if fixed else trace.V),
        "earlier": cells - steps,  # of a stack or a queue: cells that were there before the first step
        "output": None if output is None else numbers(output),
    }


def numbers(values: Tensor) -> Any:
    """Nested lists of numbers. JSON has no infinity and no NaN: they are text that the page reads back."""
    return _plain(values.detach().double().cpu().tolist())


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value in (0, 1):
        return int(value)
    return float(f"{value:.{DIGITS}g}")
