"""ss.show: a trace of any network as the same page."""

import html
import re

import pytest
import torch

import softstack as ss
from browser import READY, needs_chromium, page_data


def traced(memory="stack", B=3, T=9, controller="gru", seed=0, state=None, buffered=False):
    generator = torch.Generator().manual_seed(seed)
    network = (ss.BufferedStackRNN if buffered else ss.StackRNN)(
        4, output_size=3, controller=controller, hidden_size=6, memory=memory, memory_size=2
    )
    for p in network.parameters():
        p.data.normal_(0, 1.0, generator=generator)
    x = torch.randn(*([B] if B else []), T, 4, generator=generator)
    _, state, trace = network(x, state, return_trace=True)
    return trace, state


def test_what_is_wrong_is_said():
    trace, _ = traced()
    with pytest.raises(ss.BadInput, match="show takes a Trace"):
        ss.show(trace.u)
    with pytest.raises(ss.BadInput, match=r"show takes a Trace, as .* gives it; got tuple"):
        ss.show((trace.u, trace))
    with pytest.raises(ss.BadInput, match="0 to 2; got 3"):
        ss.show(trace, sequence=3)
    with pytest.raises(ss.BadInput, match="9 steps of the trace; got 2"):
        ss.show(trace, ["a", "b"])
    with pytest.raises(ss.BadInput, match="outputs must name 3 features; got 1"):
        ss.show(trace, outputs=["a"])
    with pytest.raises(ss.BadInput, match="no steps"):
        ss.show(traced(T=0)[0])


def test_a_notebook_shows_the_page_in_a_frame(tmp_path):
    shown = ss.show(traced()[0])
    frame = re.fullmatch(
        r'<iframe srcdoc="(.*)" style=".*" title=".*"></iframe>', shown._repr_html_(), re.DOTALL
    )
    assert html.unescape(frame[1]) == shown.text
    shown.save(tmp_path / "shown.html")
    assert (tmp_path / "shown.html").read_text() == shown.text


def told(trace, t):
    """The sentence of what a memory is told in a step, whatever its heads are."""
    heads = trace.memory.heads
    strengths = [
        f"{name} {' and '.join(f'{value:.2f}' for value in trace.instructions[name][1, t].reshape(-1))}"
        for name, head in heads.items()
        if isinstance(head, ss.Strength)
    ]
    choices = [
        f"{name} {head.actions[int(p.argmax())]} ({100 * p.max():.0f} %)"
        for name, head in heads.items()
        if isinstance(head, ss.Choice) and (p := trace.instructions[name][1, t]) is not None
    ]
    words = ", ".join(strengths + choices)
    if trace.memory.name == "none":  # nobody obeys it
        return ""
    words = re.sub(r"^u (.*), d ", r"Pops \1, pushes ", words)
    return f" {re.sub(r'^d ', 'Pushes ', words)}." if words else ""


@needs_chromium
@pytest.mark.parametrize("memory", ss.MEMORIES)
@pytest.mark.parametrize("later", [False, True], ids=["fresh", "continued"])
def test_each_step_of_a_trace_is_shown(tab, tmp_path, memory, later):
    """In Chromium, inside a frame: strengths, what the memory holds, and names that were given."""
    trace, state = traced(memory, T=4)
    if later:
        trace, _ = traced(memory, T=4, state=state)
    names = ["apple", "pear", "plum"]
    symbols = [f"w{t}" for t in range(4)]
    shown = ss.show(trace, symbols, outputs=names, sequence=1)
    (tmp_path / "page.html").write_text(f"<!doctype html>{shown._repr_html_()}")
    page = tab(tmp_path / "page.html", width=1000)
    frame = page.frame_locator("iframe")
    frame.locator("#slider").focus()
    for t in range(4):
        said = frame.locator(".words").inner_text()
        s = trace.s[1, t]
        assert f"Step {t + 1} of 4. Input w{t}.{told(trace, t)}" in said
        if memory != "none":
            assert f"The {trace.memory.name} holds {s.sum():.2f} in {int((s > 0).sum())} cell" in said
        assert f"Says {names[int(trace.y[1, t].argmax())]} " in said
        page.keyboard.press("ArrowRight")


@needs_chromium
def test_features_are_not_taken_for_symbols(tab, tmp_path):
    """Without an output_size nothing is said, and the floor of the stack is in the frame."""
    torch.manual_seed(0)
    _, _, trace = ss.StackRNN(3, hidden_size=16, memory_size=2)(torch.randn(2, 6, 3), return_trace=True)
    shown = ss.show(trace, ["apple", *"bcdef"])
    shown.save(tmp_path / "page.html")
    page = tab(tmp_path / "page.html", width=1000, height=shown.height)
    page.wait_for_function(READY)
    assert page.locator(".output").count() == 0 and "%" not in page.inner_text("#panels")
    assert page.locator(".tape th").all_inner_texts() == ["input"]
    said = page.inner_text(".words")
    assert "Says" not in said and said.startswith("Step 1 of 6. Input apple.")
    assert page.locator(".group > span").all_inner_texts()[-1].startswith("input")
    box = page.locator(".stack").bounding_box()
    assert box["y"] + box["height"] < shown.height
    page.keyboard.press("End")
    assert page.inner_text(".words").startswith("Step 6 of 6.")
    data = page_data(ss.show(trace, outputs=list("abcdefghijklmnop")).text)
    assert data["tasks"]["0"]["alphabet"] == list("abcdefghijklmnop")
    assert page_data(ss.show(traced()[0]).text)["tasks"]["0"]["alphabet"] == ["1", "2", "3"]


def test_a_buffered_trace_shows_what_it_took_and_gave():
    def titles(shown):
        return [head["title"] for head in page_data(shown.text)["networks"][0]["heads"]]

    assert titles(ss.show(traced(buffered=True)[0])) == ["pop", "push", "pushed vector", "take", "give"]
    assert titles(ss.show(traced()[0])) == ["pop", "push", "pushed vector"]
