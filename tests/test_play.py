"""The page to play with, in a real browser: its numbers are the reference's, and all can be reached."""

import re
from pathlib import Path

import pytest
import torch

import softstack as ss
from browser import needs_chromium
from softstack import viewer
from softstack.memory.items import above, before, seen
from softstack.viewer import asset

pytestmark = needs_chromium
KEPT = "(({ kind, size, steps, at }) => [kind, size, steps, at])(softstack.page)"
EXAMPLE = "memory=stack&size=3&steps=0,0.8,1,0,0;0.1,0.5,0,1,0;0.9,0.9,0,0,1"


@pytest.fixture
def opened(tab, tmp_path):
    file = tmp_path / "play.html"
    file.write_text(viewer.play(), encoding="utf-8")
    return lambda fragment="", **kind: tab(file, f"#{fragment}" if fragment else "", **kind)


def text(page, selector):
    return [re.sub(r"\s+", " ", part).strip() for part in page.locator(selector).all_inner_texts()]


@pytest.mark.parametrize("kind", ["stack", "queue"])
def test_every_number_is_the_references(opened, kind):
    """Strengths, left-overs, what is read of each item and in all, on sequences with ties and without."""
    generator = torch.Generator().manual_seed(3)
    sequences = []
    for n in range(40):
        numbers = torch.rand(12, 5, generator=generator, dtype=torch.float64)
        sequences.append(numbers if n % 2 else (4 * numbers).round() / 4)  # quarters: they tie often
    steps = [[{"u": u, "d": d, "v": v} for u, d, *v in sequence.tolist()] for sequence in sequences]
    page = opened()
    runs = page.evaluate("([kind, all]) => all.map((steps) => paperRun(kind, steps))", [kind, steps])
    memory, ahead = (ss.Stack(3), above) if kind == "stack" else (ss.Queue(3), before)
    for sequence, states in zip(sequences, runs, strict=True):
        state = memory.init(dtype=torch.float64)
        for t, (numbers, is_) in enumerate(zip(sequence, states[1:], strict=True), 1):
            u, d, v = numbers[0], numbers[1], numbers[2:]
            left = torch.relu(u - ahead(state.s))
            state, r = memory.step(state, ss.Instructions(v, u, d))
            rho = torch.relu(1 - ahead(state.s))
            expected = {
                "left": left, "s": state.s, "V": state.V, "rho": rho, "w": seen(state.s, ahead), "r": r
            }  # fmt: skip
            for name, values in expected.items():
                drawn = torch.tensor(is_[name], dtype=torch.float64).reshape(values.shape)
                torch.testing.assert_close(drawn, values, rtol=0, atol=1e-12, msg=f"{name} at step {t}")


def test_the_worked_example_is_one_click_away(opened):
    """Grefenstette et al.: 0.8 v1; then 0.5 v2 + 0.5 v1; then 0.9 v3 + 0 v2 + 0.1 v1."""
    page = opened()
    page.click("#example")
    reads = [re.findall(r"\((.*?)\)", line)[1] for line in text(page, "#steps tr")]
    assert reads == ["0.8, 0, 0", "0.5, 0.5, 0", "0.1, 0, 0.9"]
    page.click("#steps tr:nth-child(3) button")
    assert text(page, "#numbers .operation:nth-child(1) > p") == [
        "u3[2] = u3 = 0.9", "s3[2] = ReLU(0.5 − 0.9) = 0",
        "u3[1] = ReLU(0.9 − 0.5) = 0.4", "s3[1] = ReLU(0.7 − 0.4) = 0.3",
    ]  # fmt: skip
    assert text(page, "#numbers .operation:nth-child(2) > p") == [
        "s3[3] = d3 = 0.9", "V3[3] = v3 = (0, 0, 1)"
    ]  # fmt: skip
    assert text(page, "#numbers .operation:nth-child(3) > p") == [
        "ρ3[3] = 1min(0.9, 1) = 0.9",
        "ρ3[2] = ReLU(1 − 0.9) = 0.1min(0, 0.1) = 0",
        "ρ3[1] = ReLU(0.1 − 0) = 0.1min(0.3, 0.1) = 0.1",
        "r3 = 0.9 · V3[3] + 0 · V3[2] + 0.1 · V3[1]",
        "r3 = (0.1, 0, 0.9)",
    ]
    page.click("text=Queue")
    assert text(page, "#numbers h3") == ["Dequeue", "Enqueue", "Read"]
    dequeued = text(page, "#numbers .operation:nth-child(1) > p")
    assert dequeued[:2] == ["ι3[1] = u3 = 0.9", "s3[1] = ReLU(0.7 − 0.9) = 0"]
    page.click("#undo")
    page.click("#undo")
    assert page.locator("#steps tr").count() == 0  # as it was before


