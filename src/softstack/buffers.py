"""§2.3: the read-only input buffer and the write-only output buffer, both neural queues.

The recurrences for ι and ξ are misprinted in the paper: what is subtracted is the strength of item j - 1,
as in §2.1, not of item j (taken literally, nothing could be read after one whole item is dequeued).
"""

import torch
from torch import Tensor

from softstack.memory.items import MemoryState, before, pop, push, read
from softstack.memory.queue import Queue
from softstack.memory.scan import item_scan
from softstack.memory.states import only_where


def fill(buffer: MemoryState, x: Tensor, live: Tensor | None = None) -> MemoryState:
    """I_0: the items of x (B, T, k) behind those already there, each with strength 1 (0 where padding)."""
    strengths = x.new_ones(x.shape[:-1]) if live is None else live
    return MemoryState(torch.cat((buffer.V, x), -2), torch.cat((buffer.s, strengths), -1))


def take(buffer: MemoryState, i: Tensor, live: Tensor | None = None) -> tuple[MemoryState, Tensor]:
    """Dequeue with strength i_{t-1}, then read x_t from the front with strength 1.

    Where `live` (B,) is false the step is padding: nothing is taken, and x_t is 0.
    """
    s = pop(buffer.s, i, before)
    buffer = MemoryState(buffer.V, s if live is None else only_where(live, s, buffer.s))
    x = read(buffer, before)
    return buffer, x if live is None else only_where(live, x)


def give(buffer: MemoryState, y: Tensor, o: Tensor) -> MemoryState:
    """Enqueue y_t with strength o_t."""
    return push(buffer, y, o)


def read_off(
    buffer: MemoryState, items: int, *, discard_first: bool = False, backend: str = "auto"
) -> Tensor:
    """The output sequence (B, items, K): whole items taken from the front until nothing is left.

    The first item is read before anything is dequeued, as the input buffer is with i_0 = 0. The paper, and
    the authors' code, dequeue first, which throws the first whole item away: `discard_first=True`.
    """
    batch, K = buffer.s.shape[:-1], buffer.V.shape[-1]
    u = buffer.s.new_ones(*batch, items)  # whole items, one after the other, and nothing is enqueued
    if items and not discard_first:
        u = torch.cat((torch.zeros_like(u[..., :1]), u[..., 1:]), -1)
    nothing, d = buffer.V.new_zeros(*batch, items, K), torch.zeros_like(u)
    return item_scan(Queue(K, validate=False), nothing, u, d, buffer, backend, validate=False)[0]
