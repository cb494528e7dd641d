"""The command `softstack`, and what has to be there before torch is imported.

It stands beside the package, and not in it, because importing that imports torch, which takes seconds.
Workers import this file, too, as part of the program that started them, so it imports next to nothing.
"""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    try:
        from softstack_command import app  # needs softstack[lab]
    except ModuleNotFoundError as missing:
        print(f"softstack: the command needs {missing.name}: pip install 'softstack[lab]'", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    app.main(arguments)
