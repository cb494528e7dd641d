"""softstack: differentiable stacks and queues for PyTorch."""

from softstack.cell import StackCell, State
from softstack.controllers import CONTROLLERS, Heads
from softstack.errors import BadInput
from softstack.memory import (
    MEMORIES,
    Instructions,
    Memory,
    MemoryState,
    NoMemory,
    Queue,
    Stack,
    queue_scan,
    stack_scan,
)
from softstack.networks import BufferedStackRNN, BufferedState, StackRNN
from softstack.trace import Trace
from softstack.viewer.show import show

__version__ = "0.1.0"

__all__ = [
    "CONTROLLERS",
    "MEMORIES",
    "BadInput",
    "BufferedStackRNN",
    "BufferedState",
    "Heads",
    "Instructions",
    "Memory",
    "MemoryState",
    "NoMemory",
    "Queue",
    "Stack",
    "StackCell",
    "StackRNN",
    "State",
    "Trace",
    "queue_scan",
    "show",
    "stack_scan",
]
