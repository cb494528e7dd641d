"""Sweeps through kills, full and read-only disks, second drivers and jumping clocks: nothing is lost, nothing
half-written is ever read, and what comes out has the bytes of a sweep that nobody disturbed."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import distributed
import pytest

from softstack.errors import BadInput
from softstack.lab.runs import store
from softstack.lab.sweeps import jobs, progress
from softstack.lab.sweeps.plans import Sweep, dumps
from softstack.lab.sweeps.workers import Engine
from softstack.lab.training.conditions import Condition

FIRST = Condition(
    "reversal", "linear", "stack", train_size=100, dev_size=5, test_size=5, max_epochs=8, patience=8
)
RIVALS = replace(FIRST, task="xor", steps=75, restarts=4, halvings=2)  # which are dropped on the way
SWEEP = Sweep("mine", (FIRST, RIVALS), (0, 1, 2, 3, 4, 5))
ROUNDS = {"driver": 12, "worker": 5, "both": 5}  # at least; benchmarks/torture.py makes hundreds


def results(root):
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.glob("*/seed-*/result.json"))}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    root = tmp_path_factory.mktemp("undisturbed")
    assert jobs.run_sweep(root, SWEEP, Engine("inline")).trained == SWEEP.trials
    return results(root)


def drive(root, sweep, where):
    """A driver, as `softstack sweep` is one. It saves unfinished trials after every epoch."""
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)  # dask says much when workers are killed
    jobs.run_sweep(Path(root), sweep, Engine(where, every=0.0))


def serve(kind, file):
    """A scheduler that writes its address to a file, or a worker that reads it there."""
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)

    async def main():
        if kind == "scheduler":
            async with distributed.Scheduler(host="127.0.0.1", port=0, dashboard_address=":0") as made:
                Path(file).write_text(made.address)
                await made.finished()
        else:
            async with distributed.Worker(Path(file).read_text(), nthreads=1, host="127.0.0.1") as made:
                await made.finished()

    asyncio.run(main())


class Cluster:
    """A scheduler and two workers; a worker that was killed is replaced."""

    def __init__(self, context, folder):
        self.context, self.file, self.workers = context, folder / "address", []
        self.scheduler = self.start("scheduler")
        while not (self.file.exists() and self.file.read_text()):
            time.sleep(0.05)
        self.workers = [self.start("worker") for _ in range(2)]

    def start(self, kind):
        process = self.context.Process(target=serve, args=(kind, str(self.file)))
        process.start()
        return process

    def kill(self, number):
        self.workers[number].kill()
        self.workers[number].join()
        self.workers[number] = self.start("worker")

    def close(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.join()


def whole(root, undisturbed):
    """Every run that has its name can be read and is what it should be; how many there are."""
    for path in root.glob("*/seed-*"):
        if not path.name.endswith(".unfinished"):
            store.network(store.load(path))
    found = results(root)
    assert found.items() <= undisturbed.items()
    return len(found)


def files(root):
    """What is there at this moment, and as of when."""
    found = set()
    for folder, _, names in os.walk(root):
        for name in names:
            with suppress(FileNotFoundError):
                found.add((folder, name, os.stat(os.path.join(folder, name)).st_mtime_ns))
    return found


def wait_for_changes(root, number, driver):
    """Until files were seen to change this often, or the driver is through."""
    before, end = files(root), time.monotonic() + 300
    while number and driver.is_alive():
        assert time.monotonic() < end, "nothing happens any more"
        time.sleep(0.005)
        now = files(root)
        number, before = number - (now != before), now


@pytest.mark.parametrize("victim", ROUNDS)
def test_kills(victim, undisturbed, processes, tmp_path):
    """kill -9 after some change on disk, again and again, until sweeps have been completed in spite of it."""
    rng = random.Random(victim)
    cluster = Cluster(processes, tmp_path) if victim != "driver" else None
    where = (tmp_path / "address").read_text() if cluster else "inline"
    root, completed, seen, rounds, driver = tmp_path / "0", 0, set(), 0, None
    try:
        while rounds < ROUNDS[victim] or (completed < 1 and rounds < 10 * ROUNDS[victim]):
            rounds += 1
            if driver is None or not driver.is_alive():
                driver = processes.Process(target=drive, args=(str(root), SWEEP, where))
                driver.start()
            wait_for_changes(root, rng.choice((0, 1, 2, 5, 10, 20)), driver)
            time.sleep(rng.uniform(0, 0.05))
            if cluster:
                for number in rng.choice(((0,), (1,), (0, 1))):
                    cluster.kill(number)
            if victim != "worker":
                driver.kill()
                driver.join()
            seen.add(whole(root, undisturbed))
            if results(root) == undisturbed:
                driver.join()
                completed += 1
                root = tmp_path / str(completed)
        driver.kill()
        driver.join()
    finally:
        if cluster:
            cluster.close()
    jobs.run_sweep(root, SWEEP, Engine("inline"))
    assert results(root) == undisturbed
    assert not [p for p in root.rglob("*") if p.name.startswith(".seed-") or p.name.endswith(".unfinished")]
    assert completed >= 1
    assert len(seen) >= 2  # kills came at different points


def test_a_kill_right_after_a_trial_is_finished_leaves_nothing(undisturbed, tmp_path):
    """There its directory has its name, and what it went on from is still there."""
    jobs.run_sweep(tmp_path, SWEEP, Engine("inline"))
    leftover = store.place(tmp_path, FIRST, 3).with_name("seed-3.unfinished")
    other = leftover.with_name("seed-77.unfinished")  # is not finished
    for path in (leftover, other):
        path.mkdir()
        (path / "trainer.safetensors").write_bytes(b"as it was")
    jobs.run_sweep(tmp_path, SWEEP, Engine("inline"))
    assert not leftover.exists() and other.exists()
    assert results(tmp_path) == undisturbed


@pytest.mark.parametrize("where", ["inline", "local"])
def test_a_full_disk(where, undisturbed, small_disk):
    disk = small_disk("200k")
    (disk / "ballast").write_bytes(bytes(100_000))
    with pytest.raises(OSError, match="No space left on device"):
        jobs.run_sweep(disk, SWEEP, Engine(where, workers=1, every=0.0))
    assert whole(disk, undisturbed) < SWEEP.trials
    subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
    jobs.run_sweep(disk, SWEEP, Engine("inline"))
    assert results(disk) == undisturbed


def test_a_read_only_run_root(undisturbed, small_disk, tmp_path):
    disk = small_disk("200k")
    half = SWEEP._replace(seeds=(0, 1))
    jobs.run_sweep(disk, half, Engine("inline"))
    file = tmp_path / "mine.toml"
    file.write_bytes(dumps(SWEEP))
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    said = subprocess.run(
        [sys.executable, "-m", "softstack", "sweep", file, "--out", disk, "--engine", "inline"],
        capture_output=True,
        text=True,
    )
    assert said.returncode == 2
    assert "read-only file system; nothing already on disk was changed" in " ".join(said.stderr.split())
    assert "Traceback" not in said.stderr
    assert whole(disk, undisturbed) == 4


def test_what_was_damaged_is_said_and_made_again(undisturbed, tmp_path):
    jobs.run_sweep(tmp_path, SWEEP, Engine("inline"))
    paths = sorted(tmp_path.glob("*/seed-*"))
    for path, name in zip(paths, store.FILES, strict=False):
        content = (path / name).read_bytes()
        (path / name).write_bytes(content[: len(content) // 2])
    said = []
    assert jobs.run_sweep(tmp_path, SWEEP, Engine("inline"), said.append).trained == len(store.FILES)
    assert len(said) == len(store.FILES)
    assert all(sentence.endswith("it is trained again") for sentence in said)
    assert results(tmp_path) == undisturbed


def test_two_drivers_on_the_same_root(undisturbed, processes, tmp_path):
    long = SWEEP._replace(conditions=(replace(FIRST, max_epochs=100, patience=100), FIRST))
    driver = processes.Process(target=drive, args=(str(tmp_path), long, "inline"))
    driver.start()
    while not list(tmp_path.glob("*/*.unfinished")):
        time.sleep(0.01)
    os.kill(driver.pid, signal.SIGSTOP)  # it is not through before we have looked
    with pytest.raises(
        BadInput, match="is being trained by another softstack at this moment: wait until it is"
    ):
        jobs.run_sweep(tmp_path, SWEEP, Engine("inline"))  # FIRST is in both
    (standing,) = (progress.read(plan) for plan in progress.plans(tmp_path))
    assert standing.done < standing.trials == 12
    other = SWEEP._replace(conditions=SWEEP.conditions[1:])
    assert jobs.run_sweep(tmp_path, other, Engine("inline")).trained == 6  # what nobody else works on is fine
    os.kill(driver.pid, signal.SIGCONT)
    driver.join()
    assert driver.exitcode == 0
    assert jobs.run_sweep(tmp_path, SWEEP, Engine("inline")).trained == 0
    assert undisturbed.items() <= results(tmp_path).items()


JUMPS = """
import time
real = time.time
began = time.monotonic()
def time_that_jumps():
    passed = time.monotonic() - began
    return real() + (0 if passed < 2 else 86400 if passed < 5 else -2 * 86400)
