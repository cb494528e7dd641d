"""§3 PDTs: the paper's machines against direct functions, and random machines against automata-lib's DPDA."""

import pickle
from collections.abc import Iterator
from itertools import islice, product
from random import Random

import pytest
from automata.base.exceptions import RejectionException
from automata.pda.dpda import DPDA
from hypothesis import given, settings
from hypothesis import strategies as st

from softstack.errors import BadInput
from softstack.formal.machines import PDTS
from softstack.formal.transducer import BOTTOM, Configuration, Rule, Run, Transducer
from softstack.words import counted
from strategies import PATIENT, RULES, dense, deterministic, enabled, keeping_marker, rules_of, sparse, words


def one(*rules: str, start: str = "q") -> Transducer:
    return Transducer.parse("\n".join([f"start {start}", *rules]))


def bits(rng: Random, most: int = 30) -> str:
    return "".join(rng.choices("01", k=rng.randint(0, most)))


def balanced(rng: Random, budget: int) -> str:
    """A well-nested string of both kinds of brackets, at most `budget` pairs, possibly empty."""
    if budget <= 0 or rng.random() < 0.1:
        return ""
    inside = rng.randint(0, budget - 1)
    left, right = rng.choice([("(", ")"), ("[", "]")])
    return left + balanced(rng, inside) + right + balanced(rng, budget - 1 - inside)


# --- the paper's machines ---------------------------------------------------------------------------------


def test_reversal_is_the_mirror_image() -> None:
    rng = Random(1)
    for _ in range(2000):
        w = bits(rng)
        run = PDTS["reversal"].run(w + "#" * len(w))
        assert "".join(run.output) == "#" * len(w) + w[::-1]
        assert run.emitted_at == tuple(range(2 * len(w)))
        assert run.accepted
        assert PDTS["reversal"].aligned(w + "#" * len(w)) == run.output


def test_xor_is_the_parity_so_far() -> None:
    rng = Random(2)
    for _ in range(2000):
        w = bits(rng)
        assert PDTS["xor"].aligned(w) == tuple(str(w[: j + 1].count("1") % 2) for j in range(len(w)))


def test_delayed_xor_is_the_parity_before() -> None:
    rng = Random(3)
    for _ in range(2000):
        w = bits(rng)
        assert PDTS["delayed_xor"].aligned(w) == tuple(str(w[:j].count("1") % 2) for j in range(len(w)))


def test_parenthesis_predicts_every_closing_bracket() -> None:
    rng = Random(4)
    scored, lengths = 0, set()
    for _ in range(3000):
        w = balanced(rng, rng.randint(1, 40))
        lengths.add(len(w))
        predicted = PDTS["parenthesis"].aligned(w)
        for j in range(len(w) - 1):
            if w[j + 1] in ")]":
                assert predicted[j] == w[j + 1]
                scored += 1
    assert scored > 10_000
    assert max(lengths) == 80


@pytest.mark.parametrize(
    ("w", "read", "top"), [("(]", 1, "("), ("([)]", 2, "["), (")", 0, "$"), ("()]", 2, "$")]
)
def test_parenthesis_sticks_on_the_first_wrong_bracket(w: str, read: int, top: str) -> None:
    run = PDTS["parenthesis"].run(w)
    symbols = counted(read, "symbol")
    assert run.stuck == f"after {symbols} no rule of state q1 reads {w[read]} with {top} on the stack"
    assert run.configurations[-1].position == read
    assert not run.accepted


def test_selective_reversal_keeps_only_the_bits() -> None:
    rng = Random(5)
    for _ in range(2000):
        w = "".join(rng.choices("0123", k=rng.randint(0, 30)))
        kept = [x for x in w if x in "01"]
        predicted = PDTS["selective_reversal"].aligned(w + "#" * len(w))
        assert predicted[: len(w)] == ("#",) * len(w)
        assert list(predicted[len(w) : len(w) + len(kept)]) == kept[::-1]
        assert predicted[len(w) + len(kept) :] == ("#",) * (len(w) - len(kept))


