"""§2.1 and §2.3: items with strengths, and how they are popped, pushed and read.

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

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad, relu

from softstack import checks
from softstack.memory.protocol import Contents, Drawn, Head, Instructions, Strength, Vector
from softstack.memory.shapes import Batch, Device, Dtype, Sequences, batch_of
from softstack.memory.states import detach, storable


@storable
class MemoryState(NamedTuple):
    """What a stack or a queue holds."""

    V: Tensor  # (B, N, m)
    s: Tensor  # (B, N)

    def detach(self) -> "MemoryState":
        return detach(self)

    def check(self, prefix: str, fresh: "MemoryState") -> None:
        """Refuse vectors and strengths that do not belong together, or with a fresh state."""
        checks.items(prefix, *self, batch=tuple(fresh.s.shape[:-1]), size=fresh.V.shape[-1])

    def compact(self) -> "MemoryState":
        """Without slots that are empty: N becomes the largest number of items that any sequence holds."""
        filled = self.s != 0  # (B, N), and true of what is not a number
        slots = int(filled.sum(-1).max()) if filled.numel() else 0
        order = torch.argsort(~filled, dim=-1, stable=True)[..., :slots]  # (B, slots), items as they were
        index = order.unsqueeze(-1).expand(*order.shape, self.V.shape[-1])
        return MemoryState(self.V.gather(-2, index), self.s.gather(-1, order))


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


def seen(s: Tensor, ahead: Ahead) -> Tensor:
    """How much of each item a read sees: the nearest ones, until strength 1 is used up."""
    rho = relu(1 - ahead(s))  # (B, N), ρ_t[i], or ξ_t[j]
    return torch.minimum(s, rho)


def read(state: MemoryState, ahead: Ahead) -> Tensor:
    """§2.1 and §2.3 read: the nearest items whose strengths add up to 1, weighted by them."""
    V, s = state
    w = seen(s, ahead)  # (B, N)
    return torch.matmul(w.unsqueeze(-2), V).squeeze(-2)  # (B, m)


def tops(state: MemoryState, ahead: Ahead, count: int) -> Tensor:
    """The `count` nearest items, (B, count, m): what is read now, what would be read after whole items of
    strength 1 were popped, and so on."""
    V, s = state
    depths = torch.arange(1, count + 1, device=s.device, dtype=s.dtype).unsqueeze(-1)
    w = torch.minimum(s.unsqueeze(-2), relu(depths - ahead(s).unsqueeze(-2)))  # (B, count, N), down to each
    return torch.matmul(torch.diff(w, dim=-2, prepend=torch.zeros_like(w[..., :1, :])), V)


def empty(size: int, batch: Batch, like: Tensor) -> MemoryState:
    """No items yet: V (B, 0, m) and s (B, 0), of the dtype and on the device of `like`."""
    return MemoryState(like.new_empty(*batch, 0, size), like.new_empty(*batch, 0))


def no_items(size: int, batch: Sequences, device: Device, dtype: Dtype) -> MemoryState:
    return empty(size, batch_of(batch), torch.empty(0, device=device, dtype=dtype))


def paper_heads(size: int) -> dict[str, Head]:
    """§2.2: what the paper's controllers say. Popping begins with a bias of -1, as the authors had it."""
    return {"v": Vector(size), "u": Strength(bias=-1.0), "d": Strength()}


@dataclass(frozen=True)
class Items(ABC):
    """What a stack and a queue share: all but the order in which they meet their items.

    `validate=False` trusts the strengths, as a network trusts its sigmoids.
    """

    size: int
    validate: bool = field(default=True, compare=False, repr=False)

    name: ClassVar[str]
    drawn: ClassVar[Drawn]
    append_only: ClassVar[bool] = True

    @staticmethod
    @abstractmethod
    def ahead(s: Tensor) -> Tensor:
        """`above` or `before`."""

    def __post_init__(self) -> None:
        checks.positive("size", self.size)

    @property
    def width(self) -> int:
        return self.size

    @property
    def heads(self) -> dict[str, Head]:
        return paper_heads(self.size)

    def init(self, batch: Sequences = None, *, device: Device = None, dtype: Dtype = None) -> MemoryState:
        """One that holds nothing, for `batch` sequences (None: for one, without a batch axis)."""
        return no_items(self.size, batch, device, dtype)

    def step(self, state: MemoryState, instructions: Instructions) -> tuple[MemoryState, Tensor]:
        """Pop, push and read, in that order (§2.1)."""
        if self.validate:
            checks.instructions(*instructions, state, self.size, time=False)
        v, u, d = instructions
        state = push(MemoryState(state.V, pop(state.s, u, self.ahead)), v, d)
        return state, read(state, self.ahead)

    def contents(self, state: MemoryState) -> Contents:
        return Contents(*state)

    def nearest(self, state: MemoryState) -> MemoryState:
        """Without what the next read does not see."""
        return MemoryState(state.V, seen(state.s, self.ahead))

    def tops(self, state: MemoryState, count: int) -> Tensor:
        """The `count` nearest items, (B, count, m), for `Deep`."""
        return tops(state, self.ahead, count)
