"""Recognisers as transducers: after each symbol a verdict on what was read so far.

A machine that writes nothing says what it knows by the state in which it rests. A network has nothing but
what it writes, so a recogniser is compiled, compared and read off as the machine that writes its verdicts.
"""

from softstack.formal.analysis import reachable
from softstack.formal.transducer import Rule, Transducer

YES, NO = "1", "0"


def is_recogniser(machine: Transducer) -> bool:
    """Whether it says something by accepting, and nothing else."""
    return machine.accepting != machine.states and not any(rule.write for rule in machine.rules)


def with_verdicts(machine: Transducer) -> Transducer:
    """Writes 1 after each symbol that leaves the machine at rest in an accepting state, and 0 elsewhere."""
    verdict = {q: (YES if q in machine.accepting else NO,) for q in machine.states}
    if all(rule.read for rule in machine.rules):
        return Transducer(machine.start, [rule._replace(write=verdict[rule.next]) for rule in machine.rules])
    due = {q: f"{q}?" for q in machine.states}  # the verdict is still to be written
    while set(due.values()) & set(machine.states):
        due = {q: f"{name}?" for q, name in due.items()}
    rules: list[Rule] = []
    for rule in machine.rules:
        if rule.read:
            rules.append(rule._replace(next=due[rule.next]))
        else:
            rules += [rule, rule._replace(state=due[rule.state], next=due[rule.next])]
    for q in machine.states:
        tops = [top for top in machine.stack_symbols if machine.enabled(q, "", top) is None]
        if len(tops) == len(machine.stack_symbols):
            rules.append(Rule(due[q], "", "", q, verdict[q], ()))
        else:
            rules += [Rule(due[q], "", top, q, verdict[q], (top,)) for top in tops]
    heads = reachable(whole := Transducer(machine.start, rules))
    used = [r for r in whole.rules if any(r.state == q and r.pop in ("", top) for q, top in heads)]
    # a verdict takes the place of most moves at rest; a machine that never moves keeps its rules
    return Transducer(machine.start, used or whole.rules)
