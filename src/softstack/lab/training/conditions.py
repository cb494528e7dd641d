"""§5: what is trained. A Condition is frozen numbers and names; TABLE_1 lists the paper's 18.

The paper leaves much of its protocol unsaid. Each such setting is a field here, with the value that the
authors used as its default.
"""

import functools
import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from softstack.buffered import BufferedStackRNN
from softstack.controllers import CONTROLLERS
from softstack.disturbance import NO_STATE
from softstack.errors import BadInput, unknown
from softstack.lab import tasks
from softstack.lab.tasks.losses import LOSSES
from softstack.memory import MEMORIES
from softstack.networks import StackRNN
from softstack.words import counted

Network = StackRNN | BufferedStackRNN
NUMERICS = 5
"""Raised when a change makes the same condition and seed train to other numbers."""

FIELDS_0_1 = (
    "task", "controller", "memory", "buffered", "hidden_size", "memory_size", "steps_per_symbol",
    "discard_first", "train_size", "dev_size", "test_size", "batch_size", "learning_rate", "weight_decay",
    "loss", "pop_bias", "buffer_bias", "patience", "max_epochs",
)  # fmt: skip
"""The fields that softstack 0.1 had. It hashed all of them into the name of a condition."""


# What the values of fields may be, besides their types; other whole numbers are at least 1.
FROM_ZERO = ("steps", "halvings")
MOST = {"restarts": 10_000, "steps_per_symbol": 10_000, "num_layers": 10_000}  # others: more would never end
NOT_NEGATIVE = ("learning_rate", "weight_decay", "hidden_noise", "gradient_clip", "weight_width")
SHARES = ("state_reset", "reset_spread", "final_rate", "halving_share")  # in [0, 1], or inside it


