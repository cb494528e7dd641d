"""A network run with something taken from it at every step: its reads, its state, or the depth of its memory.

Each edit changes what a step starts from, or what the controller does in it; the loop is the networks' own.
"""

from collections.abc import Callable, Mapping
from itertools import count
from typing import NamedTuple

import torch
from torch import Tensor

from softstack.buffered import BufferedStackRNN
from softstack.cell import Actions, Edit, State
from softstack.memory import Head, Memory, Strength
from softstack.networks import StackRNN
from softstack.trace import Trace

Network = StackRNN | BufferedStackRNN

NOTHING, STATE, WHOLE = "nothing", "state zeroed", "strengths rounded"  # edits that reports speak of


def without_reads(state: State) -> State:
    return state._replace(r=torch.zeros_like(state.r))


def others_reads(state: State) -> State:
    """Each example gets what another example read."""
    return state._replace(r=state.r.roll(1, 0))


def mean_reads(state: State) -> State:
    return state._replace(r=state.r.mean(0, keepdim=True).expand_as(state.r))


def without_state(state: State) -> State:
    return state._replace(h=tuple(torch.zeros_like(h) for h in state.h))


def by_step(change: Callable[[State, int], State]) -> Edit:
    """A change of the state before each step, which depends on the step's number from 0. For one run only."""
    numbers = count()
    return Edit(state=lambda state: change(state, next(numbers)))


def nearest_alone(memory: Memory) -> Edit | None:
    """Hides all that the next read does not see; None for a memory without `nearest`."""
    nearest = getattr(memory, "nearest", None)
    if nearest is None:
        return None
    return Edit(state=lambda state: state._replace(memory=nearest(state.memory)))


def hardened(memory: Memory, thresholds: Mapping[str, float] | None = None) -> Edit:
    """Strengths made 0 or 1, and the likeliest of several actions made certain. A strength is 1 above its
    threshold, by default a half."""

    def harden(name: str, head: Head, values: Tensor) -> Tensor:
        if thresholds and name in thresholds and isinstance(head, Strength):
            return (values > thresholds[name]).to(values.dtype)
        return head.hardened(values)

    return _on_strengths(memory, harden)


def in_parts(memory: Memory, parts: int) -> Edit:
    """Strengths rounded to multiples of 1/parts."""

    def round_to_parts(name: str, head: Head, values: Tensor) -> Tensor:
        return (parts * values).round() / parts if isinstance(head, Strength) else head.hardened(values)

    return _on_strengths(memory, round_to_parts)


def steeper(memory: Memory, factor: float) -> Edit:
    """Strengths as if their pre-activations were `factor` times as large."""

    def steepen(name: str, head: Head, values: Tensor) -> Tensor:
        if not isinstance(head, Strength):
            return values
        return torch.sigmoid(factor * torch.logit(values.double(), eps=1e-12)).to(values.dtype)

    return _on_strengths(memory, steepen)


def _on_strengths(memory: Memory, change: Callable[[str, Head, Tensor], Tensor]) -> Edit:
    heads: dict[str, Head] = dict(memory.heads)

    def edit(actions: Actions) -> Actions:
        pairs = zip(heads.items(), actions.instructions, strict=True)
        instructions = [change(name, head, values) for (name, head), values in pairs]
        i = None if actions.i is None else change("i", Strength(), actions.i)
        o = None if actions.o is None else change("o", Strength(), actions.o)
        return actions._replace(instructions=type(actions.instructions)(*instructions), i=i, o=o)

    return Edit(actions=edit)


def edits(memory: Memory) -> dict[str, Edit]:
    """Every edit that makes sense for a memory."""
    nearest = nearest_alone(memory)
    return {
        NOTHING: Edit(),
        "reads zeroed": Edit(without_reads),
        "reads of others": Edit(others_reads),
        "reads averaged": Edit(mean_reads),
        STATE: Edit(without_state),
        **({} if nearest is None else {"all but the nearest hidden": nearest}),
        WHOLE: hardened(memory),
    }


class Ablated(NamedTuple):
    """A run under an edit."""

    y: Tensor  # (B, T, K); of a buffered network, read off its output buffer
    trace: Trace  # `trace.y` is its output before any buffer


@torch.no_grad()
def run(network: Network, x: Tensor, edit: Edit, lengths: Tensor | None = None) -> Ablated:
    """x (B, T, input_size), of which the first `lengths` (B,) are the strings themselves."""
    y, _, trace = network(x, lengths=lengths, return_trace=True, edit=edit)
    return Ablated(y[:, : x.shape[1]], trace)
