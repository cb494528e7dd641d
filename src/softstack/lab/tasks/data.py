"""Examples, what a network is given of them, and files of them.

A data file is TSV, one example per line: input symbols, a tab, target symbols, separated by spaces, with `_`
where nothing is scored. Where there are more targets than input symbols, padding symbols follow the input.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TextIO

import numpy as np
import torch
from torch import Tensor

from softstack.errors import BadInput
from softstack.words import counted

if TYPE_CHECKING:
    from softstack.lab.tasks import Task

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
UNSCORED = "_"


class Example(NamedTuple):
    """A string and what the network should say at each of its positions; None where nothing is scored."""

    input: tuple[str, ...]
    target: tuple[str | None, ...]

    def padded(self, symbol: str) -> "Example":
        """With the padding symbol after an input that is shorter than what should be said."""
        return self._replace(input=(*self.input, *[symbol] * (len(self.target) - len(self.input))))


def next_symbols(symbols: tuple[str, ...], scored: Sequence[str]) -> Example:
    """The example of a string whose next symbol is to be said, where that is one of those that are scored."""
    following = (*symbols[1:], None)
    return Example(symbols, tuple(s if s in scored else None for s in following))


def uniform(rng: np.random.Generator, symbols: Sequence[str], length: int) -> tuple[str, ...]:
    """A string of uniform symbols."""
    return tuple(symbols[k] for k in rng.integers(len(symbols), size=length))


class Dataset(NamedTuple):
    """n examples as indices into the task's alphabet, padded to T."""

    x: Tensor  # (n, T) input symbols
    y: Tensor  # (n, T) targets; 0 where the mask is not set
    mask: Tensor  # (n, T) bool: scored

    def stacked(self) -> "Dataset":
        """With a leading axis, as the data of a population of one."""
        return Dataset(*(x.unsqueeze(0) for x in self))

    def trimmed(self) -> "Dataset":
        """Without the last columns in which nothing is scored: a causal network cannot tell."""
        scored = self.mask.any(0).nonzero()
        end = int(scored[-1]) + 1 if len(scored) else 0
        return Dataset(self.x[:, :end], self.y[:, :end], self.mask[:, :end])


def one_hot(symbols: Tensor, letters: int, like: Tensor) -> Tensor:
    """Indices (..., T) as the vectors (..., T, letters) that a network reads, with the dtype of `like`."""
    return torch.nn.functional.one_hot(symbols, letters).to(like)


def encode(task: "Task", examples: Sequence[Example], length: int = 0) -> Dataset:
    """Examples padded with the task's padding symbol to the longest, or to `length` if that is more."""
    index: dict[str | None, int] = {None: -1, **{symbol: k for k, symbol in enumerate(task.alphabet)}}
    try:
        lengths = np.array([len(example.input) for example in examples], dtype=int)
        inside = np.arange(lengths.max(initial=length)) < lengths[:, None]  # (n, T): all strings, end to end
        x, y = np.full(inside.shape, index[task.padding]), np.full(inside.shape, -1)
        x[inside] = [index[symbol] for example in examples for symbol in example.input]
        y[inside] = [index[target] for example in examples for target in example.target]
    except (KeyError, ValueError, TypeError, AttributeError):
        for example in examples:
            check_example(task, example)  # which says what is wrong
        raise
    return Dataset(torch.from_numpy(x), torch.from_numpy(y.clip(0)), torch.from_numpy(y >= 0))


def check_example(task: "Task", example: Example) -> None:
    """Refuse what a task's `example` may not give."""
    what = f"example of the task {task.name!r}"
    if not isinstance(example, Example):
        raise BadInput(f"{what} must give an Example(input, target); got {example!r}")
    symbols, targets = example
    if len(symbols) != len(targets):
        raise BadInput(
            f"{what} must give one target for each symbol, None where nothing is scored; got "
            f"{counted(len(targets), 'target')} for {counted(len(symbols), 'symbol')}: {example}"
        )
    for symbol in symbols:
        if symbol not in task.inputs:
            raise BadInput(f"{what} gives {symbol!r}, which is not one of its inputs: {task.inputs}")
    for target in targets:
        if target is not None and target not in task.outputs:
            raise BadInput(
                f"{what} gives the target {target!r}, which is not one of its outputs: {task.outputs}"
            )


def check_symbols(task: "Task", symbols: Sequence[str], where: str = "") -> None:
    """Refuse an empty string and a symbol that is not one of the task's inputs."""
    if not symbols:
        raise BadInput(f"{where}the input is empty: give at least one of {' '.join(task.inputs)}")
    for symbol in symbols:
        if symbol not in task.inputs:
            raise BadInput(
                f"{where}{symbol!r} is not an input symbol of {task.name}: "
                f"accepted are {' '.join(task.inputs)}, separated by spaces"
            )


def written(example: Example) -> str:
    """A line of a data file."""
    return " ".join(example.input) + "\t" + " ".join(target or UNSCORED for target in example.target)


def write_tsv(file: TextIO, examples: Iterable[Example]) -> None:
    for example in examples:
        file.write(written(example) + "\n")


def read_tsv(path: Path, task: "Task | None" = None) -> list[Example]:
    """The examples of a file, or a BadInput that names the line and what is wrong with it. Symbols that the
    task does not have are refused; without a task, every symbol is accepted."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not text in UTF-8 ({error.reason} at byte {error.start})") from None
    examples = [
        parse(line, f"{path}, line {number}: ", task) for number, line in enumerate(lines, 1) if line.strip()
    ]
    if not examples:
        raise BadInput(f"{path} holds no example: write one per line, input symbols, a tab, target symbols")
    if not any(target for example in examples for target in example.target):
        raise BadInput(f"{path} scores nothing: every target is {UNSCORED!r}")
    return examples


def parse(line: str, where: str, task: "Task | None" = None) -> Example:
    """The example on a line; `where` begins the sentence on what is wrong with it."""
    parts = line.split("\t")
    if len(parts) != 2:
        raise BadInput(
            f"{where}expected input symbols, one tab, target symbols; found {counted(len(parts) - 1, 'tab')}"
        )
    symbols, targets = (tuple(part.split()) for part in parts)
    if task:
        check_symbols(task, symbols, where)
    if not symbols:
        raise BadInput(f"{where}the input is empty: give at least one symbol before the tab")
    if len(symbols) > len(targets):
        raise BadInput(
            f"{where}{counted(len(symbols), 'input symbol')} but {counted(len(targets), 'target')}: "
            f"give one target for each input symbol, {UNSCORED!r} where nothing is scored"
        )
    accepted = {*(targets if task is None else task.outputs), UNSCORED}
    for target in targets:
        if task and target not in accepted:
            raise BadInput(
                f"{where}{target!r} is not a target of {task.name}: "
                f"accepted are {' '.join(task.outputs)}, and {UNSCORED!r} where nothing is scored"
            )
    example = Example(symbols, tuple(None if target == UNSCORED else target for target in targets))
    return example.padded(UNSCORED if task is None else task.padding)
