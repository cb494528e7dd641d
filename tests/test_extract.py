"""From networks back to machines: groups, tables and merging by hand, and compiled networks given back."""

import json
import re
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, assume, given, settings

from softstack.errors import BadInput
from softstack.formal.analysis import bound
from softstack.formal.clusters import assign, farthest_first, grouped
from softstack.formal.compiler import written
from softstack.formal.equivalence import Difference, compare, difference
from softstack.formal.extraction import END, START, Act, Row, Seen, machine, tabulate
from softstack.formal.machines import PDTS, dyck, real_time_dyck
from softstack.formal.merging import merged
from softstack.formal.minimal import minimised
from softstack.formal.parts import machine_in_parts
from softstack.formal.transducer import Rule, Transducer
from softstack.lab import tasks
from softstack.lab.explain import extract as extraction
from softstack.lab.explain.compiled import compile_task
from softstack.lab.explain.extract import extract
from softstack.lab.explain.fidelity import Score, Share, compared, measured, output_of, outputs
from softstack.lab.reports.gallery import EXHIBITS
from softstack.lab.runs import store
from softstack.lab.tasks.data import Example
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import initial
from softstack_command import main
from strategies import dense

BRACKETS = [("(", ")"), ("[", "]")]
MACHINES = {name: tasks.machine_of(task) for name, task in tasks.TASKS.items()}


# --- equivalence ------------------------------------------------------------------------------------------


def test_machines_are_told_apart_by_a_shortest_input():
    assert difference(PDTS["xor"], PDTS["xor"], 8) is None
    assert difference(PDTS["xor"], PDTS["delayed_xor"], 8) == Difference(("1",), ("1",), ("0",))
    other = Transducer(PDTS["xor"].start, [*PDTS["xor"].rules[:3], Rule("1", "1", "", "0", ("1",), ())])
    assert difference(PDTS["xor"], other, 8).word == ("1", "1")
    assert difference(PDTS["xor"], other, 1) is None


def test_a_machine_without_epsilon_moves_is_the_same_machine():
    assert difference(dyck(BRACKETS, "_"), real_time_dyck(BRACKETS, "_"), 9) is None
    assert difference(dyck(BRACKETS), dyck(BRACKETS, "_"), 9).word == ("(", ")")


def test_being_stuck_is_a_difference():
    less = Transducer("q0", PDTS["reversal"].rules[:3])
    assert difference(PDTS["reversal"], less, 5) == Difference(("1", "#"), ("1",), None)
    assert difference(less, PDTS["reversal"], 5) == Difference(("1", "#"), None, ("1",))


# --- groups -----------------------------------------------------------------------------------------------


def test_groups_by_hand():
    points = np.array([[0.0, 0.0], [0.05, 0.0], [1.0, 0.0], [1.0, 1.0], [0.95, 1.0]])
    centres, far = farthest_first(points, 10, 0.1)
    assert len(centres) == 3
    assert far == pytest.approx(0.05)
    assert farthest_first(points, 2, 0.1)[1] == pytest.approx(1)
    which = assign(points, centres)
    assert which[0] == which[1] and which[3] == which[4] and len(set(which)) == 3
    assert sorted(grouped(points, 3).tolist()) == pytest.approx(np.array([[0.025, 0], [0.975, 1], [1, 0]]))


def test_intervals_are_wilsons():
    """Against values of the usual tables: 81 of 263, and none or all of 10."""
    assert Share(81, 263).interval == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert Share(0, 10).interval == pytest.approx((0, 0.2775), abs=1e-4)
    assert Share(10, 10).interval == pytest.approx((0.7225, 1), abs=1e-4)
    assert str(Share(1, 2)) == "50.0% [9.5%, 90.5%]"


def test_intervals_of_symbols_are_over_strings():
    """100 symbols of 10 strings tell no more than 10 strings."""
    assert Share(100, 100, strings=10).interval == Share(10, 10).interval
    assert Share(50, 100, strings=10).interval == pytest.approx(Share(5, 10).interval)


# --- whole outputs ------------------------------------------------------------------------------------------


def test_outputs_are_compared_whole():
    assert compared("ab", "ab", "ab", False) == ([], [0, 1])
    assert compared("ab", "ax", ("a", None), False) == ([], [0])  # not scored,
    assert compared("ab", "ax", ("a", None), True) == ([1], [0, 1])
    assert compared("ab", "a", ("a", None), False) == ([1], [0, 1])  # but silence is no answer
    assert compared("abx", "ab", "ab", False) == ([2], [0, 1, 2])  # more than was asked for
    assert compared("abx", "aby", "ab", False) == ([2], [0, 1, 2])
    assert compared("", "", "ab", False) == ([], [0, 1])


