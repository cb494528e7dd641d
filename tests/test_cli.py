"""The command line, as a person uses it: what it prints, writes and refuses."""

import errno
import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import pytest

from softstack.errors import install
from softstack.lab.runs import store
from softstack.lab.training.conditions import TABLE_1, Condition
from softstack_command import app, forks
from softstack_command.advice import INSTALL

SMALL = ["--train-size", "20", "--dev-size", "5", "--test-size", "5", "--max-epochs", "1"]


@pytest.fixture
def trained(softstack):
    code, out, _ = softstack("train", "reversal", "--controller", "linear", *SMALL)
    assert code == 0
    return out.split()[0]


def refused(result, *sentences):
    """Exit code 2, one sentence on standard error, nothing on standard output, no traceback."""
    code, out, err = result
    said = " ".join(err.replace("│", " ").split())
    assert code == 2, said
    assert not out
    assert "Traceback" not in said
    for sentence in sentences:
        assert sentence in said


def test_train_prints_where_the_run_is(softstack):
    code, out, err = softstack(
        "train", "xor", "--controller", "linear", "--buffered", "--trials", "2", *SMALL
    )
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) == 2
    for seed, line in enumerate(lines):
        run = store.load(Path(line.split()[0]))
        assert (run.seed, run.condition.buffered, run.condition.max_epochs) == (seed, True, 1)
        assert f"dev {run.result['dev']:.1%}  test {run.result['test']:.1%}  1 epoch" in line


def test_train_from_a_file_with_options_that_win(softstack):
    Path("mine.toml").write_text('task = "reversal"\ncontroller = "gru"\nmax_epochs = 1\ntrain_size = 20\n')
    code, out, _ = softstack("train", "--config", "mine.toml", "--controller", "mlp", "--seed", "7")
    assert code == 0
    run = store.load(Path(out.split()[0]))
    assert (run.seed, run.condition.controller, run.condition.train_size) == (7, "mlp", 20)


def test_evaluate_gives_back_what_training_reported(softstack, trained):
    result = store.load(Path(trained)).result
    for split in ("dev", "test"):
        code, out, _ = softstack("evaluate", trained, "--split", split, "--json")
        assert code == 0
        assert json.loads(out)["accuracy"] == result[split]
    _, out, _ = softstack("evaluate", trained)
    assert f"accuracy {result['test']:.2%}" in out


def test_evaluate_a_file_of_ones_own(softstack, trained):
    """Counted by hand: a file whose targets are what the network says, but for one."""
    softstack("trace", trained, "1 0 0", "--out", "trace.json")
    said = json.loads(Path("trace.json").read_text())["predicted"]
    right = said[3:]
    wrong = ["0" if right[0] == "1" else "1", *right[1:]]
    usable = [t if t in "01" else "_" for t in right], [t if t in "01" else "_" for t in wrong]
    lines = [f"1 0 0 # # #\t_ _ _ {' '.join(targets)}\n" for targets in usable]
    Path("mine.tsv").write_text("\n".join(lines))  # with an empty line between
    code, out, _ = softstack("evaluate", trained, "--data", "mine.tsv", "--json")
    assert code == 0
    result = json.loads(out)
    scored = sum(t != "_" for targets in usable for t in targets)
    assert (result["strings"], result["scored"], result["right"]) == (2, scored, scored - 1)
    assert result["accuracy"] == pytest.approx((scored - 1) / scored)


def test_sample_of_a_machine(softstack, tmp_path):
    (tmp_path / "even.pdt").write_text("start q\naccept q\nq -> r   0 : ε\nr -> q   0 : ε\n")
    code, out, err = softstack("sample", "even.pdt", "-n", "3")
    assert code == 0 and "the network writes 1 after each symbol where it does" in err
    for line in out.splitlines():
        symbols, target = (part.split() for part in line.split("\t"))
        assert target == [str(k % 2) for k in range(len(symbols))]


def test_sample_writes_what_evaluate_reads(softstack, trained):
    code, out, _ = softstack("sample", "reversal", "-n", "30", "--split", "test", "--seed", "5")
    assert code == 0
    assert out == softstack("sample", "reversal", "-n", "30", "--split", "test", "--seed", "5")[1]
    assert len(set(out.splitlines())) == 30
    Path("mine.tsv").write_text(out)
    code, out, _ = softstack("evaluate", trained, "--data", "mine.tsv", "--json")
    assert json.loads(out)["strings"] == 30


