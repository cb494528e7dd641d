"""A smaller PDT that says the same: what is never enabled or never seen again is dropped, chains of ε-moves
are made at once, and states and stack symbols that nothing tells apart are merged.

The machine is taken as a table of *heads*: a state, a top of the stack, and what is read there or "". Two
states, or two symbols, are merged with all that must then be one, if every head that can be reached keeps
just the rows that it had. Then every run of the machine is a run of the smaller one, step by step.
"""

from itertools import combinations
from typing import NamedTuple

from softstack.formal.analysis import in_place_of, reachable
from softstack.formal.transducer import BOTTOM, Rule, Transducer

MOST = 120  # states and stack symbols of which every pair is tried
CHAIN = 100  # ε-moves that are made at once, at most
Head = tuple[str, str]  # state, top
Node = tuple[str, str]  # "state" or "top", and which: what may be merged with others of its kind


class Row(NamedTuple):
    next: str
    write: tuple[str, ...]
    pile: tuple[str, ...]  # what lies where the top lay


Table = dict[Head, dict[str, Row]]  # by what is read, "" for an ε-move


def minimised(machine: Transducer) -> Transducer:
    """The machine with fewer states, stack symbols and rules, if that can be had by merging."""
    table = _table(machine)
    tables = [table, _uncovered(table)]
    tables += [_chained(choice) for choice in tables]
    return min([machine, *(_smaller(machine, choice) for choice in tables)], key=_size)


def _size(machine: Transducer) -> tuple[int, int, int, int]:
    pushed = sum(len(rule.push) for rule in machine.rules)
    return len(machine.states), len(machine.stack_symbols), len(machine.rules), pushed


def _smaller(machine: Transducer, table: Table) -> Transducer:
    table = _reached(machine.start, table)
    names, symbols = _merged(table, machine)
    small: Table = {}
    for (state, top), rows in table.items():
        small[names[state], symbols[top]] = {
            x: Row(names[row.next], row.write, tuple(symbols[s] for s in row.pile)) for x, row in rows.items()
        }
    accepting = None
    if machine.accepting != machine.states:
        accepting = dict.fromkeys(names[q] for q in machine.accepting if q in names)
    rules = _rules(small)
    if not rules:
        return machine
    rules = _without_useless_pushes(rules)
    start = names[machine.start]
    states = {start, *(q for rule in rules for q in (rule.state, rule.next))}
    return Transducer(start, rules, None if accepting is None else [q for q in accepting if q in states])


def _table(machine: Transducer) -> Table:
    table: Table = {}
    for state, top in reachable(machine):
        rules = [r for r in machine.rules if r.state == state and r.pop in ("", top)]
        table[state, top] = {r.read: Row(r.next, r.write, in_place_of(r, top)) for r in rules}
    return table


def _uncovered(table: Table) -> Table:
    """Without symbols that are pushed beneath one that is never gone: nothing ever sees them."""
    ends = _ends(table)

    def seen(row: Row) -> Row:
        states, pile = {row.next}, row.pile
        for k in range(len(pile) - 1, 0, -1):
            states = {end for q in states for end in ends.get((q, pile[k]), ())}
            if not states:
                return row._replace(pile=(*pile[: pile[0] == BOTTOM], *pile[k:]))
        return row

    return {head: {x: seen(row) for x, row in rows.items()} for head, rows in table.items()}


def _ends(table: Table) -> dict[Head, set[str]]:
    """The states in which the top of each head is just gone; none if it stays for ever."""
    ends: dict[Head, set[str]] = {head: set() for head in table}
    changed = True
    while changed:
        changed = False
        for head, rows in table.items():
            for row in rows.values():
                states = {row.next}
                for symbol in reversed(row.pile):
                    states = {end for q in states for end in ends.get((q, symbol), ())}
                changed |= not states <= ends[head]
                ends[head] |= states
    return ends


def _chained(table: Table) -> Table:
    """ε-moves whose top is known are made together with the move before them."""

    def at_once(row: Row) -> Row:
        for _ in range(CHAIN):
            following = table.get((row.next, row.pile[-1]), {}).get("") if row.pile else None
            if following is None:
                break
            row = Row(following.next, row.write + following.write, row.pile[:-1] + following.pile)
        return row

    return {head: {x: at_once(row) for x, row in rows.items()} for head, rows in table.items()}


