"""Training: the protocol of §5, piece by piece, and populations."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from softstack.controllers import CONTROLLERS
from softstack.errors import BadInput
from softstack.lab.reports.table1 import columns, paper_rows
from softstack.lab.runs import store
from softstack.lab.tasks import TASKS
from softstack.lab.tasks.data import Dataset
from softstack.lab.tasks.losses import LOSSES
from softstack.lab.training.conditions import TABLE_1, Condition, build, corrected
from softstack.lab.training.draws import encoded, examples, initial, stacked
from softstack.lab.training.epochs import Epoch, over
from softstack.lab.training.population import Population, accuracies
from softstack.lab.training.train import train, train_epoch

SMALL = Condition("reversal", "linear", "stack", train_size=40, dev_size=10, test_size=10, max_epochs=3)


def test_table_1_is_the_papers_list():
    assert len(TABLE_1) == 18
    for condition, paper in zip(TABLE_1, paper_rows(), strict=True):
        assert columns(condition) == {key: paper[key] for key in ("task", "buffered", "controller", "stack")}
        assert condition.memory_size == (6 if "xor" in condition.task else 2)  # §5
        assert (condition.hidden_size, condition.train_size, condition.batch_size) == (10, 800, 10)
    assert [corrected(c) is not None for c in TABLE_1] == [c.buffered for c in TABLE_1]
    assert len({c.name for c in TABLE_1}) == 18


def test_the_stopping_rule():
    """Five epochs in a row that do not exceed the best so far; an equal one does not count as better."""

    def stops(*dev):
        return [over([Epoch(0.0, d) for d in dev[:n]], TABLE_1[0]) for n in range(1, len(dev) + 1)]

    assert stops(0.5, 0.5, 0.5, 0.5, 0.5, 0.5) == [False] * 5 + [True]
    assert stops(0.5, 0.4, 0.4, 0.4, 0.4, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6) == [False] * 10 + [True]
    assert over([Epoch(0.0, n / 100) for n in range(100)], TABLE_1[0])
    assert not over([Epoch(0.0, n / 100) for n in range(99)], TABLE_1[0])


def test_losses_weigh_positions_as_the_authors_did():
    mask = torch.tensor([[[1, 1, 0, 0], [1, 0, 0, 0]]]).bool()  # one trial, two strings, four steps
    assert LOSSES["sum"](mask).tolist() == [[[1, 1, 0, 0], [1, 0, 0, 0]]]
    assert LOSSES["step_mean"](mask).tolist() == [[[0.5, 1, 0, 0], [0.5, 0, 0, 0]]]


def test_accuracy_is_over_scored_positions_and_the_whole_alphabet():
    """A network that always says '#', which is never right, and one that always says 1."""
    network = build(SMALL)
    data = Dataset(*(torch.tensor([[x]]) for x in ([0, 1, 2, 2], [0, 0, 1, 0], [False, False, True, True])))
    for letter, expected in ((2, 0.0), (1, 0.5), (0, 0.5)):
        with torch.no_grad():
            network.cell.heads.weight.zero_()
            network.cell.heads.bias_of("y").copy_(torch.eye(3)[letter])
        parameters = {name: p.detach().unsqueeze(0) for name, p in network.named_parameters()}
        assert accuracies(network, parameters, data, 3).item() == expected


@pytest.mark.parametrize(
    "condition",
    [
        SMALL,
        replace(SMALL, controller="mlp", task="parenthesis", memory="queue"),  # vmap of the reference
        replace(SMALL, controller="mlp", task="xor", buffered=True, steps_per_symbol=2),
    ],
    ids=["fused", "reference", "reference, buffered"],
)
def test_a_trial_does_not_depend_on_who_trains_beside_it(condition):
    """Alone, in a pair, in a crowd and in another order; also after others have stopped and left."""
    condition = replace(condition, max_epochs=5, patience=2)
    crowd = {trial.seed: trial for trial in train(condition, [0, 1, 2, 3, 4])}
    assert len({len(trial.epochs) for trial in crowd.values()}) > 1  # some left before others
    for seeds in ([3], [3, 0], [2, 4, 3]):
        for trial in train(condition, seeds):
            other = crowd[trial.seed]
            assert (trial.dev, trial.test) == (other.dev, other.test)
            assert [e.dev for e in trial.epochs] == [e.dev for e in other.epochs]
            assert [e.loss for e in trial.epochs] == pytest.approx([e.loss for e in other.epochs], rel=1e-4)
            for name, weight in trial.weights.items():
                assert_close(weight, other.weights[name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "condition", [SMALL, replace(SMALL, task="parenthesis", controller="lstm", train_size=35)]
)
def test_a_population_trains_as_a_plain_loop_does(condition):
    """The protocol written out for one network, without vmap: same losses, same weights."""
    network = initial(condition, 5)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=0.01)
    data = encoded(condition, examples(condition, 5, "train"))
    order = np.random.default_rng([5, 4]).permutation(condition.train_size)
    letters = network.input_size
    losses = []
    for rows in torch.from_numpy(order).split(10):
        x, y, mask = (part[rows] for part in data)
        out, _ = network(torch.nn.functional.one_hot(x, letters).float())
        ce = torch.nn.functional.cross_entropy(out.transpose(1, 2), y, reduction="none")
        if condition.task == "reversal":  # at each step the mean over the rows scored there
            loss = sum(ce[mask[:, t], t].mean() for t in range(x.shape[1]) if mask[:, t].any())
        else:
            loss = ce[mask].sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    population = Population(condition, [5, 6])
    train_epoch(population, {})
    assert population.histories[0][0].loss == pytest.approx(np.mean(losses), rel=1e-5)
    for name, p in network.named_parameters():
        assert_close(population.parameters[name][0], p.data, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("row", range(18))
def test_a_population_is_its_networks_one_by_one(row):
    """To the bit, forward and backward: what vmap hands to a kernel is what it would be handed alone."""
    condition = replace(TABLE_1[row], train_size=6, dev_size=2, test_size=2)
    together = Population(condition, [3, 4, 5])
    strings = torch.arange(6).repeat(3, 1)
    losses = together.losses(strings)
    (gradient,) = torch.autograd.grad(losses.sum(), [together.optimiser.vectors])
    for place, seed in enumerate(member.seed for member in together.members):
        alone = Population(condition, [seed])
        steps = together.data["train"].x.shape[2]
        pad = (0, steps - alone.data["train"].x.shape[2])  # all are padded alike
        alone.data["train"] = Dataset(*(torch.nn.functional.pad(x, pad) for x in alone.data["train"]))
        alone.data["train"].x[:] = together.data["train"].x[place]
        loss = alone.losses(strings[:1])
        assert torch.equal(loss[0], losses[place])
        assert torch.equal(torch.autograd.grad(loss.sum(), [alone.optimiser.vectors])[0][0], gradient[place])


def test_training_uses_one_thread_and_gives_the_others_back():
    seen = []
    torch.set_num_threads(2)
    try:
        train(SMALL, [0], report=lambda *_: seen.append(torch.get_num_threads()))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert set(seen) == {1}


def test_networks_can_be_pickled():
    for condition in TABLE_1:
        network = initial(condition, 0)
        copy = pickle.loads(pickle.dumps(network))
        x = torch.rand(2, 5, network.input_size, generator=torch.Generator().manual_seed(0))
        assert torch.equal(copy(x)[0], network(x)[0])


def test_idle_steps_are_left_out_only_where_a_network_cannot_tell():
    """An unbuffered network stops after the last scored step; a buffered one sees the authors' padding."""
    plain = encoded(TABLE_1[8], examples(TABLE_1[8], 0, "dev"), "dev")
    assert plain.x.shape[1] == 19  # strings of 20: the last symbol predicts nothing
    buffered = encoded(TABLE_1[1], examples(TABLE_1[1], 0, "dev"), "dev")
    assert buffered.x.shape == (100, 24)
    assert encoded(TABLE_1[6], examples(TABLE_1[6], 0, "test"), "test").x.shape == (1000, 24)


