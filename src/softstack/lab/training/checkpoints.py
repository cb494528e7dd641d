"""A trial in the middle of its training, as plain numbers: saved at the end of an epoch, it goes on from
there and ends as if it had never stopped, to the bit.

A file of it is safetensors with the arrays of LAYOUT. What can be recomputed from the condition and the seed
(data, shapes) is not in it.

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
WORD = 2**64


class Checkpoint(NamedTuple):
    """What a trial needs to go on."""

    parameters: Tensor  # (n,), in the order of named_parameters
    first: Tensor  # (n,)
    second: Tensor  # (n,)
    steps: int
    order: tuple[int, ...]  # of the generator that shuffles the training strings; see LAYOUT
    epochs: list[Epoch]  # those done: early stopping needs no more


def words(generator: np.random.Generator) -> tuple[int, ...]:
    """The state of a PCG64 generator as six numbers."""
    state: Any = generator.bit_generator.state
    inner = state["state"]
    whole = (*divmod(inner["state"], WORD), *divmod(inner["inc"], WORD))
    return (*whole, state["has_uint32"], state["uinteger"])


def generator_state(words: Sequence[int]) -> dict[str, Any]:
    """The other way: what a PCG64 generator takes as its `bit_generator.state`."""
    a, b, c, d, has_spare, spare = words
    inner = {"state": a * WORD + b, "inc": c * WORD + d}
    return {"bit_generator": "PCG64", "state": inner, "has_uint32": has_spare, "uinteger": spare}


def dumps(checkpoint: Checkpoint) -> bytes:
    arrays: dict[str, Any] = {
        "parameters": checkpoint.parameters.numpy(),
        "first": checkpoint.first.numpy(),
        "second": checkpoint.second.numpy(),
        "losses": [epoch.loss for epoch in checkpoint.epochs],
        "devs": [epoch.dev for epoch in checkpoint.epochs],
        "steps": [checkpoint.steps],
        "order": checkpoint.order,
    }
    return safetensors.numpy.save({name: np.asarray(arrays[name], kind) for name, kind in LAYOUT.items()})


def most_bytes(condition: Condition) -> int:
    """How large a checkpoint's file can be for this condition; a larger one is not even read."""
    return 12 * numbers(condition) + 16 * condition.most_epochs + 4096


def numbers(condition: Condition) -> int:
    """n: how many numbers the network of a condition has for parameters."""
    return sum(math.prod(shape) for shape in shapes(condition).values())


def loads(content: bytes, condition: Condition, source: str) -> Checkpoint:
    """A checkpoint read back and checked against its condition, or a sentence on what is wrong with it."""
    try:
        arrays = safetensors.numpy.load(content)
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise BadInput(f"{source} cannot be read ({error}): it was damaged") from None
    n, count = numbers(condition), len(arrays.get("devs", ()))
    lengths = dict(parameters=n, first=n, second=n, losses=count, devs=count, steps=1, order=6)
    expected = {name: (np.dtype(kind), (lengths[name],)) for name, kind in LAYOUT.items()}
    if {name: (x.dtype, x.shape) for name, x in arrays.items()} != expected:
        raise BadInput(f"{source} does not hold what training of its condition needs: it was damaged")
    steps, order = int(arrays["steps"][0]), tuple(int(word) for word in arrays["order"])
    batches = condition.batches
    devs = arrays["devs"]
    if not (count > 0 and steps == count * batches and ((devs >= 0) & (devs <= 1)).all()):
        raise BadInput(f"{source} says {steps} steps after {count} epochs of {batches}: it was damaged")
    if order[3] % 2 == 0 or order[4] > 1 or order[5] >= 2**32:
        raise BadInput(f"{source} holds no state of a PCG64 generator: it was damaged")
    parameters, first, second = (torch.from_numpy(arrays[k]) for k in ("parameters", "first", "second"))
    epochs = [Epoch(*pair) for pair in zip(arrays["losses"].tolist(), devs.tolist(), strict=True)]
    return Checkpoint(parameters, first, second, steps, order, epochs)
