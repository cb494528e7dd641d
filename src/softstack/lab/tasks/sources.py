"""Tasks that are files: a grammar, examples or a pushdown transducer, as a command or a TOML file names them.

    task = "mine.pdt"                                                 what a machine writes
    task = {grammar = "mine.cfg", predict = ") ]", depth = 6, test_depth = 12}
    task = {data = "train.tsv", dev = "dev.tsv", test = "test.tsv"}

What comes out is a task as a Condition names it, by its content: the file is not needed any more.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from softstack.errors import BadInput, unknown
from softstack.formal.analysis import problems
from softstack.formal.grammar import Grammar
from softstack.formal.recognising import is_recogniser, with_verdicts
from softstack.formal.transducer import Transducer
from softstack.lab.tasks import collection, find, prediction
from softstack.lab.tasks.data import Example, Split, read_tsv
from softstack.words import counted

KEYS = {
    "grammar": ("grammar", "predict", "depth", "test_depth"),
    "data": ("data", "dev", "test"),
}
HELD_OUT_SPLITS: tuple[Split, ...] = ("dev", "test")
HELD_OUT = 10  # one in as many strings is held out for a split that is not given


class Source(NamedTuple):
    """What came of a file."""

    task: str  # as a Condition names it
    notes: tuple[str, ...] = ()  # sentences on what was done that was not asked for

    def completed(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of a condition with this task; as many strings as there are, unless others are asked for."""
        sizes: dict[str, int] = getattr(find(self.task), "sizes", {})
        return {**sizes, **settings, "task": self.task}


def read(source: Any, folder: Path) -> Source | None:
    """What a task is that is a file; None for one that is not. Names of files begin at `folder`."""
    if isinstance(source, str) and source.endswith(".pdt") and "\n" not in source:
        return _machine(folder / source)
    if not isinstance(source, dict):
        return None
    kinds = [kind for kind in KEYS if kind in source]
    if len(kinds) != 1:
        raise BadInput(f"a task that is a file names a grammar or data, one of the two; got {source!r:.80}")
    (kind,) = kinds
    for key, value in source.items():
        if key not in KEYS[kind]:
            raise unknown(f"key beside {kind},", key, KEYS[kind])
        form, what = (int, "a whole number") if key in ("depth", "test_depth") else (str, "text")
        if type(value) is not form or value in ("", 0):
            raise BadInput(f"{key} must be {what}; got {value!r:.80}")
    return _grammar(source, folder) if kind == "grammar" else _data(source, folder)


def text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not text in UTF-8 ({error.reason} at byte {error.start})") from None


def machine(path: Path) -> Transducer:
    """A pushdown transducer from its file."""
    content = text(path)
    try:
        return Transducer.parse(content)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def speaking(transducer: Transducer) -> tuple[Transducer, str]:
    """A machine as a network can be it, and a sentence where that is not the machine as it is: a recogniser
    writes its verdicts."""
    if not is_recogniser(transducer):
        return transducer, ""
    sentence = "the machine writes nothing and accepts: the network writes 1 after each symbol where it does"
    return with_verdicts(transducer), f"{sentence}, and 0 elsewhere"


def _machine(path: Path) -> Source:
    transducer, note = speaking(machine(path))
    return Source(str(transducer), (note,) if note else tuple(problems(transducer)))


def _grammar(source: dict[str, Any], folder: Path) -> Source:
    path = folder / source["grammar"]
    content = text(path)
    try:
        grammar = Grammar.parse(content)
        predict = tuple(source.get("predict", "").split())
        task = prediction.text_of(grammar, predict, source.get("depth"), source.get("test_depth"))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    trained, tested = (prediction.of_grammar(task).depth(split) for split in ("train", "test"))
    notes = []
    if "depth" not in source or "test_depth" not in source:
        notes.append(f"strings of depth {trained} for training, {tested} to test")
    if len(find(task).outputs) == 1:
        notes.append(f"only {find(task).outputs[0]} is predicted: who always says it is always right")
    return Source(task, tuple(notes))


def _data(source: dict[str, Any], folder: Path) -> Source:
    names: dict[Split, str] = {"train": "data", "dev": "dev", "test": "test"}
    splits: dict[Split, list[Example]] = {
        split: read_tsv(folder / source[name]) for split, name in names.items() if name in source
    }
    notes: list[str] = []
    for name in HELD_OUT_SPLITS:
        if name not in source:
            splits["train"], splits[name] = _held_out(splits["train"], folder / source["data"])
            count = len(splits[name])
            are = counted(count, f"example of {source['data']} is", f"examples of {source['data']} are")
            notes.append(f"no {name} file is given: {are} held out for it")
    task = collection.hold(collection.collected(splits))
    for name in HELD_OUT_SPLITS:
        for part, has, have in (("input", "has", "have"), ("target", "asks for", "ask for")):
            trained, held_out = _symbols(splits["train"], part), _symbols(splits[name], part)
            if new := [symbol for symbol in held_out if symbol not in trained]:
                notes.append(f"no training string {has} {' '.join(new)}, which the {name} strings {have}")
    return Source(task.name, tuple(notes))


def _symbols(examples: Sequence[Example], part: str) -> dict[str, None]:
    """All symbols of the inputs, or of the targets, in the order in which they come."""
    return dict.fromkeys(s for example in examples for s in getattr(example, part) if s is not None)


def _held_out(examples: Sequence[Example], path: Path) -> tuple[list[Example], list[Example]]:
    """Examples in two parts, that which stays and that which is held out. All examples of a string go to the
    same part; the same file is always parted in the same way."""
    strings = list(dict.fromkeys(example.input for example in examples))
    chosen = np.random.default_rng(0).permutation(len(strings))[: -(-len(strings) // HELD_OUT)]
    away = {strings[k] for k in chosen}
    parts = [[e for e in examples if (e.input in away) == out] for out in (False, True)]
    for part in parts:
        if not any(target for example in part for target in example.target):
            raise BadInput(f"{path} has too few examples to hold some out: give files for dev and test")
    return parts[0], parts[1]
