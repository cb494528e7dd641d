"""One training step: what compiled code and CUDA graphs do is what the definition does."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch.testing import assert_close

import softstack as ss
from softstack.kernels.kinds import CORES, MEMORIES, UNBUFFERED
from softstack.lab.tasks.losses import LOSSES
from softstack.lab.training import native
from softstack.lab.training.adam import Adam
from softstack.lab.training.conditions import TABLE_1, Condition
from softstack.lab.training.graphed import Graphed
from softstack.lab.training.native import Native
from softstack.lab.training.population import Population
from softstack.lab.training.train import fastest

SIZES = dict(train_size=12, dev_size=5, test_size=5, batch_size=5, hidden_size=4)


def state_of(population):
    optimiser = population.optimiser
    return [optimiser.vectors.detach(), optimiser.first, optimiser.second]


def agree(condition, twin, device="cpu", atol=1e-6):
    """After three steps on batches of 5, parameters, moments and losses are the same to rounding."""
    ours, theirs = (Population(condition, [3, 4], device) for _ in range(2))
    generator = torch.Generator().manual_seed(0)
    step = None
    for _ in range(3):
        strings = torch.stack([torch.randperm(12, generator=generator)[:5] for _ in range(2)]).to(device)
        step = step or twin(ours, strings)
        assert_close(step(strings), theirs.step(strings), rtol=1e-5, atol=1e-5)
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
    agree(condition, Native)


@pytest.mark.parametrize("controller", CORES)
@pytest.mark.parametrize("memory", [*UNBUFFERED, "superposition_without_noop", "shallow", "five_pops"])
def test_native_steps_without_buffers(controller, memory, monkeypatch):
    """Of memories that have kernels without buffers alone, also of some with names of their own, and where a
    controller is disturbed."""
    monkeypatch.setitem(ss.MEMORIES, "shallow", lambda size: ss.Superposition(size, depth=5))
    monkeypatch.setitem(ss.MEMORIES, "five_pops", lambda size: ss.Multipop(size + 1, pops=5))
    for more in (dict(), dict(state_reset=0.5, hidden_noise=0.2)):
        agree(Condition("reversal", controller, memory, **more, **SIZES), Native)


@pytest.mark.cuda
@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize("controller", CORES)
def test_graphed_steps(controller, buffered):
    condition = Condition("reversal", controller, "stack", buffered=buffered, **SIZES)
    agree(condition, Graphed, "cuda")


@pytest.mark.cuda
def test_graphed_steps_of_a_memory_without_a_kernel():
    condition = Condition("reversal", "mlp", "stack", **SIZES)
    population, strings = Population(condition, [0, 1], "cuda"), torch.arange(5, device="cuda").repeat(2, 1)
    assert population.kernel == "reference" and type(fastest(population, strings)) is Graphed
    agree(condition, fastest, "cuda")


def test_the_step_that_fits_is_taken():
    strings = torch.arange(5).repeat(2, 1)
    population = Population(Condition("reversal", "lstm", "stack", **SIZES), [0, 1])
    assert type(fastest(population, strings)) is Native
    population.network.backend = "reference"
    assert native.why_not(population) == "the backend of the network is reference"
    assert fastest(population, strings) == population.step
    population = Population(Condition("reversal", "mlp", "stack", **SIZES), [0, 1])
    assert fastest(population, strings) == population.step


@dataclass(frozen=True)
class Clipped(Condition):
    """A condition with an option that came later."""

    clip: float = 0.0


def test_an_option_that_the_compiled_step_does_not_know_is_left_to_the_definition():
    for clip, reason in ((0.0, ""), (1.0, "it does not know clip")):
        assert native.why_not(Population(Clipped("reversal", clip=clip, **SIZES), [0])) == reason


def test_a_loss_that_the_compiled_step_does_not_know_is_left_to_the_definition(monkeypatch):
    """A new loss is a line in LOSSES, and no more: here the last scored step of each string alone counts."""

    def last(mask):
        return (mask & (mask.flip(2).cumsum(2).flip(2) == 1)).float()

    monkeypatch.setitem(LOSSES, "last", last)
    population = Population(Condition("reversal", loss="last", **SIZES), [0, 1])
    assert native.why_not(population) == "it does not know the loss last"
    strings = torch.arange(5).repeat(2, 1)
    whole = Population(Condition("reversal", loss="sum", **SIZES), [0, 1]).losses(strings)
    losses = population.step(strings)
    assert (losses > 0).all()
    assert (losses < whole / 2).all()
    agree(Condition("reversal", loss="last", **SIZES), fastest)


def test_every_condition_of_table_1_is_trained_by_compiled_code():
    for condition in TABLE_1:
        assert native.why_not(Population(replace(condition, **SIZES), [0])) == ""


def test_adam_is_pytorchs():
    torch.manual_seed(0)
    start = torch.randn(3, 7)
    theirs = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([theirs], lr=0.01, weight_decay=0.1)
    ours = Adam(start.clone(), Condition("reversal", weight_decay=0.1))
    for _ in range(5):
        gradient = torch.randn(3, 7)
        theirs.grad = gradient.clone()
        optimiser.step()
        ours.count()
        ours.step(gradient)
    assert_close(ours.vectors, theirs.detach(), rtol=1e-5, atol=1e-6)
