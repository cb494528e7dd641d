"""A trial in the middle of its training, as plain numbers: saved at the end of an epoch, it goes on from
there and ends as if it had never stopped, to the bit.

A file of it is safetensors with the arrays of LAYOUT. Those of its first network have these names, and those
of restart 3 a ".3" behind them. What can be recomputed from the condition and the seed (data, shapes) is not
in it.

    n numbers in a network's parameters   E epochs done
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import safetensors
import safetensors.numpy
import torch
from torch import Tensor

from softstack.errors import BadInput
from softstack.lab.training.conditions import Condition, shapes
from softstack.lab.training.epochs import Epoch

LAYOUT = {
    "parameters": np.float32,  # (n,)
    "first": np.float32,  # (n,) Adam's first moments
    "second": np.float32,  # (n,) and second
    "losses": np.float64,  # (E,)
    "devs": np.float64,  # (E,)
    "steps": np.uint64,  # (1,) of the optimiser
    "order": np.uint64,  # (6,) PCG64: state and increment, high and low word each, and its spare 32 bits
}
END = "end", np.float64  # (2,) of a network whose training is over: its dev loss, and 1 if it was dropped
WORD = 2**64


class End(NamedTuple):
    """How the training of a network ended while others of its trial went on."""

    dev_loss: float
    dropped: bool  # on the way, for others were better


class Checkpoint(NamedTuple):
    """What a network needs to go on."""

    parameters: Tensor  # (n,), in the order of named_parameters
    first: Tensor  # (n,)
    second: Tensor  # (n,)
    steps: int
    order: tuple[int, ...]  # of the generator that shuffles the training strings; see LAYOUT
    epochs: list[Epoch]  # those done: early stopping needs no more
    end: End | None = None  # None: it is still trained


Networks = tuple[Checkpoint, ...]  # of a trial, one for each of its restarts; at least one is still trained


def epochs_done(networks: Networks) -> list[Epoch]:
    """Those of a network that is still trained."""
    return next(network.epochs for network in networks if not network.end)


def words(generator: np.random.Generator) -> tuple[int, ...]:
    """The state of a PCG64 generator as six numbers."""
    state: Any = generator.bit_generator.state
    inner = state["state"]
    whole = (*divmod(inner["state"], WORD), *divmod(inner["inc"], WORD))
    return (*whole, state["has_uint32"], state["uinteger"])


def generator_state(words: Sequence[int]) -> dict[str, Any]:
    """The reverse of `words`: what a PCG64 generator takes as its `bit_generator.state`."""
    a, b, c, d, has_spare, spare = words
    inner = {"state": a * WORD + b, "inc": c * WORD + d}
    return {"bit_generator": "PCG64", "state": inner, "has_uint32": has_spare, "uinteger": spare}


def dumps(networks: Networks) -> bytes:
    arrays: dict[str, Any] = {}
    for restart, network in enumerate(networks):
        contents: dict[str, Any] = {
            "parameters": network.parameters.numpy(),
            "first": network.first.numpy(),
            "second": network.second.numpy(),
            "losses": [epoch.loss for epoch in network.epochs],
            "devs": [epoch.dev for epoch in network.epochs],
            "steps": [network.steps],
            "order": network.order,
            "end": network.end,
        }
        kinds = dict([*LAYOUT.items(), END] if network.end else LAYOUT)
        arrays |= {_name(part, restart): np.asarray(contents[part], kind) for part, kind in kinds.items()}
    return safetensors.numpy.save(arrays)


def _name(part: str, restart: int) -> str:
    return f"{part}.{restart}" if restart else part


def most_bytes(condition: Condition) -> int:
    """How large a checkpoint's file can be for this condition; a larger one is not even read."""
    return condition.restarts * (12 * numbers(condition) + 16 * condition.most_epochs + 4096)


def numbers(condition: Condition) -> int:
    """n: how many numbers the network of a condition has for parameters."""
    return sum(math.prod(shape) for shape in shapes(condition).values())


def loads(content: bytes, condition: Condition, source: str) -> Networks:
    """A trial read back and checked against its condition, or a sentence on what is wrong with it."""
    try:
        arrays = safetensors.numpy.load(content)
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise BadInput(f"{source} cannot be read ({error}): it was damaged") from None
    n, expected = numbers(condition), dict[str, Any]()
    if len(arrays) < condition.restarts * len(LAYOUT):
        raise BadInput(f"{source} does not hold all restarts of its trial: it was damaged")
    for restart in range(condition.restarts):
        count = len(arrays.get(_name("devs", restart), ()))
        lengths = dict(parameters=n, first=n, second=n, losses=count, devs=count, steps=1, order=6, end=2)
        ended = _name("end", restart) in arrays
        for part, kind in [*LAYOUT.items(), END] if ended else LAYOUT.items():
            expected[_name(part, restart)] = np.dtype(kind), (lengths[part],)
    if {name: (x.dtype, x.shape) for name, x in arrays.items()} != expected:
        raise BadInput(f"{source} does not hold what training of its condition needs: it was damaged")
    networks = []
    for restart in range(condition.restarts):
        own = {part: arrays.get(_name(part, restart)) for part in (*LAYOUT, "end")}
        networks.append(_network(own, condition, source))
    done = {network.steps for network in networks if not network.end}
    if len(done) != 1 or max(network.steps for network in networks) > min(done):
        raise BadInput(f"{source} has no networks that are trained together: it was damaged")
    return tuple(networks)


def _network(arrays: dict[str, Any], condition: Condition, source: str) -> Checkpoint:
    steps, order = int(arrays["steps"][0]), tuple(int(word) for word in arrays["order"])
    batches, devs = condition.batches, arrays["devs"]
    count = len(devs)
    if not (count > 0 and steps == count * batches and ((devs >= 0) & (devs <= 1)).all()):
        raise BadInput(f"{source} says {steps} steps after {count} epochs of {batches}: it was damaged")
    if order[3] % 2 == 0 or order[4] > 1 or order[5] >= 2**32:
        raise BadInput(f"{source} holds no state of a PCG64 generator: it was damaged")
    parameters, first, second = (torch.from_numpy(arrays[k]) for k in ("parameters", "first", "second"))
    epochs = [Epoch(*pair) for pair in zip(arrays["losses"].tolist(), devs.tolist(), strict=True)]
    end = None
    if arrays["end"] is not None:
        dev_loss, dropped = arrays["end"].tolist()
        end = End(dev_loss, bool(dropped))
    return Checkpoint(parameters, first, second, steps, order, epochs, end)