@pytest.mark.parametrize("end", ["png", "svg", "html", "json"])
def test_trace_draws(softstack, trained, end):
    code, out, _ = softstack("trace", trained, "1 0 1", "--out", f"made/here.{end}")
    assert code == 0
    assert "input      1 0 1 # # #" in out
    assert "target     _ _ _ 1 0 1" in out
    content = Path(f"made/here.{end}").read_bytes()
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "html": b"<!doctype html>", "json": b"{"}
    assert content.startswith(begins[end])
    if end == "json":
        seen = json.loads(content)
        assert len(seen["trace"]["u"]) == len(seen["predicted"]) == 6
        assert len(seen["trace"]["s"][5]) == 6


def test_trace_of_a_buffered_network(softstack):
    _, out, _ = softstack(
        "train", "xor", "--controller", "linear", "--buffered", "--steps-per-symbol", "2", *SMALL
    )
    code, out, _ = softstack("trace", out.split()[0], "1 0 1", "--out", "b.json")
    assert code == 0
    seen = json.loads(Path("b.json").read_text())
    assert len(seen["trace"]["i"]) == 24  # padded as in training, and two steps for each symbol
    assert len(seen["predicted"]) == 3


def test_tasks_lists_them_all(softstack):
    _, out, _ = softstack("tasks")
    for line in ("parenthesis", "  symbols  ( ) [ ]   targets  ) ]", "agreement"):
        assert line in out.splitlines()


def test_table_does_only_what_is_missing(softstack, monkeypatch):
    """Two rows, few strings: a report, and a second run that trains nothing and says the same."""
    small = [
        Condition(**{**vars(c), "train_size": 20, "dev_size": 5, "test_size": 5, "max_epochs": 1})
        for c in TABLE_1
    ]
    monkeypatch.setattr("softstack.lab.cli.table.TABLE_1", small)
    monkeypatch.setattr("softstack.lab.reports.table1.TABLE_1", small)
    arguments = ("table", "--rows", "2", "delayed_xor", "--trials", "2", "--engine", "inline", "--out", "t")
    code, out, err = softstack(*arguments)
    assert (code, err) == (0, "")
    assert "corrected read-off" in out
    rows = json.loads(Path("t/rows.json").read_text())
    assert [row["row"] for row in rows] == [2, 8]
    assert len(rows[0]["trials"]) == len(rows[0]["corrected"]["trials"]) == 2
    times = {path: path.stat().st_mtime_ns for path in Path("t").glob("*/seed-*/result.json")}
    assert len(times) == 6
    path = next(iter(times))
    for file in path.parent.iterdir():
        file.unlink()
    path.parent.rmdir()
    assert softstack(*arguments)[0] == 0
    assert json.loads(Path("t/rows.json").read_text()) == rows
    assert json.loads(Path("t/meta.json").read_text())["trained"] == 1
    for other, made in times.items():
        assert (other.stat().st_mtime_ns == made) == (other != path)


