"""What `softstack suite` trains: every memory with every controller on every task, with and without the
training recipe of `solve`.

Memories, controllers and tasks are asked of their registries, so one of a plugin's is compared as ours are.
All cells have the same budget: steps of training, restarts and strings, and worse restarts are dropped early.
With the recipe a controller loses its state now and then (`recipes.py`); without it the network trains as the
paper does, but for that budget.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from softstack.lab.training import recipes
from softstack.lab.training.conditions import Condition
from softstack.memory import MEMORIES

RECIPES = ("plain", "solve")
CONTROLLERS = ("linear", "rnn", "gru", "lstm")
TASKS = (
    *("reversal", "delayed_xor", "parenthesis", "formula", "agreement"),  # of the paper
    *("short_copy", "anbn", "anbmcnm", "dyck_2", "parity"),  # of others
)
"""Those with short strings. Stack manipulation, of up to 80 symbols, takes half as long as all of these."""
ASKED_FOR = (
    "superposition_without_noop",
    "vector_nondeterministic",
    "two_stacks",
    "deep_stack",
    "nondeterministic",
)
"""Memories that are compared where they are asked for: variants of others, and the nondeterministic stack,
whose cost grows with the cube of a string's length."""
TRIALS = 10
STEPS = 4_000
RESTARTS = 8
TEST = 20  # strings of the test split: the suite has strings of its own


class Cell(NamedTuple):
    """What is trained in some trials."""

    condition: Condition
    recipe: str  # one of RECIPES


class Budget(NamedTuple):
    """What every network of a suite has."""

    steps: int = STEPS
    restarts: int = RESTARTS

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a condition. Restarts are dropped as the recipe drops them, where there are any."""
        halvings = min(recipes.RECIPE["halvings"], self.restarts.bit_length() - 1)
        dropping = {"halvings": halvings, "halving_share": recipes.RECIPE["halving_share"]}
        return {**self._asdict(), **dropping, "test_size": TEST}


def cell(task: str, memory: str, controller: str, recipe: str, budget: Budget) -> Cell:
    condition = recipes.solve(Condition(task, controller, memory))
    if recipe == "plain":
        condition = Condition(task, controller, memory, memory_size=condition.memory_size)
    return Cell(replace(condition, **budget.fields), recipe)


def memories() -> list[str]:
    """The memories that are known, plugins' included, but for those that have to be asked for."""
    return [name for name in MEMORIES if name not in ASKED_FOR]


def cells(
    tasks: Iterable[str],
    memories: Sequence[str],
    controllers: Sequence[str],
    chosen: Sequence[str] = RECIPES,
    budget: Budget = Budget(),  # noqa: B008 (a NamedTuple cannot change)
) -> list[Cell]:
    """All of them, task by task."""
    return [
        cell(task, memory, controller, recipe, budget)
        for task in tasks
        for memory in memories
        for controller in controllers
        for recipe in chosen
    ]
