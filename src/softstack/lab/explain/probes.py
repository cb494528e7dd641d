"""Strings on which a network is examined: those of its task, and words that exercise depth."""

from collections.abc import Sequence

import numpy as np

from softstack.errors import BadInput
from softstack.formal.running import deep_walk
from softstack.lab import tasks
from softstack.lab.tasks.data import Example, Split, uniform
from softstack.lab.training.conditions import Condition

MOST_STEPS = 256  # that a network makes on a probe; where test strings take more, probes are shorter
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


def like_training(name: str, rng: np.random.Generator, n: int) -> list[Example]:
    """Two thirds like the training strings of a task, one third about twice as long."""
    task, longer = tasks.find(name), n // 3 + 1
    words = [*task.sample(rng, n - longer, "train"), *task.sample(rng, longer, "test")]
    return [task.example(word) for word in words]


def outside(task: str, rng: np.random.Generator, strings: Sequence[Example]) -> list[Example]:
    """Beginnings of strings with any symbols after them: there a network should get stuck, and stay stuck."""
    letters = tasks.find(task).inputs
    wild = []
    for example in strings:
        begin = example.input[: int(rng.integers(len(example.input)))]
        wild.append(Example((*begin, *uniform(rng, letters, 3)), (None,) * (len(begin) + 3)))
    return wild
