"""A memory of your own: a row of counters. It is one class, and softstack does the rest.

    python examples/custom_memory.py
    softstack train reversal --plugin examples/custom_memory.py --memory tally

Each step moves every counter up or down by at most 1; they can go below 0. A network with counters knows how
many brackets are open, and not which. docs/add/memory.md says what each member of the class is for.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

import softstack as ss


class Counts(NamedTuple):
    """The state before and after a step: tensors with the batch axes first."""

    value: Tensor  # (B, m)


@dataclass(frozen=True)
class Tally:
    """m counters. The read is tanh of each, so that it stays small however far they have counted."""

    size: int  # m

    name = "tally"
    drawn = "cells"

    @property
    def heads(self) -> dict[str, Any]:
        """What the controller must say at each step, by name."""
        return {"up": ss.Strength(count=self.size), "down": ss.Strength(count=self.size)}

    @property
    def width(self) -> int:
        return self.size

    def init(self, batch: tuple[int, ...] = (), *, device: Any = None, dtype: Any = None) -> Counts:
        return Counts(torch.zeros(*batch, self.size, device=device, dtype=dtype))

    def step(self, state: Counts, instructions: Any) -> tuple[Counts, Tensor]:
        value = state.value + instructions.up - instructions.down  # (B, m)
        return Counts(value), torch.tanh(value)

    def contents(self, state: Counts) -> ss.Contents:
        """What pages and figures draw: one cell with a number for each counter, and it is always full."""
        V = state.value.unsqueeze(-2)  # (B, 1, m)
        return ss.Contents(V, torch.ones_like(V[..., 0]))


MEMORIES = {"tally": Tally}  # the name by which commands know it


def main() -> float:
    """Are more `(` than `)` open? That takes a counter, and no more."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rnn = ss.StackRNN(2, controller="linear", memory=Tally(1), output_size=2)
    optimiser = torch.optim.Adam(rnn.parameters(), lr=0.05)
    for _ in range(500):
        symbols = torch.randint(2, (32, 20))
        y, _ = rnn(torch.nn.functional.one_hot(symbols, 2).float())
        loss = torch.nn.functional.cross_entropy(y.flatten(0, 1), answers(symbols).flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    symbols = torch.randint(2, (100, 200))  # ten times as long
    with torch.no_grad():
        y, _ = rnn(torch.nn.functional.one_hot(symbols, 2).float())
    right = (y.argmax(-1) == answers(symbols)).float().mean().item()
    print(f"{right:.1%} right on strings of 200 symbols, after training on 20")
    return right


def answers(symbols: Tensor) -> Tensor:
    """1 where more of the symbols so far were 0 than 1, (B, T)."""
    return ((1 - 2 * symbols).cumsum(1) > 0).long()


if __name__ == "__main__":
    main()
