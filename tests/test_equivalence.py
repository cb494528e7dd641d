"""Whether machines and networks say the same: three answers, shortest words, and the command."""

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from known_networks import MACHINES
from softstack.errors import BadInput
from softstack.formal.analysis import bound
from softstack.formal.equivalence import Comparison, Difference, compare, difference
from softstack.formal.machines import PDTS, dyck, real_time_dyck
from softstack.formal.transducer import Rule, Transducer
from softstack.lab.explain.compiled import compile_task
from softstack.lab.explain.equality import Party, equal
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import initial
from strategies import dense, sparse

BRACKETS = [("(", ")"), ("[", "]")]


def tame(machine):
    try:
        bound(machine)
    except BadInput:
        return False
    return True


@pytest.mark.parametrize("machine", [*MACHINES.values(), *PDTS.values()])
def test_a_machine_is_itself_under_other_names(machine):
    renamed = Transducer(
        f"n{machine.start}",
        [
            rule._replace(
                state=f"n{rule.state}",
                next=f"n{rule.next}",
                pop=rule.pop if rule.pop in ("", "$") else f"s{rule.pop}",
                push=tuple(s if s == "$" else f"s{s}" for s in rule.push),
            )
            for rule in machine.rules
        ],
    )
    assert compare(machine, renamed).answer == "equal"


def test_the_same_by_other_means():
    assert compare(dyck(BRACKETS, "_"), real_time_dyck(BRACKETS, "_")).answer == "equal"
    assert compare(PDTS["xor"], MACHINES["xor on the stack"]).answer == "equal"
    assert compare(PDTS["xor"], PDTS["delayed_xor"]).difference == Difference(("1",), ("1",), ("0",))
    with_epsilon = Transducer.parse("start q\nq -> p   a : x\np -> q   ε : y\nq -> q   b : z")
    at_once = Transducer.parse("start q\nq -> q   a : x y\nq -> q   b : z")
    assert compare(with_epsilon, at_once).answer == "equal"


def counting(n, last):
    """Says y for each b that takes an a back, and `last` from the n-th in a row on."""
    rules = [Rule("q", "a", "", "q", ("x",), ("A",)), Rule("q", "b", "A", "p0", ("y",), ())]
    rules += [Rule(f"p{k}", "b", "A", f"p{k + 1}", ("y",), ()) for k in range(n)]
    return Transducer("q", [*rules, Rule(f"p{n}", "b", "A", f"p{n}", (last,), ())])


def test_a_difference_far_away_is_found():
    """2 ** 84 words are shorter."""
    answer = compare(counting(40, "y"), counting(40, "z"))
    assert answer.difference == Difference(("a",) * 42 + ("b",) * 42, ("y",), ("z",))


def test_stacks_that_drift_apart_are_undecided():
    once = Transducer.parse("start q\nq -> q   a : x , ε -> A\nq -> q   b : y , A -> ε")
    twice = Transducer.parse("""
        start q
        q -> q   a : x , ε -> A A
        q -> p   b : y , A -> ε
        p -> q   ε : ε , A -> ε
    """)
    answer = compare(once, twice)
    assert (answer.answer, answer.difference) == ("undecided", None)
    assert answer.length > 20
    assert re.search("no word of at most [0-9]+ symbols tells them apart, and their stacks", str(answer))
    other = Transducer(twice.start, [*twice.rules[:2], twice.rules[2]._replace(write=("z",))])
    assert compare(once, other).difference == Difference(("a", "b"), ("y",), ("y", "z"))


def test_acceptance_is_a_difference():
    text = "start q\n{}q -> r   a : ε\nr -> q   a : ε\nq -> q   b : x"
    every, some = (Transducer.parse(text.format(accept)) for accept in ("", "accept q\n"))
    answer = compare(every, some)
    assert answer.difference == Difference(("a",), (), (), (True, False))
    assert str(answer) == "different: a, which the first accepts and the second does not accept"


def test_words_that_the_first_cannot_read_can_be_left_out():
    less = Transducer("q0", PDTS["reversal"].rules[:3])
    assert compare(less, PDTS["reversal"]).difference == Difference(("1", "#"), None, ("1",))
    assert compare(less, PDTS["reversal"], within_first=True).answer == "equal"
    assert compare(PDTS["reversal"], less, within_first=True).difference.word == ("1", "#")


