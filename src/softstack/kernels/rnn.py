"""StackRNN over a whole sequence as PyTorch operators: `softstack::rnn` and its backward.

Every tensor begins with an axis of models, which a vmapped axis joins, so that a population is one call.
`tuples.py` says what the tensors are. An operator takes and gives them one by one: `flat` lays the tuples
out, and `inputs_of` and `outputs_of` put them together again.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from softstack.kernels import KERNELS
from softstack.kernels.gpu.layout import on_chip
from softstack.kernels.kinds import CORES as CORES
from softstack.kernels.kinds import ENDS, LINEAR, LSTM, NONE, STRENGTHS, UNBUFFERED
from softstack.kernels.kinds import MEMORIES as MEMORIES
from softstack.kernels.operators import fold, once, operator, plain, refuse_tangents
from softstack.kernels.scan import HALVES
from softstack.kernels.tensors import New, empty, own_together, whole, zeros_together
from softstack.kernels.tuples import (
    Buffer,
    Disturbance,
    Gradients,
    Inputs,
    Kept,
    Options,
    Outputs,
    Sizes,
    State,
    Weights,
)

INPUTS = (
    "x", *Weights._fields, *(f"{name}0" for name in (*State._fields, *Buffer._fields)),
    *Disturbance._fields, "lengths",
)  # fmt: skip
OUTPUTS = ("y", "o", *State._fields, *Buffer._fields)  # and the tape and its links, which have no gradient
OPTIONS = (
    "int core, int memory, SymInt steps, bool ragged, bool buffered, bool disturbed, int choices, int depth"
)


def flat(parts: Any) -> list[Tensor]:
    """The tensors of a named tuple, one after the other."""
    return [parts] if isinstance(parts, Tensor) else [tensor for part in parts for tensor in flat(part)]


def inputs_of(tensors: Any) -> Inputs:
    x, *rest, lengths = tensors
    return Inputs(
        x, Weights(*rest[:6]), State(*rest[6:11]), Buffer(*rest[11:13]), Disturbance(*rest[13:]), lengths
    )


def outputs_of(tensors: Any) -> Outputs:
    y, o, *rest, tape, links = tensors
    return Outputs(y, o, State(*rest[:5]), Buffer(*rest[5:]), tape, links)


def kept_of(inputs: Inputs, outputs: Outputs) -> Kept:
    x, (W, _, Wh, _, Wo, _), start, buffer, disturbance, lengths = inputs
    _, _, final, after, tape, links = outputs
    return Kept(
        x, W, Wh, Wo, lengths, start.s, *buffer, *disturbance, final.V, final.s, after.strengths, tape, links
    )


def sizes_of(options: Options, x: Tensor, W: Tensor, Wo: Tensor, V: Tensor, n: int) -> Sizes:
    core, memory, T, _, buffered, _, choices, depth = options
    (_, B, n_in, k), m = x.shape, V.shape[3]
    A, R = (W if core == LINEAR else Wo).shape[1], ENDS[memory] * m
    K = A - STRENGTHS[memory] - (2 if buffered else 0) - choices - R
    N = n if memory == NONE else torch.sym_min(n + T, depth) if depth else n + ENDS[memory] * T
    return Sizes(B, T, k, m, Wo.shape[2], K, W.shape[1], N, n_in, A, R)


def sizes_of_inputs(options: Options, inputs: Inputs) -> Sizes:
    x, weights, start, _, _, _ = inputs
    return sizes_of(options, x, weights.W, weights.Wo, start.V, start.s.shape[2])


def sizes_of_kept(options: Options, kept: Kept) -> Sizes:
    return sizes_of(options, kept.x, kept.W, kept.Wo, kept.V, kept.s0.shape[2])


def output_shapes(options: Options, P: int, sizes: Sizes) -> list[tuple[int, ...]]:
    """The shapes of y, o, the final state and the buffer after it."""
    B, T, _, m, H, K, _, N, n_in, _, R = sizes
    outputs, items = (T, n_in) if options.buffered else (0, 0)
    cells = H if options.core == LSTM else 0
    state = [(P, B, H), (P, B, cells), (P, B, R), (P, B, N, m), (P, B, N)]
    return [(P, B, T, K), (P, B, outputs), *state, (P, B, items), (P, B)]


def results(new: New, *arguments: Any) -> list[Tensor]:
    """`OUTPUTS`, the tape and its links, for a kernel to fill."""
    tensors, options, backend = arguments[: len(INPUTS)], Options(*arguments[len(INPUTS) : -1]), arguments[-1]
    inputs = inputs_of(tensors)
    return room_for(new, options, sizes_of_inputs(options, inputs), inputs.x, backend)


def room_for(new: New, options: Options, sizes: Sizes, x: Tensor, backend: str) -> list[Tensor]:
    P = x.shape[0]
    numbers, cells = KERNELS[backend].tape_sizes(options, sizes)
    outputs = [new(x, shape) for shape in output_shapes(options, P, sizes)]
    return [*outputs, new(x, (P, numbers)), new(x, (P, cells), dtype=torch.int32)]


def rnn_forward(*arguments: Any) -> list[Tensor]:
    """`Inputs`, `Options` and the backend -> `Outputs`."""
    tensors, options, backend = arguments[: len(INPUTS)], Options(*arguments[len(INPUTS) : -1]), arguments[-1]
    inputs = inputs_of(map(whole, tensors))
    sizes = sizes_of_inputs(options, inputs)
    outputs = outputs_of(room_for(empty, options, sizes, inputs.x, backend))
    outputs.final.V[:, :, : inputs.start.s.shape[2]] = inputs.start.V
    KERNELS[backend].rnn_forward(options, sizes, inputs, outputs)
    return flat(outputs)


def gradient_shapes(kept: Kept) -> list[tuple[Tensor, tuple[int, ...]]]:
    """For the gradients of x and of the weights: a tensor of the same dtype, and the shape."""
    P, G, _ = kept.W.shape
    _, A, H = kept.Wo.shape
    x, matrices = kept.x, (kept.W, kept.Wh, kept.Wo)
    pairs = zip(matrices, ((P, G), (P, H), (P, A if H else 0)), strict=True)
    weights = [part for W, bias in pairs for part in ((W, W.shape), (x, bias))]
    return [(x, x.shape), *weights]


def split(arguments: tuple[Any, ...]) -> tuple[Kept, tuple[Any, ...], Options, bool, str]:
    """What the backward operator takes: `Kept`, the gradients of `OUTPUTS` where there are any, `Options`,
    whether x's gradient is wanted, and the backend."""
    *tensors, to_x, backend = arguments
    saved, end = len(Kept._fields), len(Kept._fields) + len(OUTPUTS)
    return Kept(*tensors[:saved]), tuple(tensors[saved:end]), Options(*tensors[end:]), to_x, backend


