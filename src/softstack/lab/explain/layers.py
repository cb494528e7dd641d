"""A network seen at one of its layers, so that what explains a network of one layer explains each of several.

Edits, traces and states are of that layer alone; the other layers begin with fresh states.
"""

from typing import Any, cast

from torch import Tensor, nn

from softstack.cell import Edit, StackCell, State
from softstack.errors import BadInput
from softstack.lab.explain.ablation import Network
from softstack.memory import Batch
from softstack.networks import LayerStates, StackRNN
from softstack.words import counted


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
        if state is not None:
            states[self.layer] = state
        start = LayerStates(tuple(states))
        edits = None if edit is None else [edit if k == self.layer else None for k in range(len(states))]
        y, final, *traces = self.network(x, start, lengths, return_trace=return_trace, edit=edits, **more)
        return (y, final.layers[self.layer], *(layers[self.layer] for layers in traces))


def at(network: Network, layer: int) -> Network:
    """A network seen at a layer, counted from 1; a network of one layer as it is."""
    count = len(network.cells)
    if not 1 <= layer <= count:
        raise BadInput(f"the network has {counted(count, 'layer')}; got --layer {layer}")
    return network if count == 1 else cast(Network, Layer(cast(StackRNN, network), layer - 1))
