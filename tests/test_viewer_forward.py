"""The page's JavaScript against the Python, in a real browser: networks, targets, samples, transducers."""

import itertools
import json
from collections import Counter

import numpy as np
import pytest
import torch

from browser import needs_chromium
from softstack.controllers import CONTROLLERS
from softstack.errors import BadInput
from softstack.formal import sampling
from softstack.formal.machines import PDTS
from softstack.lab import tasks
from softstack.lab.reports import network_page, recording
from softstack.lab.runs import store
from softstack.lab.tasks import TASKS, agreement, formula, parenthesis
from softstack.lab.tasks.data import check_symbols
from softstack.lab.training.conditions import Condition, build
from softstack.lab.training.epochs import Epoch
from softstack.lab.training.train import Trial
from softstack.memory import MEMORIES

pytestmark = needs_chromium
LENGTHS = (1, 2, 3, 7, 17, 31)
STRINGS = 3  # of each length
ALL = [  # every controller and memory, without buffers and with them, read off in both ways
    Condition("agreement", controller, memory, hidden_size=5, memory_size=3, **buffers)
    for controller, memory in itertools.product(CONTROLLERS, MEMORIES)
    for buffers in (
        {},
        {"buffered": True, "steps_per_symbol": 2},
        {"buffered": True, "discard_first": True},
    )
]
KINDS = [c for c in ALL if not recording.why_not_run(build(c))]  # test_played_back.py has the others
with pytest.MonkeyPatch.context() as patch:
    patch.setattr(tasks.page, "EXAMPLES", 1)  # a task's kind does not depend on what is recorded of it
    COMPUTED = [name for name, task in TASKS.items() if tasks.page_of(task)["kind"]]


# Large weights bring strengths near 0 and 1, and make float32 differ from float64 by far more than 1e-5, so
# there the reference runs in float64 and must agree to rounding. With smaller weights float32 agrees too.
PRECISION = {"large": (1.2, torch.float64, 1e-9), "small": (0.5, torch.float32, 1e-5)}


def random_network(condition, size):
    network = build(condition)
    generator = torch.Generator().manual_seed(KINDS.index(condition))
    for p in network.parameters():
        p.data.normal_(0, PRECISION[size][0], generator=generator)
    return network


def saved(root, condition, weights, seed=0):
    trial = Trial(condition, seed, [Epoch(1.0, 0.5)], 0.5, 0.5, weights, 0.1, 0.5)
    return store.load(store.save(root, trial))


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """A page of every kind of network, and of every task that it computes; others bring examples along."""
    root = tmp_path_factory.mktemp("runs")
    runs = [
        saved(root, condition, random_network(condition, size).state_dict(), seed)
        for seed, size in enumerate(PRECISION)
        for condition in KINDS
    ]
    runs += [saved(root, (c := Condition(name, "linear")), build(c).state_dict()) for name in COMPUTED]
    file = root / "view.html"
    file.write_text(network_page.page(runs), encoding="utf-8")
    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_function("softstack")
    yield page
    page.close()
    assert not errors


RUN = """([k, batch]) => {
  const network = softstack.page.data.networks[k], task = softstack.page.data.tasks[network.task];
  return JSON.stringify(batch.map((x) => {  // Playwright's own way of passing lists is slow
    const run = forward(network, oneHot(task.alphabet, x.map((j) => task.alphabet[j])));
    const lists = (name) => run[name].map((value) => Array.from(value));
    const s = run.u.map((_, t) => [...run.cells(t)]);
    return { x: lists("x"), y: lists("y"), v: lists("v"), r: lists("r"), h: lists("h"), s,
             output: lists("output"), u: run.u, d: run.d, i: run.i, o: run.o };
  }));
}"""


@pytest.mark.parametrize("size", PRECISION)
@pytest.mark.parametrize("condition", KINDS, ids=[c.name.rsplit("-", 1)[0] for c in KINDS])
def test_the_forward_pass_is_the_references(page, condition, size):
    """Everything that a trace holds, on 18 strings a network."""
    _, dtype, tolerance = PRECISION[size]
    network = random_network(condition, size).to(dtype)
    letters = len(tasks.find(condition.task).alphabet)
    k = list(PRECISION).index(size) * len(KINDS) + KINDS.index(condition)
    generator = torch.Generator().manual_seed(100 + k)
    for T in LENGTHS:
        symbols = torch.randint(letters, (STRINGS, T), generator=generator)
        runs = json.loads(page.evaluate(RUN, [k, symbols.tolist()]))
        x = torch.nn.functional.one_hot(symbols, letters).to(dtype)
        with torch.no_grad():
            y, _, trace = network(x, return_trace=True)
        slots = trace.s.shape[-1]
        recorded = {name: part for name, part in trace.tensors().items() if name != "V"}  # v, again and again
        for name, expected in {**recorded, "output": y}.items():
            numbers = [run[name] for run in runs]
            if name == "s":
                numbers = [[dense(cells, slots) for cells in run] for run in numbers]
            actual = torch.tensor(numbers, dtype=torch.float64).view(expected.shape)
            worst = (actual - expected.double()).abs().max().item() if expected.numel() else 0.0
            assert worst <= tolerance, f"{name} differs by {worst} at T={T}"


def dense(cells, slots):
    row = [0.0] * slots
    for slot, strength in cells:
        row[slot] = strength
    return row


def test_more_than_a_thousand_inputs_are_compared():
    assert {(c.controller, c.memory) for c in KINDS} >= set(
        itertools.product(("linear", "mlp", "rnn", "gru", "lstm"), ("stack", "queue", "none"))
    )
    assert {"reversal", "xor", "parenthesis", "formula", "agreement"} <= set(COMPUTED)
    assert len(PRECISION) * len(KINDS) * len(LENGTHS) * STRINGS > 1000


