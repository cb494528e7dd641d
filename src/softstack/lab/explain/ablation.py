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

NOTHING = "nothing"
READS = ("reads zeroed", "reads of others", "reads averaged")  # three ways to take information from reads
STATE = "state zeroed"
BENEATH = "all but the nearest hidden"
WHOLE = "strengths rounded"


def without_reads(state: State) -> State:
    return state._replace(r=torch.zeros_like(state.r))


def others_reads(state: State) -> State:
    """Each example is given what another one read."""
    return state._replace(r=state.r.roll(1, 0))


def mean_reads(state: State) -> State:
    return state._replace(r=state.r.mean(0, keepdim=True).expand_as(state.r))


def without_state(state: State) -> State:
    return state._replace(h=tuple(torch.zeros_like(h) for h in state.h))


def by_step(change: Callable[[State, int], State]) -> Edit:
    """A change of the state that is told before which step it is, from 0; for one run."""
    steps = count()
    return Edit(state=lambda state: change(state, next(steps)))


def nearest_alone(memory: Memory) -> Edit | None:
    """What the next read does not see is taken away; None for a memory that does not say what that is."""
    nearest = getattr(memory, "nearest", None)
    if nearest is None:
        return None
    return Edit(state=lambda state: state._replace(memory=nearest(state.memory)))


def hardened(memory: Memory, thresholds: Mapping[str, float] | None = None) -> Edit:
    """Strengths made 0 or 1, and the likeliest of several actions made certain. A strength is 1 above its
    threshold, by default a half."""
    levels = thresholds or {}

    def harden(name: str, head: Head, part: Tensor) -> Tensor:
        if isinstance(head, Strength) and name in levels:
            return (part > levels[name]).to(part.dtype)
        return head.hardened(part)

    return _on_strengths(memory, harden)


def in_parts(memory: Memory, parts: int) -> Edit:
    """Strengths made the nearest multiples of a part of 1: with 2, of a half."""

    def round_to_parts(name: str, head: Head, part: Tensor) -> Tensor:
        return (parts * part).round() / parts if isinstance(head, Strength) else head.hardened(part)

    return _on_strengths(memory, round_to_parts)


def steeper(memory: Memory, factor: float) -> Edit:
    """Strengths as if their pre-activations were `factor` times as large."""

    def steepen(name: str, head: Head, part: Tensor) -> Tensor:
        if not isinstance(head, Strength):
            return part
        return torch.sigmoid(factor * torch.logit(part.double(), eps=1e-12)).to(part.dtype)

    return _on_strengths(memory, steepen)


def _on_strengths(memory: Memory, change: Callable[[str, Head, Tensor], Tensor]) -> Edit:
    heads: dict[str, Head] = dict(memory.heads)

    def changed(actions: Actions) -> Actions:
        parts = zip(heads.items(), actions.instructions, strict=True)
        instructions = [change(name, head, part) for (name, head), part in parts]
        buffers = {"i": actions.i, "o": actions.o}
        i, o = (None if part is None else change(name, Strength(), part) for name, part in buffers.items())
        return actions._replace(instructions=type(actions.instructions)(*instructions), i=i, o=o)

    return Edit(actions=changed)


def edits(memory: Memory) -> dict[str, Edit]:
    """Every edit that makes sense for a memory."""
    beneath = nearest_alone(memory)
    return {
        NOTHING: Edit(),
        **dict(zip(READS, map(Edit, (without_reads, others_reads, mean_reads)), strict=True)),
        STATE: Edit(state=without_state),
        **({} if beneath is None else {BENEATH: beneath}),
        WHOLE: hardened(memory),
    }


class Ablated(NamedTuple):
    """A run under an edit."""

    y: Tensor  # (B, T, K); of a buffered network, read off its output buffer
    trace: Trace  # of its steps; `trace.y` is what it put out before any buffer


@torch.no_grad()
def run(network: Network, x: Tensor, edit: Edit, lengths: Tensor | None = None) -> Ablated:
    """x (B, T, input_size), of which the first `lengths` (B,) are the strings themselves."""
    y, _, trace = network(x, lengths=lengths, return_trace=True, edit=edit)
    return Ablated(y[:, : x.shape[1]], trace)
