"""A task and a controller in files of one's own, through every command; and what is wrong with a plugin."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from softstack.controllers import CONTROLLERS
from softstack.errors import BadInput
from softstack.lab import plugins
from softstack.lab.runs import store
from softstack.lab.sweeps import jobs
from softstack.lab.sweeps.plans import Sweep
from softstack.lab.sweeps.workers import Engine
from softstack.lab.tasks import TASKS
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import initial
from softstack.memory import MEMORIES
from test_engine import cluster

FOLDER = Path(__file__).parent / "plugins"
REPEAT, NORMED = FOLDER / "repeat_task.py", FOLDER / "layer_norm.py"
BOTH = ("--plugin", str(REPEAT), "--plugin", str(NORMED))
SMALL = {"train_size": 40, "dev_size": 10, "test_size": 30, "max_epochs": 2}
OPTIONS = [word for name, size in SMALL.items() for word in (f"--{name.replace('_', '-')}", str(size))]
SWEEP = f"""
seeds = 2
[condition]
task = "repeat"
memory = "queue"
{chr(10).join(f"{name} = {size}" for name, size in SMALL.items())}
[product]
controller = ["linear", "normed"]
"""


@pytest.fixture(autouse=True)
def forget(registries, monkeypatch):
    """Call it to be a process without plugins again."""
    monkeypatch.delenv(plugins.VARIABLE, raising=False)
    return registries


def trained(softstack, controller="linear"):
    code, out, err = softstack(
        "train", "repeat", "--memory", "queue", "--controller", controller, *OPTIONS, *BOTH
    )
    assert (code, err) == (0, "")
    return out.split()[0]


def test_train_evaluate_and_the_rest(softstack, forget):
    run_dir = trained(softstack)
    run = store.load(Path(run_dir))
    assert run.condition.task == "repeat"
    assert [Path(plugin["path"]) for plugin in run.provenance["plugins"]] == [REPEAT]
    code, out, _ = softstack("evaluate", run_dir, "--json", *BOTH)
    assert code == 0
    assert json.loads(out)["accuracy"] == run.result["test"]
    code, out, _ = softstack("--plugin", str(REPEAT), "sample", "repeat", "-n", "3")
    assert code == 0
    for line in out.splitlines():
        symbols, targets = (part.split() for part in line.split("\t"))
        word = symbols[: len(symbols) // 2]
        assert targets == ["_"] * len(word) + word
    assert "repeat" in softstack("tasks", *BOTH)[1].splitlines()
    code, out, _ = softstack("trace", run_dir, "1 0 1", "--out", "trace.json", *BOTH)
    assert code == 0
    assert "target     _ _ _ 1 0 1" in out
    code, _, err = softstack("view", run_dir, "--no-open", *BOTH)
    assert (code, err) == (0, "")
    assert '"title":"Repeat"' in Path("view.html").read_text()
    code, out, _ = softstack("export", run_dir, "--format", "json", "--out", "w.json", *BOTH)
    assert code == 0
    assert json.loads(Path("w.json").read_text())["alphabet"] == ["0", "1", "#"]
    code, out, err = softstack("compile", "repeat", *BOTH)
    assert (code, "the task 'repeat' has no machine: name a file" in err) == (2, True)


def test_diagnose_and_extract_say_only_what_they_measured(softstack):
    """Repeat builds no strings longer than its test strings, so there is no accuracy at greater lengths."""
    run_dir = trained(softstack)
    code, out, err = softstack("diagnose", run_dir, "--strings", "20", *BOTH)
    assert (code, err) == (0, "")
    assert [length for length, _ in json.loads(Path(run_dir, "diagnosis.json").read_text())["lengths"]] == [
        24,
        48,
    ]
    assert "48 symbols" in out and "96 symbols" not in out
    code, out, err = softstack("extract", run_dir, "--strings", "20", *BOTH)
    assert (code, err) == (0 if Path(run_dir, "extracted.pdt").exists() else 1, "")
    scores = json.loads(Path(run_dir, "extracted.json").read_text())["scores"]
    assert {score["factor"] for score in scores} <= {1, 2}


def test_a_controller_trains_is_scored_and_traced(softstack):
    run_dir = trained(softstack, "normed")
    run = store.load(Path(run_dir))
    assert [plugin["name"] for plugin in run.provenance["plugins"]] == ["repeat_task", "layer_norm"]
    assert "cell.core.norm.weight" in dict(store.network(run).named_parameters())
    code, out, _ = softstack("evaluate", run_dir, "--json", *BOTH)
    assert json.loads(out)["accuracy"] == run.result["test"]
    assert softstack("trace", run_dir, "1 0", "--out", "normed.png", *BOTH)[0] == 0
    code, out, _ = softstack("diagnose", run_dir, "--strings", "20", *BOTH)
    assert code == 0 and "Verdict: it " in out


def test_without_the_plugin_a_sentence_names_it(softstack, forget):
    run_dir = trained(softstack, "normed")
    forget()
    code, out, err = softstack("evaluate", run_dir)
    assert (code, out) == (2, "")
    assert f"{run_dir} needs the task 'repeat' of a plugin: give --plugin {REPEAT} --plugin {NORMED}" in err
    code, _, err = softstack("evaluate", run_dir, "--plugin", str(REPEAT))
    assert code == 2
    assert f"needs the controller 'normed' of a plugin: give --plugin {NORMED}" in err
    code, _, err = softstack("train", "repaet", "--plugin", str(REPEAT))
    assert (code, "unknown task 'repaet': did you mean 'repeat'?" in err) == (2, True)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("memory_size = 2", 'memory_size = "2"', "memory_size is '2'"),
        ("memory_size = 2", "memry_size = 2", "unknown key in"),
        ("memory_size = 2", "memory_size = 3", "config.toml is not what was written"),
    ],
)
def test_what_is_listed_without_its_plugin_must_be_whole(softstack, forget, old, new, reason):
    config = Path(trained(softstack), "config.toml")
    forget()
    assert "1 run\n" in softstack("runs")[1]
    text = config.read_text()
    assert text.count(old) == 1
    config.write_text(text.replace(old, new))
    Path("runs/index.sqlite").unlink()
    code, out, err = softstack("runs")
    assert code == 0 and "0 runs\n" in out
    assert "is left out" in err and reason in err


def test_a_changed_plugin_is_said(softstack, forget):
    Path("mine.py").write_bytes(REPEAT.read_bytes())
    code, out, _ = softstack("train", "repeat", "--controller", "linear", *OPTIONS, "--plugin", "mine.py")
    run_dir = out.split()[0]
    assert softstack("evaluate", run_dir, "--plugin", "mine.py")[2] == ""
    forget()
    Path("mine.py").write_bytes(REPEAT.read_bytes() + b"# once more\n")
    code, _, err = softstack("evaluate", run_dir, "--plugin", "mine.py")
    assert code == 0
    said = f"{run_dir} was trained with another version of {Path('mine.py').resolve()}"
    assert err.startswith(f"softstack: {said}: what follows may not be what it learnt")
    for trials in ("1", "2"):  # neither shown again as if nothing had changed, nor mixed with new ones
        command = ("train", "repeat", "--controller", "linear", *OPTIONS, "--trials", trials)
        code, out, err = softstack(*command, "--plugin", "mine.py")
        assert (code, out) == (2, "")
        assert f"{said}: give another --out, or remove what was trained with it" in err


def test_the_biases_of_a_plugins_memory_are_its_own(registries):
    """Unless the condition asks for another: Table 1's -1 is that of a stack, not of every head called u."""
    plugins.load(Path(__file__).parent / "plugins" / "register.py")
    small = Condition("reversal", memory="register", train_size=10)
    assert initial(small, 0).cell.heads.bias_of("u").item() == 0.0
    assert initial(replace(small, pop_bias=2.0), 0).cell.heads.bias_of("u").item() == 2.0
    assert initial(replace(small, memory="stack"), 0).cell.heads.bias_of("u").item() == -1.0


