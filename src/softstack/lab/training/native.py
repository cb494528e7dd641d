"""`Population.step` on the CPU, in compiled code from end to end and in arrays that are used again.

The same to rounding: tests hold it to that. It covers the fields of a Condition in KNOWN and the losses in
PER_STEP. Where a condition asks for anything else `why_not` says so, and the definition is used.

    P trials   B strings in a batch   T steps   K letters   m memory width   H hidden
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from softstack.lab.training.conditions import Condition, StepsPerSymbol
from softstack.lab.training.population import Population

Array = np.ndarray[Any, Any]
KNOWN = frozenset((
    "task", "controller", "memory", "buffered", "hidden_size", "memory_size", "steps_per_symbol",
    "discard_first", "train_size", "dev_size", "test_size", "batch_size", "learning_rate", "weight_decay",
    "loss", "pop_bias", "buffer_bias", "patience", "max_epochs",
))  # fmt: skip
PER_STEP = {"step_mean": True, "sum": False}  # whether a position shares its step with the batch's others


def why_not(population: Population) -> str:
    """Why this step does not fit a population; "" where it does."""
    condition = population.condition
    unknown = [name for name in condition.changed if name not in KNOWN]
    if unknown:
        return f"it does not know {', '.join(unknown)}"
    if condition.loss_name not in PER_STEP:
        return f"it does not know the loss {condition.loss_name}"
    return "" if population.kernel == "cpu" else f"the backend of the network is {population.kernel}"


class Native:
    """Steps on batches like `strings` (P, B)."""

    def __init__(self, population: Population, strings: Tensor) -> None:
        from softstack.kernels.cpu import train  # numba takes a while to import

        condition = population.condition
        self.data = [x.contiguous().numpy() for x in population.data["train"]]
        (P, B), T, K = strings.shape, self.data[0].shape[2], population.letters
        optimiser = self.optimiser = population.optimiser
        tensors = (optimiser.vectors.detach(), optimiser.first, optimiser.second)
        self.vectors, *self.moments = (x.numpy() for x in tensors)  # the same memory
        self.gradient = np.zeros_like(self.vectors)
        self.losses, self.per_step = np.zeros(P, np.float32), PER_STEP[condition.loss_name]
        self.trials, self.one_hot = np.arange(P)[:, None], np.eye(K, dtype=self.vectors.dtype)
        self.recurrence = Recurrence(condition, P, B, T, K, optimiser.vectors.dtype)
        self.weights = parts(population, self.vectors, *self.recurrence.weights)
        self.gradients = parts(population, self.gradient, *self.recurrence.gradients)
        self.read_off = ReadOff(condition, self.recurrence) if condition.buffered else None
        self.cross_entropy, self.adam = train.cross_entropy, train.adam

    def __call__(self, strings: Tensor) -> Tensor:
        batch, (symbols, targets, mask) = strings.numpy(), self.data
        np.take(self.one_hot, symbols[self.trials, batch], axis=0, out=self.recurrence.x, mode="clip")
        copied, added = self.weights
        for weight, parameter in copied:
            weight[...] = parameter
        for weight, parameter in added:
            weight += parameter
        self.recurrence.forward()
        scored: Recurrence | ReadOff = self.recurrence
        if self.read_off:
            self.read_off.forward()
            scored = self.read_off
        self.cross_entropy(scored.y, targets, mask, batch, self.per_step, self.losses, scored.gy)
        if self.read_off:
            self.read_off.backward()
        self.recurrence.backward()
        copied, added = self.gradients
        for gradient, parameter in (*copied, *added):
            parameter[...] = gradient
        optimiser = self.optimiser
        optimiser.steps += 1
        self.adam(
            self.vectors, self.gradient, *self.moments,
            optimiser.steps, optimiser.learning_rate, optimiser.weight_decay,
        )  # fmt: skip
        return torch.from_numpy(self.losses.copy())


Pairs = list[tuple[Array, Array]]


def parts(
    population: Population, vectors: Array, W: Array, b: Array, Wh: Array, bn: Array, Wo: Array, bo: Array
) -> tuple[Pairs, Pairs]:
    """The kernel's weights, each beside the part of vectors (P, n) that it is a copy of, or that is added to
    it. A recurrent core's two biases act as one, but for the GRU's inside its reset gate, which is bn.
    """
    named = {name: p.numpy() for name, p in population.by_name(torch.from_numpy(vectors)).items()}
    heads = named["cell.heads.weight"], named["cell.heads.bias"]
    if "cell.core.from_hidden.bias" not in named:  # the linear controller
        return [(W, heads[0]), (b, heads[1])], []
    inner = named["cell.core.from_hidden.bias"]
    gates = inner.shape[1] // bn.shape[1]  # 1, 3 (GRU) or 4 (LSTM)
    outside = 2 * bn.shape[1] if gates == 3 else inner.shape[1]
    copied = [
        (W, named["cell.core.from_input.weight"]),
        (b, named["cell.core.from_input.bias"]),
        (Wh, named["cell.core.from_hidden.weight"]),
        (bn[:, : inner.shape[1] - outside], inner[:, outside:]),
        (Wo, heads[0]),
        (bo, heads[1]),
    ]
    return copied, [(b[:, :outside], inner[:, :outside])]


def aligned_zeros(shape: tuple[int, ...], kind: torch.dtype) -> Array:
    """From torch, which aligns what it allocates to 64 bytes: with numpy's 16 a step takes a tenth longer."""
    array: Array = torch.zeros(shape, dtype=kind).numpy()
    return array


