"""What is wrong with a machine, said before it runs, with the rule named."""

import pytest

from softstack.errors import BadInput
from softstack.formal.analysis import bound, problems, quiet, reachable
from softstack.formal.compiler import compiled
from softstack.formal.machines import PDTS
from softstack.formal.transducer import Transducer


def one(*rules, start="q"):
    return Transducer.parse("\n".join([f"start {start}", *rules]))


def test_the_tables_have_no_problems():
    assert {name: problems(machine) for name, machine in PDTS.items()} == {name: [] for name in PDTS}


def test_heads_of_parenthesis_by_hand():
    """q2 comes after a pop, with anything on top; q1 is everywhere."""
    assert set(reachable(PDTS["parenthesis"])) == {(q, s) for q in ("q1", "q2") for s in "$(["}
    assert set(reachable(PDTS["formula"])) == {("none", "$"), *((q, s) for q in "01" for s in "$01")}


def test_reachability_looks_under_the_stack():
    """b lies under every a, and r is entered only with b on top; c never shows."""
    machine = one(
        "q -> p   0 : x , $ -> $ c b a",
        "p -> r   0 : x , a -> ε",
        "r -> r   0 : y , b -> b",
        "r -> r   0 : z , c -> ε",
        "r -> s   0 : z , a -> a",
    )
    assert reachable(machine) == (("q", "$"), ("p", "a"), ("r", "b"))
    said = problems(machine)
    assert said[0] == "state s cannot be reached from the start"
    assert "`r -> r   0 : z , c -> ε` is never enabled" in said[1]
    assert "always one of b" in said[1]
    assert "`r -> s   0 : z , a -> a` is never enabled" in said[2]
    assert len(said) == 3
    assert compiled(machine).warnings == tuple(said)
    assert compiled(machine).transduce("0000") == ("x", "x", "y", "y")


def test_a_pop_from_a_stack_that_is_always_empty():
    machine = one("q -> q   0 : x", "q -> q   1 : y , a -> ε")
    assert problems(machine) == [
        "the rule `q -> q   1 : y , a -> ε` pops a, which no rule pushes: it is never enabled"
    ]
    machine = one("q -> p   0 : x , $ -> $ a", "q -> q   1 : y , a -> ε", "p -> p   1 : y , a -> a")
    assert "in state q the top of the stack is always one of $, the empty stack" in problems(machine)[0]


@pytest.mark.parametrize(
    "rules",
    [
        ["q -> q   ε : x"],
        ["q -> p   0 : x", "p -> r   ε : x , ε -> a", "r -> p   ε : ε , a -> ε"],
        ["q -> p   0 : x , ε -> a", "p -> p   ε : ε , a -> a b", "p -> p   ε : ε , b -> a"],
    ],
)
def test_cycles_that_read_nothing(rules):
    with pytest.raises(BadInput, match=r"ε-cycle: .* never end, and `.*` comes again"):
        compiled(one(*rules))


def test_a_cycle_that_cannot_be_reached_is_no_fault():
    machine = one("q -> q   0 : x", "p -> p   ε : x")
    assert compiled(machine).transduce("00") == ("x", "x")
    assert problems(machine) == ["state p cannot be reached from the start"]


def test_too_many_moves_in_a_row():
    """A counter of 14 bits in ε-moves: it ends, after 2**14 of them and more."""
    rules = ["q -> c   0 : x , ε -> " + " ".join(f"z{k}" for k in range(14))]
    for k in range(14):
        above = " ".join(f"z{j}" for j in range(k + 1, 14))
        rules += [f"c -> c   ε : ε , z{k} -> o{k} {above}".rstrip(), f"c -> c   ε : ε , o{k} -> ε"]
    with pytest.raises(BadInput, match="more than 10000 ε-moves in a row"):
        bound(one(*rules))


def test_quiet_runs_stop_where_their_symbol_is_gone():
    machine = one(
        "q -> p   # : ε", "q -> q   a : ε , ε -> A", "p -> p   ε : x y , A -> ε", "p -> q   ε : z , $ -> $"
    )
    assert quiet(machine, ("p", "A")) == ("p", (), 2)
    assert quiet(machine, ("p", "$")) == ("q", ("$",), 1)
    assert quiet(machine, ("q", "A")) == ("q", ("A",), 0)
    assert bound(machine) == (1 + 2 + 1, 0)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ["input 0", "q -> q   0 : 0", "q -> q   1 : 0"],
            r"`q -> q   1 : 0` uses 1, which `input 0` does not",
        ),
        (["output 1", "q -> q   0 : 0"], "uses 0, which `output 1` does not declare"),
        (["stack a", "q -> q   0 : 0 , ε -> b"], "uses b, which `stack a` does not declare"),
        (["stack a", "q -> q   0 : 0 , b -> ε"], "uses b, which `stack a` does not declare"),
        (["q -> q   0 : 0 , ε -> a", "q -> q   0 : 1 , a -> ε"], "clash"),
        (["q -> q   0 : 0 , $ -> ε"], "moves the bottom marker"),
    ],
)
def test_refused_texts(lines, said):
    with pytest.raises(BadInput, match=said):
        one(*lines)


def test_declared_alphabets_may_hold_more():
    machine = one("input 0 1", "output x y", "stack a b", "q -> q   0 : x , $ -> $ a")
    assert machine.alphabet == ("0",)
    assert machine == one("q -> q   0 : x , $ -> $ a")
