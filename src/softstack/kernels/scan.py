"""stack_scan and queue_scan as PyTorch operators: `softstack::scan` and its backward.

Each is a custom operator, so that torch.compile and torch.export see one node, under an autograd.Function, so
that torch.func does. A vmapped axis is folded into the batch.
"""

from typing import Any

import torch
from torch import Tensor

from softstack.errors import BadInput

Log = tuple[Tensor, Tensor, Tensor, Tensor]


@torch.library.custom_op("softstack::scan", mutates_args=(), device_types="cpu")
def scan_op(
    V: Tensor, u: Tensor, d: Tensor, s0: Tensor, lengths: Tensor, lifo: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """V (B, N, m) with the vectors to push in its last T slots, u and d (B, T), s0 (B, N - T), lengths (B,).

    r (B, T, m), the final strengths (B, N), and the log for the backward pass: gone, after, first, old.
    """
    from softstack.kernels import cpu_scan

    B, _, m = V.shape
    T = u.shape[1]
    V, u, d, lengths = (x.contiguous() for x in (V, u, d, lengths))
    s = torch.cat((s0, s0.new_empty(B, T)), 1)
    log = _log(V, T)
    r = V.new_empty(B, T, m)
    cpu_scan.forward(*(x.numpy() for x in (V, u, d, lengths)), lifo, *(x.numpy() for x in (r, s, *log)))
    return r, s, *log


def _log(V: Tensor, T: int) -> Log:
    """gone (0 for a cell that never is), after, first and old."""
    B, N, _ = V.shape
    return (
        V.new_zeros(B, N),
        V.new_empty(B, N, dtype=torch.int32),
        V.new_empty(B, T + 1, dtype=torch.int32),
        V.new_empty(B, T),
    )


@scan_op.register_fake
def _(V: Tensor, u: Tensor, d: Tensor, s0: Tensor, lengths: Tensor, lifo: bool) -> Any:
    T = u.shape[1]
    return V.new_empty(V.shape[0], T, V.shape[2]), V.new_empty(V.shape[:2]), *_log(V, T)


@torch.library.custom_op("softstack::scan_backward", mutates_args=(), device_types="cpu")
def scan_backward_op(
    V: Tensor,
    lengths: Tensor,
    lifo: bool,
    s: Tensor,
    gone: Tensor,
    after: Tensor,
    first: Tensor,
    old: Tensor,
    gr: Tensor,
    gs: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of V, u, d and s0, from those of r and of the final strengths."""
    from softstack.kernels import cpu_scan

    (B, T), n = old.shape, V.shape[1] - old.shape[1]
    V, lengths, gr = (x.contiguous() for x in (V, lengths, gr))
    s, gs = s.clone(memory_format=torch.contiguous_format), gs.clone(memory_format=torch.contiguous_format)
    gV, gu, gd = torch.zeros_like(V), V.new_empty(B, T), V.new_empty(B, T)
    log = (x.contiguous().numpy() for x in (s, gone, after, first, old))
    cpu_scan.backward(V.numpy(), lengths.numpy(), lifo, *log, *(x.numpy() for x in (gr, gs, gV, gu, gd)))
    return gV, gu, gd, gs[:, :n].clone()


@scan_backward_op.register_fake
def _(V: Tensor, lengths: Tensor, lifo: bool, s: Tensor, *rest: Tensor) -> Any:
    old = rest[3]
    shape = old.shape
    return (
        torch.empty_like(V),
        V.new_empty(shape),
        V.new_empty(shape),
        V.new_empty(V.shape[0], V.shape[1] - old.shape[1]),
    )


def fold(info: Any, in_dims: tuple[int | None, ...], arguments: tuple[Any, ...], op: Any) -> tuple[Any, Any]:
    """vmap of an operator whose tensors all begin with a batch axis: the new axis joins that one."""
    size = info.batch_size
    folded = []
    for x, dim in zip(arguments, in_dims, strict=True):
        if isinstance(x, Tensor):
            x = x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
            x = x.flatten(0, 1)
        folded.append(x)
    outputs = op(*folded)
    return tuple(x.unflatten(0, (size, -1)) for x in outputs), tuple(0 for _ in outputs)


scan_op.register_vmap(lambda info, in_dims, *x: fold(info, in_dims, x, scan_op))
scan_backward_op.register_vmap(lambda info, in_dims, *x: fold(info, in_dims, x, scan_backward_op))


class ScanBackward(torch.autograd.Function):
    """`softstack::scan_backward`, which has no gradient of its own, and says so."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        V: Tensor,
        lengths: Tensor,
        lifo: bool,
        s: Tensor,
        gone: Tensor,
        after: Tensor,
        first: Tensor,
        old: Tensor,
        gr: Tensor,
        gs: Tensor,
    ) -> Any:
        return scan_backward_op(V, lengths, lifo, s, gone, after, first, old, gr, gs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise BadInput("a fused kernel cannot be differentiated twice: use backend='reference', which can be")


class Scan(torch.autograd.Function):
    """`softstack::scan` with its gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        V: Tensor, u: Tensor, d: Tensor, s0: Tensor, lengths: Tensor, lifo: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        outputs: tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor] = scan_op(V, u, d, s0, lengths, lifo)
        return outputs

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        V, _, _, _, lengths, ctx.lifo = inputs
        _, s, *log = output
        ctx.mark_non_differentiable(*log)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(V, lengths, s, *log)

    @staticmethod
    def backward(ctx: Any, gr: Tensor | None, gs: Tensor | None, *_: Tensor) -> tuple[Tensor | None, ...]:
        V, lengths, s, *log = ctx.saved_tensors
        gr = V.new_zeros(V.shape[0], log[-1].shape[1], V.shape[2]) if gr is None else gr
        gs = torch.zeros_like(s) if gs is None else gs
        arguments = (V, lengths, ctx.lifo, s, *log, gr, gs)
        # to be differentiated again it must say that it cannot be; that costs, so only where it may be
        made = ScanBackward.apply(*arguments) if torch.is_grad_enabled() else scan_backward_op(*arguments)  # type: ignore[no-untyped-call]  # torch's apply
        return (*made, None, None)


def scan(
    V: Tensor, u: Tensor, d: Tensor, s0: Tensor, lengths: Tensor | None, lifo: bool
) -> tuple[Tensor, Tensor]:
    """r (B, T, m) and the final strengths (B, N); the batch axis may be missing."""
    if V.ndim == 2:
        lengths = None if lengths is None else lengths.unsqueeze(0)
        r, s = scan(V.unsqueeze(0), u.unsqueeze(0), d.unsqueeze(0), s0.unsqueeze(0), lengths, lifo)
        return r.squeeze(0), s.squeeze(0)
    if lengths is None:
        lengths = torch.full((V.shape[0],), u.shape[1], device=V.device)
    r, s, *_ = Scan.apply(V, u, d, s0, lengths.to(V.device, torch.int64), lifo)  # type: ignore[no-untyped-call]  # torch's apply
    return r, s
