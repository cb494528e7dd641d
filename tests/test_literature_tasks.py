"""The tasks of other papers: worked examples by hand, lengths, distributions, machines and long strings."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from softstack.errors import BadInput
from softstack.formal.running import transduced
from softstack.lab import tasks
from softstack.lab.reports import names
from softstack.lab.tasks import TASKS
from softstack.lab.tasks.arithmetic import value

LITERATURE = [name for name, task in TASKS.items() if tasks.source_of(task) != "Hao et al. 2018"]


def words(text):
    return tuple(text.split())


@pytest.mark.parametrize(
    ("name", "symbols", "fed", "target"),
    [
        ("copy", "a1 a2 a3", "a1 a2 a3 # # # #", "_ _ _ a1 a2 a3 ."),
        ("long_reversal", "a1 a2 a3", "a1 a2 a3 # # # #", "_ _ _ a3 a2 a1 ."),
        ("short_copy", "0 0 1", "0 0 1 # # #", "_ _ _ 0 0 1"),
        ("bigram_flipping", "a1 a2 a3 a4", "a1 a2 a3 a4 # # # # #", "_ _ _ _ a2 a1 a4 a3 ."),
        (
            "svo_to_sov",  # as in the paper
            "si1 vi28 oi5 oi7 si15 rpi si19 vi16 oi10 oi24",
            "si1 vi28 oi5 oi7 si15 rpi si19 vi16 oi10 oi24" + " #" * 11,
            "_ " * 10 + "so1 oo5 oo7 so15 rpo so19 vo16 oo10 oo24 vo28 .",
        ),
        (
            "svo_to_sov",
            "si1 rpi si2 rpi si3 vi3 vi2 vi1 oi1",
            "si1 rpi si2 rpi si3 vi3 vi2 vi1 oi1" + " #" * 10,
            "_ " * 9 + "so1 rpo so2 rpo so3 vo3 vo2 oo1 vo1 .",
        ),
        (
            "gender_conjugation",
            "the me4 and a fe9 we11 the ne1 and a ne2",
            "the me4 and a fe9 we11 the ne1 and a ne2" + " #" * 12,
            "_ " * 11 + "der mg4 und eine fg9 wg11 das ng1 und ein ng2 .",
        ),
        ("marked_reversal", "0 1 # 1 0", ". 0 1 # 1 0", "0 1 # 1 0 ."),
        ("hardest_cfl", ", $ ( ) , ;", ". , $ ( ) , ;", ", $ ( ) , ; ."),
        ("dyck_1", "( ( ) ) ( )", "( ( ) ) ( )", ") ) ) . ) ."),
        ("dyck_2", "( [ ] ) (", "( [ ] ) (", ") ] ) . )"),
        ("dyck_6", "(6 < >", "(6 < >", ")6 > )6"),
        ("anbn", "a a a b b b", "a a a b b b", "_ _ _ b b a"),
        ("anbn", "a b", "a b", "_ a"),
        ("anbn", "a a b", "a a b", "_ _ b"),
        ("anbn", "a a", "a a", "_ _"),
        ("anbncn", "a a b b c c", "a a b b c c", "_ _ b c c a"),
        ("anbncndn", "a a b b c c d d", "a a b b c c d d", "_ _ b c c d d a"),
        ("anb2n", "a a b b b b", "a a b b b b", "_ _ b b b a"),
        ("anbmcnm", "a b b c c c", "a b b c c c", "_ _ _ c c a"),
        ("anbmcnm", "a b b c", "a b b c", "_ _ _ c"),
        ("binary_addition", "1 0 1 + 1 = 0 1 1", "1 0 1 + 1 = 0 1 1", "_ _ _ _ _ 0 1 1 ."),
        ("binary_addition", "1 1 + 1 =", "1 1 + 1 =", "_ _ _ _ 0"),
        ("reverse_string", "0 0 1", "0 0 1 # # #", "_ _ _ 1 0 0"),
        (
            "stack_manipulation",
            "0 1 1 PUSH-0 POP POP",
            "0 1 1 PUSH-0 POP POP # # # # # # #",
            "_ _ _ _ _ _ 1 0 . _ _ _ _",
        ),
        ("stack_manipulation", "1 POP POP PUSH-1", "1 POP POP PUSH-1 # # # # #", "_ _ _ _ 1 . _ _ _"),
        ("stack_manipulation", "1 POP", "1 POP # # #", "_ _ . _ _"),
        ("modular_arithmetic", "( 4 - ( 2 * - 3 ) )", "( 4 - ( 2 * - 3 ) ) #", "_ " * 10 + "0"),
        ("modular_arithmetic", "- 2", "- 2 #", "_ _ 3"),
        ("modular_arithmetic", "( - 4 ) # #", "( - 4 ) # #", "_ _ _ _ 1 _"),
        ("solve_equation", "( 4 - ( x + 3 ) ) = 2", "( 4 - ( x + 3 ) ) = 2 #", "_ " * 11 + "4"),
        ("solve_equation", "- x = 2", "- x = 2 #", "_ _ _ _ 3"),
        ("parity", "1 0 1 1", "1 0 1 1 #", "_ _ _ _ 1"),
        ("parity", "0", "0 #", "_ 0"),
        ("even_pairs", "0 0 1 1 0", "0 0 1 1 0 #", "_ _ _ _ _ 0"),
        ("even_pairs", "0 1 0 1 0 0 1", "0 1 0 1 0 0 1 #", "_ " * 7 + "1"),
        ("cycle_navigation", "right right stay left", "right right stay left #", "_ _ _ _ 1"),
        ("cycle_navigation", "right left stay left left", "right left stay left left #", "_ " * 5 + "3"),
    ],
)  # fmt: skip
def test_worked_examples(name, symbols, fed, target):
    example = TASKS[name].example(words(symbols))
    assert example.input == words(fed)
    assert example.target == tuple(None if t == "_" else t for t in target.split())
    assert TASKS[name].example(example.input) == example


@pytest.mark.parametrize(
    ("name", "symbols", "said"),
    [
        ("copy", "# #", "the word is empty"),
        ("copy", "a1 # a2", "only #s may follow the first #"),
        ("bigram_flipping", "a1 a2 a3", "'a1 a2 a3' has a symbol without another"),
        ("svo_to_sov", "si1 rpi si2 vi1", "has no verb outside its relative clauses"),
        ("gender_conjugation", "the and a me1", "the article the in 'the and a me1' has no noun after it"),
        ("marked_reversal", "0 . 0", "a full stop may stand only at its beginning"),
        ("dyck_2", "( ]", r"symbol 2 of '\( \]', \], closes a bracket that is not open"),
        ("dyck_2", "( ) )", "symbol 3"),
        ("anbn", "a b b", "'a b b' is not the beginning of a string of anbn"),
        ("anbn", "b", "is not the beginning"),
        ("anbncn", "a a b c", "is not the beginning"),
        ("anbmcnm", "a c", "is not the beginning"),
        ("binary_addition", "1 0 + 1", "'1 0 \\+ 1' is not a sum"),
        ("binary_addition", "1 0 + 1 = 0", "should be 1 1, in reverse"),
        ("stack_manipulation", "1 POP 0", "symbol 3 of '1 POP 0' comes after an action"),
        ("modular_arithmetic", "1 + 2", "is not an expression"),
        ("modular_arithmetic", "( 1 + 2", "is not an expression"),
        ("solve_equation", "( 1 + 2 ) = 3", "is not an equation"),
        ("parity", "1 0 # 1", "only #s may follow"),
    ],
)
def test_what_cannot_be_scored(name, symbols, said):
    with pytest.raises(BadInput, match=said):
        TASKS[name].example(words(symbols))


@pytest.mark.parametrize(
    ("name", "train", "test"),
    [  # the shortest and the longest string that is drawn, without #s
        ("copy", (8, 64), (65, 128)),
        ("long_reversal", (8, 64), (65, 128)),
        ("short_copy", (1, 12), (13, 24)),
        ("bigram_flipping", (8, 64), (66, 128)),
        ("svo_to_sov", (8, 64), (65, 128)),
        ("gender_conjugation", (8, 64), (65, 128)),
        ("marked_reversal", (41, 79), (41, 79)),
        ("unmarked_reversal", (40, 80), (40, 80)),
        ("padded_reversal", (40, 80), (40, 80)),
        ("dyck_2_model", (40, 80), (40, 80)),
        ("hardest_cfl", (40, 80), (40, 80)),
        ("dyck_1", (2, 50), (52, 100)),
        ("dyck_2", (2, 50), (52, 100)),
        ("dyck_6", (2, 50), (52, 100)),
        ("dyck_2_deep", (2, 50), (12, 50)),
        ("dyck_2_3", (2, 82), (86, 166)),
        ("dyck_8_5", (2, 178), (182, 358)),
        ("anbn", (2, 38), (2, 120)),
        ("anbncn", (3, 57), (3, 180)),
        ("anbncndn", (4, 76), (4, 240)),
        ("anb2n", (3, 57), (3, 180)),
        ("anbmcnm", (4, 38), (4, 120)),
        ("binary_addition", (5, 40), (5, 122)),
        ("reverse_string", (1, 40), (41, 500)),
        ("stack_manipulation", (1, 40), (41, 500)),
        ("modular_arithmetic", (1, 40), (41, 500)),
        ("solve_equation", (3, 40), (41, 500)),
        ("parity", (1, 40), (41, 500)),
        ("even_pairs", (1, 40), (41, 500)),
        ("cycle_navigation", (1, 40), (41, 500)),
    ],
)
def test_lengths_are_the_papers(name, train, test):
    for split, (low, high) in (("train", train), ("dev", train), ("test", test)):
        drawn = TASKS[name].sample(np.random.default_rng(0), 400, split)
        lengths = [len(word) for word in drawn]
        assert low <= min(lengths) <= low + (high - low) / 20
        assert high - (high - low) / 20 <= max(lengths) <= high
        assert all(len(TASKS[name].example(word).input) <= TASKS[name].length(split) for word in drawn)


@pytest.mark.parametrize("name", LITERATURE)
@pytest.mark.parametrize("length", [40, 200, 1000])
def test_strings_of_any_length(name, length):
    for symbols, target in tasks.of_length(TASKS[name], np.random.default_rng(length), 5, length):
        assert 0.9 * length - 5 <= len(symbols) <= length + 1
        assert set(target) != {None}


def test_each_number_of_a_counting_task_is_tested_as_often():
    counts = Counter(TASKS["anbn"].sample(np.random.default_rng(0), 130, "test"))
    assert sorted(map(len, counts)) == [2 * n for n in range(1, 61)]
    assert sorted(counts.values()) == [2] * 50 + [3] * 10
    strings = TASKS["anbmcnm"].sample(np.random.default_rng(0), 590, "test")
    assert Counter(len(w) // 2 for w in strings) == dict.fromkeys(range(2, 61), 10)
    assert {(w.count("a"), w.count("b")) for w in strings if len(w) == 8} == {(1, 3), (2, 2), (3, 1)}


def test_a_task_with_few_strings_repeats_them_in_its_test_set():
    examples = tasks.draw(TASKS["anbn"], np.random.default_rng(0), 1000, "test")
    assert len(examples) == 1000
    assert len(set(examples)) == 60


def test_numbers_to_be_added():
    """n bits in all, each number with a 1 in front, and a uniform share of them for the first."""
    firsts = Counter()
    for word in TASKS["binary_addition"].sample(np.random.default_rng(0), 20_000, "train"):
        first, second = "".join(word).split("=")[0].split("+")
        assert first[0] == second[0] == "1"
        if len(first + second) == 5:
            firsts[len(first)] += 1
    assert sorted(firsts) == [1, 2, 3, 4]
    assert all(abs(count / firsts.total() - 1 / 4) < 0.04 for count in firsts.values())


def test_expressions_against_pythons_own_arithmetic():
    for name in ("modular_arithmetic", "solve_equation"):
        for word in TASKS[name].sample(np.random.default_rng(1), 300, "train"):
            (answer,) = [t for t in TASKS[name].example(word).target if t]
            text = "".join(word).replace("x", f"({answer})")
            left, _, right = text.partition("=")
            assert eval(left) % 5 == int(right or answer)


def test_expressions_of_five_symbols():
    """(d op d), every digit and operator equally likely."""
    rng = np.random.default_rng(0)
    drawn = Counter(TASKS["modular_arithmetic"].of_length(rng, 6) for _ in range(15_000))
    everything = [("(", a, op, b, ")") for a, op, b in product("01234", "+-*", "01234")]
    assert set(drawn) == set(everything)
    assert all(130 < count < 270 for count in drawn.values())  # 200 on average, standard deviation 14
    assert value(("(", "2", "*", "4", ")")) == (3, 0)


def test_the_first_stack_and_its_actions():
    first = Counter()
    for word in TASKS["stack_manipulation"].sample(np.random.default_rng(0), 20_000, "train"):
        if len(word) == 4:
            first[sum(symbol in "01" for symbol in word)] += 1
    assert sorted(first) == [1, 2, 3]
    assert all(abs(count / first.total() - 1 / 3) < 0.07 for count in first.values())


@pytest.mark.parametrize("name", [name for name in LITERATURE if tasks.machine_of(TASKS[name])])
def test_machines_say_nothing_where_nothing_is_asked(name):
    """Their blank is the padding symbol."""
    task = TASKS[name]
    for symbols, target in tasks.draw(task, np.random.default_rng(2), 50, "train"):
        said = transduced(tasks.machine_of(task), symbols)
        assert [word[0] for word in said] == [t or task.padding for t in target]


def test_which_tasks_have_no_machine():
    """One stack cannot copy, and cannot count twice; what comes next in a language is no function of what
    came before."""
    without = {name for name in LITERATURE if tasks.machine_of(TASKS[name]) is None}
    queues = {"copy", "short_copy", "bigram_flipping", "svo_to_sov", "gender_conjugation"}
    models = {"marked_reversal", "unmarked_reversal", "padded_reversal", "dyck_2_model", "hardest_cfl"}
    assert without == {*queues, *models, "anbncn", "anbncndn", "binary_addition"}


def test_every_task_says_where_it_comes_from():
    assert all(tasks.source_of(task) for task in TASKS.values())


def test_tasks_are_called_as_they_are_written():
    counting = [names.task(name) for name in ("anbn", "anbncndn", "anb2n", "anbmcnm")]
    assert counting == ["aⁿbⁿ", "aⁿbⁿcⁿdⁿ", "aⁿb²ⁿ", "aⁿbᵐcⁿ⁺ᵐ"]
    others = [names.task(name) for name in ("delayed_xor", "svo_to_sov", "mine_of_a_plugin")]
    assert others == ["Delayed XOR", "SVO to SOV", "Mine of a plugin"]
