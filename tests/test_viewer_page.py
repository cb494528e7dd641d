"""The page as a reader meets it, in a real browser: typing, stepping, looking, on a desk and on a phone."""

import re
from dataclasses import dataclass

import numpy as np
import pytest

from browser import REVERSAL, XOR, needs_chromium, row
from plugins.echo_task import Echo
from softstack.lab.reports import figures
from softstack.lab.runs import store
from softstack.lab.tasks import TASKS
from softstack.lab.tasks.data import Example
from softstack.lab.tasks.page import ending
from softstack.lab.training.conditions import Condition

pytestmark = needs_chromium
TYPED = "1 1 0 1 0 0 1 0 1 1 1"  # an input that nothing else here has


def words(page, panel=0):
    return page.locator(".words").nth(panel).inner_text()


def test_a_typed_string_is_reversed(opened, reverser):
    page = opened([reverser])
    page.fill("#input", TYPED)
    page.keyboard.press("Enter")
    seen = figures.observe(store.network(reverser), REVERSAL, TYPED.split())
    page.keyboard.press("End")
    assert tuple(row(page, "input")) == seen.example.input
    assert tuple(row(page, "says")) == seen.predicted
    right = page.locator(".tape td.right").count()
    assert right == sum(a == b for a, b in zip(seen.predicted, seen.example.target, strict=True))
    assert right == len(TYPED.split())  # it has learnt to reverse


def test_each_step_is_the_references(opened, reverser):
    """The sentence of every step, which is what a screen reader is given, against a trace."""
    page = opened([reverser], f"#input={TYPED.replace(' ', '+')}")
    seen = figures.observe(store.network(reverser), REVERSAL, TYPED.split())
    for t in range(len(seen.example.input)):
        said = words(page)
        assert said.startswith(f"Step {t + 1} of 22. Input {seen.example.input[t]}.")
        pops, pushes, holds = map(float, re.findall(r"\d\.\d\d|\d\d?\.\d\d", said)[:3])
        expected = (seen.trace.u[t], seen.trace.d[t], seen.trace.s[t].sum())
        for value, of in zip((pops, pushes, holds), expected, strict=True):
            assert value == pytest.approx(float(of), abs=0.0051)
        assert f"Says {seen.predicted[t]} " in said
        page.keyboard.press("ArrowRight")


def test_the_keyboard_reaches_everything(opened, reverser):
    page = opened([reverser])
    steps = page.evaluate("softstack.page.steps")
    for key, expected in (
        ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("Shift+ArrowRight", 11), ("Home", 0),
        ("ArrowLeft", 0), ("End", steps - 1), ("ArrowRight", steps - 1), ("Home", 0),
    ):  # fmt: skip
        page.keyboard.press(key)
        assert page.evaluate("softstack.page.t") == expected
    page.keyboard.press("Space")
    page.wait_for_function("softstack.page.t > 1")
    page.keyboard.press("Space")
    assert page.evaluate("softstack.page.playing") == 0
    reached = []
    page.evaluate("document.activeElement.blur()")
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    controls = {"input", "0", "1", "#", "erase", "random", "first", "back", "play", "forward", "last"}
    assert controls | {"slider", "speed", "measure"} <= set(reached)


def test_arrow_keys_move_the_caret_while_typing(opened, reverser):
    page = opened([reverser])
    page.click("#input")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("softstack.page.t") == 0


def test_every_control_has_a_name(opened, reverser, untrained):
    page = opened([reverser, untrained(REVERSAL, 5)])
    for control in page.locator("button, select, input, canvas").all():
        name = control.evaluate(
            "e => e.getAttribute('aria-label') || e.labels?.[0]?.textContent || e.textContent"
        )
        assert name.strip(), control.evaluate("e => e.outerHTML")


def test_symbols_as_buttons(opened, reverser):
    page = opened([reverser])
    page.fill("#input", "1")
    page.click("#symbols button:text-is('0')")
    page.click("#symbols button:text-is('0')")
    assert page.input_value("#input") == "1 0 0"
    page.click("#erase")
    assert page.input_value("#input") == "1 0"
    assert row(page, "input") == list("10##")


def test_what_cannot_be_run_is_said_and_nothing_is_lost(opened, reverser):
    page = opened([reverser], "#input=1+0")
    page.fill("#input", "1 0 2")
    assert "not made of this task's symbols: 0 1 #" in page.inner_text("#error")
    assert row(page, "input") == list("10##")
    opacity = "getComputedStyle(document.getElementById('panels')).opacity"
    assert float(page.evaluate(opacity)) < 0.5  # it is not what was typed
    message, bar = (page.locator(part).bounding_box() for part in ("#error", "#transport"))
    assert message["y"] + message["height"] + 8 <= bar["y"]
    page.fill("#input", "1 0 1")
    assert page.inner_text("#error") == "" and page.evaluate(opacity) == "1"
    assert row(page, "input") == list("101###")


