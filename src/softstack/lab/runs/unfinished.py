"""Trials in the middle of their training: kept beside the finished ones, and gone on with."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from softstack.errors import BadInput
from softstack.lab.runs import store
from softstack.lab.runs.disk import read, write_all
from softstack.lab.training import checkpoints
from softstack.lab.training.checkpoints import Networks, epochs_done
from softstack.lab.training.conditions import Condition
from softstack.lab.training.epochs import over


def keep(root: Path, condition: Condition, trials: dict[int, Networks]) -> None:
    """Write trials in the middle of their training down, each at once or not at all."""
    contents = {}
    for seed, networks in trials.items():
        path = store.unfinished_place(root, condition, seed)
        if not path.is_dir():
            path.mkdir(parents=True, exist_ok=True)
            contents[path / "config.toml"] = store.config(condition, seed)
        contents[path / "trainer.safetensors"] = checkpoints.dumps(networks)
        contents[path / "metrics.jsonl"] = store.metrics(epochs_done(networks))  # to look at
    write_all(contents)


def forget_finished(root: Path, conditions: Iterable[Condition]) -> None:
    """Remove what is left of trials that are finished: a kill may come right after one is."""
    for condition in conditions:
        for folder in store.folders(root, condition):
            for path in folder.glob("seed-*.unfinished"):
                seed = path.stem.removeprefix("seed-")
                if seed.isdigit() and store.finished(root, condition, int(seed)):
                    shutil.rmtree(path, ignore_errors=True)


def begun(root: Path, condition: Condition, seed: int) -> Networks | None:
    """Where an unfinished trial was; None if there is none. What was damaged is said in a sentence."""
    path = store.unfinished_place(root, condition, seed) / "trainer.safetensors"
    if not path.exists():
        return None
    try:
        content = read(path, checkpoints.most_bytes(condition))
    except (FileNotFoundError, NotADirectoryError):
        return None
    networks = checkpoints.loads(content, condition, str(path))
    if any(over(network.epochs, condition) for network in networks if not network.end):
        raise BadInput(f"{path} is of a trial whose training was over: it was damaged")
    return networks


def resumable(root: Path, condition: Condition, seed: int) -> Networks | None:
    """As `begun`, but what was damaged is as good as not there."""
    try:
        return begun(root, condition, seed)
    except BadInput:
        return None
