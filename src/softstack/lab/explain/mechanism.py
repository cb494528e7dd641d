"""Where a network keeps what its answers need, along its training: in its controller's state or its memory.

At some step of a run one of the two is replaced by that of another run at the same step. The share of the
next answers that change tells how much of what they need was there.

mechanism.json    a line for each kind of training, network and moment
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from softstack.cell import Edit, State
from softstack.lab import tasks
from softstack.lab.explain.ablation import Network, by_step
from softstack.lab.tasks.data import encode, one_hot
from softstack.lab.training.conditions import Condition, build
from softstack.lab.training.population import Population
from softstack.lab.training.recipes import single
from softstack.lab.training.train import Step, one_thread, train_epoch
from softstack.memory.states import leaf_by_leaf

SEEDS = range(3000, 3008)  # no other result uses them
MOMENTS = (0, 100, 300, 1_000, 3_000, 10_000, 30_000)  # steps of the training
STRINGS, NEXT = 64, 8  # strings that are run, and answers that are looked at after a replacement


def trainings(task: str) -> dict[str, Condition]:
    """The recipe with its resets and noise, and without."""
    recipe = single(Condition(task))
    return {
        "with resets and noise": recipe,
        "without": replace(recipe, state_reset=0.0, hidden_noise=0.0),
    }


def along(
    task: str, seeds: Sequence[int] = SEEDS, moments: Sequence[int] = MOMENTS
) -> Iterator[dict[str, Any]]:
    """What each network needs of its state and of its memory, at each moment of its training."""
    for name, condition in trainings(task).items():
        with one_thread():
            population = Population(replace(condition, steps=max(moments)), seeds)
            steps: dict[int, Step] = {}
            for moment in moments:
                while population.optimiser.steps < moment:
                    train_epoch(population, steps)
                for place, seed in enumerate(seeds):
                    network = build(condition)
                    network.load_state_dict(population.weights(place))
                    needs = {what: share(network.eval(), condition, what) for what in ("state", "memory")}
                    count = population.optimiser.steps
                    yield {"task": task, "training": name, "seed": seed, "steps": count, **needs}


@torch.no_grad()
def share(network: Network, condition: Condition, what: str) -> float:
    """Of the next answers, those that change when the state, or the memory and what was read of it, is that
    of another run."""
    task = tasks.find(condition.task)
    rng = np.random.default_rng(0)
    examples = tasks.of_length(task, rng, STRINGS, 2 * task.length("train"))
    data = encode(task, examples)
    x = one_hot(data.x, len(task.alphabet), network.cell.any_weight)
    answers = network(x)[0].argmax(-1)  # (n, T)
    T = data.x.shape[1]
    changes = count = 0
    for time in range(T // 8, T - 1, T // 8):
        changed = network(x, edit=_replacement(time, what))[0].argmax(-1) != answers
        for row in range(len(examples)):
            places = data.mask[row, time:].nonzero().flatten()[:NEXT] + time
            changes += int(changed[row, places].sum())
            count += len(places)
    return changes / max(count, 1)


def _replacement(time: int, what: str) -> Edit:
    """Before step `time` every run gets the state, or the memory, of its neighbour in the batch."""

    def roll(part: torch.Tensor) -> torch.Tensor:
        return part.roll(1, 0)

    def change(state: State, step: int) -> State:
        if step != time:
            return state
        if what == "state":
            return state._replace(h=tuple(map(roll, state.h)))
        return state._replace(memory=leaf_by_leaf(roll, state.memory), r=roll(state.r))

    return by_step(change)
