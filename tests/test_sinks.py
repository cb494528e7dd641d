"""What leaves the run directories: curves to TensorBoard and Weights & Biases, networks to other programs."""

import io
import json
import time
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch.testing import assert_close

from softstack.lab.runs import export, sinks, store
from softstack.lab.training.conditions import Condition, build
from softstack.lab.training.train import train

PLAIN = Condition("reversal", "lstm", "stack", train_size=20, dev_size=5, test_size=5, max_epochs=3)
BUFFERED = Condition(
    "xor", "linear", "stack", buffered=True, train_size=20, dev_size=5, test_size=5, max_epochs=1
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    return {c: store.load(store.save(root, train(c, [3])[0])) for c in (PLAIN, BUFFERED)}


def test_tensorboard(runs, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = runs[PLAIN]
    sinks.tensorboard(tmp_path, run)
    read = EventAccumulator(str(tmp_path / "tensorboard" / PLAIN.name / "seed-3"))
    read.Reload()
    assert [event.step for event in read.Scalars("loss")] == [1, 2, 3]
    assert [event.value for event in read.Scalars("dev")] == pytest.approx([e.dev for e in run.epochs])
    assert read.Scalars("result/test")[0].value == pytest.approx(run.result["test"])


def unframed(content):
    """The records of a log in LevelDB's format: 7 bytes before each piece, blocks of 32 KiB."""
    records, at = b"", 7
    while at + 7 <= len(content):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
        length = int.from_bytes(content[at + 4 : at + 6], "little")
        records += content[at + 7 : at + 7 + length]
        at += 7 + length
    return records


def test_wandb_offline(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    sinks.wandb(tmp_path, runs[PLAIN])
    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    expected = [PLAIN.name, *(json.dumps(epoch.loss) for epoch in runs[PLAIN].epochs)]
    missing = expected
    for _ in range(300):  # wandb's own process writes the file, and may come to it later
        records = unframed(file.read_bytes())
        missing = [text for text in expected if text.encode() not in records]
        if not missing:
            break
        time.sleep(0.1)
    assert not missing


def test_a_sweep_fills_the_sinks_it_is_asked_to(softstack):
    Path("mine.toml").write_text(
        'seeds = 2\n[condition]\ntask = "xor"\ntrain_size = 20\ndev_size = 5\ntest_size = 5\nmax_epochs = 1\n'
    )
    code, out, _ = softstack("sweep", "mine.toml", "--engine", "inline", "--sink", "tensorboard")
    assert code == 0
    assert "2 of 2 trials are there, 2 trained now" in out
    assert len(list(Path("runs/mine/tensorboard").glob("*/seed-*"))) == 2
    code, _, err = softstack("sweep", "mine.toml", "--sink", "tensorbord")
    assert code == 2
    assert "unknown sink 'tensorbord': did you mean 'tensorboard'" in err


@pytest.mark.parametrize("condition", [PLAIN, BUFFERED], ids=["plain", "buffered"])
def test_exported_networks_compute_the_same(condition, runs):
    run = runs[condition]
    network = store.network(run)
    letters = network.input_size
    x = torch.nn.functional.one_hot(
        torch.randint(letters, (5, 4), generator=torch.manual_seed(0)), letters
    ).float()
    expected = network(x)[0].detach()
    plain = build(condition)
    plain.load_state_dict(safetensors.torch.load(export.as_safetensors(run, 0)))
    assert torch.equal(plain(x)[0].detach(), expected)
    graph = torch.export.load(io.BytesIO(export.as_graph(run, 4))).module()
    assert_close(graph(x), expected)
    assert_close(graph(x[:3]), expected[:3])
    said = json.loads(export.as_json(run, 0))
    assert Condition(**said["condition"]) == condition
    plain.load_state_dict({name: torch.tensor(w) for name, w in said["weights"].items()})
    assert torch.equal(plain(x)[0].detach(), expected)


def test_export_writes_a_file(runs, softstack):
    path = str(runs[PLAIN].path)
    for name, made in export.FORMATS.items():
        file = f"{PLAIN.name}-seed-3{made.suffix}"
        assert softstack("export", path, "--format", name, "--length", "3") == (0, f"Written: {file}\n", "")
        assert Path(file).stat().st_size > 100
        other = f"other{made.suffix}"  # the ending says what is meant
        assert softstack("export", path, "--length", "3", "--out", other) == (0, f"Written: {other}\n", "")
        assert name == "torch" or Path(other).read_bytes() == Path(file).read_bytes()
    for option, value, sentence in (("--format", "onnx", "unknown format"), ("--length", "0", "at least 1")):
        code, _, err = softstack("export", path, option, value)
        assert code == 2
        assert sentence in err