@pytest.mark.parametrize("name", COMPUTED)
def test_targets_are_the_tasks(page, name):
    """On strings of training and test, as the Python has them."""
    task = TASKS[name]
    rng = np.random.default_rng(3)
    drawn = [symbols for split in ("train", "test") for symbols in task.sample(rng, 250, split)]
    examples = page.evaluate(
        "([name, strings]) => strings.map((s) => example(softstack.page.data.tasks[name], s))",
        [name, [list(symbols) for symbols in drawn]],
    )
    for symbols, example in zip(drawn, examples, strict=True):
        assert (tuple(example["input"]), tuple(example["target"])) == task.example(symbols)


@pytest.mark.parametrize("name", ["parenthesis", "agreement", "reversal", "xor", "delayed_xor"])
def test_strings_that_leave_the_language_are_scored_as_in_python(page, name):
    """Any strings of the task's symbols, and strings of the task with one symbol changed."""
    task, rng = TASKS[name], np.random.default_rng(6)
    letters = [symbol for symbol in task.inputs if symbol != task.padding]
    strings = [[letters[k] for k in rng.integers(len(letters), size=n)] for n in range(1, 40)]
    for word in map(list, task.sample(rng, 150, "train")):
        word[rng.integers(len(word))] = letters[rng.integers(len(letters))]
        strings.append(word)
    examples = page.evaluate(
        "([name, strings]) => strings.map((s) => example(softstack.page.data.tasks[name], s))",
        [name, strings],
    )
    left = 0
    for symbols, example in zip(strings, examples, strict=True):
        typed = tasks.typed(task, tuple(symbols))
        assert (tuple(example["input"]), tuple(example["target"])) == typed.example
        assert example["left"] == typed.left
        left += typed.left is not None
    assert (left > 100) == (name in ("parenthesis", "agreement"))


@pytest.mark.parametrize(
    ("name", "text"),
    [("reversal", "# #"), ("reversal", "1 # 0"), ("formula", "T &"), ("xor", "1 2"), ("agreement", "")],
)
def test_what_a_task_cannot_score_is_refused_with_a_sentence(page, name, text):
    said = page.evaluate(
        """([name, text]) => {
          const task = softstack.page.data.tasks[name];
          try { example(task, symbolsOf(task, text)); return null; } catch (error) { return error.message; }
        }""",
        [name, text],
    )
    assert said
    with pytest.raises(BadInput):
        checked_example(TASKS[name], tuple(text.split()))


def checked_example(task, symbols):
    check_symbols(task, symbols)
    return task.example(symbols)


def test_symbols_can_be_typed_without_spaces(page):
    read = "([name, text]) => symbolsOf(softstack.page.data.tasks[name], text)"
    assert page.evaluate(read, ["reversal", "1001 1#"]) == list("10011#")
    assert page.evaluate(read, ["agreement", "the lobstersin"]) == ["the", "lobsters", "in"]


@pytest.mark.parametrize(
    ("name", "grammar", "depth"),
    [
        ("parenthesis", parenthesis.GRAMMAR, 4),
        ("formula", formula.GRAMMAR, 3),
        ("agreement", agreement.GRAMMAR, 8),
    ],
)
def test_fresh_strings_are_uniform_over_derivations(page, name, grammar, depth):
    """As often as their numbers of derivations say: Pearson's chi-squared within five standard deviations."""
    n = 20000
    strings = page.evaluate(
        """([name, depth, n]) => {
          const random = randomFrom(5), task = softstack.page.data.tasks[name];
          return Array.from({ length: n }, () => sample(task, random, depth).join(" "));
        }""",
        [name, depth, n],
    )
    counts = Counter(strings)
    expected = {
        " ".join(w): sampling.derivations(grammar, w, depth)
        for w in sampling.enumerate_strings(grammar, depth)
    }
    assert set(counts) <= set(expected)
    total = sum(expected.values())
    chi = sum((counts[w] - n * k / total) ** 2 / (n * k / total) for w, k in expected.items())
    freedom = len(expected) - 1
    assert freedom > 5
    assert abs(chi - freedom) < 5 * (2 * freedom) ** 0.5


@pytest.mark.parametrize("name", PDTS)
def test_transducers_run_as_in_python(page, name):
    """State, stack and moves after every number of symbols, on strings that fit and that do not."""
    machine = PDTS[name]
    rng = np.random.default_rng(4)
    strings = [[machine.alphabet[k] for k in rng.integers(len(machine.alphabet), size=n)] for n in range(60)]
    if name in TASKS:
        strings += [list(TASKS[name].example(w).input) for w in TASKS[name].sample(rng, 40, "train")]
    found = page.evaluate(
        """([pdt, strings]) => strings.map((symbols) => configurations(pdt, symbols).map((here) => {
          const stack = [];
          for (let cell = here.stack; cell; cell = cell.below) stack.unshift(cell.symbol);
          return [here.state, stack, here.moves.map(ruleText)];
        }))""",
        [network_page.transducer(machine), strings],
    )
    for symbols, path in zip(strings, found, strict=True):
        steps = list(machine.steps(symbols))
        for position, (state, stack, moves) in enumerate(path):
            here = [c for c in steps if c.position == position]
            assert (state, tuple(stack)) == (here[-1].state, here[-1].stack)
            assert len(moves) == sum(c.rule is not None for c in here)
        assert len(path) == steps[-1].position + 1


def test_the_page_of_every_kind_is_small(page):
    assert len(page.content()) < 1_000_000
    assert json.loads(page.evaluate("document.getElementById('data').textContent"))["networks"]
