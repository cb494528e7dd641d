"""How papers score networks: each metric by hand, from what networks say, and as the command prints it."""

import json
import math

import pytest
import torch

from softstack.errors import BadInput
from softstack.formal.compiler import compiled
from softstack.lab import tasks
from softstack.lab.tasks import checking
from softstack.lab.tasks.metrics import METRICS, Answers
from softstack.lab.tasks.xor import Xor
from softstack.lab.training.conditions import Condition, build
from softstack.lab.training.draws import examples
from softstack.lab.training.scores import answers, scores

# Three strings of 4, 4 and 10 symbols, of which 2, 4 and 5 are scored.
SAID = Answers(
    *(
        torch.tensor(column, dtype=torch.float64)
        for column in ([2, 1, 4], [2, 4, 5], [2, 0, 3], [1.0, 6.0, 4.0], [0.5, 2.0, 3.0], [4, 4, 10])
    )
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("symbols", 7 / 11),
        ("strings", 1 / 3),
        ("before_error", (2 / 2 + 0 / 4 + 3 / 5) / 3),
        ("lengths", ((2 / 2 + 1 / 4) / 2 + 4 / 5) / 2),
        ("nats", (11 - 5.5) / 11),
    ],
)
def test_metrics_by_hand(name, value):
    assert METRICS[name].of(SAID).item() == pytest.approx(value, abs=1e-15)


def test_how_metrics_are_shown():
    assert METRICS["strings"].text(1 / 3) == "strings right from beginning to end 33.33%"
    assert METRICS["nats"].text(0.01234) == "nats per symbol above the lower bound 0.0123"


class Says(torch.nn.Module):
    """In place of a network: 3 for what it says at each step of each string, and 0 for all else."""

    def __init__(self, said, letters):
        super().__init__()
        self.y = torch.nn.Parameter(3.0 * torch.nn.functional.one_hot(torch.tensor(said), letters))

    def forward(self, x, disturbance=None):
        return self.y[:, : x.shape[1]] + 0 * x, None


def test_what_a_network_says_of_each_string():
    """xor of 1 1 0 is 1 0 0, and of 0 1 it is 0 1."""
    task, condition = tasks.find("xor"), Condition("xor", "linear")
    strings = [task.example(tuple("110")), task.example(tuple("01"))]
    network = Says([[1, 1, 0], [1, 1, 1]], 3)  # wrong at the second symbol, and at the first
    said = answers(condition, network, strings)
    assert said.right.tolist() == [2, 1]
    assert said.scored.tolist() == [3, 2]
    assert said.before_error.tolist() == [1, 0]
    assert said.length.tolist() == [3, 2]
    assert said.bound.tolist() == [0, 0]
    right, wrong = math.log(1 + 2 * math.exp(-3)), math.log(2 + math.exp(3))
    assert said.surprise.tolist() == pytest.approx([2 * right + wrong, right + wrong], abs=1e-5)
    assert scores(task, said) == {"symbols": 3 / 5}


def test_an_exact_network_has_full_marks():
    """In every metric of shares, on the test strings of the task: compiled from its machine."""
    for name in ("anbn", "parity", "reverse_string"):
        task = tasks.find(name)
        compilation = compiled(
            tasks.machine_of(task), inputs=task.alphabet, outputs=task.alphabet, controller="lstm",
            buffered=False, length=1000,
        )  # fmt: skip
        condition = Condition(name, test_size=60)
        said = answers(condition, compilation.network, examples(condition, 0, "test"), "test")
        assert scores(task, said) == {tasks.metrics_of(task)[0]: 1.0}


def test_a_buffered_network_is_scored_as_it_reads():
    """Strings of one group, or each padded by itself: the same answers."""
    condition = Condition("xor", "linear", buffered=True)
    torch.manual_seed(0)
    network = build(condition)
    strings = [tasks.find("xor").example(tuple(w)) for w in ("1101", "0" * 20, "1")]
    together = answers(condition, network, strings)
    alone = [answers(condition, network, [string]) for string in strings]
    assert together.length.tolist() == [4, 1, 20]  # those that are padded alike come together
    assert sorted(together.right.tolist()) == sorted(x.right.item() for x in alone)


def test_evaluate_prints_the_papers_metric(softstack):
    options = ("--controller", "linear", "--max-epochs", "1", "--train-size", "20", "--test-size", "60")
    run_dir = softstack("train", "anbn", *options)[1].split()[0]
    code, out, _ = softstack("evaluate", run_dir)
    assert code == 0
    accuracy, strings = out.splitlines()
    assert accuracy.startswith("accuracy ")
    assert strings.startswith("strings right from beginning to end ")
    result = json.loads(softstack("evaluate", run_dir, "--json")[1])
    assert list(result["metrics"]) == ["strings"]
    assert strings.endswith(f" {result['metrics']['strings']:.2%}")


def test_metrics_of_ones_own_task():
    assert tasks.metrics_of(Xor()) == ("symbols",)

    class Mine(Xor):
        metrics = ("string",)

    with pytest.raises(BadInput, match="unknown metric of mine, 'string': did you mean 'strings'"):
        checking.check(Mine("mine"), "mine")
    Mine.metrics = ("nats",)
    with pytest.raises(BadInput, match=r"mine: the metric 'nats' needs a method surprisals\(strings\)"):
        checking.check(Mine("mine"), "mine")
    Mine.surprisals = lambda self, strings: [len(symbols) * math.log(2) for symbols in strings]
    checking.check(Mine("mine"), "mine")
    assert tasks.bounds_of(Mine("mine"), [("0", "1")]) == pytest.approx([2 * math.log(2)])
    assert tasks.bounds_of(Xor(), [("0", "1")]) == [0]
