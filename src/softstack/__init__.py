"""softstack: differentiable stacks and queues for PyTorch."""

from softstack.buffered import BufferedStackRNN, BufferedState
from softstack.cell import Actions, Edit, StackCell, State
from softstack.controllers import CONTROLLERS, Heads
from softstack.disturbance import Disturbance
from softstack.errors import BadInput
from softstack.layer import StackLayer
from softstack.memory import (
    MEMORIES,
    Choice,
    Contents,
    Deep,
    Deque,
    Instructions,
    Memory,
    MemoryState,
    Multipop,
    NoMemory,
    Nondeterministic,
    Queue,
    Scores,
    Several,
    Stack,
    Strength,
    Superposition,
    Vector,
    compact,
    detach,
    queue_scan,
    scan,
    stack_scan,
)
from softstack.networks import LayerStates, StackRNN
from softstack.trace import Trace
from softstack.viewer.show import show

__version__ = "0.2.0"

__all__ = [
    "CONTROLLERS",
    "MEMORIES",
    "Actions",
    "BadInput",
    "BufferedStackRNN",
    "BufferedState",
    "Choice",
    "Contents",
    "Deep",
    "Deque",
    "Disturbance",
    "Edit",
    "Heads",
    "Instructions",
    "LayerStates",
    "Memory",
    "MemoryState",
    "Multipop",
    "NoMemory",
    "Nondeterministic",
    "Queue",
    "Scores",
    "Several",
    "Stack",
    "StackCell",
    "StackLayer",
    "StackRNN",
    "State",
    "Strength",
    "Superposition",
    "Trace",
    "Vector",
    "compact",
    "detach",
    "queue_scan",
    "scan",
    "show",
    "stack_scan",
]
