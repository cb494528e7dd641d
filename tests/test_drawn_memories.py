"""Memories and a controller that the library does not have, drawn from what they declare: figures, `ss.show`,
the page (which plays them back, since it has no JavaScript for them), diagnosis and extraction."""

import re
from dataclasses import dataclass
from typing import NamedTuple

import matplotlib
import numpy as np
import pytest
import torch
from torch import nn

import softstack as ss
from browser import needs_chromium, page_data, row
from softstack.lab.explain.diagnosis import diagnose, distance_from_whole, verdicts
from softstack.lab.explain.diagnosis_figures import draw as draw_diagnosis
from softstack.lab.explain.extract import extract
from softstack.lab.reports import figures, network_page, recording
from softstack.lab.runs import store
from softstack.lab.tasks import TASKS
from softstack.lab.tasks.data import Example
from softstack.lab.training.conditions import Condition
from softstack.lab.training.train import initial
from softstack.viewer import declared, recorded


class Held(NamedTuple):
    value: torch.Tensor  # (B, m)


@dataclass(frozen=True)
class Register:
    """One cell: `value` replaces what is there to the degree `write`."""

    size: int
    name = "register"
    drawn = "cells"

    @property
    def width(self):
        return self.size

    @property
    def heads(self):
        return {"value": ss.Vector(self.size), "write": ss.Strength()}

    def init(self, batch=(), *, device=None, dtype=None):
        return Held(torch.zeros(*batch, self.size, device=device, dtype=dtype))

    def step(self, state, instructions):
        value, write = instructions
        kept = state.value + write.unsqueeze(-1) * (value - state.value)
        return Held(kept), kept

    def contents(self, state):
        return ss.Contents(state.value.unsqueeze(-2), torch.ones_like(state.value[..., :1]))


class Tower(NamedTuple):
    cells: torch.Tensor  # (B, N, m), the top first
    filled: torch.Tensor  # (B, N)


@dataclass(frozen=True)
class Superposition:
    """A stack of N cells that is pushed, popped and left alone, each to the degree of its probability."""

    size: int
    depth: int = 5
    name = "superposition"
    drawn = "pile"

    @property
    def width(self):
        return self.size

    @property
    def heads(self):
        return {"v": ss.Vector(self.size), "act": ss.Choice(("push", "pop", "no-op"))}

    def init(self, batch=(), *, device=None, dtype=None):
        kind = dict(device=device, dtype=dtype)
        return Tower(
            torch.zeros(*batch, self.depth, self.size, **kind), torch.zeros(*batch, self.depth, **kind)
        )

    def step(self, state, instructions):
        push, pop, stay = (p[..., None, None] for p in instructions.act.unbind(-1))
        cells = torch.cat((state.cells, state.filled.unsqueeze(-1)), -1)  # (B, N, m + 1)
        top = torch.cat((instructions.v, torch.ones_like(instructions.v[..., :1])), -1).unsqueeze(-2)
        empty = torch.zeros_like(top)
        pushed, popped = torch.cat((top, cells[..., :-1, :]), -2), torch.cat((cells[..., 1:, :], empty), -2)
        cells = push * pushed + pop * popped + stay * cells
        state = Tower(cells[..., :-1], cells[..., -1])
        return state, state.cells[..., 0, :]

    def contents(self, state):
        return ss.Contents(state.cells.flip(-2), state.filled.flip(-1))  # the last cell is drawn on top


class Gated(nn.Module):
    """A recurrent core with a LayerNorm."""

    def __init__(self, input_size, hidden_size, **kind):
        super().__init__()
        self.features = hidden_size
        self.layer = nn.Linear(input_size + hidden_size, hidden_size, **kind)
        self.norm = nn.LayerNorm(hidden_size, **kind)

    def init(self, batch, like):
        return (like.new_zeros(*batch, self.features),)

    def forward(self, z, h):
        new = torch.tanh(self.norm(self.layer(torch.cat((z, h[0]), -1))))
        return new, (new,)


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setitem(ss.MEMORIES, "register", Register)
    monkeypatch.setitem(ss.MEMORIES, "superposition", Superposition)
    monkeypatch.setitem(ss.CONTROLLERS, "gated", Gated)


