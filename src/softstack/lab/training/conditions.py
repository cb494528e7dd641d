"""§5: what is trained. A Condition is frozen numbers and names; TABLE_1 lists the paper's 18.

The paper leaves much of its protocol unsaid. Each such setting is a field here, with the value that the
authors used as its default.
"""

import functools
import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from softstack.controllers import CONTROLLERS
from softstack.errors import BadInput, unknown
from softstack.lab import tasks
from softstack.memory import MEMORIES
from softstack.networks import BufferedStackRNN, StackRNN

NUMERICS = 5
"""Raised when a change makes the same condition and seed train to other numbers."""

LOSSES = ("task", "step_mean", "sum")


@dataclass(frozen=True)
class Condition:
    """A network, its task and how it is trained."""

    task: str
    """what is learnt: a name from `softstack tasks`, or the text of a pushdown transducer"""
    controller: str = "lstm"
    """linear, mlp, rnn, gru or lstm"""
    memory: str = "stack"
    """stack, queue or none"""
    buffered: bool = False
    """with an input and an output buffer (§2.3)"""
    hidden_size: int = 10
    """width of the controller's recurrent state"""
    memory_size: int = 2
    """width of the vectors on the stack"""
    steps_per_symbol: int = 1
    """steps that a buffered network makes for each symbol of its input"""
    discard_first: bool = False
    """throw the first whole item of the output buffer away, as the authors' code does"""
    train_size: int = 800
    """training strings"""
    dev_size: int = 100
    """strings on which each epoch ends"""
    test_size: int = 1000
    """longer strings, all distinct, on which training ends"""
    batch_size: int = 10
    """strings a batch"""
    learning_rate: float = 0.01
    """Adam's"""
    weight_decay: float = 0.01
    """L2 added to the gradient, not decoupled, biases included"""
    loss: str = "task"
    """step_mean: at each step the mean over the strings scored there, summed over steps; sum: the sum over
    all that is scored; task: what the authors used for the task"""
    pop_bias: float = -1.0
    """initial bias of the pop strength"""
    buffer_bias: float = 1.0
    """initial bias of the strengths with which buffers are read and written"""
    patience: int = 5
    """epochs in a row without a new best dev accuracy that stop the training"""
    max_epochs: int = 100
    """epochs after which training stops in any case"""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is float and isinstance(value, int) and not isinstance(value, bool):
                object.__setattr__(self, field.name, value := float(value))
            if type(value) is not field.type:
                raise BadInput(f"{field.name} must be {_KINDS[field.type]}; got {value!r}")
            if field.type is int and value < 1:
                raise BadInput(f"{field.name} must be at least 1; got {value}")
            if field.type is float and not abs(value) < float("inf"):
                raise BadInput(f"{field.name} must be finite; got {value}")
        tasks.find(self.task)
        for kind, given, accepted in (
            ("controller", self.controller, CONTROLLERS),
            ("memory", self.memory, MEMORIES),
            ("loss", self.loss, LOSSES),
        ):
            if given not in accepted:
                raise unknown(kind, given, accepted)
        for name in ("learning_rate", "weight_decay"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name} must not be negative; got {getattr(self, name)}")

    @property
    def name(self) -> str:
        """A readable name that differs from any other condition's: what it is, and a hash of all fields."""
        parts = [
            tasks.find(self.task).name,
            "buffered" if self.buffered else "",
            self.controller,
            self.memory,
        ]
        return "-".join([part for part in parts if part]) + "-" + self.digest()[:8]

    def digest(self) -> str:
        text = json.dumps({**asdict(self), "numerics": NUMERICS}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @classmethod
    def from_dict(cls, given: dict[str, Any], source: str) -> "Condition":
        """A condition from a file's keys; an unknown one is refused with the nearest right one."""
        accepted = [field.name for field in fields(cls)]
        for key in given:
            if key not in accepted:
                raise unknown(f"key in {source},", key, accepted)
        if "task" not in given:
            raise BadInput(f"{source} names no task: give one of {', '.join(tasks.TASKS)}")
        return cls(**given)


_KINDS: dict[Any, str] = {str: "a name", bool: "true or false", int: "a whole number", float: "a number"}


def build(condition: Condition, **kind: Any) -> StackRNN | BufferedStackRNN:
    """The network of a condition, with fresh parameters."""
    letters = len(tasks.find(condition.task).alphabet)
    arguments = dict(
        input_size=letters,
        output_size=letters,
        controller=condition.controller,
        hidden_size=condition.hidden_size,
        memory=condition.memory,
        memory_size=condition.memory_size,
        **kind,
    )
    if not condition.buffered:
        return StackRNN(**arguments)
    per_symbol = condition.steps_per_symbol
    return BufferedStackRNN(
        **arguments, steps=lambda T: per_symbol * T, discard_first=condition.discard_first
    )


@functools.cache
def shapes(condition: Condition) -> dict[str, tuple[int, ...]]:
    """Of the parameters, by name, in their order; no memory is taken for them."""
    try:
        network = build(condition, device="meta")
    except (RuntimeError, OverflowError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(f"no network has sizes as large as those of {condition} ({reason})") from None
    return {name: tuple(p.shape) for name, p in network.named_parameters()}


TABLE_1: list[Condition] = [
    Condition("reversal", "linear", "stack"),
    Condition("reversal", "linear", "stack", buffered=True, discard_first=True),
    Condition("reversal", "lstm", "stack"),
    Condition("reversal", "lstm", "none"),
    Condition("xor", "linear", "stack", memory_size=6),
    Condition("xor", "lstm", "stack", memory_size=6),
    Condition("xor", "linear", "stack", memory_size=6, buffered=True, steps_per_symbol=2, discard_first=True),
    Condition("delayed_xor", "linear", "stack", memory_size=6),
    Condition("parenthesis", "linear", "stack"),
    Condition("parenthesis", "linear", "none"),
    Condition("parenthesis", "lstm", "stack"),
    Condition("parenthesis", "lstm", "none"),
    Condition("formula", "linear", "stack"),
    Condition("formula", "lstm", "stack"),
    Condition("formula", "lstm", "none"),
    Condition("agreement", "linear", "stack"),
    Condition("agreement", "lstm", "stack"),
    Condition("agreement", "lstm", "none"),
]
"""The paper's Table 1, row by row. Rows are numbered from 1."""


def corrected(condition: Condition) -> Condition | None:
    """The same without the paper's loss of the first item read off the output buffer, if it has that."""
    return replace(condition, discard_first=False) if condition.discard_first else None