@pytest.mark.parametrize(
    ("task", "given", "output"),
    [
        ("reversal", "100111######", "######111001"),  # Figure 5, left
        ("selective_reversal", "223030123112############", "############11100#######"),  # Figure 5, centre
        ("delayed_xor", "110110000110", "010010000010"),  # Figure 6, left
        ("xor", "1101", "1001"),
        ("parenthesis", "([])", ")])"),
    ],
)
def test_worked_examples(task: str, given: str, output: str) -> None:
    assert "".join(PDTS[task].run(given).output) == output


def test_configurations_of_parenthesis_by_hand() -> None:
    """Figure 4, right, on ([])(: the ε-moves q2 -> q1 come after each closing bracket, the last at $."""
    machine = PDTS["parenthesis"]
    open_round, open_square, close_round, close_square, again_round, _, at_bottom = machine.rules
    run = machine.run("([])(")
    assert run.configurations == (
        Configuration("q1", 0, ("$",), (), None),
        Configuration("q1", 1, ("$", "("), (")",), open_round),
        Configuration("q1", 2, ("$", "(", "["), ("]",), open_square),
        Configuration("q2", 3, ("$", "("), (), close_square),
        Configuration("q1", 3, ("$", "("), (")",), again_round),
        Configuration("q2", 4, ("$",), (), close_round),
        Configuration("q1", 4, ("$",), (), at_bottom),
        Configuration("q1", 5, ("$", "("), (")",), open_round),
    )
    assert run.output == (")", "]", ")", ")")
    assert run.emitted_at == (0, 1, 2, 4)
    assert (run.accepted, run.stuck) == (True, None)
    assert machine.aligned("([])(") == (")", "]", ")", None, ")")


def test_tables_have_the_alphabets_of_the_tasks() -> None:
    assert {task: "".join(pdt.alphabet) for task, pdt in PDTS.items()} == {
        "reversal": "01#",
        "xor": "01",
        "delayed_xor": "01",
        "parenthesis": "([)]",
        "selective_reversal": "0123#",
        "formula": "TF&|",
        "agreement": "the lobster lobsters in that has have slept devoured".replace(" ", ""),
    }
    assert PDTS["parenthesis"].stack_symbols == ("$", "(", "[")
    assert PDTS["parenthesis"].states == PDTS["parenthesis"].accepting == ("q1", "q2")


# --- running ----------------------------------------------------------------------------------------------


def test_the_last_pushed_symbol_is_on_top() -> None:
    machine = one("q -> r   0 : x y , $ -> $ a b", "r -> r   1 : B , b -> c d", "r -> r   1 : D , d -> ε")
    run = machine.run("0111")
    assert [c.stack for c in run.configurations] == [
        ("$",), ("$", "a", "b"), ("$", "a", "c", "d"), ("$", "a", "c"),
    ]  # fmt: skip
    assert run.output == ("x", "y", "B", "D")
    assert run.emitted_at == (0, 0, 1, 2)
    assert machine.aligned("0111") == ("y", "B", "D", None)
    assert run.stuck == "after 3 symbols no rule of state r reads 1 with c on the stack"
    assert not run.accepted


def test_epsilon_moves_before_and_after_the_input() -> None:
    machine = one("accept s", "q -> r   ε : a", "r -> s   0 : b", "s -> t   ε : c", "t -> s   1 : d")
    run = machine.run("0")
    assert run.output == ("a", "b", "c")
    assert run.emitted_at == (-1, 0, 0)
    assert machine.aligned("0") == ("c",)
    assert [c.state for c in run.configurations] == ["q", "r", "s", "t"]
    # s was passed through, but the run rests in t
    assert (run.accepted, run.stuck) == (False, None)


def test_accepted_needs_the_whole_input_and_an_accepting_state() -> None:
    machine = one("accept r", "q -> r   0 : ε", "r -> q   0 : ε")
    assert [machine.run("0" * n).accepted for n in range(4)] == [False, True, False, True]
    stuck = one("accept r", "q -> r   0 : ε", "q -> q   1 : ε").run("00")
    assert stuck.configurations[-1].state == "r"
    assert not stuck.accepted


def test_empty_input() -> None:
    run = PDTS["reversal"].run("")
    assert run == ((Configuration("q0", 0, ("$",), (), None),), True, None, (), ())
    assert PDTS["reversal"].aligned("") == ()


