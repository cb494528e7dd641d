"""What a training step of a network costs: its time, and what it keeps in memory for its backward pass."""

import time
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from softstack.lab import tasks
from softstack.lab.tasks.data import Dataset, one_hot
from softstack.lab.training.conditions import Condition, Network, build
from softstack.lab.training.draws import encoded, stream

REPEATS = 5
LONG = 0.5  # seconds, above which one timing is enough


class Cost(NamedTuple):
    """The cost of a forward and a backward pass of one network: a batch of training strings, on one core."""

    ms: float  # of the processor's time, which does not depend on what else the machine does
    kib: float  # tensors that autograd keeps from the forward pass to the backward pass


def of_step(condition: Condition) -> Cost:
    torch.manual_seed(0)
    task, network = tasks.find(condition.task), build(condition)
    words = task.sample(stream(0, "train"), condition.batch_size, "train")
    data = encoded(condition, [task.example(word) for word in words], "train")
    x = one_hot(data.x, len(task.alphabet), next(network.parameters()))
    sizes: dict[int, int] = {}  # bytes of each storage, by its address

    def record(tensor: Tensor) -> Tensor:
        sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(record, lambda tensor: tensor):
        _pass(network, x, data)  # which also compiles what has to be compiled
    seconds: list[float] = []
    while len(seconds) < REPEATS and not (seconds and seconds[0] > LONG):
        began = time.process_time()
        _pass(network, x, data)
        seconds.append(time.process_time() - began)
    return Cost(1e3 * median(seconds), sum(sizes.values()) / 1024)


def _pass(network: Network, x: Tensor, data: Dataset) -> None:
    y = network(x)[0][:, : x.shape[1]]
    losses = cross_entropy(y.movedim(-1, 1), data.y, reduction="none")
    torch.autograd.grad((losses * data.mask).sum(), [*network.parameters()], allow_unused=True)
