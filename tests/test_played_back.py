"""Networks with a memory or a controller that the page cannot run are played back in it."""

from dataclasses import dataclass

import pytest
import torch

import softstack as ss
from browser import needs_chromium, row
from other_memories import condition, known  # noqa: F401 (a fixture)
from softstack.lab.reports import figures, network_page, recording
from softstack.lab.runs import store
from softstack.lab.tasks import TASKS
from softstack.lab.tasks.data import Example

pytestmark = pytest.mark.usefixtures("known")
KINDS = [
    ("register", "gated"), ("ladder", "lstm"), ("stack", "gated"),
    *((name, "gru") for name, memory in ss.MEMORIES.items() if type(memory(2)) not in recording.MEMORIES),
]  # fmt: skip


@needs_chromium
@pytest.mark.parametrize(("memory", "controller"), KINDS)
def test_a_network_that_the_page_cannot_run_is_played_back(opened, untrained, memory, controller):
    run = untrained(condition(memory, controller))
    page = opened([run], symbols=list("1001"))
    own = ss.MEMORIES[memory](3).name
    reason = "the controller 'gated'" if memory == "stack" else f"the memory '{own}'"
    assert page.inner_text(".note").startswith(
        f"This network is played back, not run, in this page, which cannot run {reason}"
    )
    for id in ("input", "symbols", "erase", "random", "measuring"):
        assert page.locator(f"#{id}").is_hidden()
    strings = page.locator("#strings option").all_inner_texts()
    assert strings[0] == "1 0 0 1"
    assert 10 <= len(strings) <= 14
    lengths = [len(text.split()) for text in strings[1:]]
    assert lengths == sorted(lengths)
    assert lengths[-1] > 12  # longer than any string of training
    built = store.network(run)
    for text in (strings[0], strings[5], strings[-1]):
        page.select_option("#strings", text)
        page.locator("#slider").focus()
        seen = figures.observe(built, condition(memory, controller), text.split())
        for t in (0, 3):
            assert f"Step {t + 1} of {2 * len(text.split())}." in page.inner_text(".words")
            assert f"Says {seen.predicted[t]} " in page.inner_text(".words")
            for _ in range(3):
                page.keyboard.press("ArrowRight")
        page.keyboard.press("End")
        assert row(page, "says")[-3:] == list(seen.predicted[-3:])
        assert row(page, "target")[-3:] == [target or "·" for target in seen.example.target[-3:]]


@needs_chromium
def test_a_place_in_a_recorded_run_is_remembered(opened, untrained):
    run = untrained(condition())
    text = " ".join(recording.strings(TASKS["reversal"], "10")[3])
    page = opened([run], f"#input={text.replace(' ', '+')}&step=3")
    assert page.input_value("#strings") == text
    assert "Step 3 of" in page.inner_text(".words")
    page = opened([run], "#input=0+0+0+0+0+0+0+0+0+0+0+0+0+0")  # which was not recorded
    assert page.input_value("#strings") == page.locator("#strings option").first.inner_text()


@needs_chromium
def test_a_page_may_mix_both(opened, untrained):
    """The network that runs is shown on what was recorded of the other, and alone on what is typed."""
    live, recorded_run = untrained(condition("stack", "gru")), untrained(condition())
    page = opened([recorded_run, live], symbols=list("100"))
    assert page.locator("#panels .panel").count() == 2
    assert page.locator(".note").count() == 1
    seen = figures.observe(store.network(live), condition("stack", "gru"), list("100"))
    page.keyboard.press("ArrowRight")
    said = page.locator(".words").nth(1).inner_text()
    assert f"Pops {seen.trace.u[1]:.2f}, pushes {seen.trace.d[1]:.2f}." in said
    page.select_option("#right", "")
    page.select_option("#left", "1")
    assert page.locator("#input").is_visible()
    assert page.locator("#strings").is_hidden()
    page.fill("#input", "1 1 1")
    assert row(page, "input") == list("111###")
    page.click("#measure")
    page.wait_for_selector(".chart")


@needs_chromium
def test_a_buffered_network_is_played_back_with_its_buffers(opened, untrained):
    kind = dict(task="xor", buffered=True, steps_per_symbol=2, discard_first=True)
    run = untrained(condition(**kind))
    page = opened([run], "#step=5", symbols=list("1101"))
    letters = torch.eye(3)[[1, 1, 0, 1] + [2] * 8]  # padded as in training
    with torch.no_grad():
        y, _, trace = store.network(run)(letters, return_trace=True)
    assert f"write {trace.write[4]:.2f}, takes {trace.i[4]:.2f}, gives {trace.o[4]:.2f}." in page.inner_text(
        ".words"
    )
    taken = float(trace.i[:4].sum())
    left = [
        float(e.evaluate("e => e.style.getPropertyValue('--left')")[:-1]) / 100
        for e in page.locator(".tape td.buffered").all()
    ]
    assert left == pytest.approx([min(1, max(0, j + 1 - taken)) for j in range(12)], abs=0.002)
    page.keyboard.press("End")
    assert row(page, "says")[:4] == ["01_"[k] for k in y[:4].argmax(-1).tolist()]


@needs_chromium
def test_it_fits_a_phone(opened, untrained):
    for memory in ("register", "ladder"):
        page = opened([untrained(condition(memory))], width=360, height=700)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.locator("#strings").bounding_box()["width"] > 150


@dataclass(frozen=True)
class Cities:
    """Symbols with spaces, one of which is a space. Each is said again."""

    name: str = "cities"

    inputs = outputs = ("New York", "York", " ")
    alphabet = ("New York", "York", " ", "_")
    padding = "_"
    loss = "sum"

    def length(self, split):
        return 6

    def sample(self, rng, n, split):
        return [
            tuple(self.inputs[k] for k in rng.integers(3, size=size)) for size in rng.integers(1, 7, size=n)
        ]

    def example(self, symbols):
        return Example(symbols, symbols)


@needs_chromium
@pytest.mark.parametrize("memory", ["register", "stack"])
def test_a_symbol_may_have_a_space(opened, untrained, monkeypatch, memory):
    monkeypatch.setitem(TASKS, "cities", Cities())
    page = opened([untrained(condition(memory, "gru", "cities"))], symbols=["York", "New York", " "])
    assert row(page, "input") == ["York", "New␣York", "␣"]
    assert row(page, "target") == ["York", "New␣York", "␣"] or memory == "stack"
    if memory == "stack":
        page.click("#symbols button:text-is('New␣York')")
        assert page.input_value("#input") == "York New␣York ␣ New␣York"
        assert row(page, "input") == ["York", "New␣York", "␣", "New␣York"]
        page.click("#erase")
        assert row(page, "input") == ["York", "New␣York", "␣"]
    else:
        assert page.input_value("#strings") == "York New␣York ␣"


def test_pages_that_are_played_back_stay_small(untrained):
    text = network_page.page([untrained(condition("ladder"))])
    assert len(text.encode()) < 400_000