def test_stuck_names_state_symbol_and_top() -> None:
    run = PDTS["reversal"].run("0##")
    assert run.stuck == "after 2 symbols no rule of state q0 reads # with $ on the stack"
    assert run.output == ("#", "0")
    assert PDTS["reversal"].aligned("0##") == ("#", "0", None)


@pytest.mark.parametrize(("word", "named"), [("01x0", "'x' at position 2"), ([0, 1], "0 at position 0")])
def test_symbols_outside_the_alphabet(word: list[str], named: str) -> None:
    for method in (PDTS["reversal"].run, PDTS["reversal"].aligned):
        with pytest.raises(BadInput, match=f"input symbol {named}: accepted: '0', '1', '#'$"):
            method(word)


def test_symbols_may_be_words() -> None:
    machine = one("q -> q   lobster : has , ε -> sing", "q -> q   devoured : ε")
    assert machine.aligned(["lobster", "devoured"]) == ("has", None)


# --- endless ε-moves --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        (["q -> q   ε : a"], "q -> q   ε : a"),
        (["q -> r   ε : ε , $ -> $", "r -> q   ε : b"], "r -> q   ε : b"),
        (["q -> q   ε : ε , ε -> a"], "q -> q   ε : ε , ε -> a"),  # the stack grows
        (["q -> q   ε : ε , $ -> $ a b", "q -> q   ε : ε , b -> b b"], "q -> q   ε : ε , b -> b b"),
        # up two and down one, for ever
        (["q -> r   ε : ε , ε -> a a", "r -> q   ε : ε , a -> ε"], "r -> q   ε : ε , a -> ε"),
    ],
)
def test_endless_epsilon_moves_are_refused(rules: list[str], named: str) -> None:
    with pytest.raises(BadInput) as caught:
        one(*rules).run("", max_epsilon=100_000)
    assert str(caught.value) == (
        f"after 0 symbols `{named}` makes ε-moves go on for ever: make the loop read a symbol"
    )


def test_an_endless_loop_after_some_input() -> None:
    machine = one("q -> q   0 : ε", "q -> r   1 : ε", "r -> r   ε : ε")
    assert machine.run("000").accepted
    with pytest.raises(BadInput, match=r"^after 3 symbols `r -> r   ε : ε` makes ε-moves go on for ever"):
        machine.run("001")


def test_emptying_the_stack_by_epsilon_moves_is_no_loop() -> None:
    machine = one(
        "q -> q   0 : ε , ε -> a", "q -> r   # : ε", "r -> r   ε : x , a -> ε", "r -> q   ε : ε , $ -> $"
    )
    run = machine.run("0" * 50 + "#" + "0")
    assert run.output == ("x",) * 50
    assert run.emitted_at == (50,) * 50
    assert run.configurations[-1].stack == ("$", "a")


def test_the_same_state_and_top_may_come_again_lower_down() -> None:
    """A counter: each pass pops one c and goes round through the same state, higher and lower than before."""
    machine = one(
        "q -> q   0 : ε , ε -> c",
        "q -> u   # : ε",
        "u -> d   ε : ε , c -> x x",
        "d -> d   ε : y , x -> ε",
        "d -> u   ε : ε , c -> c",
    )
    assert machine.run("000#").output == ("y",) * 6


def test_max_epsilon_bounds_a_finite_run() -> None:
    machine = one("q -> q   0 : ε , ε -> a", "q -> r   # : ε", "r -> r   ε : x , a -> ε")
    assert machine.run("0000#", max_epsilon=4).output == ("x",) * 4
    with pytest.raises(BadInput, match=r"^after 6 symbols `r -> r .*` .* 4 times in a row: raise max_eps"):
        machine.run("00000#", max_epsilon=4)
    with pytest.raises(BadInput, match="more than 4 times in a row"):
        machine.aligned("00000#", max_epsilon=4)


def test_max_epsilon_counts_afresh_after_each_symbol() -> None:
    assert PDTS["parenthesis"].run("()" * 100, max_epsilon=1).accepted
    with pytest.raises(BadInput, match="more than 0 times in a row"):
        PDTS["parenthesis"].run("()", max_epsilon=0)


