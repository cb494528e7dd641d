"""How far a string is the beginning of a word of a grammar: in Python, in the page, and as it is told."""

from itertools import product

import numpy as np
import pytest

from browser import needs_chromium, row
from softstack.formal.beginnings import beginning
from softstack.formal.grammar import Grammar
from softstack.lab import tasks
from softstack.lab.tasks import prediction
from softstack.lab.training.conditions import Condition

GRAMMARS = {
    "nested": "S -> a S b | a b",
    "right": "S -> ( S ) S | ε",
    "ambiguous": "S -> S S | ( S ) | ε",
    "left": "S -> S + T | T\nT -> ( S ) | x",
    "hidden": "S -> A S b | A c\nA -> B B\nB -> ε | a",
    "circular": "S -> S | T\nT -> S | a T b | ε",
    "words": "S -> the N V\nN -> dog | N that N sees\nV -> barks | ε",
    "names": "S -> constructor S toString | x",
}


def by_expansion(grammar, word, room=11):
    """By all that leftmost derivations may still have to read: stacks of up to `room` symbols."""
    stacks = {(grammar.start,)}
    for place, symbol in enumerate(word):
        todo = list(stacks)
        while todo:
            first, *rest = todo.pop() or [""]
            for body in grammar.rules.get(first, ()):
                if len(stack := (*body, *rest)) <= room and stack not in stacks:
                    stacks.add(stack)
                    todo.append(stack)
        stacks = {stack[1:] for stack in stacks if stack[:1] == (symbol,)}
        if not stacks:
            return place
    return len(word)


@pytest.mark.parametrize("name", GRAMMARS)
def test_all_short_strings(name):
    grammar = Grammar.parse(GRAMMARS[name])
    places = set()
    for length in range(5):
        for word in product(grammar.terminals, repeat=length):
            place = beginning(grammar, word)
            assert place == by_expansion(grammar, word), word
            places.add(place)
    assert len(places) > 3


def test_long_strings():
    nested = Grammar.parse(GRAMMARS["nested"])
    assert beginning(nested, ["a"] * 300 + ["b"] * 301) == 600
    ambiguous = Grammar.parse(GRAMMARS["ambiguous"])
    assert beginning(ambiguous, [*"(())()" * 30, ")", "("]) == 180


def task_of(name):
    grammar = Grammar.parse(GRAMMARS[name])
    return prediction.text_of(grammar, (), 6, 7)


def test_a_typed_string_that_leaves_the_grammar_is_not_scored_from_there_on():
    task = tasks.find(task_of("nested"))
    example, left, _ = tasks.typed(task, tuple("aabab"))
    assert (example.target, left) == (("a", "b", None, None, None), 3)  # where b alone could come, a came
    assert tasks.typed(task, tuple("aab")).left is None  # a beginning of aabb
    assert tasks.typed(task, tuple("ba")).sentence == (
        "The string leaves the task's language at symbol 1, b: nothing is scored from there on."
    )
    assert set(tasks.typed(task, tuple("ba")).example.target) == {None}


def test_trace_says_so(softstack):
    with open("mine.cfg", "w") as file:
        file.write(GRAMMARS["nested"])
    sizes = ["--train-size", "20", "--dev-size", "5", "--max-epochs", "1", "--depth", "6"]
    run_dir = softstack("train", "--grammar", "mine.cfg", "--controller", "linear", *sizes)[1].split()[0]
    code, out, err = softstack("trace", run_dir, "a b b", "--out", "trace.json")
    said = "the string leaves the task's language at symbol 3, b: nothing is scored from there on."
    assert (code, err) == (0, f"softstack: {said}\n")
    assert "target     b _ _\n" in out
    assert softstack("trace", run_dir, "a a b", "--out", "trace.json")[2] == ""


@needs_chromium
def test_the_page_says_the_same(opened, untrained):
    texts = {name: task_of(name) for name in GRAMMARS if name != "circular"}
    page = opened([untrained(Condition(text, "linear")) for text in texts.values()])
    rng, left = np.random.default_rng(3), 0
    for text in texts.values():
        task = tasks.find(text)
        strings = [list(word) for word in task.sample(rng, 20, "train")]
        for word in list(map(list, strings)):
            word[rng.integers(len(word))] = task.inputs[rng.integers(len(task.inputs))]
            strings.append(word)
        examples = page.evaluate(
            "([name, strings]) => strings.map((s) => example(softstack.page.data.tasks[name], s))",
            [text, strings],
        )
        for symbols, example in zip(strings, examples, strict=True):
            typed = tasks.typed(task, tuple(symbols))
            assert (tuple(example["input"]), tuple(example["target"])) == typed.example
            assert example["left"] == typed.left
            left += typed.left is not None
    assert left > 50
    page.fill("#input", "a b b")
    assert page.inner_text(".left").startswith("The string leaves the task's language at symbol 3, b:")
    assert row(page, "target") == ["b", "·", "·"]
