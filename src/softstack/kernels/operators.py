"""PyTorch operators: how they are registered, what they do under vmap, and that they have one gradient.

Each is an operator, so that torch.compile and torch.export see one node, under an autograd.Function, so
that torch.func does. A vmapped axis is folded into the first.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import TransformType
from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters
from torch.autograd import forward_ad

from softstack.errors import BadInput
from softstack.kernels import KERNELS


def operator(name: str, schema: str, function: Callable[..., Any], fake: Callable[..., Any]) -> Any:
    """The operator softstack::name, whose results look like those of `fake`. As torch.library.custom_op, but
    that has the first call import torch._dynamo: a second of every process."""
    full = f"softstack::{name}"
    torch.library.define(full, schema, tags=(torch.Tag.pt2_compliant_tag,))
    torch.library.impl(full, sorted({"cpu", *(kernel.DEVICE for kernel in KERNELS.values())}), function)
    torch.library.register_fake(full, fake)
    op = getattr(torch.ops.softstack, name).default
    torch.library.register_vmap(full, partial(fold, op))
    return op


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
    # a tuple: in vmap(grad) a list would lose its gradients without a word
    return tuple(x.unflatten(0, (size, -1)) for x in outputs), tuple(0 for _ in outputs)


class Once(torch.autograd.Function):
    """An operator that has no gradient, and says so."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> Any:
        return fold(Once.apply, info, in_dims, *arguments)

    @staticmethod
    def forward(op: Any, *arguments: Any) -> Any:
        return tuple(op(*arguments))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise BadInput("a fused kernel cannot be differentiated twice: use backend='reference', which can be")


def once(op: Any, *arguments: Any) -> Any:
    """An operator's results, in a backward pass. That it cannot be differentiated again is noted only where
    it may be: noting takes time."""
    return Once.apply(op, *arguments) if torch.is_grad_enabled() else op(*arguments)  # type: ignore[no-untyped-call]  # torch's apply


PLAIN = (Tensor, torch.nn.Parameter)


def plain(*tensors: Tensor) -> bool:
    """Whether nothing but autograd looks at a call: it is not traced, transformed or watched."""
    return (
        all(type(x) in PLAIN for x in tensors)
        and not torch.compiler.is_compiling()
        and torch._C._functorch.peek_interpreter_stack() is None
        and not torch._C._len_torch_dispatch_stack()
    )


def refuse_tangents(tensors: Sequence[Tensor]) -> None:
    """Say that there is no jvp. A `jvp` of the functions themselves would keep torch.compile from tracing."""
    if torch.compiler.is_compiling() or forward_ad._current_level < 0:
        return
    if any(map(_has_tangent, tensors)):
        raise BadInput(
            "fused kernels have no forward-mode derivatives (torch.func.jvp, jacfwd, hessian): use "
            "backend='reference'"
        )


def _has_tangent(x: Tensor) -> bool:
    """Whether x may have a tangent: under another transform than jvp that cannot be seen."""
    if not x.is_floating_point():
        return False
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor(x)
    return forward_ad.unpack_dual(x).tangent is not None or (
        wrapped
        and any(transform.key() == TransformType.Jvp for transform in retrieve_all_functorch_interpreters())
    )
