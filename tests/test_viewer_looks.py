"""How the page looks, in a real browser: colours, heights, widths, contrast and speed."""

import re
from io import BytesIO
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch
from PIL import Image

from browser import REVERSAL, XOR, needs_chromium, row
from softstack import viewer
from softstack.lab.reports import figures, network_page
from softstack.lab.runs import store
from softstack.lab.training.conditions import Condition

pytestmark = needs_chromium


def test_the_heat_map_is_the_trace_in_the_colours_of_matplotlib(opened, reverser):
    """A screenshot's pixels at the middle of each cell, against viridis of the reference's values."""
    page = opened([reverser], "#input=1+0+0+1+1+1")
    seen = figures.observe(store.network(reverser), REVERSAL, list("100111"))
    page.evaluate("document.querySelector('.cursor').style.display = 'none'")
    picture = np.asarray(Image.open(BytesIO(page.locator(".heat canvas").screenshot())).convert("RGB")) / 255
    step, top, height, gap = page.evaluate(
        "(({ step, top }) => [step, top, HEAT.row, HEAT.gap])(softstack.page.panels[0].heat.size)"
    )
    trace = seen.trace
    groups = [trace.u.unsqueeze(-1), trace.d.unsqueeze(-1), trace.v, trace.x, seen.output]
    viridis = matplotlib.colormaps["viridis"]
    y = top
    for values in groups:  # (T, rows)
        for column in values.T:
            for t, value in enumerate(column.tolist()):
                pixel = picture[y + height // 2, int((t + 0.5) * step)]
                assert pixel == pytest.approx(viridis(value)[:3], abs=0.04)
            y += height
        y += gap


def inked(page, top, bottom):
    """Whether anything is drawn at each step, between two heights of the heat map."""
    return page.evaluate(
        """([top, bottom]) => {
          const { canvas, size, steps } = softstack.page.panels[0].heat, pen = canvas.getContext("2d");
          return Array.from({ length: steps }, (_, t) => {
            const place = pen.getImageData(t * size.step, top, size.step - 1, bottom - top).data;
            return place.some((value, k) => k % 4 === 3 && value > 128);
          });
        }""",
        [top, bottom],
    )


def test_the_heat_map_has_a_number_and_a_symbol_over_each_step(opened, untrained):
    """Words too, which stand upright where they are wider than a step."""
    run = untrained(Condition("agreement", "linear", "stack"))
    words = ["the", "lobsters", "that", "the", "lobster", "has", "devoured", "in", "the", "lobster", "have"]
    for width, apart in ((1280, 1), (390, 2)):
        page = opened([run], f"#input={'+'.join(words)}", width=width)
        top = page.evaluate("softstack.page.panels[0].heat.size.top")
        numbers = page.evaluate("HEAT.numbers")
        assert top - numbers > 50  # room for `devoured`
        assert inked(page, numbers, top - 2) == [True] * len(words)
        shown = [n for n, drawn in enumerate(inked(page, 0, numbers - 2), 1) if drawn]
        assert [n for n in shown if n % apart == 0] == [n for n in range(1, 12) if n % apart == 0]


def test_words_over_a_long_heat_map_stay_and_scroll(opened, untrained):
    words = ["the", "lobsters", "that", "the", "lobster", "in", "the", "lobsters", "has", "devoured", "have"]
    page = opened([untrained(Condition("agreement", "linear", "stack"))], width=390)
    page.fill("#input", " ".join(words * 4))
    top, numbers = page.evaluate("[softstack.page.panels[0].heat.size.top, HEAT.numbers]")
    assert inked(page, numbers, top - 2) == [True] * 44
    assert "of 44: scroll for the others" in page.inner_text(".scrolls")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_what_a_network_without_a_memory_says_to_it_is_not_shown(opened, untrained):
    """Nobody obeys it. With buffers there are those."""
    page = opened([untrained(Condition("reversal", "lstm", "none"))], "#input=1+0")
    assert page.locator(".gauge, .swatch, .stack").count() == 0
    assert page.inner_text(".memory .caption") == "Nothing is pushed, popped or read."
    assert page.inner_text(".words").startswith("Step 1 of 4. Input 1. Says ")
    assert page.locator(".group > span").all_inner_texts() == ["input", "output"]
    page = opened([untrained(Condition("xor", "linear", "none", buffered=True, steps_per_symbol=2))])
    assert page.locator(".gauge > span:first-child").all_inner_texts() == ["take", "give"]


def test_a_stack_that_holds_little_takes_little_room(opened, reverser):
    page = opened([reverser], "#input=1", width=390)
    low = page.locator(".stack").bounding_box()["height"]
    page.fill("#input", "1 0 0 1 1 1 0 1")
    assert low < 120 < page.locator(".stack").bounding_box()["height"] <= 264


def test_a_heat_map_that_does_not_fit_says_that_it_scrolls(opened, reverser):
    page = opened([reverser], "#input=" + "+".join("1101" * 30), width=390)
    sign = page.inner_text(".scrolls")
    first, last, steps = map(int, re.findall(r"\d+", sign))
    assert (first, steps) == (1, 240) and 60 < last < 120
    assert "scroll for the others" in sign
    page.keyboard.press("End")
    page.wait_for_function("document.querySelector('.scrolls').textContent.includes('to 240 of 240')")
    assert page.evaluate("document.querySelector('.heat').className") == "heat before"
    page.fill("#input", "1 0 1")
    assert page.inner_text(".scrolls") == ""


def test_cells_are_as_high_as_they_are_strong(opened, reverser):
    page = opened([reverser], "#input=1+0+0+1+1+1&step=8", reduced_motion="reduce")
    seen = figures.observe(store.network(reverser), REVERSAL, list("100111"))
    unit = page.evaluate("softstack.page.panels[0].memory.view.unit")
    heights = sorted(box.bounding_box()["height"] / unit for box in page.locator(".stack .cell").all())
    strengths = [s for s in sorted(seen.trace.s[7].tolist()) if s * unit >= 0.6]
    assert heights == pytest.approx(strengths, abs=0.01)
    bracket = page.locator(".bracket").bounding_box()["height"]
    assert bracket == pytest.approx(unit * min(1, sum(strengths)), abs=1)


def test_a_buffered_network_shows_its_buffers(opened, untrained):
    """Against the reference on the string padded as in training: what is left in the input buffer, output."""
    run = untrained(XOR)
    page = opened([run], "#input=1+1+0+1&step=9")
    letters = torch.eye(3)[[1, 1, 0, 1] + [2] * 8]
    with torch.no_grad():
        y, _, trace = store.network(run)(letters, return_trace=True)
    taken = float(trace.i[:8].sum())
    left = [
        float(e.evaluate("e => e.style.getPropertyValue('--left')")[:-1]) / 100
        for e in page.locator(".tape td.buffered").all()
    ]
    assert left == pytest.approx([min(1, max(0, j + 1 - taken)) for j in range(12)], abs=0.001)
    page.keyboard.press("End")
    assert row(page, "says")[:4] == ["01_"[k] for k in y[:4].argmax(-1).tolist()]
    assert page.locator(".buffer .item").count() == 24
    assert page.locator(".buffer .unit.thrown").count() == 1


def test_an_lstms_state_is_drawn(opened, untrained):
    """Its hidden state and its cell, bar by bar, against the reference."""
    condition = Condition("reversal", "lstm", "stack")
    run = untrained(condition)
    page = opened([run], "#input=1+0&step=3")
    network = store.network(run)
    with torch.no_grad():
        _, state = network(torch.eye(3)[[1, 0, 2]])
    for name, values in zip(("state", "cell"), state.h, strict=True):
        bars = page.locator(f".controller .state:has(span:text-is('{name}')) b").all()
        drawn = [float(bar.evaluate("b => b.style.transform.slice(7, -1)")) for bar in bars]
        assert drawn == pytest.approx(values.tolist(), abs=0.001)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_it_fits_any_width(opened, reverser, untrained, width, scheme):
    page = opened([reverser, untrained(REVERSAL, 5)], width=width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    picture = np.asarray(Image.open(BytesIO(page.screenshot())).convert("L"))
    assert (np.median(picture) < 60) == (scheme == "dark")


def test_text_stands_out_in_both_schemes():
    """Every pair of text and background in the style sheet has the contrast that WCAG's AA asks for."""

    def luminance(colour):
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    schemes = re.findall(r":root \{(.*?)\}", viewer.asset("style.css"), re.DOTALL)
    assert len(schemes) == 2
    for scheme in schemes:
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", scheme))
        pairs = [(text, ground) for text in ("ink", "soft", "accent") for ground in ("paper", "card")]
        pairs += [
            ("right", "right-fill"),
            ("wrong", "wrong-fill"),
            ("ink", "head-fill"),
            ("right", "card"),
            ("wrong", "card"),
        ]
        for text, ground in pairs:
            a, b = sorted((luminance(colours[text]), luminance(colours[ground])))
            assert (b + 0.05) / (a + 0.05) >= 4.5, (text, ground)


def test_a_step_costs_no_more_at_a_thousand_symbols(opened, reverser):
    """The page has about as many parts as at a hundred symbols, and a step changes as many of them. How long
    that takes is for `tools/time_page.py` to say."""
    counts = []
    for length in (100, 1000):
        symbols = "+".join("01"[k] for k in np.random.default_rng(0).integers(2, size=length))
        page = opened([reverser], f"#input={symbols}")
        assert page.evaluate("softstack.page.steps") == 2 * length
        counted = page.evaluate(
            """(first) => {
              const watcher = new MutationObserver(() => {});
              const all = { subtree: true, childList: true, attributes: true, characterData: true };
              watcher.observe(document, all);
              const changes = Array.from({ length: 50 }, (_, k) => {
                softstack.go(first + k);
                return watcher.takeRecords().length;
              });
              return [Math.max(...changes), document.querySelectorAll("*").length];
            }""",
            length - 25,
        )
        counts.append(counted)
    (changes, parts), (changes_of_long, parts_of_long) = counts
    assert 0 < changes_of_long < 1.1 * changes
    assert parts_of_long < 1.1 * parts


def test_pages_of_the_papers_models_are_small(reverser, untrained):
    largest = Condition("agreement", "lstm", "stack", memory_size=6)
    assert len(network_page.page([reverser, untrained(largest), untrained(XOR)]).encode()) < 200_000


def test_nothing_in_the_page_is_fetched():
    text = "".join(viewer.asset(name) for name in (*viewer.SCRIPTS, "style.css", "page.html"))
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|fetch\(|XMLHttpRequest|innerHTML", text)
    assert Path(viewer.__file__).with_name("page.html").is_file()
