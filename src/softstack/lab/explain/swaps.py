"""What a network does with its memory, by swapping what two runs hold.

A *graft* stops a run of the network, puts into its memory what another run held, and lets it go on. The
controller's state and the input stay its own. If its answers stay too, the memory did not matter. Three
grafts tell the classes apart:

    whole     all that the other run held
    contents  the vectors beneath the top alone: those of a run that held as much, under the same top
    height    what lies beneath the top, from a run that held more or less

A *stack* or *queue* answers by contents, a *counter* by height and not by contents, a *register* by what is
nearest alone, and a memory that is *ignored* by none of them. Beneath the top stands, of a queue, for behind
the front. Grafts are made where the run goes on to uncover what lies beneath.

Where most answers are settled by the input alone no graft changes many. So the whole is also compared with
all that a run has, its controller's state too: what it changes may be little, and yet most of that.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from softstack.buffered import BufferedStackRNN
from softstack.cell import Actions, Edit, State
from softstack.lab.explain.ablation import Network, by_step
from softstack.lab.explain.fidelity import compared, inputs, outputs, steps_of, to_symbols
from softstack.lab.explain.grafts import KINDS, Graft, Past, any_grafts, grafted, grafts, piles_of, since
from softstack.lab.explain.probes import probes
from softstack.lab.tasks.data import Example
from softstack.lab.training.conditions import Condition
from softstack.memory import Memory, MemoryState, NoMemory, Queue, Stack

MATTERS = 0.04  # of the answers after grafts: a share that shows that what was swapped matters
LEAST, PART = 0.01, 0.125  # of the whole a smaller one does, if it is this part of what everything changes
EVERYTHING = "whole and state"
NEXT = 8  # answers that are looked at after a graft
COUNTER, REGISTER, IGNORED = "counter", "register", "ignored"
Change = Callable[[State, int], State]  # of the state before a step


class Effect(NamedTuple):
    """What grafts of one kind did."""

    grafts: int
    changed: int  # grafts after which some answer was another
    answers: int  # answers that were due after the grafts
    different: int  # those of them that were others

    @property
    def share(self) -> float:
        """Of the answers after a graft, those that it changed."""
        return self.different / self.answers if self.answers else 0.0


class Use(NamedTuple):
    """What a network does with its memory."""

    kind: str  # stack, queue, counter, register or ignored; of another memory its name, or ignored
    effects: dict[str, Effect]  # by kind of graft; with EVERYTHING, where the controller has a state


def use(network: Network, condition: Condition, seed: int = 0, strings: int = 120) -> Use:
    """The class of a network's use of its memory, and the numbers behind it. Its weights alone count: whether
    its answers are right does not matter, but its strings should be of the task that it was made for."""
    if isinstance(network.cell.memory, NoMemory):
        return Use(IGNORED, {})
    rng = np.random.default_rng([seed, strings])
    chosen = probes(condition, rng, strings)
    longest = getattr(network.cell.memory, "longest", None)
    if longest is not None:
        chosen = [example for example in chosen if len(example.input) <= longest] or chosen[:1]
    measured = effects(network, condition, chosen, rng)
    return Use(kind_of(measured, network.cell.memory), measured)


def kind_of(effects: dict[str, Effect], memory: Memory) -> str:
    """The most that some graft shows."""
    shown = [kind for kind, effect in effects.items() if kind != EVERYTHING and effect.share >= MATTERS]
    whole = effects["whole"].share
    if whole >= max(LEAST, PART * effects.get(EVERYTHING, effects["whole"]).share):
        shown.append("whole")
    if "contents" in shown or (shown and not isinstance(memory, Stack | Queue)):
        return memory.name
    return COUNTER if "height" in shown else REGISTER if shown else IGNORED


@torch.no_grad()
def effects(
    network: Network, condition: Condition, strings: Sequence[Example], rng: np.random.Generator
) -> dict[str, Effect]:
    """What each kind of graft does to the answers, on pairs of these strings."""
    past = _past(network, condition, strings)
    own = outputs(network, condition, strings, Edit())  # step by step, as grafts are run
    memory = network.cell.memory
    results: dict[str, Effect] = {}

    def graft_all(kind: str, chosen: Sequence[Graft], steps: Sequence[int], edit: Change, room: int) -> None:
        told = _told(network, condition, strings, chosen, by_step(edit), room)
        results[kind] = _effect(condition, strings, own, past, chosen, steps, told)
        if kind == "whole" and past.states[0].h:
            graft_all(EVERYTHING, chosen, steps, _and_state(edit, chosen, past), room)

    if not isinstance(memory, Stack | Queue):
        chosen = any_grafts(past, rng)
        graft_all("whole", chosen, [graft.time for graft in chosen], _swapped(chosen, past), 0)
        return results
    piles = piles_of(memory, past)
    for kind in KINDS:
        chosen = grafts(kind, memory, piles, past, rng)
        items = [grafted(kind, memory, piles, graft) for graft in chosen]
        room = max((len(pile.s) for pile in items), default=0)
        steps = [since(kind, piles, graft) for graft in chosen]
        graft_all(kind, chosen, steps, _refilled(chosen, items, memory), room)
    return results


def _past(network: Network, condition: Condition, strings: Sequence[Example]) -> Past:
    x, sizes = inputs(network, condition, strings)
    states: list[State] = []
    written: list[Tensor] = []

    def remember(state: State) -> State:
        states.append(state)
        return state

    def count(actions: Actions) -> Actions:
        written.append(actions.y.new_ones(len(strings)) if actions.o is None else actions.o)
        return actions

    network(x, lengths=sizes, edit=Edit(remember, count))
    before = torch.stack([torch.zeros_like(written[0]), *written[:-1]], 1).cumsum(1) if written else x[..., 0]
    return Past(states, before, steps_of(network, sizes))


def _refilled(chosen: Sequence[Graft], items: Sequence[MemoryState], memory: Stack | Queue) -> Change:
    """Before the step of graft k, row k comes to hold its items and nothing else, and has read them."""

    def change(state: State, step: int) -> State:
        V, s, r = state.memory.V.clone(), state.memory.s.clone(), state.r.clone()
        for k, graft in enumerate(chosen):
            if graft.time == step:
                first = s.shape[-1] - len(items[k].s)
                s[k] = 0
                V[k, first:], s[k, first:] = items[k]
                r[k] = memory.nearest(MemoryState(V[k], s[k])).s @ V[k]
        return state._replace(memory=MemoryState(V, s), r=r)

    return change


def _swapped(chosen: Sequence[Graft], past: Past) -> Change:
    """Before the step of graft k, row k gets the memory, of any kind, and the read of the donor at that time.
    All grafts of a step are made at once: a state may be large."""

    def change(state: State, step: int) -> State:
        places = [k for k, graft in enumerate(chosen) if graft.time == step]
        if not places:
            return state
        donor, donors = past.states[step], [chosen[k].donor for k in places]

        def swapped(part: Tensor, other: Tensor) -> Tensor:
            part = part.clone()
            part[places] = other[donors]
            return part

        memory, r = tree_map(swapped, (state.memory, state.r), (donor.memory, donor.r))
        return state._replace(memory=memory, r=r)

    return change


def _and_state(edit: Change, chosen: Sequence[Graft], past: Past) -> Change:
    """The same, and row k gets the controller's state of the donor too."""

    def change(state: State, step: int) -> State:
        h = tuple(part.clone() for part in state.h)
        for k, graft in enumerate(chosen):
            if graft.time == step:
                for part, donor in zip(h, past.states[graft.donor_time].h, strict=True):
                    part[k] = donor[graft.donor]
        return edit(state._replace(h=h), step)

    return change


