"""One training step of a population on the CPU, in compiled code from end to end, in arrays used again.

The same as `steps.Autograd`, to rounding: its tests hold it to that.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from softstack import fused
from softstack.networks import BufferedStackRNN

if TYPE_CHECKING:
    from softstack.lab.training.train import Population


class Native:
    """The arrays that a step works in, and the calls that it is made of (`kernels/cpu/train.py`)."""

    def __init__(self, population: "Population", batch: int) -> None:
        from softstack.kernels.rnn import CORES, MEMORIES, shapes

        network, data, self.optimiser = population.network, population.data["train"], population.optimiser
        cell, real = network.cell, self.optimiser.rows.dtype
        self.per_step = population.loss == "step_mean"
        self.buffered = isinstance(network, BufferedStackRNN)
        core, memory = CORES[cell.controller_name], MEMORIES[cell.memory.name]
        self.options, self.gated = (core, memory, False, self.buffered), cell.controller_name == "gru"
        (P, _, T), K = data.x.shape, population.letters
        steps = network.steps(T) if isinstance(network, BufferedStackRNN) else T

        def new(*shape: int, fill: float = 0.0) -> Tensor:
            return torch.full(shape, fill, dtype=real)

        x = new(P, batch, T, K)
        own = {name.removeprefix("cell."): p for name, p in population.parameters.items()}
        weights = [w.detach().clone() for w in fused.weights_of(cell.controller_name, own)]
        state = cell.init((P, batch), x)
        h0, c0 = (*state.h, new(P, batch, 0), new(P, batch, 0))[:2]
        items = new(P, batch, T, fill=1.0) if self.buffered else new(P, batch, 0)
        first = (h0, c0, state.r, state.memory.s, items, new(P, batch), torch.full((P, batch), steps))
        made, links = shapes(
            x, weights[1], weights[5], state.memory.V, h0, c0, state.r,
            core, memory, steps, self.buffered, gpu=False,
        )  # fmt: skip
        y, h, c, r, V, s, strengths, i, o, tape = (new(*shape) for shape in made)
        chain = torch.empty(P, links, dtype=torch.int32)
        self.x, self.weights, self.first, self.data = x.numpy(), _numpy(weights), _numpy(first), _numpy(data)
        self.forward_out = _numpy((V, s, strengths, y, o, h, c, r, i, tape, chain))
        self.kept = _numpy((V, s, strengths, tape, chain))
        self.y, self.o, self.gy, self.go = _numpy((y, o, new(*y.shape), new(*o.shape)))
        sums = [z.shape for z in (h, c, r, V, s, i, strengths, x, *weights)]
        self.sums = np.zeros(sum(shape.numel() for shape in sums), self.x.dtype)  # begin every step at 0
        parts = np.split(self.sums, np.cumsum([shape.numel() for shape in sums])[:-1])
        views = [part.reshape(shape) for part, shape in zip(parts, sums, strict=True)]
        self.gstate, self.gradients = views[:7], views[7:]
        optimiser = self.optimiser
        self.rows, *self.moments = _numpy((optimiser.rows.detach(), optimiser.first, optimiser.second))
        self.flat, self.losses = np.zeros_like(self.rows), np.zeros(P, np.float32)
        self.read_off: ReadOff | None = None
        if isinstance(network, BufferedStackRNN):
            self.read_off = ReadOff(P, batch, steps, T, K, network.discard_first, real)

    def __call__(self, columns: Tensor) -> Tensor:
        from softstack.kernels.cpu import rnn as cpu_rnn
        from softstack.kernels.cpu import train as cpu_train

        which = columns.numpy()
        symbols, targets, mask = self.data
        cpu_train.encode(self.x, symbols, which)
        cpu_train.unpack(self.rows, *self.weights, self.gated)
        cpu_rnn.forward(*self.options, self.x, *self.weights, *self.first, *self.forward_out)
        y, gy = (self.y, self.gy) if self.read_off is None else self.read_off.forward(self.y, self.o)
        cpu_train.cross_entropy(y, targets, mask, which, self.per_step, self.losses, gy)
        if self.read_off is not None:
            self.read_off.backward(self.gy, self.go)
        self.sums.fill(0)
        W, _, Wh, _, Wo, _ = self.weights
        s0, strengths0, i0, lengths = self.first[3:]
        cpu_rnn.backward(
            *self.options, self.x, W, Wh, Wo, s0, strengths0, i0, lengths, *self.kept, self.gy, self.go,
            *self.gstate, False, *self.gradients,
        )  # fmt: skip
        cpu_train.pack(self.flat, *self.gradients[1:], self.gated)
        optimiser = self.optimiser
        optimiser.steps += 1
        cpu_train.adam(
            self.rows, self.flat, *self.moments, optimiser.steps, optimiser.learning_rate,
            optimiser.weight_decay,
        )  # fmt: skip
        return torch.from_numpy(self.losses.copy())


class ReadOff:
    """What `buffers.read_off` does with an output buffer of `steps` items, as far as T targets, both ways."""

    def __init__(
        self, P: int, batch: int, steps: int, T: int, K: int, discard_first: bool, real: torch.dtype
    ) -> None:
        n, N = P * batch, steps + T
        self.shape, self.steps = (P, batch, T, K), steps

        def new(*shape: int, dtype: torch.dtype = real) -> Any:
            return torch.zeros(shape, dtype=dtype).numpy()

        self.V, self.s0 = new(n, N, K), new(n, steps)
        self.u, self.d, self.lengths = new(n, T), new(n, T), np.full(n, T)
        self.u[:, 0 if discard_first else 1 :] = 1
        self.r, self.s = new(n, T, K), new(n, N)
        whole = dict(dtype=torch.int32)
        self.log = (new(n, N, **whole), new(n, N), new(n, T + 1, **whole), new(n, T + 1))
        self.gr, self.gs, self.gV = new(n, T, K), new(n, N), new(n, N, K)
        self.gu, self.gd = new(n, T), new(n, T)

    def forward(self, y: Any, o: Any) -> tuple[Any, Any]:
        """The outputs (P, B, T, K), and where their gradient goes."""
        from softstack.kernels.cpu import scan as cpu_scan

        self.V[:, : self.steps] = y.reshape(self.V[:, : self.steps].shape)
        self.s0[:] = o.reshape(self.s0.shape)
        cpu_scan.forward(self.V, self.u, self.d, self.s0, self.lengths, False, self.r, self.s, *self.log)
        return self.r.reshape(self.shape), self.gr.reshape(self.shape)

    def backward(self, gy: Any, go: Any) -> None:
        from softstack.kernels.cpu import scan as cpu_scan

        self.gs.fill(0)
        self.gV.fill(0)
        cpu_scan.backward(
            self.V, self.u, self.d, self.s0, self.lengths, False, self.s, *self.log,
            self.gr, self.gs, self.gV, self.gu, self.gd,
        )  # fmt: skip
        gy[:] = self.gV[:, : self.steps].reshape(gy.shape)
        go[:] = self.gs[:, : self.steps].reshape(go.shape)


def _numpy(tensors: Any) -> list[Any]:
    return [x.contiguous().numpy() for x in tensors]
