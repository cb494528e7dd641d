"""Whether a fused kernel computes what a network's modules say. Where it would not, the reference runs.

A kernel stands for a cell's layers and never calls them. So it fits only if each of them is exactly ours: not
replaced, wrapped or parametrised, without hooks, and with plain tensors for weights.
"""

from collections.abc import Iterator

from torch import Tensor, nn
from torch.nn.modules import module as every_module
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from softstack.cell import StackCell
from softstack.controllers import GRU, LSTM, RNN, Heads, Linear
from softstack.kernels.rnn import CORES, on_chip
from softstack.memory import NoMemory, Queue, Stack

CORE_NAMES: dict[type, str] = {Linear: "linear", RNN: "rnn", GRU: "gru", LSTM: "lstm"}
MEMORY_NAMES: dict[type, str] = {Stack: "stack", Queue: "queue", NoMemory: "none"}
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
GLOBAL_HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks")


def why_not(cell: StackCell, x: Tensor, steps: int) -> str:
    """Why no kernel fits a call of `steps` steps with an input like x; "" where one does."""
    foreign = why_not_cell(cell)
    if foreign:
        return foreign
    if x.dtype != cell.heads.weight.dtype:
        return f"x is {x.dtype} and the parameters are {cell.heads.weight.dtype}"
    if not steps or 0 in x.shape[:-1]:
        return "there is nothing to compute"
    core, width, hidden = CORES[CORE_NAMES[type(cell.core)]], cell.memory.width, cell.core.features
    if x.is_cuda and cell.buffered and not on_chip(core, width, hidden, x.dtype):
        return "on a GPU, a buffered network with more weights than fit on one chip has no kernel"
    return ""


def why_not_cell(cell: StackCell) -> str:
    """The same for what the cell is made of."""
    if type(cell.core) not in CORE_NAMES:
        return f"there is no kernel for the controller {type(cell.core).__name__}"
    if type(cell.memory) not in MEMORY_NAMES:
        return f"there is no kernel for the memory {type(cell.memory).__name__}"
    for name, layer, expected in _layers(cell):
        if type(layer) is not expected:
            return f"{name} is a {type(layer).__name__}, not the {expected.__name__} that a kernel needs"
        if "forward" in vars(layer):
            return f"{name} has a forward of its own"
        if any(getattr(layer, hooks) for hooks in HOOKS):
            return f"{name} has a hook"
        for parameter_name, parameter in layer._parameters.items():
            if parameter is None:
                return f"{name} has no {parameter_name}"
            if is_traceable_wrapper_subclass(parameter):
                return f"{name}.{parameter_name} is a {type(parameter).__name__}"
            if parameter.dtype != cell.heads.weight.dtype or parameter.device != cell.heads.weight.device:
                return f"{name}.{parameter_name} has another dtype or device than cell.heads.weight"
    if any(getattr(every_module, hooks) for hooks in GLOBAL_HOOKS):
        return "a hook is set on every module"
    return ""


def _layers(cell: StackCell) -> Iterator[tuple[str, nn.Module, type]]:
    yield "cell", cell, StackCell
    yield "cell.heads", cell.heads, Heads
    yield "cell.core", cell.core, type(cell.core)
    for name, layer in cell.core.named_children():
        yield f"cell.core.{name}", layer, nn.Linear
