"""How long the strings of a trial take to draw, for each task: `python benchmarks/strings.py`.

Everything that is kept between calls is forgotten first: this is what a fresh process pays. The best of
three, in seconds of CPU.
"""

import time

import numpy as np

from softstack.formal import sampling
from softstack.formal.grammar import BinaryForm
from softstack.lab import tasks
from softstack.lab.tasks.data import Split

SIZES: tuple[tuple[Split, int], ...] = (("train", 800), ("dev", 100), ("test", 1000))


def seconds(name: str) -> float:
    for cache in (BinaryForm.of, sampling._by_depth, sampling._tables):
        cache.cache_clear()
    began = time.process_time()
    for split, size in SIZES:
        tasks.draw(tasks.TASKS[name], np.random.default_rng(1), size, split)
    return time.process_time() - began


if __name__ == "__main__":
    for name in tasks.TASKS:
        print(f"{name:20}{min(seconds(name) for _ in range(3)):6.2f} s")
