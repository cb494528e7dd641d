"""Run directories: the truth about what was trained.

    ROOT/<condition>/seed-<n>/
        config.toml            the condition and the seed
        metrics.jsonl          loss and dev accuracy, one line for each epoch
        model.safetensors      the weights after the last epoch, and buffers if the controller has any
        result.json            dev and test accuracy, and digests of the files above; the same bytes whenever
                               the same trial is run again
        provenance.json        what differs between runs of a trial: commit, versions, plugins, device, time
    ROOT/<condition>/seed-<n>.unfinished/
        the first two and trainer.safetensors, as of an epoch in the middle of the training: unfinished.py
    ROOT/<condition>/data-<digest>.tsv
        the examples, where the task is files of them: copies.py

A directory is written under a temporary name, brought to disk and renamed, so that a kill leaves all of
it or nothing under its name. Nothing here loads a pickle.

A trial is known by its condition and its seed, and is looked for under every name that the folder of its
condition may have. What softstack 0.1 wrote is read as well: it has a trainer.safetensors in every run.
"""

import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import tomli_w

import softstack
from softstack.errors import BadInput, unknown
from softstack.lab import plugins
from softstack.lab.runs import copies, weights
from softstack.lab.runs.contents import FILES as FILES
from softstack.lab.runs.contents import HASHED as HASHED
from softstack.lab.runs.contents import MOST_LINE, MOST_METRICS, MOST_WEIGHTS, result_of, sentences, whole
from softstack.lab.runs.contents import digest as digest
from softstack.lab.runs.disk import sync
from softstack.lab.runs.disk import write as write
from softstack.lab.runs.disk import write_json as write_json
from softstack.lab.runs.versions import provenance as provenance
from softstack.lab.training.conditions import NUMERICS, Condition, Network
from softstack.lab.training.epochs import Epoch
from softstack.lab.training.train import Trial

Files = dict[str, bytes]  # what a directory holds, by name


class Run(NamedTuple):
    """A trial read back from its directory."""

    path: Path
    condition: Condition
    seed: int
    result: dict[str, Any]
    epochs: list[Epoch]
    provenance: dict[str, Any]


def folders(root: Path, condition: Condition) -> list[Path]:
    """The folders of a condition; if it has none, the one that it would get."""
    paths = [root / name for name in condition.names]
    return [path for path in paths if path.is_dir()] or paths[:1]


def _place(root: Path, condition: Condition, name: str) -> Path:
    """Where something of a condition is; where it would be if it is not there."""
    paths = [folder / name for folder in folders(root, condition)]
    return next((path for path in paths if path.exists()), paths[0])


def place(root: Path, condition: Condition, seed: int) -> Path:
    return _place(root, condition, f"seed-{seed}")


def unfinished_place(root: Path, condition: Condition, seed: int) -> Path:
    return _place(root, condition, f"seed-{seed}.unfinished")


def finished(root: Path, condition: Condition, seed: int) -> bool:
    """Whether the trial is there and can be read. One that was damaged is made again."""
    try:
        run = load(place(root, condition, seed))
    except BadInput:
        return False
    return (run.condition, run.seed) == (condition, seed)


def save(root: Path, trial: Trial) -> Path:
    """Write a trial's directory, all of it or none; one that is there already stays."""
    put(root, trial.condition, {trial.seed: files(trial)})
    return place(root, trial.condition, trial.seed)


def put(root: Path, condition: Condition, trials: dict[int, Files]) -> None:
    """Write the directories of many trials of a condition, by seed: each whole or not there.

    All are written before the first is waited for, so that the disk can take them together.
    """
    parent = folders(root, condition)[0]
    parent.mkdir(parents=True, exist_ok=True)
    copies.keep(root, parent.name, condition.task)
    temporaries: dict[int, Path] = {}
    try:
        for seed, contents in trials.items():
            if not finished(root, condition, seed):
                path = temporaries[seed] = Path(tempfile.mkdtemp(prefix=f".seed-{seed}-", dir=parent))
                for name, content in contents.items():
                    (path / name).write_bytes(content)
                os.chmod(path, 0o755)
        sync(path / name for path in temporaries.values() for name in FILES)
        sync(temporaries.values())
        for seed, path in temporaries.items():
            _into_place(root, condition, seed, path)
    finally:
        for path in temporaries.values():
            shutil.rmtree(path, ignore_errors=True)
    sync([parent])
    for seed in trials:
        shutil.rmtree(unfinished_place(root, condition, seed), ignore_errors=True)


def _into_place(root: Path, condition: Condition, seed: int, temporary: Path) -> None:
    path = place(root, condition, seed)
    try:
        temporary.rename(path)
    except OSError:
        if not path.exists():
            raise
        if finished(root, condition, seed):  # another process wrote the same bytes first
            return
        aside = Path(tempfile.mkdtemp(prefix=f".damaged-{path.name}-", dir=path.parent))
        path.rename(aside / path.name)  # what is left of it is kept
        temporary.rename(path)