def test_steps_are_lazy() -> None:
    machine = one("q -> q   ε : a , ε -> s")
    first = list(islice(machine.steps(""), 2))
    assert [c.stack for c in first] == [("$",), ("$", "s")]


# --- refusals on construction -----------------------------------------------------------------------------

READS = {"equal": ("0", "0"), "ε first": ("ε", "0"), "ε second": ("0", "ε"), "both ε": ("ε", "ε")}
POPS = {"equal": ("a", "a"), "ε first": ("ε", "a"), "ε second": ("a", "ε"), "both ε": ("ε", "ε")}


@pytest.mark.parametrize("reads", READS.values(), ids=READS)
@pytest.mark.parametrize("pops", POPS.values(), ids=POPS)
def test_clashing_rules_are_both_named(reads: tuple[str, str], pops: tuple[str, str]) -> None:
    rules = [f"q -> r   {x} : {y} , {s} -> b" for x, s, y in zip(reads, pops, "uv", strict=True)]
    with pytest.raises(BadInput) as caught:
        one(rules[0], "r -> q   1 : ε , a -> ε", rules[1])
    assert str(caught.value) == (
        f"the rules `{rules[0]}` and `{rules[1]}` clash: make them read or pop different symbols"
    )


@pytest.mark.parametrize(
    "rules",
    [
        ["q -> q   0 : # , ε -> 0", "q -> q   # : 0 , 0 -> ε"],  # Figure 3
        ["q -> q   0 : ε , a -> ε", "q -> q   0 : ε , b -> ε"],
        ["q -> q   ε : ε , a -> ε", "q -> q   0 : ε , b -> ε"],
        ["q -> q   0 : ε", "q -> q   1 : ε"],
        ["q -> r   0 : ε", "r -> q   0 : ε"],
    ],
)
def test_rules_that_do_not_clash(rules: list[str]) -> None:
    assert len(one(*rules).rules) == 2


def test_a_rule_given_twice_clashes_with_itself() -> None:
    with pytest.raises(BadInput, match="clash"):
        one("q -> q   0 : 1", "q -> q   0 : 1")


@pytest.mark.parametrize(
    "stack",
    ["$ -> ε", "$ -> a", "$ -> a $", "$ -> $ $", "$ -> $ a $", "a -> $", "a -> $ a", "ε -> $", "ε -> a $"],
)
def test_the_bottom_marker_stays_at_the_bottom(stack: str) -> None:
    rule = f"q -> q   0 : 1 , {stack}"
    with pytest.raises(BadInput) as caught:
        one(rule)
    assert str(caught.value).startswith(f"the rule `{rule}` moves the bottom marker $: write ")


def test_the_marker_may_be_pushed_back_read_and_written() -> None:
    machine = one("q -> q   $ : $ , $ -> $ a", "q -> q   $ : ε , a -> ε")
    assert machine.run("$$$").output == ("$", "$")


def test_a_machine_needs_rules_from_its_start() -> None:
    for rules in ([], [Rule("r", "0", "", "q", (), ())]):
        with pytest.raises(BadInput, match=r"^no rule leaves the start state 'q': give at least one"):
            Transducer("q", rules)


