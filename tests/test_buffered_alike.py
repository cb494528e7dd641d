"""What a buffered network says of a string is the same in `trace`, in `evaluate` and in the page."""

import html
import itertools
import json
import re

import matplotlib
import pytest
import torch
from matplotlib.colors import to_hex

from browser import needs_chromium
from softstack.lab.reports import figures, network_page, trace_page
from softstack.lab.runs import store
from softstack.lab.tasks.data import write_tsv
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import encoded, padded_alike
from softstack.lab.training.train import train

REVERSAL = Condition("reversal", "linear", buffered=True)
STRINGS = ["".join(bits) for n in range(1, 8) for bits in itertools.product("01", repeat=n)]
LONGER = "0110" * 5  # longer than those of the training


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A network that can tell how far a string is padded: without it, it says something else of many."""
    return store.load(store.save(tmp_path_factory.mktemp("runs"), train(REVERSAL, [5])[0]))


@pytest.fixture(scope="module")
def seen(run):
    network = store.network(run)
    return {word: figures.observe(network, REVERSAL, list(word)) for word in [*STRINGS, LONGER]}


def said_as_scored(run, words, seen):
    """What the network says where `evaluate --data` scores it."""
    network, said = store.network(run), {}
    for group in padded_alike(REVERSAL, [seen[word].example for word in words]):
        data = encoded(REVERSAL, group)
        with torch.no_grad():
            y, _ = network(torch.eye(3)[data.x])
        for example, symbols in zip(group, y.argmax(-1).tolist(), strict=True):
            word = "".join(example.input).rstrip("#")
            said[word] = tuple("01#"[k] for k in symbols[: len(example.input)])
    return said


def test_trace_and_evaluate_agree_on_every_string(run, seen):
    words = [*STRINGS, LONGER]
    assert said_as_scored(run, words, seen) == {word: seen[word].predicted for word in words}
    unpadded = 0
    network = store.network(run)
    for word in STRINGS:
        symbols = seen[word].example.input
        with torch.no_grad():
            y, _ = network(torch.eye(3)[["01#".index(symbol) for symbol in symbols]])
        unpadded += tuple("01#"[k] for k in y.argmax(-1).tolist())[: len(symbols)] != seen[word].predicted
    assert unpadded > 5  # so the padding matters


def test_the_commands_print_the_same(softstack, run, seen, tmp_path):
    """A long string in a file does not change what is said of a short one."""
    word = "011110"
    _, out, _ = softstack("trace", str(run.path), " ".join(word), "--out", "t.json")
    assert f"predicted  {' '.join(seen[word].predicted)}\n" in out
    predicted, target = seen[word].predicted, seen[word].example.target
    right = sum(a == b for a, b in zip(predicted, target, strict=True))
    counts = []
    for words in ([word], [word, LONGER], [LONGER]):
        with open("mine.tsv", "w") as file:
            write_tsv(file, [seen[w].example for w in words])
        counts.append(json.loads(softstack("evaluate", str(run.path), "--data", "mine.tsv", "--json")[1]))
    assert (counts[0]["right"], counts[0]["scored"]) == (right, len(word))
    assert counts[1]["right"] == counts[0]["right"] + counts[2]["right"]
    assert counts[1]["accuracy"] == counts[1]["right"] / counts[1]["scored"]
    recorded = json.loads((tmp_path / "t.json").read_text())
    assert recorded["fed"] == list(word) + ["#"] * 18
    assert recorded["predicted"] == list(predicted)


@needs_chromium
def test_the_page_agrees_with_both(tab, run, seen, tmp_path):
    (tmp_path / "view.html").write_text(network_page.page([run]), encoding="utf-8")
    page = tab(tmp_path / "view.html")
    page.wait_for_function("softstack")
    said = page.evaluate(
        """(words) => {
          const { networks, tasks } = softstack.page.data, task = tasks.reversal;
          return words.map((word) => {
            const { example, run } = started(networks[0], task, [...word]);
            return example.input.map((_, j) => task.alphabet[largest(run.output[j])]);
          });
        }""",
        [*STRINGS, LONGER],
    )
    assert dict(zip([*STRINGS, LONGER], map(tuple, said), strict=True)) == {
        word: observed.predicted for word, observed in seen.items()
    }


def test_outputs_stand_beside_the_steps_at_which_they_were_whole(run, seen):
    """Held to a literal count of the strengths that were given, in the table and in the figure."""
    observed = seen["011110"]
    given, whole = 0.0, []
    for t, o in enumerate(observed.trace.o.tolist()):
        given += o
        if given >= len(whole) + 1 - 1e-6:
            whole.append(t)
    count = len(observed.predicted)
    assert observed.made_at == tuple((whole + [None] * count)[:count])
    network = store.network(run)
    figure = figures.draw(network, REVERSAL, observed, "a title")
    read_off = figure.axes[-2].images[0].get_array()
    for j, t in enumerate(whole[:count]):
        torch.testing.assert_close(torch.tensor(read_off[t]), observed.output[j])
    assert {t for t in range(24) if not read_off.mask[t].all()} == set(whole[:count])
    text = trace_page.page(network, REVERSAL, observed, "a title")
    colours = re.findall(r'<i(?: style="background:(#\w{6})")?></i>', text)
    k = len(read_off[0])
    in_page = torch.tensor([bool(colour) for colour in colours[-24 * k :]]).reshape(24, k)
    assert {t for t in range(24) if in_page[t].all()} == set(whole[:count])
    assert colours[0] == to_hex(matplotlib.colormaps["viridis"](observed.trace.u[0].item()))
    lines = [
        [html.unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", line)]
        for line in re.findall(r"<tr>(<td.*?)</tr>", text)
    ]
    assert [line[0] for line in lines[:24]] == [str(t + 1) for t in range(24)]
    says = {int(line[0]) - 1: (line[2], line[3]) for line in lines[:24] if line[2]}
    assert says == {
        t: (observed.predicted[j], observed.example.target[j] or "_") for j, t in enumerate(whole[:count])
    }
    assert lines[0][4] == f"{observed.trace.u[0]:.3f}"


@needs_chromium
def test_the_page_of_a_trace_fits_a_phone_and_a_desk(tab, run, seen, tmp_path):
    network = store.network(run)
    (tmp_path / "trace.html").write_text(trace_page.page(network, REVERSAL, seen[LONGER], "a title"))
    for width in (390, 1280):
        page = tab(tmp_path / "trace.html", width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("table.steps tbody tr").count() >= 48
        for part in (".run", ".wide"):  # neither the drawing nor the table scrolls
            assert page.evaluate(f"(e => e.scrollWidth <= e.clientWidth)(document.querySelector('{part}'))")


def test_an_output_that_was_never_whole_is_told_apart():
    """With the first thrown away, as in the paper, as many steps as symbols cannot be enough."""
    o = torch.tensor([1.0, 0.5, 0.5, 1.0, 0.25])
    assert figures.steps_of_outputs(o, 5, discard_first=False) == (0, 2, 3, None, None)
    assert figures.steps_of_outputs(o, 4, discard_first=True) == (2, 3, None, None)
    assert figures.steps_of_outputs(torch.ones(3), 3, discard_first=False) == (0, 1, 2)
    thirds = torch.full((9,), 1 / 3)
    assert figures.steps_of_outputs(thirds, 3, discard_first=False) == (2, 5, 8)
