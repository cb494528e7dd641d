"""A network seen at one of its layers, so that what explains a network of one layer explains each of several.

An edit changes that layer alone, a trace is of it, and a state is its own; the other layers begin with fresh
ones.
"""

from typing import Any, cast

from torch import Tensor, nn

from softstack.cell import Edit, StackCell, State
from softstack.errors import BadInput
from softstack.lab.explain.ablation import Network
from softstack.memory import Batch
from softstack.networks import LayerStates, StackRNN


class Layer(nn.Module):
    """A network of several layers with one of them in the place of `network.cell`, counted from 0."""

    def __init__(self, network: StackRNN, layer: int) -> None:
        super().__init__()
        self.network, self.layer = network, layer

    @property
    def cells(self) -> list[StackCell]:
        return self.network.cells

    @property
    def cell(self) -> StackCell:
        return self.cells[self.layer]

    def init(self, batch: Batch, like: Tensor) -> State:
        return self.cell.init(batch, like)

    def forward(
        self,
        x: Tensor,
        state: State | None = None,
        lengths: Tensor | None = None,
        *,
        return_trace: bool = False,
        edit: Edit | None = None,
        **more: Any,
    ) -> Any:
        states = [cell.init(tuple(x.shape[:-2]), x) for cell in self.cells]
        edits: list[Edit | None] = [None] * len(states)
        edits[self.layer] = edit
        if state is not None:
            states[self.layer] = state
        start, edited = LayerStates(tuple(states)), None if edit is None else edits
        y, final, *traces = self.network(x, start, lengths, return_trace=return_trace, edit=edited, **more)
        return (y, final.layers[self.layer], *(every[self.layer] for every in traces))


def at(network: Network, layer: int) -> Network:
    """A network as it is seen at a layer, counted from 1; one of a single layer is as it is."""
    count = len(network.cells)
    if not 1 <= layer <= count:
        raise BadInput(f"the network has {count} layer{'s' * (count > 1)}; got --layer {layer}")
    return network if count == 1 else cast(Network, Layer(cast(StackRNN, network), layer - 1))
