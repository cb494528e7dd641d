"""The process from which local workers are forked: it has imported everything, so that they start at once.

The command starts it before it imports torch itself, so that both import at the same time. This module knows
no other.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver

IMPORTED = [
    "distributed",
    "softstack.lab.sweeps.engine",
    "softstack.lab.training.native",
    "softstack.kernels.cpu.rnn",
]


def prepare() -> None:
    """Start that process, unless it is there. It ends when this one does."""
    with one_thread(), _deaf():
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


@contextmanager
def _deaf() -> Iterator[None]:
    """Workers do not hear Ctrl-C, which goes to everyone at a terminal: the driver does, and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
