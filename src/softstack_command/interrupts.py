"""Ctrl-C where an exception would do harm: in the middle of an import, or of starting and ending processes.

Python raises KeyboardInterrupt wherever the main thread happens to be. Compiled modules swallow it or turn it
into other errors, and half a cluster cannot be closed. This module knows no other.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, TypeVar

SENTENCE = "softstack: stopped; what is finished is kept, run the same command to go on"
STOPPED = 130  # the exit code of what Ctrl-C ended
T = TypeVar("T")


@contextmanager
def _handled(handler: Callable[..., Any]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers, and only it is interrupted
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(*_: Any) -> None:
    os.write(2, f"{SENTENCE}\n".encode())
    os._exit(STOPPED)


def at_once() -> AbstractContextManager[None]:
    """Meanwhile, Ctrl-C ends the process without a further step. For where there is nothing to tidy up."""
    return _handled(_stop)


@contextmanager
def later() -> Iterator[None]:
    """Ctrl-C takes effect when this is over; pressed a second time, at once."""
    pressed = False

    def wait(*_: Any) -> None:
        nonlocal pressed
        if pressed:
            _stop()
        pressed = True

    with _handled(wait):
        yield
    if pressed:
        raise KeyboardInterrupt


@contextmanager
def unbroken(context: AbstractContextManager[T]) -> Iterator[T]:
    """A context whose beginning and end no Ctrl-C breaks off."""
    stack = ExitStack()
    try:
        with later():
            entered = stack.enter_context(context)
        yield entered
    finally:
        with later():
            stack.close()


@contextmanager
def deaf() -> Iterator[None]:
    """Processes that are started meanwhile never hear Ctrl-C, which goes to everyone at a terminal."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # if it was pressed, this process hears it now
