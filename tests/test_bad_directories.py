"""One directory that somebody else made, however strange: it is named, left out and counted, and the commands
that look at all of them say what they said before of the others."""

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from softstack.lab.runs import disk, index, store
from softstack.lab.sweeps import jobs
from softstack.lab.sweeps.plans import Sweep
from softstack.lab.sweeps.workers import Engine
from softstack.lab.training.conditions import Condition
from softstack.words import shown

SMALL = Condition("reversal", "linear", "stack", train_size=20, dev_size=5, test_size=5, max_epochs=1)
SWEEP = Sweep("mine", (SMALL,), (0, 1))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    jobs.run_sweep(root, SWEEP, Engine("inline"))
    return root


@pytest.fixture
def root(made, tmp_path):
    shutil.copytree(made, tmp_path / "runs")
    return tmp_path / "runs"


def rewritten(path, name, change):
    """One file of a run changed, and its digest with it."""
    content = change((path / name).read_text())
    (path / name).write_text(content)
    result = json.loads((path / "result.json").read_text())
    if name in result["sha256"]:
        result["sha256"][name] = store.digest(content.encode())
        (path / "result.json").write_text(json.dumps(result))


def seed_is(value):
    return lambda path: rewritten(
        path, "config.toml", lambda text: re.sub(r"seed = \d+", f"seed = {value}", text)
    )


def result_has(**values):
    return lambda path: rewritten(
        path, "result.json", lambda text: json.dumps({**json.loads(text), **values})
    )


def provenance_has(**values):
    return lambda path: rewritten(
        path, "provenance.json", lambda text: json.dumps({**json.loads(text), **values})
    )


def pipe_instead_of(name):
    def change(path):
        (path / name).unlink()
        os.mkfifo(path / name)

    return change


def line_is(text):
    return lambda path: rewritten(path, "metrics.jsonl", lambda before: text + "\n")


def huge(name, size):
    def change(path):
        with (path / name).open("wb") as file:
            file.truncate(size)  # of holes

    return change


def with_epochs(number):
    """The run of another condition, which has a name of its own."""

    def change(path):
        line = f"max_epochs = {number}"
        rewritten(path, "config.toml", lambda text: re.sub(r"max_epochs = \d+", line, text))
        result_has(condition=replace(SMALL, max_epochs=min(number, 10**12)).name)(path)

    return change


def also(*changes):
    def change(path):
        for one in changes:
            one(path)

    return change