def fake_gradients(*arguments: Any) -> list[Tensor]:
    """The gradients of all inputs but the disturbance and the lengths, as shapes alone."""
    kept, _, options, _, _ = split(arguments)
    _, _, h, c, r, V, _, _, _ = output_shapes(options, kept.x.shape[0], sizes_of_kept(options, kept))
    state = [h, c, r, (*kept.s0.shape, V[3]), kept.s0.shape, kept.strengths0.shape, kept.i0.shape]
    new = [like.new_empty(shape) for like, shape in gradient_shapes(kept)]
    return [*new, *(kept.x.new_empty(shape) for shape in state)]


def rnn_backward(*arguments: Any) -> list[Tensor]:
    """The gradients of `INPUTS` but the last three, from the arguments that `split` names."""
    kept, of_outputs, options, to_x, backend = split(arguments)
    kept = Kept(*map(whole, kept))
    sizes = sizes_of_kept(options, kept)
    shapes = output_shapes(options, kept.x.shape[0], sizes)
    y, o, *rest = own_together(of_outputs, kept.x, shapes)
    x, *weights = zeros_together(gradient_shapes(kept))
    to = Gradients(y, o, State(*rest[:5]), Buffer(*rest[5:]), x, Weights(*weights))
    from_strengths = of_outputs[OUTPUTS.index("s")] is not None
    KERNELS[backend].rnn_backward(options, sizes, kept, to, to_x, from_strengths)
    h, c, r, V, s, *buffer = rest
    n = kept.s0.shape[2]
    return [x, *weights, h, c, r, V[:, :, :n].clone(), s[:, :, :n].clone(), *buffer]


def tensors_named(names: Any, kind: str = "Tensor") -> str:
    return ", ".join(f"{kind} {name}" for name in names)


rnn_op = operator(
    "rnn",
    f"({tensors_named(INPUTS)}, {OPTIONS}, str backend) -> Tensor[]",
    rnn_forward,
    lambda *arguments: results(Tensor.new_empty, *arguments),
)
rnn_backward_op = operator(
    "rnn_backward",
    f"({tensors_named(Kept._fields)}, {tensors_named((f'g{name}' for name in OUTPUTS), 'Tensor?')}, "
    f"{OPTIONS}, bool to_x, str backend) -> Tensor[]",
    rnn_backward,
    fake_gradients,
)


