"""The gallery: what is said of each network holds, in Python and in the page."""

import itertools
import json
import re

import numpy as np
import pytest
import torch

from browser import READY, needs_chromium
from softstack.lab import tasks
from softstack.lab.reports import figures, gallery
from softstack.lab.runs import store
from softstack.lab.training.conditions import TABLE_1
from softstack.lab.training.scores import answers

INPUTS = json.loads((gallery.EXHIBITS / "inputs.json").read_text())
LISTED = {exhibit.name: exhibit for exhibit in gallery.LISTED}


def wrong(seen):
    """The positions at which a network says something else than the target."""
    pairs = zip(seen.predicted, seen.example.target, strict=True)
    return [j for j, (says, target) in enumerate(pairs) if target is not None and says != target]


@pytest.mark.parametrize("name", LISTED)
def test_one_input_is_right_and_the_other_breaks_it(name):
    run = store.load(gallery.EXHIBITS / name)
    network, task = store.network(run), tasks.find(run.condition.task)
    right = figures.observe(network, run.condition, INPUTS[name]["right"].split())
    assert wrong(right) == [] and any(right.example.target)
    symbols = INPUTS[name]["wrong"].split()
    assert tasks.typed(task, tuple(symbols)).left is None  # it is a string of the task
    if len(symbols) <= 300:  # longer ones in the page, below
        assert wrong(figures.observe(network, run.condition, symbols))


@pytest.mark.parametrize("name", LISTED)
def test_what_is_said_is_two_sentences_and_the_verdict_is_the_tests(name):
    exhibit, run = LISTED[name], store.load(gallery.EXHIBITS / name)
    assert len(re.findall(r"\.(?= [A-Z]|$)", exhibit.look)) == 2 and "`" not in exhibit.look
    assert exhibit.works == (run.result["test"] > 0.99)
    assert re.fullmatch(r"[0-9a-f]{12}", run.provenance["commit"]), "made from code that was not committed"


def test_each_of_the_papers_networks_is_there():
    """All 18 rows, trials that use their stack, and one that was compiled; nothing lies about."""
    conditions = [store.load(gallery.EXHIBITS / e.name).condition for e in gallery.LISTED if e.way == "paper"]
    assert set(conditions) == set(TABLE_1)
    ways = [exhibit.way for exhibit in gallery.LISTED]
    assert ways.count("solved") == 4 and ways.count("compiled") == 1
    assert {path.name for path in gallery.EXHIBITS.iterdir()} == {*LISTED, "inputs.json"}
    assert set(INPUTS) == set(LISTED)


def seen(name, which="right"):
    """A network on one of its inputs, or on symbols."""
    run = store.load(gallery.EXHIBITS / name)
    return figures.observe(store.network(run), run.condition, INPUTS[name].get(which, which).split())


def share_right(name, strings):
    """Of all scored symbols, and of each string whether all of its are."""
    run = store.load(gallery.EXHIBITS / name)
    examples = [tasks.find(run.condition.task).example(tuple(string)) for string in strings]
    said = answers(run.condition, store.network(run), examples)
    return float(said.right.sum() / said.scored.sum()), (said.right == said.scored).tolist()


def nests(*pairs):
    """Each way to nest brackets of these kinds."""
    return [[*(a for a, _ in nest), *(b for _, b in reversed(nest))] for nest in itertools.product(*pairs)]


def clauses(subjects):
    """Sentences with so many subjects, one within the other, each singular or plural."""
    for kinds in itertools.product((("lobster", "has"), ("lobsters", "have")), repeat=subjects):
        front = " that ".join(f"the {noun}" for noun, _ in kinds)
        yield [*front.split(), *" devoured ".join(auxiliary for _, auxiliary in reversed(kinds)).split()]


