"""What leaves the run directories: curves to TensorBoard and Weights & Biases, networks to other programs."""

import io
import json
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch.testing import assert_close

from softstack.lab import cli, export, sinks, store
from softstack.lab.experiments import Condition, build
from softstack.lab.train import train

PLAIN = Condition("reversal", "lstm", "stack", train_size=20, dev_size=5, test_size=5, max_epochs=3)
BUFFERED = Condition(
    "xor", "linear", "stack", buffered=True, train_size=20, dev_size=5, test_size=5, max_epochs=1
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    return {c: store.load(store.save(root, train(c, [3])[0])) for c in (PLAIN, BUFFERED)}


def softstack(*arguments):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    return stop.value.code


def test_tensorboard(runs, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = runs[PLAIN]
    sinks.tensorboard(tmp_path, run)
    read = EventAccumulator(str(tmp_path / "tensorboard" / PLAIN.name / "seed-3"))
    read.Reload()
    assert [event.step for event in read.Scalars("loss")] == [1, 2, 3]
    assert [event.value for event in read.Scalars("dev")] == pytest.approx([e["dev"] for e in run.epochs])
    assert read.Scalars("result/test")[0].value == pytest.approx(run.result["test"])


def test_wandb_offline(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    sinks.wandb(tmp_path, runs[PLAIN])
    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    records = file.read_bytes()
    assert PLAIN.name.encode() in records
    for epoch in runs[PLAIN].epochs:
        assert json.dumps(epoch["loss"]).encode() in records


def test_a_sweep_fills_the_sinks_it_is_asked_to(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(
        'seeds = 2\n[condition]\ntask = "xor"\ntrain_size = 20\ndev_size = 5\ntest_size = 5\nmax_epochs = 1\n'
    )
    assert softstack("sweep", "mine.toml", "--engine", "inline", "--sink", "tensorboard") == 0
    assert "2 of 2 trials are there, 2 of them trained now; 0 failed" in capsys.readouterr().out
    assert len(list(Path("runs/mine/tensorboard").glob("*/seed-*"))) == 2
    assert softstack("sweep", "mine.toml", "--sink", "tensorbord") == 2
    assert "unknown sink 'tensorbord': did you mean 'tensorboard'" in capsys.readouterr().err


@pytest.mark.parametrize("condition", [PLAIN, BUFFERED], ids=["plain", "buffered"])
def test_exported_networks_compute_the_same(condition, runs):
    run = runs[condition]
    network = store.network(run)
    letters = network.cell.sizes["input_size"]
    x = torch.nn.functional.one_hot(
        torch.randint(letters, (5, 7), generator=torch.manual_seed(0)), letters
    ).float()
    expected = network(x)[0].detach()
    plain = build(condition)
    plain.load_state_dict(safetensors.torch.load(export.as_safetensors(run, 0)))
    assert torch.equal(plain(x)[0].detach(), expected)
    graph = torch.export.load(io.BytesIO(export.as_graph(run, 7))).module()
    assert_close(graph(x), expected)
    assert_close(graph(x[:3]), expected[:3])
    said = json.loads(export.as_json(run, 0))
    assert Condition(**said["condition"]) == condition
    plain.load_state_dict({name: torch.tensor(w) for name, w in said["weights"].items()})
    assert torch.equal(plain(x)[0].detach(), expected)


def test_export_writes_a_file(runs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = str(runs[PLAIN].path)
    for name, made in export.FORMATS.items():
        assert softstack("export", path, "--format", name, "--length", "3") == 0
        file = f"{PLAIN.name}-seed-3{made.suffix}"
        assert capsys.readouterr().out == f"Written: {file}\n"
        assert Path(file).stat().st_size > 100
    for wrong, sentence in (
        (["--format", "onnx"], "unknown format 'onnx'"),
        (["--length", "0"], "at least 1"),
    ):
        with pytest.raises(SystemExit):
            cli.main(["export", path, *wrong])
        assert sentence in capsys.readouterr().err