@settings(max_examples=150)
@given(st.one_of(dense(), sparse()), st.one_of(dense(), sparse()))
def test_answers_agree_with_trying_all_words(a, b):
    assume(tame(a) and tame(b))
    answer, tried = compare(a, b), difference(a, b, 5)
    if tried is not None:
        assert answer.answer == "different"
        assert len(answer.difference.word) == len(tried.word)
    elif answer.difference is not None:
        assert len(answer.difference.word) > 5


@settings(max_examples=150)
@given(dense(), st.data())
def test_one_changed_rule_is_found_if_it_matters(machine, data):
    """With the whole answer checked by hand: the word does tell them apart, and no shorter one does."""
    assume(tame(machine))
    k = data.draw(st.integers(0, len(machine.rules) - 1))
    rules = list(machine.rules)
    rules[k] = rules[k]._replace(write=(*rules[k].write, "new"))
    other = Transducer(machine.start, rules, machine.accepting)
    answer = compare(machine, other)
    assert answer.answer in ("equal", "different")  # their stacks are the same
    if answer.answer == "equal":
        assert difference(machine, other, 6) is None
    else:
        found = answer.difference
        assert machine.run(found.word).output != other.run(found.word).output
        if len(found.word) <= 8:
            assert difference(machine, other, len(found.word) - 1) is None


# --- networks and the command -------------------------------------------------------------------------------


def test_no_answer_without_a_machine():
    answer = equal(Party(PDTS["xor"]), Party(None))
    assert answer == Comparison("undecided", None, None, "no machine explains the second")
    assert str(answer) == "undecided: no machine explains the second"


def test_a_network_that_differs_from_its_machine_somewhere_is_equal_to_nothing():
    network = initial(Condition("xor", "linear"), 0)
    answer = equal(Party(PDTS["xor"], network), Party(PDTS["xor"]))
    assert answer.answer == "undecided"
    assert "the first does not say what its machine says" in str(answer)
    assert equal(Party(PDTS["xor"], network, agreed=100), Party(PDTS["xor"])).answer == "equal"


def test_networks_are_asked_themselves():
    """It stops after a word so rare that no string had it; its machine, and the other file, go on."""
    chain = "".join(f"s{k} -> s{k + 1}  a : x\ns{k} -> s0  b : y\n" for k in range(12))
    stops = Transducer.parse(f"start s0\n{chain}s12 -> dead  b : y\ns12 -> s0  a : x")
    goes_on = Transducer.parse(f"start s0\n{chain}s12 -> s0  b : y\ns12 -> s0  a : x")
    made, trial = compile_task(stops, str(stops))
    read_off = Transducer.parse("start q\nq -> q  a : x\nq -> q  b : y")
    party = Party(read_off, made.network, trial.condition, agreed=738)
    answer = equal(party, Party(goes_on))
    assert answer.answer == "different" and answer.difference.word[:13] == ("a",) * 12 + ("b",)
    assert "not of what is rarer" in str(equal(party, Party(read_off)))
    assert equal(party, Party(stops)).answer == "undecided"  # it is its own machine, but not the one read off


def test_the_command(softstack, tmp_path):
    (tmp_path / "xor.pdt").write_text(str(MACHINES["xor on the stack"]))
    code, out, err = softstack("equal", "xor", "xor.pdt")
    assert (code, err) == (0, "")
    assert out.startswith("equal: ")
    code, out, err = softstack("equal", "xor", "delayed_xor")
    assert code == 1
    assert out == "different: 1, where the first then writes 1 and the second then writes 0\n"
    assert softstack("equal", "xor", "nothing")[0] == 2


def test_the_command_with_networks(softstack, tmp_path):
    _, out, _ = softstack("compile", "reversal", "--controller", "linear", "--unbuffered", "--out", "r")
    network = out.split()[0]
    code, out, err = softstack("equal", "reversal", network)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].startswith("equal: ")
    code, out, err = softstack("equal", network, "selective_reversal")
    assert code == 1