def test_what_is_counted_is_so():
    both, four = ("()", "[]"), [*["TF"] * 4, *["&|"] * 3]  # four values, and then three operators
    five = "Of the 32 ways to nest five brackets it gets 17 wrong"
    for name, strings, wrong, words in (
        ("parenthesis-linear", nests(*[both] * 5), 17, five),
        ("parenthesis-lstm", nests(*[both] * 6), 32, "of the 64 ways to nest six it gets half wrong"),
        ("parenthesis-lstm-alone", nests(*[both] * 5), 3, "of the 32 ways to nest them it gets three wrong"),
        ("formula-lstm", itertools.product(*four), 29, "end with three operators it gets 29 wrong"),
        ("formula-lstm-alone", itertools.product(*four), 33, "end with three operators it gets 33 wrong"),
        ("formula-lstm-alone", itertools.product(*four[1:-1]), 0, "every formula of up to three values"),
        ("formula-lstm-alone", itertools.product("TF", "TF", "&|", "TF", "&|"), 0, "up to three values"),
        ("agreement-lstm", clauses(5), 14, "so can five subjects that wait"),
        ("agreement-lstm-alone", clauses(4), 1, "Four subjects that wait for their auxiliaries can be"),
        ("agreement-lstm-alone", clauses(5), 16, "of the 32 ways to have five it gets half wrong"),
    ):
        assert words in LISTED[name].look
        assert share_right(name, strings)[1].count(False) == wrong, name


def test_what_is_said_of_longer_strings_is_so():
    rng = np.random.default_rng(0)
    words = {n: rng.choice(["0", "1"], size=(100, n)).tolist() for n in (8, 11, 12, 16, 20, 24)}
    falling = [share_right("reversal-lstm-alone", words[n])[0] for n in (8, 12, 16, 20, 24)]
    assert falling == sorted(falling, reverse=True) and falling[0] > 0.9 and falling[-1] > 0.5
    assert all(share_right("reversal-buffered", words[11])[1])
    guess = seen("reversal-buffered", " ".join(words[12][0])).output[-1]
    assert float(guess.max()) < 0.35  # of three symbols
    for depth, right in ((40, True), (55, False)):  # it goes wrong where some fifty are nested
        kinds = rng.choice(["()", "[]"], size=(20, depth, 1)).tolist()
        assert share_right("parenthesis-linear-solved", [nests(*k)[0] for k in kinds])[1] == [right] * 20
    for zeros in (30, 40):
        assert share_right("delayed-xor-linear", [["1", *["0"] * zeros]])[1] == [zeros == 30]


def test_a_stack_is_as_high_as_the_subjects_that_wait():
    """In the sentences with which `that` pushes, and in those in which the next word does."""
    for sentence, heights in (
        ("the lobsters that the lobster has devoured have", {1: 1, 4: 2, 5: 1, 6: 1, 7: 0}),
        ("the lobster that the lobsters have devoured has", {1: 1, 4: 2, 5: 1, 6: 1, 7: 0}),
        ("the lobster that has devoured the lobsters has", {1: 1, 3: 1, 4: 1, 6: 1, 7: 0}),
        ("the lobsters in the lobster that have slept have", {1: 1, 4: 1, 7: 1, 8: 0}),
    ):
        held = seen("agreement-lstm-solved", sentence).trace.s.sum(-1)
        for place, height in heights.items():
            assert float(held[place]) == pytest.approx(height, abs=0.1), sentence


