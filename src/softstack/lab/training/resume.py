"""A trial in the middle of its training, as plain numbers: saved at the end of an epoch, it goes on from
there and ends as if it had never stopped, to the bit.

A file of it is safetensors with the arrays of LAYOUT. What can be recomputed from the condition and the seed
(data, shapes) is not in it.

    n numbers in a network's parameters   E epochs done
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import safetensors
import safetensors.numpy
import torch
from torch import Tensor

from softstack.errors import BadInput
from softstack.lab.training.conditions import Condition, shapes

if TYPE_CHECKING:
    from softstack.lab.training.train import Population

LAYOUT = {
    "parameters": np.float32,  # (n,)
    "first": np.float32,  # (n,) Adam's first moments
    "second": np.float32,  # (n,) and second
    "losses": np.float64,  # (E,)
    "devs": np.float64,  # (E,)
    "steps": np.uint64,  # (1,) of the optimiser
    "order": np.uint64,  # (6,) PCG64: state and increment, high and low word each, and its spare 32 bits
}
WORD = 2**64


class State(NamedTuple):
    """What a trial needs to go on."""

    parameters: Tensor  # (n,), in the order of named_parameters
    first: Tensor  # (n,)
    second: Tensor  # (n,)
    steps: int
    order: tuple[int, ...]  # of the generator that shuffles the training strings; see LAYOUT
    epochs: list[
        tuple[float, float]
    ]  # loss and dev accuracy of each epoch done: early stopping needs no more


def snapshot(population: "Population", place: int, epochs: Sequence[tuple[float, float]]) -> State:
    """The trial at a place of a population, at the end of an epoch."""
    optimiser, order = population.optimiser, population.orders[population.trials[place]]
    rows = (optimiser.rows, optimiser.first, optimiser.second)
    parameters, first, second = (x[place].detach().cpu().clone() for x in rows)
    return State(parameters, first, second, optimiser.steps, _words(order), [*epochs])


def fresh(weights: dict[str, Tensor], order: np.random.Generator) -> State:
    """A network that no epoch has changed yet; `weights` are in the order of named_parameters."""
    parameters = torch.cat([weight.flatten() for weight in weights.values()])
    zeros = torch.zeros_like(parameters)
    return State(parameters, zeros, zeros, 0, _words(order), [])


def restore(population: "Population", states: Sequence[State]) -> None:
    """Put trials where they were. They train in step, so they must have done as many epochs."""
    if len({state.steps for state in states}) != 1 or len(states) != len(population.trials):
        done = sorted({len(state.epochs) for state in states})
        raise BadInput(
            f"{len(population.trials)} trials cannot go on together from {len(states)} states after {done} "
            "epochs: they need one state each, after as many epochs"
        )
    optimiser = population.optimiser
    device = optimiser.rows.device
    optimiser.rows = torch.stack([s.parameters for s in states]).to(device).requires_grad_()
    optimiser.first = torch.stack([s.first for s in states]).to(device)
    optimiser.second = torch.stack([s.second for s in states]).to(device)
    optimiser.steps = states[0].steps
    for order, state in zip(population.orders, states, strict=True):
        order.bit_generator.state = _generator_state(state.order)


def _words(generator: np.random.Generator) -> tuple[int, ...]:
    state: Any = generator.bit_generator.state
    inner = state["state"]
    whole = (*divmod(inner["state"], WORD), *divmod(inner["inc"], WORD))
    return (*whole, state["has_uint32"], state["uinteger"])


def _generator_state(words: Sequence[int]) -> dict[str, Any]:
    a, b, c, d, has_spare, spare = words
    inner = {"state": a * WORD + b, "inc": c * WORD + d}
    return {"bit_generator": "PCG64", "state": inner, "has_uint32": has_spare, "uinteger": spare}


def dumps(state: State) -> bytes:
    losses, devs = ([epoch[j] for epoch in state.epochs] for j in range(2))
    given: dict[str, Any] = {
        "parameters": state.parameters.numpy(),
        "first": state.first.numpy(),
        "second": state.second.numpy(),
        "losses": losses,
        "devs": devs,
        "steps": [state.steps],
        "order": state.order,
    }
    return safetensors.numpy.save({name: np.asarray(given[name], kind) for name, kind in LAYOUT.items()})


def most_bytes(condition: Condition) -> int:
    """How large a file of a state of this condition can be; one that is larger is not even read."""
    return 12 * numbers(condition) + 16 * condition.max_epochs + 4096


def numbers(condition: Condition) -> int:
    return sum(math.prod(shape) for shape in shapes(condition).values())


def loads(content: bytes, condition: Condition, source: str) -> State:
    """A state read back and checked against its condition, or a sentence on what is wrong with it."""
    try:
        found = safetensors.numpy.load(content)
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise BadInput(f"{source} cannot be read ({error}): it was damaged") from None
    n, epochs = numbers(condition), len(found.get("devs", ()))
    lengths = dict(parameters=n, first=n, second=n, losses=epochs, devs=epochs, steps=1, order=6)
    expected = {name: (np.dtype(kind), (lengths[name],)) for name, kind in LAYOUT.items()}
    if {name: (x.dtype, x.shape) for name, x in found.items()} != expected:
        raise BadInput(f"{source} does not hold what training of its condition needs: it was damaged")
    steps, order = int(found["steps"][0]), tuple(int(word) for word in found["order"])
    batches = -(-condition.train_size // condition.batch_size)
    devs = found["devs"]
    if not (epochs > 0 and steps == epochs * batches and ((devs >= 0) & (devs <= 1)).all()):
        raise BadInput(f"{source} says {steps} steps after {epochs} epochs of {batches}: it was damaged")
    if order[3] % 2 == 0 or order[4] > 1 or order[5] >= 2**32:
        raise BadInput(f"{source} holds no state of a PCG64 generator: it was damaged")
    parameters, first, second = (torch.from_numpy(found[k]) for k in ("parameters", "first", "second"))
    history = list(zip(found["losses"].tolist(), devs.tolist(), strict=True))
    return State(parameters, first, second, steps, order, history)
