"""§5: training, from the seeds of some trials to their networks."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from softstack.lab.training import graphed, native
from softstack.lab.training.checkpoints import Checkpoint, End, Networks
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import Member, stacked
from softstack.lab.training.epochs import Epoch, over
from softstack.lab.training.population import Population, accuracies

Step = Callable[[Tensor], Tensor]  # as Population.step
Report = Callable[[int, int], None]  # (epoch, trials still training)
Keep = Callable[[dict[int, Networks]], None]  # takes each trial that is still training, by its seed


class Trial(NamedTuple):
    """A trained network and how it came about. Accuracies are in [0, 1]."""

    condition: Condition
    seed: int
    epochs: list[Epoch]
    dev: float  # of the last epoch, as in Table 1
    test: float  # of the last epoch's weights, as in Table 1
    weights: dict[str, Tensor]
    seconds: float  # of the population's training, up to this trial's last epoch
    dev_loss: float  # mean cross-entropy of a scored position of the dev strings, after the last epoch
    restart: int = 0  # which of its networks it is: the one of the lowest dev loss
    restarts: tuple["Restart", ...] = ()  # all of them, if there is more than one
    diverged: bool = False  # whether it stopped because its weights or its loss are no longer numbers


class Restart(NamedTuple):
    """One of the networks of a trial, at the end of its training: what the choice between them goes by."""

    dev_loss: float
    dev: float
    epochs: int  # fewer than the trial's if it was dropped on the way


class Ended(NamedTuple):
    """A network whose training is over."""

    weights: dict[str, Tensor]
    checkpoint: Checkpoint
    seconds: float

    @property
    def end(self) -> End:
        assert self.checkpoint.end, "its training is over"
        return self.checkpoint.end

    @property
    def diverged(self) -> bool:
        return not (math.isfinite(self.end.dev_loss) and self.checkpoint.parameters.isfinite().all())


def train(
    condition: Condition,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
    report: Report = lambda epoch, training: None,
    *,
    begun: Sequence[Networks] = (),
    keep: Keep | None = None,
    every: float = 30.0,
) -> list[Trial]:
    """One trial for each seed, by the paper's protocol, in the order of the seeds.

    Goes on from `begun`, the networks of each seed, if there are any. Hands those of the trials that are
    still training to `keep`, at least `every` seconds apart. Torch works with one thread meanwhile: more of
    them are slower here.
    """
    with one_thread():
        began = saved = time.perf_counter()
        population = Population(condition, seeds, device, begun)
        ended: dict[Member, Ended] = {}
        steps: dict[int, Step] = {}

        def leave(networks: dict[int, Checkpoint]) -> None:
            """Go on without these networks, by their places."""
            seconds = time.perf_counter() - began
            for place, network in networks.items():
                ended[population.members[place]] = Ended(population.weights(place), network, seconds)
            if networks:
                population.keep([place for place in range(len(population.members)) if place not in networks])
                steps.clear()

        leave({place: network for place, network in enumerate(chain.from_iterable(begun)) if network.end})
        while population.members:
            train_epoch(population, steps)
            done = len(population.histories[0])
            pairs = zip(population.histories, population.diverged(), strict=True)
            over_now = [
                place
                for place, (history, diverged) in enumerate(pairs)
                if over(history, condition) or diverged
            ]
            if over_now or done in halvings(condition):
                dev_losses = population.dev_losses()
                dropped = halved(population, dev_losses)
                ends = {place: End(dev_losses[place], place in dropped) for place in {*over_now, *dropped}}
                leave({place: population.checkpoint(place)._replace(end=end) for place, end in ends.items()})
            if keep and population.members and time.perf_counter() - saved >= every:
                networks = {m: c.checkpoint for m, c in ended.items()}
                networks |= {m: population.checkpoint(place) for place, m in enumerate(population.members)}
                training = dict.fromkeys(member.seed for member in population.members)
                restarts = range(condition.restarts)
                keep({seed: tuple(networks[Member(seed, r)] for r in restarts) for seed in training})
                saved = time.perf_counter()
            report(done, len({member.seed for member in population.members}))
        chosen = [choice([ended[Member(seed, r)] for r in range(condition.restarts)]) for seed in seeds]
        winners = [ended[Member(*pair)] for pair in zip(seeds, chosen, strict=True)]
        parameters = {name: torch.stack([w.weights[name] for w in winners]) for name in winners[0].weights}
        data = stacked(condition, seeds, "test", device)
        tests = accuracies(population.network, parameters, data, population.letters).tolist()
    trials = []
    for seed, restart, winner, test in zip(seeds, chosen, winners, tests, strict=True):
        rivals = [ended[Member(seed, r)] for r in range(condition.restarts)]
        histories = [rival.checkpoint.epochs for rival in rivals]
        listed = tuple(
            Restart(rival.end.dev_loss, history[-1].dev, len(history))
            for rival, history in zip(rivals, histories, strict=True)
        )
        epochs = histories[restart]
        trials.append(
            Trial(
                condition, seed, epochs, epochs[-1].dev, test, winner.weights, winner.seconds,
                winner.end.dev_loss, restart, listed if len(listed) > 1 else (), winner.diverged,
            )
        )  # fmt: skip
    return trials


def halvings(condition: Condition) -> list[int]:
    """The epochs after which restarts are dropped."""
    left = 1 - condition.halving_share
    return [math.ceil(condition.most_epochs * (1 - left**k)) for k in range(1, condition.halvings + 1)]


def halved(population: Population, dev_losses: Sequence[float]) -> set[int]:
    """The places of the restarts that are dropped after this epoch: in each trial the worse half by dev loss,
    where the condition asks for it."""
    condition, done = population.condition, len(population.histories[0])
    ends = halvings(condition)
    if done not in ends:
        return set()
    places: dict[int, list[int]] = {}
    for place, member in enumerate(population.members):
        places.setdefault(member.seed, []).append(place)
    survivors = condition.restarts >> sum(end <= done for end in ends)  # two may fall on one epoch
    ranked = [sorted(rivals, key=lambda place: finite(dev_losses[place])) for rivals in places.values()]
    return {place for rivals in ranked for place in rivals[survivors:]}


def choice(networks: Sequence[Ended]) -> int:
    """Which of a trial's networks is the trial's: that of the lowest dev loss, among those that were not
    dropped on the way. One that diverged never is."""
    stayed = [k for k, network in enumerate(networks) if not network.end.dropped]
    return min(stayed, key=lambda k: finite(networks[k].end.dev_loss))


def finite(loss: float) -> float:
    """A loss that is not a number is worse than any."""
    return loss if math.isfinite(loss) else math.inf


def train_epoch(population: Population, steps: dict[int, Step]) -> None:
    """Train on every string once, and write losses and dev accuracies into the histories. `steps` has what
    takes a step on batches of some size, and is added to."""
    batches = population.batches()
    total = torch.zeros(len(population.members), device=batches[0].device)
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
    if not graphed.why_not(population) and (step := graphed.captured(population, strings)):
        return step
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
