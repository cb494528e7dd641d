"""Trials in training. They differ by their seed alone, so they train as one population: parameters stacked
along a leading axis, one forward and one backward pass for all.

`Population.step` is the definition of a training step, in plain PyTorch. `native.py` and `graphed.py` have
faster ones that are held to it.

    P trials   n strings   B strings in a batch   T steps   K letters
"""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.functional import cross_entropy

from softstack import fit, kernels
from softstack.buffered import BufferedStackRNN
from softstack.controllers import Hidden
from softstack.disturbance import Disturbance
from softstack.errors import BadInput
from softstack.lab import tasks
from softstack.lab.tasks.data import Dataset, Split, one_hot
from softstack.lab.tasks.losses import LOSSES
from softstack.lab.training import noise
from softstack.lab.training.adam import Adam
from softstack.lab.training.buffers import refuse_changes
from softstack.lab.training.checkpoints import Checkpoint, Networks, generator_state, words
from softstack.lab.training.conditions import Condition, Network
from softstack.lab.training.draws import initial, members, stacked, stream
from softstack.lab.training.epochs import Epoch

Parameters = dict[str, Tensor]  # each with a leading axis of P; the buffers of a core are among them


def kernel_for(network: Network, x: Tensor) -> str:
    """Which implementation runs for inputs like x (..., T, K): 'cpu', 'gpu' or 'reference', which also stands
    for a network that has a cell without a kernel."""
    T = x.shape[-2]
    steps = network.steps(T) if isinstance(network, BufferedStackRNN) else T
    reasons = [fit.why_not(cell, x, steps) for cell in network.cells]
    return kernels.choose(network.backend, x, next(filter(None, reasons), ""))


def outputs(
    network: Network,
    parameters: Parameters,
    x: Tensor,
    letters: int,
    disturbance: list[Disturbance] | None = None,
) -> Tensor:
    """x (P, B, T) symbols -> y (P, B, T, K): each trial's network on its own strings."""

    def of_one(parameters: Parameters, x: Tensor, disturbance: list[Disturbance] | None) -> Tensor:
        y: Tensor = functional_call(network, parameters, (x,), {"disturbance": disturbance})[0]
        return y[:, : x.shape[1]]  # a buffered network may make more steps than there are targets

    axes = (0, 0, None if disturbance is None else 0)
    symbols = one_hot(x, letters, next(iter(parameters.values())))
    try:
        return vmap(of_one, axes)(parameters, symbols, disturbance)
    except RuntimeError as error:
        if "randomness" not in str(error):
            raise
        name = f"the controller {network.cell.controller_name!r} or its memory"
        raise BadInput(
            f"{name} draws random numbers, as a Dropout does, and its trials could not be repeated: disturb "
            "it by state_reset and hidden_noise instead"
        ) from error


@torch.no_grad()
def tested(network: Network, parameters: Parameters, x: Tensor, letters: int) -> Tensor:
    """`outputs` in evaluation mode: in training a network may compute something else."""
    training = network.training
    network.eval()
    y = outputs(network, parameters, x, letters)
    network.train(training)
    return y


def accuracies(network: Network, parameters: Parameters, data: Dataset, letters: int) -> Tensor:
    """(P,): right positions over scored positions."""
    right = correct(tested(network, parameters, data.x, letters), data).sum((1, 2))
    return right.double() / data.mask.sum((1, 2))


def correct(y: Tensor, data: Dataset) -> Tensor:
    """Where y (..., T, K) is scored and right, the argmax taken over the whole alphabet. What is not a number
    is no answer."""
    return (y.argmax(-1) == data.y) & ~y.isnan().any(-1) & data.mask


def losses(network: Network, parameters: Parameters, data: Dataset, letters: int) -> list[float]:
    """Of each network the mean cross-entropy of a scored position, to nine digits: beyond them it depends on
    who is there, for torch adds numbers up in another order."""
    y = tested(network, parameters, data.x, letters).double()  # (P, n, T, K)
    surprise = cross_entropy(y.movedim(-1, 1), data.y, reduction="none")
    means = (surprise * data.mask).sum((1, 2)) / data.mask.sum((1, 2))
    return [float(f"{mean:.9g}") for mean in means.tolist()]


