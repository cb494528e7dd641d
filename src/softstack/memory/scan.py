"""A memory over a whole sequence of instructions. The loop here is the reference: kernels are held to it."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from softstack import checks, kernels
from softstack.memory.items import MemoryState
from softstack.memory.protocol import Instructions, Memory
from softstack.memory.queue import Queue
from softstack.memory.stack import Stack
from softstack.memory.states import full_precision, kept, only_where, running


def stack_scan(
    v: Tensor,
    u: Tensor,
    d: Tensor,
    state: MemoryState | None = None,
    backend: str = "auto",
    *,
    lengths: Tensor | None = None,
) -> tuple[Tensor, MemoryState]:
    """A stack over a whole sequence: v (B, T, m), u (B, T), d (B, T) -> r (B, T, m) and the final state.

    Steps at or after `lengths` (B,) leave the state as it is and read 0.
    """
    return item_scan(Stack(checks.width(v), validate=False), v, u, d, state, backend, lengths)


def queue_scan(
    v: Tensor,
    u: Tensor,
    d: Tensor,
    state: MemoryState | None = None,
    backend: str = "auto",
    *,
    lengths: Tensor | None = None,
) -> tuple[Tensor, MemoryState]:
    """A queue over a whole sequence; arguments and results as for `stack_scan`."""
    return item_scan(Queue(checks.width(v), validate=False), v, u, d, state, backend, lengths)


def item_scan(
    memory: Stack | Queue,
    v: Tensor,
    u: Tensor,
    d: Tensor,
    state: MemoryState | None,
    backend: str,
    lengths: Tensor | None = None,
    *,
    validate: bool = True,
) -> tuple[Tensor, MemoryState]:
    """A stack or a queue over a whole sequence. `validate=False` trusts the strengths."""
    begins_empty = state is None
    state = memory.init(tuple(v.shape[:-2]), device=v.device, dtype=v.dtype) if state is None else state
    if validate:
        checks.instructions(v, u, d, state, memory.size, time=True)
    kernel = kernels.choose(backend, v)
    if kernel == "reference":
        return scan(memory, Instructions(v, u, d), state, lengths)
    from softstack.kernels.scan import scan as fused

    if lengths is not None:
        live = running(lengths, v)  # (B, T)
        v, u, d = (only_where(live, x) for x in (v, u, d))
    V = v if begins_empty else torch.cat((state.V, v), -2)
    r, s = fused(V, u, d, state.s, lengths, isinstance(memory, Stack), kernel == "gpu")
    return r, MemoryState(V, s)


def scan(
    memory: Memory, instructions: Any, state: Any = None, lengths: Tensor | None = None
) -> tuple[Tensor, Any]:
    """Any memory, step by step: its instructions with a time axis (B, T, ...) -> r (B, T, width), and the
    final state. Steps at or after `lengths` (B,) leave the state as it is and read 0."""
    name, head = next(iter(memory.heads.items()))
    x = getattr(instructions, name)
    axis = x.ndim - 1 - len(head.shape)  # of time: 1, or 0 without a batch
    batch, T = tuple(x.shape[:axis]), x.shape[axis]
    if state is None:
        state = memory.init(batch, device=x.device, dtype=x.dtype)
    live = None if lengths is None else running(lengths, x.new_empty(*batch, T, 0))  # (B, T)
    if live is not None:
        instructions = tree_map(lambda part: only_where(live, part), instructions)
    reads = []
    for t in range(T):
        at_t = tree_map(lambda part: part.select(axis, t), instructions)  # noqa: B023 (called at once)
        live_t = None if live is None else live[..., t]
        state, r = stepped(memory, state, at_t, live_t)
        reads.append(r if live_t is None else only_where(live_t, r))
    return (torch.stack(reads, axis) if reads else x.new_zeros(*batch, 0, memory.width)), state


def stepped(memory: Memory, state: Any, instructions: Any, live: Tensor | None) -> tuple[Any, Tensor]:
    """One step in the memory's own precision; where `live` (B,) is false it is padding: the state stays."""
    with full_precision(instructions[0]):
        new, r = memory.step(state, instructions)
    return (new if live is None else kept(live, new, state)), r
