"""Where numbers come from: versions, the commit, the device and the time."""

import contextlib
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import torch

import softstack


def provenance(device: str) -> dict[str, Any]:
    """What is written beside results that were made on a device, "cpu" or "cuda"."""
    return {
        "softstack": softstack.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def commit() -> str:
    """The commit that the package runs from, marked where the work tree differs; "" outside a checkout."""
    here = Path(__file__).parent
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"],
            capture_output=True, text=True, timeout=10, check=True,
        ).stdout.strip()  # fmt: skip
    return ""
