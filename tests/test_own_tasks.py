"""Tasks that are files: a grammar, examples or a machine, used like any task after the files are gone."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from softstack.errors import BadInput
from softstack.formal.grammar import Grammar
from softstack.formal.sampling import count_strings, ends_before, enumerate_strings, few_strings, longest
from softstack.lab import tasks
from softstack.lab.runs import store
from softstack.lab.sweeps import jobs, plans
from softstack.lab.sweeps.workers import Engine
from softstack.lab.tasks import TASKS, checking, collection, prediction, sources
from softstack.lab.tasks.agreement import GRAMMAR as AGREEMENT
from softstack.lab.tasks.data import Example, write_tsv
from softstack.lab.tasks.formula import GRAMMAR as FORMULA
from softstack.lab.tasks.page import with_ending
from softstack.lab.tasks.parenthesis import GRAMMAR as PARENTHESIS
from softstack.lab.training.conditions import Condition

SMALL = ["--controller", "linear", "--max-epochs", "2"]
NESTED = Grammar.parse("S -> a S b | a b")
ENDING = Grammar.parse("S -> A B\nA -> a | b\nB -> c | d")


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch):
    """What a test makes known to this process is forgotten at its end."""
    monkeypatch.setattr(collection, "_held", {})


def forget():
    collection._held.clear()


def reversal_files(folder: Path) -> dict[str, str]:
    sizes = {"train": 60, "dev": 10, "test": 12}
    for split, size in sizes.items():
        with (folder / f"{split}.tsv").open("w") as file:
            write_tsv(file, tasks.draw(TASKS["reversal"], np.random.default_rng(1), size, split))
    return {"data": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}


def only_run(pattern: str) -> Path:
    (run,) = Path("runs").glob(f"{pattern}/seed-0")
    return run


# Grammars


@pytest.mark.parametrize("grammar", [NESTED, PARENTHESIS, ENDING, Grammar.parse("S -> S S | ( S ) | ε")])
def test_the_longest_string_and_few_strings_are_those_of_a_list(grammar):
    for depth in range(1, 6):
        strings = list(enumerate_strings(grammar, depth)) if few_strings(grammar, depth, 10**6) else []
        assert longest(grammar, depth) == max(map(len, strings), default=-1)
        if strings:
            assert sorted(few_strings(grammar, depth, len(strings)) or ()) == sorted(strings)
            assert few_strings(grammar, depth, len(strings) - 1) is None


def test_where_a_grammar_ends():
    assert count_strings(ENDING, 3) == count_strings(ENDING, 50) == 4
    assert ends_before(ENDING, 50) and not ends_before(ENDING, 3)
    slow = Grammar.parse("S -> A\nA -> B\nB -> C\nC -> S x | y")  # a deeper tree only every fourth depth
    assert not any(ends_before(slow, depth) for depth in range(1, 40))
    assert not any(ends_before(NESTED, depth) for depth in range(1, 40))


def test_usual_depths_are_those_of_the_paper():
    assert [prediction.usual_depth(grammar) for grammar in (PARENTHESIS, AGREEMENT, FORMULA)] == [6, 16, 5]
    assert prediction.usual_test_depth(PARENTHESIS, 6) == 12
    assert prediction.usual_test_depth(AGREEMENT, 16) == 32
    assert longest(NESTED, prediction.usual_depth(NESTED)) == prediction.LONG
    assert prediction.usual_depth(ENDING) == 3


def test_a_grammar_is_the_same_task_as_one_of_ours(softstack):
    Path("brackets.cfg").write_text(f"# brackets\n{PARENTHESIS}\n")
    size = ["--train-size", "100", "--test-size", "50"]
    code, out, err = softstack("train", "--grammar", "brackets.cfg", "--predict", ") ]", *SMALL, *size)
    assert (code, err) == (0, "softstack: strings of depth 6 for training, 12 to test\n")
    ours = softstack("train", "parenthesis", *SMALL, *size)[1]
    assert out.split(maxsplit=1)[1] == ours.split(maxsplit=1)[1]
    Path("brackets.cfg").write_text("S -> x S | y")  # a run does not need the file
    run = str(only_run("grammar-*"))
    task = tasks.find(store.load(Path(run)).condition.task)
    checking.check(task, "the task of a grammar")
    assert (task.inputs, task.outputs, task.padding) == (("(", ")", "[", "]"), (")", "]"), "_")
    assert (task.length("train"), task.length("test")) == (20, 110)
    code, out, _ = softstack("evaluate", run, "--json")
    assert code == 0 and json.loads(out)["accuracy"] == store.load(Path(run)).result["test"]
    code, out, _ = softstack("trace", run, "( [ ] )")
    assert code == 0 and "target     _ ] ) _" in out
    for command in (["view", run, "--no-open"], ["plot", run], ["export", run, "--format", "json"]):
        assert softstack(*command)[0] == 0, command
    assert re.search(r'"kind": ?"next"', Path("view.html").read_text())
    assert "Verdict:" in softstack("diagnose", run, "--strings", "20")[1]
    assert softstack("extract", run, "--strings", "50")[0] in (0, 1)
    assert Path(run, "extracted.json").is_file()


def test_depths_and_symbols_are_a_part_of_a_grammars_identity(softstack):
    Path("nested.cfg").write_text(str(NESTED))
    names = set()
    for options in ([], ["--predict", "b"], ["--depth", "5"], ["--depth", "5", "--test-depth", "7"]):
        code, out, _ = softstack("train", "--grammar", "nested.cfg", *SMALL, "--train-size", "20", *options)
        assert code == 0
        names.add(out.split("/")[1])
    assert len(names) == 4


def test_all_strings_are_tested_where_there_are_few(softstack):
    Path("nested.cfg").write_text(str(NESTED))
    code, _, err = softstack("train", "--grammar", "nested.cfg", "--predict", "b", "--depth", "5", *SMALL)
    assert code == 0 and "only b is predicted" in err
    run = only_run("grammar-*")
    assert json.loads(softstack("evaluate", str(run), "--json")[1])["strings"] == 9  # a b to 9 of each
    condition = store.load(run).condition
    strings = tasks.draw(tasks.find(condition.task), np.random.default_rng(3), 9, "test")
    assert sorted(len(example.input) for example in strings) == list(range(2, 20, 2))


def test_one_string_without_anything_to_predict_is_not_taken_for_all():
    """Of five strings one, x, has no next symbol, and it is the first that is drawn here."""
    grammar = Grammar.parse("S -> constructor S toString | x")
    task = prediction.of_grammar(prediction.text_of(grammar, (), 6, 7))
    assert len(task.sample(np.random.default_rng(0), 1, "train")[0]) > 1


def test_strings_without_anything_to_predict_are_left_out():
    text = prediction.text_of(Grammar.parse("S -> S S | ( S ) | ε"), (")",), 4, 4)
    words = prediction.of_grammar(text).sample(np.random.default_rng(0), 200, "train")
    assert len(words) == 200 and all(")" in word for word in words)


@pytest.mark.parametrize(
    ("text", "arguments", "sentence"),
    [
        ("S -> a B", [], "mine.cfg: line 1 uses B, which has no rule"),
        ("S -> a S", [], "mine.cfg: no finite string comes from S"),
        ("S -> a b", ["--predict", "c"], "mine.cfg: unknown symbol to predict, 'c': accepted: a, b"),
        ("S -> a b", ["--predict", "a"], "has one of a after another symbol"),
        ("S -> a b", ["--depth", "1"], "no string has a depth of 1 or less: the smallest that has one is 2"),
        ("S -> S S | a b", ["--depth", "40"], "give a smaller one"),
        ("S -> a _", [], "'_' cannot be predicted"),
        ("S -> a b", ["--dev", "dev.tsv"], "--dev needs --data"),
        ("S -> a b", ["--data", "train.tsv"], "--grammar and --data are given: name one thing to learn"),
    ],
)
def test_what_is_wrong_with_a_grammar(softstack, text, arguments, sentence):
    Path("mine.cfg").write_text(text)
    code, out, err = softstack("train", "--grammar", "mine.cfg", *arguments)
    assert (code, out) == (2, "") and sentence in err
    assert not Path("runs").exists()


def test_longer_strings_of_a_grammar_that_ends():
    text = prediction.text_of(ENDING, (), None, None)
    assert {len(e.input) for e in tasks.longer(tasks.find(text), np.random.default_rng(0), 5, 10)} == {2}


# Data


def test_data_is_trained_scored_and_looked_at_after_its_files_are_gone(softstack, tmp_path):
    files = reversal_files(tmp_path)
    arguments = [word for name, file in files.items() for word in (f"--{name}", file)]
    code, out, err = softstack("train", *arguments, *SMALL)
    assert (code, err) == (0, "")
    for file in files.values():
        Path(file).rename(f"{file}.moved")
    shutil.move("runs", "elsewhere")
    forget()
    (run,) = Path("elsewhere").glob("data-*/seed-0")
    loaded = store.load(run)
    task = tasks.find(loaded.condition.task)
    checking.check(task, "the task of data")
    assert (set(task.inputs), set(task.outputs)) == ({"0", "1", "#"}, {"0", "1"})
    c = loaded.condition
    assert (c.train_size, c.dev_size, c.test_size) == (60, 10, 12)
    forget()
    code, out, _ = softstack("evaluate", str(run), "--json")
    assert code == 0 and json.loads(out)["accuracy"] == loaded.result["test"]
    assert json.loads(out)["strings"] == 12
    again = softstack("evaluate", str(run), "--json", "--data", "test.tsv.moved")[1]
    assert json.loads(again)["right"] == json.loads(out)["right"]
    for command in (["view", str(run), "--no-open"], ["plot", str(run)], ["export", str(run)]):
        forget()
        assert softstack(*command)[0] == 0, command
    forget()
    word = next(iter(task.splits["test"])).input
    code, out, _ = softstack("trace", str(run), " ".join(word[: len(word) // 2]))
    assert code == 0 and f"input      {' '.join(word)}\n" in out  # the #s are added
    assert f"target     {' '.join(t or '_' for t in task.example(word).target)}\n" in out
    assert "Verdict:" in softstack("diagnose", str(run), "--strings", "10")[1]
    assert softstack("extract", str(run), "--strings", "50")[0] in (0, 1)
    forget()
    assert "1 run" in softstack("runs", "elsewhere")[1]
    forget()
    assert json.loads(softstack("status", "elsewhere", "--json")[1])[0]["done"] == 1


def test_a_run_is_known_by_what_its_data_says(softstack, tmp_path):
    files = reversal_files(tmp_path)
    arguments = [word for name, file in files.items() for word in (f"--{name}", file)]
    first = softstack("train", *arguments, *SMALL)[1]
    for file in files.values():
        Path(file).rename(Path("other-" + file))
    arguments = [word if word.startswith("--") else f"other-{word}" for word in arguments]
    assert softstack("train", *arguments, *SMALL)[1] == first  # it was there
    Path("other-dev.tsv").write_text(Path("other-dev.tsv").read_text() + "0 #\t_ 0\n")
    assert softstack("train", *arguments, *SMALL)[1].split("/")[1] != first.split("/")[1]


def test_what_is_not_given_is_held_out(softstack, tmp_path):
    reversal_files(tmp_path)
    text = Path("train.tsv").read_text()
    Path("train.tsv").write_text(text + text)  # every example twice
    code, _, err = softstack("train", "--data", "train.tsv", *SMALL)
    assert code == 0 and "examples of train.tsv are held out for it" in err
    splits = tasks.find(store.load(only_run("data-*")).condition.task).splits
    parts = [{example.input for example in splits[split]} for split in ("train", "dev", "test")]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])
    distinct = len(set().union(*parts))
    assert [len(part) for part in parts[1:]] == [-(-distinct // 10), -(-(distinct - len(parts[1])) // 10)]
    assert sum(map(len, splits.values())) == 120


def test_what_no_training_string_has_is_said(tmp_path):
    """Input symbols that no network has met, and targets that none was asked for."""
    (tmp_path / "train.tsv").write_text("a b\tA B\n")
    (tmp_path / "dev.tsv").write_text("a c b\tA _ C\n")
    (tmp_path / "test.tsv").write_text("b a\tB A\n")
    notes = sources.read({"data": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}, tmp_path).notes
    assert notes == (
        "no training string has c, which the dev strings have",
        "no training string asks for C, which the dev strings ask for",
    )


def test_examples_of_one_string_may_differ_and_all_are_scored(tmp_path):
    (tmp_path / "a.tsv").write_text("x y\t_ 0\nx y\t_ 1\nx y\t_ 1\n")
    source = sources.read({"data": "a.tsv", "dev": "a.tsv", "test": "a.tsv"}, tmp_path)
    task = tasks.find(source.task)
    examples = tasks.draw(task, np.random.default_rng(0), 3, "test")
    assert [e.target for e in examples] == [(None, "0"), (None, "1"), (None, "1")]
    assert task.example(("x", "y")).target == (None, "0")
    assert task.example(("y",)) == Example(("y",), (None,))
    assert len(tasks.draw(task, np.random.default_rng(0), 2, "train")) == 2
    with pytest.raises(BadInput, match=r"test_size is 4, but .* has 3 examples for test"):
        tasks.draw(task, np.random.default_rng(0), 4, "test")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("0 1\t0 1\n0 1 1\n", "b.tsv, line 2: expected input symbols, one tab, target symbols; found 0 tabs"),
        ("0 1\t0 1\n\n0 1\t0\n", "b.tsv, line 3: 2 input symbols but 1 target"),
        ("\t\n", "b.tsv holds no example"),
        ("0\t0\n\t0\n", "b.tsv, line 2: the input is empty"),
        ("0 1\t_ _\n", "b.tsv scores nothing"),
        ("0\t0\n", "b.tsv has too few examples to hold some out"),
    ],
)
def test_what_is_wrong_with_data(softstack, content, sentence):
    Path("b.tsv").write_text(content)
    code, out, err = softstack("train", "--data", "b.tsv")
    assert (code, out) == (2, "") and sentence in err


def test_a_copy_that_is_gone_or_damaged(softstack, tmp_path):
    reversal_files(tmp_path)
    softstack("train", "--data", "train.tsv", *SMALL)
    run = only_run("data-*")
    (copy,) = run.parent.glob("data-*.tsv")
    text = copy.read_text()
    copy.write_text(text.replace("0", "1"))
    forget()
    code, _, err = softstack("evaluate", str(run))
    assert code == 2 and f"{copy.name} is not what was written" in err
    copy.unlink()
    code, _, err = softstack("evaluate", str(run))
    assert code == 2 and f"{copy.name}, belongs into the folder" in err
    (run / copy.name).write_text(text)  # a run may bring it along
    assert softstack("evaluate", str(run))[0] == 0


def test_columns_of_two_letters_are_turned_so_that_a_phone_has_room(softstack):
    Path("mine.tsv").write_text("ka lo mi\tKA LO MI\nmi ka lo\tMI KA LO\n")
    files = [word for name in ("data", "dev", "test") for word in (f"--{name}", "mine.tsv")]
    run = softstack("train", *files, *SMALL)[1].split()[0]
    assert softstack("trace", run, "ka lo mi", "--out", "trace.html")[0] == 0
    turned = re.findall(r'class="cells( turned)?" style="--k:(\d)"><span>', Path("trace.html").read_text())
    assert turned == [("", "1"), ("", "1"), ("", "2"), (" turned", "7"), (" turned", "7")]


def test_what_all_strings_end_with():
    rule = {"symbol": "#", "each": 1, "more": 1}
    assert with_ending(rule, ("0", "1")) == ("0", "1", "#", "#", "#")
    assert with_ending(rule, ("0", "#", "#", "#")) == ("0", "#", "#", "#")
    assert with_ending(rule, ("0", "#", "1")) == ("0", "#", "1")
    assert with_ending(None, ("0",)) == ("0",)


# Machines, files of settings, sweeps and workers


def test_a_machine_from_a_file_is_trained(softstack):
    Path("swap.pdt").write_text("start q\nq -> q   0 : 1\nq -> q   1 : 0\n")
    code, out, _ = softstack("train", "swap.pdt", *SMALL, "--train-size", "50", "--test-size", "20")
    assert code == 0 and out.startswith("runs/pdt-")
    Path("swap.pdt").unlink()
    assert "target     1 0 0" in softstack("trace", out.split()[0], "0 1 1")[1]
    code, _, err = softstack("train", "none.pdt")
    assert code == 2 and "none.pdt: no such file" in err
    Path("even.pdt").write_text("start q\naccept q\nq -> r   0 : ε\nr -> q   0 : ε\n")
    code, _, err = softstack("train", "even.pdt", *SMALL, "--test-size", "5")
    assert code == 0 and "writes 1 after each symbol" in err


def test_a_file_of_settings_names_files_beside_it(softstack, tmp_path):
    Path("there").mkdir()
    reversal_files(Path("there"))
    Path("there/mine.toml").write_text(
        'task = {data = "train.tsv", dev = "dev.tsv", test = "test.tsv"}\n'
        'controller = "linear"\ntrain_size = 20'
    )
    code, _, err = softstack("train", "--config", "there/mine.toml", "--max-epochs", "1")
    assert (code, err) == (0, "")
    assert store.load(only_run("data-*")).condition.train_size == 20
    Path("there/mine.toml").write_text('task = {grammar = "x.cfg", predikt = "a"}')
    code, _, err = softstack("train", "--config", "there/mine.toml")
    assert code == 2 and "unknown key beside grammar, 'predikt': did you mean 'predict'?" in err
    Path("there/mine.toml").write_text('task = {predict = "a"}')
    assert "names a grammar or data" in softstack("train", "--config", "there/mine.toml")[2]


def test_a_sweep_over_files_goes_on_without_them(softstack, tmp_path):
    reversal_files(tmp_path)
    Path("nested.cfg").write_text(str(NESTED))
    Path("mine.toml").write_text(
        """
        seeds = 2
        [condition]
        controller = "linear"
        max_epochs = 1
        train_size = 20
        [product]
        task = ["xor", {grammar = "nested.cfg", depth = 6, test_depth = 6},
                {data = "train.tsv", dev = "dev.tsv", test = "test.tsv"}]
        memory_size = [2, 3]
        """
    )
    plan = plans.load(Path("mine.toml"))
    assert len(plan.conditions) == 6
    assert {c.test_size for c in plan.conditions} == {1000, 5, 12}
    jobs.run_sweep(Path("runs"), plan._replace(conditions=plan.conditions[:1]), Engine("inline"))
    for condition in plan.conditions:  # as of a sweep that was stopped when it had begun
        jobs.copies.keep(Path("runs"), condition.name, condition.task)
    (Path("runs/sweeps") / f"{jobs.plan_name(plan)}.toml").write_bytes(plans.dumps(plan))
    for file in ("train.tsv", "nested.cfg", "mine.toml"):
        Path(file).unlink()
    forget()
    assert any(s["trials"] == 12 and s["done"] == 2 for s in json.loads(softstack("status", "--json")[1]))
    inodes = {path.stat().st_ino for path in Path("runs").glob("data-*/data-*.tsv")}
    assert len(inodes) == 1 and len(list(Path("runs").glob("data-*"))) == 2  # one file in two folders
    again = f"runs/sweeps/{jobs.plan_name(plan)}.toml"
    code, _, err = softstack("sweep", again, "--out", "runs", "--engine", "inline")
    assert code == 0, err
    assert "12 runs" in softstack("runs")[1]


def test_workers_are_sent_what_they_need(softstack, tmp_path):
    """They give what this process gives, and see no file."""
    files = reversal_files(tmp_path)
    settings = {"controller": "linear", "max_epochs": 2}
    data = sources.read(files, tmp_path).completed(settings)
    nested = {"task": prediction.text_of(NESTED, (), 5, 5), "train_size": 20, "test_size": 4, **settings}
    conditions = tuple(Condition.from_dict(fields, "a test") for fields in (data, nested))
    for file in files.values():
        Path(file).unlink()
    sweep = plans.Sweep("x", conditions, (0, 1))
    for name, engine in (("inline", Engine("inline")), ("local", Engine(workers=1))):
        outcome = jobs.run_sweep(tmp_path / name, sweep, engine)
        assert (outcome.trained, outcome.failed) == (4, [])
    roots = [tmp_path / name for name in ("inline", "local")]
    results = [
        {str(p.relative_to(root)): p.read_bytes() for p in root.glob("*/*/result.json")} for root in roots
    ]
    assert results[0] == results[1] and len(results[0]) == 4