STRANGE = {
    "seed inf": also(seed_is("inf"), result_has(seed=float("inf"))),
    "seed nan": also(seed_is("nan"), result_has(seed=float("nan"))),
    "seed true": seed_is("true"),
    "seed 2^63": also(seed_is(2**63), result_has(seed=2**63)),
    "a pipe for weights": pipe_instead_of("model.safetensors"),
    "a pipe for the result": pipe_instead_of("result.json"),
    "dev_loss a list": result_has(dev_loss=[1]),
    "dev a truth value": result_has(dev=True),
    "epochs a fraction": result_has(epochs=1.0),
    "a loss in words": line_is('{"epoch": 1, "loss": "low", "dev": 0.5}'),
    "a dev accuracy of 1e999": line_is('{"epoch": 1, "loss": 1.0, "dev": 1e999}'),
    "metrics nested deeply": line_is("[" * 50_000),
    "a result nested deeply": lambda path: (path / "result.json").write_text("[" * 60_000),
    "seconds in words": provenance_has(seconds="long"),
    "a plugin without a name": provenance_has(plugins=[{"path": "a.py"}]),
    "plugins are a number": provenance_has(plugins=3),
    "max_epochs 10^30": with_epochs(10**30),  # which no database holds
    "metrics of a terabyte": also(with_epochs(10**12), huge("metrics.jsonl", 2**40)),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_a_strange_directory_is_left_out_and_the_others_are_listed(kind, root, softstack):
    path = root / SMALL.name / "seed-1"
    STRANGE[kind](path)
    for command in (("runs", str(root)), ("reindex", str(root))):
        code, out, err = softstack(*command)
        assert code == 0
        assert err.count(f"{SMALL.name}/seed-1 is left out: ") == 1
        assert ("1 run\n" in out) or ("1 run; 1 directory cannot be read" in out)
    code, out, err = softstack("compare", f"condition = '{SMALL.name}'", "seed = 0", str(root), "--json")
    assert (code, json.loads(out)["first"]["trials"]) == (0, 1)
    assert err.count(f"{SMALL.name}/seed-1 is left out: ") == 1
    code, out, err = softstack("plot", str(root), "--out", "curves.png")
    assert (code, out) == (0, "1 run. Written: curves.png\n")
    assert err.count(f"{SMALL.name}/seed-1 is left out: ") == 1
    (standing,) = json.loads(softstack("status", str(root), "--json")[1])
    assert (standing["done"], standing["missing"]) == (1, 1)


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\x1b[31mb", "a\u202eb".encode(), b"line\nline"])
def test_a_name_that_cannot_be_printed(name, root, softstack):
    strange = os.path.join(os.fsencode(root), name)
    shutil.copytree(root / SMALL.name, os.fsdecode(strange))
    code, out, err = softstack("runs", str(root))
    assert (code, out.splitlines()[-1]) == (0, "2 runs")
    written_out = shown(os.fsdecode(name))
    assert all(f"{written_out}/seed-{seed} is left out: its name has characters" in err for seed in (0, 1))
    assert err.replace("\n", "").isprintable()
    assert "2 runs; 2 directories cannot be read" in softstack("reindex", str(root))[1]
    assert softstack("compare", "seed = 0", "seed = 1", str(root))[0] == 0


def test_epochs_without_end_can_be_read_back(softstack):
    """As many as the file of an epoch each may have, and not as much memory."""
    few = ("--train-size", "20", "--dev-size", "5", "--test-size", "5", "--patience", "1")
    code, out, err = softstack(
        "train", "reversal", "--controller", "linear", *few, "--max-epochs", str(10**9)
    )
    assert (code, err) == (0, "")
    assert softstack("evaluate", out.split()[0])[0] == 0
    code, out, err = softstack("runs")
    assert (code, out.splitlines()[-1], err) == (0, "1 run", "")


def test_brackets_and_colours_in_symbols(softstack):
    """A machine's symbols are its author's: they are neither markup nor sent to a terminal."""
    few = ("--train-size", "20", "--dev-size", "5", "--test-size", "5", "--max-epochs", "1")
    machine = "start [/red]\n[/red] -> [/red]   [/red] : [/red]"
    code, out, err = softstack("train", machine, "--controller", "linear", *few)
    assert (code, err) == (0, "")
    code, out, err = softstack("runs")
    assert (code, err) == (0, "")
    assert "start [/red] ..." in out
    code, out, err = softstack("train", machine.replace("[/red]", "\x1b[31m"), *few)
    assert code == 2
    assert "cannot be printed" in err and "\x1b" not in err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("foreign.toml", "title = 'not a sweep'"),
        ("mine.toml", "[condition]\ntask = 'xor'"),
        ("deep-00000000.toml", "a = " + "[" * 5000),
        ("other-00000000.toml", "seeds = 1e999"),
        ("\x1b[31m-00000000.toml", "seeds = 1e999"),
        ("pipe-00000000.toml", None),
    ],
)
def test_a_file_in_sweeps_that_is_no_plan(name, content, root, softstack):
    path = root / "sweeps" / name
    os.mkfifo(path) if content is None else path.write_text(content)
    code, out, err = softstack("status", str(root), "--json")
    assert (code, [standing["done"] for standing in json.loads(out)]) == (0, [2])
    assert f"{shown(str(path))} is left out" in err.replace("\n", "")
    assert "\x1b" not in err


@pytest.mark.parametrize(
    "content",
    ['{"seeds": [1e999]}', '{"seeds": ' + "[" * 60_000, '{"seeds": 3}', "[1]", '{"seeds": [[]]}', "", None],
)
def test_a_record_of_failure_that_holds_something_else(content, root, softstack):
    path = root / SMALL.name / "failed-0.json"
    os.mkfifo(path) if content is None else path.write_text(content)
    code, out, err = softstack("status", str(root), "--json")
    (standing,) = json.loads(out)
    assert (code, standing["done"], standing["failed"], err) == (0, 2, 0, "")


@pytest.mark.parametrize(
    "content", ['{"running": "x", "rate": [1], "seconds_left": 1e999}', "[" * 60_000, "3"]
)
def test_a_tally_that_holds_something_else(content, root, softstack):
    (plan,) = (root / "sweeps").glob("*.toml")
    plan.with_suffix(".json").write_text(content)
    with disk.claimed(root, [f"sweeps/{plan.stem}"]):
        code, out, err = softstack("status", str(root))
    assert (code, err) == (0, "")
    assert re.search(r"mine-\w+ +│ 2 +│ 2 +│ 0 +│ 0 +│ 0 +│ - +│ -", out)


def test_sweeps_whose_names_have_dots(softstack):
    text = '[condition]\ntask = "xor"\ncontroller = "linear"\ntrain_size = 20\ndev_size = 5\ntest_size = 5\n'
    for name, epochs in (("v1.5", 1), ("v1.6", 2)):
        Path(f"{name}.toml").write_text(f"{text}max_epochs = {epochs}\n")
        code, _, err = softstack("sweep", f"{name}.toml", "--out", "root", "--engine", "inline")
        assert (code, err) == (0, "")
    standings = json.loads(softstack("status", "root", "--json")[1])
    assert [(s["name"][:5], s["done"]) for s in standings] == [("v1.5-", 1), ("v1.6-", 1)]


