"""§5: training. The trials of a condition differ by their seed alone, so they train as one population:
parameters stacked along a leading axis, one forward and one backward pass for all.

A trial's data, initial weights and order of batches come from its seed, each from a stream of its own, and
nothing is shared between trials, so that its numbers do not depend on who trains beside it. A trial that
has stopped leaves the population.

    P trials   n strings   B strings a batch   T steps   K letters
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.functional import cross_entropy, one_hot

from softstack import fit, fused, kernels
from softstack.lab import tasks
from softstack.lab.tasks.data import SPLITS, Dataset, Example, Split, encode
from softstack.lab.training.conditions import Condition, build
from softstack.lab.training.resume import State, restore, snapshot
from softstack.lab.training.step import Adam, Step, choose
from softstack.networks import BufferedStackRNN, StackRNN

STREAMS = ("train", "dev", "test", "init", "order")
Network = StackRNN | BufferedStackRNN
Parameters = dict[str, Tensor]  # each with a leading axis of P
Report = Callable[[int, int], None]  # (epoch, trials still training)
Checkpoint = Callable[[dict[int, State]], None]  # given the state of each trial still training, by its seed


class Epoch(NamedTuple):
    loss: float  # mean over the epoch's batches
    dev: float  # accuracy in [0, 1] on the dev set after the epoch


class Trial(NamedTuple):
    """A trained network and how it came about. Accuracies are in [0, 1]."""

    condition: Condition
    seed: int
    epochs: list[Epoch]
    dev: float  # of the last epoch, as in Table 1
    test: float  # of the last epoch's weights, as in Table 1
    weights: dict[str, Tensor]
    seconds: float  # of the population's training, up to this trial's last epoch
    state: State  # with which its training could go on


def stream(seed: int, purpose: str) -> np.random.Generator:
    return np.random.default_rng([seed, STREAMS.index(purpose)])


def examples(condition: Condition, seed: int, split: Split) -> list[Example]:
    size = {"train": condition.train_size, "dev": condition.dev_size, "test": condition.test_size}[split]
    return tasks.draw(tasks.find(condition.task), stream(seed, split), size, split)


def encoded(condition: Condition, given: Sequence[Example], split: Split | None = None) -> Dataset:
    """What the network of a condition is given. Only a buffered one can tell how far strings are padded."""
    task = tasks.find(condition.task)
    if condition.buffered:  # a file is padded as the shortest split that is long enough
        longest = max(len(example.input) for example in given)
        lengths = [task.length(split)] if split else sorted({task.length(each) for each in SPLITS})
        return encode(task, given, next((length for length in lengths if length >= longest), longest))
    return encode(task, given).trimmed()


def stacked(condition: Condition, seeds: Sequence[int], split: Split, device: torch.device | str) -> Dataset:
    """A split of each trial, (P, n, T), all padded alike."""
    everyone = encoded(condition, [e for seed in seeds for e in examples(condition, seed, split)], split)
    return Dataset(*(x.unflatten(0, (len(seeds), -1)).to(device) for x in everyone))


def initial(condition: Condition, seed: int, device: torch.device | str | None = None) -> Network:
    """The network with which a trial begins."""
    network = build(condition)
    generator = torch.Generator().manual_seed(int(stream(seed, "init").integers(2**63)))
    network.reset_parameters(
        generator, {"u": condition.pop_bias, "i": condition.buffer_bias, "o": condition.buffer_bias}
    )
    return network.to(device)


def outputs(network: Network, parameters: Parameters, x: Tensor, letters: int) -> Tensor:
    """x (P, B, T) symbols -> y (P, B, T, K): each trial's network on its own strings."""

    def one(own: Parameters, symbols: Tensor) -> Tensor:  # (B, T, K)
        y: Tensor = functional_call(network, own, (symbols,))[0]
        return y[:, : symbols.shape[1]]  # a buffered network may have made more steps than there are targets

    vectors = one_hot(x, letters).to(next(iter(parameters.values())).dtype)  # (P, B, T, K)
    T = x.shape[2]
    steps = T if isinstance(network, StackRNN) else network.steps(T)
    reason = fit.why_not(network.cell, vectors, steps)
    kernel = kernels.choose(network.backend, vectors, reason)
    if kernel == "reference":
        return vmap(one)(parameters, vectors)
    own = {name.removeprefix("cell."): p for name, p in parameters.items()}
    if isinstance(network, StackRNN):
        return fused.population(network.cell, own, vectors, kernel)
    y = fused.buffered_population(network.cell, own, vectors, kernel, steps, network.discard_first)
    return y[:, :, :T]


def weighting(mask: Tensor, loss: str) -> Tensor:
    """What each position's cross-entropy counts for (P, B, T); padding counts for 0."""
    weights = mask.float()
    if loss == "step_mean":
        return weights / weights.sum(1, keepdim=True).clamp(min=1)
    return weights


@torch.no_grad()
def accuracies(network: Network, parameters: Parameters, data: Dataset, letters: int) -> Tensor:
    """(P,): right positions over scored positions, the argmax taken over the whole alphabet."""
    y = outputs(network, parameters, data.x, letters).argmax(-1)  # (P, n, T)
    right = ((y == data.y) & data.mask).sum((1, 2))
    return right.double() / data.mask.sum((1, 2))


