"""formal/grammar.py and formal/sampling.py, against nltk, pyformlang and plain enumeration."""

import itertools
import pickle
import re
from collections import Counter

import nltk
import nltk.parse.generate
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyformlang.cfg import CFG, Terminal

from softstack.errors import BadInput
from softstack.formal import sampling
from softstack.formal.grammar import BinaryForm, Grammar
from softstack.formal.sampling import (
    count_derivations,
    count_derivations_of_length,
    count_strings,
    derivations,
    enumerate_strings,
    randbelow,
    sample_derivations,
    sample_of_length,
    sample_strings,
)

PARENTHESIS = Grammar.parse("""
    S -> S T | T S | T
    T -> ( T ) | ( )
    T -> [ T ] | [ ]
""")
FORMULA = Grammar.parse("""
    S -> S S '|' | S S &
    S -> 'T' | 'F'
""")
AGREEMENT = Grammar.parse("""
    S       -> NPsing has | NPplur have
    NP      -> NPsing | NPplur
    NPsing  -> the lobster | the lobster PP | the lobster Relsing
    NPplur  -> the lobsters | the lobsters PP | the lobsters Relplur
    PP      -> in NP
    Relsing -> that has VP | Relobj
    Relplur -> that have VP | Relobj
    Relobj  -> that NPsing has devoured
    Relobj  -> that NPplur have devoured
    VP      -> slept | devoured NP
""")
AMBIGUOUS = Grammar.parse("S -> S S | a | b")
PAPER = [(PARENTHESIS, 6, 51_270, 31_466), (FORMULA, 5, 81_610, 81_610), (AGREEMENT, 16, 2_556, 2_556)]
CLOSER = {"(": ")", "[": "]"}


@pytest.fixture
def no_tables(monkeypatch):
    """Everything is counted and drawn symbol by symbol, as it is where strings are too many to list."""
    monkeypatch.setattr(sampling, "TABLE_BUDGET", 0)
    sampling._tables.cache_clear()
    yield
    sampling._tables.cache_clear()


