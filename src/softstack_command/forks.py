"""The processes that the command starts.

Local workers are forked from one that has imported everything, so that they start at once. The command
starts it before it imports torch itself, so that both import at the same time. None of these processes hears
Ctrl-C: the driver does, and ends them.
"""

import multiprocessing
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing import forkserver, resource_tracker
from typing import Any, TypeVar

from softstack_command.interrupts import deaf, later

IMPORTED = [
    "distributed",
    "softstack.lab.sweeps.engine",
    "softstack.lab.training.native",
    "softstack.kernels.rnn",
    "softstack.kernels.cpu.rnn",
]
TICK = 0.2  # seconds until Ctrl-C is heard
T = TypeVar("T")


def prepare() -> None:
    """Start that process, unless it is there. It ends when this one does."""
    with one_thread(), _deaf():
        multiprocessing.get_context("forkserver").set_forkserver_preload(IMPORTED)
        forkserver.ensure_running()


def _deaf() -> AbstractContextManager[None]:
    resource_tracker.ensure_running()  # starting a process would start it, and from then on hear Ctrl-C
    return deaf()


def results(calls: Sequence[Callable[[], T]], processes: int) -> Iterator[T]:
    """What calls give, each made in one of several new processes, as they come."""
    with later() as stop_if_asked:
        with _deaf():
            pool = multiprocessing.get_context("spawn").Pool(processes)
        with pool:
            coming = pool.imap_unordered(operator.call, calls)
            for _ in calls:
                yield _next(coming, stop_if_asked)


def _next(coming: Any, stop_if_asked: Callable[[], None]) -> Any:
    while True:
        stop_if_asked()
        with suppress(multiprocessing.TimeoutError):
            return coming.next(TICK)


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
