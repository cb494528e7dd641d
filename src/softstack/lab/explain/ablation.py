"""A network run with something taken from it at every step: its reads, its state, or the depth of its stack.

The loop is that of networks.py, with an edit between its parts.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from softstack import buffers
from softstack.cell import State
from softstack.controllers import Actions
from softstack.memory import Instructions, MemoryState, above, empty, running
from softstack.networks import BufferedStackRNN, StackRNN

Network = StackRNN | BufferedStackRNN


class Edit(NamedTuple):
    """What is done to a network in each step: to the state that it starts from, and to what it does."""

    state: Callable[[State], State] = lambda state: state
    actions: Callable[[Actions], Actions] = lambda actions: actions


def without_reads(state: State) -> State:
    return state._replace(r=torch.zeros_like(state.r))


def others_reads(state: State) -> State:
    """Each example is given what another one read."""
    return state._replace(r=state.r.roll(1, 0))


def mean_reads(state: State) -> State:
    return state._replace(r=state.r.mean(0, keepdim=True).expand_as(state.r))


def without_state(state: State) -> State:
    return state._replace(h=tuple(torch.zeros_like(h) for h in state.h))


def top_alone(state: State) -> State:
    """What lies beneath the topmost unit of strength, which is what a step reads, is taken away."""
    V, s = state.memory
    return state._replace(memory=MemoryState(V, torch.minimum(s, torch.relu(1 - above(s)))))


def rounded(actions: Actions) -> Actions:
    """Strengths made 0 or 1."""
    strengths = {name: getattr(actions, name) for name in ("u", "d", "i", "o")}
    return actions._replace(**{name: x.round() for name, x in strengths.items() if x is not None})


EDITS: dict[str, Edit] = {
    "nothing": Edit(),
    "reads zeroed": Edit(state=without_reads),
    "reads of others": Edit(state=others_reads),
    "reads averaged": Edit(state=mean_reads),
    "state zeroed": Edit(state=without_state),
    "beneath the top hidden": Edit(state=top_alone),
    "strengths rounded": Edit(actions=rounded),
}


class Ablated(NamedTuple):
    """A run under an edit. Without buffers i and o are 1."""

    y: Tensor  # (B, T, K); of a buffered network, read off its output buffer
    u: Tensor  # (B, steps)
    d: Tensor
    i: Tensor
    o: Tensor
    v: Tensor  # (B, steps, m)
    scores: Tensor  # (B, steps, K) what it put out, before any buffer
    x: Tensor  # (B, steps, input_size) what it was given
    features: Tensor  # (B, steps, features)


@torch.no_grad()
def run(network: Network, x: Tensor, edit: Edit, lengths: Tensor | None = None) -> Ablated:
    """x (B, T, input_size). A buffered network finds only the first `lengths` (B,) symbols in its input; the
    steps after the end of a string are made all the same."""
    cell, (B, T, _) = network.cell, x.shape
    state = cell.init((B,), x)
    buffered = isinstance(network, BufferedStackRNN)
    steps = network.steps(T) if isinstance(network, BufferedStackRNN) else T
    filled = None if lengths is None else running(lengths, x).to(x.dtype)
    waiting = buffers.fill(empty(x.shape[-1], (B,), x), x, filled)
    output = empty(cell.sizes["output_size"], (B,), x)
    one = x.new_ones(B)
    take = x.new_zeros(B)
    done: list[tuple[Tensor, ...]] = []
    for t in range(steps):
        if buffered:
            waiting, x_t = buffers.take(waiting, take)
        else:
            x_t = x[:, t]
        state = edit.state(state)
        features, h = cell.core(torch.cat((x_t, state.r), -1), state.h)
        act: Actions = edit.actions(cell.heads(features))
        memory, r = cell.memory.step(state.memory, Instructions(act.v, act.u, act.d), validate=False)
        state = State(h, memory, r)
        i, o = (one if a is None else a for a in (act.i, act.o))
        if buffered:
            take, output = i, buffers.give(output, act.y, o)
        done.append((act.u, act.d, i, o, act.v, act.y, x_t, features))
    columns = [torch.stack(column, 1) for column in zip(*done, strict=True)]
    u, d, i, o, v, scores, given, features = columns
    if isinstance(network, BufferedStackRNN):
        y = buffers.read_off(output, steps, discard_first=network.discard_first)[:, :T]
    else:
        y = scores
    return Ablated(y, u, d, i, o, v, scores, given, features)