def nltk_strings(grammar, depth, limit=10**7):
    """Each string nltk generates within a depth, with its number of derivations."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nltk.parse.generate, "MAX_GENERATE_OPERATIONS", limit)
        return Counter(map(tuple, nltk.parse.generate.generate(grammar, depth=depth)))


def as_nltk(grammar):
    node = nltk.Nonterminal
    return nltk.CFG(
        node(grammar.start),
        [
            nltk.Production(node(name), [node(s) if s in grammar.rules else s for s in body])
            for name, alternatives in grammar.rules.items()
            for body in alternatives
        ],
    )


def as_pyformlang(grammar):
    return CFG.from_text(str(grammar).replace("ε", "epsilon"), start_symbol=grammar.start)


def pyformlang_words(grammar, length):
    return {tuple(t.value for t in word) for word in as_pyformlang(grammar).get_words(length)}


@st.composite
def grammars(draw):
    """Small grammars over a and b, most of them ambiguous, many with ε, unit rules and loops."""
    names = ["S", "A", "B"][: draw(st.integers(1, 3))]
    bodies = st.lists(st.sampled_from([*names, "a", "b"]), max_size=3).map(tuple)
    ends = st.lists(st.sampled_from(["a", "b"]), max_size=2).map(tuple)
    rules = {name: tuple(dict.fromkeys([*draw(st.lists(bodies, max_size=3)), draw(ends)])) for name in names}
    reached = ["S"]
    for name in reached:
        reached += dict.fromkeys(s for body in rules[name] for s in body if s in rules and s not in reached)
    return Grammar("S", {name: rules[name] for name in reached})


def words(length, alphabet="ab"):
    return itertools.product(alphabet, repeat=length)


def some_depth(grammar, limit):
    """The largest depth, of at most 5, within which nltk has not too much to generate."""
    return max(d for d in range(6) if count_derivations(grammar, d) <= limit)


def chi_square_is_small(draws, expected):
    """Whether observed counts fit expected ones: the statistic within 5 deviations of its mean."""
    assert set(draws) <= set(expected)
    statistic = sum((draws[w] - e) ** 2 / e for w, e in expected.items())
    freedom = len(expected) - 1
    return abs(statistic - freedom) < 5 * (2 * freedom) ** 0.5


# ---- text ----


def test_parse_reads_the_papers_notation():
    assert PARENTHESIS.start == "S"
    assert PARENTHESIS.rules == {
        "S": (("S", "T"), ("T", "S"), ("T",)),
        "T": (("(", "T", ")"), ("(", ")"), ("[", "T", "]"), ("[", "]")),
    }
    assert PARENTHESIS.terminals == ("(", ")", "[", "]")
    assert FORMULA.rules == {"S": (("S", "S", "|"), ("S", "S", "&"), ("T",), ("F",))}
    assert FORMULA.terminals == ("|", "&", "T", "F")
    assert set(AGREEMENT.terminals) == {
        *("the", "lobster", "lobsters", "in", "that", "has", "have", "slept", "devoured"),
    }


def test_parse_skips_comments_and_blank_lines_and_needs_no_space_at_bars_and_arrows():
    text = "# a comment\n\n  S->a S|'b'|\"|\"  \n # another\nS -> ε\n"
    assert Grammar.parse(text).rules == {"S": (("a", "S"), ("b",), ("|",), ())}


@pytest.mark.parametrize("text", ["S -> a S | ε", "S -> a S |", "S -> | a S", "S ->\nS -> a S"])
def test_the_empty_alternative_is_written_as_epsilon_or_as_nothing(text):
    assert set(Grammar.parse(text).rules["S"]) == {("a", "S"), ()}


def test_start_is_the_first_rule_unless_given():
    text = "A -> b B | b\nB -> a A | a"
    assert Grammar.parse(text).start == "A"
    other = Grammar.parse(text, start="B")
    assert other.start == "B"
    assert other.terminals == ("a", "b")  # the start symbol's rules come first
    assert Grammar.parse(str(other)) == other


AWKWARD = Grammar(
    "S'", {"S'": (("ε", "->", "|", "'", '"', "#"), ("Tom", "x'y", "'tis"), (), ("s",)), "s": (("S'",),)}
)


@pytest.mark.parametrize("grammar", [PARENTHESIS, FORMULA, AGREEMENT, AMBIGUOUS, AWKWARD])
def test_text_round_trip(grammar):
    again = Grammar.parse(str(grammar))
    assert again == grammar
    assert hash(again) == hash(grammar)
    assert list(again.rules.items()) == list(grammar.rules.items())
    assert pickle.loads(pickle.dumps(grammar)) == grammar


@given(grammars())
def test_text_round_trip_of_any_grammar(grammar):
    assert Grammar.parse(str(grammar)) == grammar


def test_str_quotes_what_needs_it():
    assert str(FORMULA) == "S -> S S '|' | S S & | 'T' | 'F'"
    assert str(Grammar.parse('S -> "\'" | S a |')) == 'S -> "\'" | S a | ε'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the text has no rules: write at least one, such as S -> a S | a"),
        ("S -> a\nT : b", "line 2 is 'T : b': write a rule as NAME -> symbols | symbols"),
        (
            "% nested\nS -> a",
            "line 1 is '% nested': write a rule as NAME -> symbols | symbols. A comment begins with #",
        ),
        ("S T -> a", "line 1 is 'S T -> a': write a rule as NAME -> symbols | symbols"),
        ("'S' -> a", "line 1 is \"'S' -> a\": write a rule as NAME -> symbols | symbols"),
        ("-> a", "line 1 is '-> a': write a rule as NAME -> symbols | symbols"),
        ("ε -> a", "line 1 is 'ε -> a': write a rule as NAME -> symbols | symbols"),
        ("S -> a\n\nS -> b | NP", "line 3 uses NP, which has no rule: add one, or quote a terminal"),
        ("S -> a 'S'", "line 1 quotes 'S', which has rules: rename one of the two"),
        ("S -> a b | c\nS -> a b", "line 2 repeats S -> a b: remove one, or it counts twice"),
        ("S -> a | 'a'", "line 1 repeats S -> a: remove one, or it counts twice"),
        ("S -> a | | ε", "line 1 repeats S -> ε: remove one, or it counts twice"),
        ("S -> a ε", "line 1 has ε among other symbols: write it alone, or quote it"),
        ("S -> ε a", "line 1 has ε among other symbols: write it alone, or quote it"),
        ("S -> a -> b", "line 1 has ->: put a symbol with -> or a quote in it in quotes"),
        ("S -> 'a", "line 1 has 'a: put a symbol with -> or a quote in it in quotes"),
        ("S -> 'a'b", "line 1 has 'a'b: put a symbol with -> or a quote in it in quotes"),
        ("S -> ''", "line 1 has '': put a symbol with -> or a quote in it in quotes"),
        ("S -> a | A\nA -> b B\nB -> A a", "no finite string comes from A, B: give each a rule that ends"),
        ("S -> S a", "no finite string comes from S: give each a rule that ends"),
        ("S -> a\nA -> b B\nB -> b", "S never leads to A, B: use each, or remove its rules"),
    ],
)
def test_parse_refuses(text, message):
    with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
        Grammar.parse(text)


@pytest.mark.parametrize(
    ("start", "rules", "message"),
    [
        ("T", {"S": (("a",),)}, "unknown start symbol 'T': accepted: S"),
        ("S", {"S": (("a",), ("a",))}, "S has the same alternative twice: remove one, or it counts twice"),
        (
            "S S",
            {"S S": (("a",),)},
            "'S S' cannot name a nonterminal: use a word without spaces, quotes or |",
        ),
        (
            "S",
            {"S": (("a b",),)},
            "'a b' cannot be a terminal: use a word with no space and one kind of quote",
        ),
        ("S", {"S": (("",),)}, "'' cannot be a terminal: use a word with no space and one kind of quote"),
        (
            "S",
            {"S": (("A'\"",),)},
            "'A\\'\"' cannot be a terminal: use a word with no space and one kind of quote",
        ),
    ],
)
def test_a_grammar_refuses(start, rules, message):
    with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
        Grammar(start, rules)


# ---- counts ----


@pytest.mark.parametrize(("grammar", "depth", "trees", "strings"), PAPER)
def test_the_papers_grammars_have_the_counts_of_the_notes_and_of_nltk(grammar, depth, trees, strings):
    assert count_derivations(grammar, depth) == trees
    assert count_strings(grammar, depth) == strings
    generated = nltk_strings(as_nltk(grammar), depth)
    assert generated.total() == trees
    listed = list(enumerate_strings(grammar, depth))
    assert len(listed) == strings
    assert set(listed) == set(generated)
    assert all(derivations(grammar, w, depth) == generated[w] for w in listed[::7])


def test_lengths_of_the_papers_training_strings():
    lengths = {g: [len(w) for w in enumerate_strings(g, d)] for g, d, _, _ in PAPER}
    assert [(min(n), max(n), round(sum(n) / len(n), 1)) for n in lengths.values()] == [
        (2, 20, 17.1),
        (1, 15, 13.3),
        (3, 23, 18.4),
    ]


def test_counts_from_the_text_that_nltk_reads():
    theirs = nltk.CFG.fromstring("S -> S T | T S | T\n T -> '(' T ')' | '(' ')' | '[' T ']' | '[' ']'")
    for depth in range(6):
        generated = nltk_strings(theirs, depth)
        assert count_derivations(PARENTHESIS, depth) == generated.total()
        assert set(enumerate_strings(PARENTHESIS, depth)) == set(generated)


def test_enumeration_is_shortest_first_and_then_in_the_order_of_the_alphabet():
    listed = list(enumerate_strings(PARENTHESIS, 4))
    assert listed[:5] == [tuple("()"), tuple("[]"), tuple("(())"), tuple("()()"), tuple("()[]")]
    assert listed == sorted(listed, key=lambda w: (len(w), [PARENTHESIS.terminals.index(s) for s in w]))


def test_enumeration_of_strings_with_very_many_derivations():
    one_letter = Grammar.parse("S -> S S | a")
    assert list(enumerate_strings(one_letter, 9)) == [("a",) * n for n in range(1, 2**7 + 1)]


@settings(max_examples=150, deadline=None)
@given(grammars())
def test_counts_by_depth_agree_with_nltk(grammar):
    depth = some_depth(grammar, 1500)
    generated = nltk_strings(as_nltk(grammar), depth)
    assert count_derivations(grammar, depth) == generated.total()
    assert count_strings(grammar, depth) == len(generated)
    assert set(enumerate_strings(grammar, depth)) == set(generated)
    for budget in (0, 30, 1 << 17):  # none, some or all of it from tables
        tables = sampling.Tables(BinaryForm.of(grammar), budget)
        letters = BinaryForm.of(grammar).letters
        for w in itertools.chain(list(generated)[:40], *(words(n, grammar.terminals) for n in range(4))):
            assert tables.derivations("".join(letters[s] for s in w), depth) == generated[w]
    total = sum(len(w) * number for w, number in generated.items())
    assert sampling.mean_length(grammar, depth) == pytest.approx(total / max(generated.total(), 1))


@settings(max_examples=100, deadline=None)
@given(grammars())
def test_counts_at_any_depth_agree_with_nltks_chart_parser(grammar):
    assume(not BinaryForm.of(grammar).loop and grammar.terminals)
    parser = nltk.ChartParser(as_nltk(grammar))
    for length in range(1, 4):
        total = 0
        for w in words(length, grammar.terminals):
            heights = [tree.height() for tree in parser.parse(list(w))]
            assert derivations(grammar, w) == len(heights)
            for depth in (2, 3, 4, 6):
                assert derivations(grammar, w, depth) == sum(h <= depth for h in heights)
            total += len(heights)
        assert count_derivations_of_length(grammar, length) == total


@settings(max_examples=60, deadline=None)
@given(grammars())
def test_strings_of_a_length_agree_with_pyformlang(grammar):
    # pyformlang's get_words takes the S of a rule S -> S for a terminal
    assume(not any((name,) in bodies for name, bodies in grammar.rules.items()))
    theirs = pyformlang_words(grammar, 2)
    for length in range(3):
        enough = len(grammar.rules) * (length + 1) + 1  # for a tree without a loop
        ours = {w for w in words(length, grammar.terminals) if derivations(grammar, w, enough)}
        assert ours == {w for w in theirs if len(w) == length}
    if not BinaryForm.of(grammar).loop:
        assert (
            derivations(grammar, ()) == count_derivations_of_length(grammar, 0) == derivations(grammar, (), 9)
        )


def test_membership_agrees_with_pyformlang():
    theirs = CFG.from_text("S -> S T | T S | T\nT -> ( T ) | ( ) | [ T ] | [ ]")
    assert {w for w in enumerate_strings(PARENTHESIS, 6) if len(w) <= 6} == pyformlang_words(PARENTHESIS, 6)
    for w in (*words(4, "()[]"), "([]())", "[()][]", "([)]()"):
        assert (derivations(PARENTHESIS, w) > 0) == theirs.contains([Terminal(s) for s in w])


def test_derivations_of_one_string():
    catalan = [1, 1, 2, 5, 14, 42, 132]
    assert [derivations(AMBIGUOUS, "abababa"[: n + 1]) for n in range(7)] == catalan
    within = [0, 4, 44, 100, 132]  # of x^7 in p, where p starts as x and becomes x + p^2 a depth further
    assert [derivations(AMBIGUOUS, "abababa", depth) for depth in (4, 5, 6, 7, 8)] == within
    assert derivations(PARENTHESIS, "()[]()") == 4
    # the bracket of 3 levels is never taken first: second it reaches depth 6, last 7
    assert [derivations(PARENTHESIS, "()[(())]()", depth) for depth in (5, 6, 7)] == [0, 2, 4]
    assert derivations(PARENTHESIS, "(]") == 0
    assert derivations(PARENTHESIS, "(x)") == 0
    assert derivations(PARENTHESIS, "") == 0
    assert derivations(Grammar.parse("S -> ε"), ()) == derivations(Grammar.parse("S -> ε"), (), 1) == 1


@pytest.mark.usefixtures("no_tables")
def test_derivations_of_parenthesis_strings_without_tables_and_with():
    strings = list(enumerate_strings(PARENTHESIS, 6))[::25]
    numbers = [derivations(PARENTHESIS, w, 6) for w in strings]
    table = sampling.Tables(BinaryForm.of(PARENTHESIS), 1 << 17).level(6).tables[0]
    letters = BinaryForm.of(PARENTHESIS).letters
    assert numbers == [table["".join(letters[s] for s in w)] for w in strings]


def test_counts_by_length():
    assert [count_derivations_of_length(PARENTHESIS, n) for n in range(9)] == [0, 0, 2, 0, 12, 0, 72, 0, 432]
    assert [count_derivations_of_length(FORMULA, n) for n in range(6)] == [0, 2, 0, 8, 0, 64]
    nullable = Grammar.parse("S -> A A b A | b\nA -> a | ε")  # a rule of three nonterminals, all nullable
    assert [count_derivations_of_length(nullable, n) for n in range(6)] == [0, 2, 3, 3, 1, 0]


def test_deep_and_long_is_no_trouble():
    line = Grammar.parse("S -> a S b | b S | ε")
    assert count_derivations(line, 1000) == 2**1000 - 1
    assert derivations(line, "a" * 900 + "b" * 900) == 1
    assert derivations(line, "a" * 900 + "b" * 900, 901) == 1
    assert derivations(line, "a" * 900 + "b" * 900, 900) == 0
    rng = np.random.default_rng(0)
    for grammar in (PARENTHESIS, AGREEMENT):
        w = sample_derivations(grammar, rng, 1, 200)[0]
        assert set(w) <= set(grammar.terminals)
    assert derivations(AGREEMENT, w, 200) == derivations(AGREEMENT, w) == 1
    assert sample_of_length(line, rng, 1, 1500, distinct=False)[0].count("b") >= 750
    assert len(sample_of_length(AMBIGUOUS, rng, 1, 250, distinct=False)[0]) == 250
    assert count_derivations(FORMULA, 15).bit_length() > 16_000


# ---- what counting refuses ----

LOOP = Grammar.parse("S -> A B | a\nA -> S | a\nB -> b |")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda rng: count_derivations_of_length(LOOP, 2),
            "S derives itself, so a string can have endless derivations: give a depth (not a length), or"
            " remove the unit and empty rules that lead back to it",
        ),
        (
            lambda rng: derivations(Grammar.parse("S -> A S A | s\nA -> ε | a"), "s"),
            "S derives itself, so a string can have endless derivations: give a depth (not a length), or"
            " remove the unit and empty rules that lead back to it",
        ),
        (
            lambda rng: sample_strings(PARENTHESIS, rng, 1, 2),
            "no string has depth 2 or less: the smallest depth that has one is 3",
        ),
        (
            lambda rng: sample_derivations(AGREEMENT, rng, 1, 0),
            "no string has depth 0 or less: the smallest depth that has one is 3",
        ),
        (
            lambda rng: sample_of_length(PARENTHESIS, rng, 1, 7),
            "no string has length 7: try 6 or 8, the nearest",
        ),
        (
            lambda rng: sample_of_length(AGREEMENT, rng, 1, 1),
            "no string has length 1: try 3, the shortest that has one",
        ),
        (
            lambda rng: sample_of_length(Grammar.parse("S -> a | b b"), rng, 1, 3),
            "no string has length 3: try 2, the longest that has one",
        ),
        (lambda rng: sample_strings(PARENTHESIS, rng, -1, 6), "n is -1: give 0 or more"),
        (lambda rng: count_derivations(PARENTHESIS, 2.5), "depth is 2.5: give a whole number"),
        (lambda rng: count_derivations_of_length(PARENTHESIS, -2), "length is -2: give 0 or more"),
        (
            lambda rng: count_derivations(FORMULA, 200),
            "depth 21 has more than 2^1048576 derivations: ask for a smaller depth",
        ),
        (
            lambda rng: derivations(Grammar.parse("S -> S S S | ε"), (), 20),
            "the string has more than 2^1048576 derivations: give a smaller depth",
        ),
        (
            lambda rng: count_strings(FORMULA, 6),
            "depth 6 has too many strings to list: ask for a smaller depth, or take a sample",
        ),
        (
            lambda rng: sample_of_length(AMBIGUOUS, rng, 1, 16),
            "strings have too many derivations here, and 1e-07 of those drawn could be kept for a uniform"
            " sample: ask for shorter strings, or write an unambiguous grammar",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
        call(np.random.default_rng(0))


def test_a_grammar_that_derives_itself_is_counted_by_depth():
    generated = nltk_strings(as_nltk(LOOP), 7)
    assert count_derivations(LOOP, 7) == generated.total()
    assert derivations(LOOP, "ab", 7) == generated["a", "b"] > derivations(LOOP, "ab", 5)


# ---- samples ----


@settings(max_examples=80, deadline=None)
@given(grammars())
def test_ranks_and_derivations_correspond(grammar):
    """Each string comes from as many ranks as it has derivations: uniform ranks are uniform derivations."""
    depth = some_depth(grammar, 400)
    generated = nltk_strings(as_nltk(grammar), depth)
    spell = {letter: terminal for terminal, letter in BinaryForm.of(grammar).letters.items()}
    by_depth = sampling._by_depth(grammar)
    for budget in (0, 10, 1 << 17):
        listing = sampling.Tables(BinaryForm.of(grammar), budget).listing
        drawn = (by_depth.unrank(depth, r, listing) for r in range(generated.total()))
        assert Counter(tuple(spell[s] for s in w) for w in drawn) == generated
    if not BinaryForm.of(grammar).loop:
        for length in range(4):
            total = count_derivations_of_length(grammar, length)
            drawn = (sampling._by_length(grammar).unrank(length, r) for r in range(total))
            strings = Counter(tuple(spell[s] for s in w) for w in drawn)
            assert strings == {w: derivations(grammar, w) for w in strings}
            assert strings.total() == total


def test_randbelow_is_uniform_over_small_and_large_ranges():
    rng = np.random.default_rng(1)
    assert chi_square_is_small(Counter(randbelow(rng, 5) for _ in range(5000)), dict.fromkeys(range(5), 1000))
    third = 1 << 200
    draws = [randbelow(rng, 3 * third) for _ in range(3000)]
    assert chi_square_is_small(Counter(r // third for r in draws), dict.fromkeys(range(3), 1000))
    assert chi_square_is_small(Counter(r % 7 for r in draws), dict.fromkeys(range(7), 3000 / 7))
    assert randbelow(rng, 1) == 0


def test_randbelow_draws_again_rather_than_wrap():
    class Scripted:
        # the top 65 of 72 bits, the last byte highest: all ones, then 2^64 + 2^57, then 2^60
        answers = iter([b"\xff" * 9, b"\x00" * 8 + b"\x81", b"\x00" * 8 + b"\x08"])

        def bytes(self, size):
            assert size == 9
            return next(self.answers)

    assert randbelow(Scripted(), (1 << 64) + 1) == 1 << 60


SMALL = list(enumerate_strings(AMBIGUOUS, 4))  # 2 + 4 + 8 + 16 strings, in 2 + 4 + 16 + 16 derivations


def fits(draws, weights):
    total = sum(weights.values())
    return chi_square_is_small(Counter(draws), {w: len(draws) * k / total for w, k in weights.items()})


def check_samples_of_the_ambiguous_grammar():
    assert len(SMALL) == 30
    over_trees = {w: derivations(AMBIGUOUS, w, 4) for w in SMALL}
    over_strings = dict.fromkeys(SMALL, 1)
    assert sum(over_trees.values()) == 38
    trees = sample_derivations(AMBIGUOUS, np.random.default_rng(2), 20_000, 4)
    strings = sample_strings(AMBIGUOUS, np.random.default_rng(3), 20_000, 4)
    assert fits(trees, over_trees)
    assert not fits(trees, over_strings)
    assert fits(strings, over_strings)
    assert not fits(strings, over_trees)


def test_samples_by_depth_are_uniform():
    check_samples_of_the_ambiguous_grammar()


@pytest.mark.usefixtures("no_tables")
def test_samples_by_depth_are_uniform_without_tables():
    check_samples_of_the_ambiguous_grammar()


def test_samples_by_length_are_uniform():
    grammar = Grammar.parse("S -> S T | T S | T\nT -> ( T ) | ( )")
    strings = [w for w in words(8, "()") if derivations(grammar, w)]
    over_trees = {w: derivations(grammar, w) for w in strings}
    assert sorted(over_trees.values()) == [1, 2, 2, 2, 4, 4, 4, 8]
    trees = sample_of_length(grammar, np.random.default_rng(4), 8000, 8, distinct=False)
    distinct = sample_of_length(grammar, np.random.default_rng(5), 8000, 8)
    assert fits(trees, over_trees)
    assert fits(distinct, dict.fromkeys(strings, 1))
    assert not fits(distinct, over_trees)


def test_samples_depend_on_the_generator_alone():
    first, again, other = (sample_strings(PARENTHESIS, np.random.default_rng(s), 20, 8) for s in (6, 6, 7))
    assert first == again != other
    assert all(derivations(PARENTHESIS, w, 8) > 0 for w in first)
    assert sample_strings(PARENTHESIS, np.random.default_rng(0), 0, 6) == []


def test_samples_of_the_parenthesis_test_set_have_the_notes_lengths():
    lengths = [len(w) for w in sample_derivations(PARENTHESIS, np.random.default_rng(8), 1000, 12)]
    assert 94 < np.mean(lengths) < 96
    assert max(lengths) <= 110


# ---- the paper's figures, by exact counting ----


@pytest.mark.parametrize(
    ("weighted", "closed_at_once", "heuristic"), [(False, 43.8, 71.9), (True, 46.4, 73.2)]
)
def test_the_parenthesis_figures_of_the_paper_are_those_of_distinct_strings(
    weighted, closed_at_once, heuristic
):
    openers = at_once = closers = right = 0
    for w in enumerate_strings(PARENTHESIS, 6):
        weight = derivations(PARENTHESIS, w, 6) if weighted else 1
        for symbol, following in itertools.pairwise(w):
            if symbol in CLOSER:
                openers += weight
                at_once += weight * (following == CLOSER[symbol])
            if following not in CLOSER:
                closers += weight
                right += weight * (following == CLOSER.get(symbol, "]"))
    assert round(100 * at_once / openers, 1) == closed_at_once
    assert round(100 * right / closers, 1) == heuristic


# ---- speed ----


def test_the_papers_arrow_and_its_optional_groups():
    """§4.5 as printed: in `NPsing → the lobster (PP | Relsing)` what is in parentheses may be left out."""
    short = Grammar.parse("S → a (B | C) d | ( )\nB -> b\nC -> c")
    long = Grammar.parse("S -> a d | a B d | a C d | ( )\nB -> b\nC -> c")
    assert short == long


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a (b (c)) d", "a d | a b d | a b c d"),
        ("((a) b) c", "c | b c | a b c"),
        ("a (b | c (d)) (e)", "a | a e | a b | a b e | a c | a c e | a c d | a c d e"),
        ("( (a) ) | x ('B')", "( ) | ( a ) | x | x 'B'"),
    ],
)
def test_groups_may_be_nested(written, expected):
    assert Grammar.parse(f"S -> {written}") == Grammar.parse(f"S -> {expected}")


@pytest.mark.parametrize(
    ("right", "reason"),
    [
        ("f(S) | x", "line 1 has a ( that touches f on its outer side: put a space there if"),
        ("(a)b", "line 1 has a ) that touches b"),
        ("a (b", "line 1 opens a group that is not closed"),
        ("a b)", "line 1 closes a group that is not open"),
    ],
)
def test_a_group_is_never_guessed(right, reason):
    with pytest.raises(BadInput, match=re.escape(reason)):
        Grammar.parse(f"S -> {right}")


def test_a_terminal_with_parentheses_in_it_is_quoted():
    grammar = Grammar("S", {"S": (("f(x)",), ("(",), ("()",))})
    assert str(grammar) == "S -> 'f(x)' | ( | ()"
    assert Grammar.parse(str(grammar)) == grammar