def test_clicking_the_heat_map_goes_to_that_step(opened, reverser):
    page = opened([reverser], "#input=1+0+0+1+1+1")
    step = page.evaluate("softstack.page.panels[0].heat.size.step")
    page.locator(".heat canvas").click(position={"x": 7.5 * step, "y": 60})
    assert page.evaluate("softstack.page.t") == 7
    page.wait_for_function("location.hash.includes('step=8')")


def test_two_networks_on_the_same_input(opened, reverser, untrained):
    other = untrained(REVERSAL, 5)
    page = opened([reverser, other], "#input=1+0+1&left=0&right=1&step=4")
    assert page.locator(".panel h2").all_inner_texts()[:2] == ["Linear controller, stack of 2"] * 2
    for panel, run in enumerate((reverser, other)):
        seen = figures.observe(store.network(run), REVERSAL, list("101"))
        assert f"Pops {seen.trace.u[3]:.2f}, pushes {seen.trace.d[3]:.2f}" in words(page, panel)
    page.select_option("#right", "")
    assert page.locator("#panels .panel").count() == 1


def test_networks_of_different_alphabets_are_not_put_side_by_side(opened, reverser, untrained):
    """And the page says why."""
    page = opened([reverser, untrained(XOR), untrained(REVERSAL, 5)])
    assert page.locator("#panels .panel").count() == 1
    said = "Reversal reads 0 1 # and XOR reads 0 1: no string is for both"
    assert page.inner_text("#apart").startswith(said)
    page.select_option("#right", "2")
    assert page.inner_text("#apart") == ""
    assert page.locator("#panels .panel").count() == 2
    page.select_option("#left", "1")
    assert "XOR" in page.inner_text("#task")
    assert page.inner_text("#apart").startswith("XOR reads 0 1 and Reversal reads")


def test_accuracy_against_length_is_measured_in_the_page(opened, reverser):
    page = opened([reverser])
    page.click("#measure")
    page.wait_for_function("!document.getElementById('measure').disabled")
    points = page.evaluate("document.querySelector('.chart').getAttribute('aria-label')")
    accuracies = [int(p) for p in re.findall(r"(\d+) %", points)]
    assert len(accuracies) == 18
    assert min(accuracies[:6]) >= 99  # at the lengths it was trained on


