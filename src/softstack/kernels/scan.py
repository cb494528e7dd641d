"""stack_scan and queue_scan as PyTorch operators: `softstack::scan` and its backward."""

from typing import Any

import torch
from torch import Tensor

from softstack.kernels import KERNELS
from softstack.kernels.operators import New, empty, once, operator, own, plain, whole
from softstack.kernels.tuples import Log, Steps

HALVES = (torch.bfloat16, torch.float16)  # what numpy or a sum over many steps cannot do: done in float32
LOGS = ("cpu",)  # backends that need a log; others make again what they need


def results(
    new: New,
    v: Tensor,
    u: Tensor,
    d: Tensor,
    V0: Tensor,
    s0: Tensor,
    lengths: Tensor,
    lifo: bool,
    backend: str,
) -> list[Tensor]:
    (B, T, m), N = v.shape, V0.shape[1] + v.shape[1]
    cells, steps = (N, T + 1) if backend in LOGS else (0, 0)
    log = Log(
        new(u, (B, cells), dtype=torch.int32),
        new(u, (B, cells)),
        new(u, (B, steps), dtype=torch.int32),
        new(u, (B, steps)),
    )
    return [new(v, (B, T, m)), new(v, (B, N, m)), new(u, (B, N)), *log]


def scan_forward(
    v: Tensor, u: Tensor, d: Tensor, V0: Tensor, s0: Tensor, lengths: Tensor, lifo: bool, backend: str
) -> list[Tensor]:
    """v (B, T, m), u and d (B, T), V0 (B, n, m), s0 (B, n), lengths (B,). Strengths may be of a wider dtype.

    r (B, T, m), the final V (B, N, m) and s (B, N), and the log for the backward pass.
    """
    r, V, s, *log = results(empty, v, u, d, V0, s0, lengths, lifo, backend)
    n = V0.shape[1]
    V[:, n:] = v
    if n:
        V[:, :n] = V0
    steps = Steps(V, *map(whole, (u, d, s0, lengths)))
    KERNELS[backend].scan_forward(steps, lifo, r, s, Log(*log))
    return [r, V, s, *log]


def scan_backward(
    u: Tensor, d: Tensor, s0: Tensor, lengths: Tensor, V: Tensor, s: Tensor,
    link: Tensor, level: Tensor, first: Tensor, top: Tensor,
    gr: Tensor | None, gV: Tensor | None, gs: Tensor | None, lifo: bool, backend: str,
) -> list[Tensor]:  # fmt: skip
    """The gradients of V, u, d and s0, from those of r and of the final V and s, where there are any."""
    (B, N, m), T = V.shape, u.shape[1]
    to_V, to_s = own(gV, V, (B, N, m)), own(gs, u, (B, N))
    to_u, to_d = empty(u, (B, T)), empty(u, (B, T))
    gr = V.new_zeros(B, T, m) if gr is None else whole(gr)
    steps = Steps(*map(whole, (V, u, d, s0, lengths)))
    log = Log(*map(whole, (link, level, first, top)))
    KERNELS[backend].scan_backward(steps, lifo, whole(s), log, gr, to_s, to_V, to_u, to_d)
    return [to_V, to_u, to_d, to_s[:, : N - T].clone()]


TENSORS = ", ".join(f"Tensor {name}" for name in ("v", "u", "d", "V0", "s0", "lengths"))
KEPT = ", ".join(f"Tensor {name}" for name in ("u", "d", "s0", "lengths", "V", "s", *Log._fields))
scan_op = operator(
    "scan",
    f"({TENSORS}, bool lifo, str backend) -> Tensor[]",
    scan_forward,
    lambda *arguments: results(Tensor.new_empty, *arguments),
)
scan_backward_op = operator(
    "scan_backward",
    f"({KEPT}, Tensor? gr, Tensor? gV, Tensor? gs, bool lifo, str backend) -> Tensor[]",
    scan_backward,
    lambda u, d, s0, lengths, V, *_: [z.new_empty(z.shape) for z in (V, u, d, s0)],
)


class Scan(torch.autograd.Function):
    """`softstack::scan` with its gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*arguments: Any) -> Any:
        return tuple(scan_op(*arguments))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        _, u, d, V0, s0, lengths, ctx.lifo, ctx.backend = inputs
        _, V, s, *log = output
        ctx.n = V0.shape[1]
        ctx.mark_non_differentiable(*log)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(u, d, s0, lengths, V, s, *log)

    @staticmethod
    def backward(
        ctx: Any, gr: Tensor | None, gV: Tensor | None, gs: Tensor | None, *_: None
    ) -> tuple[Tensor | None, ...]:
        gV, gu, gd, gs = once(scan_backward_op, *ctx.saved_tensors, gr, gV, gs, ctx.lifo, ctx.backend)
        return gV[:, ctx.n :], gu, gd, gV[:, : ctx.n], gs, None, None, None


class Direct(torch.autograd.Function):
    """The same without torch's dispatcher, which takes longer than a short scan on a GPU."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Any:
        outputs = tuple(scan_forward(*arguments))
        Scan.setup_context(ctx, arguments, outputs)
        return outputs

    @staticmethod
    def backward(ctx: Any, gr: Tensor | None, gV: Tensor | None, gs: Tensor | None, *_: None) -> Any:
        if torch.is_grad_enabled():
            return Scan.backward(ctx, gr, gV, gs)
        arguments = (*ctx.saved_tensors, gr, gV, gs, ctx.lifo, ctx.backend)
        gV, gu, gd, gs = scan_backward(*arguments)
        return gV[:, ctx.n :], gu, gd, gV[:, : ctx.n], gs, None, None, None


torch.library.register_autograd(
    "softstack::scan", lambda ctx, gradients: Scan.backward(ctx, *gradients), setup_context=Scan.setup_context
)


def scan(
    v: Tensor, u: Tensor, d: Tensor, V0: Tensor, s0: Tensor, lengths: Tensor | None, lifo: bool, backend: str
) -> tuple[Tensor, Tensor, Tensor]:
    """r (B, T, m), and the final V (B, N, m) and s (B, N); the batch axis may be missing."""
    tensors = [v, u, d, V0, s0]
    if v.ndim == 2:
        tensors = [x.unsqueeze(0) for x in tensors]
    if v.dtype in HALVES:  # a GPU takes vectors as they are and computes in float32 all the same
        kept = (0, 3) if v.is_cuda else ()
        tensors = [x if k in kept else x.float() for k, x in enumerate(tensors)]
    B, T, _ = tensors[0].shape
    lengths = (
        torch.full((B,), T, device=v.device)
        if lengths is None
        else lengths.to(v.device, torch.int64).reshape(B)
    )
    function = Direct if plain(*tensors, lengths) else Scan
    r, V, s, *_ = function.apply(*tensors, lengths, lifo, backend)  # type: ignore[no-untyped-call]  # torch's apply
    if v.dtype in HALVES:
        r, V, s = r.to(v.dtype), V.to(v.dtype), s.to(u.dtype)
    return (r, V, s) if v.ndim == 3 else (r.squeeze(0), V.squeeze(0), s.squeeze(0))