def test_accepting_states_must_be_states() -> None:
    with pytest.raises(BadInput, match=r"accepting state 'r' is in no rule: the states are \('q',\)"):
        one("accept q r", "q -> q   0 : 1")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (Rule("q", "0", "", "q", "#", ()), "give a tuple"),  # type: ignore[arg-type]
        (Rule("q", "0", "", "q", (), "ab"), "give a tuple"),  # type: ignore[arg-type]
        (Rule("q", "0", "", "", (), ()), "ε for a state"),
        (Rule("q", "0", "", "q", ("a", ""), ()), "beside other symbols"),
        (Rule("q", "0", "", "q", (), ("",)), "beside other symbols"),
        (Rule("q", "0\n", "", "q", (), ()), "cannot be printed"),
        (Rule("q", "0", "", "q", ("\x1b[31m",), ()), "cannot be printed"),
    ],
)
def test_malformed_rules(rule: Rule, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        Transducer("q", [rule])


# --- text -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", PDTS.values(), ids=PDTS)
def test_tables_round_trip(machine: Transducer) -> None:
    assert Transducer.parse(str(machine)) == machine
    assert pickle.loads(pickle.dumps(machine)) == machine
    assert hash(Transducer.parse(str(machine))) == hash(machine)


def test_text_of_a_rule() -> None:
    assert str(Rule("q0", "0", "", "q1", ("#",), ("0",))) == "q0 -> q1   0 : # , ε -> 0"
    assert str(Rule("q0", "", "a", "q1", (), ("a", "b"))) == "q0 -> q1   ε : ε , a -> a b"
    assert str(Rule("q0", "0", "", "q1", ("1",), ())) == "q0 -> q1   0 : 1"
    assert str(Rule("a b", ":", "'", "%", ("->", "ε"), ("x->y", "eps"))) == (
        "'a b' -> '%'   ':' : '->' 'ε' , '''' -> 'x->y' 'eps'"
    )


@pytest.mark.parametrize(
    "text",
    [
        "start q\nq -> r   ( : ) , ε -> (",
        "start q\nq→r (:), eps→(",
        "% a comment, # and all\n\n  start   q \r\n  q->r  '(' : ')' , ε -> '('  ",
        "accept r q\nq -> r ( : ) , eps -> (\nstart q",
        str(Transducer("q", [Rule("q", "(", "", "r", (")",), ("(",))])),
    ],
)
def test_ways_to_write_one_machine(text: str) -> None:
    assert Transducer.parse(text) == Transducer("q", [Rule("q", "(", "", "r", (")",), ("(",))])


def test_marks_are_symbols_when_quoted() -> None:
    machine = one("q -> q   ':' : ',' '''' , 'ε' -> '->' 'a b'", "q -> q  // : # , $ -> $ 'ε'")
    assert machine.rules[0] == Rule("q", ":", "ε", "q", (",", "'"), ("->", "a b"))
    assert machine.run(["//", ":"]).output == ("#", ",", "'")


def test_states_may_be_named_like_headers() -> None:
    machine = Transducer.parse("start accept\naccept start\naccept -> start 0 : 1\nstart -> accept 0 : 0")
    assert (machine.start, machine.accepting) == ("accept", ("start",))
    assert Transducer.parse(str(machine)) == machine


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("q -> q   0 : 1", "names 0 start states"),
        ("start q r\nq -> q   0 : 1", "names 2 start states"),
        ("start q\nstart q\nq -> q   0 : 1", "line 2 gives `start` a second time"),
        ("start q\n\nq -> q   0 1", r"line 3, `q -> q   0 1`, cannot be understood"),
        ("start q\nq -> q   0 : : , ε -> ε", "line 2, .* cannot be understood"),
        ("start q\nq -> q   0 : 1 , a b -> ε", "line 2, .* cannot be understood"),
        ("start q\nq -> q   0 : 1 ,", "line 2, .* cannot be understood"),
        ("start q\nq -> q   0 : , ε -> a", "line 2, .* cannot be understood"),
        ("start q\nstop q", "line 2, .* cannot be understood"),
        ("# reverses\nstart q", "line 1, .* A comment begins with %, since # can be a symbol"),
        ("start q\nq -> q   '' : 1", "line 2, .* quote that is empty or not closed"),
        ("start q\nq -> q   'a : 1", "line 2, .* quote that is empty or not closed"),
        ("start q\nq -> q   0 : 1 ε", "the rule `q -> q   0 : 1 ε` has ε"),
        ("start q\nq -> ε   0 : 1", "has ε for a state"),
        ("start q", "no rule leaves"),
        ("", "names 0 start states"),
    ],
)
def test_text_that_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        Transducer.parse(text)


# --- random machines --------------------------------------------------------------------------------------


def outcome(machine: Transducer, word: list[str]) -> Run | str:
    """The run, or what is said when it is refused."""
    try:
        return machine.run(word)
    except BadInput as error:
        return str(error)


END = "!"  # of the input, for the DPDA


