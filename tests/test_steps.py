"""One training step, three ways: what compiled code and CUDA graphs do is what autograd does."""

import pytest
import torch
from torch.testing import assert_close

from softstack.kernels.rnn import CORES, MEMORIES
from softstack.lab.training.conditions import Condition
from softstack.lab.training.native import Native
from softstack.lab.training.step import Adam, Autograd, Graphed, choose
from softstack.lab.training.train import Population

SIZES = dict(train_size=12, dev_size=5, test_size=5, batch_size=5, hidden_size=4)


def state_of(population):
    optimiser = population.optimiser
    return [optimiser.rows.detach(), optimiser.first, optimiser.second]


def agree(condition, make, device="cpu", atol=1e-6):
    """After three steps on batches of 5, parameters, moments and losses are the same to rounding."""
    ours, theirs = (Population(condition, [3, 4], device) for _ in range(2))
    generator = torch.Generator().manual_seed(0)
    step, reference = None, Autograd(theirs)
    for _ in range(3):
        columns = torch.stack([torch.randperm(12, generator=generator)[:5] for _ in range(2)]).to(device)
        step = step or make(ours, columns)
        assert_close(step(columns), reference(columns), rtol=1e-5, atol=1e-5)
    assert ours.optimiser.steps == theirs.optimiser.steps == 3
    for our, their in zip(state_of(ours), state_of(theirs), strict=True):
        assert their.abs().max() > 0
        assert_close(our, their, rtol=1e-4, atol=atol)


@pytest.mark.parametrize("controller", CORES)
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize(
    "more",
    [
        dict(task="reversal"),
        dict(task="parenthesis"),
        dict(task="xor", buffered=True, steps_per_symbol=2),
        dict(task="reversal", buffered=True, discard_first=True),
    ],
    ids=lambda more: " ".join(map(str, more.values())),
)
def test_native_steps(controller, memory, more):
    condition = Condition(controller=controller, memory=memory, **more, **SIZES)
    agree(condition, lambda population, columns: Native(population, columns.shape[1]))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize("controller", CORES)
def test_graphed_steps(controller, buffered):
    condition = Condition("reversal", controller, "stack", buffered=buffered, **SIZES)
    agree(condition, Graphed, "cuda")


def test_the_step_that_fits_is_taken():
    columns = torch.arange(5).repeat(2, 1)
    for controller, kind in (("lstm", Native), ("mlp", Autograd)):
        population = Population(Condition("reversal", controller, "stack", **SIZES), [0, 1], "cpu")
        assert type(choose(population, columns)) is kind
    population.network.backend = "reference"
    assert type(choose(population, columns)) is Autograd


def test_adam_is_pytorchs():
    torch.manual_seed(0)
    start = torch.randn(3, 7)
    theirs = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([theirs], lr=0.01, weight_decay=0.1)
    ours = Adam(start.clone(), 0.01, 0.1)
    for _ in range(5):
        gradient = torch.randn(3, 7)
        theirs.grad = gradient.clone()
        optimiser.step()
        ours.advance()
        ours.step(gradient)
    assert_close(ours.rows, theirs.detach(), rtol=1e-5, atol=1e-6)
