"""The process from which local workers are forked: it has imported everything, so that they start at once.

The command starts it before it imports torch itself, so that both import at the same time. Workers do not
hear Ctrl-C: the driver does, and ends them.
"""

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker

from softstack_command.interrupts import deaf

IMPORTED = [
    "distributed",
    "softstack.lab.sweeps.engine",
    "softstack.lab.training.native",
    "softstack.kernels.cpu.rnn",
]


def prepare() -> None:
    """Start that process, unless it is there. It ends when this one does."""
    resource_tracker.ensure_running()  # the server would start it, and hear Ctrl-C from then on
    with one_thread(), deaf():
        multiprocessing.get_context("forkserver").set_forkserver_preload(IMPORTED)
        forkserver.ensure_running()


@contextmanager
def one_thread() -> Iterator[None]:
    """Workers inherit the environment, and must not start threads of their own in torch."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