def test_a_machine_that_writes_where_the_network_is_silent_explains_nothing():
    """Outputs past the last symbol, and extra ones, count."""
    pdt = Transducer.parse("start q\nq -> q   a : y\nq -> q   b : ε")
    chatty = Transducer.parse("start q\nq -> q   a : y\nq -> q   b : x x x")
    made, trial = compile_task(pdt, str(pdt))
    rng = np.random.default_rng(0)
    scores, counterexample = measured(made.network, trial.condition, chatty, rng, 50, False)
    assert all(s.fidelity.value < 0.05 for s in scores)
    word, position, ours, theirs = counterexample
    assert (output_of(chatty, word)[position], "".join(output_of(pdt, word))[position : position + 1]) == (
        ours,
        theirs,
    )
    scores, counterexample = measured(made.network, trial.condition, pdt, rng, 50, False)
    assert all(s.fidelity.value == s.symbols.value == s.accuracy.value == 1 for s in scores)
    assert counterexample is None


def test_outputs_longer_than_the_input_are_seen_whole():
    triple = Transducer.parse("start q\nq -> q   a : x y z\nq -> q   b : y")
    made, trial = compile_task(triple, str(triple))
    [told] = outputs(made.network, trial.condition, [Example(("a", "b", "a"), (None,) * 3)])
    assert "".join(told) == "xyzyxyz"
    found = extract(made.network, trial.condition, 0, strings=60)
    assert found.explained
    assert difference(found.machine, triple, 6) is None


# --- tables and merging -----------------------------------------------------------------------------------


def seen(x, pop, push, v, write, h=None):
    n = len(x)
    yes = np.ones(n, bool)
    return Seen(
        list(x), np.array(pop), np.array(push), yes, yes, np.array(v, float)[:, None],
        np.zeros((n, 0)) if h is None else np.array(h, float)[:, None], list(write), yes,
    )  # fmt: skip


def test_a_table_by_hand():
    """01## reversed; the vectors of 0 and 1 are 0.1 and 0.9."""
    run = seen("01##", [0, 0, 1, 1], [1, 1, 0, 0], [0.1, 0.9, 0.5, 0.5], "##10")
    table, agreed = tabulate([run], None, np.array([[0.0], [1.0]]))
    assert agreed == 1
    push, pop = (lambda k: Act(0, (k,), True, True)), Act(1, (), True, True)
    assert table == {
        (START, "0", ()): Row(push(0), "#", True, START),
        (START, "1", (0,)): Row(push(1), "#", True, START),
        (START, "#", (1,)): Row(pop, "1", True, START),
        (START, "#", (0,)): Row(pop, "0", True, START),
    }
    assert str(machine(table)).splitlines() == [
        "start q0",
        "q0 -> q0   # : 0 , A -> ε",
        "q0 -> q0   # : 1 , B -> ε",
        "q0 -> q0   0 : # , $ -> $ A",
        "q0 -> q0   1 : # , A -> A B",
    ]


def test_what_is_done_most_often_wins():
    runs = [seen("0", [0], [0], [0], "a"), seen("0", [0], [0], [0], "a"), seen("0", [0], [0], [0], "b")]
    table, agreed = tabulate(runs, None, None)
    assert [row.write for row in table.values()] == ["a"]
    assert agreed == 1  # the steps are alike but for what they write


def test_states_that_nothing_tells_apart_are_merged():
    """XOR with each of its states split in two, by the symbol that led there."""
    act = Act(0, (), True, True)
    table = {}
    for state, parity in ((START, 0), (1, 0), (2, 1), (3, 1), (4, 0)):
        table[state, "0", ()] = Row(act, str(parity), True, 1 if parity == 0 else 3)
        table[state, "1", ()] = Row(act, str(1 - parity), True, 2 if parity == 0 else 4)
    assert difference(machine(table), PDTS["xor"], 6) is None
    assert len(machine(table).states) == 5
    small = machine(merged(table))
    assert difference(small, PDTS["xor"], 6) is None
    assert len(small.states) == 2


def test_merging_follows_what_states_lead_to():
    """q0 and q1 do the same on a, but lead to states that do not."""
    act = Act(0, (), True, True)
    table = {
        (START, "a", ()): Row(act, "x", True, 1),
        (1, "a", ()): Row(act, "x", True, 2),
        (2, "a", ()): Row(act, "y", True, 2),
    }
    assert len(machine(merged(table)).states) == 3
    unasked = {**table, (2, "a", ()): Row(act, "y", False, 2)}
    assert len(machine(merged(unasked)).states) == 1
    assert str(machine(unasked, blank="_")).splitlines()[-1] == "q2 -> q2   a : _"