def test_sweep_status_runs_and_compare(softstack, forget, tmp_path):
    """By the installed command, with two workers of its own; then every question about what they made."""
    Path("mine.toml").write_text(SWEEP)
    script = Path(sys.executable).parent / "softstack"
    command = [script, "sweep", "mine.toml", "--workers", "2", *BOTH]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("runs/mine: 4 of 4 trials are there, 4 trained now\n")
    code, out, _ = softstack("status", "runs/mine", "--json", *BOTH)
    assert (code, json.loads(out)[0]["done"]) == (0, 4)
    forget()
    code, _, err = softstack("status", "runs/mine")
    assert (code, "of a plugin: give --plugin" in err) == (2, True)
    without = softstack("runs", "runs/mine", "--format", "json")
    code, out, err = without
    assert {row["controller"] for row in json.loads(out)} == {"linear", "normed"}
    assert (code, len(json.loads(out)), err) == (0, 4, "")
    for order in (((), BOTH), (BOTH, ())):  # whoever made the index, with the plugins or without
        Path("runs/mine/index.sqlite").unlink()
        for options in order:
            assert softstack("runs", "runs/mine", "--format", "json", *options) == without
            forget()
    code, out, _ = softstack("reindex", "runs/mine")
    assert "4 runs; 0 directories cannot be read" in out
    code, out, _ = softstack(
        "compare", "controller = 'linear'", "controller = 'normed'", "runs/mine", "--json"
    )
    assert (code, json.loads(out)["second"]["trials"]) == (0, 2)