def test_seeds_give_data_weights_and_order_of_their_own():
    assert examples(SMALL, 0, "train") != examples(SMALL, 1, "train")
    assert examples(SMALL, 0, "train")[:10] != examples(SMALL, 0, "dev")
    first, second = (initial(SMALL, seed).cell.heads.weight for seed in (0, 1))
    assert not torch.equal(first, second)
    assert torch.equal(first, initial(SMALL, 0).cell.heads.weight)
    together = stacked(SMALL, [0, 1], "dev", "cpu")
    alone = stacked(SMALL, [1], "dev", "cpu")
    steps = alone.x.shape[2]
    assert torch.equal(together.x[1, :, :steps], alone.x[0])


@pytest.mark.parametrize("condition", [replace(TABLE_1[2], max_epochs=6), replace(TABLE_1[6], max_epochs=3)])
def test_a_trial_is_the_same_to_the_bit_whoever_trains_beside_it(condition):
    condition = replace(condition, train_size=200, dev_size=20, test_size=20, patience=2)
    alone = train(condition, [1])[0]
    for seeds in ([0, 1], [1, 2, 3, 4, 5, 6, 7]):
        (beside,) = (trial for trial in train(condition, seeds) if trial.seed == 1)
        assert beside.epochs == alone.epochs
        assert (beside.dev, beside.test) == (alone.dev, alone.test)
        assert all(torch.equal(weight, alone.weights[name]) for name, weight in beside.weights.items())


