"""The tasks: worked examples, distributions, exact transducers, and files of examples."""

import io
from statistics import fmean

import numpy as np
import pytest

from softstack.errors import BadInput
from softstack.formal.machines import PDTS
from softstack.formal.running import transduced
from softstack.lab import tasks
from softstack.lab.tasks import TASKS, draw
from softstack.lab.tasks.data import Example, encode, read_tsv, write_tsv
from softstack.lab.tasks.reversal import Reversal
from softstack.lab.tasks.xor import Xor

every_task = pytest.mark.parametrize("name", TASKS)


@pytest.mark.parametrize(
    ("name", "symbols", "fed", "target"),
    [
        ("reversal", "1 0 0 1 1 1", "1 0 0 1 1 1 # # # # # #", "_ _ _ _ _ _ 1 1 1 0 0 1"),
        ("reversal", "1 0 # #", "1 0 # #", "_ _ 0 1"),
        ("reversal", "1 0 # # #", "1 0 # # #", "_ _ 0 1 _"),
        ("selective_reversal", "2 0 3 1 1", "2 0 3 1 1 # # # # #", "_ _ _ _ _ 1 1 0 _ _"),
        ("xor", "1 1 0 1", "1 1 0 1", "1 0 0 1"),
        ("delayed_xor", "1 1 0 1", "1 1 0 1", "0 1 0 0"),
        ("parenthesis", "[ ( [ ] ) ] ( )", "[ ( [ ] ) ] ( )", "_ _ ] ) ] _ ) _"),
        ("formula", "T F | T &", "T F | T &", "1 0 1 1 1"),
        (
            "agreement",
            "the lobsters that the lobster has devoured have",
            "the lobsters that the lobster has devoured have",
            "_ _ _ _ has _ have _",
        ),
    ],
)
def test_worked_examples(name, symbols, fed, target):
    example = TASKS[name].example(tuple(symbols.split()))
    assert example.input == tuple(fed.split())
    assert example.target == tuple(None if t == "_" else t for t in target.split())


@every_task
@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_contract_of_every_task(name, split):
    task = TASKS[name]
    assert task.name == name
    assert set(task.inputs) | set(task.outputs) | {task.padding} == set(task.alphabet)
    examples = draw(task, np.random.default_rng(3), 300, split)
    assert len(examples) == 300
    for symbols, target in examples:
        assert 0 < len(symbols) == len(target) <= task.length(split)
        assert set(symbols) <= set(task.inputs)
        assert set(target) - {None} <= set(task.outputs)
        assert set(target) != {None}
    assert examples == draw(task, np.random.default_rng(3), 300, split)
    assert examples[:20] != draw(task, np.random.default_rng(4), 20, split)
    if split == "test" and not getattr(task, "repeats", False):
        assert len(set(examples)) == 300


@every_task
def test_strings_that_are_longer_than_in_training(name):
    task, rng = TASKS[name], np.random.default_rng(0)
    trained_on = [task.example(word) for word in task.sample(rng, 200, "train")]
    mean = fmean(len(example.input) for example in trained_on)
    for factor in (2, 10):
        longer = tasks.longer(task, rng, 20, factor)
        assert len(longer) == 20 and fmean(len(example.input) for example in longer) > 0.7 * factor * mean


@pytest.mark.parametrize(
    ("name", "train_range", "train_mean", "test_range", "test_mean"),
    [  # of the strings, without a reversal's #s; from the authors' data
        ("reversal", (1, 12), 9.41, (1, 24), None),
        ("xor", (12, 12), 12, (23, 24), 23.5),
        ("delayed_xor", (12, 12), 12, (23, 24), 23.5),
        ("parenthesis", (2, 20), 17.1, (2, 110), 94.8),
        ("formula", (1, 15), 13.3, (1, 31), 27.7),
        ("agreement", (3, 23), 18.4, (3, 49), 39.3),
    ],
)
def test_lengths_are_the_papers(name, train_range, train_mean, test_range, test_mean):
    rng = np.random.default_rng(0)
    for split, (low, high), mean in (("train", train_range, train_mean), ("test", test_range, test_mean)):
        lengths = [len(symbols) for symbols in TASKS[name].sample(rng, 4000, split)]
        assert low <= min(lengths)
        assert max(lengths) <= high
        if mean is not None:
            assert np.mean(lengths) == pytest.approx(mean, abs=0.35)


