"""A PDT from a table whose strengths are parts of 1, such as halves.

The network's stack is a pile of parts, and a read sees the nearest of them, k parts that make 1. A PDT sees
one symbol. So each of its stack symbols stands for a part *and* for those beneath it, as far as a read
reaches: with halves, the parts c, b, a, pushed in this order, are the symbols (c), (b c), (a b). To push a
part z onto them is to push (z a); to pop a part is to pop a symbol. A part that is popped and pushed again
stays where it is. To pop several takes ε-moves.
"""

from softstack.errors import BadInput
from softstack.formal.extraction import START, Row, Symbols, Table, blanked, letter, reached, split
from softstack.formal.transducer import BOTTOM, Rule, Transducer

MOST = 2_000  # rules: an ε-move has one for each pile of parts on top. What explains a network has some 400


def machine_in_parts(table: Table, parts: int, blank: str = "") -> Transducer:
    """The rules of a table in which every step takes a symbol and gives one."""
    table = blanked(table, blank)
    names = {state: f"q{k}" for k, state in enumerate(reached(split(table)))}
    tops: dict[Symbols, None] = {view: None for _, _, view in table} | {(): None}
    rules: list[Rule] = []
    pending: dict[tuple[int, Symbols, int], str] = {}  # states in which parts are popped by ε-moves

    def pile(view: Symbols, pushed: Symbols) -> tuple[str, ...]:
        """The symbols of parts that are pushed onto these."""
        symbols: list[Symbols] = []
        for part in pushed:
            view = (part, *view)[:parts]
            symbols.append(view)
        tops.update(dict.fromkeys(symbols))
        return tuple(map(_name, symbols))

    def popping(row: Row, pops: int, pushed: Symbols) -> str:
        key = row.next, pushed, pops
        return pending.setdefault(key, f"{names[row.next]}-{pops}-{''.join(map(letter, pushed))}")

    for (state, x, view), row in table.items():
        if state not in names or not x:
            continue
        pops, pushed = _net(view, row)
        write = (row.write,) if row.write else ()
        head = names[state], x, _name(view)
        if not pops:
            rules.append(Rule(*head, names[row.next], write, (_name(view), *pile(view, pushed))))
        elif pops == 1:
            rules.append(Rule(*head, names[row.next], write, pile(view[1:], pushed)))
        else:
            for left in range(1, pops):
                popping(row, left, pushed)
            rules.append(Rule(*head, popping(row, pops - 1, pushed), write, ()))
    if pending:  # what was seen may lie under any part
        all_parts = dict.fromkeys(part for top in tops for part in top)
        tops |= {(part, *view)[:parts]: None for view in tops for part in all_parts}
    for k, ((following, pushed, pops), name) in enumerate(list(pending.items())):
        if len(rules) + len(tops) * (len(pending) - k) > MOST:
            raise BadInput(f"a machine in parts of 1/{parts} would have more than {MOST:,} rules")
        for view in [top for top in list(tops) if top]:
            if pops == 1:
                rules.append(Rule(name, "", _name(view), names[following], (), pile(view[1:], pushed)))
            else:
                rules.append(Rule(name, "", _name(view), pending[following, pushed, pops - 1], (), ()))
    return Transducer(names[START], rules)


def _net(view: Symbols, row: Row) -> tuple[int, Symbols]:
    """How many parts a row pops, and what it pushes, without those that are put back where they were."""
    pops, pushed = row.act.pop, row.act.push
    while pops and pushed and view[pops - 1] == pushed[0]:
        pops, pushed = pops - 1, pushed[1:]
    return pops, pushed


def _name(view: Symbols) -> str:
    """The stack symbol of these parts."""
    return "".join(map(letter, view)) or BOTTOM