def test_a_file_is_padded_as_a_split_is():
    """What a buffered network is given of a string does not depend on the file's other strings."""
    short, long = (TASKS["reversal"].example(tuple(word)) for word in ("10", "1011"))
    assert encoded(TABLE_1[1], [short]).x.shape[1] == encoded(TABLE_1[1], [short, long]).x.shape[1] == 24


def test_it_learns():
    """Cumulative XOR with an LSTM, which Table 1 says is easy, to the end."""
    (trial,) = train(replace(TABLE_1[5], test_size=200), [0])
    assert trial.dev == 1.0
    assert trial.test > 0.99


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(task="reverse"), "unknown task 'reverse': did you mean 'reversal'"),
        (dict(task=3), "task must be a name; got 3"),
        (dict(controller=["lstm"]), "controller must be a name; got \\['lstm'\\]"),
        (dict(controller="LSTM"), "unknown controller 'LSTM'"),
        (dict(memory="heap"), "unknown memory 'heap'"),
        (dict(loss="mean"), "unknown loss 'mean'"),
        (dict(hidden_size=0), "hidden_size must be at least 1; got 0"),
        (dict(hidden_size=2.5), "hidden_size must be a whole number; got 2.5"),
        (dict(buffered="yes"), "buffered must be true or false; got 'yes'"),
        (dict(learning_rate=float("nan")), "learning_rate must be finite; got nan"),
        (dict(weight_decay=-1.0), "weight_decay must not be negative; got -1.0"),
    ],
)
def test_bad_conditions(change, message):
    with pytest.raises(BadInput, match=message):
        replace(SMALL, **change)


def test_a_task_with_an_unknown_loss_is_refused(monkeypatch):
    """At once, for it would be trained on something else."""
    monkeypatch.setattr(type(TASKS["xor"]), "loss", "step_maen")
    with pytest.raises(BadInput, match="unknown loss of the task xor, 'step_maen': did you mean 'step_mean'"):
        Condition("xor")
    assert Condition("xor", loss="sum").loss_name == "sum"


def test_a_condition_from_a_file():
    condition = Condition.from_dict({"task": "xor", "learning_rate": 1}, "mine.toml")
    assert condition.learning_rate == 1.0
    with pytest.raises(BadInput, match=r"unknown key in mine.toml, 'hiden_size': did you mean 'hidden_size'"):
        Condition.from_dict({"task": "xor", "hiden_size": 3}, "mine.toml")
    with pytest.raises(BadInput, match=r"mine.toml names no task"):
        Condition.from_dict({}, "mine.toml")


class Seesaw(nn.Module):
    """A core that says one thing while it trains and another when it is tested."""

    features = 4

    def __init__(self, input_size, hidden_size, **kind):
        super().__init__()
        self.layer = nn.Linear(input_size, 4, **kind)
        self.modes = []

    def init(self, batch, like):
        return ()

    def forward(self, z, h):
        self.modes.append(self.training)
        return self.layer(z), h


def test_networks_are_tested_in_eval_mode(monkeypatch, tmp_path):
    monkeypatch.setitem(CONTROLLERS, "seesaw", Seesaw)
    condition = replace(SMALL, controller="seesaw")
    population = Population(condition, [0])
    core = population.network.cell.core
    population.accuracies("dev")
    assert core.modes and not any(core.modes)
    core.modes.clear()
    population.step(population.batches()[0])
    assert core.modes and all(core.modes)
    path = store.save(tmp_path, train(condition, [0])[0])
    assert not store.network(store.load(path)).training
