"""Run directories: the truth about what was trained.

    ROOT/<condition>/seed-<n>/
        config.toml          the condition and the seed
        metrics.jsonl        a line an epoch: loss and dev accuracy
        model.safetensors    the weights after the last epoch
        result.json          dev and test accuracy; the same bytes whenever the same trial is run again
        provenance.json      what differs between runs of a trial: commit, versions, device, time

A directory is written under a temporary name, brought to disk and renamed, so that a kill leaves all of
it or nothing under its name. Nothing here loads a pickle.
"""

import json
import os
import platform
import shutil
import subprocess
import tempfile
import tomllib
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import tomli_w
import torch

import softstack
from softstack.errors import BadInput
from softstack.lab.experiments import NUMERICS, Condition, build
from softstack.lab.train import Trial
from softstack.networks import BufferedStackRNN, StackRNN

FILES = ("config.toml", "metrics.jsonl", "model.safetensors", "result.json", "provenance.json")


class Run(NamedTuple):
    """A trial read back from its directory."""

    path: Path
    condition: Condition
    seed: int
    result: dict[str, Any]
    epochs: list[dict[str, float]]


def place(root: Path, condition: Condition, seed: int) -> Path:
    return root / condition.name / f"seed-{seed}"


def finished(root: Path, condition: Condition, seed: int) -> bool:
    """Whether the trial is there and can be read. One that was damaged is made again."""
    try:
        load(place(root, condition, seed))
    except BadInput:
        return False
    return True


def save(root: Path, trial: Trial) -> Path:
    """Write a trial's directory, all of it or none; one that is there already stays."""
    path = place(root, trial.condition, trial.seed)
    if finished(root, trial.condition, trial.seed):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        for name, content in _contents(trial).items():
            write(temporary / name, content)
        _sync(temporary)
        if path.exists():  # damaged: what is left of it is put aside
            path.rename(Path(tempfile.mkdtemp(prefix=f".damaged-{path.name}-", dir=path.parent)) / path.name)
        temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sync(path.parent)
    return path


def _contents(trial: Trial) -> dict[str, bytes]:
    config = {"softstack": softstack.__version__, "numerics": NUMERICS, "seed": trial.seed}
    metrics = [{"epoch": n, **epoch._asdict()} for n, epoch in enumerate(trial.epochs, 1)]
    result = {
        "condition": trial.condition.name,
        "seed": trial.seed,
        "epochs": len(trial.epochs),
        "dev": trial.dev,
        "test": trial.test,
    }
    weights = {name: w.contiguous().cpu() for name, w in trial.weights.items()}
    device = next(iter(trial.weights.values())).device.type
    texts = {
        "config.toml": tomli_w.dumps({**config, "condition": asdict(trial.condition)}),
        "metrics.jsonl": "".join(json.dumps(line) + "\n" for line in metrics),
        "result.json": json.dumps(result, indent=2) + "\n",
        "provenance.json": json.dumps({**provenance(device), "seconds": trial.seconds}, indent=2) + "\n",
    }
    return {
        "model.safetensors": safetensors.torch.save(weights),
        **{name: text.encode() for name, text in texts.items()},
    }


def write(path: Path, content: bytes) -> None:
    """A file, on disk when this returns, and whole or not there: written beside its place and renamed."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def load(path: Path) -> Run:
    """Read a run directory back, or say in a sentence what is wrong with it."""
    if not path.is_dir():
        raise BadInput(f"{path} is not a run directory: `softstack train` and `softstack table` make them")
    missing = [name for name in FILES if not (path / name).is_file()]
    if missing:
        raise BadInput(
            f"{path} is not a whole run directory, {', '.join(missing)} missing: "
            "name the directory of one trial (.../seed-0), or train it again"
        )
    try:
        config = tomllib.loads((path / "config.toml").read_text(encoding="utf-8"))
        result = json.loads((path / "result.json").read_text(encoding="utf-8"))
        epochs = [
            json.loads(line) for line in (path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        numerics, seed, given = config["numerics"], int(config["seed"]), dict(config["condition"])
        float(result["dev"]), float(result["test"]), int(result["epochs"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} cannot be read ({error}): it was damaged, train it again") from None
    if numerics != NUMERICS:
        raise BadInput(
            f"{path} was made by version {numerics} of the numerics and this softstack has {NUMERICS}: "
            "train it again with this one"
        )
    return Run(path, Condition.from_dict(given, str(path / "config.toml")), seed, result, epochs)


def network(run: Run) -> StackRNN | BufferedStackRNN:
    """The trained network. Names and shapes are compared before any weight is read."""
    path = run.path / "model.safetensors"
    built = build(run.condition)
    expected = {name: list(p.shape) for name, p in built.state_dict().items()}
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            found = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118 (not a dict)
            if found != expected:
                raise BadInput(f"{path} holds {found}, but its condition needs {expected}: train it again")
            built.load_state_dict({name: file.get_tensor(name) for name in found})
    except safetensors.SafetensorError as error:
        raise BadInput(f"{path} cannot be read ({error}): it was damaged, train it again") from None
    return built


def provenance(device: str) -> dict[str, Any]:
    """Where numbers come from."""
    return {
        "softstack": softstack.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def commit() -> str:
    """The commit that the package runs from, marked where the work tree differs; "" outside a checkout."""
    here = Path(__file__).parent
    try:
        return subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"],
            capture_output=True, text=True, timeout=10, check=True,
        ).stdout.strip()  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
