"""From what a network was seen to do, its strengths rounded, to a PDT that does the same.

States and pushed vectors are put into groups. A *key*, what the controller has before it, is a state, a
symbol at the front of the input and what a read sees of the stack; what the network most often did at a key
becomes a row of a table, and rows become rules once states have been merged (`merging.py`).

Strengths are whole, or multiples of a part of 1, such as halves. A stack is then a pile of parts, each of one
symbol, and a read sees as many of them as make 1. `machine` is for whole strengths, `parts.py` for others.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softstack.formal.clusters import Points, assign
from softstack.formal.transducer import BOTTOM, Rule, Transducer

END = ""  # no input is left
START = 0  # the state before any step

Symbols = tuple[int, ...]
Key = tuple[int, str, Symbols]  # state, symbol at the front of the input, what a read sees, nearest first


class Seen(NamedTuple):
    """One string's run, step by step. Pops and pushes count parts of 1; other strengths are 0 or 1."""

    x: Sequence[str]  # the symbol at the front of the input, or END
    pop: NDArray[np.int64]
    push: NDArray[np.int64]
    take: NDArray[np.bool_]
    give: NDArray[np.bool_]
    v: Points  # (steps, m) what is pushed where `push` is set
    h: Points  # (steps, H) the controller's state after each step; H = 0 without one
    write: Sequence[str]  # what is written where `give` is set
    scored: NDArray[np.bool_]  # whether what is written is scored


class Act(NamedTuple):
    """What a step does but for what it writes."""

    pop: int
    push: Symbols  # the last ends on top
    take: bool
    give: bool


class Row(NamedTuple):
    """What is done at a key."""

    act: Act
    write: str  # where it gives
    scored: bool  # whether `write` was ever scored
    next: int


Table = dict[Key, Row]
Rows = dict[tuple[str, Symbols], Row]  # of a state, by symbol at the front and what a read sees


def tabulate(
    runs: Sequence[Seen], states: Points | None, symbols: Points | None, parts: int = 1
) -> tuple[Table, float]:
    """What is most often done at each key, and the share of steps that did just that.

    `states` and `symbols` are centres of groups; state 0 is the start, and state k + 1 the group k. Without
    centres all states are one, or the stack is left out. A read sees so many `parts`.
    """
    acts: dict[Key, Counter[tuple[Act, int]]] = defaultdict(Counter)
    writes: dict[Key, Counter[tuple[bool, str]]] = defaultdict(Counter)
    all_after = None if states is None else assign(np.concatenate([run.h for run in runs]), states) + 1
    all_pushed = None if symbols is None else assign(np.concatenate([run.v for run in runs]), symbols)
    end = 0
    for run in runs:
        begin, end = end, end + len(run.x)
        after = [START] * len(run.x) if all_after is None else all_after[begin:end].tolist()
        pushed = [START] * len(run.x) if all_pushed is None else all_pushed[begin:end].tolist()
        stack: list[int] = []
        state = START
        for t, x in enumerate(run.x):
            key = (state, x, tuple(stack[: -parts - 1 : -1]))
            pops, gives = min(int(run.pop[t]), len(stack)), bool(run.give[t])
            pushes = 0 if symbols is None else int(run.push[t])
            act = Act(pops, (pushed[t],) * pushes, bool(run.take[t]), gives)
            acts[key][act, after[t]] += 1
            if gives:
                writes[key][bool(run.scored[t]), run.write[t]] += 1
            del stack[len(stack) - pops :]
            stack += act.push
            state = after[t]
    table: Table = {}
    for key, counts in acts.items():
        act, following = counts.most_common(1)[0][0]
        symbols_here = writes[key]
        any_scored = any(scored for scored, _ in symbols_here)
        votes = Counter({symbol: n for (scored, symbol), n in symbols_here.items() if scored == any_scored})
        table[key] = Row(act, votes.most_common(1)[0][0] if act.give and votes else "", any_scored, following)
    total = sum(sum(counts.values()) for counts in acts.values())
    agreed = sum(counts.most_common(1)[0][1] for counts in acts.values())
    return table, agreed / total if total else 1.0