def _reached(start: str, table: Table) -> Table:
    """The heads that can still be reached, in the order in which they are found."""
    rules = [
        Rule(state, x, top, row.next, row.write, row.pile)
        for (state, top), rows in table.items()
        for x, row in rows.items()
    ]
    if not any(rule.state == start for rule in rules):
        return table
    return {head: table.get(head, {}) for head in reachable(Transducer(start, rules))}


def _merged(table: Table, machine: Transducer) -> tuple[dict[str, str], dict[str, str]]:
    """For each state and each stack symbol the one that stands for it."""
    all_rows = [row for rows in table.values() for row in rows.values()]
    states = dict.fromkeys([machine.start, *(q for q, _ in table), *(row.next for row in all_rows)])
    tops = dict.fromkeys([BOTTOM, *(top for _, top in table), *(s for row in all_rows for s in row.pile)])
    nodes: list[Node] = [*(("top", s) for s in tops if s != BOTTOM), *(("state", q) for q in states)]
    parent = {node: node for node in [*nodes, ("top", BOTTOM)]}
    final = set(machine.accepting)
    for a, b in combinations(nodes, 2) if len(nodes) <= MOST else ():
        if a[0] == b[0] and _root(parent, a) != _root(parent, b):
            parent = _joined(table, parent, a, b, final) or parent
    names = {q: _root(parent, ("state", q))[1] for q in states}
    return names, {s: _root(parent, ("top", s))[1] for s in tops}


def _joined(
    table: Table, parent: dict[Node, Node], a: Node, b: Node, final: set[str]
) -> dict[Node, Node] | None:
    """Both as one, with all that then must be one; None where some head would change."""
    parent = dict(parent)
    pairs = [(a, b)]
    while pairs:
        while pairs:
            a, b = (_root(parent, node) for node in pairs.pop())
            if a == b:
                continue
            if ("top", BOTTOM) in (a, b) or (a[0] == "state" and (a[1] in final) != (b[1] in final)):
                return None
            parent[b] = a
        classes: dict[tuple[str, str], dict[str, Row]] = {}
        for (state, top), rows in table.items():
            head = _root(parent, ("state", state))[1], _root(parent, ("top", top))[1]
            first = classes.setdefault(head, rows)
            if first is rows:
                continue
            if set(first) != set(rows):
                return None
            for x, row in rows.items():
                other = first[x]
                if row.write != other.write or len(row.pile) != len(other.pile):
                    return None
                pairs.append((("state", row.next), ("state", other.next)))
                pairs += [(("top", s), ("top", t)) for s, t in zip(row.pile, other.pile, strict=True)]
        pairs = [(a, b) for a, b in pairs if _root(parent, a) != _root(parent, b)]
    return parent


def _root(parent: dict[Node, Node], node: Node) -> Node:
    while parent[node] != node:
        node = parent[node]
    return node


def _rules(table: Table) -> list[Rule]:
    """Rows as rules; where a symbol is read alike whatever lies on top, and that stays, it is one rule."""
    rules: list[Rule] = []
    for state in dict.fromkeys(state for state, _ in table):
        tops = {top: rows for (q, top), rows in table.items() if q == state}
        for x in dict.fromkeys(x for rows in tops.values() for x in rows):
            own = {top: rows[x] for top, rows in tops.items() if x in rows}
            blind = {
                (row.next, row.write, row.pile[1:]) for top, row in own.items() if row.pile[:1] == (top,)
            }
            stays = all(row.pile[:1] == (top,) for top, row in own.items())
            quiet = any("" in rows for rows in tops.values())
            if x and stays and len(blind) == 1 and len(own) == len(tops) and not quiet:
                following, write, push = next(iter(blind))
                rules.append(Rule(state, x, "", following, write, push))
            else:
                rules += [Rule(state, x, top, *row) for top, row in own.items()]
    return rules


def _without_useless_pushes(rules: list[Rule]) -> list[Rule]:
    """Nothing is pushed on the way to states from which on the stack is never looked at."""
    blind = {q for rule in rules for q in (rule.state, rule.next)}
    while looking := {rule.state for rule in rules if rule.pop or rule.next not in blind} & blind:
        blind -= looking
    return [
        rule._replace(push=(BOTTOM,) if rule.pop == BOTTOM else ()) if rule.next in blind else rule
        for rule in rules
    ]
