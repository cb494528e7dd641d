"""Many conditions from one file: fixed fields, products and samples of the others, times seeds.

seeds = 20                        # 0 to 19; or a list; or {first = 100, count = 20}

[condition]                       # fields of a Condition that stay the same; [[condition]] for several
task = "reversal"

[product]                         # every combination
controller = ["linear", "lstm"]

[random]                          # or [sobol], which spreads more evenly
samples = 50
seed = 0
learning_rate = {low = 1e-3, high = 1e-1, log = true}
hidden_size = {low = 5, high = 40}
memory = ["stack", "none"]
"""

import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tomli_w
import torch

from softstack.errors import BadInput, unknown
from softstack.lab.runs import copies
from softstack.lab.runs.disk import read
from softstack.lab.tasks import sources
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import SEEDS

KEYS = ("seeds", "condition", "product", "random", "sobol", "slurm")
KINDS: dict[str, Any] = {field.name: field.type for field in fields(Condition)}
MOST_TRIALS = 10_000_000
MOST_BYTES = 16 * 1024 * 1024


class Sweep(NamedTuple):
    """What is to be trained: each condition with each seed."""

    name: str
    conditions: tuple[Condition, ...]
    seeds: tuple[int, ...]
    slurm: dict[str, Any] = {}  # noqa: RUF012 (never changed): how to ask SLURM for workers
    notes: tuple[str, ...] = ()  # sentences for the user on the files of its tasks

    @property
    def trials(self) -> int:
        return len(self.conditions) * len(self.seeds)

    @property
    def digest(self) -> str:
        names = [condition.name for condition in self.conditions]
        return hashlib.sha256(json.dumps([self.name, names, self.seeds]).encode()).hexdigest()[:8]


def load(path: Path, root: Path | None = None) -> Sweep:
    """A sweep from its file, or a sentence on what is wrong with that. The files of its tasks are named from
    where it is. With a root, copies of examples are looked for there."""
    try:
        content = tomllib.loads(read(path, MOST_BYTES).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(
            f"{path} is not TOML ({error}): see `softstack sweep --help` for what it should say"
        ) from None
    if root is not None:
        for table in content["condition"] if _is_list(content.get("condition")) else ():
            copies.recall(str(_table(table, f"[condition] in {path}").get("task", "")), root.glob("*"))
    return parse(content, path.stem, str(path), path.parent)


def parse(content: dict[str, Any], name: str, source: str, folder: Path = Path()) -> Sweep:
    for key in content:
        if key in KINDS and key not in KEYS:
            raise BadInput(f"{source} has {key} outside of a table: put it under a line [condition]")
        if key not in KEYS:
            raise unknown(f"key in {source},", key, KEYS)
    sampled = [kind for kind in SAMPLERS if kind in content]
    if len(sampled) > 1:
        raise BadInput(f"{source} has [random] and [sobol]: keep one of them")
    entries = content.get("condition", [{}])
    tables = entries if _is_list(entries) else [entries]
    fixed = [_table(table, f"[condition] in {source}") for table in tables]
    product = _product(_table(content.get("product", {}), f"[product] in {source}"), source)
    count = len(fixed) * math.prod(len(values) for values in product.values())
    samples: list[dict[str, Any]] = [{}]
    if sampled:
        (kind,) = sampled
        samples = _samples(
            _table(content[kind], f"[{kind}] in {source}"), SAMPLERS[kind], f"[{kind}] in {source}", count
        )
    seeds = _seeds(content.get("seeds", 1), source)
    trials = count * len(samples) * len(seeds)
    if not 0 < trials <= MOST_TRIALS:
        raise BadInput(f"{source} asks for {trials} trials: between 1 and {MOST_TRIALS} can be run")
    combinations = [
        dict(zip(product, values, strict=True)) for values in itertools.product(*product.values())
    ]
    files: dict[str, sources.Source | None] = {}  # each is read once
    conditions = []
    for parts in itertools.product(fixed, combinations, samples):
        settings = _merged(parts, source)
        task = settings.get("task")
        if repr(task) not in files:
            files[repr(task)] = sources.read(task, folder)
        if file := files[repr(task)]:
            settings = file.completed(settings)
        conditions.append(Condition.from_dict(settings, source))
    notes = dict.fromkeys(note for file in files.values() if file for note in file.notes)
    slurm = _table(content.get("slurm", {}), f"[slurm] in {source}")
    return Sweep(name, tuple(dict.fromkeys(conditions)), seeds, slurm, tuple(notes))


def dumps(sweep: Sweep) -> bytes:
    """The same sweep with every condition written out, as `load` reads it."""
    conditions = [asdict(condition) for condition in sweep.conditions]
    return tomli_w.dumps({"seeds": list(sweep.seeds), "condition": conditions}).encode()


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"{where} must be a table of fields and their values; got {value!r:.80}")
    return value


