"""stack_scan and queue_scan as PyTorch operators: `softstack::scan` and its backward."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from softstack.kernels import KERNELS
from softstack.kernels.backend import LOG
from softstack.kernels.operators import fold, once, operator, plain, refuse_tangents
from softstack.kernels.tensors import New, empty, whole
from softstack.kernels.tuples import Steps

HALVES = (torch.bfloat16, torch.float16)  # what numpy or a sum over many steps cannot do: done in float32


def results(new: New, v: Tensor, u: Tensor, V0: Tensor | None, backend: str) -> list[Tensor]:
    """r, V, s and the log, for a kernel to fill."""
    B, T, m = v.shape
    N = T if V0 is None else V0.shape[1] + T
    parts = KERNELS[backend].log_parts(B, N, T, u.dtype)
    log = [new(u, shape, dtype=dtype) for shape, dtype in parts]
    return [new(v, (B, T, m)), new(v, (B, N, m)), new(u, (B, N)), *log]


def scan_forward(
    v: Tensor, u: Tensor, d: Tensor, V0: Tensor | None, s0: Tensor | None, lengths: Tensor | None,
    lifo: bool, backend: str, checked: bool = False, new: New = empty,
) -> list[Tensor]:  # fmt: skip
    """v (B, T, m), u and d (B, T), V0 (B, n, m), s0 (B, n), lengths (B,). Strengths may be of a wider dtype.

    r (B, T, m), the final V (B, N, m) and s (B, N), and the log for the backward pass.
    """
    r, V, s, *log = results(new, v, u, V0, backend)
    steps = Steps(V, whole(u), whole(d), any_whole(s0), any_whole(lengths))
    KERNELS[backend].scan_forward(whole(v), any_whole(V0), steps, lifo, r, s, log, checked)
    return [r, V, s, *log]


def any_whole(x: Tensor | None) -> Tensor | None:
    return None if x is None else whole(x)


def scan_backward(
    u: Tensor, d: Tensor, s0: Tensor | None, lengths: Tensor | None, V: Tensor, s: Tensor,
    log: Sequence[Tensor], gr: Tensor | None, gV: Tensor | None, gs: Tensor | None, lifo: bool, backend: str,
) -> list[Tensor]:  # fmt: skip
    """The gradients of V, u, d and s0, from those of r and of the final V and s, where there are any."""
    (B, _, m), T = V.shape, u.shape[1]
    gr = V.new_zeros(B, T, m) if gr is None else whole(gr)
    steps = Steps(whole(V), whole(u), whole(d), any_whole(s0), any_whole(lengths))
    log = [*map(whole, log)]
    return KERNELS[backend].scan_backward(steps, lifo, whole(s), log, gr, any_whole(gV), any_whole(gs))


def filled_up(outputs: list[Tensor]) -> list[Tensor]:
    """Results with a log of LOG parts, whatever the backend: an operator has one schema."""
    like = outputs[2]  # s (B, N)
    missing = 3 + LOG - len(outputs)
    return [*outputs, *(like.new_empty(like.shape[0], 0) for _ in range(missing))]


def operator_forward(
    v: Tensor, u: Tensor, d: Tensor, V0: Tensor, s0: Tensor, lengths: Tensor, lifo: bool, backend: str
) -> list[Tensor]:
    """A GPU's log has numbers that nobody writes: zeros, for an operator's results are to be the same each
    time."""
    new = empty if backend == "cpu" else Tensor.new_zeros
    return filled_up(scan_forward(v, u, d, V0, s0, lengths, lifo, backend, new=new))


def fake_results(
    v: Tensor, u: Tensor, d: Tensor, V0: Tensor, s0: Tensor, lengths: Tensor, lifo: bool, backend: str
) -> list[Tensor]:
    return filled_up(results(Tensor.new_empty, v, u, V0, backend))


def operator_backward(
    u: Tensor, d: Tensor, s0: Tensor, lengths: Tensor, V: Tensor, s: Tensor, *rest: Any
) -> list[Tensor]:
    log, gradients = rest[:LOG], rest[LOG:]
    count = len(KERNELS[rest[-1]].log_parts(0, 0, 0, u.dtype))
    return scan_backward(u, d, s0, lengths, V, s, log[:count], *gradients)


TENSORS = ", ".join(f"Tensor {name}" for name in ("v", "u", "d", "V0", "s0", "lengths"))
KEPT = ", ".join(
    f"Tensor {name}" for name in ("u", "d", "s0", "lengths", "V", "s", *(f"log{k}" for k in range(LOG)))
)
scan_op = operator("scan", f"({TENSORS}, bool lifo, str backend) -> Tensor[]", operator_forward, fake_results)
scan_backward_op = operator(
    "scan_backward",
    f"({KEPT}, Tensor? gr, Tensor? gV, Tensor? gs, bool lifo, str backend) -> Tensor[]",
    operator_backward,
    lambda u, d, s0, lengths, V, *_: [z.new_empty(z.shape) for z in (V, u, d, s0)],
)


class Scan(torch.autograd.Function):
    """`softstack::scan` with its gradient."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> Any:
        return fold(Scan.apply, info, in_dims, *arguments)

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
    """The same without torch's dispatcher, which takes longer than a short scan on a GPU. V0, s0 and
    `lengths` may be None, and strengths may be checked."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Any:
        _, u, d, V0, s0, lengths, ctx.lifo, ctx.backend, _ = arguments
        r, V, s, *log = scan_forward(*arguments)
        ctx.n = None if V0 is None else V0.shape[1]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(u, d, s0, lengths, V, s, *log)
        return r, V, s

    @staticmethod
    def backward(ctx: Any, gr: Tensor | None, gV: Tensor | None, gs: Tensor | None) -> Any:
        u, d, s0, lengths, V, s, *log = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second gradient may be asked for, and is refused
            lengths = all_steps(u) if lengths is None else lengths
            s0 = u.new_zeros(u.shape[0], 0) if s0 is None else s0
            saved = u, d, s0, lengths, V, *filled_up([u, V, s, *log])[2:]
            to_V, to_u, to_d, to_s = once(scan_backward_op, *saved, gr, gV, gs, ctx.lifo, ctx.backend)
        else:
            to_V, to_u, to_d, to_s = scan_backward(
                u, d, s0, lengths, V, s, log, gr, gV, gs, ctx.lifo, ctx.backend
            )
        if ctx.n is None:
            return to_V, to_u, to_d, None, None, None, None, None, None
        return to_V[:, ctx.n :], to_u, to_d, to_V[:, : ctx.n], to_s, None, None, None, None


torch.library.register_autograd(
    "softstack::scan", lambda ctx, gradients: Scan.backward(ctx, *gradients), setup_context=Scan.setup_context
)


def all_steps(u: Tensor) -> Tensor:
    """The lengths (B,) of sequences u (B, T) that are not padded."""
    return torch.full(u.shape[:1], u.shape[1], device=u.device)


def checks_strengths(backend: str, *tensors: Tensor | None) -> bool:
    """Whether a scan of such tensors can look at strengths itself, so that nobody else needs to."""
    here = [x for x in tensors if x is not None]
    return backend == "gpu" and here[0].is_cuda and plain(*here)


def scan(
    v: Tensor,
    u: Tensor,
    d: Tensor,
    V0: Tensor | None,
    s0: Tensor | None,
    lengths: Tensor | None,
    lifo: bool,
    backend: str,
    checked: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """r (B, T, m), and the final V (B, N, m) and s (B, N); the batch axis may be missing. `checked` where
    `checks_strengths`: strengths that are negative or not finite are an error."""
    v_dtype, u_dtype = v.dtype, u.dtype
    tensors = [v, u, d] if V0 is None or s0 is None else [v, u, d, V0, s0]
    refuse_tangents(tensors)
    batched = v.ndim == 3
    if not batched:
        tensors = [x.unsqueeze(0) for x in tensors]
    if v_dtype in HALVES:  # a GPU takes vectors as they are and computes in float32 all the same
        as_they_are = (0, 3) if v.is_cuda else ()
        tensors = [x if k in as_they_are else x.float() for k, x in enumerate(tensors)]
    v, u, d, *state = tensors
    if lengths is not None:
        lengths = lengths.to(v.device, torch.int64).reshape(v.shape[0])
    direct = checked or plain(*tensors, *(() if lengths is None else (lengths,)))
    if backend != "gpu" or not direct:  # only there may a state and lengths be missing
        state = state or [v.new_zeros(v.shape[0], 0, v.shape[2]), u.new_zeros(u.shape[0], 0)]
        lengths = all_steps(u) if lengths is None else lengths
    V0, s0 = state or (None, None)
    if direct:
        r, V, s = Direct.apply(v, u, d, V0, s0, lengths, lifo, backend, checked)  # type: ignore[no-untyped-call]  # torch's apply
    else:
        r, V, s, *_ = Scan.apply(v, u, d, V0, s0, lengths, lifo, backend)  # type: ignore[no-untyped-call]  # torch's apply
    if v_dtype in HALVES:
        r, V, s = r.to(v_dtype), V.to(v_dtype), s.to(u_dtype)
    return (r, V, s) if batched else (r.squeeze(0), V.squeeze(0), s.squeeze(0))
