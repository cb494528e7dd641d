"""What a network did, step by step: the one record that figures, measures and regularisers read."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from softstack.cell import Actions, StackCell
from softstack.memory import Contents, Memory


class Trace(NamedTuple):
    """What a network did at each step. N counts the cells of the final memory.

    What it told its memory can also be had by name: `trace.u` is `trace.instructions["u"]`.
    """

    x: Tensor  # (B, T, input_size) what the controller was given: from a buffer, a mixture of items
    y: Tensor  # (B, T, output_size) what it put out: in a buffered network, before the output buffer
    instructions: dict[str, Tensor]  # (B, T, ...) what it told its memory, by head
    r: Tensor  # (B, T, m) what was read
    V: Tensor  # (B, T, N, k) what each cell of the memory held after the step
    s: Tensor  # (B, T, N) and how much of it; 0 where a cell is yet to come
    h: Tensor  # (B, T, features) the controller's features: its hidden state if it has one
    i: Tensor  # (B, T) strength taken from the input buffer after the step; 1 without buffers
    o: Tensor  # (B, T) strength given to the output buffer; 1 without buffers
    memory: Memory  # whose heads and cells these are
    backwards: bool = False  # whether the first step is that of the last item

    def __getattr__(self, name: str) -> Tensor:
        if name in self.instructions:
            return self.instructions[name]
        raise AttributeError(
            f"a trace of a {self.memory.name} has {', '.join(self.tensors())}, and no {name!r}"
        )

    def tensors(self) -> dict[str, Tensor]:
        """Everything that was recorded, by name."""
        parts = self._asdict()
        return {**{name: parts[name] for name in "xy"}, **self.instructions,
                **{name: parts[name] for name in ("r", "V", "s", "h", "i", "o")}}  # fmt: skip

    def map(self, change: Callable[[Tensor], Tensor]) -> "Trace":
        """The trace with every tensor changed alike, such as to one sequence of the batch."""
        instructions = {name: change(values) for name, values in self.instructions.items()}
        parts: dict[str, Any] = {
            name: change(part) for name, part in self._asdict().items() if isinstance(part, Tensor)
        }
        return self._replace(instructions=instructions, **parts)


class Moment(NamedTuple):
    """What a trace keeps of one step."""

    x: Tensor
    y: Tensor
    features: Tensor
    actions: Actions
    r: Tensor
    contents: Contents


def over_time(steps: list[Tensor], x: Tensor, *shape: int) -> Tensor:
    """Tensors (B, ...), one for each step, as (B, T, ...); `shape` is for when there are none."""
    batch = x.ndim - 2
    return torch.stack(steps, batch) if steps else x.new_zeros(*x.shape[:batch], 0, *shape)


def gather(moments: list[Moment], cell: StackCell, x: Tensor) -> Trace:
    one = x.new_ones(x.shape[:-2])
    actions = [moment.actions for moment in moments]
    heads: dict[str, Any] = dict(cell.memory.heads)
    V, s = _contents([moment.contents for moment in moments], cell.memory, x)
    return Trace(
        x=over_time([moment.x for moment in moments], x, cell.input_size),
        y=over_time([moment.y for moment in moments], x, cell.output_width),
        instructions={
            name: over_time([getattr(a.instructions, name) for a in actions], x, *head.shape)
            for name, head in heads.items()
        },
        r=over_time([moment.r for moment in moments], x, cell.memory.width),
        V=V,
        s=s,
        h=over_time([moment.features for moment in moments], x, cell.core.features),
        i=over_time([one if a.i is None else a.i for a in actions], x),
        o=over_time([one if a.o is None else a.o for a in actions], x),
        memory=cell.memory,
    )


def _contents(steps: list[Contents], memory: Memory, x: Tensor) -> Contents:
    """All cells over time, (B, T, N, k) and (B, T, N): cells that are yet to come are empty."""
    batch = x.ndim - 2
    if not steps:
        V, s = memory.contents(memory.init(tuple(x.shape[:batch]), device=x.device, dtype=x.dtype))
        return Contents(over_time([], x, *V.shape[batch:]), over_time([], x, *s.shape[batch:]))
    last = steps[-1]
    cells = last.s.shape[-1]
    s = over_time([pad(step.s, (0, cells - step.s.shape[-1])) for step in steps], x)
    if getattr(memory, "append_only", False):
        return Contents(last.V.unsqueeze(batch).expand(*s.shape, last.V.shape[-1]), s)
    return Contents(over_time([pad(step.V, (0, 0, 0, cells - step.V.shape[-2])) for step in steps], x), s)