class Recurrence:
    """The networks over a batch, both ways: the one place that calls kernels/cpu/rnn.py.

    In: x (P, B, T, K) and `weights`, then gy and go. Out: y (P, B, steps, K), o (P, B, steps) where there are
    buffers, and `gradients` like the weights.
    """

    def __init__(self, condition: Condition, P: int, B: int, T: int, K: int, real: torch.dtype) -> None:
        from softstack.kernels.cpu import rnn
        from softstack.kernels.rnn import CORES, MEMORIES, shapes

        self.rnn, self.real = rnn, real
        core, memory = CORES[condition.controller], MEMORIES[condition.memory]
        buffered, m = condition.buffered, condition.memory_size
        H = 0 if condition.controller == "linear" else condition.hidden_size
        A = (4 if buffered else 2) + m + K
        G = {"linear": A, "rnn": H, "gru": 3 * H, "lstm": 4 * H}[condition.controller]
        steps = StepsPerSymbol(condition.steps_per_symbol)(T) if buffered else T
        self.options = (core, memory, False, buffered)

        def zeros(*shape: int) -> Array:
            return aligned_zeros(shape, real)

        self.x = zeros(P, B, T, K)
        sizes = [(P, G, K + m), (P, G), (P, G, H), (P, H), (P, A, H), (P, A if H else 0)]
        self.weights = [zeros(*size) for size in sizes]
        h0, c0 = zeros(P, B, H), zeros(P, B, H if condition.controller == "lstm" else 0)
        r0, V0, s0 = zeros(P, B, m), zeros(P, B, 0, m), zeros(P, B, 0)
        items = np.ones((P, B, T if buffered else 0), self.x.dtype)
        self.before = (h0, c0, r0, s0, items, zeros(P, B), np.full((P, B), steps))
        arrays = (self.x, self.weights[1], self.weights[5], V0, h0, c0, r0)
        x, b, bo, *start = map(torch.from_numpy, arrays)
        results, links = shapes(x, b, bo, *start, core, memory, steps, buffered, False)  # type: ignore[arg-type,call-arg]  # four of them
        self.y, h, c, r, V, s, strengths, i, self.o, tape = (zeros(*shape) for shape in results)
        chain = np.zeros((P, links), np.int32)
        self.after = (V, s, strengths, self.y, self.o, h, c, r, i, tape, chain)
        self.kept = (V, s, strengths, tape, chain)
        self.gy, self.go = zeros(*self.y.shape), zeros(*self.o.shape)
        summed = [z.shape for z in (h, c, r, V, s, i, strengths, self.x, *self.weights)]
        ends = np.cumsum([int(np.prod(shape)) for shape in summed])
        self.sums = zeros(ends[-1])  # gradients: they begin every step at 0
        sums = [
            part.reshape(shape) for part, shape in zip(np.split(self.sums, ends[:-1]), summed, strict=True)
        ]
        self.of_state, self.of_x, self.gradients = sums[:7], sums[7], sums[8:]

    def forward(self) -> None:
        self.rnn.forward(*self.options, self.x, *self.weights, *self.before, *self.after)

    def backward(self) -> None:
        self.sums.fill(0)
        W, _, Wh, _, Wo, _ = self.weights
        self.rnn.backward(
            *self.options, self.x, W, Wh, Wo, *self.before[3:], *self.kept, self.gy, self.go,
            *self.of_state, False, self.of_x, *self.gradients,
        )  # fmt: skip


class ReadOff:
    """What `buffers.read_off` does with the output buffers of a recurrence, as far as T targets, both ways.

    Out: y (P, B, T, K). In: gy. The gradients of what the buffers hold go to the recurrence.
    """

    def __init__(self, condition: Condition, recurrence: Recurrence) -> None:
        from softstack.kernels.cpu import scan

        self.scan, self.recurrence, real = scan, recurrence, recurrence.real
        P, B, T, K = recurrence.x.shape
        steps = recurrence.y.shape[2]
        n, N = P * B, steps + T

        def zeros(*shape: int, kind: torch.dtype = real) -> Array:
            return aligned_zeros(shape, kind)

        self.held, self.strengths = zeros(n, N, K), zeros(n, steps)
        u, d, lengths = zeros(n, T), zeros(n, T), np.full(n, T)
        u[:, 0 if condition.discard_first else 1 :] = 1
        read, left = zeros(n, T, K), zeros(n, N)
        whole = torch.int32
        log = zeros(n, N, kind=whole), zeros(n, N), zeros(n, T + 1, kind=whole), zeros(n, T + 1)
        self.asked = (self.held, u, d, self.strengths, lengths, False)
        self.after, self.kept = (read, left, *log), (left, *log)
        gread, self.gstrengths, self.gheld = zeros(n, T, K), zeros(n, N), zeros(n, N, K)
        self.gradients = (gread, self.gstrengths, self.gheld, zeros(n, T), zeros(n, T))
        self.y, self.gy = (z.reshape(recurrence.x.shape) for z in (read, gread))

    def forward(self) -> None:
        steps = self.strengths.shape[1]
        self.held[:, :steps] = self.recurrence.y.reshape(self.held[:, :steps].shape)
        self.strengths[:] = self.recurrence.o.reshape(self.strengths.shape)
        self.scan.forward(*self.asked, *self.after)

    def backward(self) -> None:
        self.gstrengths.fill(0)
        self.gheld.fill(0)
        self.scan.backward(*self.asked, *self.kept, *self.gradients)
        steps, of = self.strengths.shape[1], self.recurrence
        of.gy[:] = self.gheld[:, :steps].reshape(of.gy.shape)
        of.go[:] = self.gstrengths[:, :steps].reshape(of.go.shape)