@pytest.mark.parametrize("name", PDTS)
@pytest.mark.parametrize("split", ["train", "test"])
def test_transducers_compute_their_tasks(name, split):
    """§3: what each PDT says at an input position is the target, wherever the task scores one."""
    scored = 0
    for symbols, target in draw(TASKS[name], np.random.default_rng(0), 1500, split):
        said = PDTS[name].aligned(symbols)
        for position, expected in enumerate(target):
            if expected is not None:
                assert said[position] == expected, (symbols, position)
                scored += 1
    assert scored > 3000


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if tasks.machine_of(task)])
@pytest.mark.parametrize("split", ["train", "test"])
def test_machines_of_tasks_do_them(name, split):
    """One symbol written for each that is read, and the target wherever there is one."""
    machine = tasks.machine_of(TASKS[name])
    for symbols, target in draw(TASKS[name], np.random.default_rng(1), 200, split):
        written = transduced(machine, symbols)
        assert [len(word) for word in written] == [1] * len(symbols)
        assert all(t is None or word == (t,) for word, t in zip(written, target, strict=True))


def test_the_papers_machines_are_the_tasks():
    same = {name for name in PDTS if name in TASKS and tasks.machine_of(TASKS[name]) == PDTS[name]}
    assert same == {"reversal", "selective_reversal", "xor", "delayed_xor", "formula", "agreement"}
    # parenthesis is not one of them: the machine of Figure 4 writes nothing at depth 0


def test_a_machine_for_any_symbols_to_reverse():
    letters = Reversal(name="letters", kept=("a", "b", "c"), dropped=("-",))
    word, target = letters.example(("a", "-", "c", "b"))
    assert target == (None, None, None, None, "b", "c", "a", None)
    assert [w[0] for w in transduced(letters.machine, word)] == ["#"] * 4 + ["b", "c", "a", "#"]


def test_heuristics_the_paper_names():
    """The memoryless closer on depth-12 strings: about 60.7 %; the nearest noun on agreement: about 68.2 %.

    Both are from one test set of the authors', and between test sets of 1,000 the second varies by 0.7 points
    (standard deviation; 69.5 over 20,000 strings).
    """
    right = total = 0
    for symbols, target in draw(TASKS["parenthesis"], np.random.default_rng(0), 1000, "test"):
        for symbol, expected in zip(symbols, target, strict=True):
            if expected is not None:
                right += {"(": ")", "[": "]"}.get(symbol, "]") == expected
                total += 1
    assert right / total == pytest.approx(0.607, abs=0.006)
    right = total = 0
    for symbols, target in draw(TASKS["agreement"], np.random.default_rng(0), 1000, "test"):
        noun = ""
        for symbol, expected in zip(symbols, target, strict=True):
            noun = symbol if symbol.startswith("lobster") else noun
            if expected is not None:
                right += {"lobster": "has", "lobsters": "have"}[noun] == expected
                total += 1
    assert right / total == pytest.approx(0.682, abs=0.02)


def test_encoding():
    data = encode(
        TASKS["reversal"], [Example(("1", "#"), (None, "1")), Example(("0", "1", "#", "#"), (None,) * 4)], 5
    )
    assert data.x.tolist() == [[1, 2, 2, 2, 2], [0, 1, 2, 2, 2]]
    assert data.y.tolist() == [[0, 1, 0, 0, 0], [0, 0, 0, 0, 0]]
    assert data.mask.tolist() == [[False, True, False, False, False], [False] * 5]
    assert data.trimmed().x.tolist() == [[1, 2], [0, 1]]


@every_task
def test_a_file_comes_back_as_it_was_written(name, tmp_path):
    examples = draw(TASKS[name], np.random.default_rng(0), 50, "dev")
    text = io.StringIO()
    write_tsv(text, examples)
    (tmp_path / "data.tsv").write_text(text.getvalue())
    assert read_tsv(tmp_path / "data.tsv", TASKS[name]) == examples


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "1 0\t1 1\n1 0 1\n",
            r"data.tsv, line 2: expected input symbols, one tab, target symbols; found 0 tabs",
        ),
        ("1 0\t1 1\t0\n", r"line 1: .*found 2 tabs"),
        ("1 0\t1\n", r"line 1: 2 input symbols but 1 target: give one target for each input symbol"),
        ("1 2\t1 1\n", r"line 1: '2' is not an input symbol of xor: accepted are 0 1, separated by spaces"),
        (
            "1 0\t1 2\n",
            r"line 1: '2' is not a target of xor: accepted are 0 1, and '_' where nothing is scored",
        ),
        ("\t\n", r"holds no example"),
        ("\t1\n", r"line 1: the input is empty: give at least one of 0 1"),
        ("", r"holds no example: write one per line"),
        ("1 0\t_ _\n", r"scores nothing: every target is '_'"),
    ],
)
def test_bad_files(text, message, tmp_path):
    file = tmp_path / "data.tsv"
    file.write_text(text)
    with pytest.raises(BadInput, match=message):
        read_tsv(file, TASKS["xor"])