def test_evidence_is_asked_for():
    act = Act(0, (), True, True)
    table = {(START, "a", ()): Row(act, "x", True, 1), (1, "b", ()): Row(act, "y", True, 1)}
    assert len(machine(merged(table)).states) == 1
    assert len(machine(merged(table, evidence=1)).states) == 2


def test_waiting_and_being_stuck_are_no_rules():
    still = Act(0, (), False, False)
    table = {
        (START, "a", ()): Row(Act(0, (0,), True, True), "x", True, START),
        (START, END, ()): Row(still, "", False, START),
        (START, "b", ()): Row(still, "", False, 9),
        (9, "a", ()): Row(still, "", False, 9),
        (START, "a", (0,)): Row(Act(1, (), False, True), "y", True, START),
        (START, END, (0,)): Row(Act(1, (), False, True), "y", True, START),
    }
    assert machine(table).rules == (
        Rule("q0", "", "A", "q0", ("y",), ()),
        Rule("q0", "a", "$", "q0", ("x",), ("$", "A")),
    )


# --- strengths in parts -----------------------------------------------------------------------------------


def piled(table, word, parts):
    """What a table in parts says to a word, its stack a pile of parts: the definition, step by step."""
    state, pile, output = START, [], []
    for x in word:
        row = table.get((state, x, tuple(reversed(pile[-parts:]))))
        if row is None:
            return None
        pile[len(pile) - row.act.pop :] = row.act.push
        output.append(row.write)
        state = row.next
    return output


def test_brackets_in_halves_by_hand():
    """Every symbol pushes one half. A closing one pops 1, which is its own opening half and the one beneath,
    and pushes that one again. A read sees two halves, so that what is asked for next is known at once."""
    table, kinds = {}, {0: "()", 1: "[]"}
    for tops in [(), *((a,) for a in kinds), *((a, b) for a in kinds for b in kinds)]:
        for kind, (opens, closes) in kinds.items():
            table[START, opens, tops] = Row(Act(0, (kind,), True, True), closes, True, START)
            if tops[:1] == (kind,):
                beneath = tops[1:]
                write = kinds[beneath[0]][1] if beneath else "_"
                table[START, closes, tops] = Row(Act(len(tops), beneath, True, True), write, True, START)
    pdt = machine_in_parts(table, 2)
    assert "q0 -> q0   ) : ] , AB -> ε" in str(pdt).splitlines()  # what is popped and pushed again stays
    assert "q0 -> q0   ( : ) , BA -> BA AB" in str(pdt).splitlines()
    assert compare(real_time_dyck(BRACKETS, "_"), pdt).answer == "equal"


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_a_machine_in_parts_does_what_its_pile_of_parts_does(parts, seed):
    rng = np.random.default_rng([parts, seed])
    windows = [tops for n in range(parts + 1) for tops in product(range(2), repeat=n)]
    table = {}
    for state, x, tops in product(range(2), "ab", windows):
        pushed = tuple(rng.integers(2, size=rng.integers(parts + 1)).tolist())
        act = Act(int(rng.integers(len(tops) + 1)), pushed, True, True)
        table[state, x, tops] = Row(act, "xyz"[rng.integers(3)], True, int(rng.integers(2)))
    pdt = machine_in_parts(table, parts)
    small = minimised(pdt)
    if parts == 1:
        assert difference(pdt, machine(table), 6) is None
    for word in product("ab", repeat=7):
        output = piled(table, word, parts)
        assert output is not None
        assert output_of(pdt, word) == output
        assert output_of(small, word) == output


def test_a_machine_in_parts_has_a_bound():
    """Forty letters in quarters make millions of piles: that is no machine to read, and no reason to fill the
    memory."""
    rng = np.random.default_rng(0)
    windows = [tuple(tops) for tops in rng.integers(40, size=(400, 4)).tolist()]
    table = {
        (START, "a", tops): Row(Act(3, (tops[0], k % 40), True, True), "x", True, START)
        for k, tops in enumerate(windows)
    }
    with pytest.raises(BadInput, match="in parts of 1/4 would have more than 2,000 rules"):
        machine_in_parts(table, 4)


def test_a_network_that_pushes_by_halves_is_read_off():
    """A linear network that the recipe trained on brackets: every strength is 0 or about one half."""
    run = store.load(EXHIBITS / "parenthesis-linear-solved")
    found = extract(store.network(run), run.condition, run.seed, strings=120)
    assert found.hardening.parts == 2
    assert found.explained
    assert compare(real_time_dyck(BRACKETS, "_"), found.machine).answer == "equal"


