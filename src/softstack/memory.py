"""§2.1 and §2.3: the neural stack and the neural queue, as pure functions of their state.

    V  (B, N, m)  the vectors held, first pushed first       u  (B,)    pop strength
    s  (B, N)     their strengths                            d  (B,)    push strength
    v  (B, m)     the vector pushed                          r  (B, m)  what is read

N is the number of steps so far. The batch axis may be missing. Slots are in the order of pushing, so the
paper's V_t[i] is V[:, i - 1], the top of a stack is its last slot and the front of a queue its first.

The paper passes left-over strength from item to item through nested ReLUs. Since no strength is negative
they telescope: the left-over at item i is relu(u - ahead[i]), where `ahead` is the total strength met
before item i. A stack meets its items from the last slot down, a queue from the first slot up: that one
function, `above` or `before`, is all they differ in.

At a tie the gradient is what autograd gives for the lines below: relu has slope 0 at 0, and minimum gives
each of two equal arguments half. Every kernel is held to that.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad, relu

from softstack import checks, kernels


class MemoryState(NamedTuple):
    V: Tensor  # (B, N, m)
    s: Tensor  # (B, N)


class Instructions(NamedTuple):
    """What a controller tells its memory, ⟨v_t, u_t, d_t⟩; for a whole sequence, with a time axis."""

    v: Tensor  # (B, m) or (B, T, m)
    u: Tensor  # (B,) or (B, T)
    d: Tensor  # (B,) or (B, T)


Ahead = Callable[[Tensor], Tensor]


def above(s: Tensor) -> Tensor:
    """Strength met before each item of a stack: the sum over the slots after it."""
    return pad(s, (0, 1))[..., 1:].flip(-1).cumsum(-1).flip(-1)  # (B, N)


def before(s: Tensor) -> Tensor:
    """Strength met before each item of a queue: the sum over the slots before it."""
    return pad(s, (1, 0))[..., :-1].cumsum(-1)  # (B, N)


def pop(s: Tensor, u: Tensor, ahead: Ahead) -> Tensor:
    """§2.1 pop, §2.3 dequeue: take strength u, nearest item first."""
    left = relu(u.unsqueeze(-1) - ahead(s))  # (B, N), the paper's u_t[i], or ι_t[j]
    return relu(s - left)


def push(state: MemoryState, v: Tensor, d: Tensor) -> MemoryState:
    """§2.1 push, §2.3 enqueue: v goes into a new last slot with strength d."""
    V, s = state
    return MemoryState(torch.cat((V, v.unsqueeze(-2)), -2), torch.cat((s, d.unsqueeze(-1)), -1))


def read(state: MemoryState, ahead: Ahead) -> Tensor:
    """§2.1 and §2.3 read: the nearest items whose strengths add up to 1, weighted by them."""
    V, s = state
    rho = relu(1 - ahead(s))  # (B, N), ρ_t[i], or ξ_t[j]
    w = torch.minimum(s, rho)  # (B, N)
    return torch.matmul(w.unsqueeze(-2), V).squeeze(-2)  # (B, m)


def empty(size: int, batch: tuple[int, ...], like: Tensor) -> MemoryState:
    """No items yet: V (B, 0, m) and s (B, 0), of the dtype and on the device of `like`."""
    return MemoryState(like.new_zeros(*batch, 0, size), like.new_zeros(*batch, 0))


class Memory(Protocol):
    """What a network needs of a memory. A new one is a class with these, and a line in MEMORIES."""

    @property
    def size(self) -> int: ...

    def init(
        self,
        batch: int | None = None,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> MemoryState: ...

    def step(
        self, state: MemoryState, instructions: Instructions, *, validate: bool = True
    ) -> tuple[MemoryState, Tensor]: ...


def _init(
    self: Memory,
    batch: int | None = None,
    *,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> MemoryState:
    """A memory that holds nothing, for `batch` sequences (None: for one, without a batch axis)."""
    lead = () if batch is None else (batch,)
    return empty(self.size, lead, torch.empty(0, device=device, dtype=dtype))


def _step(
    state: MemoryState, instructions: Instructions, ahead: Ahead, size: int, validate: bool
) -> tuple[MemoryState, Tensor]:
    """Pop, push and read, in that order (§2.1)."""
    if validate:
        checks.instructions(instructions, state, size, time=False)
    v, u, d = instructions
    with full_precision(v):
        state = push(MemoryState(state.V, pop(state.s, u, ahead)), v, d)
        return state, read(state, ahead)


@dataclass(frozen=True)
class Stack:
    """§2.1: last in, first out. `validate=False` trusts the strengths, as a network trusts its sigmoids."""

    size: int
    init = _init

    def __post_init__(self) -> None:
        checks.positive("size", self.size)

    def step(
        self, state: MemoryState, instructions: Instructions, *, validate: bool = True
    ) -> tuple[MemoryState, Tensor]:
        return _step(state, instructions, above, self.size, validate)


@dataclass(frozen=True)
class Queue:
    """§2.3: first in, first out."""

    size: int
    init = _init

    def __post_init__(self) -> None:
        checks.positive("size", self.size)

    def step(
        self, state: MemoryState, instructions: Instructions, *, validate: bool = True
    ) -> tuple[MemoryState, Tensor]:
        return _step(state, instructions, before, self.size, validate)


@dataclass(frozen=True)
class NoMemory:
    """Table 1's "no stack": instructions are taken, nothing is kept, and r is always 0."""

    size: int
    init = _init

    def __post_init__(self) -> None:
        checks.positive("size", self.size)

    def step(
        self, state: MemoryState, instructions: Instructions, *, validate: bool = True
    ) -> tuple[MemoryState, Tensor]:
        if validate:
            checks.instructions(instructions, state, self.size, time=False)
        return state, torch.zeros_like(instructions.v)