def test_figures_are_drawn(softstack, monkeypatch):
    from softstack.lab.reports import figures

    small = [
        shown._replace(
            condition=Condition(
                **{**vars(shown.condition), "train_size": 20, "max_epochs": 1, "test_size": 5}
            )
        )
        for shown in figures.FIGURES
    ]
    monkeypatch.setattr(figures, "FIGURES", small)
    code, out, _ = softstack("figures", "--trials", "1", "--engine", "inline", "--runs", "r", "--out", "f")
    assert code == 0
    assert len(out.splitlines()) == 5
    assert sorted(p.name for p in Path("f").iterdir()) == sorted(
        f"figure{name}.{end}"
        for name in ("5-left", "5-centre", "5-right", "6-left", "6-right")
        for end in ("png", "svg")
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train"], "the command names no task: give one of reversal,"),
        (["train", "reverse"], "unknown task 'reverse': did you mean 'reversal'?"),
        (["train", "xor", "--controller", "lstn"], "unknown controller 'lstn': did you mean 'lstm'?"),
        (["train", "xor", "--hiden-size", "3"], "Did you mean --hidden-size?"),
        (["train", "xor", "--hidden-size", "many"], "'many' is not a whole number"),
        (["train", "xor", "--hidden-size", "0"], "hidden_size must be at least 1; got 0"),
        (["train", "xor", "--seed", "-1"], "--seed must lie between 0 and"),
        (["train", "xor", "--trials", "0"], "--trials must be at least 1; got 0"),
        (["train", "xor", "--hidden-size", "3.5"], "'3.5' is not a whole number"),
        (["sample", "xor", "--seed", "-1"], "--seed must lie between 0 and"),
        (["table", "--rows"], "--rows"),
        (["table", "--engine", "tcp://nowhere", "--rows", "1"], "no dask scheduler answers at tcp://nowhere"),
        (["train", "--config", "kinds.toml"], "task must be a name; got 3"),
        (["train", "--config", "none.toml"], "none.toml: no such file or directory"),
        (["train", "--config", "bad.toml"], "bad.toml is not TOML"),
        (
            ["train", "--config", "typo.toml"],
            "unknown key in typo.toml, 'learning_rat': did you mean 'learning_rate'?",
        ),
        (["train", "--config", "trials.toml"], "trials.toml cannot have it: give --trials instead"),
        (
            ["train", "--config", "data.toml"],
            "data in data.toml is a part of its task: write task = {data =",
        ),
        (["sweep", "typo.toml"], "typo.toml has task outside of a table: put it under a line [condition]"),
        (["tran", "xor"], 'Did you mean "train"?'),
        (["sample", "xor", "-n", "0"], "-n must be at least 1; got 0"),
        (["sample", "xor", "--split", "valid"], "valid"),
        (
            ["table", "--rows", "19"],
            "--rows 19 is not in Table 1: give numbers from 1 to 18, or reversal, xor,",
        ),
        (["table", "--engine", "cloud", "--rows", "1"], "unknown engine 'cloud': accepted are local, inline"),
        (["evaluate", "nowhere"], "nowhere is not a run directory"),
        (["trace", "nowhere", "1"], "nowhere is not a run directory"),
        (
            ["trace", "nowhere", "1", "--out", "x.bmp"],
            "--out x.bmp must end in one of .png, .svg, .html, .json",
        ),
    ],
)
def test_refusals(softstack, arguments, sentence):
    Path("bad.toml").write_text("task =")
    Path("typo.toml").write_text('task = "xor"\nlearning_rat = 0.1\n')
    Path("kinds.toml").write_text("task = 3\n")
    Path("trials.toml").write_text('task = "xor"\ntrials = 3\n')
    Path("data.toml").write_text('data = "train.tsv"\n')
    before = sorted(Path().rglob("*"))
    refused(softstack(*arguments), sentence)
    assert [p for p in sorted(Path().rglob("*")) if p.is_file()] == [p for p in before if p.is_file()]


@pytest.mark.parametrize(
    ("symbols", "sentence"),
    [
        ("1 2", "'2' is not an input symbol of reversal: accepted are 0 1 #"),
        ("", "the input is empty: give at least one of 0 1 #"),
    ],
)
def test_bad_symbols(softstack, trained, symbols, sentence):
    refused(softstack("trace", trained, symbols), sentence)


def test_a_reversal_of_nothing(softstack, trained):
    refused(softstack("trace", trained, "# #"), "the string to reverse is empty")
    refused(softstack("trace", trained, "1 # 0"), "only #s may follow the first # in '1 # 0'")


def test_a_bad_file_is_refused_with_its_line(softstack, trained):
    Path("bad.tsv").write_text("1 0 # #\t_ _ 0 1\n1 # 0\n")
    refused(
        softstack("evaluate", trained, "--data", "bad.tsv"),
        "bad.tsv, line 2: expected input symbols, one tab",
    )
    missing = softstack("evaluate", trained, "--data", "none.tsv")
    assert missing == (2, "", "softstack: none.tsv: no such file or directory\n")


def test_a_machine_that_is_not_there_is_named(softstack):
    for name in ("mine.pdt", "runs/reversal/seed-0"):
        for result in (softstack("equal", "reversal", name), softstack("draw", name)):
            refused(result, f"{name}: no such file or directory")
    refused(softstack("equal", "revresal", "xor"), "unknown machine 'revresal': did you mean 'reversal'?")