# --- compiled networks are given back -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("reversal", "onehot"),
        ("reversal", "binary"),
        ("xor", "onehot"),
        ("delayed_xor", "binary"),
        ("parenthesis", "onehot"),
        ("formula", "binary"),
        ("selective_reversal", "onehot"),
    ],
)
def test_a_compiled_network_gives_its_machine_back(name, codes):
    made, trial = compile_task(MACHINES[name], name, codes=codes)
    found = extract(made.network, trial.condition, 0, every_position=True, strings=150)
    assert found.explained
    assert found.counterexample is None
    assert found.hardening.off < 1e-9
    assert all(s.fidelity.value == s.accuracy.value == 1 for s in found.scores)
    assert [s.factor for s in found.scores] == [1, 2, 10]
    assert difference(MACHINES[name], found.machine, 7) is None
    assert len(found.machine.states) <= len(MACHINES[name].states) + 1


def test_agreement_is_given_back():
    made, trial = compile_task(MACHINES["agreement"], "agreement")
    found = extract(made.network, trial.condition, 0, every_position=True, strings=800)
    assert difference(MACHINES["agreement"], found.machine, 12) is None
    assert len(found.machine.states) <= 12


@pytest.mark.parametrize("controller", ["linear", "lstm"])
def test_without_buffers(controller):
    made, trial = compile_task(MACHINES["reversal"], "reversal", controller=controller, buffered=False)
    found = extract(made.network, trial.condition, 0)
    assert len(found.machine.states) == 1
    assert difference(MACHINES["reversal"], found.machine, 8) is None  # unscored positions are blank, #, too


def tame(pdt):
    """Whether a machine is a task: it reads, writes, and its ε-moves end."""
    try:
        bound(pdt)
    except BadInput:
        return False
    return bool(pdt.alphabet) and bool(written(pdt))


