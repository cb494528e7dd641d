"""Bad input and bad moments: a sentence and an exit code, and no traceback."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import softstack as ss
from softstack.errors import BadInput
from softstack_command import interrupts

FEW = ("--train-size", "20", "--dev-size", "5", "--test-size", "5", "--max-epochs", "1")
COMMAND = [sys.executable, "-c", "import softstack_command; softstack_command.main()"]  # as it is installed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("train", "--config", "deep.toml"), "deep.toml is not TOML (maximum recursion depth exceeded"),
        (("train", "--config", "pipe.toml"), "pipe.toml is not a file"),
        (("schema",), "name a kind of file: condition, for train --config, or sweep"),
        (("train", "xor", *FEW, "--hidden-size", "10000000"), "there is not enough memory for sizes"),
        (("train", "xor", *FEW, "--hidden-size", "10000000000"), "no network has sizes as large as"),
        (("train", "xor", *FEW, "--patience", str(2**63)), "patience must be at most 1,000,000,000,000; got"),
        (("train", "xor", *FEW, "--restarts", "99999999"), "restarts must be at most 10,000; got 99999999"),
        (("train", "xor", *FEW, "--batch-size", str(10**20)), "batch_size must be at most"),
        (("train", "xor", *FEW, "--num-layers", str(10**8)), "num_layers must be at most 10,000"),
        (("train", "xor", "--train-size", str(10**12)), "there is not enough memory for sizes"),
        (("runs", "--where", " or ".join(["seed=1"] * 1100)), "--where has 10996 characters"),
        (("runs", "--where", "or ".join(["seed=1 "] * 1050)[:9996]), "--where is no expression"),
        (("runs", "--where", "(" * 2000 + "seed=1" + ")" * 2000), "--where is no expression"),
    ],
)
def test_refusals(softstack, arguments, sentence):
    Path("deep.toml").write_text("a = " + "[" * 5000)
    os.mkfifo("pipe.toml")
    Path("runs").mkdir()
    code, out, err = softstack(*arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert "Traceback" not in err


@pytest.mark.parametrize("option", ["pop-bias", "push-bias", "weight-width", "learning-rate", "hidden-noise"])
def test_numbers_that_float32_does_not_hold(softstack, option):
    """They are finite, and weights that they make are not: such a network diverges."""
    code, out, err = softstack("train", "xor", *FEW, f"--{option}", "1e300")
    assert (code, out.count("  diverged\n"), err.count("diverged and was stopped")) == (0, 1, 1)


NOBODY = """
import json, os, sys
import softstack_command

COMMANDS = [["runs", "."], ["runs", ".", "--format", "csv"], ["tasks"]]
sys.stdout = open(os.devnull, "w")
for command in COMMANDS:  # import what they need, once for all
    try:
        softstack_command.main(command)
    except SystemExit:
        pass
sys.stdout = sys.__stdout__
outcomes = []
for closed in json.loads(sys.argv[1]):  # by descriptor, what it is connected to
    for command in COMMANDS:
        with open("said", "w+") as said:
            child = os.fork()
            if not child:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.dup2(said.fileno(), 2)
                for number, target in closed.items():
                    if target:
                        os.dup2(os.open(target, os.O_WRONLY), int(number))
                    else:  # Python begins without that stream
                        os.close(int(number))
                        setattr(sys, {"1": "stdout", "2": "stderr"}[number], None)
                softstack_command.main(command)
                sys.exit()  # as any process ends
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said.seek(0)
            outcomes.append([closed, command, code, said.read()])
