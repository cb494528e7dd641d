"""Where a network keeps what its answers need along its training: in its controller's state, or its memory.

At some step of a run one of the two is replaced by that of another run at the same step. The share of the
next answers that become others tells how much of what they need was there.

mechanism.json    a line for each kind of training, network and moment
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map

from softstack.cell import Edit, State
from softstack.lab import tasks
from softstack.lab.explain.ablation import Network, by_step
from softstack.lab.tasks.data import encode, one_hot
from softstack.lab.training.conditions import Condition, build
from softstack.lab.training.population import Population
from softstack.lab.training.recipes import single
from softstack.lab.training.train import Step, one_thread, train_epoch

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
            due = list(moments)
            while due:
                if population.optimiser.steps >= due[0]:
                    for place, seed in enumerate(seeds):
                        network = build(condition)
                        network.load_state_dict(population.weights(place))
                        needs = {what: share(network.eval(), condition, what) for what in ("state", "memory")}
                        moment = population.optimiser.steps
                        yield {"task": task, "training": name, "seed": seed, "steps": moment, **needs}
                    due.pop(0)
                else:
                    train_epoch(population, steps)


@torch.no_grad()
def share(network: Network, condition: Condition, what: str) -> float:
    """Of the next answers, those that become others when the state, or the memory and what was read of it, is
    that of another run."""
    task = tasks.find(condition.task)
    rng = np.random.default_rng(0)
    examples = tasks.of_length(task, rng, STRINGS, 2 * task.length("train"))
    data = encode(task, examples)
    x = one_hot(data.x, len(task.alphabet), network.cell.any_weight)
    own = network(x)[0].argmax(-1)  # (n, T)
    T = data.x.shape[1]
    others = torch.from_numpy(np.roll(np.arange(len(examples)), 1))
    changed = counted = 0
    for time in range(T // 8, T - 1, T // 8):
        told = network(x, edit=_replaced(time, what, others))[0].argmax(-1)
        for row in range(len(examples)):
            due = data.mask[row, time:].nonzero().flatten()[:NEXT] + time
            changed += int((told[row, due] != own[row, due]).sum())
            counted += len(due)
    return changed / max(counted, 1)


def _replaced(time: int, what: str, others: torch.Tensor) -> Edit:
    """Before step `time` every run gets a part of another run's state."""

    def change(state: State, step: int) -> State:
        if step != time:
            return state
        if what == "state":
            return state._replace(h=tuple(part[others] for part in state.h))
        return state._replace(memory=tree_map(lambda part: part[others], state.memory), r=state.r[others])

    return by_step(change)