def test_an_output_that_cannot_be_written(softstack, trained, monkeypatch):
    refused(softstack("trace", trained, "1 0", "--out", "/proc/none/x.png"), "/proc/none")
    Path("file").write_text("mine")
    refused(softstack("train", "xor", "--out", "file/runs", *SMALL), "file")
    assert Path("file").read_text() == "mine"

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "mkstemp", full)
    said = "softstack: no space left on device; nothing already on disk was changed"
    refused(softstack("trace", trained, "1 0"), said)


def test_the_installed_command_is_quiet_off_a_terminal(tmp_path):
    """The console script itself, in a process of its own: help, version, and no progress bar in a pipe."""
    script = Path(sys.executable).parent / "softstack"
    env = {**os.environ, "COLUMNS": "100"}
    run = lambda *a: subprocess.run([script, *a], capture_output=True, text=True, cwd=tmp_path, env=env)  # noqa: E731
    shown = run("--help")
    assert shown.returncode == 0
    for command in ("table", "train", "evaluate", "sample", "trace", "figures", "tasks"):
        assert command in shown.stdout
    made = run("train", "xor", *SMALL)
    assert made.returncode == 0
    assert made.stderr == ""
    assert len(made.stdout.splitlines()) == 1


def test_every_command_has_a_page_of_help(softstack):
    for command in ("table", "train", "evaluate", "sample", "trace", "figures"):
        code, text, err = softstack(command, "--help")
        assert (code, err) == (0, "")
        assert f"softstack {command}" in text
        assert len(text.splitlines()) > 8


@pytest.mark.parametrize("name", app.COMMANDS)
def test_the_line_on_a_command_is_the_first_of_its_docstring(name):
    place, summary = app.COMMANDS[name]
    module, function = place.split(":")
    documented = getattr(import_module(f"{app.CLI}.{module}"), function).__doc__
    assert documented.splitlines()[0] == summary


def test_a_page_of_help_starts_no_process(softstack, monkeypatch):
    monkeypatch.setattr(forks, "prepare", lambda: pytest.fail("workers are not needed to read"))
    for command in app.WITH_WORKERS:
        for flag in ("--help", "-h"):
            assert softstack(command, flag)[0] == 0


def test_a_page_of_help_is_the_whole_docstring(softstack):
    """And has the option that every command takes."""
    for _ in range(2):
        out = " ".join(softstack("sweep", "--help")[1].split())
        assert "what is finished is kept" in out and "--plugin" in out and "--checkpoint" in out


@pytest.mark.parametrize(
    ("missing", "arguments", "sentence"),
    [
        ("cyclopts", ["--help"], "the command needs cyclopts"),
        ("tomli_w", ["runs"], "this command needs tomli_w"),
    ],
)
def test_without_the_laboratory_a_sentence_says_how_to_get_it(missing, arguments, sentence):
    code = f"import sys; sys.modules[{missing!r}] = None; import softstack_command as c; c.main({arguments})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"softstack: {sentence}: {INSTALL}\n"
    assert install("lab") == INSTALL


def test_an_empty_word_and_two_dashes_reach_the_command(softstack, trained):
    refused(softstack("evaluate", trained, "--data", ""), "directory")
    assert softstack("evaluate", "--json", "--", trained)[0] == 0


def test_view_writes_a_page(softstack, trained, monkeypatch):
    """It opens the page, and leaves the browser alone where that is asked for or there is no screen."""
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setenv("DISPLAY", ":0")
    code, out, err = softstack("view", str(trained), "--symbols", "1 0 1", "--no-open")
    assert (code, out, err) == (0, "Written: view.html\n", "")
    assert '"first":["1","0","1"]' in Path("view.html").read_text(encoding="utf-8")
    assert not opened
    assert softstack("view", str(trained), str(trained), "--out", "two/both.html")[0] == 0
    assert opened == [Path("two/both.html").resolve().as_uri()]


def test_view_says_what_is_wrong(softstack, trained):
    for arguments, said in (
        ((), "no run directory is given"),
        (("nowhere",), "nowhere is not a run directory"),
        ((str(trained), "--out", "view.png"), "--out view.png must end in .html"),
        ((str(trained), "--symbols", "1 2"), "'2' is not an input symbol of reversal"),
        ((str(trained), "--symbols", "#"), "the string to reverse is empty"),
    ):
        code, _, err = softstack("view", *arguments)
        assert code == 2
        assert said in err.replace("\n", " ")
