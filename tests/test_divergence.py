"""A trial whose weights are no longer numbers is stopped and named, and the others never notice."""

import json
import math
from dataclasses import replace

import pytest
import torch

from softstack.lab.runs import index, store, unfinished
from softstack.lab.sweeps import jobs
from softstack.lab.sweeps.plans import Sweep
from softstack.lab.sweeps.workers import Engine
from softstack.lab.training import draws
from softstack.lab.training.conditions import TABLE_1, Condition
from softstack.lab.training.train import train

SEEDS = (0, 1, 2)
FEW = dict(train_size=40, dev_size=10, test_size=10, max_epochs=5, patience=5)
PLAIN = replace(TABLE_1[2], **FEW)


def after_an_epoch(condition, lost):
    """Checkpoints of three trials after their first epoch; of one the weights are no numbers."""
    kept = []
    train(condition, SEEDS, keep=kept.append, every=0)
    begun = [kept[0][seed] for seed in SEEDS]
    (network,) = begun[lost]
    begun[lost] = (network._replace(parameters=torch.full_like(network.parameters, torch.nan)),)
    return begun


@pytest.mark.parametrize(
    "condition",
    [PLAIN, replace(TABLE_1[1], **FEW), replace(PLAIN, gradient_clip=1.0), replace(PLAIN, state_reset=0.1)],
    ids=["plain", "buffered", "clipped", "disturbed"],
)
def test_one_that_diverges_stops_alone_and_the_others_are_the_same_to_the_bit(condition):
    undisturbed = train(condition, SEEDS)
    first, lost, last = train(condition, SEEDS, begun=after_an_epoch(condition, 1))
    assert (lost.diverged, len(lost.epochs), lost.dev, lost.test) == (True, 2, 0.0, 0.0)
    assert math.isnan(lost.dev_loss) and math.isnan(lost.epochs[-1].loss)
    for ours, theirs in ((first, undisturbed[0]), (last, undisturbed[2])):
        assert (ours.diverged, ours.epochs, ours.test) == (False, theirs.epochs, theirs.test)
        assert all(torch.equal(weight, theirs.weights[name]) for name, weight in ours.weights.items())


def test_a_sweep_names_it_and_its_result_says_so(tmp_path):
    whole = tmp_path / "whole"
    sweep = Sweep("mine", (PLAIN,), SEEDS)
    jobs.run_sweep(whole, sweep, Engine("inline"))
    root, said = tmp_path / "root", []
    unfinished.keep(root, PLAIN, dict(zip(SEEDS, after_an_epoch(PLAIN, 1), strict=True)))
    assert jobs.run_sweep(root, sweep, Engine("inline"), said.append).trained == 3
    path = root / PLAIN.name / "seed-1"
    assert said == [
        f"{path} diverged and was stopped: it no longer computes numbers; a lower learning_rate or a "
        "gradient_clip may help"
    ]
    written = (path / "result.json").read_text()
    assert "NaN" not in written + (path / "metrics.jsonl").read_text()  # which is no JSON
    result = json.loads(written)
    assert (result["diverged"], result["dev_loss"], result["dev"], result["epochs"]) == (True, None, 0.0, 2)
    run = store.load(path)
    assert math.isnan(run.epochs[-1].loss)
    for seed in (0, 2):
        ours, theirs = (top / PLAIN.name / f"seed-{seed}" / "result.json" for top in (root, whole))
        assert ours.read_bytes() == theirs.read_bytes()
    assert jobs.run_sweep(root, sweep, Engine("inline"), said.append).trained == 0  # it would diverge again
    with index.opened(root, said.append) as database:
        (row,) = index.query(database, "diverged = true")
        assert (row["seed"], row["dev_loss"]) == (1, None)
        assert len(index.query(database, "diverged = false")) == 2


def test_workers_tell_of_it_too(tmp_path):
    said = []
    unfinished.keep(tmp_path, PLAIN, dict(zip(SEEDS, after_an_epoch(PLAIN, 2), strict=True)))
    sweep = Sweep("mine", (PLAIN,), SEEDS)
    assert jobs.run_sweep(tmp_path, sweep, Engine("local", 1), said.append).trained == 3
    assert len(said) == 1 and "seed-2 diverged and was stopped" in said[0]


def test_a_learning_rate_that_no_network_survives(softstack):
    few = ("--train-size", "40", "--dev-size", "5", "--test-size", "5", "--max-epochs", "4", "--trials", "2")
    code, out, err = softstack("train", "reversal", "--controller", "lstm", *few, "--learning-rate", "1e300")
    assert code == 0
    assert out.count("dev 0.0%  test 0.0%  1 epoch  diverged\n") == 2
    assert err.count("diverged and was stopped") == 2


def test_a_restart_that_diverged_is_never_the_trials(monkeypatch):
    condition = replace(PLAIN, restarts=2, steps=8)

    def initial(condition, seed, device, restart):
        network = draws.initial(condition, seed, device, restart)
        if restart == 0:
            torch.nn.init.constant_(network.cell.heads.bias, torch.nan)
        return network

    monkeypatch.setattr("softstack.lab.training.population.initial", initial)
    (trial,) = train(condition, [0])
    assert (trial.restart, trial.diverged) == (1, False)
    lost, stayed = trial.restarts
    assert math.isnan(lost.dev_loss) and (lost.dev, lost.epochs) == (0.0, 1)
    assert (stayed.dev_loss, stayed.epochs) == (trial.dev_loss, 2)


def test_what_a_diverged_run_shows(tmp_path, softstack):
    """Commands that look into one take it, and say so or refuse in a sentence."""
    small = Condition("reversal", "linear", "stack", **FEW)
    unfinished.keep(tmp_path / "root", small, dict(zip(SEEDS, after_an_epoch(small, 0), strict=True)))
    jobs.run_sweep(tmp_path / "root", Sweep("mine", (small,), SEEDS), Engine("inline"))
    path = str(tmp_path / "root" / small.name / "seed-0")
    assert json.loads(softstack("evaluate", path, "--json")[1])["accuracy"] == 0.0
    for command in (
        ("trace", path, "0 1", "--out", "trace.json"),
        ("trace", path, "0 1", "--out", "trace.png"),
        ("trace", path, "0 1", "--out", "trace.html"),
        ("view", path, "--no-open"),
        ("plot", path),
        ("export", path, "--format", "json", "--out", "network.json"),
        ("extract", path, "--strings", "20"),
        ("diagnose", path, "--strings", "20"),
    ):
        code, _, err = softstack(*command)
        assert code in (0, 1, 2) and "Traceback" not in err, command
    for name in ("trace.json", "network.json"):
        if (tmp_path / name).exists():
            json.loads((tmp_path / name).read_text(), parse_constant=pytest.fail)