def condition(memory="register", controller="gated", task="reversal", **kind):
    return Condition(task, controller, memory, hidden_size=6, memory_size=3, test_size=40, **kind)


def network(memory="register", controller="gated", **kind):
    """A network with large weights, so that its strengths differ from step to step."""
    built = initial(condition(memory, controller, **kind), 0)
    generator = torch.Generator().manual_seed(1)
    for p in built.parameters():
        p.data.normal_(0, 1.2, generator=generator)
    return built


def traced(memory, controller="gated", T=7):
    x = torch.eye(3)[torch.randint(3, (2, T), generator=torch.Generator().manual_seed(2))]
    _, _, trace = network(memory, controller)(x, return_trace=True)
    return trace


# --- what is drawn ------------------------------------------------------------------------------------------


def test_columns_are_the_heads_with_their_labels():
    def drawn(memory, **kind):
        return [(c.name, c.kind, c.title, c.labels) for c in declared.columns(memory, **kind)]

    assert drawn(ss.Stack(2), buffered=True) == [
        ("u", "strength", "pop", ("",)),
        ("d", "strength", "push", ("",)),
        ("v", "vector", "pushed vector", ("1", "2")),
        ("i", "strength", "take", ("",)),
        ("o", "strength", "give", ("",)),
    ]
    assert drawn(Register(2)) == [
        ("write", "strength", "write", ("",)),
        ("value", "vector", "value", ("1", "2")),
    ]
    assert drawn(Superposition(1)) == [
        ("act", "choice", "act", ("push", "pop", "no-op")),
        ("v", "vector", "pushed vector", ("1",)),
    ]


@pytest.mark.parametrize(
    ("memory", "titles", "labels"),
    [
        ("register", ["write", "value"], [[""], ["1", "2", "3"]]),
        ("superposition", ["act", "pushed vector"], [["push", "pop", "no-op"], ["1", "2", "3"]]),
    ],
)
def test_a_figure_has_a_column_for_each_head(memory, titles, labels):
    built = network(memory)
    seen = figures.observe(built, condition(memory), list("0110"))
    figure = figures.draw(built, condition(memory), seen)
    axes = figure.axes[:-1]  # without the bar of colours
    assert [axis.get_title() for axis in axes] == [*titles, "input", "output"]
    assert [[tick.get_text() for tick in axis.get_xticklabels()] for axis in axes[:2]] == labels
    heads = [c.name for c in declared.columns(built.cell.memory)]
    for axis, name in zip(axes, heads, strict=False):
        expected = seen.trace.instructions[name].reshape(8, -1)
        np.testing.assert_array_equal(axis.images[0].get_array(), expected.numpy())
    table = figures.as_html(figure, seen, "any")
    assert f"<th scope=col>{titles[0]}</th></tr>" in table
    first = seen.trace.instructions[heads[0]][0]
    if memory == "superposition":
        assert f"<td>{('push', 'pop', 'no-op')[int(first.argmax())]} {first.max():.3f}</td></tr>" in table
    else:
        assert f"<td>{first:.3f}</td></tr>" in table


def test_numbers_outside_the_colours_are_scaled_into_them():
    wide = figures._scaled(torch.tensor([[-1.0, 3.0], [float("nan"), float("inf")]]))
    assert wide[0].tolist() == [0, 1]
    assert wide[1].isnan().tolist() == [True, False]
    assert figures._scaled(torch.tensor([[0.25]])).tolist() == [[0.25]]


# --- ss.show ------------------------------------------------------------------------------------------------


SENTENCES = {
    "register": lambda t, trace: f"Write {trace.write[1, t]:.2f}. The register holds 1.00 in 1 cell.",
    "superposition": lambda t, trace: (
        f"Act {('push', 'pop', 'no-op')[int(trace.act[1, t].argmax())]} "
        f"({100 * trace.act[1, t].max():.0f} %). The superposition holds {trace.s[1, t].sum():.2f} in "
        f"{int((trace.s[1, t] > 0).sum())} cell"
    ),
}


