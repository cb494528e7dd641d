"""A task that the page of `softstack view` computes by itself: it brings the JavaScript along."""

from dataclasses import dataclass

from softstack.lab.tasks.data import Example
from softstack.lab.tasks.page import computed

SCRIPT = """{
  example: (task, symbols) => ({ input: symbols, target: [null, ...symbols.slice(0, -1)] }),
  sample: (task, random, length) =>
    Array.from({ length }, () => task.inputs[Math.floor(random() * task.inputs.length)]),
}"""


@dataclass(frozen=True)
class Echo:
    """Say the symbol before.

    input    1 0 0 1
    target   _ 1 0 0
    """

    name: str = "echo"

    inputs = ("0", "1")
    outputs = ("0", "1")
    alphabet = ("0", "1", "_")
    padding = "_"
    loss = "sum"
    page = computed("echo", range(2, 25, 2), 12, script=SCRIPT)

    def length(self, split):
        return 24 if split == "test" else 12

    def sample(self, rng, n, split):
        return [tuple("01"[bit] for bit in rng.integers(2, size=self.length(split))) for _ in range(n)]

    def example(self, symbols):
        return Example(symbols, (None, *symbols[:-1]))


TASKS = {"echo": Echo()}
