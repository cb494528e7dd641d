"""A trial that stopped in the middle goes on and ends as if it had never stopped, to the bit."""

from dataclasses import replace

import pytest
import torch

from softstack.errors import BadInput
from softstack.lab.training import checkpoints
from softstack.lab.training.conditions import TABLE_1, Condition
from softstack.lab.training.epochs import Epoch
from softstack.lab.training.train import train

SMALL = Condition(
    "reversal", "linear", "stack", train_size=45, dev_size=10, test_size=10, max_epochs=6, patience=2
)


def kept(condition, seeds, begun=()):
    """The trials, and a checkpoint of each at the end of every epoch: {epochs: {seed: bytes}}."""
    seen: dict[int, dict[int, bytes]] = {}

    def keep(trials):
        for seed, networks in trials.items():
            epoch = len(checkpoints.epochs_done(networks))
            seen.setdefault(epoch, {})[seed] = checkpoints.dumps(networks)

    return train(condition, seeds, begun=begun, keep=keep, every=0), seen


def same(ours, theirs):
    assert ours.epochs == theirs.epochs
    assert (ours.seed, ours.dev, ours.test) == (theirs.seed, theirs.dev, theirs.test)
    assert (ours.dev_loss, ours.restart, ours.restarts) == (theirs.dev_loss, theirs.restart, theirs.restarts)
    assert all(torch.equal(weight, theirs.weights[name]) for name, weight in ours.weights.items())


@pytest.mark.parametrize(
    ("condition", "seeds"),
    [
        (SMALL, [0, 1, 2, 3]),
        (replace(SMALL, task="parenthesis", controller="lstm"), [0, 1, 2, 3]),
        (replace(SMALL, controller="mlp", max_epochs=4), [0]),  # no kernel: to the bit where it is one
        (replace(TABLE_1[6], train_size=40, dev_size=10, test_size=10, max_epochs=4), [0, 1, 2, 3]),
        (replace(SMALL, restarts=3), [0, 1, 2, 3]),  # their networks end after different epochs
        (replace(SMALL, restarts=4, halvings=2, steps=38, final_rate=0.1, state_reset=0.1), [0, 1, 2, 3]),
        (replace(SMALL, controller="mlp", restarts=4, halvings=1, steps=20), [0]),
    ],
)
def test_going_on_from_any_epoch(condition, seeds):
    """From every epoch's checkpoint, written and read: those still training, together and one alone."""
    whole, seen = kept(condition, seeds)
    assert len(seen) >= 3
    for epoch, contents in seen.items():
        read = {seed: checkpoints.loads(content, condition, "x") for seed, content in contents.items()}
        for seeds in ([*read], [list(read)[-1]]):
            trials, later = kept(condition, seeds, [read[seed] for seed in seeds])
            for trial in trials:
                same(trial, whole[trial.seed])
            assert all(later[n][seed] == seen[n][seed] for n in later for seed in later[n])  # moments too
            assert min(later, default=epoch + 1) == epoch + 1


def test_checkpoints_are_handed_over_no_more_often_than_asked():
    calls = []
    train(SMALL, [0], keep=calls.append, every=3600)
    assert not calls


def test_trials_that_were_not_in_step_cannot_go_on_together():
    _, seen = kept(SMALL, [0, 1])
    begun = [checkpoints.loads(seen[epoch][0], SMALL, "x") for epoch in (1, 2)]
    with pytest.raises(BadInput, match=r"2 networks cannot go on together from 2 checkpoints after \[1, 2\]"):
        train(SMALL, [0, 1], begun=begun)


def test_a_checkpoint_of_another_condition_is_refused():
    _, seen = kept(SMALL, [0])
    for other in (replace(SMALL, memory_size=3), replace(SMALL, batch_size=5), replace(SMALL, train_size=10)):
        with pytest.raises(BadInput, match=r"mine.safetensors .* it was damaged"):
            checkpoints.loads(seen[1][0], other, "mine.safetensors")


def test_damage_is_told():
    """Cut at every byte, and with every byte of the header and of the counters changed."""
    content = kept(SMALL, [0])[1][2][0]
    assert len(content) < checkpoints.most_bytes(SMALL)
    for offset in range(len(content)):
        with pytest.raises(BadInput, match="it was damaged"):
            checkpoints.loads(content[:offset], SMALL, "x")
    (whole,) = checkpoints.loads(content, SMALL, "x")
    wrong = [
        whole._replace(steps=whole.steps + 1),
        whole._replace(order=(*whole.order[:3], whole.order[3] - 1, *whole.order[4:])),
        whole._replace(order=(*whole.order[:4], 2, 0)),
        whole._replace(epochs=[Epoch(0.1, 1.5), Epoch(0.1, 0.5)]),
        whole._replace(epochs=[Epoch(0.1, float("nan")), Epoch(0.1, 0.5)]),
        whole._replace(first=whole.first[:-1]),
        whole._replace(parameters=whole.parameters.double()[:-2]),
        whole._replace(end=checkpoints.End(0.5, False)),  # and nobody is still trained
    ]
    for network in wrong:
        with pytest.raises(BadInput, match="it was damaged"):
            checkpoints.loads(checkpoints.dumps((network,)), SMALL, "x")


def test_networks_of_a_trial_that_do_not_fit_together_are_told():
    condition = replace(SMALL, restarts=3)
    _, seen = kept(condition, [0])
    first, second = (checkpoints.loads(seen[epoch][0], condition, "x") for epoch in (1, 2))
    ended = second[0]._replace(end=checkpoints.End(0.5, False))
    wrong = [(first[0], second[1], second[2]), (ended, first[1], first[2]), second[:2], second * 2]
    for networks in wrong:
        with pytest.raises(BadInput, match="it was damaged"):
            checkpoints.loads(checkpoints.dumps(networks), condition, "x")
    right = (first[0]._replace(end=checkpoints.End(0.5, True)), second[1], second[2])
    dumped = checkpoints.dumps(right)
    assert checkpoints.dumps(checkpoints.loads(dumped, condition, "x")) == dumped
