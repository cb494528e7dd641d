"""Every command that the README prints is run: as it is printed, or with sizes that take seconds."""

import doctest
import re
import shlex
import subprocess
from pathlib import Path

from softstack_command.app import COMMANDS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SMALL = "--train-size 20 --dev-size 5 --test-size 5 --max-epochs 1"
NETWORK, INLINE = "runs/small/seed-0", "--trials 1 --engine inline"
TABLE = {  # a command of the README's table: how it is run here, one after the other in one folder
    "softstack play": "play --no-open",
    "softstack gallery": "gallery --no-open",
    "softstack train TASK": f"train reversal --controller linear {SMALL}",
    "softstack view RUN_DIR...": f"view {NETWORK} --no-open",
    "softstack table": f"table --rows 8 {INLINE} --out runs/table1",
    "softstack evaluate RUN_DIR": f"evaluate {NETWORK}",
    "softstack sample TASK": "sample reversal -n 5",
    'softstack trace RUN_DIR "1 0 1"': f'trace {NETWORK} "1 0 1"',
    "softstack plot RUN_DIR...": f"plot {NETWORK}",
    "softstack compile MACHINE": "compile delayed_xor --length 100",
    "softstack extract RUN_DIR": f"extract {NETWORK}",
    "softstack diagnose RUN_DIR": f"diagnose {NETWORK}",
    "softstack equal A B": "equal xor delayed_xor",
    "softstack draw MACHINE": "draw parenthesis",
    "softstack tasks": "tasks",
    "softstack sweep FILE.toml": "sweep mine.toml --engine inline",
    "softstack status": "status runs/mine",
    "softstack runs": "runs runs/mine",
    "compare": 'compare "seed < 1" "seed >= 1" runs/mine',
    "softstack reindex": "reindex runs/mine",
    "softstack export RUN_DIR": f"export {NETWORK}",
    "softstack schema sweep": "schema sweep",
}
LONG = {  # these compute for minutes: here their options are read, and what they do has tests of its own
    "softstack figures": "test_cli",
    "softstack solve [TASK...]": "test_solved",
    "softstack study [TASK...]": "test_solved",
    "softstack suite": "test_suite",
    "softstack transducers": "test_transducer_table",
    "softstack bench": "test_bench",
}
ANSWERS = {"equal": (1,), "extract": (0, 1)}  # an exit code is the answer


def blocks(language):
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [body for kind, body in fences if kind == language]


def printed():
    """The commands of the table."""
    rows = re.search(r"^\| command \| \|\n\| --- \| --- \|\n((?:\|.*\n)+)", README, re.MULTILINE)[1]
    commands = [row.split("|")[1] for row in rows.splitlines()]
    return {name for cell in commands for name in re.findall(r"`([^`]+)`", cell)} | {
        name for name in re.findall(r"`(softstack [^`]+)`", rows) if "--" not in name
    }


def test_the_table_has_every_command_and_no_other():
    assert printed() == {*TABLE, *LONG}
    names = {shlex.split(command.removeprefix("softstack "))[0] for command in printed()}
    assert names == set(COMMANDS)


def test_commands_of_the_table_run(softstack):
    Path("mine.toml").write_text(
        'seeds = 2\n[condition]\ntask = "reversal"\ncontroller = "linear"\n'
        "train_size = 20\ndev_size = 5\ntest_size = 5\nmax_epochs = 1\n"
    )
    for command, line in TABLE.items():
        words = shlex.split(line)
        code, out, err = softstack(*words)
        assert code in ANSWERS.get(words[0], (0,)), f"{command}: softstack {line}\n{err}"
        assert out, f"softstack {line} prints nothing"
        if words[0] == "train":
            Path("runs/small").symlink_to(Path(out.split()[0]).parent.resolve())


def test_long_commands_explain_themselves(softstack):
    for command, tests in LONG.items():
        assert (ROOT / "tests" / f"{tests}.py").exists()
        name = command.split()[1]
        code, out, _ = softstack(name, "--help")
        assert code == 0
        assert f"Usage: softstack {name}" in out


def test_what_is_shown_with_its_output_prints_that(softstack, monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    commands = 0
    for block in blocks("console"):
        for line, expected in re.findall(r"^\$ softstack (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            code, out, err = softstack(*shlex.split(line))
            assert code == 0, err
            assert doctest.OutputChecker().check_output(expected, out, FLAGS), (
                f"{line}\n{out}\nnot\n{expected}"
            )
            commands += 1
    assert commands >= 6


def test_the_sweep_runs(softstack):
    """The block of the sweep, with three trials in the place of its 2,000."""
    (block,) = [block for block in blocks("") if "softstack sweep" in block]
    (file,) = blocks("toml")
    assert file in (ROOT / "examples" / "reversal.toml").read_text()
    Path("examples").mkdir()
    small = file.replace("seeds = 2000", "seeds = 3") + "max_epochs = 2\ntrain_size = 40\ntest_size = 20\n"
    Path("examples/reversal.toml").write_text(small)
    for line in block.splitlines():
        words = shlex.split(line, comments=True)[1:]
        words = [word.replace("1000", "2").replace("0.99", "0.01") for word in words]
        if words[0] == "sweep":
            words += ["--engine", "inline"]
        code, out, err = softstack(*words)
        assert (code, bool(out)) == (0, True), f"{line}\n{err}"


def test_make_knows_its_commands():
    """Each sets an environment up, so none is run here: what they would run is the commands tested above."""
    said = {}
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said[target] = done.stdout
    assert set(said) == {"table", "test", "view", "check", "docs"}
    assert "softstack table" in said["table"]
    assert "softstack train reversal --controller linear" in said["view"] and "softstack view" in said["view"]
    assert "pytest" in said["test"] and "pytest" in said["check"] and "sphinx-build" in said["docs"]