class Population:
    """Trials in training, each with its restarts, in the order of the parameters' leading axis.

    They go on from `begun`, the networks of each seed, if there are any.
    """

    def __init__(
        self,
        condition: Condition,
        seeds: Sequence[int],
        device: torch.device | str = "cpu",
        begun: Sequence[Networks] = (),
    ) -> None:
        self.condition, self.members = condition, members(condition, seeds)
        self.letters = len(tasks.find(condition.task).alphabet)
        self.weighting = LOSSES[condition.loss_name]
        self.histories: list[list[Epoch]] = [[] for _ in self.members]
        self.orders = [stream(seed, "order", restart) for seed, restart in self.members]
        self.keys = noise.keys(self.members).to(device)
        self.resets = noise.thresholds(self.members, condition).to(device)
        splits: tuple[Split, ...] = ("train", "dev")
        trials = [member.seed for member in self.members]
        self.data = {split: stacked(condition, trials, split, device) for split in splits}
        networks = [initial(condition, seed, device, restart) for seed, restart in self.members]
        self.network = networks[0]  # its own parameters are not used
        self.shapes = {name: p.shape for name, p in self.network.named_parameters()}
        parameters, buffers = stack_module_state(networks)
        self.buffers = {name: b for name, b in buffers.items() if name in self.network.state_dict()}
        if self.buffers:
            refuse_changes(self.network, list(self.buffers), self.letters)
        vectors = torch.cat([p.detach().flatten(1) for p in parameters.values()], 1)
        self.optimiser = Adam(vectors.requires_grad_(), condition)
        if begun:
            self._go_on_from([*chain.from_iterable(begun)])

    @property
    def parameters(self) -> Parameters:
        return {**self.by_name(self.optimiser.vectors), **self.buffers}

    @property
    def kernel(self) -> str:
        """By which backend the networks run."""
        steps = self.data["train"].x.shape[2]
        return kernel_for(self.network, self.optimiser.vectors.new_empty(1, steps, self.letters))

    def by_name(self, vectors: Tensor) -> Parameters:
        """Parts of vectors (P, n) by the name of the parameter that they stand for."""
        parts = vectors.split([shape.numel() for shape in self.shapes.values()], dim=1)
        named = zip(self.shapes.items(), parts, strict=True)
        return {name: part.unflatten(1, shape) for (name, shape), part in named}

    def step(self, strings: Tensor) -> Tensor:
        """One batch, the training strings (P, B) of each trial by number. Gives the losses (P,) before it."""
        self.optimiser.count()
        return self.update(strings)

    def update(self, strings: Tensor) -> Tensor:
        """The step itself, once it is counted."""
        losses = self.losses(strings)
        (gradient,) = torch.autograd.grad(losses.sum(), [self.optimiser.vectors])
        self.optimiser.step(gradient)
        return losses.detach()

    def losses(self, strings: Tensor) -> Tensor:
        """(P,) of a batch, `strings` (P, B)."""
        trials = torch.arange(len(self.members), device=strings.device).unsqueeze(1)  # (P, 1)
        data = Dataset(*(x[trials, strings] for x in self.data["train"]))
        disturbance = self.disturbance(*data.x.shape[1:])
        y = outputs(self.network, self.parameters, data.x, self.letters, disturbance)  # (P, B, T, K)
        surprise = cross_entropy(y.movedim(-1, 1), data.y, reduction="none")  # (P, B, T)
        return (surprise * self.weighting(data.mask)).sum((1, 2))

    def disturbance(self, B: int, T: int) -> list[Disturbance] | None:
        """Of the step that is counted, for batches of B strings of T symbols: one for each cell."""
        h: Hidden = self.network.cell.core.init((), self.optimiser.vectors)  # every layer has such a state
        if not (self.condition.state_reset or self.condition.hidden_noise) or not h:
            return None
        steps = self.network.steps(T) if isinstance(self.network, BufferedStackRNN) else T
        shape, number = (B, steps, h[0].numel()), self.optimiser.number
        keys = [noise.of_layer(self.keys, layer) for layer in range(len(self.network.cells))]
        rates = self.resets, self.condition.hidden_noise
        disturbances = [noise.disturbance(layer_keys, number, shape, *rates) for layer_keys in keys]
        return [Disturbance(keep, z.reshape(*keep.shape, *h[0].shape)) for keep, z in disturbances]

    def batches(self) -> tuple[Tensor, ...]:
        """Every training string once, each network in an order of its own: (P, B) of each batch. The last
        epoch ends with the last of the condition's steps."""
        order = np.stack([order.permutation(self.condition.train_size) for order in self.orders])  # (P, n)
        strings = torch.from_numpy(order).to(self.data["train"].x.device)
        batches = strings.split(min(self.condition.batch_size, strings.shape[1]), dim=1)
        left = self.condition.steps - self.optimiser.steps if self.condition.steps else len(batches)
        return tuple(batch.contiguous() for batch in batches[:left])

    def accuracies(self, split: Split) -> Tensor:
        return accuracies(self.network, self.parameters, self.data[split], self.letters)

    def dev_losses(self) -> list[float]:
        """What restarts are chosen by."""
        return losses(self.network, self.parameters, self.data["dev"], self.letters)

    def diverged(self) -> list[bool]:
        """Of each trial whether its weights are no longer numbers: no step brings them back."""
        diverged: list[bool] = (~self.optimiser.vectors.isfinite().all(1)).tolist()
        return diverged

    def weights(self, place: int) -> dict[str, Tensor]:
        return {name: p[place].detach().clone() for name, p in self.parameters.items()}

    def checkpoint(self, place: int) -> Checkpoint:
        """The network at a place, at the end of an epoch."""
        optimiser = self.optimiser
        tensors = (optimiser.vectors, optimiser.first, optimiser.second)
        parameters, first, second = (x[place].detach().cpu().clone() for x in tensors)
        order, epochs = words(self.orders[place]), [*self.histories[place]]
        return Checkpoint(parameters, first, second, optimiser.steps, order, epochs)

    def _go_on_from(self, begun: Sequence[Checkpoint]) -> None:
        """Networks train in step, so those that still train must all have done the same number of epochs."""
        steps = {checkpoint.steps for checkpoint in begun if not checkpoint.end}
        if len(steps) != 1 or len(begun) != len(self.members):
            done = sorted({len(checkpoint.epochs) for checkpoint in begun if not checkpoint.end})
            raise BadInput(
                f"{len(self.members)} networks cannot go on together from {len(begun)} checkpoints after "
                f"{done} epochs: they need one each, after as many epochs"
            )
        optimiser = self.optimiser
        device = optimiser.vectors.device
        optimiser.vectors = torch.stack([c.parameters for c in begun]).to(device).requires_grad_()
        optimiser.first = torch.stack([c.first for c in begun]).to(device)
        optimiser.second = torch.stack([c.second for c in begun]).to(device)
        (optimiser.steps,) = steps
        self.histories = [[*checkpoint.epochs] for checkpoint in begun]
        for order, checkpoint in zip(self.orders, begun, strict=True):
            order.bit_generator.state = generator_state(checkpoint.order)

    def keep(self, places: list[int]) -> None:
        """Go on with the trials at these places alone."""
        self.members = [self.members[place] for place in places]
        self.keys, self.resets = self.keys[places], self.resets[places]
        self.orders = [self.orders[place] for place in places]
        self.histories = [self.histories[place] for place in places]
        self.data = {split: Dataset(*(x[places] for x in data)) for split, data in self.data.items()}
        self.buffers = {name: buffer[places] for name, buffer in self.buffers.items()}
        self.optimiser.keep(places)