class Fused(torch.autograd.Function):
    """`softstack::rnn` with its gradient."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> Any:
        return fold(Fused.apply, info, in_dims, *arguments)

    @staticmethod
    def forward(*arguments: Any) -> Any:
        return tuple(rnn_op(*arguments))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        tensors, ctx.options, ctx.backend = inputs[: len(INPUTS)], inputs[len(INPUTS) : -1], inputs[-1]
        outputs = outputs_of(output)
        ctx.mark_non_differentiable(outputs.tape, outputs.links)
        ctx.set_materialize_grads(False)  # the tape has none, and is large
        ctx.save_for_backward(*kept_of(inputs_of(tensors), outputs))

    @staticmethod
    def backward(ctx: Any, *of_outputs: Tensor | None) -> Any:
        kept = ctx.saved_tensors  # once: gradient checkpointing computes them again for each reading
        arguments = (*kept, *of_outputs[: len(OUTPUTS)], *ctx.options, ctx.needs_input_grad[0], ctx.backend)
        return (*once(rnn_backward_op, *arguments), *[None] * (3 + len(Options._fields) + 1))


class Direct(torch.autograd.Function):
    """The same without torch's dispatcher, which takes as long as a short sequence on a GPU."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Any:
        outputs = tuple(rnn_forward(*arguments))
        Fused.setup_context(ctx, arguments, outputs)
        return outputs

    @staticmethod
    def backward(ctx: Any, *of_outputs: Tensor | None) -> Any:
        if torch.is_grad_enabled():  # a second gradient may be asked for, and is refused
            return Fused.backward(ctx, *of_outputs)
        arguments = *ctx.saved_tensors, *of_outputs[: len(OUTPUTS)], *ctx.options, ctx.needs_input_grad[0]
        return (*rnn_backward(*arguments, ctx.backend), *[None] * (3 + len(Options._fields) + 1))


torch.library.register_autograd(
    "softstack::rnn",
    lambda ctx, gradients: Fused.backward(ctx, *gradients),
    setup_context=Fused.setup_context,
)


class Input(NamedTuple):
    """Where a buffered network's input comes from (§2.3)."""

    strengths: Tensor  # (P, B, n_in)
    i: Tensor  # (P, B) to be taken before the first step
    steps: int


def product_dtype(x: Tensor, core: int, weights: Weights, m: int, backend: str) -> torch.dtype | None:
    """What a large network's products are made in on a GPU, where x or autocast asks for less than float32.
    All else is computed in float32, sums included."""
    if backend != "gpu" or on_chip(core, m, weights.Wh.shape[-1], torch.float32):
        return None
    if x.dtype in HALVES:
        return x.dtype
    return torch.get_autocast_dtype("cuda") if x.is_cuda and torch.is_autocast_enabled("cuda") else None


def run(
    x: Tensor,
    weights: Weights,
    start: State,
    lengths: Tensor | None,
    core: str,
    memory: str,
    buffer: Input | None,
    disturbance: Disturbance | None,
    backend: str,
    choices: int = 0,
    depth: int = 0,
) -> Outputs:
    """Each of P models over its own sequences, x (P, B, T, k), or what is in its input buffer. `lengths`
    (P, B) counts steps."""
    P, B, T, _ = x.shape
    strengths, i, steps = buffer or Input(x.new_zeros(P, B, 0), x.new_zeros(P, B), T)
    ragged, buffered, disturbed = lengths is not None, buffer is not None, disturbance is not None
    kind = (MEMORIES | UNBUFFERED)[memory]
    options = Options(CORES[core], kind, steps, ragged, buffered, disturbed, choices, depth)
    if disturbance is None:
        disturbance = Disturbance(x.new_zeros(P, B, 0), x.new_zeros(P, B, 0, 0))
    elif lengths is not None:  # padding is left alone
        live = torch.arange(steps, device=x.device) < lengths.to(x.device).unsqueeze(-1)
        keep, noise = disturbance
        disturbance = Disturbance(torch.where(live, keep, 1.0), noise * live.unsqueeze(-1))
    if lengths is None:
        lengths = torch.full((P, B), steps, device=x.device)
    narrow = product_dtype(x, options.core, weights, start.r.shape[-1], backend)
    tensors = flat((x, weights, start, strengths, i, disturbance))
    if x.dtype in HALVES:
        tensors = [tensor.float() for tensor in tensors]
    if narrow is not None:
        for name in ("W", "Wh", "Wo"):
            tensors[INPUTS.index(name)] = getattr(weights, name).to(narrow)
    tensors.append(lengths.to(x.device, torch.int64))
    refuse_tangents(tensors)
    function = Direct if plain(*tensors) else Fused
    *outputs, tape, links = function.apply(*tensors, *options, backend)  # type: ignore[no-untyped-call]  # torch's apply
    if x.dtype in HALVES:
        outputs = [tensor.to(x.dtype) for tensor in outputs]
    return outputs_of((*outputs, tape, links))
