"""Figures that papers publish, and the networks with which `softstack suite --published` looks for them.

The strings, their lengths and the measure are the paper's (`lab/tasks`), and so is the kind of memory. The
training is ours: some thousands of steps of 10 strings by the recipe of `solve`, and restarts chosen by dev
loss. Papers train for up to a million steps. A claim may be tried with several controllers.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from softstack.lab.training import recipes
from softstack.lab.training.conditions import Condition


class Claim(NamedTuple):
    """A figure of a paper."""

    paper: str
    figure: str  # as the paper has it, in words
    metric: str  # a name in METRICS: what the figure is measured by
    value: float  # what has to be reached
    conditions: tuple[Condition, ...]  # with what it is tried here
    rounded: bool = False  # whether actions are rounded when the network is tested
    protocol: str = ""  # where ours differs from the paper's


def network(task: str, controller: str, memory: str, **changed: Any) -> Condition:
    budget = {"steps": 5_000, "restarts": 4, "test_size": 50}
    return replace(recipes.single(Condition(task, controller, memory)), **{**budget, **changed})


WITHOUT_RESETS: dict[str, Any] = {"state_reset": 0.0, "hidden_noise": 0.1, "train_size": 10_000}
"""A language model has to know whether the mark has been read, which a lost state forgets. DuSell and Chiang
draw 10,000 training strings."""


CLAIMS = (
    Claim(
        "Joulin and Mikolov 2015",
        "a^n b^m c^(n+m): 100 % of the strings up to n + m = 60, with rounding",
        "strings",
        1.0,
        (
            network("anbmcnm", "linear", "superposition"),
            network("anbmcnm", "rnn", "superposition"),
        ),
        rounded=True,
        protocol="theirs has 10 stacks without a no-op, each read two cells deep, and 40 hidden units; "
        "it reads one long text",
    ),
    Claim(
        "Grefenstette et al. 2015",
        "reversal: coarse accuracy 1.00 at lengths 65 to 128",
        "strings",
        1.0,
        (
            network("long_reversal", "linear", "stack", memory_size=16, steps=20_000, restarts=8),
            network("long_reversal", "rnn", "stack", memory_size=16, hidden_size=32, steps=10_000),
        ),
        protocol="theirs has an LSTM of 256 and vectors of 256, and is fed its own answers",
    ),
    Claim(
        "Delétang et al. 2023",
        "reverse string: 100 % averaged over lengths up to 500",
        "lengths",
        0.9995,
        (
            network("reverse_string", "linear", "superposition"),
            network("reverse_string", "rnn", "superposition"),
        ),
        protocol="theirs is an RNN of 256, and the best of 10 seeds and 3 learning rates",
    ),
    Claim(
        "Delétang et al. 2023",
        "stack manipulation: 100 % averaged over lengths up to 500",
        "lengths",
        0.9995,
        (
            network("stack_manipulation", "linear", "superposition"),
            network("stack_manipulation", "rnn", "superposition"),
        ),
        protocol="theirs is an RNN of 256, and the best of 10 seeds and 3 learning rates",
    ),
    Claim(
        "DuSell and Chiang 2020",
        "marked reversal: within 0.05 nats of the lower bound",
        "nats",
        0.05,
        (
            network("marked_reversal", "lstm", "stack", hidden_size=20, steps=10_000),
            network("marked_reversal", "rnn", "stack", hidden_size=20, steps=10_000),
            network("marked_reversal", "lstm", "stack", hidden_size=20, steps=20_000, **WITHOUT_RESETS),
        ),
        protocol="theirs is an LSTM of 20",
    ),
)
