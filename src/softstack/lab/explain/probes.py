"""Strings on which a network is looked into: those of its task, and words that exercise depth."""

from collections.abc import Sequence

import numpy as np

from softstack.errors import BadInput
from softstack.formal.running import deep_walk
from softstack.lab import tasks
from softstack.lab.tasks.data import Example, Split, uniform
from softstack.lab.training.conditions import Condition

MOST_STEPS = 256  # of a network on a test string that is still a probe
DEEP = (4, 33)  # symbols of a word that fills the stack and empties it


def probes(condition: Condition, rng: np.random.Generator, n: int) -> list[Example]:
    """Half are test strings, or training strings where those are long. The others, where the task has a
    machine, fill its stack and empty it again."""
    task = tasks.find(condition.task)
    steps = condition.steps_per_symbol if condition.buffered else 1
    split: Split = "test" if steps * task.length("test") <= MOST_STEPS else "train"
    machine = tasks.machine_of(task)
    strings: list[Example] = []
    for _ in range(n):
        if machine is None or len(strings) == n // 2:
            break
        try:
            example = task.example(deep_walk(machine, rng, int(rng.integers(*DEEP))))
        except BadInput:
            continue  # the machine reads words that are not of the task
        if example.input:
            strings.append(example)
    words = task.sample(rng, n - len(strings), split)
    return strings + [task.example(word) for word in words]


def like_training(task: str, rng: np.random.Generator, n: int) -> list[Example]:
    """Two thirds like the training strings, one third about twice as long."""
    chosen, longer = tasks.find(task), n // 3 + 1
    words = [*chosen.sample(rng, n - longer, "train"), *chosen.sample(rng, longer, "test")]
    return [chosen.example(word) for word in words]


def outside(task: str, rng: np.random.Generator, strings: Sequence[Example]) -> list[Example]:
    """Beginnings of strings with any symbols after them: where the network is stuck, and that it stays so."""
    letters = tasks.find(task).inputs
    wild = []
    for example in strings:
        begin = example.input[: int(rng.integers(len(example.input)))]
        wild.append(Example((*begin, *uniform(rng, letters, 3)), (None,) * (len(begin) + 3)))
    return wild
