"""A core of the user's may have buffers: they belong to a trial, and are saved with its weights."""

import pytest
import safetensors.torch
import torch
from torch import nn

from plugins.reservoir import Reservoir
from softstack.controllers import CONTROLLERS
from softstack.errors import BadInput
from softstack.lab.runs import store
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import encoded, examples, initial
from softstack.lab.training.population import accuracies
from softstack.lab.training.train import train

CONDITION = dict(
    hidden_size=6, train_size=20, dev_size=20, test_size=30, batch_size=10, max_epochs=2, memory="stack"
)
BUFFERS = {"cell.core.weight", "cell.core.signs"}


@pytest.fixture
def condition(monkeypatch):
    monkeypatch.setitem(CONTROLLERS, "reservoir", Reservoir)
    return Condition("xor", "reservoir", **CONDITION)


def test_each_trial_has_buffers_of_its_own_and_they_are_saved(condition, tmp_path):
    trials = train(condition, [3, 4])
    assert not torch.equal(*(trial.weights["cell.core.weight"] for trial in trials))
    for trial in trials:
        first = initial(condition, trial.seed)
        run = store.load(store.save(tmp_path, trial))
        saved = safetensors.torch.load_file(run.path / "model.safetensors")
        network = store.network(run)
        assert set(saved) == set(network.state_dict()) > BUFFERS
        for name, tensor in network.state_dict().items():
            assert torch.equal(tensor, saved[name]) and torch.equal(tensor, trial.weights[name])
        assert all(torch.equal(network.get_buffer(name), first.get_buffer(name)) for name in BUFFERS)
        data = encoded(condition, examples(condition, trial.seed, "test"), "test").stacked()
        parameters = {name: p.unsqueeze(0) for name, p in network.named_parameters()}
        assert accuracies(network, parameters, data, 3).item() == trial.test


def test_a_run_from_before_has_the_buffers_of_its_seed(condition, tmp_path):
    (trial,) = train(condition, [5])
    weights = {name: w for name, w in trial.weights.items() if name not in BUFFERS}
    network = store.network(store.load(store.save(tmp_path, trial._replace(weights=weights))))
    for name in BUFFERS:
        assert torch.equal(network.get_buffer(name), trial.weights[name])


def test_what_is_not_a_buffer_of_the_core_is_refused(condition, tmp_path):
    (trial,) = train(condition, [6])
    weights = {**trial.weights, "cell.core.signs": torch.zeros(6)}  # a float where there is an integer
    run = store.load(store.save(tmp_path, trial._replace(weights=weights)))
    with pytest.raises(BadInput, match="but its condition needs"):
        store.network(run)


class Counting(nn.Module):
    """Counts its calls."""

    def __init__(self, input_size, hidden_size, **kind):
        super().__init__()
        self.features = input_size
        self.register_buffer("calls", torch.zeros(1))

    def init(self, batch, like):
        return ()

    def forward(self, z, h):
        if self.training:
            self.calls = self.calls + 1
        return z, h


def test_a_buffer_that_changes_in_training_is_refused(monkeypatch):
    monkeypatch.setitem(CONTROLLERS, "counting", Counting)
    sentence = "the controller 'counting' changes its buffer 'cell.core.calls' while it trains"
    with pytest.raises(BadInput, match=sentence):
        train(Condition("xor", "counting", **CONDITION), [0])


class Normed(nn.Module):
    """Its layer is one that PyTorch has, between a Linear and a tanh."""

    layer = nn.BatchNorm1d

    def __init__(self, input_size, hidden_size, **kind):
        super().__init__()
        self.features = hidden_size
        self.linear, self.between = nn.Linear(input_size, hidden_size, **kind), self.layer(hidden_size)

    def init(self, batch, like):
        return ()

    def forward(self, z, h):
        return torch.tanh(self.between(self.linear(z))), h


class Dropping(Normed):
    layer = staticmethod(lambda size: nn.Dropout(0.3))


def test_a_batch_norm_is_refused(monkeypatch):
    monkeypatch.setitem(CONTROLLERS, "normed", Normed)
    with pytest.raises(BadInput, match=r"'normed' changes its buffer 'cell\.core\.between\.running_mean'"):
        train(Condition("xor", "normed", **CONDITION), [0])


def test_a_dropout_is_refused(monkeypatch):
    monkeypatch.setitem(CONTROLLERS, "dropping", Dropping)
    with pytest.raises(BadInput, match="'dropping' or its memory draws random numbers, as a Dropout does"):
        train(Condition("xor", "dropping", **CONDITION), [0])
