"""Copies of the examples that runs were trained on: ROOT/<condition>/<task>.tsv, made by tasks/collection.py.

With them a run can be used wherever it is, whatever became of the files that it was trained from.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from softstack.errors import BadInput
from softstack.lab.runs import disk
from softstack.lab.tasks import collection

MOST_BYTES = 2**30


def keep(root: Path, folder: str, task: str) -> None:
    """Put a copy into the folder of a condition, if the task needs one and it is not there. Conditions of one
    root share the same file, where the file system can do that."""
    examples = collection.held(task)
    if examples is None:
        return
    path, content = root / folder / f"{task}.tsv", examples.text.encode()
    if _is_there(path, len(content)):
        return
    for other in root.glob(f"*/{path.name}"):
        if _is_there(other, len(content)):
            with suppress(OSError):
                path.parent.mkdir(parents=True, exist_ok=True)
                os.link(other, path)
                return
    disk.write(path, content)


def _is_there(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def recall(task: str, folders: Iterable[Path]) -> None:
    """Make the examples of a task known to this process from a copy, if it needs one and has none yet."""
    if not task.startswith(collection.MARK) or collection.held(task):
        return
    for path in (folder / f"{task}.tsv" for folder in folders):
        if path.is_file():
            try:
                examples = collection.Collection(disk.read(path, MOST_BYTES).decode())
            except UnicodeDecodeError:
                examples = None
            if examples is None or examples.name != task:
                raise BadInput(f"{path} is not what was written: it was damaged, copy the file anew")
            collection.hold(examples.text)
            return
