"""`Population.step` on the CPU, in compiled code from end to end and in arrays that are used again.

The same to rounding: tests hold it to that. It covers the fields of a Condition in KNOWN and the losses in
PER_STEP. Where a condition asks for anything else `why_not` says so, and the definition is used.

    P trials   B strings in a batch   T steps   K letters   R read from the memory   H hidden
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from softstack import fit
from softstack.kernels.kinds import ENDS, MEMORIES, UNBUFFERED
from softstack.lab.training import noise
from softstack.lab.training.conditions import Condition, StepsPerSymbol
from softstack.lab.training.population import Population
from softstack.memory import Memory

Array = np.ndarray[Any, Any]
KNOWN = frozenset((
    "task", "controller", "memory", "buffered", "hidden_size", "memory_size", "steps_per_symbol",
    "discard_first", "train_size", "dev_size", "test_size", "batch_size", "learning_rate", "weight_decay",
    "loss", "pop_bias", "buffer_bias", "patience", "max_epochs", "state_reset", "reset_spread",
    "hidden_noise", "gradient_clip", "steps", "final_rate", "restarts", "halvings", "halving_share",
    "weight_width", "push_bias",
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

        condition = self.condition = population.condition
        self.data = [x.contiguous().numpy() for x in population.data["train"]]
        (P, B), T, K = strings.shape, self.data[0].shape[2], population.letters
        optimiser = self.optimiser = population.optimiser
        tensors = (optimiser.vectors.detach(), optimiser.first, optimiser.second)
        self.vectors, *self.moments = (x.numpy() for x in tensors)  # the same memory
        self.gradient = np.zeros_like(self.vectors)
        self.losses, self.per_step = np.zeros(P, np.float32), PER_STEP[condition.loss_name]
        self.trials, self.one_hot = np.arange(P)[:, None], np.eye(K, dtype=self.vectors.dtype)
        memory = population.network.cell.memory
        self.recurrence = Recurrence(condition, memory, P, B, T, K, optimiser.vectors.dtype)
        self.weights = parts(population, self.vectors, *self.recurrence.weights)
        self.gradients = parts(population, self.gradient, *self.recurrence.gradients)
        self.read_off = ReadOff(condition, self.recurrence) if condition.buffered else None
        self.cross_entropy, self.adam, self.disturb = train.cross_entropy, train.adam, train.disturb
        self.keys, self.below, self.quantiles = (
            population.keys.numpy(),
            population.resets.numpy(),
            noise.quantiles(population.keys.device).to(optimiser.vectors.dtype).numpy(),
        )

    def __call__(self, strings: Tensor) -> Tensor:
        batch, (symbols, targets, mask) = strings.numpy(), self.data
        np.take(self.one_hot, symbols[self.trials, batch], axis=0, out=self.recurrence.x, mode="clip")
        copied, added = self.weights
        for weight, parameter in copied:
            weight[...] = parameter
        for weight, parameter in added:
            weight += parameter
        optimiser = self.optimiser
        optimiser.steps += 1
        if self.recurrence.options.disturbed:
            self.disturb(
                self.keys,
                optimiser.steps,
                self.below,
                self.condition.hidden_noise,
                self.quantiles,
                *self.recurrence.disturbance,
            )
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
        self.adam(
            self.vectors, self.gradient, *self.moments, optimiser.steps, self.condition.rate(optimiser.steps),
            self.condition.weight_decay, self.condition.gradient_clip,
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


class Recurrence:
    """The networks over a batch, both ways: the one place that calls kernels/cpu/rnn.py.

    In: x (P, B, T, K) and `weights`, then gy and go. Out: y (P, B, steps, K), o (P, B, steps) where there are
    buffers, and `gradients` like the weights.
    """

    def __init__(
        self, condition: Condition, memory: Memory, P: int, B: int, T: int, K: int, real: torch.dtype
    ) -> None:
        from softstack.kernels import cpu, rnn
        from softstack.kernels.cpu import rnn as compiled
        from softstack.kernels.cpu import room
        from softstack.kernels.tuples import Buffer, Disturbance, Gradients, Inputs, Options, State, Weights

        buffered, R = condition.buffered, memory.width
        H = 0 if condition.controller == "linear" else condition.hidden_size
        A = sum(head.size for head in memory.heads.values()) + (2 if buffered else 0) + K
        G = {"linear": A, "rnn": H, "gru": 3 * H, "lstm": 4 * H}[condition.controller]
        steps = StepsPerSymbol(condition.steps_per_symbol)(T) if buffered else T
        core, kind = rnn.CORES[condition.controller], (MEMORIES | UNBUFFERED)[fit.memory_name(memory)]
        choices, depth = fit.choices(memory.heads), getattr(memory, "depth", None) or 0
        disturbed = bool(H and (condition.state_reset or condition.hidden_noise))
        self.compiled, self.options = (
            compiled,
            Options(core, kind, steps, False, buffered, disturbed, choices, depth),
        )

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=real)

        cells = H if condition.controller == "lstm" else 0
        inputs = Inputs(
            zeros(P, B, T, K),
            Weights(
                *(zeros(P, *size) for size in ((G, K + R), (G,), (G, H), (H,), (A, H), (A if H else 0,)))
            ),
            State(*(zeros(P, B, *size) for size in ((H,), (cells,), (R,), (0, R // ENDS[kind]), (0,)))),
            Buffer(zeros(P, B, T if buffered else 0).fill_(1), zeros(P, B)),
            Disturbance(zeros(P, B, steps if disturbed else 0), zeros(P, B, steps if disturbed else 0, H)),
            torch.full((P, B), steps),
        )
        outputs = rnn.outputs_of(rnn.results(Tensor.new_zeros, *rnn.flat(inputs), *self.options, "cpu"))
        self.sizes = sizes = rnn.sizes_of_inputs(self.options, inputs)
        self.paths, dtype = cpu.paths(self.options, sizes.N), inputs.x.numpy().dtype
        self.room = room.for_forward(self.options, sizes, dtype)
        self.backward_room = room.for_backward(self.options, sizes, dtype)
        kept = rnn.kept_of(inputs, outputs)
        self.inputs, self.outputs, self.kept = (cpu.arrays(z) for z in (inputs, outputs, kept))
        summed = rnn.flat((outputs.final, outputs.buffer, inputs.x, inputs.weights))
        sums = zeros(sum(z.numel() for z in summed))  # gradients: they begin every step at 0
        parts = sums.split([z.numel() for z in summed])
        shaped = [part.view(z.shape) for part, z in zip(parts, summed, strict=True)]
        gy, go = torch.zeros_like(outputs.y), torch.zeros_like(outputs.o)
        to = Gradients(gy, go, State(*shaped[:5]), Buffer(*shaped[5:7]), shaped[7], Weights(*shaped[8:]))
        self.to, self.sums = cpu.arrays(to), sums.numpy()
        self.disturbance = self.inputs.disturbance
        self.x, self.weights, self.gradients = self.inputs.x, self.inputs.weights, self.to.weights
        self.y, self.o, self.gy, self.go = self.outputs.y, self.outputs.o, self.to.y, self.to.o

    def forward(self) -> None:
        self.compiled.forward(self.room, self.options, self.sizes, self.inputs, self.outputs, *self.paths)

    def backward(self) -> None:
        self.sums.fill(0)
        self.compiled.backward(
            self.backward_room, self.options, self.sizes, self.kept, self.to, False, *self.paths
        )


class ReadOff:
    """What `buffers.read_off` does with the output buffers of a recurrence, as far as T targets, both ways.

    Out: y (P, B, T, K). In: gy. The gradients of what the buffers hold go to the recurrence.
    """

    def __init__(self, condition: Condition, recurrence: Recurrence) -> None:
        from softstack.kernels import cpu
        from softstack.kernels.cpu import scan
        from softstack.kernels.tuples import Log, Steps

        self.scan, self.recurrence = scan, recurrence
        P, B, T, K = recurrence.x.shape
        count = recurrence.y.shape[2]
        n, N = P * B, count + T

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.from_numpy(recurrence.y).dtype)

        def cells(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.int32)

        u = zeros(n, T)
        u[:, 0 if condition.discard_first else 1 :] = 1
        steps = Steps(zeros(n, N, K), u, zeros(n, T), zeros(n, count), torch.full((n,), T))
        log = Log(cells(n, N), zeros(n, N), cells(n, T + 1), zeros(n, T + 1))
        self.steps, self.log = cpu.arrays(steps), cpu.arrays(log)
        self.read, self.gread = zeros(n, T, K).numpy(), zeros(n, T, K).numpy()
        self.left, self.gstrengths, self.row = zeros(n, N).numpy(), zeros(n, N).numpy(), zeros(K).numpy()
        self.gheld, self.gu, self.gd = zeros(n, N, K).numpy(), zeros(n, T).numpy(), zeros(n, T).numpy()
        self.y, self.gy = (z.reshape(recurrence.x.shape) for z in (self.read, self.gread))

    def forward(self) -> None:
        count, of = self.steps.s0.shape[1], self.recurrence
        self.steps.V[:, :count] = of.y.reshape(self.steps.V[:, :count].shape)
        self.steps.s0[:] = of.o.reshape(self.steps.s0.shape)
        self.scan.forward(self.row, self.steps, False, self.read, self.left, self.log)

    def backward(self) -> None:
        self.gstrengths.fill(0)
        self.gheld.fill(0)
        self.scan.backward(
            self.steps, False, self.left, self.log, self.gread, self.gstrengths, self.gheld, self.gu, self.gd
        )
        count, of = self.steps.s0.shape[1], self.recurrence
        of.gy[:] = self.gheld[:, :count].reshape(of.gy.shape)
        of.go[:] = self.gstrengths[:, :count].reshape(of.go.shape)