def test_damage_after_it_was_indexed_is_seen(root, softstack):
    """As `status` sees it; also where the file is as long and as old as before."""
    assert "2 runs" in softstack("runs", str(root))[1]
    path = root / SMALL.name / "seed-0" / "model.safetensors"
    before, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    code, out, err = softstack("runs", str(root))
    assert (code, out.splitlines()[-1]) == (0, "1 run")
    assert "model.safetensors is not what was written" in err


def test_seeds_that_no_database_holds_are_refused_before_they_are_trained(softstack):
    Path("mine.toml").write_text(f'seeds = [{2**63}]\n[condition]\ntask = "xor"\n')
    largest = str(2**63 - 1)
    commands = [
        ("train", "xor", "--seed", str(2**63)),
        ("train", "xor", "--seed", largest, "--trials", "2"),
        ("sweep", "mine.toml"),
        ("sample", "xor", "--seed", str(2**63)),
    ]
    for command in commands:
        code, out, err = softstack(*command)
        assert (code, out) == (2, "")
        assert largest in err
    assert not Path("runs").exists()


def ask(root, questions):
    """A process that looks into the index whenever it is asked to."""
    while questions.recv():
        with index.opened(root, lambda sentence: None) as database:
            questions.send((len(index.query(database)), len(index.unreadable(database))))


def test_everyone_who_asks_at_once_gets_the_same_answer(processes, root):
    """Each time the index is junk, or of another version: whoever comes first makes it anew."""
    with index.opened(root, lambda sentence: None):
        pass
    other = (root / index.FILE).read_bytes()
    other = other[:60] + b"\0\0\0\1" + other[64:]  # its version
    pipes = [processes.Pipe() for _ in range(4)]
    askers = [processes.Process(target=ask, args=(root, theirs)) for _, theirs in pipes]
    for process in askers:
        process.start()
    answers = []
    for number in range(20):
        (root / index.FILE).write_bytes(other if number % 2 else b"junk" * 1000)
        for ours, _ in pipes:
            ours.send(True)
        for ours, _ in pipes:
            assert ours.poll(120), "no answer"
            answers.append(ours.recv())
    for (ours, _), process in zip(pipes, askers, strict=True):
        ours.send(False)
        process.join()
    assert set(answers) == {(2, 0)}
    assert not list(root.glob(".index-new-*"))


def test_reindex_on_a_full_disk(small_disk, made, softstack):
    root = small_disk("400k") / "runs"
    shutil.copytree(made, root)
    assert softstack("runs", str(root))[0] == 0
    before = (root / index.FILE).read_bytes()
    left = os.statvfs(root)
    (root / "ballast").write_bytes(bytes(left.f_bavail * left.f_frsize))
    code, out, err = softstack("reindex", str(root))
    assert (code, out) == (2, "")
    assert "index.sqlite" in err or "no space left on device" in err
    assert "Traceback" not in err
    assert (root / index.FILE).read_bytes() == before
    assert "2 runs" in softstack("runs", str(root))[1]


def test_a_claim_holds_whatever_else_its_process_opens(processes, tmp_path):
    """A lock of a process would go as soon as any file of that name is closed."""
    with disk.claimed(tmp_path, ["x-00000001"]):
        assert disk.is_claimed(tmp_path, "x-00000001")
        assert not disk.is_claimed(tmp_path, "x-00000002")
        with disk.claimed(tmp_path, ["x-00000002"]):
            pass
        with processes.Pool(1) as pool:
            assert pool.apply(disk.is_claimed, (tmp_path, "x-00000001"))
    assert not disk.is_claimed(tmp_path, "x-00000001")


def test_symbols_that_look_like_formulas(softstack):
    """Figures show a symbol as it is written: $ begins no formula, and a bad one stops nothing."""
    few = ("--train-size", "20", "--dev-size", "5", "--test-size", "5", "--max-epochs", "1")
    machine = "start q\nq -> q   $\\frac$ : $\\frac$\nq -> q   $x_2$ : $x_2$"
    path = softstack("train", machine, "--controller", "linear", *few)[1].split()[0]
    for name in ("a.png", "a.svg", "a.html"):
        code, _, err = softstack("trace", path, "$\\frac$ $x_2$", "--out", name)
        assert (code, err) == (0, "")
    assert "$x_2$" in Path("a.svg").read_text()
    assert softstack("plot", path)[0] == softstack("diagnose", path, "--strings", "20")[0] == 0
