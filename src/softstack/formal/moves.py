"""A PDT's rules taken apart into what a network can do in one step.

In a step a neural stack pops one symbol and pushes one, and an output buffer takes one. A rule that writes or
pushes more becomes several moves in a row, of which only the first looks at anything.
"""

from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Unit:
    """Moves that do the same, made in any of some states, at any of some symbols and any of some tops."""

    states: tuple[str, ...]  # () for one that follows another
    reads: tuple[str, ...]  # () if the input does not matter
    tops: tuple[str, ...]  # () if the stack does not matter
    move: Move  # one of them: what it does
    after: int | None = None  # the unit that it follows, by its place in the list

    @property
    def conditions(self) -> int:
        """How many things must hold at once."""
        return 1 + bool(self.reads or self.move.waits) + bool(self.tops)


def units(plan: list[Move], share_tops: bool = True) -> list[Unit]:
    """A unit for each move, or for several that do the same and whose conditions are all combinations of some
    states, symbols and tops, so that still exactly one unit is on at a time.

    Moves of one state and symbol are put together first, then of one state, then of any. A move that another
    follows stays alone.
    """
    followed = {move.after for move in plan}
    boxes: list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], Move, list[int]]] = []
    for k, move in enumerate(plan):
        states = (move.state,) if move.state else ()
        boxes.append((states, (move.read,) if move.read else (), (move.top,) if move.top else (), move, [k]))
    for axis in (2, 1, 0) if share_tops else (1, 0):
        by_key: dict[object, tuple[Any, ...]] = {}
        for box in boxes:
            move, members = box[3], box[4]
            alone = move.after is not None or members[0] in followed or not box[axis]
            does = (move.next, move.waits, move.takes, move.pops, move.push, move.write)
            others = tuple(box[other] for other in range(3) if other != axis)
            key = members[0] if alone else (does, others)
            if key in by_key:
                old = by_key[key]
                parts = [old[other] if other != axis else old[axis] + box[axis] for other in range(3)]
                by_key[key] = (*parts, old[3], old[4] + members)
            else:
                by_key[key] = box
        boxes = list(by_key.values())
    place = {k: n for n, box in enumerate(boxes) for k in box[4]}
    return [
        Unit(box[0], box[1], box[2], box[3], None if box[3].after is None else place[box[3].after])
        for box in boxes
    ]