def test_cells_are_as_high_as_they_are_strong_and_what_is_popped_is_hatched(opened):
    page = opened(EXAMPLE + "&step=3", reduced_motion="reduce")
    unit = page.evaluate("LARGE_UNIT")

    def heights(selector):
        boxes = [e.bounding_box() for e in page.locator(selector).all()]
        return sorted(round(box["height"] / unit, 2) for box in boxes if box)

    assert heights("#before .cell") == [0.5, 0.7]
    assert heights("#before .cell u") == [0.4, 0.5]
    assert heights("#after .cell") == [0.3, 0.9]
    assert heights("#after .cell.pushed") == [0.9]
    assert heights("#after .bracket") == [1.0]


def test_the_keyboard_does_everything(opened):
    page = opened()
    for key in ("d", "D", "D", "Enter", "u", "D", "D", "D", "D", "D", "Enter", "Enter"):
        page.keyboard.press(key)
    steps = page.evaluate("softstack.page.steps")
    assert steps == [
        {"u": 0, "d": 0.8, "v": [1, 0, 0]},
        {"u": 0.1, "d": 0.5, "v": [0, 1, 0]},
        {"u": 0, "d": 1, "v": [0, 0, 1]},
    ]
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#next") == "Step 3 of 3"
    page.keyboard.press("v")
    assert page.evaluate("softstack.page.steps[2].v") == [1, 0, 0]
    page.keyboard.press("z")
    assert page.evaluate("softstack.page.steps[2].v") == [0, 0, 1]
    page.keyboard.press("q")
    assert page.locator("input[value=queue]").is_checked()
    page.keyboard.press("e")
    kind, size, steps, at = page.evaluate(KEPT)
    assert (kind, size, len(steps), at) == ("stack", 3, 3, 0)
    page.keyboard.press("End")
    assert page.inner_text("#next") == "Step 4, not made yet"
    page.keyboard.press("n")
    assert page.locator("#none").is_visible()
    for _ in range(9):
        page.keyboard.press("z")
    assert page.evaluate("softstack.page.steps.length") == 0
    assert page.locator("#undo").is_disabled()
    page.focus("#u")  # a slider keeps its own keys
    page.keyboard.press("ArrowRight")
    assert page.evaluate("softstack.page.draft.u") == 0.05
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {"size", "example", "clear", "copy", "u", "d", "v1", "v2", "v3", "make"} <= reached


def test_sliders_and_fields_show_what_the_step_would_do(opened):
    page = opened()
    page.locator("#u").fill("0.3")
    page.locator("#d").fill("0.55")
    page.locator(".knob:has(#v2) input[type=number]").fill("0.25")
    page.keyboard.press("Tab")
    assert page.inner_text("#words") == (
        "Step 1, not made yet: pops 0.3, pushes 0.55, then holds 0.55 and reads (0.55, 0.138, 0)."
    )
    page.locator(".knob:has(#d) input[type=number]").fill("7")  # as much as there can be
    page.keyboard.press("Enter")
    assert page.evaluate("softstack.page.steps") == [{"u": 0.3, "d": 1, "v": [1, 0.25, 0]}]
    page.locator(".knob:has(#d) input[type=number]").fill("")
    page.keyboard.press("Tab")
    assert page.locator(".knob:has(#d) input[type=number]").input_value() == "1"


def test_a_step_that_was_made_can_be_changed_and_what_follows_with_it(opened):
    page = opened(EXAMPLE + "&step=1")
    for value in (0.6, 0.4, 0.2):  # one drag, one change
        page.evaluate("(value) => { d.value = value; d.dispatchEvent(new Event('input')); }", value)
    page.evaluate("d.dispatchEvent(new Event('change'))")
    assert page.inner_text("#steps tr:nth-child(2) td:nth-child(5)") == "(0.1, 0.5, 0)"
    page.click("#undo")
    assert page.evaluate("softstack.page.steps[0].d") == 0.8