MEMORIES: dict[str, Callable[[int], Memory]] = {"stack": Stack, "queue": Queue, "none": NoMemory}


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
    return scan(Stack(checks.width(v)), Instructions(v, u, d), state, lengths, backend)


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
    return scan(Queue(checks.width(v)), Instructions(v, u, d), state, lengths, backend)


def scan(
    memory: Memory,
    instructions: Instructions,
    state: MemoryState | None,
    lengths: Tensor | None,
    backend: str,
    *,
    validate: bool = True,
) -> tuple[Tensor, MemoryState]:
    """A stack or a queue over a whole sequence. `validate=False` trusts the strengths."""
    v, u, d = instructions
    begins_empty = state is None
    if state is None:
        state = empty(memory.size, v.shape[:-2], v)
    if validate:
        checks.instructions(instructions, state, memory.size, time=True)
    if lengths is not None:
        live = running(lengths, v)  # (B, T)
        v, u, d = (only_where(live, x) for x in (v, u, d))
    kernel = kernels.choose(backend, v)
    if kernel != "reference":
        from softstack.kernels.scan import scan as fused

        V = v if begins_empty else torch.cat((state.V, v), -2)
        r, s = fused(V, u, d, state.s, lengths, isinstance(memory, Stack), kernel == "gpu")
        return r, MemoryState(V, s)
    reads = []
    for v_t, u_t, d_t in zip(v.unbind(-2), u.unbind(-1), d.unbind(-1), strict=True):
        state, r = memory.step(state, Instructions(v_t, u_t, d_t), validate=False)
        reads.append(r)
    r = torch.stack(reads, -2) if reads else torch.zeros_like(v)
    return (r if lengths is None else only_where(live, r)), state


def running(lengths: Tensor, x: Tensor) -> Tensor:
    """(B, T): whether step t of x (B, T, k) comes before the end of its sequence, or is padding."""
    checks.lengths(lengths, x)
    steps = torch.arange(x.shape[-2], device=x.device)
    return steps < lengths.to(x.device).unsqueeze(-1)


def only_where(live: Tensor, new: Tensor, old: Tensor | float = 0.0) -> Tensor:
    """`new` where live and `old` elsewhere; live (B,) or (B, T) lacks the last axes of the others."""
    return torch.where(live.view(*live.shape, *[1] * (new.ndim - live.ndim)), new, old)


def full_precision(x: Tensor) -> AbstractContextManager[object]:
    """Strengths are summed over many steps: under autocast a memory still computes in its own dtype."""
    kind = x.device.type
    on = kind != "meta" and torch.is_autocast_enabled(kind)  # which that device has not
    return torch.autocast(kind, enabled=False) if on else nullcontext()
