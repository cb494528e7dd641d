"""Outputs that are longer than inputs: in data files, in `evaluate` and in `trace`."""

import json
from pathlib import Path

import pytest

from softstack.formal.analysis import problems
from softstack.formal.recognising import with_verdicts
from softstack.formal.transducer import Transducer
from softstack.lab import tasks
from softstack.lab.runs import store
from softstack.lab.tasks import TASKS, collection
from softstack.lab.tasks.data import Example, read_tsv

DOUBLING = "start q\nq -> q   a : x y\nq -> q   b : z\n"


@pytest.fixture
def doubling(softstack):
    """The run directory of a network that writes two symbols for each a."""
    Path("doubling.pdt").write_text(DOUBLING)
    return softstack("compile", "doubling.pdt")[1].split()[0]


@pytest.mark.parametrize(
    ("data", "right"), [("a b a\tx y z x y", 5), ("a b a\tx y z x x", 4), ("a b a\tx y _ _ y", 3)]
)
def test_a_file_may_ask_for_more_than_is_read(softstack, doubling, data, right):
    Path("mine.tsv").write_text(f"{data}\n")
    code, out, err = softstack("evaluate", doubling, "--data", "mine.tsv", "--json")
    assert (code, err) == (0, "")
    scored = sum(symbol != "_" for symbol in data.split("\t")[1].split())
    assert (json.loads(out)["right"], json.loads(out)["scored"]) == (right, scored)


@pytest.mark.parametrize("count", [1, 3, 15, 30])  # also longer than the strings of both splits
def test_a_trace_shows_all_that_is_written(softstack, doubling, count):
    code, out, _ = softstack("trace", doubling, " ".join(["a"] * count + ["b"]), "--out", "trace.json")
    written = " ".join(["x", "y"] * count + ["z"])
    assert code == 0
    assert f"predicted  {written}\n" in out and f"target     {written}\n" in out
    assert f"input      {' '.join(['a'] * count + ['b'] + ['_'] * count)}\n" in out


def test_a_page_and_a_figure_of_it(softstack, doubling):
    assert softstack("trace", doubling, "a b a", "--out", "trace.html")[0] == 0
    page = Path("trace.html").read_text()
    assert page.count('class="symbol right"') == 5 and "symbol wrong" not in page
    assert softstack("trace", doubling, "a b a")[0] == 0


def test_what_is_trained_on_stays_as_it_was():
    task = tasks.find(DOUBLING)
    assert task.example(("a", "b")) == Example(("a", "b"), ("x", "y"))
    assert tasks.whole(task, task.example(("a", "b"))) == Example(("a", "b", "_"), ("x", "y", "z"))
    short = TASKS["xor"].example(("1", "0"))
    assert tasks.whole(TASKS["xor"], short) == short


def test_examples_of_ones_own_may_be_longer_too(softstack, monkeypatch, tmp_path):
    monkeypatch.setattr(collection, "_held", {})
    lines = [f"{' '.join('a' * n)}\t{' '.join('xy' * n)}\n" for n in range(1, 13)]
    Path("mine.tsv").write_text("".join(lines))
    files = ["--data", "mine.tsv", "--dev", "mine.tsv", "--test", "mine.tsv"]
    options = ["--controller", "lstm", "--buffered", "--steps-per-symbol", "2", "--max-epochs", "1"]
    code, out, err = softstack("train", *files, *options)
    assert (code, err) == (0, "")
    run = store.load(Path(out.split()[0]))
    task = tasks.find(run.condition.task)
    assert (task.inputs, task.outputs, task.alphabet) == (("a", "_"), ("x", "y"), ("a", "_", "x", "y"))
    assert task.length("test") == 24
    assert json.loads(softstack("evaluate", str(run.path), "--json")[1])["scored"] == 2 * sum(range(1, 13))
    assert "target     x y x y" in softstack("trace", str(run.path), "a a")[1]
    assert read_tsv(Path("mine.tsv"))[0] == Example(("a", "_"), ("x", "y"))


def test_accept_in_a_machine_that_writes_is_warned_of(softstack):
    Path("both.pdt").write_text("start q\naccept q\nq -> r   0 : a\nr -> q   0 : b\n")
    sizes = ["--train-size", "20", "--test-size", "5", "--max-epochs", "1"]
    for command in (["compile", "both.pdt"], ["train", "both.pdt", *sizes]):
        code, _, err = softstack(*command)
        assert code == 0 and "accepts in q only, which a network cannot show" in err


def test_a_recogniser_has_no_rules_that_its_verdicts_make_useless():
    equal = """
        start q
        accept e
        q -> q   a : ε , ε -> A
        q -> p   b : ε , A -> ε
        p -> p   b : ε , A -> ε
        p -> e   ε : ε , $ -> $
    """
    told = with_verdicts(Transducer.parse(equal))
    assert problems(told) == []
    assert "".join(told.run("aabb").output) == "0001"
    early = with_verdicts(Transducer.parse("start s\naccept e\ns -> e   ε : ε\ne -> e   a : ε\n"))
    assert "".join(early.run("aa").output) == "11" and problems(early) == []


def test_a_recogniser_is_read_off(softstack):
    Path("even.pdt").write_text("start q\naccept q\nq -> r   0 : ε\nr -> q   0 : ε\n")
    run = softstack("compile", "even.pdt")[1].split()[0]
    code, out, _ = softstack("extract", run, "--strings", "100")
    assert code == 0 and "explains the network" in out
    machine = Transducer.parse(Path(run, "extracted.pdt").read_text())
    assert machine.run(["0"] * 4).output == ("0", "1", "0", "1")
