# repeat_task.py
from dataclasses import dataclass

from softstack.lab.tasks.data import Example


@dataclass(frozen=True)
class Repeat:
    """Read w, then say it again.

    input    1 0 0 # # #
    target   _ _ _ 1 0 0
    """

    name: str = "repeat"

    inputs = ("0", "1", "#")
    outputs = ("0", "1")
    alphabet = ("0", "1", "#")
    padding = "#"
    loss = "step_mean"

    def length(self, split):
        return 48 if split == "test" else 24

    def sample(self, rng, n, split):
        longest = 24 if split == "test" else 12
        return [
            tuple("01"[bit] for bit in rng.integers(2, size=rng.integers(1, longest + 1))) for _ in range(n)
        ]

    def example(self, symbols):
        word = tuple(symbol for symbol in symbols if symbol != "#")
        return Example(word + ("#",) * len(word), (None,) * len(word) + word)


TASKS = {"repeat": Repeat()}
