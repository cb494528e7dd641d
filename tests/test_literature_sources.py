"""Where the strings of other papers' tasks come from: grammars and walks beside literal ones, and bounds."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest

from softstack.errors import BadInput
from softstack.lab.tasks import TASKS, draw
from softstack.lab.tasks.dyck import SHAPES, depth_of, walk
from softstack.lab.tasks.language_models import HARDEST_CFL, LONGEST, SHORTEST
from softstack.lab.tasks.translation import gendered, sov
from test_weighted import weighing

# --- Grefenstette et al. 2015: the grammars of their Table 1, source and target generated side by side ------

NAMES = {"A", "S", "O", "B", "V", "N", "ST", "OT", "VT", "W", "M", "F", "NN"}
SVO = {
    "A": [(1, "S1 VT2 O3", "S1 O3 VT2")],
    "S": [(0.2, "S1 S2", "S1 S2"), (0.2, "S1 rpi S2 VT3", "S1 rpo S2 VT3"), (0.6, "ST1", "ST1")],
    "O": [(0.2, "O1 O2", "O1 O2"), (0.2, "S1 rpi S2 VT3", "S1 rpo S2 VT3"), (0.6, "OT1", "OT1")],
    "ST": [(1 / 3, f"si{k}", f"so{k}") for k in (1, 2, 33)],
    "OT": [(1 / 3, f"oi{k}", f"oo{k}") for k in (1, 2, 33)],
    "VT": [(1 / 3, f"vi{k}", f"vo{k}") for k in (1, 2, 33)],
}
GENDERS = {
    "A": [(1, "B1", "B1")],
    "B": [(0.25, "B1 or B2", "B1 oder B2"), (0.25, "S1 and S2", "S1 und S2"), (0.5, "B1 V2", "B1 V2")],
    "V": [(0.75, "W1 B2", "W1 B2"), (0.25, "W1", "W1")],
    "S": [
        (1 / 6, "the M1", "der M1"), (1 / 6, "the F1", "die F1"), (1 / 6, "the NN1", "das NN1"),
        (1 / 6, "a M1", "ein M1"), (1 / 6, "a F1", "eine F1"), (1 / 6, "a NN1", "ein NN1"),
    ],
    "W": [(1, "we7", "wg7")], "M": [(1, "me7", "mg7")], "F": [(1, "fe7", "fg7")], "NN": [(1, "ne7", "ng7")],
}  # fmt: skip


def derived(rules, name, rng, room=40):
    """A source and its target; None where they would be long."""
    if room <= 0:
        return None
    bodies = rules[name]
    _, left, right = bodies[rng.choice(len(bodies), p=[p for p, _, _ in bodies])]
    parts = {}
    for symbol in left.split():
        if symbol.rstrip("123") in NAMES:
            parts[symbol] = derived(rules, symbol.rstrip("123"), rng, room - len(left.split()))
            if parts[symbol] is None:
                return None
    sides = []
    for side, body in enumerate((left, right)):
        sides.append([w for s in body.split() for w in (parts[s][side] if s in parts else [s])])
    return tuple(sides)


@pytest.mark.parametrize(("rules", "translated"), [(SVO, sov), (GENDERS, gendered)])
def test_translations_are_those_of_the_grammar(rules, translated):
    rng, lengths = np.random.default_rng(0), set()
    for _ in range(400):
        if (pair := derived(rules, "A", rng)) is not None:
            assert translated(tuple(pair[0])) == pair[1]
            lengths.add(len(pair[0]))
    assert len(lengths) > 10


@pytest.mark.parametrize(
    ("name", "rules", "longest"), [("svo_to_sov", SVO, 9), ("gender_conjugation", GENDERS, 13)]
)
def test_sentences_are_as_likely_as_in_the_grammar(name, rules, longest):
    """By their length, among short ones."""
    rng, grammar = np.random.default_rng(0), TASKS[name].weighted
    drawn = Counter(len(pair[0]) for _ in range(3000) if (pair := derived(rules, "A", rng)) is not None)
    lengths = range(3, longest + 1)
    total = sum(drawn[length] for length in lengths)
    weights = [grammar.total(length) for length in lengths]
    assert total > 800
    for length, weight in zip(lengths, weights, strict=True):
        p = weight / sum(weights)
        assert abs(drawn[length] - total * p) <= 4.5 * math.sqrt(total * p * (1 - p)) + 1e-9


# --- Suzgun et al. 2019, Skachkova et al. 2018, Hewitt et al. 2020 ------------------------------------------


def test_shapes_are_as_likely_as_in_suzguns_grammar():
    """S -> ( S ) | S S | ε with 1/2, 1/4, 1/4: by its sum over all derivations of at most 60 levels."""
    strings = [s for n in range(0, 8, 2) for s in product("()", repeat=n)]
    weights = dict.fromkeys(strings, 0.0)
    for _ in range(60):
        deeper = dict.fromkeys(strings, 0.0)
        deeper[()] = 0.25
        for s in strings:
            if s and (s[0], s[-1]) == ("(", ")"):
                deeper[s] += 0.5 * weights[s[1:-1]]
            deeper[s] += 0.25 * sum(
                weights.get(s[:k], 0) * weights.get(s[k:], 0) for k in range(0, len(s) + 1, 2)
            )
        weights = deeper
    assert weights[()] == pytest.approx(2 - math.sqrt(3), abs=1e-12)
    shapes = [s for s in strings if s and weights[s]]
    assert len(shapes) == 1 + 2 + 5
    assert SHAPES.weigh(shapes) == pytest.approx([weights[s] for s in shapes], rel=1e-9)


def test_walks_are_as_likely_as_their_steps():
    """Of the 13 walks of eight steps with at most three open brackets, each by its product of halves."""
    chances = {}
    for steps in product((1, -1), repeat=8):
        heights = np.concatenate([[0], np.cumsum(steps)])
        if heights.min() == heights[-1] == 0 and heights.max() <= 3:
            free = sum(0 < height < 3 for height in heights[:-1])
            chances["".join("(" if step == 1 else ")" for step in steps)] = 0.5**free
    assert len(chances) == 13
    rng, total = np.random.default_rng(0), sum(chances.values())
    drawn = Counter("".join(walk(rng, 8, 3)) for _ in range(4000))
    assert set(drawn) == set(chances)
    for shape, chance in chances.items():
        p = chance / total
        assert abs(drawn[shape] - 4000 * p) <= 4.5 * math.sqrt(4000 * p * (1 - p))


@pytest.mark.parametrize(
    ("name", "train", "test"),
    [("dyck_2_deep", (1, 5), (6, 15)), ("dyck_2_3", (1, 3), (1, 3)), ("dyck_8_5", (1, 5), (1, 5))],
)
def test_depths(name, train, test):
    task = TASKS[name]
    opening = {a for a, _ in task.pairs}
    for split, (low, high) in (("train", train), ("test", test)):
        shapes = [
            tuple("(" if symbol in opening else ")" for symbol in word)
            for word in task.sample(np.random.default_rng(0), 200, split)
        ]
        depths = [depth_of(shape) for shape in shapes]
        assert low <= min(depths) and max(depths) <= high
        assert max(depths) >= high - 3


def test_kinds_of_brackets_are_uniform():
    counts = Counter(s for w in TASKS["dyck_3"].sample(np.random.default_rng(0), 500, "train") for s in w)
    assert set(counts) == set("()[]{}")
    total = counts.total()
    assert all(abs(count / total - 1 / 6) < 0.02 for count in counts.values())


# --- DuSell and Chiang 2020 ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "lengths", "nats"),
    [  # uniform over the lengths that there are, and then over words
        ("marked_reversal", range(41, 80, 2), lambda length: (length - 1) / 2 * math.log(2) + math.log(20)),
        ("unmarked_reversal", range(40, 81, 2), lambda length: length / 2 * math.log(2) + math.log(21)),
    ],
)
def test_bounds_that_are_known(name, lengths, nats):
    task = TASKS[name]
    assert task.lengths == tuple(lengths)
    strings = task.sample(np.random.default_rng(0), 20, "train")
    assert task.surprisals(strings) == pytest.approx([nats(len(w)) for w in strings], rel=1e-9)
    (longer,) = task.surprisals([task.of_length(np.random.default_rng(0), 202)])
    assert longer == pytest.approx(100 * math.log(2), rel=1e-9)  # of 200 or 201 symbols, their length given


@pytest.mark.parametrize("name", ["padded_reversal", "dyck_2_model"])
def test_bounds_of_all_strings_of_a_length(name):
    """-log p beside p by hand, over every string of eight symbols; the ps add up to 1."""
    task = TASKS[name]
    by_hand = {}
    for string in product(task.letters, repeat=8):
        if name == "padded_reversal":  # w a^p w^R with |w| = k: each letter of w and the a count for a half
            p = 0.0
            for k in range(5):
                padding = string[k : 8 - k]
                if string == string[::-1] and len(set(padding)) <= 1:
                    ways = 1 if padding else 2
                    p += (60 / 61) ** k * (30 / 31) ** len(padding) * 0.5 ** (k + 1) * ways
            by_hand[string] = p
        else:  # a nest is closed at once with 1/40, and S is followed by another with 1/2
            openings, p = [], 1.0
            for symbol, following in zip(string, (*string[1:], "."), strict=True):
                if symbol in "([":
                    openings.append(symbol)
                    p *= 39 / 40 if following in "([" else 1 / 40
                elif openings and openings.pop() == {")": "(", "]": "["}[symbol]:
                    p *= 0.5  # one more beside it, or no more: as likely
                else:
                    p = 0.0
                    break
            by_hand[string] = 0.0 if openings else p
    total = sum(by_hand.values())
    strings = [s for s, p in by_hand.items() if p]
    nats = np.array(task.surprisals(strings))  # eight symbols are fewer than 40: their length is given
    assert np.exp(-nats) == pytest.approx([by_hand[s] / total for s in strings], rel=1e-9)
    assert np.exp(-nats).sum() == pytest.approx(1, rel=1e-9)


def test_the_hardest_language_is_weighed_as_it_is_defined():
    grammar = HARDEST_CFL.weighted
    rules = {
        name: [(w, " ".join(body)) for w, body in zip(grammar.weights[name], bodies, strict=True)]
        for name, bodies in grammar.grammar.rules.items()
    }
    assert all(math.isclose(sum(w for w, _ in bodies), 1) for bodies in rules.values())
    weight = weighing(rules)
    rng = np.random.default_rng(0)
    strings = [grammar.draw(rng, length) for length in (6, 9, 11, 12)]
    assert strings[0] == (",", "$", *strings[0][2:4], ",", ";")
    assert grammar.weigh(strings) == pytest.approx([weight(("All",), s) for s in strings], rel=1e-12)


def test_what_counts_in_the_hardest_language():
    """From each `x,y,z;` one piece, so that all together are $ and brackets that close."""

    def balanced(text):
        openings = []
        for symbol in text:
            if symbol in "([":
                openings.append(symbol)
            elif symbol == "$" or not openings or openings.pop() + symbol not in ("()", "[]"):
                return False
        return not openings

    for word in HARDEST_CFL.sample(np.random.default_rng(1), 30, "train"):
        blocks = [block.split(",")[1:-1] for block in "".join(word)[:-1].split(";")]
        chosen = ("".join(pieces) for pieces in product(*blocks))
        assert any(text[:1] == "$" and balanced(text[1:]) for text in chosen)


def test_a_string_without_probability():
    with pytest.raises(BadInput, match="'0 0 1' is not a string of marked_reversal"):
        TASKS["marked_reversal"].surprisals([("0", "0", "1")])


def test_bounds_are_those_of_what_the_network_is_given():
    task = TASKS["dyck_2_model"]
    examples = draw(task, np.random.default_rng(0), 5, "test")
    assert all(SHORTEST <= len(example.target) - 1 <= LONGEST for example in examples)
    words = [example.input[1:] for example in examples]
    assert task.surprisals([example.input for example in examples]) == task.surprisals(words)
