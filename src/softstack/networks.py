"""§2.2: StackRNN (Figure 1).

The loop here is the reference: fused kernels compute the same, and are held to it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from softstack import checks, fit, fused, kernels
from softstack.cell import Edit, Edits, StackCell, State
from softstack.controllers import require_names
from softstack.disturbance import Disturbance, Disturbances, Disturbed, of_call, warn_without_state
from softstack.errors import BadInput
from softstack.memory import Memory, Sequences
from softstack.memory.states import detach, only_where, running, storable
from softstack.trace import Moment, Trace, gather, over_time
from softstack.words import counted


@storable
class LayerStates(NamedTuple):
    """The state of a StackRNN with several layers or directions."""

    layers: tuple[State, ...]  # layer by layer; of two directions, the forward one first

    def detach(self) -> "LayerStates":
        return detach(self)


AnyState = State | LayerStates
RATES = ("state_reset", "hidden_noise")


class StackRNN(Disturbed):
    """Figure 1: a controller with a differentiable memory, to be used as `nn.LSTM(batch_first=True)` is.

    * `input_size`: numbers in x at each step
    * `hidden_size`: hidden units of the controller; the linear controller has none, and needs no size
    * `memory_size`: numbers in the vectors that the memory holds, the paper's m
    * `output_size`: numbers in y; None gives the controller's features, as nn.LSTM does
    * `controller`: "linear", "mlp", "rnn", "gru", "lstm", another name in `ss.CONTROLLERS`, or a core of your
      own, for an input as wide as x and what is read together (docs/add/controller.md)
    * `memory`: "stack", "queue", "none", another name in `ss.MEMORIES` (docs/memories.md), or a memory that
      knows its size, such as `ss.Superposition(4, depth=20)` or one of your own (docs/add/memory.md)
    * `num_layers`: cells one above the other, each with a memory; each reads the features of the one below
    * `dropout`: share of those features that is dropped in training
    * `state_reset`: in training, how likely the controller's state is lost before each step, in each sequence
      by itself, so that it learns to keep things in its memory; 0.5 with a `hidden_noise` of 0.3 works well
    * `hidden_noise`: in training, the standard deviation of the noise that is added to h after each step.
      A controller without a state has nothing to reset or to disturb
    * `bidirectional`: a second cell in each layer reads backwards; features, and y, stand side by side
    * `backend`: "auto", a fused kernel where it computes what the modules say, else the reference; or
      "reference", "cpu" or "gpu", that one or an error. `explain(x)` says which runs, and why

    >>> rnn = StackRNN(3, controller="linear", memory_size=2, output_size=3)
    >>> y, state = rnn(torch.randn(10, 24, 3))
    >>> y.shape
    torch.Size([10, 24, 3])
    """

    def __init__(
        self,
        input_size: int,
        *,
        hidden_size: int | None = None,
        memory_size: int | None = None,
        output_size: int | None = None,
        controller: str | nn.Module = "lstm",
        memory: str | Memory = "stack",
        num_layers: int = 1,
        dropout: float = 0.0,
        bidirectional: bool = False,
        state_reset: float = 0.0,
        hidden_noise: float = 0.0,
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(state_reset, hidden_noise)
        kernels.require(backend)
        checks.positive("num_layers", num_layers)
        if not 0 <= dropout < 1:
            raise BadInput(f"dropout must lie in [0, 1); got {dropout}")
        if isinstance(controller, nn.Module) and (num_layers > 1 or bidirectional):
            raise BadInput(
                "a controller that is given as a module serves one cell: for several layers or directions "
                "register its class in ss.CONTROLLERS and give its name"
            )
        if isinstance(memory, nn.Module) and (num_layers > 1 or bidirectional):
            raise BadInput(
                "a memory with weights of its own serves one cell: for several layers or directions register "
                "its class in ss.MEMORIES and give its name"
            )
        self.backend = backend
        self.num_layers, self.dropout, self.bidirectional = num_layers, dropout, bidirectional
        directions = 2 if bidirectional else 1
        cells: list[StackCell] = []
        for layer in range(num_layers):
            for _ in range(directions):
                cells.append(
                    StackCell(
                        input_size if layer == 0 else directions * cells[-directions].output_width,
                        hidden_size=hidden_size,
                        memory_size=memory_size,
                        output_size=output_size if layer == num_layers - 1 else None,
                        controller=controller,
                        memory=memory,
                        device=device,
                        dtype=dtype,
                    )
                )
        self.cell = cells[0]
        if len(cells) > 1:
            self.more_cells = nn.ModuleList(cells[1:])
        self.input_size, self.output_size = input_size, output_size
        self.hidden_size, self.memory_size = self.cell.hidden_size, self.cell.memory_size
        warn_without_state(state_reset, hidden_noise, self.cell.core.init((), self.cell.any_weight))

    @property
    def cells(self) -> list[StackCell]:
        """Every cell: layer by layer and, of two directions, the forward one first."""
        return [self.cell, *getattr(self, "more_cells", [])]

    def reset_parameters(
        self, generator: torch.Generator | None = None, biases: Mapping[str, float] | None = None
    ) -> None:
        """Draw every weight anew. `biases` are those of heads, by name ("u": pop, "d": push), in each cell
        that has them."""
        names = {name for cell in self.cells for name in cell.head_kinds}
        require_names(biases or {}, sorted(names))
        for cell in self.cells:
            own = {name: bias for name, bias in (biases or {}).items() if name in cell.head_kinds}
            cell.reset_parameters(generator, own)

    def init(self, batch: Sequences, like: Tensor) -> AnyState:
        """The state before the first step, for B or (B,) sequences; with () for one without a batch axis."""
        states = tuple(cell.init(batch, like) for cell in self.cells)
        return states[0] if len(states) == 1 else LayerStates(states)

    def explain(
        self, x: Tensor | PackedSequence, *, return_trace: bool = False, edit: Edits | None = None
    ) -> str:
        """Which backend runs on this input, and why, in a sentence; for each cell where they differ."""
        x = checks.sequence(
            x.data if isinstance(x, PackedSequence) else x, self.input_size, self.cell.any_weight
        )
        sentences = [
            kernels.explain(self.backend, x, fit.kept(return_trace, own) or fit.why_not(cell, x, x.shape[-2]))
            for cell, own in zip(self.cells, self._edits(edit), strict=True)
        ]
        if len(set(sentences)) == 1:
            return sentences[0]
        return "; ".join(f"cells[{k}]: {sentence}" for k, sentence in enumerate(sentences))

    def forward(
        self,
        x: Any,
        state: AnyState | None = None,
        lengths: Tensor | None = None,
        *,
        return_trace: bool = False,
        edit: Edits | None = None,
        disturbance: Disturbances | None = None,
    ) -> Any:
        """x (B, T, input_size) or (T, input_size) -> y (B, T, output_size) and the state after the last step.

        Give the state back to go on with the same sequences. Steps at or after `lengths` (B,) are padding:
        they put out 0 and change neither the state nor a gradient. A PackedSequence gives a PackedSequence.
        With `return_trace` the third result is a Trace, or a tuple of them, one for each cell. `edit` changes
        states and actions on their way, of every cell, or with one edit (or None) for each cell of each; like
        a trace it is a matter for the reference. `disturbance`, one for each cell, is used in the place of
        what would be drawn in training.
        """
        if isinstance(x, PackedSequence):
            return self._packed(x, state, lengths, return_trace, edit, disturbance)
        x = checks.sequence(x, self.input_size, self.cell.any_weight)
        batch = tuple(x.shape[:-2])
        fresh = self.init(batch, x)
        if state is None:
            state = fresh
        checks.same_state(state, fresh, batch)
        states = state.layers if isinstance(state, LayerStates) else (state,)
        live = None if lengths is None else running(lengths, x)  # (B, T)
        disturbances = of_call(self, disturbance, batch, [state.h for state in states], x.shape[-2])
        edits = self._edits(edit)
        results = list(self._layers(x, states, lengths, live, return_trace, edits, disturbances))
        y = torch.cat([y for y, _, _ in results[-2:]], -1) if self.bidirectional else results[-1][0]
        finals = tuple(final for _, final, _ in results)
        final = finals[0] if len(finals) == 1 else LayerStates(finals)
        if not return_trace:
            return y, final
        traces = tuple(trace for _, _, trace in results)
        return y, final, traces[0] if len(traces) == 1 else traces

    def _edits(self, edit: Edits | None) -> Sequence[Edit | None]:
        """One for each cell."""
        cells = len(self.cells)
        edits = [edit] * cells if edit is None or isinstance(edit, Edit) else edit
        if not isinstance(edits, Sequence) or not all(e is None or isinstance(e, Edit) for e in edits):
            raise BadInput(f"edit must be an ss.Edit, or one for each cell; got {checks.described(edit)}")
        if len(edits) != cells:
            raise BadInput(f"for {counted(cells, 'cell')} give as many edits, or one; got {len(edits)}")
        return edits

    def _layers(
        self,
        x: Tensor,
        states: tuple[State, ...],
        lengths: Tensor | None,
        live: Tensor | None,
        return_trace: bool,
        edits: Sequence[Edit | None],
        disturbances: Sequence[Disturbance | None],
    ) -> Iterator[tuple[Tensor, State, Trace | None]]:
        """Each cell over the whole sequence: its outputs, final state and trace."""
        cells = iter(zip(self.cells, states, edits, disturbances, strict=True))
        for layer in range(self.num_layers):
            if layer > 0:
                x = dropout(x, self.dropout, self.training)
            cell, state, edit, disturbance = next(cells)
            forward = self._run(cell, x, state, lengths, live, return_trace, edit, disturbance)
            yield forward
            x_next = forward[0]
            if self.bidirectional:
                cell, state, edit, disturbance = next(cells)
                y, final, trace = self._run(
                    cell, backwards(x, lengths), state, lengths, live, return_trace, edit, disturbance
                )
                yield backwards(y, lengths), final, trace and trace._replace(backwards=True)
                x_next = torch.cat((x_next, backwards(y, lengths)), -1)
            x = x_next

    def _run(
        self,
        cell: StackCell,
        x: Tensor,
        state: State,
        lengths: Tensor | None,
        live: Tensor | None,
        return_trace: bool,
        edit: Edit | None,
        disturbance: Disturbance | None,
    ) -> tuple[Tensor, State, Trace | None]:
        """One cell: through a kernel if one fits, else step by step."""
        x = x if live is None else only_where(live, x)
        reason = fit.kept(return_trace, edit) or fit.why_not(cell, x, x.shape[-2])
        reason = reason or fit.overfull(cell, state)
        kernel = kernels.choose(self.backend, x, reason)
        if kernel != "reference":
            final = fused.run(cell, x, state, lengths, kernel, disturbance=disturbance)
            return final.y, final.state, None
        outputs: list[Tensor] = []
        moments: list[Moment] = []
        for t, x_t in enumerate(x.unbind(-2)):
            live_t = None if live is None else live[..., t]
            disturbance_t = None if disturbance is None else disturbance.at(t)
            y_t, features, actions, state = cell(x_t, state, live_t, edit, disturbance_t)
            outputs.append(y_t)
            if return_trace:
                contents = cell.memory.contents(state.memory)
                moments.append(Moment(x_t, y_t, features, actions, state.r, contents))
        y = over_time(outputs, x, cell.output_width)
        return y, state, gather(moments, cell, x) if return_trace else None

    def _packed(
        self,
        x: PackedSequence,
        state: Any,
        lengths: Tensor | None,
        return_trace: bool,
        edit: Edits | None,
        disturbance: Disturbances | None,
    ) -> Any:
        if lengths is not None:
            raise BadInput("a PackedSequence knows its lengths: leave `lengths` out")
        padded, sizes = pad_packed_sequence(x, batch_first=True)
        arguments: dict[str, Any] = dict(return_trace=return_trace, edit=edit, disturbance=disturbance)
        y, *rest = self.forward(padded, state, sizes, **arguments)
        if x.sorted_indices is not None:
            y, sizes = y[x.sorted_indices], sizes[x.sorted_indices.cpu()]
        data = pack_padded_sequence(y, sizes, batch_first=True).data
        return (PackedSequence(data, x.batch_sizes, x.sorted_indices, x.unsorted_indices), *rest)

    def extra_repr(self) -> str:
        more = [f"backend={self.backend!r}"]
        more += [f"{name}={rate}" for name in RATES if (rate := getattr(self, name))]
        if self.num_layers > 1 or self.bidirectional:
            more += [f"num_layers={self.num_layers}", f"dropout={self.dropout}"]
            more += [f"bidirectional={self.bidirectional}"]
        return ", ".join(more)


def backwards(x: Tensor, lengths: Tensor | None) -> Tensor:
    """x (B, T, k) from its end to its beginning; padding stays where it is."""
    if lengths is None:
        return x.flip(-2)
    steps = torch.arange(x.shape[-2], device=x.device)
    ends = lengths.to(x.device).unsqueeze(-1)  # (B, 1)
    order = torch.where(steps < ends, ends - 1 - steps, steps)  # (B, T)
    return x.gather(-2, order.unsqueeze(-1).expand_as(x))
