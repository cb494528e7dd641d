"""Figures and `ss.show` draw any memory from what it declares."""

import itertools
import re

import matplotlib
import numpy as np
import pytest
import torch

import softstack as ss
from browser import READY, needs_chromium, page_data
from other_memories import Gates, Ladder, Register, condition, known, network, traced  # noqa: F401
from softstack.lab.reports import figures, trace_page
from softstack.viewer import declared, recorded

pytestmark = pytest.mark.usefixtures("known")


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
    assert drawn(Ladder(1)) == [
        ("act", "choice", "act", ("push", "pop", "no-op")),
        ("v", "vector", "pushed vector", ("1",)),
    ]
    assert drawn(ss.NoMemory(2)) == []  # what it is told has no effect
    assert [name for name, *_ in drawn(ss.NoMemory(2), buffered=True)] == ["i", "o"]


@pytest.mark.parametrize(
    ("memory", "titles", "labels"),
    [
        ("register", ["write", "value"], [[""], ["1", "2", "3"]]),
        ("ladder", ["act", "pushed vector"], [["push", "pop", "no-op"], ["1", "2", "3"]]),
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
    table = trace_page.page(built, condition(memory), seen, "any")
    assert f"<th scope=col>target</th><th scope=col>{titles[0]}</th></tr>" in table
    first = seen.trace.instructions[heads[0]][0]
    if memory == "ladder":
        assert f"<td>{('push', 'pop', 'no-op')[int(first.argmax())]} {first.max():.3f}</td></tr>" in table
    else:
        assert f"<td>{first:.3f}</td></tr>" in table


def test_numbers_outside_the_colours_are_scaled_into_them_and_the_title_says_so(monkeypatch):
    monkeypatch.setitem(ss.MEMORIES, "gates", Gates)
    built = network("gates")
    seen = figures.observe(built, condition("gates"), list("0110"))
    raw = seen.trace.raw
    raw[0] = torch.tensor([-1.0, 3.0, 0.0])
    raw[1:] = raw[1:].clamp(-0.9, 2.9)
    raw[2, 0], raw[2, 1] = float("nan"), float("inf")
    figure = figures.draw(built, condition("gates"), seen)
    titles = [axis.get_title() for axis in figure.axes[:2]]
    assert titles == ["open", "raw\n-1 to 3"]
    drawn = figure.axes[1].images[0].get_array()
    np.testing.assert_allclose(drawn[0], [0, 1, 0.25])
    assert np.ma.getmaskarray(drawn)[2].tolist() == [True, True, False]


# --- ss.show ------------------------------------------------------------------------------------------------


SENTENCES = {
    "register": lambda t, trace: f"write {trace.write[1, t]:.2f}. The register holds 1.00 in 1 cell.",
    "ladder": lambda t, trace: (
        f"act {('push', 'pop', 'no-op')[int(trace.act[1, t].argmax())]} "
        f"({100 * trace.act[1, t].max():.0f} %). The ladder holds {trace.s[1, t].sum():.2f} in "
        f"{int((trace.s[1, t] > 0).sum())} cell"
    ),
}


@pytest.fixture
def shown(tab, tmp_path):
    """Opens the page of a trace."""

    def open_(text):
        (tmp_path / "shown.html").write_text(text, encoding="utf-8")
        page = tab(tmp_path / "shown.html", width=1000)
        page.wait_for_function(READY)
        return page

    return open_


@needs_chromium
@pytest.mark.parametrize("memory", SENTENCES)
def test_show_says_what_the_memory_is(shown, memory):
    trace = traced(memory)
    page = shown(ss.show(trace, sequence=1).text)
    assert page.inner_text(".memory h3") == memory.capitalize()
    for t in range(7):
        assert SENTENCES[memory](t, trace) in page.inner_text(".words")
        page.keyboard.press("ArrowRight")


@needs_chromium
def test_heads_of_every_kind_are_drawn(shown):
    rnn = ss.StackRNN(3, controller="gru", hidden_size=4, memory=Gates(2), output_size=3)
    _, _, trace = rnn(torch.eye(3), return_trace=True)
    columns = declared.columns(trace.memory)
    assert [(c.name, c.kind, c.labels) for c in columns] == [
        ("open", "strength", ("1", "2")),
        ("raw", "scores", ("1", "2")),
    ]
    page = shown(ss.show(trace).text)
    first, second = trace.open[0].tolist()
    assert f"open {first:.2f} and {second:.2f}. The gates holds 1.00 in 1 cell." in page.inner_text(".words")
    assert page.locator(".several .gauge output").all_inner_texts() == [f"{first:.2f}", f"{second:.2f}"]
    bars = page.locator(".state:has(span:text-is('raw')) b").all()
    drawn = [float(bar.evaluate("b => b.style.transform.slice(7, -1)")) for bar in bars]
    assert drawn == pytest.approx(trace.raw[0].tolist(), abs=0.001)
    assert page.inner_text(".memory h3 small") == "front on top"


@needs_chromium
def test_a_register_is_drawn_as_a_cell_and_a_pile_with_its_last_cell_on_top(shown):
    trace = traced("register")
    page = shown(ss.show(trace).text)
    page.keyboard.press("End")
    assert page.locator(".beside .column").count() == 1
    background = page.evaluate("document.querySelector('.beside b').style.background")
    colours = [tuple(map(int, rgb)) for rgb in re.findall(r"rgb\((\d+), (\d+), (\d+)\)", background)]
    viridis = matplotlib.colormaps["viridis"]
    expected = [np.array(viridis(value)[:3]) * 255 for value in trace.V[0, 6, 0].tolist()]
    assert len(colours) == 6  # each number is a band from here to there
    np.testing.assert_allclose(colours[::2], expected, atol=6)
    trace = traced("ladder", T=12)
    page = shown(ss.show(trace).text)
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


class Shelf(Register):
    """A register with twenty places, all but the second and the last of which are empty."""

    def contents(self, state):
        V = state.value.unsqueeze(-2).expand(*state.value.shape[:-1], 20, -1)
        s = torch.zeros_like(V[..., 0])
        s[..., 1], s[..., 19] = 0.25, 1.0
        return ss.Contents(V, s)


@needs_chromium
def test_empty_cells_have_a_place_and_every_cell_its_numbers(shown):
    rnn = ss.StackRNN(3, controller="gru", hidden_size=4, memory=Shelf(2), output_size=3)
    _, _, trace = rnn(torch.eye(3), return_trace=True)
    page = shown(ss.show(trace).text)
    strengths = ["0.00", "0.25", *["0.00"] * 17, "1.00"]
    assert page.locator(".beside .column span").all_inner_texts() == strengths
    fills = page.locator(".beside b").evaluate_all("all => all.map((b) => b.style.height)")
    assert [float(fill[:-1]) / 100 for fill in fills] == [float(strength) for strength in strengths]
    first, second = trace.V[0, 0].tolist()
    assert page.locator(".beside .column").first.get_attribute("title") == f"({first:.2f}, {second:.2f})"
    boxes = [box.bounding_box() for box in page.locator(".beside .column span").all()]
    assert all(a["x"] + a["width"] <= b["x"] for a, b in itertools.pairwise(boxes))  # none over another
    assert min(box["height"] for box in boxes) >= 25  # upright, and whole
    assert boxes[-1]["x"] < page.locator(".beside").bounding_box()["x"] + 430  # in sight
    assert "The register holds 1.25 in 2 cells." in page.inner_text(".words")


@needs_chromium
def test_a_scale_that_is_not_from_0_to_1_is_said(shown):
    rnn = ss.StackRNN(3, controller="gru", hidden_size=4, memory=Gates(2), output_size=3)
    _, _, trace = rnn(torch.eye(3), return_trace=True)
    trace.raw.data[0, 0], trace.raw.data[1, 1] = -2.0, 4.5
    page = shown(ss.show(trace).text)
    groups = page.locator(".heat .labels .group > span").all_inner_texts()
    assert groups == ["open", "raw (-2.00 to 4.50)", "input", "output"]
    assert "raw (-2.00 to 4.50)" in page.locator(".heat canvas").get_attribute("aria-label")
    values = page.evaluate("softstack.page.panels[0].heat.groups[1].rows.map((row) => row.values[0])")
    assert values == pytest.approx([0, (trace.raw[0, 1].item() + 2) / 6.5], abs=1e-5)


@needs_chromium
def test_what_is_no_number_is_shown(shown):
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
    page = shown(text)
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert "write NaN." in page.inner_text(".words")
    seen = figures.observe(network(), condition(), list("01"))
    seen.trace.instructions["write"][1] = float("nan")
    assert figures.as_json(seen)["trace"]["write"][1] is None
    assert figures.as_json(seen)["trace"]["write"][0] == float(seen.trace.write[0])


def test_numbers_in_the_page_are_those_of_the_trace():
    values = torch.tensor([[0.123456789, 1.0, 0.0], [-12345.678, 1e-9, 1e20]], dtype=torch.float64)
    assert recorded.numbers(values) == [[0.123457, 1, 0], [-12345.7, 1e-9, 1e20]]
