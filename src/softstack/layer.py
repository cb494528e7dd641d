"""A stack as a layer of a transformer: actions come from x alone, so that all times are computed at once."""

from typing import Any

import torch
from torch import Tensor, nn

from softstack import checks, kernels
from softstack.cell import memory_of
from softstack.errors import BadInput
from softstack.memory import Choice, Memory, MemoryState, Queue, Sequences, Stack, batch_of
from softstack.memory.cells import Cells, cells_of, go_on
from softstack.memory.protocol import Head, instructions_type
from softstack.memory.scan import item_scan, scan, stepped
from softstack.memory.states import leaf_by_leaf, only_where, running


class StackLayer(nn.Module):
    """A layer that reads from stacks as `nn.MultiheadAttention` reads from the past: one line in a block.

    Each head says at every step what to push, v, how much to pop, u, and how much to push, d, all from x;
    what it reads goes through an output projection. There is no loop over time (docs/parallel.md).

    With another memory it is the stack attention of DuSell and Chiang (2024): `memory="superposition"` or
    `"vector_nondeterministic"`. Its actions come from x alone too, but the memory itself goes step by step.

    * `d_model`: numbers in x and in y at each step
    * `heads`: stacks side by side
    * `memory_size`: numbers in the vectors of each; `d_model // heads` where None
    * `memory`: "stack" or "queue", which need no loop, or another name in `ss.MEMORIES`; or a memory that
      knows its size, such as `ss.Superposition(8, depth=50)`
    * `backend`: as for StackRNN; `explain(x)` says which runs, and why

    >>> layer = StackLayer(64)
    >>> x = torch.randn(2, 100, 64)
    >>> y, state = layer(x)
    >>> y.shape
    torch.Size([2, 100, 64])
    >>> y, state = layer(x, state)  # goes on
    >>> cells = layer.cells(state)  # and so does a language model, token by token
    >>> y, cells = layer.step(x[:, 0], cells)
    >>> y.shape
    torch.Size([2, 64])
    """

    def __init__(
        self,
        d_model: int,
        *,
        heads: int = 8,
        memory_size: int | None = None,
        memory: str | Memory = "stack",
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        checks.positive("d_model", d_model)
        checks.positive("heads", heads)
        if memory_size is not None:
            checks.positive("memory_size", memory_size)
        kernels.require(backend)
        checks.floating(dtype)
        if isinstance(memory, str) and memory_size is None:
            if d_model % heads:
                raise BadInput(
                    f"d_model = {d_model} is not a multiple of heads = {heads}: give a memory_size, the "
                    "numbers in each head's vectors"
                )
            memory_size = d_model // heads
        self.memory: Any = memory_of(memory, memory_size, dict(device=device, dtype=dtype))
        self.d_model, self.heads, self.backend = d_model, heads, backend
        self.memory_size: int = memory_size or self.memory.width
        numbers = sum(head.size for head in self._head_kinds.values())  # that a head says in a step
        self.actions = nn.Linear(d_model, heads * numbers, device=device, dtype=dtype)
        self.output = nn.Linear(heads * self.memory.width, d_model, device=device, dtype=dtype)
        self.reset_parameters()

    @property
    def _head_kinds(self) -> dict[str, Head]:
        return dict(self.memory.heads)

    def _any_weight(self, x: Tensor) -> Tensor:
        """A weight: x must have its dtype and device. A layer put in the place of `actions` may have none."""
        weight = getattr(self.actions, "weight", None)
        if isinstance(weight, Tensor) and weight.is_floating_point():
            return weight
        return next((p for p in self.parameters() if p.is_floating_point()), x)

    @property
    def _parallel(self) -> bool:
        """A class that inherits from them may have a step of its own."""
        return type(self.memory) in (Stack, Queue)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw every weight anew. At first stacks push much, and pop from little to much, head by head: some
        keep what they are told for long, others pass it on."""
        for layer in (self.actions, self.output):
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            layer.bias.zero_()
        if not self._parallel:  # as the memory asks for
            biases = self.actions.bias.view(self.heads, -1)
            parts = biases.split([head.size for head in self._head_kinds.values()], -1)
            for head, part in zip(self._head_kinds.values(), parts, strict=True):
                bias = (head.bias or 0.0) if isinstance(head, Choice) else head.bias
                part.copy_(torch.as_tensor(bias).expand_as(part))
            return
        pop, push, _ = self.actions.bias.split((self.heads, self.heads, self.heads * self.memory_size))
        pop.copy_(torch.linspace(-2, 1, self.heads) if self.heads > 1 else torch.tensor([-1.0]))
        push.fill_(1.0)

    def init(self, batch: Sequences, like: Tensor) -> Any:
        """The state before the first step, for B or (B,) sequences or, with (), for one without a batch axis:
        of a stack, V (B, heads, 0, m) and s (B, heads, 0); of another memory, its own for (B, heads)."""
        batch = batch_of(batch)
        if not self._parallel:
            return self.memory.init((*batch, self.heads), device=like.device, dtype=_wide(like.dtype))
        V = like.new_zeros(*batch, self.heads, 0, self.memory_size)
        return MemoryState(V, V[..., 0].to(_wide(like.dtype)))

    def explain(self, x: Tensor) -> str:
        """Which backend runs on this input, and why, in a sentence."""
        x = checks.sequence(x, self.d_model, self._any_weight(x), "d_model")
        return kernels.explain(self.backend, x, self._why_not())

    def _why_not(self) -> str:
        return "" if self._parallel else f"there is no kernel for the memory {type(self.memory).__name__}"

    def forward(self, x: Tensor, state: Any = None, lengths: Tensor | None = None) -> tuple[Tensor, Any]:
        """x (B, T, d_model) or (T, d_model) -> y of the same shape and the state after the last step.

        y at step t depends on steps up to t. Give the state back to go on: in parts this gives what one call
        gives, to rounding. The state is copied at each call; `ss.compact(state)` drops what is empty, and
        `step` goes token by token without copies. Steps at or after `lengths` (B,) are padding: they put out
        0 and change neither the state nor a gradient.
        """
        x = checks.sequence(x, self.d_model, self._any_weight(x), "d_model")
        live = None if lengths is None else running(lengths, x)  # (B, T)
        if live is not None:
            x = only_where(live, x)
        batch, T = tuple(x.shape[:-2]), x.shape[-2]
        if not self._parallel:
            r, state = self._step_by_step(x, state, lengths)
            y = self.output(r)
            return y if live is None else only_where(live, y), state
        v, u, d = self._instructions(x)  # (B, T, heads, m), (B, T, heads), (B, T, heads)
        v, u, d = v.transpose(-2, -3), u.transpose(-1, -2), d.transpose(-1, -2)  # (B, heads, T, ...)
        if state is not None:
            self._check(state, v, u)
            state = MemoryState(*(part.flatten(0, len(batch)) for part in state))
        ends = None if lengths is None else lengths.unsqueeze(-1).expand(*batch, self.heads).reshape(-1)
        v, u, d = (part.flatten(0, len(batch)) for part in (v, u, d))  # (B heads, ...)
        r, (V, s) = item_scan(self.memory, v, u, d, state, self.backend, ends, validate=False)
        r = r.view(*batch, self.heads, T, self.memory_size).transpose(-2, -3).flatten(-2)
        y = self.output(r)
        if live is not None:
            y = only_where(live, y)
        shape = (*batch, self.heads)
        return y, MemoryState(V.view(*shape, *V.shape[1:]), s.view(*shape, *s.shape[1:]))

    def _step_by_step(self, x: Tensor, state: Any, lengths: Tensor | None) -> tuple[Tensor, Any]:
        """The reads of any memory, (B, T, heads width), and the state after the last step."""
        batch = tuple(x.shape[:-2])
        fresh = self.init(batch, x)
        kernels.choose(self.backend, x, self._why_not())
        if state is None:
            state = fresh
        checks.same_state(state, fresh, (*batch, self.heads), cells=True)
        parts = {name: part.transpose(len(batch), len(batch) + 1) for name, part in self._said(x).items()}
        parts = {name: part.flatten(0, len(batch)) for name, part in parts.items()}  # (B heads, T, ...)
        ends = None if lengths is None else lengths.unsqueeze(-1).expand(*batch, self.heads).reshape(-1)
        flat = leaf_by_leaf(lambda part: part.flatten(0, len(batch)), state)
        r, flat = scan(self.memory, parts, flat, ends)
        r = r.unflatten(0, (*batch, self.heads)).transpose(-2, -3).flatten(-2)
        return r.to(x.dtype), leaf_by_leaf(lambda part: part.unflatten(0, (*batch, self.heads)), flat)

    def _said(self, x: Tensor) -> dict[str, Tensor]:
        """What the heads of any memory say of x (..., d_model), by name, (..., heads, ...)."""
        raw = self.actions(x)
        raw = raw.to(_wide(raw.dtype)).unflatten(-1, (self.heads, -1))
        kinds = self._head_kinds
        parts = raw.split([kind.size for kind in kinds.values()], -1)
        return {name: kind.value(part) for (name, kind), part in zip(kinds.items(), parts, strict=True)}

    def cells(self, state: Any) -> Any:
        """A state as `step` takes it: with room for more. Of a memory without a scan it is the state."""
        if not self._parallel:
            return state
        if not isinstance(state, MemoryState):
            raise BadInput(f"state must be what this layer gave; got {type(state).__name__}")
        return cells_of(self.memory, MemoryState(state.V.flatten(0, -3), state.s.flatten(0, -2)))

    @torch.no_grad()
    def step(self, x: Tensor, cells: Any) -> tuple[Tensor, Any]:
        """One token, x (B, d_model) or (d_model,) -> y, and the cells after it, without gradients.

        It gives what `forward` gives, to rounding, in time that grows with the cells that it pops and reads
        and not with those that are there.
        """
        checks.tensor("x", x)
        if x.ndim not in (1, 2) or x.shape[-1] != self.d_model:
            raise BadInput(
                f"x must be (B, d_model) or (d_model,) with d_model = {self.d_model}; got {tuple(x.shape)}"
            )
        x = checks.sequence(x.unsqueeze(-2), self.d_model, self._any_weight(x), "d_model").squeeze(-2)
        if not self._parallel:
            batch = tuple(x.shape[:-1])
            checks.same_state(cells, self.init(batch, x), (*batch, self.heads), "cells", cells=True)
            instructions = self._said(x)
            cells, r = stepped(self.memory, cells, instructions_type(tuple(instructions))(**instructions))
            return self.output(r.flatten(-2).to(x.dtype)), cells
        v, u, d = self._instructions(x)  # (B, heads, m), (B, heads), (B, heads)
        v, u, d = v.reshape(-1, self.memory_size), u.reshape(-1), d.reshape(-1)
        if not isinstance(cells, Cells) or cells.memory != self.memory.name:
            kind = f"those of a {cells.memory}" if isinstance(cells, Cells) else type(cells).__name__
            raise BadInput(
                f"cells must be those of a {self.memory.name}, as layer.cells(state) or the step before "
                f"gives them; got {kind}"
            )
        if cells.V.device != v.device or cells.V.shape[0] != v.shape[0]:
            raise BadInput(
                f"cells must be of {v.shape[0] // self.heads} sequences on {v.device} to match x; got "
                f"those of {cells.V.shape[0] // self.heads} on {cells.V.device}"
            )
        after: Cells
        after, r = go_on(self.memory, cells, v, u, d, self.backend)
        return self.output(r.view(*x.shape[:-1], self.heads * self.memory_size)), after

    def _instructions(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """v (..., heads, m), u and d (..., heads) of x (..., d_model)."""
        raw = self.actions(x)
        strengths, v = raw.split((2 * self.heads, self.heads * self.memory_size), -1)
        u, d = torch.sigmoid(strengths.to(_wide(raw.dtype))).chunk(2, -1)
        return v.unflatten(-1, (self.heads, self.memory_size)), u, d

    def _check(self, state: MemoryState, v: Tensor, u: Tensor) -> None:
        """Refuse a state that this layer did not give for such an x."""
        if not isinstance(state, MemoryState):
            raise BadInput(
                f"state must be what this layer gave, or None to start; got {type(state).__name__}"
            )
        checks.tensor("state.s", state.s)
        checks.tensor("state.V", state.V)
        checks.shape("state.s", state.s, ("B", "heads", "N"), (*v.shape[:-2], state.s.shape[-1]), "x")
        vectors = (*state.s.shape, self.memory_size)
        checks.shape("state.V", state.V, ("B", "heads", "N", "m"), vectors, "state.s")
        for name, part, like in (("V", state.V, v), ("s", state.s, u)):
            if part.dtype != like.dtype or part.device != like.device:
                raise BadInput(
                    f"state.{name} must be {like.dtype} on {like.device} as the layer computes it; "
                    f"got {part.dtype} on {part.device}"
                )

    def extra_repr(self) -> str:
        return (
            f"{self.d_model}, heads={self.heads}, memory_size={self.memory_size}, "
            f"memory={self.memory.name!r}, backend={self.backend!r}"
        )


def _wide(dtype: torch.dtype) -> torch.dtype:
    """Strengths are summed over many steps: float32 at least."""
    return torch.promote_types(dtype, torch.float32)
