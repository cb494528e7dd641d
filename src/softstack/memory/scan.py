"""A memory over a whole sequence of instructions. The loop here is the reference: kernels are held to it."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from softstack import checks, kernels
from softstack.errors import BadInput
from softstack.memory.items import MemoryState, empty
from softstack.memory.protocol import Instructions, Memory, instructions_type
from softstack.memory.queue import Queue
from softstack.memory.stack import Stack
from softstack.memory.states import cut_off, full_precision, kept, only_where, running


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
    """A stack or a queue over a whole sequence. `validate=False` trusts the strengths, which may then be of a
    wider dtype than the vectors."""
    if state is not None and not isinstance(state, MemoryState):
        raise BadInput(f"state must be a MemoryState, or None to start; got {checks.described(state)}")
    live = None if lengths is None else running(lengths, v)  # (B, T)
    kernel = kernels.choose(backend, v)
    if kernel == "reference":
        if validate:
            checks.instructions(v, u, d, state, memory.size, time=True, live=live)
        before = empty(memory.size, v.shape[:-2], u) if state is None else state
        wide = MemoryState(before.V.to(u.dtype), before.s)
        r, final = scan(memory, Instructions(v.to(u.dtype), u, d), wide, lengths)
        return r.to(v.dtype), MemoryState(final.V.to(v.dtype), final.s)
    from softstack.kernels import scan as fused

    V0, s0 = (None, None) if state is None else state
    checked = validate and fused.checks_strengths(kernel, v, u, d, V0, s0, lengths)
    if validate:
        checks.instructions(v, u, d, state, memory.size, time=True, live=live, values=not checked)
    if live is not None:
        v, u, d = (only_where(live, x) for x in (v, u, d))
    r, V, s = fused.scan(v, u, d, V0, s0, lengths, isinstance(memory, Stack), kernel, checked)
    return r, MemoryState(V, s)


def scan(
    memory: Memory,
    instructions: Mapping[str, Tensor] | tuple[Tensor, ...],
    state: Any = None,
    lengths: Tensor | None = None,
) -> tuple[Tensor, Any]:
    """Any memory, step by step: its instructions, in a dict or as a network makes them, with a time axis
    (B, T, ...) -> r (B, T, width) and the final state. Steps at or after `lengths` (B,) leave the state as it
    is and read 0."""
    if not hasattr(memory, "heads") or isinstance(memory, type):
        raise BadInput(f"a memory is needed here, such as ss.Stack(4); got {memory!r}")
    parts: Any = instructions._asdict() if hasattr(instructions, "_asdict") else instructions
    heads = memory.heads
    checks.sequences(memory, heads, parts)
    name, head = next(iter(heads.items()))
    axis = parts[name].ndim - 1 - len(head.shape)  # of time: 1, or 0 without a batch
    batch, T, like = tuple(parts[name].shape[:axis]), parts[name].shape[axis], parts[name]
    if state is None:
        state = memory.init(batch, device=like.device, dtype=like.dtype)
    live = None if lengths is None else running(lengths, like.new_empty(*batch, T, 0))  # (B, T)
    if live is not None:  # what a head says of zeros, which every memory can be told
        neutral = {name: head.value(like.new_zeros(head.size)) for name, head in heads.items()}
        parts = {name: only_where(live, part, neutral[name]) for name, part in parts.items()}
    sequence = instructions_type(tuple(heads))(*(parts[name] for name in heads))
    reads = []
    for t in range(T):
        instructions = type(sequence)(*(part.select(axis, t) for part in sequence))
        old = state
        if live is not None:
            old, instructions = cut_off(live[..., t], (state, instructions))
        new, r = stepped(memory, old, instructions)
        state = new if live is None else kept(live[..., t], new, state)
        reads.append(r if live is None else only_where(live[..., t], r))
    return (torch.stack(reads, axis) if reads else like.new_zeros(*batch, 0, memory.width)), state


def stepped(memory: Memory, state: Any, instructions: Any) -> tuple[Any, Tensor]:
    """One step in the memory's own precision."""
    with full_precision(instructions[0]):
        new, r = memory.step(state, instructions)
    if type(new) is not type(state) or not isinstance(r, Tensor) or r.shape[-1] != memory.width:
        raise BadInput(
            f"a step of {memory} must give (state, r): a {type(state).__name__}, as its init does, and a "
            f"read of {memory.width} numbers; got {checks.described(new)} and {checks.described(r)}"
        )
    return new, r
