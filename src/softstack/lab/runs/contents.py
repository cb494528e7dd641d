"""What the files of a run directory hold, each checked: they may come from anywhere."""

import contextlib
import hashlib
import json
import math
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from softstack.errors import BadInput
from softstack.lab.plugins import Plugin
from softstack.lab.runs.disk import digest_of, read, read_json
from softstack.lab.training.conditions import NUMERICS
from softstack.lab.training.draws import SEEDS
from softstack.lab.training.epochs import Epoch

HASHED = ("config.toml", "metrics.jsonl", "model.safetensors")
FILES = (*HASHED, "result.json", "provenance.json")
MOST_TEXT = 64 * 1024  # bytes of a file of text whose length does not depend on the epochs
MOST_LINE = 256  # bytes of metrics.jsonl for each epoch
MOST_METRICS = 2**28  # bytes, however many epochs there may be
MOST_WEIGHTS = 2**28  # bytes, where the condition is not looked into


@contextlib.contextmanager
def sentences(path: Path) -> Iterator[None]:
    """What is wrong with a directory is said in a sentence."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path} cannot be read ({error}): it was damaged, train it again") from None


class About(NamedTuple):
    """What the small files of a run directory hold."""

    config: bytes
    seed: int
    values: dict[str, Any]  # of the condition
    task_version: int
    provenance: dict[str, Any]


def whole(path: Path) -> About:
    if not path.is_dir():
        raise BadInput(f"{path} is not a run directory: `softstack train` and `softstack table` make them")
    missing = [name for name in FILES if not (path / name).is_file()]
    if missing:
        raise BadInput(
            f"{path} is not a whole run directory, {', '.join(missing)} missing: "
            "name the directory of one trial (.../seed-0), or train it again"
        )
    config = read(path / "config.toml", MOST_TEXT)
    table = tomllib.loads(config.decode())
    numerics, seed, values = table["numerics"], table["seed"], dict(table["condition"])
    if numerics != NUMERICS:
        raise BadInput(
            f"{path} was made by version {numerics} of the numerics and this softstack has {NUMERICS}: "
            "train it again with this one"
        )
    if "task" not in values:
        raise KeyError("task")
    if type(seed) is not int or not 0 <= seed < SEEDS:
        raise ValueError(f"seed is {seed!r}")
    source = read_json(path / "provenance.json", MOST_TEXT)
    _number("seconds", source["seconds"], 0, math.inf)
    for plugin in source.get("plugins", ()):
        if not all(isinstance(plugin[key], str) for key in Plugin._fields):
            raise ValueError(f"a plugin is {plugin!r}")
    return About(config, seed, values, table.get("task_version", 1), source)


def _number(name: str, value: Any, least: float, most: float) -> float:
    if type(value) not in (int, float) or not least <= value <= most:
        raise ValueError(f"{name} is {value!r}")
    return float(value)


def result_of(
    path: Path, about: About, names: Sequence[str] | None, most_metrics: int, most_weights: int
) -> tuple[dict[str, Any], list[Epoch]]:
    """Result and epochs, once every file is what was written; `names` are those of the condition."""
    result = read_json(path / "result.json", MOST_TEXT)
    sums = dict(result.pop("sha256"))
    named = names is None or result["condition"] in names
    if not named or type(result["seed"]) is not int or result["seed"] != about.seed:
        raise BadInput(
            f"{path} holds the configuration of one trial and the result of another: train it again"
        )
    metrics = read(path / "metrics.jsonl", most_metrics)
    digests = {
        "config.toml": digest(about.config),
        "metrics.jsonl": digest(metrics),
        "model.safetensors": digest_of(path / "model.safetensors", most_weights),
    }
    for name in HASHED:
        if digests[name] != sums[name]:
            raise BadInput(f"{path / name} is not what was written: it was damaged, train it again")
    lines = [json.loads(line) for line in metrics.decode().splitlines()]
    epochs = [Epoch(_loss(line["loss"]), _number("dev", line["dev"], 0, 1)) for line in lines]
    if type(result["epochs"]) is not int or len(epochs) != result["epochs"]:
        raise BadInput(f"{path / 'result.json'} is not what was written: it was damaged, train it again")
    for split in ("dev", "test"):
        _number(split, result[split], 0, 1)
    _loss(result.get("dev_loss"))
    if type(result.get("diverged", False)) is not bool:
        raise ValueError(f"diverged is {result['diverged']!r}")
    return result, epochs


def _loss(value: Any) -> float:
    """A loss: null of a network that diverged, or NaN as it was once written."""
    return math.nan if value is None or value != value else _number("a loss", value, -math.inf, math.inf)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
