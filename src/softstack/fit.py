"""Whether a fused kernel computes what a network's modules say. Where it would not, the reference runs.

A kernel stands for a cell's layers and never calls them. So it fits only if each of them is exactly ours: not
replaced, wrapped or parametrised, without hooks, and with plain tensors of the right shapes for weights.

This runs on every forward call, so it looks into the modules' own dictionaries: `layer.weight` takes four
times as long. Nothing is remembered from one call to the next, so nothing can be out of date.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as every_module
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from softstack.cell import Edits, StackCell, State
from softstack.controllers import GRU, LSTM, RNN, Heads, Linear
from softstack.kernels.gpu.layout import on_chip
from softstack.kernels.kinds import CORES, UNBUFFERED
from softstack.memory import Deque, Multipop, NoMemory, Queue, Stack, Superposition
from softstack.memory.protocol import Choice, Head

CORE_NAMES: dict[Any, str] = {Linear: "linear", RNN: "rnn", GRU: "gru", LSTM: "lstm"}
MEMORY_NAMES: dict[Any, str] = {
    Stack: "stack",
    Queue: "queue",
    NoMemory: "none",
    Superposition: "superposition",
    Multipop: "multipop",
    Deque: "deque",
}
GATES = {RNN: 1, GRU: 3, LSTM: 4}
PLAIN = (nn.Parameter, Tensor)
# what kernels stand for: somebody may put something else in its place, for a whole class
FORWARDS = {kind: kind.forward for kind in (*CORE_NAMES, StackCell, Heads, nn.Linear)}
STEPS = {kind: kind.step for kind in MEMORY_NAMES}


def why_not(cell: StackCell, x: Tensor, steps: int) -> str:
    """Why no kernel fits a call of `steps` steps with an input like x; "" where one does."""
    reason = why_not_cell(cell)
    if reason:
        return reason
    dtype = cell.heads.weight.dtype
    if x.dtype != dtype:
        return f"x is {x.dtype} and the parameters are {dtype}"
    if not steps or not x.numel():
        return "there is nothing to compute"
    if x.is_cuda and memory_name(cell.memory) in UNBUFFERED:
        return f"there is no kernel for the memory {type(cell.memory).__name__} on a GPU"
    if x.is_cuda and cell.buffered:
        core, hidden = CORES[CORE_NAMES[type(cell.core)]], cell.core.features
        if not on_chip(core, cell.memory.width, hidden, x.dtype):
            return "on a GPU, a buffered network with more weights than fit on one chip has no kernel"
    return ""


def why_not_cell(cell: StackCell) -> str:
    """The same for what the cell is made of."""
    core: Any = cell._modules["core"]
    heads: Any = cell._modules["heads"]
    memory = cell.memory
    if type(core) not in CORE_NAMES:
        return f"there is no kernel for the controller {type(core).__name__}"
    name = memory_name(memory)
    if not name or (name in UNBUFFERED and cell.buffered):
        return f"there is no kernel for the memory {type(memory).__name__}{_option(cell)}"
    if "step" in vars(memory) or type(memory).step is not STEPS[type(memory)]:
        return "the memory has a step of its own"
    reason = (
        _changed("cell", cell, StackCell)
        or _changed("cell.core", core, type(core))
        or _changed("cell.heads", heads, Heads)
    )
    if reason:
        return reason
    features = core.features
    outputs = sum(kind.size for kind in cell.head_kinds.values())
    like = heads._parameters.get("weight")
    reason = _foreign("cell.heads", heads, (outputs, features), like)
    gates = GATES.get(type(core), 0) * features
    for name, layer in core._modules.items():
        width = features if name == "from_hidden" else cell.input_size + memory.width
        reason = (
            reason
            or _changed(f"cell.core.{name}", layer, nn.Linear)
            or _foreign(f"cell.core.{name}", layer, (gates, width), like)
        )
    return reason or _hooked_everywhere()


def memory_name(memory: Any) -> str:
    """The name by which kernels know a memory; "" if none of them knows it."""
    if type(memory) is Superposition and memory.empty:
        return ""
    return MEMORY_NAMES.get(type(memory), "")


def choices(heads: Mapping[str, Head]) -> int:
    """How many actions a memory is told the probability of."""
    return sum(head.size for head in heads.values() if isinstance(head, Choice))


def overfull(cell: StackCell, state: State) -> str:
    """A state of more cells than the memory may have loses them in its first step."""
    if type(cell.memory) is not Superposition or cell.memory.depth is None:
        return ""
    return "the state is deeper than the memory" if state.memory.cells.shape[-2] > cell.memory.depth else ""


def _option(cell: StackCell) -> str:
    """For a memory that has kernels: what keeps this cell from using one."""
    if memory_name(cell.memory):
        return " with buffers"
    return f" that reads {cell.memory.empty} where nothing is" if type(cell.memory) is Superposition else ""


def _changed(name: str, layer: nn.Module, expected: type) -> str:
    """How a layer differs from what its class makes; "" if it does not."""
    if type(layer) is not expected:
        kind = type(layer).__name__
        if kind == expected.__name__:  # torch.ao has a Linear too
            kind = f"{type(layer).__module__}.{kind}"
        return f"{name} is a {kind}, not the {expected.__name__} that a kernel stands for"
    own = layer.__dict__
    if "forward" in own or "act" in own or expected.forward is not FORWARDS[expected]:
        return f"{name} has a forward of its own"
    if (
        own["_forward_hooks"]
        or own["_forward_pre_hooks"]
        or own["_backward_hooks"]
        or own["_backward_pre_hooks"]
    ):
        return f"{name} has a hook"
    return ""


def _foreign(name: str, layer: nn.Module, shape: tuple[int, int], like: Tensor | None) -> str:
    """Why a kernel cannot take a linear layer's parameters; "" if it can."""
    parameters = layer._parameters
    for part, expected in (("weight", shape), ("bias", shape[:1])):
        parameter = parameters.get(part)
        if parameter is None:
            return f"{name} has no {part}"
        if type(parameter) not in PLAIN and _overrides(parameter):
            return f"{name}.{part} is a {type(parameter).__name__}"
        if parameter.shape != expected:
            return f"{name}.{part} is {tuple(parameter.shape)}, not {expected}"
        if like is not None and (parameter.dtype != like.dtype or parameter.device != like.device):
            return f"{name}.{part} has another dtype or device than cell.heads.weight"
    return ""


def _overrides(parameter: Tensor) -> bool:
    """Whether a tensor's class overrides what functions do with it; those that torch traces with do not."""
    kind = type(parameter)
    return (
        is_traceable_wrapper_subclass(parameter)
        or kind.__torch_function__ is not torch._C._disabled_torch_function_impl
    )


def _hooked_everywhere() -> str:
    hooks = (
        every_module._global_forward_hooks
        or every_module._global_forward_pre_hooks
        or every_module._global_backward_hooks
        or every_module._global_backward_pre_hooks
    )
    return "a hook is set on every module" if hooks else ""


def kept(return_trace: bool, edit: Edits | None) -> str:
    """What only the reference can do for a call; "" if nothing."""
    return "a trace is kept step by step" if return_trace else "steps are edited" if edit else ""