def machine(table: Table, blank: str = "") -> Transducer:
    """The rules of a table of whole strengths. Rows that do nothing with a symbol are where it is stuck. What
    was never scored is written as `blank`, where one is given."""
    table = _awake(blanked(table, blank))
    by_state = split(table)
    order = reached(by_state)
    names = {state: f"q{k}" for k, state in enumerate(order)}
    symbols = sorted({row.act.push for row in table.values()} | {top for _, _, top in table} - {()})
    letters = {s: letter(k) for k, s in enumerate(s for s in symbols if s)} | {(): BOTTOM}
    rules: list[Rule] = []
    dead = _dead(table)
    for state in order:
        rows = by_state[state]
        quiet = _quiet(state, rows, dead)
        tops = {top for _, top in rows} - set(quiet)
        if quiet and not tops and _alike(quiet.values()):
            rules.append(_rule(names, letters, state, "", None, next(iter(quiet.values()))))
        else:
            rules += [_rule(names, letters, state, "", top, row) for top, row in quiet.items()]
        for x in sorted({x for x, _ in rows if x != END}):
            own = {top: rows[x, top] for top in sorted(tops) if (x, top) in rows and rows[x, top].act.take}
            if not quiet and set(own) == tops and _alike(own.values()):
                rules.append(_rule(names, letters, state, x, None, next(iter(own.values()))))
            else:
                rules += [_rule(names, letters, state, x, top, row) for top, row in own.items()]
    return Transducer(names[START], rules)


def blanked(table: Table, blank: str) -> Table:
    """The table that says `blank`, where one is given, at every key that was never scored."""
    if not blank:
        return table
    return {k: r if r.scored or not r.act.give else r._replace(write=blank) for k, r in table.items()}


def _awake(table: Table) -> Table:
    """The table without a buffered network's waiting: without steps where no input is left, after which it
    never does anything. States of which nothing but that was seen may have been merged with any."""
    waiting = {(state, top): row.next for (state, x, top), row in table.items() if x == END and _still(row)}
    while busy := [
        (state, top)
        for (state, top), following in waiting.items()
        if (following, END, top) in table and (following, top) not in waiting
    ]:
        for head in busy:
            del waiting[head]
    return {
        (state, x, top): row
        for (state, x, top), row in table.items()
        if x != END or (state, top) not in waiting
    }


def _quiet(state: int, rows: Rows, dead: set[int]) -> dict[Symbols, Row]:
    """The tops at which a state makes an ε-move: it takes nothing, whatever the input is, and does something.
    To stay, waiting for input, is nothing, and so is to go where nothing is ever done."""
    by_top: dict[Symbols, Row] = {}
    for top in sorted({top for _, top in rows}):
        own = [row for (_, t), row in rows.items() if t == top]
        moves = [row for row in own if not (_still(row) and row.next in {state, *dead})]
        if moves and not any(row.act.take for row in own):
            moves = [row for row in moves if row.scored] or moves
            most = Counter((row.act, row.write, row.next) for row in moves).most_common(1)[0][0]
            by_top[top] = next(row for row in moves if (row.act, row.write, row.next) == most)
    return by_top


def _alike(rows: Collection[Row]) -> bool:
    """Whether rows at different tops do the same and leave the top: they do it whatever lies there."""
    same = len({(row.act, row.write, row.next) for row in rows}) == 1
    return same and not any(row.act.pop for row in rows)


def _still(row: Row) -> bool:
    return row.act == Act(pop=0, push=(), take=False, give=False)


def _dead(table: Table) -> set[int]:
    """States in which a machine is stuck: it stays, and does nothing, with input before it."""
    stuck = {state for (state, x, _), row in table.items() if x != END and _still(row) and row.next == state}
    return stuck - {state for (state, _, _), row in table.items() if not _still(row) or row.next != state}


def _rule(
    names: Mapping[int, str],
    letters: Mapping[Symbols, str],
    state: int,
    x: str,
    top: Symbols | None,
    row: Row,
) -> Rule:
    pushed = (letters[row.act.push],) if row.act.push else ()
    pop = "" if top is None else letters[top]
    below = (pop,) if pop and not row.act.pop else ()
    write = (row.write,) if row.act.give and row.write else ()
    return Rule(names[state], x, pop, names[row.next], write, (*below, *pushed))


def split(table: Table) -> dict[int, Rows]:
    """The rows of each state; a state that nothing was seen to follow has none."""
    rows: dict[int, Rows] = {START: {}}
    for (state, x, top), row in table.items():
        rows.setdefault(state, {})[x, top] = row
        rows.setdefault(row.next, {})
    return rows


def reached(rows: Mapping[int, Rows]) -> list[int]:
    """The states, as they are reached from the start."""
    order = [START]
    for state in order:  # grows as it is read
        order += dict.fromkeys(row.next for row in rows[state].values() if row.next not in order)
    return order


def letter(k: int) -> str:
    return chr(ord("A") + k) if k < 26 else f"S{k}"
