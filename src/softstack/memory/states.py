"""Functions of every tensor in a state. States are nested NamedTuples of tensors."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.utils._pytree import _register_namedtuple

from softstack import checks
from softstack.errors import BadInput

S = TypeVar("S")
Kind = TypeVar("Kind", bound=type)


def storable(kind: Kind) -> Kind:
    """A class of states that `torch.export.save` can write and `torch.load` will read: tuples of tensors that
    run no code."""
    _register_namedtuple(kind, serialized_type_name=f"softstack.{kind.__name__}")
    torch.serialization.add_safe_globals([kind])
    return kind


def leaf_by_leaf(function: Callable[..., Any], state: S, *others: S) -> S:
    """A function applied to each tensor of a state, with those in the same place of other states. PyTorch's
    tree_map does it for all kinds of containers, and would make a padded step a fifth slower."""
    if not isinstance(state, tuple):
        return cast(S, function(state, *others))
    parts = [leaf_by_leaf(function, *leaves) for leaves in zip(state, *others, strict=True)]
    return cast(S, type(state)(*parts) if hasattr(state, "_fields") else tuple(parts))


def detach(state: S) -> S:
    """The same state without its history: what truncated backpropagation goes on from. States of networks
    have it as a method, too."""
    if not isinstance(state, tuple):
        raise BadInput(f"a state is a tuple of tensors, as networks give it; got {type(state).__name__}")
    return leaf_by_leaf(Tensor.detach, state)


def compact(state: S) -> S:
    """The same state without cells that are empty in every way: what it reads from now on is the same.

    A memory grows by a cell at each step. Its state may say how it is made smaller, by a method `compact`;
    other parts stay as they are.
    """
    if isinstance(state, Tensor):
        return state
    if not isinstance(state, tuple):
        raise BadInput(f"a state is a tuple of tensors, as networks give it; got {type(state).__name__}")
    own: Any = getattr(state, "compact", None)
    if own is not None:
        return cast(S, own())
    parts = [compact(part) for part in state]
    return cast(S, type(state)(*parts) if hasattr(state, "_fields") else tuple(parts))


def kept(live: Tensor, new: S, old: S) -> S:
    """Leaf by leaf, `new` where live (B,) and `old` elsewhere: a padded step changes nothing.

    A leaf that has grown keeps the old numbers in front, and zeros in the cells that are new.
    """
    return leaf_by_leaf(lambda a, b: only_where(live, a, _grown(b, a)), new, old)


def cut_off(live: Tensor, parts: S) -> S:
    """The same numbers, with no gradient where not live (B,): what a padded step makes of them may be no
    number, and a gradient of 0 that goes through it would be none either."""
    return leaf_by_leaf(lambda part: only_where(live, part, part.detach()), parts)


def _grown(old: Tensor, new: Tensor) -> Tensor:
    if old.shape == new.shape:
        return old
    if any(now < was for was, now in zip(old.shape, new.shape, strict=True)):
        raise BadInput(
            f"a state of {tuple(old.shape)} became {tuple(new.shape)} in a step: a state may grow but not "
            "shrink, or sequences that are over would lose what they hold"
        )
    more = [size for was, now in zip(old.shape, new.shape, strict=True) for size in (now - was, 0)]
    return pad(old, more[::-1])


def only_where(live: Tensor, new: Tensor, old: Tensor | float = 0.0) -> Tensor:
    """`new` where live and `old` elsewhere; live (B,) or (B, T) lacks the last axes of the others."""
    return torch.where(live[(..., *[None] * (new.ndim - live.ndim))], new, old)


def running(lengths: Tensor, x: Tensor) -> Tensor:
    """(B, T): whether step t of x (B, T, k) comes before the end of its sequence, or is padding."""
    checks.lengths(lengths, x)
    steps = torch.arange(x.shape[-2], device=x.device)
    return steps < lengths.to(x.device).unsqueeze(-1)


def full_precision(x: Tensor) -> AbstractContextManager[Any]:
    """Strengths are summed over many steps: under autocast a memory still computes in its own dtype."""
    device = x.device.type
    autocast = device != "meta" and torch.is_autocast_enabled(device)  # the meta device has no autocast
    return torch.autocast(device, enabled=False) if autocast else nullcontext()
