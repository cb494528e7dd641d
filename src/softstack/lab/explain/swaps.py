"""What a network does with its memory, by swapping what two runs hold.

A *graft* stops a run of the network, puts into its memory what another run held, and lets it go on. The
controller's state and the input stay its own. If its answers stay too, the memory did not matter. Three
grafts tell the classes apart:

    whole     all that the other run held
    contents  the vectors beneath the top alone: those of a run that held as much, under the same top
    height    what lies beneath the top, from a run that held more or less

A *stack* or *queue* answers by contents, a *counter* by height and not by contents, a *register* by what is
nearest alone, and a memory that is *ignored* by none of them. In a queue, beneath the top means behind the
front. Grafts are made where the run goes on to uncover what lies beneath.

Where the input alone settles most answers, no graft changes many. So a whole graft is also compared with a
graft of memory and controller together: it may change few answers, and yet most of those that can change.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from softstack.buffered import BufferedStackRNN
from softstack.cell import Actions, Edit, State
from softstack.lab.explain.ablation import Network, by_step
from softstack.lab.explain.fidelity import compared, inputs, outputs, steps_of, to_symbols
from softstack.lab.explain.grafts import (
    KINDS,
    Graft,
    Past,
    grafted,
    piles_of,
    sample_any_grafts,
    sample_grafts,
    since,
)
from softstack.lab.explain.probes import probes
from softstack.lab.tasks.data import Example
from softstack.lab.training.conditions import Condition
from softstack.memory import Memory, MemoryState, NoMemory, Queue, Stack
from softstack.memory.states import leaf_by_leaf
from softstack.trace import over_time

MATTERS = 0.04  # share of the answers after grafts: if so many change, what was swapped matters
LEAST, PART = 0.01, 0.125  # for whole grafts LEAST is enough, if it is this part of what EVERYTHING changes
EVERYTHING = "whole and state"
NEXT = 8  # answers that are looked at after a graft
COUNTER, REGISTER, IGNORED = "counter", "register", "ignored"
Change = Callable[[State, int], State]  # of the state before a step


class Effect(NamedTuple):
    """What grafts of one kind did."""

    grafts: int
    changed: int  # grafts after which some answer changed
    answers: int  # answers that were due after the grafts
    different: int  # those of them that changed

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
    memory = network.cell.memory
    if isinstance(memory, NoMemory):
        return Use(IGNORED, {})
    rng = np.random.default_rng([seed, strings])
    examples = probes(condition, rng, strings)
    longest = getattr(memory, "longest", None)
    if longest is not None:
        examples = [example for example in examples if len(example.input) <= longest] or examples[:1]
    by_kind = effects(network, condition, examples, rng)
    return Use(kind_of(by_kind, memory), by_kind)


def kind_of(effects: dict[str, Effect], memory: Memory) -> str:
    """The strongest use of the memory that some graft shows."""
    kinds = {kind for kind, effect in effects.items() if kind != EVERYTHING and effect.share >= MATTERS}
    whole = effects["whole"]
    if whole.share >= max(LEAST, PART * effects.get(EVERYTHING, whole).share):
        kinds.add("whole")
    if "contents" in kinds or (kinds and not isinstance(memory, Stack | Queue)):
        return memory.name
    return COUNTER if "height" in kinds else REGISTER if kinds else IGNORED


@torch.no_grad()
def effects(
    network: Network, condition: Condition, strings: Sequence[Example], rng: np.random.Generator
) -> dict[str, Effect]:
    """What each kind of graft does to the answers, on pairs of these strings."""
    past = _past(network, condition, strings)
    answers = outputs(network, condition, strings, Edit())  # step by step, as grafts are run
    memory = network.cell.memory
    results: dict[str, Effect] = {}

    def graft_all(
        kind: str, grafts: Sequence[Graft], steps: Sequence[int], change: Change, room: int = 0
    ) -> None:
        """Count the next answers that change, from the step on that can first see what was grafted."""
        changed = due = different = 0
        outputs_after = _answers(network, condition, strings, grafts, by_step(change), room)
        for graft, step, output in zip(grafts, steps, outputs_after, strict=True):
            first = max(0, round(float(past.outputs[graft.run, step])) - int(condition.discard_first))
            differences, places = compared(answers[graft.run], output, strings[graft.run].target, False)
            places = [j for j in places if j >= first][:NEXT]
            count = sum(j in differences for j in places)
            changed += count > 0
            due += len(places)
            different += count
        results[kind] = Effect(len(grafts), changed, due, different)
        if kind == "whole" and past.states[0].h:
            graft_all(EVERYTHING, grafts, steps, _and_state(change, grafts, past), room)

    if not isinstance(memory, Stack | Queue):
        grafts = sample_any_grafts(past, rng)
        graft_all("whole", grafts, [graft.time for graft in grafts], _swapped(grafts, past))
        return results
    piles = piles_of(memory, past)
    for kind in KINDS:
        grafts = sample_grafts(kind, memory, piles, past, rng)
        items = [grafted(kind, memory, piles, graft) for graft in grafts]
        room = max((len(pile.s) for pile in items), default=0)
        steps = [since(kind, piles, graft) for graft in grafts]
        graft_all(kind, grafts, steps, _refilled(grafts, items, memory), room)
    return results


def _past(network: Network, condition: Condition, strings: Sequence[Example]) -> Past:
    x, sizes = inputs(network, condition, strings)
    states: list[State] = []
    strengths: list[Tensor] = []  # of the outputs

    def record_state(state: State) -> State:
        states.append(state)
        return state

    def record_output(actions: Actions) -> Actions:
        strengths.append(actions.y.new_ones(len(strings)) if actions.o is None else actions.o)
        return actions

    network(x, lengths=sizes, edit=Edit(record_state, record_output))
    before = pad(over_time(strengths, x), (1, -1)).cumsum(1)  # each step without its own output
    return Past(states, before, torch.arange(len(states)) < steps_of(network, sizes).unsqueeze(1))


def _refilled(grafts: Sequence[Graft], items: Sequence[MemoryState], memory: Stack | Queue) -> Change:
    """Before the step of graft k, row k comes to hold its items and nothing else, and has read them."""

    def change(state: State, step: int) -> State:
        V, s, r = state.memory.V.clone(), state.memory.s.clone(), state.r.clone()
        for k, graft in enumerate(grafts):
            if graft.time == step:
                first = s.shape[-1] - len(items[k].s)
                s[k] = 0
                V[k, first:], s[k, first:] = items[k]
                r[k] = memory.nearest(MemoryState(V[k], s[k])).s @ V[k]
        return state._replace(memory=MemoryState(V, s), r=r)

    return change


def _swapped(grafts: Sequence[Graft], past: Past) -> Change:
    """Before the step of graft k, row k gets the memory, of any kind, and the read of the donor at that time.
    All grafts of a step are made at once: a state may be large."""

    def change(state: State, step: int) -> State:
        places = [k for k, graft in enumerate(grafts) if graft.time == step]
        if not places:
            return state
        past_state, donors = past.states[step], [grafts[k].donor for k in places]

        def swap(part: Tensor, past_part: Tensor) -> Tensor:
            part = part.clone()
            part[places] = past_part[donors]
            return part

        memory, r = leaf_by_leaf(swap, (state.memory, state.r), (past_state.memory, past_state.r))
        return state._replace(memory=memory, r=r)

    return change


def _and_state(memory_change: Change, grafts: Sequence[Graft], past: Past) -> Change:
    """The same, and row k gets the controller's state of the donor too."""

    def change(state: State, step: int) -> State:
        h = tuple(part.clone() for part in state.h)
        for k, graft in enumerate(grafts):
            if graft.time == step:
                for part, past_part in zip(h, past.states[graft.donor_time].h, strict=True):
                    part[k] = past_part[graft.donor]
        return memory_change(state._replace(h=h), step)

    return change


def _answers(
    network: Network,
    condition: Condition,
    strings: Sequence[Example],
    grafts: Sequence[Graft],
    edit: Edit,
    room: int,
) -> list[list[str]]:
    """The network's answers to the string of each graft; memories begin with so many empty slots."""
    if not grafts:
        return []
    x, sizes = inputs(network, condition, [strings[graft.run] for graft in grafts])
    B = len(grafts)
    state: Any = network.init((B,), x)
    if room:
        slots = MemoryState(x.new_zeros(B, room, network.cell.memory.width), x.new_zeros(B, room))
        if isinstance(network, BufferedStackRNN):
            state = state._replace(network=state.network._replace(memory=slots))
        else:
            state = state._replace(memory=slots)
    y, final = network(x, state, sizes, edit=edit)
    return to_symbols(condition, y, final, sizes)