print(json.dumps(outcomes))
"""


def test_output_that_nobody_takes(tmp_path):
    closed = [{"1": ""}, {"2": ""}, {"1": "", "2": ""}, {"1": "/dev/full"}]
    command = [sys.executable, "-c", NOBODY, json.dumps(closed)]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    outcomes = json.loads(process.stdout)
    assert len(outcomes) == 12
    for streams, command, code, said in outcomes:
        assert "Traceback" not in said, (streams, command)
        if streams == {"1": "/dev/full"}:
            assert (code, said.startswith("softstack: ")) == (2, True), (command, said)
        else:
            assert (code, said) == (0, ""), (streams, command)


def test_signs_that_a_terminal_does_not_have(tmp_path):
    """ε and the lines of tables, on a terminal that knows Latin letters alone."""
    text = "start q\naccept q\nq -> q   a : b\nq -> r   ε : ε , ε -> s\nr -> q   c : d , s -> ε"
    (tmp_path / "machine.pdt").write_text("start q\nq -> q   a : é\nq -> r   → : →\nr -> q   b : ε")
    commands = [["equal", "machine.pdt", "machine.pdt"], ["compile", "machine.pdt"], ["train", text]]
    script = (
        "import json, sys, softstack_command\n"
        "for command in json.loads(sys.argv[1]):\n"
        "    try: softstack_command.main(command)\n"
        "    except SystemExit: pass\n"
        "print('ε é')"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    process = [sys.executable, "-c", script, json.dumps(commands)]
    said = subprocess.run(process, cwd=tmp_path, capture_output=True, env=environment)
    assert b"Traceback" not in said.stderr, said.stderr
    assert said.stdout.endswith(b"\\u03b5 \xe9\n")


def test_forward_mode_is_refused_where_a_kernel_runs():
    v, u, d = torch.randn(2, 5, 3), torch.rand(2, 5), torch.rand(2, 5)
    sizes = dict(hidden_size=4, memory_size=2)
    modules = {
        "auto": [ss.StackRNN(3, **sizes), ss.BufferedStackRNN(3, output_size=3, **sizes)],
        "reference": [ss.StackRNN(3, backend="reference", **sizes)],
    }

    def tangent(function, x):
        return torch.func.jvp(function, (x,), (torch.ones_like(x),))[1]

    for function in (lambda v: ss.stack_scan(v, u, d)[0], *(lambda x, m=m: m(x)[0] for m in modules["auto"])):
        with pytest.raises(BadInput, match=r"no forward-mode derivatives .* use backend='reference'"):
            tangent(function, v)
        with pytest.raises(BadInput, match="no forward-mode derivatives"):
            torch.func.hessian(lambda x, f=function: f(x).sum())(v)  # jvp of a gradient
    y = tangent(lambda v: ss.stack_scan(v, u, d, backend="reference")[0], v)
    expected = ss.stack_scan(torch.ones_like(v), u, d)[0]  # what is read is linear in v
    torch.testing.assert_close(y, expected)
    assert tangent(lambda x: modules["reference"][0](x)[0], v).shape == (2, 5, 4)


SWEEP = '[condition]\ntask = "xor"\ntrain_size = 2000\nmax_epochs = 500\npatience = 500\n'


def test_ctrl_c_at_any_moment_of_the_start(tmp_path):
    """While everything is imported, while workers start, and after: one sentence, and no process stays."""
    (tmp_path / "mine.toml").write_text("seeds = 4\n" + SWEEP)
    began, states = time.monotonic(), []

    def driver():
        return subprocess.Popen(
            [*COMMAND, "sweep", "mine.toml", "--out", "root", "--workers", "2"],
            cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    first = driver()
    while not list(tmp_path.glob("root/sweeps/*.toml")) and first.poll() is None:
        time.sleep(0.05)
    whole = time.monotonic() - began  # from the beginning until workers start
    os.killpg(first.pid, signal.SIGINT)
    states.append((first.communicate(timeout=120)[1], first.returncode))
    for share in (0.4, 0.9, 1.2):
        process = driver()
        time.sleep(share * whole)
        os.killpg(process.pid, signal.SIGINT)
        states.append((process.communicate(timeout=120)[1], process.returncode))
    said = {state for state in states if state[0]}
    assert said == {(f"{interrupts.SENTENCE}\n", 130)}
    assert {code for _, code in states} <= {130, -signal.SIGINT}  # before Python itself is there


def test_ctrl_c_waits_until_it_is_asked_for():
    steps = []

    def work():
        with interrupts.later() as stop_if_asked:
            stop_if_asked()
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            steps.append("went on")
            stop_if_asked()
            steps.append("never")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["went on"]


def test_ctrl_c_that_nobody_asks_for_takes_effect_at_the_end():
    steps = []

    def work():
        with interrupts.later():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            steps.append("went on")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["went on"]


@pytest.mark.parametrize("when", [0.1, 1])
def test_ctrl_c_ends_processes_without_a_word(when, tmp_path):
    """While they start, and while they work."""
    (tmp_path / "work.py").write_text(
        "import sys, time\n"
        "from functools import partial\n"
        "from softstack_command import forks\n"
        "if __name__ == '__main__':\n"
        "    print('here', flush=True)\n"
        "    try:\n"
        "        list(forks.results([partial(time.sleep, 60)] * 3, 2))\n"
        "    except KeyboardInterrupt:\n"
        "        sys.exit('stopped')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "work.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout.readline() == "here\n"
    time.sleep(when)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=50)  # it ends when the last process closes the stream
    assert said == "stopped\n"


def test_ctrl_c_a_second_time_ends_everything_at_once():
    script = (
        "import os, signal, time; from softstack_command import interrupts\n"
        "with interrupts.later():\n"
        "    for _ in range(2): os.kill(os.getpid(), signal.SIGINT); time.sleep(0.01)\n"
        "    print('never')"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (said.returncode, said.stdout, said.stderr) == (130, "", f"{interrupts.SENTENCE}\n")


def test_a_stream_may_be_anything(monkeypatch):
    from softstack_command import _keep_streams

    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    _keep_streams()
    assert sys.stdout is stream
