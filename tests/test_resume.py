"""A trial that stopped in the middle goes on and ends as if it had never stopped, to the bit."""

from dataclasses import replace

import pytest
import torch

from softstack.errors import BadInput
from softstack.lab.training import resume
from softstack.lab.training.conditions import TABLE_1, Condition
from softstack.lab.training.train import train

SMALL = Condition(
    "reversal", "linear", "stack", train_size=45, dev_size=10, test_size=10, max_epochs=9, patience=2
)


def checkpoints(condition, seeds):
    """The trials, and every state that they were in at the end of an epoch: {epochs: {seed: bytes}}."""
    seen: dict[int, dict[int, bytes]] = {}

    def keep(states):
        for seed, state in states.items():
            seen.setdefault(len(state.epochs), {})[seed] = resume.dumps(state)

    return train(condition, seeds, checkpoint=keep, every=0), seen


def same(ours, theirs):
    assert ours.epochs == theirs.epochs
    assert (ours.seed, ours.dev, ours.test) == (theirs.seed, theirs.dev, theirs.test)
    assert all(torch.equal(weight, theirs.weights[name]) for name, weight in ours.weights.items())
    assert resume.dumps(ours.state) == resume.dumps(theirs.state)


@pytest.mark.parametrize(
    ("condition", "seeds"),
    [
        (SMALL, [0, 1, 2, 3]),
        (replace(SMALL, task="parenthesis", controller="lstm"), [0, 1, 2, 3]),
        (replace(SMALL, controller="mlp"), [0]),  # no fused kernel: to the bit for a population of one
        (replace(TABLE_1[6], train_size=40, dev_size=10, test_size=10, max_epochs=4), [0, 1, 2, 3]),
    ],
)
def test_going_on_from_any_epoch(condition, seeds):
    """From every epoch's state, written and read: all who were still training together, and each alone."""
    whole, seen = checkpoints(condition, seeds)
    assert len(seen) >= 3
    for states in seen.values():
        read = {seed: resume.loads(content, condition, "x") for seed, content in states.items()}
        for seeds in ([*read], [list(read)[-1]]):
            for trial in train(condition, seeds, begun=[read[seed] for seed in seeds]):
                same(trial, whole[trial.seed])


def test_states_are_handed_over_no_more_often_than_asked():
    calls = []
    train(SMALL, [0], checkpoint=calls.append, every=3600)
    assert not calls


def test_trials_that_were_not_in_step_cannot_go_on_together():
    _, seen = checkpoints(SMALL, [0, 1])
    states = [resume.loads(seen[epoch][0], SMALL, "x") for epoch in (1, 2)]
    with pytest.raises(BadInput, match=r"2 trials cannot go on together from 2 states after \[1, 2\] epochs"):
        train(SMALL, [0, 1], begun=states)


def test_a_state_of_another_condition_is_refused():
    _, seen = checkpoints(SMALL, [0])
    for other in (replace(SMALL, memory_size=3), replace(SMALL, batch_size=5), replace(SMALL, train_size=10)):
        with pytest.raises(BadInput, match=r"mine.safetensors .* it was damaged"):
            resume.loads(seen[1][0], other, "mine.safetensors")


def test_damage_is_told():
    """Cut at every byte, and with every byte of the header and of the counters changed."""
    content = checkpoints(SMALL, [0])[1][2][0]
    assert len(content) < resume.most_bytes(SMALL)
    for offset in range(len(content)):
        with pytest.raises(BadInput, match="it was damaged"):
            resume.loads(content[:offset], SMALL, "x")
    state = resume.loads(content, SMALL, "x")
    wrong = [
        state._replace(steps=state.steps + 1),
        state._replace(order=(*state.order[:3], state.order[3] - 1, *state.order[4:])),
        state._replace(order=(*state.order[:4], 2, 0)),
        state._replace(epochs=[(0.1, 1.5), (0.1, 0.5)]),
        state._replace(epochs=[(0.1, float("nan")), (0.1, 0.5)]),
        state._replace(first=state.first[:-1]),
        state._replace(parameters=state.parameters.double()[:-2]),
    ]
    for given in wrong:
        with pytest.raises(BadInput, match="it was damaged"):
            resume.loads(resume.dumps(given), SMALL, "x")