def test_a_link_holds_the_sequence(opened):
    page = opened()
    page.keyboard.press("e")
    page.click("text=Queue")
    page.locator("#u").fill("0.35")
    page.click("#steps tr:nth-child(2) button")
    page.wait_for_function("location.hash.includes('step=2')")
    kept = page.evaluate(KEPT)
    assert kept[0] == "queue" and kept[2][0]["u"] == 0.35
    other = opened(page.url.split("#")[1])
    assert other.evaluate(KEPT) == kept
    assert other.inner_text("#numbers") == page.inner_text("#numbers")
    page.click("#copy")
    page.wait_for_function("copied.textContent || !link.hidden")
    assert page.input_value("#link") == page.url


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ("memory=heap", "The link names the memory “heap”"),
        ("memory=<img src=x onerror=alert(1)>", "The link names the memory “<img src=x onerror=alert(1)>”"),
        ("size=9", "1 to 6 numbers"),
        ("steps=0,1,1,0,0;0,2,1,0,0", "Step 2 of the link must be 5 numbers from 0 to 1"),
        ("steps=0,1", "Step 1 of the link must be 5 numbers"),
        ("steps=0,,1,0,0", "Step 1 of the link must be 5 numbers"),
        ("steps=" + ";".join(["0,1,1,0,0"] * 201), "201 steps: 200 at most"),
        ("memory=constructor", "The link names the memory “constructor”"),
    ],
)
def test_a_link_that_cannot_be_read_is_said_and_nothing_runs(opened, link, sentence):
    page = opened(link)
    assert sentence in page.inner_text("#error")
    assert page.evaluate("softstack.page.steps.length") == 0
    assert page.inner_text("#next") == "Step 1, not made yet"


@pytest.mark.parametrize(("width", "scheme"), [(320, "dark"), (390, "light"), (768, "light"), (1280, "dark")])
def test_it_fits_any_width(opened, width, scheme):
    page = opened("memory=queue&size=6&steps=" + ";".join(["0.1,0.35,1,0.25,0,0.333,1,0"] * 20), width=width,
                  color_scheme=scheme)  # fmt: skip
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width <= 390:  # the picture and what makes a step are on the first screen of a phone
        page.evaluate("document.getElementById('picture').scrollIntoView()")
        box = page.locator("#make").bounding_box()
        assert 0 <= box["y"] < 900 and box["height"] >= 40
        assert page.locator("#after .stack").is_visible()


def test_a_queue_has_the_words_of_a_queue(opened):
    """And cells are as wide before a step as after it."""
    page = opened("memory=queue&size=3&steps=0,0.8,1,0,0;0.1,0.5,0,1,0&step=2", reduced_motion="reduce")
    assert text(page, "h1") == ["A queue in your hands"] and "queue" in page.title()
    assert text(page, ".knob label")[:2] == ["dequeue u", "enqueue d"]
    assert text(page, "#sequence th")[1:4] == ["dequeue u", "enqueue d", "enqueued v"]
    said = "Step 2: dequeues 0.1, enqueues 0.5, then holds 1.2 and reads (0.7, 0.3, 0)."
    assert text(page, "#words") == [said]
    assert not re.search(r"\b(pop|push)", page.inner_text("main") + page.inner_text("#top"), re.IGNORECASE)
    widths = {cell.bounding_box()["width"] for cell in page.locator("#picture .cell i").all()}
    assert len(widths) == 1
    page.keyboard.press("s")
    assert text(page, ".knob label")[:2] == ["pop u", "push d"]
    assert text(page, "h1") == ["A stack in your hands"]


def test_every_control_has_a_name(opened):
    page = opened(EXAMPLE)
    for control in page.locator("button, select, input").all():
        name = control.evaluate(
            "e => e.getAttribute('aria-label') || e.labels?.[0]?.textContent || e.textContent"
        )
        assert name.strip(), control.evaluate("e => e.outerHTML")


def test_it_is_one_small_file_that_fetches_nothing(softstack):
    code, out, _ = softstack("play", "--no-open")
    assert (code, out) == (0, "Written: play.html\n")
    assert Path("play.html").stat().st_size < 100_000
    parts = "".join(asset(name) for name in (*viewer.PLAY, "play.html", "play.css"))
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|fetch\(|innerHTML", parts)
    assert softstack("play", "--out", "play.txt")[0] == 2
