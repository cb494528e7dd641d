"""Random deterministic PDTs, and words for them."""

from itertools import product

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from softstack.formal.transducer import BOTTOM, Rule, Transducer


def rules_of(
    states: st.SearchStrategy[str], reads: str, stack: str, outputs: st.SearchStrategy[str]
) -> st.SearchStrategy[Rule]:
    """Rules that are good by themselves but for $, which is popped and not pushed back; any part may be ε."""
    return st.builds(
        Rule,
        states,
        st.sampled_from(["", *reads]),
        st.sampled_from(["", BOTTOM, *stack]),
        states,
        st.lists(outputs, max_size=2).map(tuple),
        st.lists(st.sampled_from(stack), max_size=2).map(tuple),
    )


def keeping_marker(rule: Rule) -> Rule:
    return rule._replace(push=(BOTTOM, *rule.push)) if rule.pop == BOTTOM else rule


def enabled(rule: Rule, state: str, x: str, top: str) -> bool:
    return rule.state == state and rule.read in ("", x) and rule.pop in ("", top)


def deterministic(rules: list[Rule]) -> bool:
    """No state, symbol to read and stack top enables two rules, by trying them all."""
    states = {rule.state for rule in rules}
    reads = {rule.read for rule in rules} | {"?"}
    tops = {rule.pop for rule in rules} | {"?"}
    return all(sum(enabled(r, *at) for r in rules) <= 1 for at in product(states, reads - {""}, tops - {""}))


PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
RULES = rules_of(st.sampled_from("pqr"), "01", "ab", st.sampled_from("01xy"))


@st.composite
def sparse(draw: st.DrawFn, rules: st.SearchStrategy[Rule] = RULES) -> Transducer:
    """A deterministic PDT: of the rules drawn, those that do not clash with the ones before."""
    kept: list[Rule] = []
    for rule in map(keeping_marker, draw(st.lists(rules, min_size=1, max_size=14))):
        if deterministic([*kept, rule]):
            kept.append(rule)
    states = sorted({q for rule in kept for q in (rule.state, rule.next)})
    return Transducer(kept[0].state, kept, draw(st.lists(st.sampled_from(states), unique=True)))


@st.composite
def dense(draw: st.DrawFn) -> Transducer:
    """A deterministic PDT with a rule for nearly every configuration, so that runs are long."""
    rarely = st.integers(0, 5).map(lambda n: n == 5)
    keys: list[tuple[str, str, str]] = []
    for q in "pqr":
        moving = [top for top in "$ab" if draw(rarely)]  # tops at which q makes an ε-move
        keys += [(q, "", top) for top in moving]
        for x in "01":
            blind = not moving and draw(st.booleans())
            keys += [(q, x, top) for top in ([""] if blind else "$ab") if top not in moving]
    rules = [draw(RULES)._replace(state=q, read=x, pop=s) for q, x, s in keys if not draw(rarely)]
    rules = [keeping_marker(rule) for rule in rules] or [Rule("p", "0", "", "p", (), ())]
    return Transducer(rules[0].state, rules, draw(st.sampled_from([None, [rules[-1].state]])))


def words(machine: Transducer) -> st.SearchStrategy[list[str]]:
    if not machine.alphabet:
        return st.just([])
    letters = st.sampled_from(machine.alphabet)
    return st.integers(0, 15).flatmap(lambda n: st.lists(letters, min_size=n, max_size=n))
