"""A stack or a queue token by token: a step costs as much as it pops and reads, however much it holds.

`MemoryState` is copied whenever a step appends to it. `Cells` have room: a step writes its vector into the
next slot and links it to the others (kernels/README.md, "Log"). Older cells stay valid: who goes on from them
a second time gets a copy.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from softstack import kernels
from softstack.errors import BadInput
from softstack.memory.items import MemoryState
from softstack.memory.queue import Queue
from softstack.memory.stack import Stack

END = -1
FIRST = 64  # slots beyond those that are filled, at first; then as many again as there are


class Cells(NamedTuple):
    """S sequences with room for C items each."""

    V: Tensor  # (S, C, m) vectors
    link: Tensor  # (S, C) the cell that is met after this one, -1 if none
    level: Tensor  # (S, C) its strength then
    head: Tensor  # (S,) the cell that is met first
    strength: Tensor  # (S,) what it holds
    fault: Tensor  # (S, m) 0, or NaN: what is not a number shows in all that is read after it
    filled: int  # slots
    taken: Tensor  # () slots in use in these tensors, those of other continuations included
    memory: str  # its name: a stack and a queue are linked in opposite ways

    def grown(self) -> "Cells":
        """A copy of the filled slots, with room for as many more."""
        more = max(FIRST, self.filled)

        def longer(x: Tensor) -> Tensor:
            return torch.cat((x[:, : self.filled], x.new_empty(x.shape[0], more, *x.shape[2:])), 1)

        # the last cell of a queue may have been linked to one that another continuation pushed
        link = torch.where(self.link < self.filled, self.link, END)
        taken = torch.tensor(self.filled)
        return self._replace(V=longer(self.V), link=longer(link), level=longer(self.level), taken=taken)


@torch.no_grad()
def cells_of(memory: Stack | Queue, state: MemoryState) -> Cells:
    """What a memory holds, V (S, N, m) and s (S, N), to go on from token by token."""
    V, s = state
    V = V if V.is_cuda else V.to(s.dtype)  # numpy has no bfloat16
    S, N = s.shape
    slots = torch.arange(N, device=s.device, dtype=torch.int32).expand(S, N)
    nothing, none = s.new_zeros(S, 1), slots.new_full((S, 1), END)
    if isinstance(memory, Stack):  # the nearest cell before that holds anything
        last = torch.cat((none, torch.where(s > 0, slots, END)), 1).cummax(1).values  # (S, N + 1)
        link, head = last[:, :-1], last[:, -1]
    else:  # the next cell; the first that holds anything
        link = torch.cat((slots[:, 1:], none[:, : min(1, N)]), 1)
        head = torch.cat((torch.where(s > 0, slots, N), none + 1 + N), 1).amin(1)
        head = torch.where(head < N, head, END)
    padded = torch.cat((s, nothing), 1)  # slot -1 holds nothing

    def strength(index: Tensor) -> Tensor:
        return padded.gather(1, index.long() % (N + 1))

    head_strength = strength(head.unsqueeze(1)).squeeze(1)
    fault = (V - V).sum(1, dtype=s.dtype) + (s - s).sum(1, keepdim=True)
    return Cells(V, link, strength(link), head, head_strength, fault, N, torch.tensor(N), memory.name).grown()


@torch.no_grad()
def go_on(
    memory: Stack | Queue, cells: Cells, v: Tensor, u: Tensor, d: Tensor, backend: str
) -> tuple[Cells, Tensor]:
    """One step: v (S, m), u and d (S,) -> the cells after it and what is read, r (S, m)."""
    if int(cells.taken) != cells.filled or cells.filled == cells.V.shape[1]:
        cells = cells.grown()
    kernel = kernels.choose(backend, v)
    if kernel == "reference":
        raise BadInput(
            f"token by token a memory runs in a kernel only: {kernels.explain(backend, v)}; give the layer "
            "the state itself"
        )
    slot = cells.filled
    cells.taken.fill_(slot + 1)
    cells.V[:, slot] = v
    head, strength, fault = cells.head.clone(), cells.strength.clone(), cells.fault.clone()
    r = torch.empty_like(cells.V[:, slot])
    kernels.KERNELS[kernel].scan_step(
        cells.V, cells.link, cells.level, head, strength, slot, u, d, isinstance(memory, Stack), fault, r
    )
    return cells._replace(head=head, strength=strength, fault=fault, filled=slot + 1), r.to(v.dtype)
