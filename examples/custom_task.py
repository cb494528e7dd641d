"""A task of your own: an editor with an undo key.

    python examples/custom_task.py
    softstack train undo --plugin examples/custom_task.py --controller linear --memory-size 3
    softstack view RUN_DIR --plugin examples/custom_task.py

The network reads keys. Undo takes the last letter of the text away, and the network must say which: it may
have been typed long ago. docs/add/task.md says what each member of the class is for.
"""

from dataclasses import dataclass

import numpy as np

from softstack.errors import BadInput
from softstack.lab.tasks.data import Example

LETTERS = ("a", "b", "c")
UNDO = "undo"


@dataclass(frozen=True)
class Editor:
    """Say which letter an undo takes away.

    input    a b undo c undo undo
    target   _ _ b    _ c    a
    """

    name: str = "undo"

    inputs = (*LETTERS, UNDO)
    outputs = LETTERS
    alphabet = (*LETTERS, UNDO, "end")
    padding = "end"
    loss = "sum"

    def length(self, split: str) -> int:
        return 40 if split == "test" else 20

    def sample(self, rng: np.random.Generator, n: int, split: str) -> list[tuple[str, ...]]:
        return [self.keys(rng, self.length(split)) for _ in range(n)]

    def keys(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Letters and undos, half of each; undo is never pressed on an empty text."""
        keys: list[str] = []
        text = 0  # how many letters there are
        for _ in range(length):
            undo = text > 0 and rng.random() < 0.5
            keys.append(UNDO if undo else LETTERS[rng.integers(len(LETTERS))])
            text += -1 if undo else 1
        return tuple(keys)

    def example(self, symbols: tuple[str, ...]) -> Example:
        text: list[str] = []
        target: list[str | None] = []
        for symbol in symbols:
            if symbol == UNDO and not text:
                raise BadInput("there is nothing to undo: each undo needs a letter of its own before it")
            target.append(text.pop() if symbol == UNDO else None)  # None: nothing is scored here
            if symbol != UNDO:
                text.append(symbol)
        return Example(symbols, tuple(target))


TASKS = {"undo": Editor()}  # the name by which commands know it


def main() -> dict[str, float]:
    """With a stack, and without."""
    from softstack.lab import plugins
    from softstack.lab.training.conditions import Condition
    from softstack.lab.training.train import train

    plugins.load_all([__file__])
    tests = {}
    for memory in ("stack", "none"):
        condition = Condition("undo", "linear", memory, memory_size=3, max_epochs=20)
        trials = train(condition, seeds=range(5))
        tests[memory] = max(trial.test for trial in trials)
        print(f"memory {memory}: the best of {len(trials)} networks gets {tests[memory]:.1%} right")
    return tests


if __name__ == "__main__":
    main()