class Population:
    """Trials in training. `trials` says which ones, in the order of the parameters' leading axis."""

    def __init__(self, condition: Condition, seeds: Sequence[int], device: torch.device | str) -> None:
        task = tasks.find(condition.task)
        self.condition = condition
        self.letters = len(task.alphabet)
        self.loss = task.loss if condition.loss == "task" else condition.loss
        self.trials = list(range(len(seeds)))
        self.orders = [stream(seed, "order") for seed in seeds]
        self.data = {split: stacked(condition, seeds, split, device) for split in ("train", "dev")}
        networks = [initial(condition, seed, device) for seed in seeds]
        self.network = networks[0]  # its own parameters are not used
        self.shapes = {name: p.shape for name, p in self.network.named_parameters()}
        rows = torch.cat([p.detach().flatten(1) for p in stack_module_state(networks)[0].values()], 1)
        self.optimiser = Adam(rows.requires_grad_(), condition.learning_rate, condition.weight_decay)
        self.steps: dict[int, Step] = {}  # how a step is made, by the size of its batch

    @property
    def parameters(self) -> Parameters:
        """By name, each a part of the rows that the optimiser works on."""
        parts = self.optimiser.rows.split([shape.numel() for shape in self.shapes.values()], dim=1)
        return {
            name: part.unflatten(1, shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def epoch(self) -> tuple[list[float], list[float]]:
        """Train on every string once, each trial in an order of its own; the losses, and dev accuracies."""
        size, batch = self.condition.train_size, self.condition.batch_size
        order = np.stack([self.orders[trial].permutation(size) for trial in self.trials])  # (P, n)
        data = self.data["train"]
        total = torch.zeros(len(self.trials), device=data.x.device)
        batches = torch.from_numpy(order).to(data.x.device).split(batch, dim=1)
        for columns in batches:
            total += self.step(columns.contiguous())
        dev = accuracies(self.network, self.parameters, self.data["dev"], self.letters)
        return (total / len(batches)).tolist(), dev.tolist()

    def step(self, columns: Tensor) -> Tensor:
        """One batch, the training strings `columns` (P, B) of each trial: the losses (P,)."""
        size = columns.shape[1]
        if size not in self.steps:
            self.steps[size] = choose(self, columns)
        return self.steps[size](columns)

    def losses(self, columns: Tensor) -> Tensor:
        rows = torch.arange(len(self.trials), device=columns.device).unsqueeze(1)  # (P, 1)
        data = Dataset(*(x[rows, columns] for x in self.data["train"]))
        y = outputs(self.network, self.parameters, data.x, self.letters)  # (P, B, T, K)
        surprise = cross_entropy(y.movedim(-1, 1), data.y, reduction="none")  # (P, B, T)
        return (surprise * weighting(data.mask, self.loss)).sum((1, 2))

    def weights(self, place: int) -> dict[str, Tensor]:
        return {name: p[place].detach().clone() for name, p in self.parameters.items()}

    def keep(self, places: list[int]) -> None:
        """Go on with the trials at these places alone."""
        self.trials = [self.trials[place] for place in places]
        self.data = {split: Dataset(*(x[places] for x in data)) for split, data in self.data.items()}
        self.optimiser.keep(places)
        self.steps = {}


def train(
    condition: Condition,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
    report: Report = lambda epoch, training: None,
    *,
    begun: Sequence[State] = (),
    checkpoint: Checkpoint | None = None,
    every: float = 30.0,
) -> list[Trial]:
    """One trial a seed, by the paper's protocol, in the order of the seeds.

    Goes on from `begun`, a state a seed, if there is one; hands the states over at most `every` seconds.
    """
    began = saved = time.perf_counter()
    population = Population(condition, seeds, device)
    if begun:
        restore(population, begun)
    history = [[Epoch(*epoch) for epoch in state.epochs] for state in begun] or [[] for _ in seeds]
    weights: dict[int, dict[str, Tensor]] = {}
    states: dict[int, State] = {}
    seconds: dict[int, float] = {}
    while population.trials:
        for trial, loss, dev in zip(population.trials, *population.epoch(), strict=True):
            history[trial].append(Epoch(loss, dev))
        stays = []
        for place, trial in enumerate(population.trials):
            if over(history[trial], condition):
                weights[trial] = population.weights(place)
                states[trial] = snapshot(population, place, history[trial])
                seconds[trial] = time.perf_counter() - began
            else:
                stays.append(place)
        epoch = len(history[population.trials[0]])
        if len(stays) < len(population.trials):
            population.keep(stays)
        if checkpoint and stays and time.perf_counter() - saved >= every:
            trials = enumerate(population.trials)
            checkpoint({seeds[trial]: snapshot(population, place, history[trial]) for place, trial in trials})
            saved = time.perf_counter()
        report(epoch, len(stays))
    everyone = {name: torch.stack([weights[k][name] for k in range(len(seeds))]) for name in weights[0]}
    test_set = stacked(condition, seeds, "test", device)
    test = accuracies(population.network, everyone, test_set, population.letters).tolist()
    return [
        Trial(condition, seed, history[k], history[k][-1].dev, test[k], weights[k], seconds[k], states[k])
        for k, seed in enumerate(seeds)
    ]


def over(history: Sequence[Epoch], condition: Condition) -> bool:
    """§5: whether as many epochs as patience allows have failed to exceed the best dev accuracy so far."""
    accuracies = [epoch.dev for epoch in history]
    best = accuracies.index(max(accuracies))  # the first epoch to reach the best
    return len(history) - 1 - best >= condition.patience or len(history) >= condition.max_epochs
