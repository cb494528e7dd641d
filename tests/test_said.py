"""What commands tell a person: what was done, where it is, and examples that can be pasted."""

import inspect
import json
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from softstack.lab.sweeps import plans
from softstack_command.app import CLI, COMMANDS

SIZES = ["--train-size", "20", "--dev-size", "5", "--test-size", "5"]
SMALL = ["--controller", "linear", "--max-epochs", "1", *SIZES]


def test_training_what_is_there_says_so(softstack):
    assert softstack("train", "xor", *SMALL)[2] == ""
    first = softstack("train", "xor", *SMALL)
    assert first[2] == "softstack: nothing was trained: 1 trial was there already\n"
    assert "seed-0  dev" in first[1]
    code, _, err = softstack("train", "xor", *SMALL, "--trials", "3")
    assert (code, err) == (0, "softstack: 2 trials were trained, 1 there already\n")
    assert "nothing was trained: 3 trials were" in softstack("train", "xor", *SMALL, "--trials", "3")[2]


def test_resets_of_a_controller_without_a_state_are_named(softstack):
    code, _, err = softstack("train", "xor", *SMALL, "--state-reset", "0.5")
    sentence = "state_reset and hidden_noise do nothing for a controller without a state, such as linear"
    assert (code, err) == (0, f"softstack: {sentence}\n")
    small = [*SIZES, "--max-epochs", "1"]
    assert softstack("train", "xor", *small, "--controller", "rnn", "--state-reset", "0.5")[2] == ""


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_examples_in_the_help_are_whole_lines(command, softstack, monkeypatch):
    """At 80 columns too, so that they can be pasted."""
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = softstack(command, "--help")
    assert code == 0
    module, name = COMMANDS[command][0].split(":")
    function = getattr(import_module(f"{CLI}.{module}"), name)
    shown = [line.strip() for line in out.splitlines()]
    written = [line.strip() for line in inspect.getdoc(function).splitlines()]
    for line in written:
        if line.startswith("softstack "):
            assert line in shown


def test_runs_and_sweeps_in_folders_are_found_and_their_paths_can_be_pasted(softstack):
    for out in ("runs", "runs/mine", "runs/deep/er"):
        softstack("train", "xor", *SMALL, "--out", out)
    Path("runs/mine/seed-7").mkdir()  # not that of a condition
    code, out, _ = softstack("runs")
    assert code == 0 and "3 runs" in out
    pasted = re.findall(r"runs/\S*seed-0", out)
    assert len(pasted) == 3 and {Path(path).parts[1] for path in pasted} >= {"mine", "deep"}
    for path in pasted:
        assert softstack("evaluate", path)[0] == 0
    rows = json.loads(softstack("runs", "--format", "json")[1])
    assert sorted(row["path"] for row in rows) == sorted(pasted)
    assert len({row["condition"] for row in rows}) == 1
    assert "trials" in softstack("compare", rows[0]["condition"], "seed = 0")[1]
    code, out, _ = softstack("status")
    assert code == 0
    standings = json.loads(softstack("status", "--json")[1])
    assert sorted(standing["root"] for standing in standings) == ["runs", "runs/deep/er", "runs/mine"]
    assert all(re.search(rf"{root} +│", out) for root in ("runs", "runs/mine", "runs/deep/er"))


def test_a_narrow_terminal_cuts_no_path(softstack, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    softstack("train", "xor", *SMALL)
    (path,) = map(str, Path("runs").glob("*/seed-0"))
    assert path in softstack("runs")[1]


def test_extract_names_its_files_and_whose_accuracy_it_is(softstack):
    run = softstack("compile", "delayed_xor", "--unbuffered")[1].split()[0]
    code, out, _ = softstack("extract", run, "--strings", "100")
    assert code == 0
    assert re.search(r"1x length .* accuracy of the machine 100.0%", out)
    written = re.search(r"^Written: (.*)$", out, re.MULTILINE)[1].split(", ")
    assert [Path(file).name for file in written] == ["extracted.json", "extracted.pdt", "extracted.svg"]
    assert all(Path(file).is_file() for file in written)


def test_a_rule_in_the_help_is_on_one_line(softstack, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for command in ("compile", "draw"):
        assert "q -> r   x : y , s -> t" in softstack(command, "--help")[1]


def test_the_sweep_in_the_help_is_valid_at_80_columns(softstack, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = softstack("sweep", "--help")
    assert code == 0
    text = out[out.index(" # 0 to 19") : out.index("╭─ Arguments")]
    plan = plans.parse(tomllib.loads(text), "help", "the help")
    assert (len(plan.conditions), len(plan.seeds)) == (100, 20)
    assert {condition.controller for condition in plan.conditions} == {"linear", "lstm"}


def test_the_xor_of_the_help_is_learnt(softstack, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    said = softstack("train", "--help")[1]
    (command,) = re.findall(r"softstack (train xor .*?[^\\ ]) *\n", said, re.DOTALL)
    code, out, _ = softstack(*command.replace("\\", "").split())
    tests = [float(share) for share in re.findall(r"test ([\d.]+)%", out)]
    assert code == 0 and len(tests) == 6
    assert max(tests) > 95 > min(tests)  # as it says: some learn it, and not all


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes(softstack, shell):
    code, _, _ = softstack("--install-completion", "--shell", shell, "--output", f"there/{shell}")
    text = Path(f"there/{shell}").read_text()
    assert code == 0
    for word in ("train", "transducers", "hidden-size", "plugin"):
        assert word in text


def test_bash_completes_commands_and_options(softstack, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    softstack("--install-completion", "--shell", "bash", "--output", "completion")
    script = """
        source ./completion
        COMP_WORDS=(softstack tra) COMP_CWORD=1; _softstack; echo "${COMPREPLY[@]}"
        COMP_WORDS=(softstack train --hid) COMP_CWORD=2; _softstack; echo "${COMPREPLY[@]}"
    """
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout
    commands, options = (set(line.split()) for line in said.splitlines())
    assert commands == {"train", "trace", "transducers"}
    assert options == {"--hidden-size", "--hidden-noise"}


@pytest.mark.parametrize("package", ["cyclopts", "docstring_parser", "rich", "tomli_w"])
def test_without_what_the_command_needs_there_is_a_sentence(package):
    code = f"import sys; sys.modules[{package!r}] = None; import softstack_command; "
    code += "softstack_command.main(['train', 'xor'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("softstack: ") and "pip install 'softstack[lab]'" in done.stderr
    assert "Traceback" not in done.stderr and package in done.stderr
