"""Memories and a controller that the library does not have, for tests of all that must work with any."""

from dataclasses import dataclass
from typing import NamedTuple

import pytest
import torch
from torch import nn

import softstack as ss
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import initial


class Held(NamedTuple):
    value: torch.Tensor  # (B, m)


@dataclass(frozen=True)
class Register:
    """One cell: `value` replaces what is there to the degree `write`."""

    size: int
    name = "register"
    drawn = "cells"

    @property
    def width(self):
        return self.size

    @property
    def heads(self):
        return {"value": ss.Vector(self.size), "write": ss.Strength()}

    def init(self, batch=(), *, device=None, dtype=None):
        return Held(torch.zeros(*batch, self.size, device=device, dtype=dtype))

    def step(self, state, instructions):
        value, write = instructions
        kept = state.value + write.unsqueeze(-1) * (value - state.value)
        return Held(kept), kept

    def contents(self, state):
        return ss.Contents(state.value.unsqueeze(-2), torch.ones_like(state.value[..., :1]))


class Tower(NamedTuple):
    cells: torch.Tensor  # (B, N, m), the top first
    filled: torch.Tensor  # (B, N)


@dataclass(frozen=True)
class Ladder:
    """A stack of N cells that is pushed, popped and left alone, each to the degree of its probability."""

    size: int
    depth: int = 5
    name = "ladder"
    drawn = "pile"

    @property
    def width(self):
        return self.size

    @property
    def heads(self):
        return {"v": ss.Vector(self.size), "act": ss.Choice(("push", "pop", "no-op"))}

    def init(self, batch=(), *, device=None, dtype=None):
        kind = dict(device=device, dtype=dtype)
        return Tower(
            torch.zeros(*batch, self.depth, self.size, **kind), torch.zeros(*batch, self.depth, **kind)
        )

    def step(self, state, instructions):
        push, pop, stay = (p[..., None, None] for p in instructions.act.unbind(-1))
        cells = torch.cat((state.cells, state.filled.unsqueeze(-1)), -1)  # (B, N, m + 1)
        top = torch.cat((instructions.v, torch.ones_like(instructions.v[..., :1])), -1).unsqueeze(-2)
        empty = torch.zeros_like(top)
        pushed, popped = torch.cat((top, cells[..., :-1, :]), -2), torch.cat((cells[..., 1:, :], empty), -2)
        cells = push * pushed + pop * popped + stay * cells
        state = Tower(cells[..., :-1], cells[..., -1])
        return state, state.cells[..., 0, :]

    def contents(self, state):
        return ss.Contents(state.cells.flip(-2), state.filled.flip(-1))  # the last cell is drawn on top


@dataclass(frozen=True)
class Gates(Register):
    """Heads of the two kinds that the others have not: several strengths, and numbers as they are."""

    name = "gates"
    drawn = "line"

    @property
    def heads(self):
        return {"raw": ss.Scores(self.size), "open": ss.Strength(count=2)}

    def step(self, state, instructions):
        kept = state.value + instructions.open.sum(-1, keepdim=True) * instructions.raw
        return Held(kept), kept


class Gated(nn.Module):
    """A recurrent core with a LayerNorm."""

    def __init__(self, input_size, hidden_size, **kind):
        super().__init__()
        self.features = hidden_size
        self.layer = nn.Linear(input_size + hidden_size, hidden_size, **kind)
        self.norm = nn.LayerNorm(hidden_size, **kind)

    def init(self, batch, like):
        return (like.new_zeros(*batch, self.features),)

    def forward(self, z, h):
        new = torch.tanh(self.norm(self.layer(torch.cat((z, h[0]), -1))))
        return new, (new,)


@pytest.fixture
def known(monkeypatch):
    """Their names, for the time of a test."""
    monkeypatch.setitem(ss.MEMORIES, "register", Register)
    monkeypatch.setitem(ss.MEMORIES, "ladder", Ladder)
    monkeypatch.setitem(ss.CONTROLLERS, "gated", Gated)


def condition(memory="register", controller="gated", task="reversal", **kind):
    return Condition(task, controller, memory, hidden_size=6, memory_size=3, test_size=40, **kind)


def network(memory="register", controller="gated", **kind):
    """A network with large weights, so that its strengths differ from step to step."""
    built = initial(condition(memory, controller, **kind), 0)
    generator = torch.Generator().manual_seed(1)
    for p in built.parameters():
        p.data.normal_(0, 1.2, generator=generator)
    return built


def traced(memory, controller="gated", T=7):
    x = torch.eye(3)[torch.randint(3, (2, T), generator=torch.Generator().manual_seed(2))]
    _, _, trace = network(memory, controller)(x, return_trace=True)
    return trace
