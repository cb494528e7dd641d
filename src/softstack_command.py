"""The command `softstack`, and the start of the workers that it will want.

It is not in the package because importing that takes a second, for torch. Local workers are forked from a
process that has imported everything: begun first, it is ready by the time that there is work.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver

WITH_WORKERS = ("sweep", "table", "transducers")  # commands that will most likely start some
IMPORTED = [
    "distributed",
    "softstack.lab.sweeps.engine",
    "softstack.lab.training.native",
    "softstack.kernels.cpu.rnn",
]


def main() -> None:
    if sys.argv[1:2] and sys.argv[1] in WITH_WORKERS and "--engine" not in sys.argv:
        prepare()
    try:
        from softstack.lab.cli.main import main as run  # meanwhile
    except KeyboardInterrupt:
        sys.exit(130)
    run()


def prepare() -> None:
    """Start the process from which workers are forked, unless it is there. It goes when this one does."""
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
        yield  # only that one may say so
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