def sweep_up(root: Path, conditions: Iterable[Condition]) -> None:
    """Remove what a kill left half written. The caller must have claimed the conditions."""
    for condition in conditions:
        for folder in folders(root, condition):
            for path in folder.glob(".seed-*"):
                shutil.rmtree(path, ignore_errors=True)


def files(trial: Trial) -> Files:
    """What the directory of a finished trial holds."""
    tensors = {name: w.contiguous().cpu() for name, w in trial.weights.items()}
    device = next(iter(trial.weights.values())).device.type
    hashed = {
        "config.toml": config(trial.condition, trial.seed),
        "metrics.jsonl": metrics(trial.epochs),
        "model.safetensors": safetensors.torch.save(tensors),
    }
    result = {
        "condition": trial.condition.name,
        "seed": trial.seed,
        "epochs": len(trial.epochs),
        "dev": trial.dev,
        "test": trial.test,
        "dev_loss": _loss(trial.dev_loss),
        **_restarts(trial),
        **({"diverged": True} if trial.diverged else {}),
        "sha256": {name: digest(content) for name, content in hashed.items()},
    }
    c = trial.condition
    own = [plugin._asdict() for plugin in plugins.needed(c.task, c.memory, c.controller)]
    source = {**provenance(device), "plugins": own, "seconds": trial.seconds}
    return {**hashed, "result.json": _json(result), "provenance.json": _json(source)}


def _restarts(trial: Trial) -> dict[str, Any]:
    """Every network that the trial's was chosen from, so that the choice can be audited."""
    if not trial.restarts:
        return {}
    rows = [{**restart._asdict(), "dev_loss": _loss(restart.dev_loss)} for restart in trial.restarts]
    return {"restart": trial.restart, "restarts": rows}


def _loss(value: float) -> float | None:
    """JSON has no number for the loss of a network that diverged."""
    return value if math.isfinite(value) else None


def config(condition: Condition, seed: int) -> bytes:
    """Every field, to be read; the condition is known by those that differ from their defaults."""
    about: dict[str, Any] = {"softstack": softstack.__version__, "numerics": NUMERICS, "seed": seed}
    if condition.task_version > 1:
        about["task_version"] = condition.task_version
    return tomli_w.dumps({**about, "condition": asdict(condition)}).encode()


def metrics(epochs: Sequence[Epoch]) -> bytes:
    lines = [{"epoch": n, "loss": _loss(epoch.loss), "dev": epoch.dev} for n, epoch in enumerate(epochs, 1)]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def _json(content: Any) -> bytes:
    return json.dumps(content, indent=2).encode() + b"\n"


def load(path: Path) -> Run:
    """Read a run directory back, or say in a sentence what is wrong with it."""
    with sentences(path):
        files = whole(path)
        copies.recall(str(files.values["task"]), (path, path.absolute().parent))
        plugins.require(files.values, files.provenance.get("plugins", ()), str(path))
        condition = _condition(files.values, path / "config.toml")
        if files.task_version != condition.task_version:
            raise BadInput(
                f"{path} was trained on version {files.task_version} of {condition.task} and this softstack "
                f"has {condition.task_version}: train it again with this one"
            )
        most = min(MOST_METRICS, MOST_LINE * condition.most_epochs), weights.most_bytes(condition)
        result, epochs = result_of(path, files, condition.names, *most)
        return Run(path, condition, files.seed, result, epochs, files.provenance)


def _condition(values: dict[str, Any], file: Path) -> Condition:
    try:
        return Condition.from_dict(values, str(file))
    except BadInput as error:
        if str(file) in str(error):
            raise
        raise BadInput(f"{file}: {error}; if it was damaged, train it again") from None


def listed(path: Path) -> dict[str, Any]:
    """What a run directory says of its trial, by the fields of a condition and of the result.

    It needs no plugin, because the condition is not looked into.
    """
    with sentences(path):
        files = whole(path)
        kinds: dict[str, Any] = {field.name: field.type for field in fields(Condition)}
        condition = {field.name: field.default for field in fields(Condition)}
        for name, value in files.values.items():
            if name not in kinds:
                raise unknown(f"key in {path / 'config.toml'},", name, kinds)
            if type(value) is not kinds[name] and (type(value), kinds[name]) != (int, float):
                raise TypeError(f"{name} is {value!r}")
            condition[name] = kinds[name](value)
        result, _ = result_of(path, files, None, MOST_METRICS, MOST_WEIGHTS)
        return {**result, **condition, "provenance": files.provenance}


def network(run: Run) -> Network:
    """The trained network."""
    return weights.network(run.path / "model.safetensors", run.condition, run.seed)