def test_what_is_said_of_some_stacks_is_so():
    """Strengths that the sentences name, on the inputs that are given."""

    def at(observed, symbol):
        places = [t for t, fed in enumerate(observed.fed) if fed == symbol]
        return observed.trace.u[places], observed.trace.d[places]

    reverser, solved = seen("reversal-linear"), seen("reversal-lstm-solved")
    for symbol, pops, pushes in (("0", 0.2, 0.9), ("1", 0.2, 0.9), ("#", 0.9, 0.2)):
        for strength, said in zip(at(reverser, symbol), (pops, pushes), strict=True):
            torch.testing.assert_close(strength, torch.full_like(strength, said), rtol=0, atol=0.1)
        for strength, said in zip(at(solved, symbol), (pops, pushes), strict=True):
            torch.testing.assert_close(strength, torch.full_like(strength, round(said)), rtol=0, atol=0.02)
    halves, calculator = seen("parenthesis-linear-solved"), seen("formula-linear-solved")
    assert all(abs(float(at(halves, s)[1].mean()) - 0.5) < 0.05 for s in "([")
    assert all(abs(float(at(halves, s)[0].mean()) - 0.5) < 0.1 for s in ")]")
    assert all(float(at(calculator, s)[0].min()) > 0.9 for s in "&|" if s in calculator.fed)
    for ignoring in ("parenthesis-lstm", "formula-lstm", "agreement-lstm", "xor-lstm", "xor-linear"):
        trace = seen(ignoring).trace
        assert float(trace.u.max() - trace.u.min()) < 0.2 and float(trace.d.max() - trace.d.min()) < 0.2
    doomed = seen("delayed-xor-linear", "wrong")
    assert float(doomed.trace.d[1:].max()) < 0.1 < float(doomed.trace.d[0])
    assert float(seen("reversal-lstm").trace.s.sum(-1).max()) < 0.6
    assert float(seen("xor-linear", "1 0 1 1 0 1").output.max()) < 0.6
    grammatical = seen("agreement-linear")
    for word in set(grammatical.fed):
        pops, pushes = at(grammatical, word)
        assert bool((pops - pushes > 0.7).all() if word in ("has", "have") else (pops - pushes < 0.15).all())
    buffered = seen("xor-buffered")
    taken = buffered.trace.i.cumsum(0)
    for j, whole in enumerate(buffered.made_at[:-1]):  # the next symbol comes when j + 1 are taken
        assert abs(int((taken < j + 1).sum()) + 1 - whole) <= 1
    halves = seen("parenthesis-linear-solved", "( [")
    assert halves.trace.r[-1].tolist() == pytest.approx([0.5, 0.5], abs=0.02)  # a half of each


def test_the_command_writes_one_page_and_copies_run_directories(softstack, tmp_path):
    code, out, _ = softstack("gallery", "--no-open", "--runs", "mine")
    assert (code, out) == (0, "Run directories: mine\nWritten: gallery.html\n")
    assert (tmp_path / "gallery.html").stat().st_size < 1_000_000
    assert softstack("evaluate", "mine/reversal-linear", "--split", "dev")[0] == 0
    code, _, said = softstack("gallery", "--no-open", "--runs", "mine")
    assert code == 2 and "is there already" in said


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("gallery") / "gallery.html"
    file.write_text(gallery.page(), encoding="utf-8")
    return file


@needs_chromium
def test_in_the_page_too(tab, file):
    """Each network on both of its inputs, the longest too."""
    page = tab(file)
    page.wait_for_function(READY)
    counts = page.evaluate(
        """() => softstack.page.data.gallery.map((exhibit, k) => {
          const network = softstack.page.data.networks[k], task = softstack.page.data.tasks[network.task];
          return ["right", "wrong"].map((which) => {
            const { right, scored: all } = scored(network, task, example(task, exhibit[which].split(" ")));
            return all - right;
          });
        })"""
    )
    assert [errs == 0 for errs, _ in counts] == [True] * len(LISTED)
    assert [errs > 0 for _, errs in counts] == [True] * len(LISTED)


@needs_chromium
@pytest.mark.parametrize("width", [390, 1280])
def test_an_exhibit_is_chosen_read_and_broken(tab, file, width):
    page = tab(file, width=width, height=844)
    page.wait_for_function(READY)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".shelf h2").all_inner_texts() == [
        "Reversal", "XOR", "Delayed XOR", "Parenthesis", "Formula", "Agreement"
    ]  # fmt: skip
    assert page.locator("#panels .panel").count() == 1
    if width == 1280:  # a network is seen at once
        assert page.locator(".tape").bounding_box()["y"] < 600
    page.click(".shelf:has-text('Delayed XOR') button")
    exhibit = LISTED["delayed-xor-linear"]
    assert exhibit.look in page.inner_text("#exhibit")
    assert page.input_value("#input") == INPUTS[exhibit.name]["right"]
    if width == 390:  # what was chosen is in view
        assert 0 <= page.locator("#exhibit").bounding_box()["y"] < 844
    page.click("#exhibit .wrong")
    assert page.input_value("#input") == INPUTS[exhibit.name]["wrong"]
    page.evaluate("softstack.go(1e9)")
    assert page.locator(".tape td.wrong").count() == 1
