"""A stack as a layer of a transformer: actions come from x alone, so that all times are computed at once."""

import torch
from torch import Tensor, nn

from softstack import checks, kernels
from softstack.errors import BadInput, unknown
from softstack.memory import Batch, MemoryState, Queue, Stack
from softstack.memory.cells import Cells, cells_of, go_on
from softstack.memory.scan import item_scan
from softstack.memory.states import only_where, running

SCANNED: dict[str, type[Stack] | type[Queue]] = {"stack": Stack, "queue": Queue}  # memories with a scan


class StackLayer(nn.Module):
    """A layer that reads from stacks as `nn.MultiheadAttention` reads from the past: one line in a block.

    Each head says at every step what to push, v, how much to pop, u, and how much to push, d, all from x;
    what it reads goes through an output projection. There is no loop over time (docs/parallel.md).

    * `d_model`: numbers in x and in y at each step
    * `heads`: stacks side by side
    * `memory_size`: numbers in the vectors of each; `d_model // heads` where None
    * `memory`: "stack" or "queue"
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
        memory: str = "stack",
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        checks.positive("d_model", d_model)
        checks.positive("heads", heads)
        kernels.require(backend)
        if memory not in SCANNED:
            raise unknown("memory", memory, tuple(SCANNED))
        if memory_size is None and d_model % heads:
            raise BadInput(
                f"d_model = {d_model} is not a multiple of heads = {heads}: give a memory_size, the numbers "
                "in each head's vectors"
            )
        size = d_model // heads if memory_size is None else memory_size
        self.memory = SCANNED[memory](size, validate=False)
        self.d_model, self.heads, self.memory_size, self.backend = d_model, heads, size, backend
        self.actions = nn.Linear(d_model, heads * (2 + size), device=device, dtype=dtype)
        self.output = nn.Linear(heads * size, d_model, device=device, dtype=dtype)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw every weight anew. At first stacks push much, and pop from little to much, head by head: some
        keep what they are told for long, others pass it on."""
        for layer in (self.actions, self.output):
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            layer.bias.zero_()
        pop, push, _ = self.actions.bias.split((self.heads, self.heads, self.heads * self.memory_size))
        pop.copy_(torch.linspace(-2, 1, self.heads) if self.heads > 1 else torch.tensor([-1.0]))
        push.fill_(1.0)

    def init(self, batch: Batch, like: Tensor) -> MemoryState:
        """The state before the first step, for (B,) sequences or, with (), for one: V (B, heads, 0, m) and
        s (B, heads, 0)."""
        V = like.new_zeros(*batch, self.heads, 0, self.memory_size)
        return MemoryState(V, V[..., 0].to(_wide(like.dtype)))

    def explain(self, x: Tensor) -> str:
        """Which backend runs on this input, and why, in a sentence."""
        return kernels.explain(self.backend, checks.sequence(x, self.d_model, self.actions.weight))

    def forward(
        self, x: Tensor, state: MemoryState | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, MemoryState]:
        """x (B, T, d_model) or (T, d_model) -> y of the same shape and the state after the last step.

        y at step t depends on steps up to t. Give the state back to go on: in parts this gives what one call
        gives, to rounding. The state is copied at each call; `ss.compact(state)` drops what is empty, and
        `step` goes token by token without copies. Steps at or after `lengths` (B,) are padding: they put out
        0 and change neither the state nor a gradient.
        """
        x = checks.sequence(x, self.d_model, self.actions.weight)
        live = None if lengths is None else running(lengths, x)  # (B, T)
        if live is not None:
            x = only_where(live, x)
        batch, T = tuple(x.shape[:-2]), x.shape[-2]
        v, u, d = self._instructions(x)  # (B, T, heads, m), (B, T, heads), (B, T, heads)
        v, u, d = v.transpose(-2, -3), u.transpose(-1, -2), d.transpose(-1, -2)  # (B, heads, T, ...)
        state = self.init(batch, v) if state is None else state
        self._check(state, v, u)
        ends = None if lengths is None else lengths.unsqueeze(-1).expand(*batch, self.heads).reshape(-1)
        v, u, d, V, s = (z.flatten(0, len(batch)) for z in (v, u, d, *state))  # (B heads, ...)
        r, (V, s) = item_scan(self.memory, v, u, d, MemoryState(V, s), self.backend, ends, validate=False)
        r = r.view(*batch, self.heads, T, self.memory_size).transpose(-2, -3).flatten(-2)
        y = self.output(r)
        if live is not None:
            y = only_where(live, y)
        shape = (*batch, self.heads)
        return y, MemoryState(V.view(*shape, *V.shape[1:]), s.view(*shape, *s.shape[1:]))

    def cells(self, state: MemoryState) -> Cells:
        """A state as `step` takes it: with room for more."""
        return cells_of(self.memory, MemoryState(state.V.flatten(0, -3), state.s.flatten(0, -2)))

    @torch.no_grad()
    def step(self, x: Tensor, cells: Cells) -> tuple[Tensor, Cells]:
        """One token, x (B, d_model) or (d_model,) -> y, and the cells after it, without gradients.

        It gives what `forward` gives, to rounding, in time that grows with the cells that it pops and reads
        and not with those that are there.
        """
        v, u, d = self._instructions(x)  # (B, heads, m), (B, heads), (B, heads)
        v, u, d = v.reshape(-1, self.memory_size), u.reshape(-1), d.reshape(-1)
        if cells.V.device != v.device or cells.V.shape[0] != v.shape[0]:
            raise BadInput(
                f"cells must be of {v.shape[0]} sequences and heads on {v.device} to match x; got "
                f"{cells.V.shape[0]} on {cells.V.device}"
            )
        cells, r = go_on(self.memory, cells, v, u, d, self.backend)
        return self.output(r.view(*x.shape[:-1], -1)), cells

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
        checks.shape("state.s", state.s, "(B, heads, N)", (*v.shape[:-2], state.s.shape[-1]), "x")
        checks.shape("state.V", state.V, "(B, heads, N, m)", (*state.s.shape, self.memory_size), "state.s")
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
