"""§5: training, from the seeds of some trials to their networks."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from softstack.lab.training import graphed, native
from softstack.lab.training.checkpoints import Checkpoint
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import stacked
from softstack.lab.training.epochs import Epoch, over
from softstack.lab.training.population import Population, accuracies

Step = Callable[[Tensor], Tensor]  # as Population.step
Report = Callable[[int, int], None]  # (epoch, trials still training)
Keep = Callable[[dict[int, Checkpoint]], None]  # takes each trial that is still training, by its seed


class Trial(NamedTuple):
    """A trained network and how it came about. Accuracies are in [0, 1]."""

    condition: Condition
    seed: int
    epochs: list[Epoch]
    dev: float  # of the last epoch, as in Table 1
    test: float  # of the last epoch's weights, as in Table 1
    weights: dict[str, Tensor]
    seconds: float  # of the population's training, up to this trial's last epoch


def train(
    condition: Condition,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
    report: Report = lambda epoch, training: None,
    *,
    begun: Sequence[Checkpoint] = (),
    keep: Keep | None = None,
    every: float = 30.0,
) -> list[Trial]:
    """One trial for each seed, by the paper's protocol, in the order of the seeds.

    Goes on from `begun`, one checkpoint for each seed, if there are any. Hands checkpoints to `keep`, at
    least `every` seconds apart. Torch works with one thread meanwhile: more of them are slower here.
    """
    with one_thread():
        began = saved = time.perf_counter()
        population = Population(condition, seeds, device, begun)
        ended: dict[int, tuple[dict[str, Tensor], list[Epoch], float]] = {}
        steps: dict[int, Step] = {}
        while population.seeds:
            train_epoch(population, steps)
            done = len(population.histories[0])
            stays = []
            for place, (seed, history) in enumerate(zip(population.seeds, population.histories, strict=True)):
                if over(history, condition):
                    ended[seed] = (population.weights(place), history, time.perf_counter() - began)
                else:
                    stays.append(place)
            if len(stays) < len(population.seeds):
                population.keep(stays)
                steps = {}
            if keep and stays and time.perf_counter() - saved >= every:
                keep({seed: population.checkpoint(place) for place, seed in enumerate(population.seeds)})
                saved = time.perf_counter()
            report(done, len(stays))
        parameters = {name: torch.stack([ended[s][0][name] for s in seeds]) for name in ended[seeds[0]][0]}
        data = stacked(condition, seeds, "test", device)
        tests = accuracies(population.network, parameters, data, population.letters).tolist()
    trials = []
    for seed, test in zip(seeds, tests, strict=True):
        weights, epochs, seconds = ended[seed]
        trials.append(Trial(condition, seed, epochs, epochs[-1].dev, test, weights, seconds))
    return trials


def train_epoch(population: Population, steps: dict[int, Step]) -> None:
    """Train on every string once, and write losses and dev accuracies into the histories. `steps` has what
    takes a step on batches of some size, and is added to."""
    batches = population.batches()
    total = torch.zeros(len(population.seeds), device=batches[0].device)
    for strings in batches:
        size = strings.shape[1]
        if size not in steps:
            steps[size] = fastest(population, strings)
        total += steps[size](strings)
    losses, devs = (total / len(batches)).tolist(), population.accuracies("dev").tolist()
    for history, *epoch in zip(population.histories, losses, devs, strict=True):
        history.append(Epoch(*epoch))


def fastest(population: Population, strings: Tensor) -> Step:
    """What takes steps on batches like `strings`: a twin of Population.step where one fits."""
    if not native.why_not(population):
        return native.Native(population, strings)
    if not graphed.why_not(population):
        return graphed.Graphed(population, strings)
    return population.step


@contextmanager
def one_thread() -> Iterator[None]:
    """What torch does here is small: threads take longer to meet than to work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
