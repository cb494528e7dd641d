"""What a trained network says of strings, and how its task's paper scores that."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from softstack.lab import tasks
from softstack.lab.tasks.data import Dataset, Example, Split
from softstack.lab.tasks.metrics import METRICS, Answers
from softstack.lab.training.conditions import Condition, Network
from softstack.lab.training.draws import encoded, padded_alike
from softstack.lab.training.population import correct, tested


def answers(
    condition: Condition, network: Network, strings: Sequence[Example], split: Split | None = None
) -> Answers:
    """What the network of a condition says of strings: of those of a split, or of any if there is none."""
    groups = [list(strings)] if split else padded_alike(condition, strings)
    parts = [_answers(condition, network, group, split) for group in groups]
    return Answers(*(torch.cat(tensors) for tensors in zip(*parts, strict=True)))


def scores(task: tasks.Task, results: Answers) -> dict[str, float]:
    """The metrics of the task's paper, by their names."""
    return {name: METRICS[name].of(results).item() for name in tasks.metrics_of(task)}


def _answers(
    condition: Condition, network: Network, strings: Sequence[Example], split: Split | None
) -> Answers:
    task = tasks.find(condition.task)
    data = encoded(condition, strings, split)
    parameters = {name: p.detach().unsqueeze(0) for name, p in network.named_parameters()}
    y = tested(network, parameters, data.x.unsqueeze(0), len(task.alphabet))[0]  # (n, T, K)
    return compared(task, strings, data, y)


def compared(task: tasks.Task, strings: Sequence[Example], data: Dataset, y: Tensor) -> Answers:
    """Outputs y (n, T, K) beside what is right."""
    right = correct(y, data)
    wrong_so_far = (data.mask & ~right).cumsum(1)
    surprise = cross_entropy(y.movedim(-1, 1), data.y, reduction="none") * data.mask
    bounds = tasks.bounds_of(task, [example.input for example in strings])
    return Answers(
        right.sum(1).double(),
        data.mask.sum(1).double(),
        (right & (wrong_so_far == 0)).sum(1).double(),
        surprise.double().sum(1),
        torch.tensor(bounds, dtype=torch.float64),
        torch.tensor([len(example.input) for example in strings], dtype=torch.float64),
    )