@settings(deadline=None, max_examples=4, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(dense())
def test_random_machines_are_given_back(pdt):
    assume(tame(pdt))
    try:
        made, trial = compile_task(pdt, str(pdt))
        found = extract(made.network, trial.condition, 0, states=64, strings=100, every_position=True)
    except BadInput as error:
        assert "too few distinct" in str(error) or "hardly ever" in str(error)
        return
    assert found.counterexample is None, str(pdt)
    told = Transducer(pdt.start, pdt.rules)  # a network does not say what it accepts
    assert compare(told, found.machine).answer == "equal", f"{pdt}\n\n{found.machine}"


STOPS = """
start in
in -> in    k : ε , ε -> K
in -> out   | : bar
out -> out  . : k k , K -> ε
out -> done . : end , $ -> $
"""


@pytest.mark.parametrize("again", ["", "done -> done . : end"])
def test_a_machine_that_stops_is_given_back(again):
    """It stops before the input ends, and is told from one that goes on. Waiting without input is no move."""
    pdt = Transducer.parse(STOPS + again)
    made, trial = compile_task(pdt, str(pdt))
    found = extract(made.network, trial.condition, 0, strings=100)
    assert found.explained and found.agreed
    assert compare(pdt, found.machine).answer == "equal", found.machine


# --- networks that are no machines --------------------------------------------------------------------------


def test_an_untrained_network_says_how_far_from_saturated_it_is():
    condition = Condition("parenthesis", "linear")
    found = extract(initial(condition, 0), condition, 0, strings=60)
    if found.machine is None:
        assert "too far from saturated" in found.sentence
        assert f"{found.hardening.off:.3f}" in found.sentence
    assert found.hardening.off * found.hardening.parts > 0.1  # of a part; evenly spread it is a quarter
    assert not found.explained


def test_no_machine_that_small_explains_it():
    made, trial = compile_task(MACHINES["agreement"], "agreement")
    found = extract(made.network, trial.condition, 0, states=2, every_position=True, strings=200)
    assert not found.explained
    assert found.machine is None or found.counterexample is not None
    assert "at most 2 states" in found.sentence


def test_a_counterexample_is_one():
    """Where a network and the machine read off it differ, the network does say what is claimed."""
    condition = Condition("formula", "lstm")
    network = initial(condition, 0)
    with torch.no_grad():
        for p in network.parameters():
            p.mul_(6)
    found = extract(network, condition, 0, states=3, strings=40)
    assert not found.explained
    word, position, ours, theirs = found.counterexample
    told = outputs(network, condition, [tasks.find("formula").example(word)])[0]
    assert (*told, *[""] * len(word))[position] == theirs
    assert ours != theirs


def test_a_machine_of_many_rules_is_given_back():
    """More than 64 groups of states; and where fewer states are asked for than it has, that is said."""
    rng = np.random.default_rng(1)
    names = [f"q{k}" for k in range(6)]

    def rule(q, x, pop, push):
        return Rule(q, x, pop, names[rng.integers(6)], ("xyz"[rng.integers(3)],), push)

    rules = [rule(q, x, "", ("ABCDE"[rng.integers(5)],)) for q in names for x in "ab"]
    rules += [rule(q, x, s, ()) for q in names for x in "cd" for s in "ABCDE"]
    pdt = Transducer("q0", rules)
    made, trial = compile_task(pdt, str(pdt))
    assert made.network.hidden_size > 64
    found = extract(made.network, trial.condition, 0, states=6, symbols=5)
    assert compare(pdt, found.machine).answer == "equal"
    assert found.agreed >= 369
    assert "with 95 % confidence 99 % of such strings do" in found.sentence
    less = extract(made.network, trial.condition, 0, states=3, strings=100)
    assert not less.explained
    assert "--states" in less.sentence


def test_a_soft_network_says_what_is_between():
    """Reversal with strengths of 0.4 and 0.6 in place of 0 and 1: whole at no threshold."""
    made, trial = compile_task(MACHINES["reversal"], "reversal", controller="linear", buffered=False)
    heads = made.network.cell.heads
    with torch.no_grad():
        for name in ("u", "d"):
            heads.weight[heads.rows(name)] *= 0.4 / made.gain
            heads.bias[heads.rows(name)] *= 0.4 / made.gain
    found = extract(made.network, trial.condition, 0, strings=60)
    assert found.machine is None
    assert "too far from saturated" in found.sentence
    assert found.hardening.off == pytest.approx(0.4, abs=0.05)
    assert set(found.hardening.between) == {"u", "d"}
    assert "100% of pops (around 0." in found.sentence and "% at 2 times" in found.sentence
    assert found.as_dict()["hardening"]["degrees"].keys() == {2, 4, 8, 16}


@pytest.mark.parametrize("size", ["states", "symbols", "strings"])
def test_sizes_must_be_positive(size):
    condition = Condition("xor", "linear")
    with pytest.raises(BadInput, match=size):
        extract(initial(condition, 0), condition, 0, **{size: 0})


def test_the_command_writes_the_machine(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["compile", "parenthesis", "--out", str(tmp_path)])
    run_dir = capsys.readouterr().out.split()[0]
    with pytest.raises(SystemExit) as end:
        main(["extract", run_dir, "--strings", "150", "--every-position"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert "fidelity 100.0% [" in said
    assert "A PDT of 2 states, 2 stack symbols and 7 rules explains the network" in said
    found = json.loads((tmp_path / run_dir / "extracted.json").read_text())
    back = Transducer.parse((tmp_path / run_dir / "extracted.pdt").read_text())
    assert found["machine"] == str(back)
    assert difference(back, MACHINES["parenthesis"], 8) is None
    assert (tmp_path / run_dir / "extracted.svg").read_text().startswith("<svg")


def test_a_machine_that_explains_short_strings_and_not_long_ones():
    """The sentence keeps the two apart."""
    shares = {1: Share(50, 50), 2: Share(50, 50), 10: Share(0, 40)}
    scores = [Score(factor, share, share, share) for factor, share in shares.items()]
    best = SimpleNamespace(machine=MACHINES["xor"])
    said = extraction._sentence(best, None, True, scores, None, 300)
    explained, sure, longer = re.split(r"(?<=[.]) (?=[AO])", said)
    assert "explains the network" in explained and "10x" not in explained and "300 new strings" in sure
    assert longer.startswith("On longer strings the two differ: they say the same to 0.0% [")
    assert "differ" not in extraction._sentence(best, None, True, scores[:2], None, 300)


def test_a_stack_that_is_not_read_is_left_out():
    """XOR in the state, by a network that also pushes its state at every step and never looks."""
    made, trial = compile_task(MACHINES["xor"], "xor", buffered=False)
    heads = made.network.cell.heads
    with torch.no_grad():
        heads.bias_of("d").fill_(50)
        heads.weight[heads.rows("v")] = 50 * (heads.weight[heads.rows("y")][:1] > 0).float()
    found = extract(made.network, trial.condition, 0, strings=100)
    assert found.explained
    assert found.machine.stack_symbols == ("$",)
    assert difference(found.machine, MACHINES["xor"], 8) is None