@dataclass(frozen=True)
class Condition:
    """A network, its task and how it is trained.

    A run is known by the fields that differ from their defaults, so a new field with a default renames
    nothing. To change a default renames what used it: raise NUMERICS then.
    """

    task: str
    """what is learnt: a name from `softstack tasks`, the text of a grammar or of a pushdown transducer, or
    the name of examples from files"""
    controller: str = "lstm"
    """linear, mlp, rnn, gru, lstm, or one of a plugin"""
    memory: str = "stack"
    """stack, queue, none, deque, superposition, multipop, nondeterministic, another of docs/memories.md, or
    one of a plugin"""
    buffered: bool = False
    """with an input and an output buffer (§2.3)"""
    hidden_size: int = 10
    """width of the controller's recurrent state"""
    memory_size: int = 2
    """width of the vectors on the stack"""
    num_layers: int = 1
    """cells one above the other, each with a memory of its own; a buffered network has one"""
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
    """strings in a batch"""
    learning_rate: float = 0.01
    """Adam's"""
    weight_decay: float = 0.01
    """L2 added to the gradient, not decoupled, biases included"""
    loss: str = "task"
    """step_mean: at each step the mean over the strings scored there, summed over steps; sum: the sum over
    all that is scored; task: what the authors used for the task"""
    state_reset: float = 0.0
    """in training, how likely a controller's state is lost before each step, in each string by itself"""
    reset_spread: float = 0.0
    """by how much less than `state_reset` every second restart loses its state"""
    hidden_noise: float = 0.0
    """in training, the standard deviation of the noise that is added to h after each step"""
    gradient_clip: float = 0.0
    """the norm to which each network's gradient is cut; 0: it is not cut"""
    steps: int = 0
    """steps of training, whatever patience and max_epochs say; 0: as those say"""
    final_rate: float = 1.0
    """the share of the learning rate that is left after the last of `steps`; a cosine leads there"""
    restarts: int = 1
    """networks that a trial trains from different weights; that of the lowest dev loss is the trial's"""
    halvings: int = 0
    """how often the worse half of the restarts, by dev loss, is dropped"""
    halving_share: float = 0.5
    """the share of the steps to go after which the next halving comes; 0.5: after half of the steps, half of
    the rest, and so on"""
    weight_width: float = 1.0
    """how many times as wide as the authors' the initial weights are drawn"""
    push_bias: float = 0.0
    """initial bias of the push strength; at 0.0 a memory's own bias stays"""
    pop_bias: float = -1.0
    """initial bias of the pop strength; at -1.0 a memory's own bias stays"""
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
            least = 0 if field.name in FROM_ZERO else 1
            if field.type is int and value < least:
                raise BadInput(f"{field.name} must be at least {least}; got {value}")
            if field.type is int and value > MOST.get(field.name, 10**12):
                raise BadInput(f"{field.name} must be at most {MOST.get(field.name, 10**12):,}; got {value}")
            if field.type is float and not abs(value) < float("inf"):
                raise BadInput(f"{field.name} must be finite; got {value}")
        tasks.find(self.task)
        accepted: dict[str, Iterable[str]] = {
            "controller": CONTROLLERS,
            "memory": MEMORIES,
            "loss": ("task", *LOSSES),
        }
        for name, choices in accepted.items():
            if getattr(self, name) not in choices:
                advice = "" if name == "loss" else "; one of your own needs --plugin FILE.py"
                raise BadInput(f"{unknown(name, getattr(self, name), choices)}{advice}")
        if self.loss_name not in LOSSES:
            raise unknown(f"loss of the task {self.task},", self.loss_name, LOSSES)
        for name in NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise BadInput(f"{name} must not be negative; got {getattr(self, name)}")
        if not 0 < self.halving_share < 1:
            raise BadInput(f"halving_share must be more than 0 and less than 1; got {self.halving_share}")
        for name in SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise BadInput(f"{name} must lie in [0, 1]; got {getattr(self, name)}")
        if self.reset_spread > self.state_reset:
            numbers = f"{self.reset_spread} and {self.state_reset}"
            raise BadInput(f"reset_spread must not be more than state_reset; got {numbers}")
        if self.buffered and self.num_layers > 1:
            raise BadInput(f"a buffered network has one layer; got num_layers = {self.num_layers}")
        if self.final_rate != 1 and not self.steps:
            raise BadInput("final_rate needs to know where the training ends: give `steps`")
        if self.halvings and (not self.steps or self.restarts >> self.halvings < 1):
            raise BadInput(
                f"{counted(self.halvings, 'halving')} of the restarts: that needs `steps`, and at least "
                f"{2**self.halvings} restarts; got steps = {self.steps} and restarts = {self.restarts}"
            )

    @property
    def loss_name(self) -> str:
        """The loss that is trained on, a name in LOSSES: the task's own unless one was chosen."""
        return tasks.find(self.task).loss if self.loss == "task" else self.loss

    @property
    def most_epochs(self) -> int:
        """How many epochs the training can take."""
        return math.ceil(self.steps / self.batches) if self.steps else self.max_epochs

    @property
    def batches(self) -> int:
        """In an epoch."""
        return math.ceil(self.train_size / self.batch_size)

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 1."""
        if self.final_rate == 1:
            return self.learning_rate
        done = (step - 1) / self.steps
        share = self.final_rate + (1 - self.final_rate) * (1 + math.cos(math.pi * done)) / 2
        return self.learning_rate * share

    @property
    def task_version(self) -> int:
        return tasks.version_of(tasks.find(self.task))

    @property
    def changed(self) -> dict[str, Any]:
        """The fields that differ from their defaults: what the condition is known by."""
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    @property
    def name(self) -> str:
        """A readable name that no other condition has: what it is, and a hash of what is changed."""
        return self._named(self.changed)

    @property
    def names(self) -> tuple[str, ...]:
        """What the folder of its runs may be called: its name, and the one that softstack 0.1 gave it."""
        if self.task_version > 1 or any(name not in FIELDS_0_1 for name in self.changed):
            return (self.name,)
        return self.name, self._named({name: getattr(self, name) for name in FIELDS_0_1})

    def _named(self, identity: dict[str, Any]) -> str:
        version = {"task_version": self.task_version} if self.task_version > 1 else {}
        text = json.dumps({**identity, **version, "numerics": NUMERICS}, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        buffered = "buffered" if self.buffered else ""
        parts = (tasks.find(self.task).name, buffered, self.controller, self.memory, digest)
        return "-".join(part for part in parts if part)

    @classmethod
    def from_dict(cls, values: dict[str, Any], source: str) -> "Condition":
        """A condition from a file's keys. Missing ones take their default, unknown ones are refused."""
        accepted = [field.name for field in fields(cls)]
        for key in values:
            if key not in accepted:
                raise unknown(f"key in {source},", key, accepted)
        if "task" not in values:
            raise BadInput(f"{source} names no task: give one of {', '.join(tasks.TASKS)}, a grammar or data")
        return cls(**values)


_KINDS: dict[Any, str] = {str: "a name", bool: "true or false", int: "a whole number", float: "a number"}


@dataclass(frozen=True)
class StepsPerSymbol:
    """How many steps a buffered network makes for T symbols; unlike a lambda it can be pickled."""

    count: int

    def __call__(self, T: int) -> int:
        return self.count * T


def build(condition: Condition, **kind: Any) -> Network:
    """The network of a condition, with fresh parameters; `kind` is its device and dtype."""
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
    network: Network
    if condition.buffered:
        steps = StepsPerSymbol(condition.steps_per_symbol)
        network = BufferedStackRNN(**arguments, steps=steps, discard_first=condition.discard_first)
    else:
        network = StackRNN(**arguments, num_layers=condition.num_layers)
    network.state_reset, network.hidden_noise = condition.state_reset, condition.hidden_noise
    return network


def idle(condition: Condition) -> str:
    """What does nothing in a condition, in a sentence; else ""."""
    if not (condition.state_reset or condition.hidden_noise):
        return ""
    cell = build(condition, device="meta").cell
    return "" if cell.core.init((), cell.any_weight) else f"{NO_STATE}, such as {condition.controller}"


@functools.cache
def shapes(condition: Condition) -> dict[str, tuple[int, ...]]:
    """The shape of each parameter by its name, in the network's order; nothing is allocated."""
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
    """The same, but the first item of the output buffer is not thrown away; None where it is not anyway."""
    return replace(condition, discard_first=False) if condition.discard_first else None