def _told(
    network: Network,
    condition: Condition,
    strings: Sequence[Example],
    chosen: Sequence[Graft],
    edit: Edit,
    room: int = 0,
) -> list[list[str]]:
    """What the network says on the string of each graft; memories begin with so many empty slots."""
    if not chosen:
        return []
    x, sizes = inputs(network, condition, [strings[graft.run] for graft in chosen])
    state: Any = network.init((len(chosen),), x)
    if room:
        width = network.cell.memory.width
        slots = MemoryState(x.new_zeros(len(chosen), room, width), x.new_zeros(len(chosen), room))
        if isinstance(network, BufferedStackRNN):
            state = state._replace(network=state.network._replace(memory=slots))
        else:
            state = state._replace(memory=slots)
    y, final = network(x, state, sizes, edit=edit)
    return to_symbols(condition, y, final, sizes)


def _effect(
    condition: Condition,
    strings: Sequence[Example],
    own: Sequence[Sequence[str]],
    past: Past,
    chosen: Sequence[Graft],
    steps: Sequence[int],
    told: Sequence[Sequence[str]],
) -> Effect:
    """How many of the next answers are others, from the step on that can first see what was grafted."""
    changed = answers = different = 0
    for graft, step, output in zip(chosen, steps, told, strict=True):
        target = list(strings[graft.run].target)
        first = max(0, round(float(past.written[graft.run, step])) - int(condition.discard_first))
        target[:first] = [None] * min(first, len(target))
        places, due = compared(own[graft.run], output, target, False)
        due = [j for j in due if j >= first][:NEXT]
        others = sum(j in places for j in due)
        changed += bool(others)
        different += others
        answers += len(due)
    return Effect(len(chosen), changed, answers, different)