def test_workers_give_what_this_process_gives(tmp_path):
    """Those of a cluster started by hand too, which cannot see the file: it is gone."""
    for file in (REPEAT, NORMED):
        place = tmp_path / file.name
        place.write_bytes(file.read_bytes())
        plugins.load(place)
        place.unlink()
    trained = ("linear", "normed")
    conditions = tuple(Condition("repeat", controller, "queue", **SMALL) for controller in trained)
    sweep = Sweep("x", conditions, (0, 1))
    with cluster(tmp_path) as (address, _):
        for name, engine in (
            ("inline", Engine("inline")),
            ("tcp", Engine(address)),
            ("local", Engine(workers=2)),
        ):
            outcome = jobs.run_sweep(tmp_path / name, sweep, engine)
            assert (outcome.trained, outcome.failed) == (4, [])
    results = {
        name: {
            str(p.relative_to(tmp_path / name)): p.read_bytes()
            for p in (tmp_path / name).glob("*/*/result.json")
        }
        for name in ("inline", "tcp", "local")
    }
    assert results["inline"] == results["tcp"] == results["local"]
    assert len(results["inline"]) == 4


def test_a_worker_that_cannot_load_it_says_so(tmp_path):
    sent = [plugins.Source("far", "/home/someone/far.py", b"import nothing_of_this_name")]
    expected = (
        r"a worker cannot use a plugin of the driver: the plugin /home/someone/far.py cannot be loaded "
        r"\(ModuleNotFoundError: No module named 'nothing_of_this_name', line 1\)"
    )
    with pytest.raises(BadInput, match=expected):
        plugins.receive(sent)


def test_the_environment_names_plugins_too(softstack, monkeypatch):
    monkeypatch.setenv(plugins.VARIABLE, os.pathsep.join(map(str, (REPEAT, NORMED))))
    assert "repeat" in softstack("tasks")[1].splitlines()
    assert [plugin.name for plugin in plugins.sources()] == ["repeat_task", "layer_norm"]
    assert softstack("tasks", *BOTH)[0] == 0  # named twice, loaded once


