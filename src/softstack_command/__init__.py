"""The command `softstack`, and what has to be there before torch is imported.

It stands beside the package, and not in it, because importing that imports torch, which takes seconds.
Workers import this file, too, as part of the program that started them, so it imports next to nothing.
"""

import os
import sys
from collections.abc import Sequence

from softstack_command.advice import INSTALL


def main(arguments: Sequence[str] | None = None) -> None:
    from softstack_command import interrupts

    _keep_streams()
    with interrupts.at_once():
        try:
            from softstack_command import app  # needs softstack[lab]
        except ModuleNotFoundError as missing:
            print(f"softstack: the command needs {missing.name}: {INSTALL}", file=sys.stderr)
            sys.exit(2)
        app.main(arguments)


def _keep_streams() -> None:
    """What cannot be printed is written out, and what nobody listens to is lost, which is no error."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (for as long as the process lives)
        elif hasattr(getattr(sys, name), "reconfigure"):
            getattr(sys, name).reconfigure(errors="backslashreplace")
