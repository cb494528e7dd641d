"""What a network did, step by step: the one record that figures, measures and regularisers read."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from softstack.cell import StackCell
from softstack.controllers import Actions


class Trace(NamedTuple):
    """What a network did at each step. N counts the slots of the final memory."""

    x: Tensor  # (B, T, input_size) what the controller was given: from a buffer, a mixture of items
    y: Tensor  # (B, T, output_size) what it put out: in a buffered network, before the output buffer
    v: Tensor  # (B, T, m) pushed vectors
    u: Tensor  # (B, T) pop strengths
    d: Tensor  # (B, T) push strengths
    r: Tensor  # (B, T, m) what was read
    s: Tensor  # (B, T, N) strengths of all slots after the step; 0 where a slot is yet to come
    h: Tensor  # (B, T, features) the controller's features: its hidden state if it has one
    i: Tensor  # (B, T) strength taken from the input buffer after the step; 1 without buffers
    o: Tensor  # (B, T) strength given to the output buffer; 1 without buffers


class Step(NamedTuple):
    """What a trace keeps of one step."""

    x: Tensor
    actions: Actions
    features: Tensor
    r: Tensor
    s: Tensor


def over_time(steps: list[Tensor], x: Tensor, *shape: int) -> Tensor:
    """Tensors (B, ...), one a step, put together as (B, T, ...); their shape is needed if there are none."""
    batch = x.ndim - 2
    return torch.stack(steps, batch) if steps else x.new_zeros(*x.shape[:batch], 0, *shape)


def gather(steps: list[Step], cell: StackCell, x: Tensor) -> Trace:
    m, K = cell.memory.size, cell.sizes["output_size"]
    slots = steps[-1].s.shape[-1] if steps else 0
    one = x.new_ones(x.shape[:-2])
    acts = [step.actions for step in steps]
    return Trace(
        x=over_time([step.x for step in steps], x, cell.sizes["input_size"]),
        y=over_time([a.y for a in acts], x, K),
        v=over_time([a.v for a in acts], x, m),
        u=over_time([a.u for a in acts], x),
        d=over_time([a.d for a in acts], x),
        r=over_time([step.r for step in steps], x, m),
        s=over_time([pad(step.s, (0, slots - step.s.shape[-1])) for step in steps], x, slots),
        h=over_time([step.features for step in steps], x, cell.core.features),
        i=over_time([one if a.i is None else a.i for a in acts], x),
        o=over_time([one if a.o is None else a.o for a in acts], x),
    )
