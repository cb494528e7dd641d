"""States of a table merged where nothing that was seen tells them apart."""

from collections.abc import Callable, Mapping
from functools import partial

from softstack.formal.extraction import START, Row, Rows, Table, reached, split


def merged(table: Table, evidence: int = 0) -> Table:
    """The table with states merged, the start first and then in the order in which they are reached.

    Two states are merged if they do the same at every key that both have, and so do the states that follow.
    Among several, a state joins the one with which it has most keys in common, and none if that is fewer than
    `evidence`. What was never scored is no difference.
    """
    rows = split(table)
    parent = {state: state for state in rows}
    roots: list[int] = []
    for state in reached(rows):
        if _root(parent, state) != state:
            continue
        by_evidence = sorted(roots, key=lambda other: -_shared(rows[_root(parent, other)], rows[state]))
        for other in by_evidence:
            other = _root(parent, other)
            if other == _root(parent, state) or _shared(rows[other], rows[state]) < evidence:
                continue
            if _join(rows, parent, other, state):
                break
        else:
            roots.append(state)
    return {
        (state, *key): row._replace(next=_root(parent, row.next))
        for state, own in rows.items()
        if _root(parent, state) == state
        for key, row in own.items()
    }


def _root(parent: Mapping[int, int], state: int) -> int:
    while parent[state] != state:
        state = parent[state]
    return state


def _compatible(a: Row, b: Row) -> bool:
    return a.act == b.act and (a.write == b.write or not (a.scored and b.scored))


def _shared(a: Rows, b: Rows) -> int:
    """Keys that both have, if they do the same at all of them; -1 if not."""
    both = [key for key in a if key in b]
    return len(both) if all(_compatible(a[key], b[key]) for key in both) else -1


def _join(rows: dict[int, Rows], parent: dict[int, int], a: int, b: int) -> bool:
    """Both as one, with all that then must be one; False, and nothing is changed, where they differ."""
    undo: list[Callable[[], object]] = []
    pairs = [(a, b)]
    while pairs:
        a, b = (_root(parent, state) for state in pairs.pop())
        if a == b:
            continue
        if b == START:
            a, b = b, a
        undo.append(partial(parent.__setitem__, b, b))
        undo.append(partial(rows.__setitem__, b, rows[b]))
        parent[b] = a
        for key, row in rows[b].items():
            first = rows[a].get(key)
            if first is None:
                undo.append(partial(rows[a].pop, key))
                rows[a][key] = row
                continue
            if not _compatible(first, row):
                for step in reversed(undo):
                    step()
                return False
            if row.scored and not first.scored:
                undo.append(partial(rows[a].__setitem__, key, first))
                rows[a][key] = row._replace(next=first.next)
            pairs.append((first.next, row.next))
        rows[b] = {}
    return True