time.time = time_that_jumps
"""


def test_a_clock_that_jumps(undisturbed, tmp_path):
    """A day ahead after two seconds, and two days back after five, in the driver and in its workers."""
    (tmp_path / "sitecustomize.py").write_text(JUMPS)
    (tmp_path / "mine.toml").write_bytes(dumps(SWEEP))
    made = subprocess.run(
        [
            sys.executable,
            "-m",
            "softstack",
            "sweep",
            "mine.toml",
            "--out",
            "root",
            "--checkpoint",
            "0",
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        timeout=300,
    )
    assert made.returncode == 0, made.stderr
    assert results(tmp_path / "root") == undisturbed
    (standing,) = (progress.read(plan) for plan in progress.plans(tmp_path / "root"))
    assert (standing.done, standing.running, standing.failed, standing.missing) == (12, 0, 0, 0)


def test_status_while_a_sweep_runs_and_after_it_was_killed(processes, tmp_path):
    sweep = SWEEP._replace(conditions=(replace(FIRST, train_size=2000, max_epochs=100, patience=100),))
    driver = processes.Process(target=drive, args=(str(tmp_path), sweep, "inline"))
    driver.start()
    while not list(tmp_path.glob("sweeps/*.json")):
        time.sleep(0.05)
    (plan,) = progress.plans(tmp_path)
    assert json.loads(plan.with_suffix(".json").read_text())["process"] == driver.pid
    standing = progress.read(plan)
    assert (standing.trials, standing.running, standing.done) == (6, 6, 0)
    os.kill(driver.pid, signal.SIGKILL)
    driver.join()
    standing = progress.read(plan)
    assert (standing.running, standing.missing, standing.rate) == (0, 6, None)


def is_there(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_ctrl_c_at_a_terminal(tmp_path):
    """It goes to the driver and to its workers alike; one sentence is said, by one of them, and all end."""
    long = SWEEP._replace(conditions=(replace(FIRST, train_size=2000, max_epochs=100, patience=100),))
    (tmp_path / "mine.toml").write_bytes(dumps(long))
    command = [sys.executable, "-m", "softstack", "sweep", "mine.toml", "--out", "root", "--checkpoint", "0"]
    driver = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not list(tmp_path.glob("root/*/*.unfinished")) and driver.poll() is None:
        time.sleep(0.05)
    os.killpg(driver.pid, signal.SIGINT)
    _, said = driver.communicate(timeout=300)
    assert driver.returncode == 130
    assert said.split("\n") == [
        "softstack: stopped; trials that are finished are kept, and the same command goes on from there",
        "",
    ]
    end = time.monotonic() + 60
    while is_there(driver.pid) and time.monotonic() < end:  # the last may be ending still
        time.sleep(0.1)
    assert not is_there(driver.pid)