def as_dpda(machine: Transducer, accepting: bool) -> DPDA:
    """The machine's input side. A rule that looks at no stack symbol becomes one for each.

    With `accepting`, END leads to a state `yes` from where the machine rests in an accepting state.
    """
    table: dict[str, dict[str, dict[str, tuple[str, tuple[str, ...]]]]] = {q: {} for q in machine.states}
    for rule in machine.rules:
        for top in machine.stack_symbols:
            if rule.pop in ("", top):
                left = rule.push if rule.pop else (top, *rule.push)
                table[rule.state].setdefault(rule.read, {})[top] = (rule.next, left[::-1])
    if accepting:
        for q, top in product(machine.accepting, machine.stack_symbols):
            if top not in table[q].get("", {}):
                table[q].setdefault(END, {})[top] = ("yes", (top,))
    return DPDA(
        states={*machine.states, "yes"},
        input_symbols={*machine.alphabet, END},
        stack_symbols=set(machine.stack_symbols),
        transitions=table,
        initial_state=machine.start,
        initial_stack_symbol=BOTTOM,
        final_states={"yes"},
        acceptance_mode="final_state",
    )


def dpda_path(dpda: DPDA, word: list[str]) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    try:
        for c in dpda.read_input_stepwise("".join(word)):
            yield c.state, len(word) - len(c.remaining_input), c.stack.stack
    except RejectionException:
        return


@settings(PATIENT, max_examples=400)
@given(st.data())
def test_runs_agree_with_automata_lib(data: st.DataObject) -> None:
    """Every configuration, and acceptance; where a run is refused as endless the DPDA goes on unread."""
    machine = data.draw(dense() | sparse())
    word = data.draw(words(machine))
    reference = dpda_path(as_dpda(machine, accepting=False), word)
    run = outcome(machine, word)
    if isinstance(run, str):
        *_, (_, position, _) = islice(reference, 1000)
        assert run.startswith(f"after {counted(position, 'symbol')} ")
        assert "for ever" in run
        assert next(reference)[1] == position
        return
    assert [(c.state, c.position, c.stack) for c in run.configurations] == list(reference)
    assert run.accepted == as_dpda(machine, accepting=True).accepts_input("".join([*word, END]))
    assert (run.stuck is None) == (run.configurations[-1].position == len(word))


@settings(PATIENT, max_examples=200)
@given(st.data())
def test_outputs_follow_the_rules_used(data: st.DataObject) -> None:
    machine = data.draw(dense() | sparse())
    word = data.draw(words(machine))
    run = outcome(machine, word)
    if isinstance(run, str):
        return
    output: list[str] = []
    at: list[int] = []
    read: list[str] = []
    for before, after in zip(run.configurations, run.configurations[1:], strict=False):
        assert after.rule is not None
        assert enabled(after.rule, before.state, "".join(word[before.position :][:1]), before.stack[-1])
        read += [after.rule.read] if after.rule.read else []
        output += after.rule.write
        at += [len(read) - 1] * len(after.rule.write)
    assert read == word[: len(read)]
    assert (run.output, run.emitted_at) == (tuple(output), tuple(at))
    wanted = dict(zip(at, output, strict=True))
    assert machine.aligned(word) == tuple(wanted.get(j) for j in range(len(word)))


@settings(PATIENT, max_examples=300)
@given(st.lists(RULES.map(keeping_marker), min_size=1, max_size=4))
def test_a_machine_is_refused_exactly_when_some_configuration_enables_two_rules(rules: list[Rule]) -> None:
    if deterministic(rules):
        assert Transducer(rules[0].state, rules).rules == tuple(rules)
    else:
        with pytest.raises(BadInput, match="clash"):
            Transducer(rules[0].state, rules)


ODD = st.text("ab01'%:,->→ε#$(/ ", min_size=1, max_size=4) | st.sampled_from(["eps", "start", "accept"])


@settings(PATIENT, max_examples=300)
@given(sparse(rules_of(ODD, "01':,", "ab'%", ODD)))
def test_any_machine_survives_its_text(machine: Transducer) -> None:
    again = Transducer.parse(str(machine))
    assert again == machine
    assert str(again) == str(machine)
