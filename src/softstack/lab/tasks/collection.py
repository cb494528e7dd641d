"""Examples of your own as a task, read from files in which each line is an example.

train.tsv    1 0 #<tab>_ _ 0
dev.tsv      0 1 #<tab>_ _ 1
test.tsv     1 1 0 #<tab>_ _ _ 0

All of a task's examples are kept as one text, a line for each with its split before it. The task is known by
a digest of that text: a run's folder has a copy (runs/copies.py), and workers are sent it.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from softstack.errors import BadInput
from softstack.lab.tasks.data import SPLITS, UNSCORED, Example, Split, parse, written
from softstack.lab.tasks.page import Page, ending, recorded, with_ending
from softstack.words import counted

MARK = "data-"  # what the name of such a task begins with


@dataclass(frozen=True)
class Collection:
    """The task of a collection of examples."""

    text: str

    padding = UNSCORED
    loss = "sum"

    @cached_property
    def splits(self) -> dict[Split, list[Example]]:
        """All examples, in the order of their files."""
        splits = defaultdict[str, list[Example]](list)
        for number, line in enumerate(self.text.splitlines(), 1):
            split, _, example = line.partition("\t")
            splits[split].append(parse(example, f"line {number} of a copy of data: "))
        if set(splits) != set(SPLITS):
            raise BadInput(f"a copy of data must have examples of {', '.join(SPLITS)}; got {list(splits)}")
        return {split: splits[split] for split in SPLITS}

    @cached_property
    def name(self) -> str:
        return MARK + hashlib.sha256(self.text.encode()).hexdigest()[:16]

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(symbol for example in self._all for symbol in example.input))

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        targets = (target for example in self._all for target in example.target)
        return tuple(dict.fromkeys(target for target in targets if target is not None))

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.inputs, *self.outputs, self.padding]))

    @property
    def sizes(self) -> dict[str, int]:
        """How many examples there are: all are used, unless fewer are asked for."""
        return {f"{split}_size": len(examples) for split, examples in self.splits.items()}

    @property
    def _all(self) -> list[Example]:
        return list(chain.from_iterable(self.splits.values()))

    @cached_property
    def _known(self) -> dict[tuple[str, ...], Example]:
        """By their inputs. Where an input has several targets, those of its first example. The padding after
        an input that is shorter than its targets may be left out."""
        whole = {example.input: example for example in reversed(self._all)}
        return {**{self._word(symbols): example for symbols, example in whole.items()}, **whole}

    def _word(self, symbols: tuple[str, ...]) -> tuple[str, ...]:
        """An input without the padding after it."""
        last = max((k for k, symbol in enumerate(symbols, 1) if symbol != self.padding), default=0)
        return symbols[:last] or symbols

    @cached_property
    def _ending(self) -> dict[str, Any] | None:
        return ending([[list(s), list(t), list(s)] for s, t in dict.fromkeys(self._known.values())])

    @property
    def page(self) -> Page:
        return recorded(self, splits=SPLITS)

    def length(self, split: Split) -> int:
        return max(len(example.input) for example in self.splits[split])

    def examples(self, rng: np.random.Generator, n: int, split: Split) -> list[Example]:
        """All examples of a split, in their order, or n of them."""
        there = self.splits[split]
        if n > len(there):
            raise BadInput(
                f"{split}_size is {n}, but {self.name} has {counted(len(there), 'example')} for {split}: "
                "ask for no more than that"
            )
        return there if n == len(there) else [there[k] for k in sorted(rng.permutation(len(there))[:n])]

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """Inputs of n examples of a split, as different as can be; `example` adds padding."""
        there = self.splits[split]
        inputs = (there[k % len(there)].input for k in rng.permutation(max(n, len(there)))[:n])
        return [word if self._known[word := self._word(s)].input == s else s for s in inputs]

    def example(self, symbols: tuple[str, ...]) -> Example:
        """That of the data where there is one; else nothing is scored. What all strings of the data end with
        may be left out."""
        if symbols not in self._known:
            symbols = with_ending(self._ending, symbols)
        return self._known.get(symbols) or Example(symbols, (None,) * len(symbols))

    def knows(self, symbols: tuple[str, ...]) -> bool:
        """Whether the data have a string."""
        return not {symbols, with_ending(self._ending, symbols)}.isdisjoint(self._known)


_held: dict[str, Collection] = {}  # the collections of this process, by name


def hold(text: str) -> Collection:
    """Make a collection known to this process."""
    collection = Collection(text)
    return _held.setdefault(collection.name, collection)


def held(name: str) -> Collection | None:
    return _held.get(name)


def collected(examples: Mapping[Split, Sequence[Example]]) -> str:
    """The text of a collection."""
    return "".join(f"{split}\t{written(e)}\n" for split in SPLITS for e in examples[split])
