"""What is wrong with a task of one's own is a sentence that names the task and the member."""

import re

import pytest

from plugins.echo_task import Echo
from plugins.repeat_task import Repeat
from softstack.errors import BadInput
from softstack.lab import tasks
from softstack.lab.tasks import TASKS, checking
from softstack.lab.tasks.data import Example, encode
from softstack.lab.tasks.page import KINDS, computed
from softstack.viewer import asset


def changed(**members):
    return type("Changed", (Repeat,), members)()


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        (
            dict(inputs=["0", "1", "#"]),
            "inputs must be a tuple of strings, at least one; got ['0', '1', '#']",
        ),
        (dict(outputs=()), "outputs must be a tuple of strings, at least one; got ()"),
        (dict(alphabet=(0, 1, 2)), "alphabet must be a tuple of strings"),
        (dict(padding=None), "padding must be a string; got None"),
        (dict(loss=3), "loss must be a string; got 3"),
        (dict(loss="mean"), "'mean': did you mean 'step_mean'?"),
        (dict(padding="-"), "padding has '-', which its alphabet does not have"),
        (dict(outputs=("0", "2")), "outputs has '2', which its alphabet does not have"),
        (dict(inputs=("0", "1", "#", "a")), "inputs has 'a', which its alphabet does not have"),
        (dict(alphabet=("0", "1", "#", "1")), "alphabet has a symbol twice"),
        (
            dict(alphabet=("0", "1", "#", "New York")),
            "alphabet has the symbol 'New York': a symbol may not be empty or have a space in it, because "
            "spaces stand between symbols in files and on the command line",
        ),
        (dict(alphabet=("0", "1", "#", "a\tb")), "alphabet has the symbol 'a\\tb': a symbol may not"),
        (dict(alphabet=("0", "1", "#", "")), "alphabet has the symbol '': a symbol may not"),
        (
            dict(alphabet=("0", "1", "#", "_"), outputs=("0", "1", "_")),
            "outputs has '_', which stands for what is not scored in files",
        ),
        (dict(length=24), "length('train') must be a method; got 24"),
        (dict(length=lambda self, split: 2.5), "length('train') must be a whole number of steps; got 2.5"),
        (
            dict(length=lambda self, split: {"train": 3, "dev": 3}[split]),
            "length('test') fails (KeyError: 'test')",
        ),
        (
            dict(sample=lambda self, rng, n, split: ["01"] * n),
            "sample(rng, 3, 'train') must give a list of 3 tuples of symbols; got ['01', '01', '01']",
        ),
        (dict(sample=lambda self, rng, n, split: [("0",)]), "must give a list of 3 tuples"),
        (
            dict(sample=lambda self, rng, n, split: [("0", "x")] * n),
            "sample(rng, 3, 'train') must give strings of its inputs, ('0', '1', '#'); got ('0', 'x')",
        ),
        (dict(sample=lambda self, rng, n, split: [()] * n), "must give strings of its inputs"),
        (
            dict(example=lambda self, symbols: (symbols, symbols)),
            "example of the task 'repeat' must give an Example(input, target); got ((",
        ),
        (
            dict(example=lambda self, symbols: Example(("0",), ("0", "1"))),
            "must give one target for each symbol, None where nothing is scored; got 2 targets for 1 symbol",
        ),
        (
            dict(example=lambda self, symbols: Example(("0",), ("x",))),
            "example of the task 'repeat' gives the target 'x', which is not one of its outputs: ('0', '1')",
        ),
        (
            dict(example=lambda self, symbols: Example(("x",), ("0",))),
            "example of the task 'repeat' gives 'x', which is not one of its inputs",
        ),
        (dict(page={"kind": "repeat"}), "page must be what softstack.lab.tasks.page.computed gives"),
        (
            dict(page=computed("repeat", [2], 2)),
            "page has the kind 'repeat', which softstack does not know: give one of reversal, xor, next, "
            "machine, formula, or a script that computes it",
        ),
    ],
)
def test_each_member(members, sentence):
    with pytest.raises(BadInput, match=re.escape(sentence)) as refusal:
        checking.check(changed(**members), "the task 'repeat' of mine.py")
    assert "the task 'repeat'" in str(refusal.value)


def test_right_ones_pass():
    for task in (Repeat(), Echo(), *TASKS.values(), tasks.find("start q\nq -> q   1 : 1\nq -> q   0 : 0")):
        checking.check(task, "a task")


@pytest.mark.parametrize(
    ("example", "sentence"),
    [
        (Example(("0",), ("x",)), "gives the target 'x', which is not one of its outputs"),
        (Example(("x",), ("0",)), "gives 'x', which is not one of its inputs"),
        (Example(("0", "1"), ("0",)), "got 1 target for 2 symbols"),
        ((("0",), ("0",)), "must give an Example(input, target)"),
    ],
)
def test_what_training_meets_is_a_sentence_too(example, sentence):
    """Also of a task that was put into TASKS in Python, and of a string that was not looked at before."""
    right = Repeat().example(("0", "1"))
    with pytest.raises(BadInput, match=re.escape(sentence)):
        encode(Repeat(), [right, example])
    assert encode(Repeat(), [right]).y.tolist() == [[0, 0, 0, 1]]


def test_the_kinds_of_the_page_are_those_of_its_javascript():
    body = re.search(r"const KINDS = \{(.*?)^\};", asset("tasks.js"), re.DOTALL | re.MULTILINE)[1]
    assert tuple(re.findall(r"^  (\w+): \{", body, re.MULTILINE)) == KINDS