def _seeds(value: Any, source: str) -> tuple[int, ...]:
    span = {"first": 0, "count": value} if type(value) is int else value
    if isinstance(span, dict) and {"count"} <= set(span) <= {"first", "count"}:
        first, count = span.get("first", 0), span["count"]
        if type(first) is int and type(count) is int and 0 < count <= MOST_TRIALS:
            value = range(first, first + count)
    seeds = value if isinstance(value, range | list) else ()
    if seeds and all(type(seed) is int and 0 <= seed < SEEDS for seed in seeds):
        return tuple(dict.fromkeys(seeds))
    raise BadInput(
        f"seeds in {source} must be how many (at most {MOST_TRIALS}), a list of whole numbers from 0 to "
        f"{SEEDS - 1}, or {{first = 100, count = 20}}; got {value!r:.80}"
    )


def _product(table: dict[str, Any], source: str) -> dict[str, list[Any]]:
    for name, values in table.items():
        if name not in KINDS:
            raise unknown(f"field in [product] in {source},", name, KINDS)
        if not _is_list(values):
            raise BadInput(f"{name} in [product] in {source} must be a list of values; got {values!r:.80}")
    return table


def _merged(parts: Sequence[dict[str, Any]], source: str) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            if name in merged:
                raise BadInput(f"{source} gives {name} twice, with {merged[name]!r} and {value!r}: keep one")
            merged[name] = value
    return merged


Sampler = Callable[[int, int, int], np.ndarray[Any, Any]]  # (samples, dimensions, seed) -> in [0, 1)


def _uniform(samples: int, dimensions: int, seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random((samples, dimensions))


def _sobol(samples: int, dimensions: int, seed: int) -> np.ndarray[Any, Any]:
    engine = torch.quasirandom.SobolEngine(dimensions, scramble=True, seed=seed)
    points: np.ndarray[Any, Any] = engine.draw(samples, dtype=torch.float64).numpy()
    return points


SAMPLERS: dict[str, Sampler] = {"random": _uniform, "sobol": _sobol}


def _samples(table: dict[str, Any], sampler: Sampler, where: str, times: int) -> list[dict[str, Any]]:
    spreads = {name: value for name, value in table.items() if name not in ("samples", "seed")}
    samples, seed = table.get("samples"), table.get("seed", 0)
    if type(samples) is not int or not 0 < samples <= MOST_TRIALS // times:
        raise BadInput(
            f"samples in {where} must say how many, at most {MOST_TRIALS // times}; got {samples!r:.80}"
        )
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise BadInput(f"seed in {where} must be a whole number from 0 to 2^63 - 1; got {seed!r:.80}")
    if not spreads:
        raise BadInput(f"{where} names no field: write lines such as  hidden_size = {{low = 5, high = 40}}")
    choosers = {name: _chooser(name, spread, where) for name, spread in spreads.items()}
    points = sampler(samples, len(choosers), seed)
    return [
        {name: choose(u) for (name, choose), u in zip(choosers.items(), point, strict=True)}
        for point in points.tolist()
    ]


def _chooser(name: str, spread: Any, where: str) -> Callable[[float], Any]:
    """From a number in [0, 1) to a value of the field."""
    if name not in KINDS:
        raise unknown(f"field in {where},", name, KINDS)
    if _is_list(spread):
        return lambda u: spread[int(u * len(spread))]
    kind = KINDS[name]
    number = (int,) if kind is int else (int, float)
    fine = (
        kind in (int, float)
        and isinstance(spread, dict)
        and {"low", "high"} <= set(spread) <= {"low", "high", "log"}
        and all(type(spread[end]) in number and abs(spread[end]) < 2**53 for end in ("low", "high"))
        and spread["low"] <= spread["high"]
        and type(spread.get("log", False)) is bool
        and (spread["low"] > 0 or not spread.get("log"))
    )
    if not fine:
        what = "a list of values" + (
            ", or {low = ..., high = ..., log = true or false}" * (kind in (int, float))
        )
        raise BadInput(
            f"{name} in {where} must be {what}, from a number to a greater one; got {spread!r:.80}"
        )
    low, high, log = spread["low"], spread["high"], spread.get("log", False)
    if kind is int:
        if log:  # whole numbers from low to high, each end included
            return lambda u: min(high, int(low * ((high + 1) / low) ** u))
        return lambda u: low + int(u * (high - low + 1))
    if log:
        return lambda u: float(f"{low * (high / low) ** u:.6g}")
    return lambda u: float(f"{low + u * (high - low):.6g}")