def test_an_installed_package_may_bring_plugins(softstack, tmp_path, monkeypatch, forget):
    (tmp_path / "my_tasks.py").write_bytes(REPEAT.read_bytes())
    about = tmp_path / "mine-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[softstack]\nmine = my_tasks\n")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        code, out, _ = softstack("train", "repeat", *OPTIONS)
        assert code == 0
        assert plugins.sources()[0][:2] == ("mine", "my_tasks")
    forget()
    sys.modules.pop("my_tasks")
    code, _, err = softstack("evaluate", out.split()[0])
    assert (code, "of a plugin: install the package of my_tasks" in err) == (2, True)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("TASKS = {", "cannot be loaded (SyntaxError: '{' was never closed, line 1)"),
        ("x = 1\ny = x / 0", "cannot be loaded (ZeroDivisionError: division by zero, line 2)"),
        ("x = 1", "registers nothing: give it a dictionary TASKS or MEMORIES or CONTROLLERS"),
        ("MEMORIES = ['stack']", "MEMORIES of the plugin"),
        ("from softstack.memory import MEMORIES", "must be a dictionary of its own"),
        ("MEMORIES = {'stack': 1}", "has a memory 'stack', but there is one of that name: rename yours"),
        ("CONTROLLERS = {'my-core': 1}", "'my-core' cannot be the name of a controller"),
        ("CONTROLLERS = {3: 1}", "3 cannot be the name of a controller"),
        ("class T: pass\nTASKS = {'t': T}", "is a class: give an instance, T()"),
        (
            "class T: name = 't'\nTASKS = {'t': T()}",
            "lacks inputs, outputs, alphabet, padding, loss, length,",
        ),
        ("from softstack.lab.tasks.xor import Xor\nTASKS = {'mine': Xor()}", "says that its name is 'xor'"),
        (
            "from softstack.lab.tasks.xor import Xor\n"
            "class T(Xor): alphabet = ('0', '1', 'no answer')\nTASKS = {'t': T('t')}",
            "alphabet has the symbol 'no answer': a symbol may not be empty or have a space in it",
        ),
    ],
)
def test_what_is_wrong_with_a_plugin_is_a_sentence(softstack, text, sentence):
    before = [dict(registry) for registry in (TASKS, MEMORIES, CONTROLLERS)]
    Path("mine.py").write_text(text)
    code, out, err = softstack("tasks", "--plugin", "mine.py")
    assert (code, out) == (2, "")
    assert sentence in err and f"{Path('mine.py').resolve()}" in err and "Traceback" not in err
    assert [dict(registry) for registry in (TASKS, MEMORIES, CONTROLLERS)] == before


def test_files_that_are_none(softstack):
    assert "none.py: no such file or directory" in softstack("tasks", "--plugin", "none.py")[2]
    assert "must be a Python file" in softstack("tasks", "--plugin", "mine.toml")[2]


def test_a_process_keeps_to_one_version(tmp_path):
    file = tmp_path / "mine.py"
    file.write_bytes(REPEAT.read_bytes())
    first = plugins.load(file)
    assert plugins.load(file) == first
    file.write_bytes(REPEAT.read_bytes() + b"\n")
    with pytest.raises(BadInput, match="has changed since this process loaded it"):
        plugins.load(file)
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "mine.py"
    other.write_bytes(NORMED.read_bytes())
    with pytest.raises(BadInput, match="are two plugins called mine: rename one"):
        plugins.load(other)


def test_our_own_go_through_the_same_door():
    """What softstack registers would be accepted of a plugin."""
    ours = SimpleNamespace(TASKS=dict(TASKS), MEMORIES=dict(MEMORIES), CONTROLLERS=dict(CONTROLLERS))
    assert set(plugins.checked(ours, "softstack")["TASKS"]) == set(TASKS)


def test_the_page_on_tasks_shows_the_file():
    page = (FOLDER.parent.parent / "docs" / "add" / "task.md").read_text()
    assert f"```python\n{REPEAT.read_text()}```" in page