def shown(browser, text, tmp_path, width=1000):
    page = browser.new_page(viewport={"width": width, "height": 900})
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    (tmp_path / "shown.html").write_text(text, encoding="utf-8")
    page.goto((tmp_path / "shown.html").as_uri())
    page.wait_for_function("softstack && softstack.page.panels[0].run")
    return page, errors


@needs_chromium
@pytest.mark.parametrize("memory", SENTENCES)
def test_show_says_what_the_memory_is(browser, tmp_path, memory):
    trace = traced(memory)
    page, errors = shown(browser, ss.show(trace, sequence=1).text, tmp_path)
    assert page.inner_text(".memory h3") == memory.capitalize()
    for t in range(7):
        assert SENTENCES[memory](t, trace) in page.inner_text(".words")
        page.keyboard.press("ArrowRight")
    assert not errors
    page.close()


@needs_chromium
def test_a_register_is_drawn_as_a_cell_and_a_pile_with_its_last_cell_on_top(browser, tmp_path):
    trace = traced("register")
    page, errors = shown(browser, ss.show(trace).text, tmp_path)
    page.keyboard.press("End")
    assert page.locator(".beside .column").count() == 1
    background = page.evaluate("document.querySelector('.beside b').style.background")
    colours = [tuple(map(int, rgb)) for rgb in re.findall(r"rgb\((\d+), (\d+), (\d+)\)", background)]
    viridis = matplotlib.colormaps["viridis"]
    expected = [np.array(viridis(value)[:3]) * 255 for value in trace.V[0, 6, 0].tolist()]
    assert len(colours) == 6  # each number is a band from here to there
    np.testing.assert_allclose(colours[::2], expected, atol=6)
    page.close()
    trace = traced("superposition", T=12)
    page, more = shown(browser, ss.show(trace).text, tmp_path)
    t = int(trace.s[0].sum(-1).argmax())
    page.evaluate(f"softstack.go({t})")
    unit = page.evaluate("softstack.page.panels[0].memory.view.unit")
    bottoms = page.evaluate(
        "[...softstack.page.panels[0].memory.view.cells.nodes].map("
        "([slot, node]) => [slot, parseFloat(node.style.bottom)])"
    )
    places = [slot for slot, _ in sorted(bottoms, key=lambda pair: -pair[1])]
    assert places == sorted(places, reverse=True)
    assert places[0] == 4  # the last cell is the top
    heights = [box.bounding_box()["height"] / unit for box in page.locator(".stack .cell").all()]
    assert sorted(heights) == pytest.approx(
        sorted(s for s in trace.s[0, t].tolist() if s * unit >= 0.6), abs=0.02
    )
    assert page.locator(".bracket").is_hidden()  # where this memory is read the page cannot know
    assert not errors + more
    page.close()


@needs_chromium
def test_what_is_no_number_is_shown(browser, tmp_path):
    """NaN and infinity are no JSON: they must not leave a blank page."""
    trace = traced("register")
    trace.instructions["write"].data[0, 1] = float("nan")
    trace.y.data[0, 2] = float("inf")
    trace.V.data[0, 3] = float("-inf")
    trace.s.data[0, 3] = float("nan")
    text = ss.show(trace).text
    run = page_data(text)["networks"][0]["runs"][0]
    assert run["said"]["write"][1] == "NaN"
    assert run["y"][2] == ["Infinity"] * 3
    page, errors = shown(browser, text, tmp_path)
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert "Write NaN." in page.inner_text(".words")
    assert not errors
    page.close()
    seen = figures.observe(network(), condition(), list("01"))
    seen.trace.instructions["write"][1] = float("nan")
    assert figures.as_json(seen)["trace"]["write"][1] is None
    assert figures.as_json(seen)["trace"]["write"][0] == float(seen.trace.write[0])


