"""One training step of a population: a batch, its losses, their gradient, and Adam. The same three ways.

    Autograd   as PyTorch does it: the definition
    Graphed    that, captured once as a CUDA graph and replayed: a GPU spends its time on launches otherwise
    Native     compiled code from end to end on the CPU, in arrays that are used again (`native.py`)

`choose` takes the fastest that fits. Each is called with the training strings `columns` (P, B) and gives the
losses (P,) before the step; parameters and moments change in place.
"""

from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from softstack import fit, kernels
from softstack.networks import StackRNN

if TYPE_CHECKING:
    from softstack.lab.training.train import Population


class Step(Protocol):
    def __call__(self, columns: Tensor) -> Tensor: ...


class Adam:
    """Adam with L2 added to the gradient, on one row of numbers a trial.

    Each line is one rounding a number, so that a trial's row does not depend on the others. PyTorch's own
    rounds its last few numbers another way than the rest, and which those are depends on who is there.
    """

    def __init__(self, rows: Tensor, learning_rate: float, weight_decay: float) -> None:
        self.rows = rows  # (P, n), the parameters
        self.first, self.second, self.steps = torch.zeros_like(rows), torch.zeros_like(rows), 0
        self.unbias = rows.detach().new_ones(2)  # what the moments are divided by
        self.learning_rate, self.weight_decay = learning_rate, weight_decay

    def advance(self) -> None:
        """Before a step: count it."""
        self.steps += 1
        self.unbias.copy_(torch.tensor([1 - 0.9**self.steps, 1 - 0.999**self.steps]))

    @torch.no_grad()
    def step(self, gradient: Tensor) -> None:
        gradient = gradient + self.rows * self.weight_decay
        self.first.mul_(0.9).add_(gradient * (1 - 0.9))
        self.second.mul_(0.999).add_((gradient * gradient) * (1 - 0.999))
        first, second = self.first / self.unbias[0], self.second / self.unbias[1]
        self.rows.sub_(first / (second.sqrt() + 1e-8) * self.learning_rate)

    def keep(self, places: list[int]) -> None:
        self.rows = self.rows.detach()[places].requires_grad_()
        self.first, self.second = self.first[places], self.second[places]


class Autograd:
    def __init__(self, population: "Population") -> None:
        self.population = population

    def __call__(self, columns: Tensor) -> Tensor:
        self.population.optimiser.advance()
        return self.taken(columns)

    def taken(self, columns: Tensor) -> Tensor:
        """The step itself, once it is counted."""
        optimiser = self.population.optimiser
        losses = self.population.losses(columns)
        (gradient,) = torch.autograd.grad(losses.sum(), [optimiser.rows])
        optimiser.step(gradient)
        return losses.detach()


class Graphed:
    def __init__(self, population: "Population", columns: Tensor) -> None:
        self.optimiser, self.columns, step = population.optimiser, columns.clone(), Autograd(population)
        # the same numbers, but a leaf that no other stream has met, or it could not be captured
        self.optimiser.rows = self.optimiser.rows.detach().requires_grad_()
        changed = (self.optimiser.rows, self.optimiser.first, self.optimiser.second)
        before = [x.detach().clone() for x in changed]
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            step.taken(self.columns)  # compiles what has to be compiled, and allocates
        torch.cuda.current_stream().wait_stream(aside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.losses = step.taken(self.columns)
        with torch.no_grad():
            for x, was in zip(changed, before, strict=True):
                x.copy_(was)

    def __call__(self, columns: Tensor) -> Tensor:
        self.columns.copy_(columns)
        self.optimiser.advance()
        self.graph.replay()
        return self.losses.clone()


def choose(population: "Population", columns: Tensor) -> Step:
    """For batches like `columns`."""
    network, data = population.network, population.data["train"]
    T = data.x.shape[2]
    steps = T if isinstance(network, StackRNN) else network.steps(T)
    rows = population.optimiser.rows
    reason = fit.why_not(network.cell, rows.new_empty(1, T, population.letters), steps)
    kernel = kernels.choose(network.backend, rows, reason)
    if kernel == "cpu":
        from softstack.lab.training.native import Native

        return Native(population, columns.shape[1])
    if kernel == "gpu" and rows.is_cuda:
        return Graphed(population, columns)
    return Autograd(population)