@dataclass(frozen=True)
class Repeat:
    """A task of which the page has no JavaScript."""

    name: str = "repeat"

    inputs = alphabet = ("0", "1", "#")
    outputs = ("0", "1")
    padding = "#"
    loss = "sum"

    def length(self, split):
        return 12 if split == "test" else 8

    def sample(self, rng, n, split):
        sizes = rng.integers(1, self.length(split) // 2 + 1, size=n)
        return [tuple("01"[bit] for bit in rng.integers(2, size=size)) for size in sizes]

    def example(self, symbols):
        word = tuple(symbol for symbol in symbols if symbol != "#")
        return Example(word + ("#",) * len(word), (None,) * len(word) + word)


def test_a_task_that_the_page_does_not_know_comes_with_examples(opened, untrained, monkeypatch):
    monkeypatch.setitem(TASKS, "repeat", Repeat())
    run = untrained(Condition("repeat", "linear", "queue"))
    page = opened([run], "#input=1+0+#+#")
    assert row(page, "target") == ["·", "·", "1", "0"]
    page.fill("#input", "1 # 0")
    assert row(page, "input") == list("1#0")
    assert row(page, "target") == []
    page.click("#measure")
    page.wait_for_function("!document.getElementById('measure').disabled")
    assert page.locator(".chart circle").count() == 6  # one a length, 2 to 12
    page.click("#random")
    assert row(page, "target") != []


def test_what_ones_own_task_adds_to_its_strings_is_added_to_what_is_typed(opened, untrained, monkeypatch):
    """As its example does in Python, for strings that are not among those that came with the page."""
    monkeypatch.setitem(TASKS, "repeat", Repeat())
    page = opened([untrained(Condition("repeat", "linear", "queue"))])
    for typed in ("1 1 0 1 0 0 1 1 1", "1 1 0 1 0 0 1 1 1 #", "0 0 1 0 0 1 0 1 # # # # # # # #"):
        page.fill("#input", typed)
        assert row(page, "input") == list(Repeat().example(tuple(typed.split())).input)
    page.fill("#input", "1 # 0 1 1 0 1")  # what it would do with this one the page cannot know
    assert row(page, "input") == list("1#01101")


@pytest.mark.parametrize(
    ("added", "found"),
    [
        (lambda word: ["#"] * len(word), ("#", 1, 0)),
        (lambda word: ["end"], ("end", 0, 1)),
        (lambda word: ["#"] * (2 * len(word) + 3), ("#", 2, 3)),
        (lambda word: [], None),
        (lambda word: ["#"] * (len(word) // 2 + 1), None),
        (lambda word: ["#", "end"], None),
        (lambda word: [*word, "#"], None),
    ],
)
def test_what_a_task_adds_is_seen_from_its_examples(added, found):
    words = [list("abcdefghij"[:n]) for n in (3, 1, 7, 2, 5)]
    strings = [word + added(word) for word in words]
    expected = found and dict(zip(("symbol", "each", "more"), found, strict=True))
    assert ending([[string, [], word] for string, word in zip(strings, words, strict=True)]) == expected
    if found:  # strings that come with their ends, such as those of a file
        assert ending([[string, [], string] for string in strings]) == expected


def test_a_string_that_leaves_the_language_is_not_scored_from_there_on(opened, untrained):
    """On ( ( [ ) ] the answer after [ is ], whatever was typed next."""
    page = opened([untrained(Condition("parenthesis", "linear", "stack"))], "#input=((%5B)%5D")
    page.keyboard.press("End")
    assert row(page, "target") == ["·", "·", "]", "·", "·"]
    assert page.inner_text(".left") == (
        "The string leaves the task's language at symbol 4, ): nothing is scored from there on."
    )
    assert page.locator(".tape td.outside").all_inner_texts() == [")", "]"]
    assert page.locator(".tape td.right, .tape td.wrong").count() == 1
    page.fill("#input", "( [ ] )")
    assert page.locator(".left").is_hidden()
    assert row(page, "target") == ["·", "]", ")", "·"]


def test_a_task_that_the_page_does_not_know_opens_on_a_string_with_targets(opened, untrained, monkeypatch):
    """And knows the targets of the string of `--symbols`, with or without what the task adds to it."""
    monkeypatch.setitem(TASKS, "repeat", Repeat())
    run = untrained(Condition("repeat", "linear", "queue"))
    page = opened([run])
    symbols = row(page, "input")
    half = len(symbols) // 2
    assert symbols[half:] == ["#"] * half
    assert row(page, "target") == ["·"] * half + symbols[:half]
    page = opened([run], symbols=list("0110011"))
    assert page.input_value("#input") == "0 1 1 0 0 1 1"
    assert row(page, "target") == ["·"] * 7 + list("0110011")
    page.fill("#input", "0 1 1 0 0 1 1 # # # # # # #")
    assert row(page, "target") == ["·"] * 7 + list("0110011")


def test_a_task_may_bring_javascript_of_its_own(opened, untrained, monkeypatch):
    monkeypatch.setitem(TASKS, "echo", Echo())
    page = opened([untrained(Condition("echo", "linear", "stack"))])
    page.fill("#input", "1 0 0 1 1 1 0")
    assert row(page, "target") == list("·100111")
    strings = Echo().sample(np.random.default_rng(0), 20, "test")
    examples = page.evaluate(
        "(strings) => strings.map((s) => example(softstack.page.data.tasks.echo, s))", strings
    )
    for symbols, example in zip(strings, examples, strict=True):
        assert (tuple(example["input"]), tuple(example["target"])) == Echo().example(symbols)
    page.click("#random")
    assert set(row(page, "input")) <= {"0", "1"} and row(page, "target")[0] == "·"
    page.click("#measure")
    page.wait_for_function("!document.getElementById('measure').disabled")
    assert page.locator(".chart circle").count() == 12


def test_a_task_may_be_that_of_a_machine(opened, untrained):
    """Targets of typed strings are what the machine writes, symbol after symbol, an ε-move's too."""

    machine = "start q\nq -> r   1 : 1\nq -> q   0 : ε\nr -> q   ε : 0"
    page = opened([untrained(Condition(machine, "linear", "stack"), 3)], "#input=0+1+0+0+1&step=2")
    assert row(page, "target") == ["1", "0", "1", "0", "·"]
    assert page.locator(".transducer .moves code").all_inner_texts() == ["1 : 1", "ε : 0"]


def test_networks_of_other_tasks_begin_with_strings_of_their_own(opened, reverser, untrained):
    page = opened([reverser, untrained(Condition("agreement", "linear", "stack"))], "#input=1+0")
    page.select_option("#left", "1")
    assert page.inner_text("#error") == ""
    assert row(page, "input")[0] == "the"


def test_random_strings_are_the_tasks(opened, reverser):
    page = opened([reverser])
    drawn = set()
    for _ in range(5):
        page.click("#random")
        drawn.add(page.input_value("#input"))
    assert len(drawn) == 5
    assert all(set(text.split()) <= {"0", "1"} and 6 <= len(text.split()) <= 12 for text in drawn)


def test_a_transducer_stands_beside(opened, reverser):
    page = opened([reverser], "#input=1+0+0&step=4")
    assert page.locator(".symbols span").all_inner_texts() == ["0", "1", "$"]  # top first
    assert page.inner_text(".moves") == "# : 0, 0 → ε"
