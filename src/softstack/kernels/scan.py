"""stack_scan and queue_scan as PyTorch operators: `softstack::scan` and its backward.

Each is an operator, so that torch.compile and torch.export see one node, under an autograd.Function, so
that torch.func does. A vmapped axis is folded into the batch.
"""

import importlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from softstack.errors import BadInput

Six = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def native(name: str, gpu: bool) -> Any:
    """The compiled implementation: cpu/ or gpu/, scan or rnn."""
    return importlib.import_module(f"softstack.kernels.{'gpu' if gpu else 'cpu'}.{name}")


def arrays(tensors: Iterable[Tensor], gpu: bool) -> list[Any]:
    """As that takes them."""
    return [x if gpu else x.detach().numpy() for x in tensors]


def fold(op: Any, info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> tuple[Any, Any]:
    """vmap of an operator whose tensors all begin with a batch axis: the new axis joins that one."""
    size = info.batch_size
    folded = []
    for x, dim in zip(arguments, in_dims, strict=True):
        if isinstance(x, Tensor):
            x = x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
            x = x.flatten(0, 1)
        folded.append(x)
    outputs = op(*folded)
    return type(outputs)(x.unflatten(0, (size, -1)) for x in outputs), type(outputs)(0 for _ in outputs)


def operator(name: str, fake: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """The operator softstack::name, whose results look like those of `fake`. As torch.library.custom_op, but
    that has the first call import torch._dynamo: a second of every process."""

    def register(function: Callable[..., Any]) -> Any:
        full = f"softstack::{name}"
        schema = torch.library.infer_schema(function, mutates_args=())
        torch.library.define(full, schema, tags=(torch.Tag.pt2_compliant_tag,))
        torch.library.impl(full, ("cpu", "cuda"), function)
        torch.library.register_fake(full, fake)
        op = getattr(torch.ops.softstack, name).default
        torch.library.register_vmap(full, partial(fold, op))
        return op

    return register


def _results(V: Tensor, u: Tensor, d: Tensor, s0: Tensor, lengths: Tensor, lifo: bool, gpu: bool) -> Six:
    (B, N, m), T = V.shape, u.shape[1]
    link, first = (V.new_empty(B, length, dtype=torch.int32) for length in (N, T + 1))
    return V.new_empty(B, T, m), V.new_empty(B, N), link, V.new_empty(B, N), first, V.new_empty(B, T + 1)


@operator("scan", _results)
def scan_op(V: Tensor, u: Tensor, d: Tensor, s0: Tensor, lengths: Tensor, lifo: bool, gpu: bool) -> Six:
    """V (B, N, m) with the vectors to push in its last T slots, u and d (B, T), s0 (B, N - T), lengths (B,).

    r (B, T, m), the final strengths (B, N), and the log for the backward pass: link, level,
    first and top.
    """
    given = [x.contiguous() for x in (V, u, d, s0, lengths)]
    made = _results(V, u, d, s0, lengths, lifo, gpu)
    native("scan", gpu).forward(*arrays(given, gpu), lifo, *arrays(made, gpu))
    return made


def _gradients(
    V: Tensor, u: Tensor, d: Tensor, s0: Tensor, lengths: Tensor, lifo: bool, gpu: bool,
    s: Tensor, link: Tensor, level: Tensor, first: Tensor, top: Tensor, gr: Tensor, gs: Tensor,
) -> Any:  # fmt: skip
    (B, T), N = u.shape, V.shape[1]
    return V.new_empty(V.shape), u.new_empty(B, T), u.new_empty(B, T), s.new_empty(B, N - T)


@operator("scan_backward", _gradients)
def scan_backward_op(
    V: Tensor, u: Tensor, d: Tensor, s0: Tensor, lengths: Tensor, lifo: bool, gpu: bool,
    s: Tensor, link: Tensor, level: Tensor, first: Tensor, top: Tensor, gr: Tensor, gs: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of V, u, d and s0, from those of r and of the final strengths."""
    given = [x.contiguous() for x in (V, u, d, s0, lengths, s, link, level, first, top, gr)]
    gs = gs.clone(memory_format=torch.contiguous_format)
    made = gs, torch.zeros_like(given[0]), torch.empty_like(given[1]), torch.empty_like(given[1])
    ready = arrays((*given, *made), gpu)
    native("scan", gpu).backward(*ready[:5], lifo, *ready[5:])
    gs, gV, gu, gd = made
    return gV, gu, gd, gs[:, : V.shape[1] - u.shape[1]].clone()


class ScanBackward(torch.autograd.Function):
    """`softstack::scan_backward`, which has no gradient of its own, and says so."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        V: Tensor, u: Tensor, d: Tensor, s0: Tensor, lengths: Tensor, lifo: bool, gpu: bool,
        s: Tensor, link: Tensor, level: Tensor, first: Tensor, top: Tensor, gr: Tensor, gs: Tensor,
    ) -> Any:  # fmt: skip
        return scan_backward_op(V, u, d, s0, lengths, lifo, gpu, s, link, level, first, top, gr, gs)

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
    def forward(V: Tensor, u: Tensor, d: Tensor, s0: Tensor, lengths: Tensor, lifo: bool, gpu: bool) -> Any:
        return scan_op(V, u, d, s0, lengths, lifo, gpu)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        *given, ctx.lifo, ctx.gpu = inputs
        _, s, *log = output
        ctx.mark_non_differentiable(*log)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*given, s, *log)

    @staticmethod
    def backward(ctx: Any, gr: Tensor | None, gs: Tensor | None, *_: Tensor) -> tuple[Tensor | None, ...]:
        V, u, d, s0, lengths, s, *log = ctx.saved_tensors
        gr = V.new_zeros(V.shape[0], u.shape[1], V.shape[2]) if gr is None else gr
        gs = torch.zeros_like(s) if gs is None else gs
        arguments = (V, u, d, s0, lengths, ctx.lifo, ctx.gpu, s, *log, gr, gs)
        # to be differentiated again it must say that it cannot be; that costs, so only where it may be
        made = ScanBackward.apply(*arguments) if torch.is_grad_enabled() else scan_backward_op(*arguments)  # type: ignore[no-untyped-call]  # torch's apply
        return (*made, None, None, None)


torch.library.register_autograd("softstack::scan", Scan.backward, setup_context=Scan.setup_context)


def scan(
    V: Tensor, u: Tensor, d: Tensor, s0: Tensor, lengths: Tensor | None, lifo: bool, gpu: bool
) -> tuple[Tensor, Tensor]:
    """r (B, T, m) and the final strengths (B, N); the batch axis may be missing."""
    if V.ndim == 2:
        lengths = None if lengths is None else lengths.unsqueeze(0)
        r, s = scan(V.unsqueeze(0), u.unsqueeze(0), d.unsqueeze(0), s0.unsqueeze(0), lengths, lifo, gpu)
        return r.squeeze(0), s.squeeze(0)
    if lengths is None:
        lengths = torch.full((V.shape[0],), u.shape[1], device=V.device)
    r, s, *_ = Scan.apply(V, u, d, s0, lengths.to(V.device, torch.int64), lifo, gpu)  # type: ignore[no-untyped-call]  # torch's apply
    return r, s
