"""A PDT's rules taken apart into what a network can do in one step.

In a step a neural stack pops one symbol and pushes one, and an output buffer takes one. A rule that writes or
pushes more becomes several moves in a row, of which only the first looks at anything.
"""

from dataclasses import dataclass

from softstack.formal.analysis import new_symbols, reachable, really_pops, steps_of
from softstack.formal.transducer import Transducer


@dataclass(frozen=True)
class Move:
    """What a network does in a step, and when."""

    state: str  # the state in which it is made; "" for one that follows another move
    read: str  # the symbol at the front of the input; "" if that does not matter
    top: str  # the symbol on top of the stack; "" if that does not matter
    next: str  # the state after it; "" if another move follows
    after: int | None = None  # the move that it follows, by its place in the list
    waits: bool = False  # made where no input is left, until there is some
    takes: bool = False  # the symbol at the front is gone
    pops: bool = False
    push: str = ""
    write: str = ""

    @property
    def conditions(self) -> int:
        """How many things must hold at once."""
        return 1 + bool(self.read or self.waits) + bool(self.top)


def moves(machine: Transducer, waiting: bool = True) -> list[Move]:
    """The moves of every rule; with `waiting` also those that keep a state where no input is left."""
    heads = reachable(machine)
    plan: list[Move] = []
    for rule in machine.rules:
        if not any(rule.state == state and rule.pop in ("", top) for state, top in heads):
            continue  # never enabled
        steps, pushed = steps_of(rule), new_symbols(rule)
        for k in range(steps):
            first, last = k == 0, k == steps - 1
            plan.append(
                Move(
                    state=rule.state if first else "",
                    read=rule.read if first else "",
                    top=rule.pop if first else "",
                    next=rule.next if last else "",
                    after=None if first else len(plan) - 1,
                    takes=first and bool(rule.read),
                    pops=first and really_pops(rule),
                    push=pushed[k] if k < len(pushed) else "",
                    write=rule.write[k] if k < len(rule.write) else "",
                )
            )
    if waiting:
        for state in dict.fromkeys(state for state, _ in heads):
            tops = [top for q, top in heads if q == state]
            still = [top for top in tops if machine.enabled(state, "", top) is None]
            anywhere = all(machine.enabled(state, "", top) is None for top in machine.stack_symbols)
            plan += [Move(state, "", top, state, waits=True) for top in ([""] if anywhere else still)]
    return plan
