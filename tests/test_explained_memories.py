"""Diagnosis and extraction of networks with memories that the library does not have, and the commands."""

import re

import pytest
import torch

import softstack as ss
from browser import page_data
from other_memories import Register, condition, known, network  # noqa: F401 (known is a fixture)
from softstack.lab import tasks
from softstack.lab.explain.diagnosis import diagnose, distance_from_whole, verdict_on
from softstack.lab.explain.diagnosis_figures import draw as draw_diagnosis
from softstack.lab.explain.extract import extract
from softstack.lab.reports import figures
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import examples

pytestmark = pytest.mark.usefixtures("known")


def test_how_far_from_whole():
    by_hand = distance_from_whole(
        ss.Choice(("a", "b", "c")), torch.tensor([[[0.7, 0.2, 0.1], [0.0, 1.0, 0.0]]])
    )
    torch.testing.assert_close(by_hand, torch.tensor([[0.3, 0.0]], dtype=torch.float64))
    by_hand = distance_from_whole(ss.Strength(count=2), torch.tensor([[[0.9, 0.2]]]))
    torch.testing.assert_close(by_hand, torch.tensor([[0.3]], dtype=torch.float64))
    assert distance_from_whole(ss.Vector(2), torch.tensor([[[0.3, 0.4]]])).tolist() == [[0]]


@pytest.mark.parametrize(
    ("memory", "names"),
    [("register", ["write"]), ("ladder", ["act push", "act pop", "act no-op"])],
)
def test_any_memory_can_be_diagnosed(memory, names):
    built = network(memory)
    diagnosis = diagnose(built, condition(memory), 0, strings=20)
    assert diagnosis.use.kind in (memory, "ignored")
    assert diagnosis.use.effects["whole"].grafts > 0
    assert diagnosis.verdict == verdict_on(diagnosis.use.kind, built.cell.memory)
    assert verdict_on("ignored", built.cell.memory) == f"ignores its {memory}"
    assert diagnosis.sentence.startswith(f"Verdict: it {diagnosis.verdict}. It is right ")
    assert "all but the nearest hidden" not in diagnosis.ablated
    assert list(diagnosis.histogram) == names
    assert len({sum(counts) for counts in diagnosis.histogram.values()}) == 1
    assert diagnosis.falls_at is None or diagnosis.falls_by.startswith("measured")
    assert len(draw_diagnosis(diagnosis, "any").axes) == 6


def test_drift_is_of_every_strength_and_choice():
    built = network("ladder")
    diagnosis = diagnose(built, condition("ladder"), 0, strings=1)
    word = next(iter(_tested("ladder")))
    seen = figures.observe(built, condition("ladder"), word)
    off = (1 - seen.trace.act.max(-1).values).cumsum(0)
    assert diagnosis.drift == pytest.approx(off.tolist(), abs=1e-4)


def _tested(memory):
    for example in examples(condition(memory), 0, "test"):
        yield [symbol for symbol in example.input if symbol != "#"]


def test_a_network_that_copies_uses_its_register():
    """What is read is all that a linear controller knows of the past: here it is the last symbol."""
    last = "start q\nq -> z 0 : 0\nq -> o 1 : 0\nz -> z 0 : 0\nz -> o 1 : 0\no -> z 0 : 1\no -> o 1 : 1"
    letters = len(tasks.find(last).alphabet)
    built = ss.StackRNN(letters, controller="linear", memory=Register(letters), output_size=letters)
    heads = built.cell.heads
    with torch.no_grad():
        heads.weight.zero_()
        heads.bias_of("write").fill_(50)
        heads.weight[heads.rows("value"), :letters] = 100 * torch.eye(letters)
        heads.bias_of("value").fill_(-50)
        heads.weight[heads.rows("y"), letters:] = torch.eye(letters)
    copying = Condition(last, "linear", "register", memory_size=letters, test_size=40)
    diagnosis = diagnose(built, copying, 0, strings=40)
    assert diagnosis.verdict == "uses its register as a register"
    assert diagnosis.accuracy == 1
    assert diagnosis.drift[-1] < 1e-12
    assert diagnosis.falls_by.startswith("every measured length is fine, up to ")


@pytest.mark.parametrize("memory", ["register", "ladder", "queue"])
def test_extraction_is_refused_in_a_sentence(memory):
    extraction = extract(network(memory, "gru"), condition(memory, "gru"), 0, strings=10)
    assert extraction.machine is None
    assert not extraction.explained
    assert extraction.sentence.startswith(f"No PDT can be read off a network with the memory '{memory}'")
    assert extraction.as_dict()["machine"] is None


def test_the_commands(softstack, run_root, untrained, tmp_path):
    path = str(untrained(condition("ladder")).path)
    code, out, err = softstack("view", path, "--no-open")
    assert (code, err) == (0, "")
    assert page_data((tmp_path / "view.html").read_text())["networks"][0]["runs"]
    code, out, err = softstack("trace", path, "0 1 1", "--out", "trace.html")
    assert (code, err) == (0, "")
    assert re.search(r"<td>(push|pop|no-op) 0\.\d{3}</td>", (tmp_path / "trace.html").read_text())
    code, out, err = softstack("diagnose", path, "--strings", "10", "--out", "here")
    assert (code, err) == (0, "")
    assert (tmp_path / "here" / "diagnosis.png").stat().st_size > 10_000
    code, out, err = softstack("extract", path, "--out", "here")
    assert (code, err) == (1, "")  # there is no machine
    assert out.splitlines()[-1].startswith("No PDT can be read off")
