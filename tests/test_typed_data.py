"""Strings of one's own data as they are typed: what trace and page know of them."""

from pathlib import Path

import pytest

from browser import needs_chromium, row
from softstack.lab import tasks
from softstack.lab.tasks import collection
from softstack.lab.tasks.data import SPLITS
from softstack.lab.training.conditions import Condition

ENDED = ["up down #\t_ _ up", "up up #\t_ _ down", "down up #\t_ _ down", "down #\t_ up"]
LONGER = ["a b c a\ta a c a a", "a\ta a", "c b\tc _", "a b a\ta a a a", "b c\tc _"]  # each a twice, and no b
UNKNOWN = "The targets of this string are not known: nothing is scored."


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch):
    monkeypatch.setattr(collection, "_held", {})


def collected(lines):
    return collection.hold("".join(f"{split}\t{line}\n" for split in SPLITS for line in lines))


def test_the_padding_of_a_longer_output_is_not_typed():
    task = collected(LONGER)
    whole = task.splits["train"][0]
    assert whole.input == ("a", "b", "c", "a", "_")
    for typed in ("a b c a", "a b c a _"):
        assert task.example(tuple(typed.split())) == whole and task.knows(tuple(typed.split()))
    assert not task.knows(("a", "c"))
    words = {" ".join(word) for _, _, word in task.page["examples"]}
    assert words == {line.split("\t")[0] for line in LONGER}
    both = collected(["a\tx", "a\tx y"])  # where an input is there as it is, that is the one that is typed
    assert both.example(("a",)).target == ("x",) and both.example(("a", "_")).target == ("x", "y")
    assert sorted(len(word) for word, _, _ in both.page["examples"]) == [1, 2]


def test_a_trace_knows_the_strings_of_the_data_and_says_where_it_does_not(softstack, untrained):
    run = str(untrained(Condition(collected(LONGER).name, "linear", "stack", buffered=True)).path)
    code, out, err = softstack("trace", run, "a b c a", "--out", "trace.html")
    assert (code, err) == (0, "")
    assert "input      a b c a _\n" in out and "target     a a c a a\n" in out
    assert ">target</th>" in Path("trace.html").read_text()
    code, out, err = softstack("trace", run, "a c", "--out", "trace.html")
    assert code == 0 and "target " not in out and err == f"softstack: t{UNKNOWN[1:]}\n"
    text = Path("trace.html").read_text()
    assert UNKNOWN in text and ">target</th>" not in text


@needs_chromium
def test_the_page_adds_what_the_data_end_with(opened, untrained):
    page = opened([untrained(Condition(collected(ENDED).name, "linear", "stack"))])
    for typed in ("up down", "up down #"):
        page.fill("#input", typed)
        assert row(page, "input") == ["up", "down", "#"] and row(page, "target") == ["·", "·", "up"]
        assert page.inner_text(".left") == ""
    page.fill("#input", "up up up")
    assert row(page, "input") == ["up", "up", "up", "#"] and row(page, "target") == []
    assert page.inner_text(".left") == UNKNOWN
    assert "drawn now" not in page.inner_text("#measuring")
    page.click("#measure")
    page.wait_for_function("!document.getElementById('measure').disabled")
    assert "Up to 40 strings" in page.inner_text("#measured")


@needs_chromium
@pytest.mark.parametrize("memory", ["stack", "superposition"])  # run in the page, and played back
def test_the_page_knows_outputs_that_are_longer(opened, untrained, memory):
    task = collected(LONGER)
    run = untrained(Condition(task.name, "linear", memory, buffered=True))
    page = opened([run], symbols=["a", "b", "c", "a"])
    assert row(page, "input buffer")[:5] == ["a", "b", "c", "a", "_"]
    assert row(page, "target")[:5] == ["a", "a", "c", "a", "a"]
    if memory == "stack":
        assert page.locator("#symbols button").all_inner_texts() == ["a", "b", "c"]
        page.click("#random")
        assert "_" not in page.input_value("#input") and row(page, "target") != []
    page = opened([run], symbols=["a", "c"])
    assert row(page, "target") == [] and page.inner_text(".left") == UNKNOWN


@needs_chromium
def test_the_page_has_all_that_a_machine_writes(opened, untrained):
    doubling = "start q\nq -> q   a : x y\nq -> q   b : z\n"
    page = opened([untrained(Condition(doubling, "linear", "stack", buffered=True))], "#input=a+b+a")
    whole = tasks.whole(tasks.find(doubling), tasks.find(doubling).example(("a", "b", "a")))
    assert row(page, "input buffer")[:5] == list(whole.input)
    assert row(page, "target")[:5] == list(whole.target) == ["x", "y", "z", "x", "y"]
