"""What tasks and networks are called in reports and pages."""

import re

from softstack.lab import tasks
from softstack.lab.runs import store

FILES = {"data-": "data", "grammar-": "grammar", "pdt-": "machine"}
OF_FILE = re.compile(rf"({'|'.join(FILES)})([0-9a-f]{{8}})[0-9a-f]*")
INITIALS = ("xor", "cfl", "svo", "sov")
SHORT = ("mlp", "rnn", "gru", "lstm")  # controllers that are called by their initials


def task(name: str) -> str:
    """Such as "Delayed XOR" or "aⁿbⁿ"; of a file, what it is and the beginning of its digest."""
    if digest := OF_FILE.fullmatch(name):
        return f"Your {FILES[digest[1]]} ({digest[2]})"
    words = " ".join(word.upper() if word in INITIALS else word for word in name.split("_"))
    return tasks.title_of(name) or words[0].upper() + words[1:]


def controller(name: str) -> str:
    """Such as "LSTM", or "linear"."""
    return name.upper() if name in SHORT else name


def trial(run: store.Run) -> str:
    """Such as "Delayed XOR, linear controller, seed 0"."""
    c = run.condition
    kind = network(c.controller, buffered=c.buffered)
    return f"{task(tasks.find(c.task).name)}, {kind} controller, seed {run.seed}"


def network(controller_name: str, *, buffered: bool) -> str:
    """Such as "buffered linear"."""
    return f"{'buffered ' if buffered else ''}{controller(controller_name)}"
