"""Make the networks of `softstack gallery`: src/softstack/lab/reports/exhibits.

    python tools/make_gallery.py [RUNS]
    python tools/make_gallery.py --inputs    # the networks stay

Under RUNS, runs/gallery if not given, may be trials that `softstack table` and `solve` have trained. What is
missing is trained there. For each network it looks for an input that it gets right, and for a short one that
breaks it: strings of the task of more and more symbols, patterns and some that are drawn at random. What the
texts in gallery.py say of a network is held to it by tests/test_gallery.py.
"""

import itertools
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from softstack.lab import tasks
from softstack.lab.explain import compiled
from softstack.lab.reports.gallery import EXHIBITS, LISTED, Exhibit
from softstack.lab.runs import store
from softstack.lab.sweeps.jobs import train_missing
from softstack.lab.tasks.data import Example, one_hot
from softstack.lab.training import recipes
from softstack.lab.training.conditions import TABLE_1, Condition
from softstack.lab.training.draws import encoded

LENGTHS = [*range(1, 41), *range(44, 101, 4), *range(110, 401, 10), *range(425, 4001, 25)]
DRAWN, EXHAUSTIVE = 60, 1024
SHOWN = 12  # symbols of the input that it gets right, at most
ROUGH: dict[str, Any] = {"tolerance": 0.02, "length": 2}  # compiled so loosely that there is something to see


def condition(exhibit: Exhibit) -> Condition:
    """What is trained: the same again where there is one, for the recipe may have changed since."""
    if (there := EXHIBITS / exhibit.name).exists():
        return store.load(there).condition
    row = TABLE_1[exhibit.row - 1]
    if exhibit.way == "paper":
        return row
    return recipes.solve(Condition(row.task, row.controller))


def made(root: Path, exhibit: Exhibit) -> Path:
    """The run directory of an exhibit."""
    if exhibit.way == "compiled":
        machine, task = compiled.find(TABLE_1[exhibit.row - 1].task)
        _, trial = compiled.compile_task(machine, task, **ROUGH)
        return compiled.save(root, machine, trial)
    train_missing(root, [condition(exhibit)], [exhibit.seed], "inline", say=print)
    return store.place(root, condition(exhibit), exhibit.seed)


def words(task: Any, length: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Strings of a task with about this many symbols: all of them if they are few, else patterns and some."""
    free = task.name in ("reversal", "xor", "delayed_xor")  # any string over these is one of the task
    symbols = [symbol for symbol in task.outputs if symbol in task.inputs]
    if free and len(symbols) ** length <= EXHAUSTIVE:
        return list(itertools.product(symbols, repeat=length))
    found = patterns(symbols, length) if free else nests(length) if task.name == "parenthesis" else ()
    drawn = (random_word(task, length, rng) for _ in range(DRAWN))
    return [word for word in dict.fromkeys(itertools.chain(found, drawn)) if len(word) <= length]


def random_word(task: Any, length: int, rng: np.random.Generator) -> tuple[str, ...]:
    """A string of this many symbols, or of one less where the task has none: formulas are odd."""
    word: tuple[str, ...] = task.of_length(rng, 2 * length if task.name == "reversal" else length)
    return word if len(word) <= length else task.of_length(rng, length - 1)


def patterns(symbols: list[str], length: int) -> Iterator[tuple[str, ...]]:
    """A symbol or two, and then one or two others again and again."""
    for n, m in itertools.product((0, 1, 2), (1, 2)):
        for start, again in itertools.product(
            itertools.product(symbols, repeat=n), itertools.product(symbols, repeat=m)
        ):
            yield (*start, *again * length)[:length]


def nests(length: int) -> Iterator[tuple[str, ...]]:
    """Brackets one within the other, and one after the other."""
    half = max(1, length // 2)
    for kinds in (("()",), ("[]",), ("()", "[]")):
        pairs = list(itertools.islice(itertools.cycle(kinds), half))
        yield nest(pairs)
        yield tuple("".join(pairs))
    rng = np.random.default_rng(length)
    for _ in range(DRAWN // 10):
        yield nest([("()", "[]")[kind] for kind in rng.integers(2, size=half)])


def nest(pairs: list[str]) -> tuple[str, ...]:
    return (*(pair[0] for pair in pairs), *(pair[1] for pair in reversed(pairs)))


@torch.no_grad()
def broken(network: Any, condition: Condition, examples: list[Example]) -> list[bool]:
    """Whether a network is wrong anywhere in each example, given by itself."""
    task, results = tasks.find(condition.task), []
    for example in examples:
        data = encoded(condition, [example])
        y = network(one_hot(data.x, len(task.alphabet), next(network.parameters())))[0]
        said = y[:, : data.y.shape[1]].argmax(-1)
        results.append(bool(((said != data.y) & data.mask).any()))
    return results


def inputs(path: Path, exhibit: Exhibit) -> dict[str, str]:
    run = store.load(path)
    network, task, rng = store.network(run), tasks.find(run.condition.task), np.random.default_rng(0)
    right: tuple[str, ...] = ()
    for length in LENGTHS:
        if length < exhibit.least and length > SHOWN:
            continue
        drawn = words(task, length, rng)
        wrong = broken(network, run.condition, [task.example(word) for word in drawn])
        if length <= SHOWN:
            right = next((word for word, bad in zip(drawn[::-1], wrong[::-1], strict=True) if not bad), right)
        if length >= exhibit.least and any(wrong) and right:
            return {"right": " ".join(right), "wrong": " ".join(drawn[wrong.index(True)])}
    raise SystemExit(f"nothing was found that breaks {exhibit.name}")


def make_all(root: Path) -> None:
    """The run directories of all exhibits, in place of those that are there."""
    places = {exhibit.name: made(root, exhibit) for exhibit in LISTED}
    shutil.rmtree(EXHIBITS, ignore_errors=True)
    for exhibit in LISTED:
        folder = EXHIBITS / exhibit.name
        folder.mkdir(parents=True)
        for name in store.FILES:
            shutil.copy(places[exhibit.name] / name, folder / name)


def main() -> None:
    if sys.argv[1:] != ["--inputs"]:
        make_all(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs/gallery"))
    found = {}
    for exhibit in LISTED:
        found[exhibit.name] = inputs(EXHIBITS / exhibit.name, exhibit)
        print(f"{exhibit.name}: {found[exhibit.name]['wrong'][:100]}")
    (EXHIBITS / "inputs.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
