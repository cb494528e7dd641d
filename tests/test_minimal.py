"""Smaller machines that say the same, recognisers that write their verdicts, and units that moves share."""

import numpy as np
import pytest
from hypothesis import assume, given, settings

from known_networks import MACHINES
from softstack.errors import BadInput
from softstack.formal.analysis import bound
from softstack.formal.compiler import compiled
from softstack.formal.equivalence import compare, covering
from softstack.formal.machines import PDTS, real_time_dyck
from softstack.formal.minimal import minimised
from softstack.formal.moves import moves, units
from softstack.formal.recognising import is_recogniser, with_verdicts
from softstack.formal.running import Live, deep_walk
from softstack.formal.transducer import Transducer
from strategies import dense, sparse


def tame(machine):
    try:
        bound(machine)
    except BadInput:
        return False
    return True


def test_equivalent_stack_symbols_are_one():
    small = minimised(MACHINES["two names for one"])
    assert str(small).splitlines() == [
        "start q",
        "q -> q   a : y , ε -> A",
        "q -> q   b : y , ε -> A",
        "q -> q   c : e , $ -> $",
        "q -> q   c : n , A -> ε",
    ]


def test_chains_are_made_at_once():
    chain = Transducer.parse("""
        start q
        q -> p   a : x
        p -> r   ε : y , ε -> A
        r -> q   ε : z
        q -> q   b : w , A -> ε
    """)
    assert str(minimised(chain)) == "start q\nq -> q   a : x y z , ε -> A\nq -> q   b : w , A -> ε"


def test_what_is_never_looked_at_is_not_pushed():
    small = minimised(MACHINES["pushes and never looks"])
    assert small.stack_symbols == ("$",)
    assert len(small.states) == 2


def test_what_is_never_seen_again_is_dropped():
    """A register that pushes for ever is a finite machine."""
    small = minimised(MACHINES["the last one, pushed"])
    assert max(len(c.stack) for c in small.run("0110100111").configurations) == 2
    shift = Transducer.parse("""
        start n
        n -> z   0 : _
        n -> o   1 : _
        z -> z   0 : 0
        z -> o   1 : 0
        o -> z   0 : 1
        o -> o   1 : 1
    """)
    assert compare(MACHINES["the last one, pushed"], shift).answer == "equal"


@settings(max_examples=150)
@given(dense())
def test_a_smaller_machine_says_the_same(machine):
    assume(tame(machine))
    small = minimised(machine)
    assert compare(machine, small).answer == "equal"
    assert len(small.states) <= len(machine.states)
    assert len(small.stack_symbols) <= len(machine.stack_symbols)


@settings(max_examples=60)
@given(sparse())
def test_sparse_ones_too(machine):
    assume(tame(machine))
    assert compare(machine, minimised(machine)).answer == "equal"


# --- recognisers --------------------------------------------------------------------------------------------

EQUAL = """
    start q
    accept e
    q -> q   a : ε , ε -> A
    q -> p   b : ε , A -> ε
    p -> p   b : ε , A -> ε
    p -> e   ε : ε , $ -> $
"""  # as many b as a


@pytest.mark.parametrize(
    ("word", "verdicts"), [("ab", "01"), ("aabb", "0001"), ("aab", "000"), ("abb", "01")]
)
def test_verdicts_by_hand(word, verdicts):
    machine = Transducer.parse(EQUAL)
    assert is_recogniser(machine) and not is_recogniser(PDTS["xor"])
    assert "".join(with_verdicts(machine).run(word).output) == verdicts
    accepted = [machine.run(word[: n + 1]).accepted for n in range(len(verdicts))]
    assert verdicts == "".join(str(int(yes)) for yes in accepted)


def test_a_recogniser_is_compiled_and_read_off(softstack, tmp_path):
    (tmp_path / "equal.pdt").write_text(EQUAL)
    code, out, err = softstack("compile", "equal.pdt", "--out", "runs")
    assert code == 0
    assert "the network writes 1 after each symbol where it does, and 0 elsewhere" in " ".join(err.split())
    run_dir = out.split()[0]
    code, out, err = softstack("equal", "equal.pdt", run_dir)
    assert (code, out.splitlines()[-1][:6]) == (0, "equal:")


def test_what_a_network_cannot_say_is_warned_of():
    machine = Transducer.parse("start q\naccept r\nq -> r   a : x\nr -> q   a : y")
    [warning] = compiled(machine).warnings
    assert warning == "it accepts in r only, which a network cannot show: let it write that"


# --- units --------------------------------------------------------------------------------------------------


def test_units_are_shared():
    """Five pairs of brackets, each symbol with what lies beneath it: what that is matters to few rules."""
    machine = real_time_dyck([(f"({k}", f"){k}") for k in range(5)], "_")
    plan = moves(machine, waiting=False)
    shared = units(plan)
    assert (len(machine.rules), len(plan), len(shared)) == (185, 185, 60)
    covered = [(q, x, s) for unit in shared for q in unit.states for x in unit.reads for s in unit.tops]
    assert sorted(covered) == sorted((m.state, m.read, m.top) for m in plan)
    compilation = compiled(machine, buffered=False)
    assert compilation.network.hidden_size == 61
    rng = np.random.default_rng(0)
    for _ in range(10):
        word = deep_walk(machine, rng, 40)
        assert compilation.transduce(word) == machine.run(word).output


# --- words --------------------------------------------------------------------------------------------------


def test_every_symbol_is_tried_in_every_situation():
    machine = MACHINES["palindromes with a centre"]
    rng = np.random.default_rng(0)
    tried = set()
    for word in covering(machine, rng):
        live = Live(machine)
        live.settle()
        for symbol in word:
            tried.add((live.state, live.stack[-1], symbol))
            if live.feed(symbol) is None:
                break
    heads = {(state, top) for state in ("w", "v", "bad") for top in "$ab"} - {("bad", "$")}
    wanted = {(*head, symbol) for head in heads for symbol in "abc"}
    assert wanted <= tried


def test_deep_walks_fill_the_stack_and_empty_it():
    """Uniform walks of brackets with an error state fall into it at once."""
    machine = MACHINES["brackets and an error state"]
    rng = np.random.default_rng(0)
    heights = []
    for _ in range(50):
        word = deep_walk(machine, rng, 30)
        path = [len(c.stack) - 1 for c in machine.run(word).configurations]
        assert len(word) == 30
        heights.append(max(path))
        assert machine.run(word).configurations[-1].state == "q"
    assert np.mean(heights) > 5