def test_a_file_that_is_not_text(tmp_path):
    (tmp_path / "data.tsv").write_bytes(b"\xff\xfe\t1")
    with pytest.raises(BadInput, match="is not text in UTF-8"):
        read_tsv(tmp_path / "data.tsv", TASKS["xor"])


def test_a_formula_that_is_none():
    with pytest.raises(BadInput, match="symbol 2 of 'T &' is '&' with fewer than two formulas before it"):
        TASKS["formula"].example(("T", "&"))


def test_an_unknown_task():
    with pytest.raises(BadInput, match="unknown task 'parentheses': did you mean 'parenthesis'"):
        tasks.find("parentheses")


def test_any_machine_is_a_task():
    """By its text: strings are walks of the machine, and targets what it writes, symbol by symbol."""
    text = str(PDTS["parenthesis"])
    task = tasks.find(text)
    assert task.name.startswith("pdt-")
    assert task.alphabet == ("(", "[", ")", "]", "_")
    assert task.example(tuple("([])(")).target == (")", "]", ")", ")", None)
    for split in ("train", "test"):
        for symbols, target in draw(task, np.random.default_rng(0), 50, split):
            assert PDTS["parenthesis"].run(symbols).output == tuple(t for t in target if t is not None)
            assert len(symbols) <= task.length(split)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("start q\nq -> q   a : ε", "reads nothing, or writes nothing"),
        ("start q\nq -> q   ε : x", "ε-cycle"),
        ("start q\nq -> q   a : ε\nq -> q   b : x , A -> ε", "hardly ever"),
    ],
)
def test_machines_that_are_no_task(text, said):
    with pytest.raises(BadInput, match=said):
        draw(tasks.find(text), np.random.default_rng(0), 5, "train")


# --- what a task may have but need not ----------------------------------------------------------------------


class Plain:
    """Only what every task has. Strings of 1 to 6 symbols for training, 12 at most to test."""

    name, loss, padding = "plain", "sum", "_"
    inputs = outputs = ("0", "1")
    alphabet = ("0", "1", "_")

    def length(self, split):
        return 12 if split == "test" else 6

    def sample(self, rng, n, split):
        return [("1",) * int(k) for k in rng.integers(1, self.length(split) + 1, size=n)]

    def example(self, symbols):
        return Example(symbols, symbols)


@pytest.mark.parametrize(
    ("length", "least", "most"), [(1, 5, 6), (6, 5, 6), (7, 11, 12), (12, 11, 12), (13, 0, 0), (1000, 0, 0)]
)
def test_a_task_without_long_strings_gives_the_longest_it_has(length, least, most):
    """Never shorter ones under the name of a length that it does not have."""
    examples = tasks.of_length(Plain(), np.random.default_rng(0), 20, length)
    assert len(examples) == (20 if most else 0)
    assert all(least <= len(symbols) <= most for symbols, _ in examples)


@pytest.mark.parametrize(
    ("name", "string"),
    [
        ("reversal", "1101####"), ("selective_reversal", "2303####"), ("xor", "110101101"),
        ("parenthesis", "([])[()]"), ("formula", "FFF&|TT||"),
    ],
)  # fmt: skip
def test_long_strings_are_those_of_the_seed(name, string):
    """Published tables were made with the strings that these seeds give."""
    (example,) = tasks.of_length(TASKS[name], np.random.default_rng(5), 1, 9)
    assert "".join(example.input) == string


def test_a_task_without_a_machine_or_a_page():
    assert tasks.machine_of(Plain()) is None
    assert tasks.machine_of(Xor(delay=2)) is None
    page = tasks.page_of(Plain())
    assert (page["kind"], page["trained_size"], page["sizes"]) == (None, 6, list(range(1, 13)))
    assert len(page["examples"]) == 12  # each string once
    assert all(symbols == target == word for symbols, target, word in page["examples"])


def test_pages_say_how_they_are_computed():
    kinds = {
        "reversal": "reversal", "selective_reversal": "reversal", "xor": "xor", "delayed_xor": "xor",
        "parenthesis": "next", "formula": "formula", "agreement": "next",
    }  # fmt: skip
    assert {name: tasks.page_of(TASKS[name])["kind"] for name in kinds} == kinds
    assert tasks.page_of(TASKS["delayed_xor"])["delay"] == 1
    assert tasks.page_of(TASKS["formula"])["grammar"]["rules"]["S"][-1] == ["F"]
    machine = tasks.page_of(tasks.find(str(PDTS["xor"])))
    assert machine["kind"] == "machine" and len(machine["examples"]) == 600