def test_numbers_in_the_page_are_those_of_the_trace():
    values = torch.tensor([[0.123456789, 1.0, 0.0], [-12345.678, 1e-9, 1e20]], dtype=torch.float64)
    assert recorded.numbers(values) == [[0.123457, 1, 0], [-12345.7, 1e-9, 1e20]]


# --- the page -----------------------------------------------------------------------------------------------


KINDS = [("register", "gated"), ("superposition", "lstm"), ("stack", "gated")]


@needs_chromium
@pytest.mark.parametrize(("memory", "controller"), KINDS)
def test_a_network_that_the_page_cannot_run_is_played_back(opened, untrained, memory, controller):
    run = untrained(condition(memory, controller))
    page = opened([run], symbols=list("1001"))
    reason = "the controller 'gated'" if memory == "stack" else f"the memory '{memory}'"
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
    assert f"Write {trace.write[4]:.2f}, takes {trace.i[4]:.2f}, gives {trace.o[4]:.2f}." in page.inner_text(
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
    for memory in ("register", "superposition"):
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
    text = network_page.page([untrained(condition("superposition"))])
    assert len(text.encode()) < 400_000


# --- diagnosis and extraction -------------------------------------------------------------------------------


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
    [("register", ["write"]), ("superposition", ["act push", "act pop", "act no-op"])],
)
def test_any_memory_can_be_diagnosed(memory, names):
    built = network(memory)
    diagnosis = diagnose(built, condition(memory), 0, strings=20)
    assert diagnosis.verdict in verdicts(built.cell.memory)
    assert verdicts(built.cell.memory)[2] == f"ignores its {memory}"
    assert diagnosis.sentence.startswith(f"Verdict: it {diagnosis.verdict}. It is right ")
    assert "all but the nearest hidden" not in diagnosis.ablated
    assert list(diagnosis.histogram) == names
    assert len({sum(counts) for counts in diagnosis.histogram.values()}) == 1
    assert diagnosis.falls_at is None or diagnosis.falls_by.startswith("measured")
    assert len(draw_diagnosis(diagnosis, "any").axes) == 6


def test_drift_is_of_every_strength_and_choice():
    built = network("superposition")
    diagnosis = diagnose(built, condition("superposition"), 0, strings=1)
    word = next(iter(_tested("superposition")))
    seen = figures.observe(built, condition("superposition"), word)
    off = (1 - seen.trace.act.max(-1).values).cumsum(0)
    assert diagnosis.drift == pytest.approx(off.tolist(), abs=1e-4)


def _tested(memory):
    from softstack.lab.training.train import examples

    for example in examples(condition(memory), 0, "test"):
        yield [symbol for symbol in example.input if symbol != "#"]


def test_a_network_that_copies_uses_its_register():
    """What is read is all that a feedforward controller knows of the past: here it is the last symbol."""
    built = ss.StackRNN(3, controller="linear", memory=Register(3), output_size=3)
    heads = built.cell.heads
    with torch.no_grad():
        heads.weight.zero_()
        heads.bias.zero_()
        heads.bias_of("write").fill_(50)
        heads.weight[heads.rows("value"), :3] = 100 * torch.eye(3)
        heads.bias_of("value").fill_(-50)
        heads.weight[heads.rows("y"), 3:] = torch.eye(3)
    y, _ = built(torch.eye(3)[[0, 1, 1, 0]])
    assert y[1:].argmax(-1).tolist() == [0, 1, 1]


@pytest.mark.parametrize("memory", ["register", "superposition", "queue"])
def test_extraction_is_refused_in_a_sentence(memory):
    extraction = extract(network(memory, "gru"), condition(memory, "gru"), 0, strings=10)
    assert extraction.machine is None
    assert not extraction.explained
    assert extraction.sentence.startswith(f"No PDT can be read off a network with the memory '{memory}'")
    assert extraction.as_dict()["machine"] is None


def test_the_commands(softstack, run_root, untrained, tmp_path):
    path = str(untrained(condition("superposition")).path)
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
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].startswith("No PDT can be read off")
