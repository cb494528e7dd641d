"""§2.1 and §2.3: memories, one file each, and the protocol that they keep (`protocol.py`).

MEMORIES gives names to them: a name stands for the class, which is made with the size of its vectors, or for
a class with some of its options chosen.
"""

from collections.abc import Callable

from softstack.memory.deque import Deque as Deque
from softstack.memory.items import MemoryState as MemoryState
from softstack.memory.items import above as above
from softstack.memory.items import before as before
from softstack.memory.items import empty as empty
from softstack.memory.items import pop as pop
from softstack.memory.items import push as push
from softstack.memory.items import read as read
from softstack.memory.multipop import Multipop as Multipop
from softstack.memory.nondeterministic import Nondeterministic as Nondeterministic
from softstack.memory.nothing import NoMemory as NoMemory
from softstack.memory.protocol import Choice as Choice
from softstack.memory.protocol import Contents as Contents
from softstack.memory.protocol import Head as Head
from softstack.memory.protocol import Instructions as Instructions
from softstack.memory.protocol import Memory as Memory
from softstack.memory.protocol import Scores as Scores
from softstack.memory.protocol import Strength as Strength
from softstack.memory.protocol import Vector as Vector
from softstack.memory.queue import Queue as Queue
from softstack.memory.scan import queue_scan as queue_scan
from softstack.memory.scan import scan as scan
from softstack.memory.scan import stack_scan as stack_scan
from softstack.memory.several import Deep as Deep
from softstack.memory.several import Several as Several
from softstack.memory.shapes import Batch as Batch
from softstack.memory.shapes import Sequences as Sequences
from softstack.memory.shapes import batch_of as batch_of
from softstack.memory.stack import Stack as Stack
from softstack.memory.states import compact as compact
from softstack.memory.states import detach as detach
from softstack.memory.superposition import Superposition as Superposition

MEMORIES: dict[str, Callable[[int], Memory]] = {
    "stack": Stack,
    "queue": Queue,
    "none": NoMemory,
    "deque": Deque,
    "superposition": Superposition,
    "superposition_without_noop": lambda size: Superposition(size, noop=False),
    "multipop": Multipop,
    "nondeterministic": Nondeterministic,
    "vector_nondeterministic": lambda size: Nondeterministic(symbols=2, vectors=size),
    "two_stacks": lambda size: Several(Stack(size), 2),
    "deep_stack": lambda size: Deep(Stack(size), 2),
}
