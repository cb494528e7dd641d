"""Run directories: whole or not there, read back as written, and every damage said in a sentence."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from softstack.errors import BadInput
from softstack.lab.runs import store, unfinished
from softstack.lab.sweeps import jobs
from softstack.lab.training import checkpoints
from softstack.lab.training.conditions import NUMERICS, Condition
from softstack.lab.training.train import train

SMALL = Condition("reversal", "linear", "stack", train_size=20, dev_size=5, test_size=5, max_epochs=2)


@pytest.fixture(scope="module")
def trial():
    return train(SMALL, [3])[0]


def test_a_trial_comes_back_as_it_was(trial, tmp_path):
    path = store.save(tmp_path, trial)
    assert path == tmp_path / SMALL.name / "seed-3"
    assert sorted(p.name for p in path.iterdir()) == sorted(store.FILES)
    assert [p.name for p in path.parent.iterdir()] == ["seed-3"]  # no temporary left
    run = store.load(path)
    assert (run.condition, run.seed) == (SMALL, 3)
    assert run.result == {
        "condition": SMALL.name,
        "seed": 3,
        "epochs": 2,
        "dev": trial.dev,
        "test": trial.test,
        "dev_loss": trial.dev_loss,
    }
    assert run.epochs == trial.epochs
    network = store.network(run)
    for name, p in network.named_parameters():
        assert torch.equal(p, trial.weights[name])


def test_result_has_the_same_bytes_when_a_trial_is_run_again(trial, tmp_path):
    again = train(SMALL, [3])[0]
    files = [store.save(tmp_path / name, one) for name, one in (("a", trial), ("b", again))]
    for name in ("config.toml", "metrics.jsonl", "model.safetensors", "result.json"):
        assert (files[0] / name).read_bytes() == (files[1] / name).read_bytes()


def test_a_finished_trial_is_not_written_again(trial, tmp_path):
    path = store.save(tmp_path, trial)
    before = (path / "result.json").stat().st_mtime_ns
    store.save(tmp_path, trial._replace(dev=0.0))
    assert (path / "result.json").stat().st_mtime_ns == before


def test_what_is_half_there_is_replaced(trial, tmp_path):
    for damage in (
        lambda p: (p / "model.safetensors").unlink(),
        lambda p: (p / "result.json").write_text("{}"),
    ):
        path = store.save(tmp_path, trial)
        damage(path)
        assert not store.finished(tmp_path, SMALL, 3)
        store.save(tmp_path, trial)
        assert store.finished(tmp_path, SMALL, 3)
    assert len(list(path.parent.glob(".damaged-*/seed-3"))) == 2  # put aside, not deleted


TURNS = 10


def save_again_and_again(root, pipe):
    """In processes one after the other, of which each saves until it is killed."""
    (trial,) = train(replace(SMALL, max_epochs=1, train_size=10), [0])
    for turn in range(TURNS):
        if os.fork() == 0:
            for n in range(1000 * turn, 1000 * turn + 1000):
                store.save(root, trial._replace(seed=n))
                pipe.send(os.getpid())
            os._exit(0)
        os.wait()
        pipe.send("gone")


def test_a_kill_leaves_whole_directories_or_none(processes, tmp_path):
    """kill -9 at random moments of a process that does nothing but save."""
    rng = random.Random(0)
    ours, theirs = processes.Pipe()
    saver = processes.Process(target=save_again_and_again, args=(tmp_path, theirs))
    saver.start()
    for turn in range(TURNS):
        for _ in range(rng.randint(1, 5)):
            process = ours.recv()
        time.sleep(rng.uniform(0, 0.02))
        os.kill(process, signal.SIGKILL)
        while ours.recv() != "gone":
            pass
        for path in tmp_path.glob("*/seed-*"):
            run = store.load(path)
            store.network(run)
            assert run.seed == int(path.name.removeprefix("seed-"))
            assert run.seed < 1000 * (turn + 1)
    saver.join()
    assert saver.exitcode == 0
    turns = {int(path.name.removeprefix("seed-")) // 1000 for path in tmp_path.glob("*/seed-*")}
    assert turns == set(range(TURNS))


@pytest.mark.parametrize("name", store.FILES)
def test_truncated_at_every_offset(name, trial, tmp_path):
    """Cut anywhere, a file is told from a whole one. What a last newline ends can do without it."""
    path = store.save(tmp_path, trial)
    content = (path / name).read_bytes()
    whole = store.load(path)
    for offset in range(len(content)):
        (path / name).write_bytes(content[:offset])
        if name in ("result.json", "provenance.json") and content[offset:] == b"\n":
            assert store.load(path) == whole
        else:
            with pytest.raises(BadInput, match=r"train it again|it was damaged") as said:
                store.load(path)
            assert str(path) in str(said.value)
            assert not store.finished(tmp_path, SMALL, 3)
    store.save(tmp_path, trial)
    assert store.load(path)._replace(provenance={}) == whole._replace(provenance={})


def test_every_bit_of_what_is_hashed_counts(trial, tmp_path):
    path = store.save(tmp_path, trial)
    for name in store.HASHED:
        content = (path / name).read_bytes()
        for offset in range(0, len(content), 5):
            (path / name).write_bytes(content[:offset] + bytes([content[offset] ^ 1]) + content[offset + 1 :])
            with pytest.raises(BadInput):
                store.load(path)
        (path / name).write_bytes(content)
    assert store.load(path).seed == 3


def test_an_unfinished_trial_comes_back(trial, tmp_path):
    assert unfinished.begun(tmp_path, SMALL, 3) is None
    seen = []
    train(SMALL, [3], keep=seen.append, every=0)
    unfinished.keep(tmp_path, SMALL, seen[0])
    path = tmp_path / SMALL.name / "seed-3.unfinished"
    assert sorted(p.name for p in path.iterdir()) == ["config.toml", "metrics.jsonl", "trainer.safetensors"]
    assert len((path / "metrics.jsonl").read_text().splitlines()) == 1
    assert checkpoints.dumps(unfinished.begun(tmp_path, SMALL, 3)) == checkpoints.dumps(seen[0][3])
    assert not store.finished(tmp_path, SMALL, 3)
    content = (path / "trainer.safetensors").read_bytes()
    for offset in range(0, len(content), 3):
        (path / "trainer.safetensors").write_bytes(content[:offset])
        with pytest.raises(BadInput, match="it was damaged"):
            unfinished.begun(tmp_path, SMALL, 3)
    (path / "trainer.safetensors").write_bytes(content + bytes(1_000_000))
    with pytest.raises(BadInput, match=r"should have .* at most: it was damaged"):
        unfinished.begun(tmp_path, SMALL, 3)
    (network,) = seen[0][3]
    over = network._replace(epochs=trial.epochs, steps=2 * network.steps)
    unfinished.keep(tmp_path, SMALL, {3: (over,)})
    with pytest.raises(BadInput, match="whose training was over"):
        unfinished.begun(tmp_path, SMALL, 3)
    assert unfinished.resumable(tmp_path, SMALL, 3) is None
    store.save(tmp_path, trial)
    assert [p.name for p in path.parent.iterdir()] == ["seed-3"]


def test_who_comes_second_leaves_the_first(trial, tmp_path):
    """Two who finish the same trial at once: rename decides, and the loser's copy goes."""
    path = store.save(tmp_path, trial)
    before = (path / "provenance.json").read_bytes()
    made = tmp_path / SMALL.name / ".seed-3-other"
    made.mkdir()
    for name, content in store.files(trial).items():
        (made / name).write_bytes(content)
    store._into_place(tmp_path, SMALL, 3, made)
    assert (path / "provenance.json").read_bytes() == before


def test_what_a_kill_left_is_swept_up(trial, tmp_path):
    path = store.save(tmp_path, trial)
    (path.parent / ".seed-4-half").mkdir()
    (path.parent / ".seed-4-half" / "config.toml").write_text("softst")
    store.sweep_up(tmp_path, [SMALL])
    assert [p.name for p in path.parent.iterdir()] == ["seed-3"]


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("config.toml", f"numerics = {NUMERICS}", "numerics = 99", "was made by version 99 of the numerics"),
        ("config.toml", "seed = 3", "", "cannot be read .*seed.*: it was damaged"),
        ("config.toml", "seed = 3", "seed = 4", "one trial and the result of another"),
        ("config.toml", "buffered = false\n", "", "config.toml is not what was written"),
        ("result.json", '"seed": 3', '"seed": 4', "one trial and the result of another"),
        ("result.json", '"dev": 0', '"dev": 7', "dev is 7"),
        ("metrics.jsonl", "dev", "div", "is not what was written"),
        (
            "config.toml",
            "hidden_size",
            "hidden_sise",
            "unknown key .*'hidden_sise': did you mean 'hidden_size'",
        ),
        ("config.toml", 'task = "reversal"', 'task = "reverse"', "unknown task 'reverse'"),
        ("config.toml", "memory_size = 2", "memory_size = 3", "one trial and the result of another"),
        ("config.toml", "hidden_size = 10", f"hidden_size = {10**17}", "must be at most 1,000,000,000,000"),
        ("result.json", "{", "[", "cannot be read"),
    ],
)
def test_damage_is_said_in_a_sentence(name, old, new, message, trial, tmp_path):
    path = store.save(tmp_path, trial)
    text = (path / name).read_text()
    assert old in text
    (path / name).write_text(text.replace(old, new, 1))
    with pytest.raises(BadInput, match=message):
        store.load(path)


def test_what_is_not_a_run_directory(trial, tmp_path):
    with pytest.raises(BadInput, match="is not a run directory"):
        store.load(tmp_path / "nowhere")
    store.save(tmp_path, trial)
    with pytest.raises(BadInput, match=r"is not a whole run directory.*name the directory of one trial"):
        store.load(tmp_path / SMALL.name)


def test_a_header_that_lies_about_its_size_takes_no_memory(trial, tmp_path):
    path = store.save(tmp_path, trial)
    run = store.load(path)
    header = b'{"cell.heads.weight":{"dtype":"F32","shape":[9999999999,9999999],"data_offsets":[0,4]}}'
    (path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0\0\0")
    with pytest.raises(BadInput, match=r"model.safetensors is not what was written"):
        store.load(path)
    for lie in (header, header.replace(b"[9999999999,9999999]", b"[1]"), header.replace(b"F32", b"F64")):
        (path / "model.safetensors").write_bytes(len(lie).to_bytes(8, "little") + lie + b"\0\0\0\0")
        with pytest.raises(BadInput, match=r"model.safetensors .* train it again"):
            store.network(run)


def test_a_full_disk_harms_nothing(trial, small_disk):
    disk = small_disk("64k")
    saved = []

    def fill():
        for seed in range(100):
            saved.append(store.save(disk, trial._replace(seed=seed)))

    with pytest.raises(OSError, match="No space left on device"):
        fill()
    assert saved
    runs = sorted(disk.glob("*/seed-*"))
    assert runs == sorted(saved)
    for path in runs:
        assert store.network(store.load(path))
    assert not [p for p in (disk / SMALL.name).iterdir() if p.name.startswith(".")]


def test_a_read_only_disk_harms_nothing(trial, small_disk):
    disk = small_disk("64k")
    path = store.save(disk, trial)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with pytest.raises(OSError, match="Read-only file system"):
        store.save(disk, trial._replace(seed=9))
    assert store.load(path).seed == 3


OLD = Path(__file__).parent / "data" / "runs-0.1"  # as the code at 141a47f wrote them
GRU = Condition("reversal", "gru", hidden_size=3, train_size=20, dev_size=5, test_size=5, max_epochs=3)
XOR = Condition(
    "xor", "linear", memory_size=3, buffered=True, steps_per_symbol=2, discard_first=True, train_size=20,
    dev_size=5, test_size=5, learning_rate=0.05, max_epochs=2,
)  # fmt: skip


@pytest.fixture
def old(tmp_path):
    shutil.copytree(OLD, tmp_path / "old")
    return tmp_path / "old"


@pytest.mark.parametrize(
    ("condition", "seed", "name"),
    [(GRU, 3, "reversal-gru-stack-941f442d"), (XOR, 0, "xor-buffered-linear-stack-e3f27273")],
)
def test_a_run_of_softstack_0_1_is_a_run(condition, seed, name, old):
    """It is found by its condition, says what it said, and is what this version trains, to the bit."""
    path = store.place(old, condition, seed)
    assert path == old / name / f"seed-{seed}"
    assert store.finished(old, condition, seed)
    run = store.load(path)
    (trial,) = train(condition, [seed])
    assert (run.condition, run.seed, run.epochs) == (condition, seed, trial.epochs)
    assert (run.result["dev"], run.result["test"]) == (trial.dev, trial.test)
    for key, weight in store.network(run).state_dict().items():
        assert torch.equal(weight, trial.weights[key])
    before = sorted(old.rglob("*"))
    assert store.save(old, trial) == path  # it is there
    assert sorted(old.rglob("*")) == before


def test_new_trials_join_those_of_softstack_0_1(old):
    """In the folder that there is; an unfinished trial goes on from where it was."""
    (trial,) = train(GRU, [5])
    assert store.save(old, trial).parent.name == "reversal-gru-stack-941f442d"
    assert store.load(store.place(old, GRU, 5)).result["condition"] == GRU.name
    begun = unfinished.begun(old, GRU, 4)
    assert [len(network.epochs) for network in begun] == [1]
    (resumed,), (whole,) = train(GRU, [4], begun=[begun]), train(GRU, [4])
    assert resumed.epochs == whole.epochs
    assert all(torch.equal(weight, whole.weights[name]) for name, weight in resumed.weights.items())
    store.save(old, resumed)
    assert sorted(p.name for p in (old / "reversal-gru-stack-941f442d").iterdir()) == [
        "seed-3", "seed-4", "seed-5",
    ]  # fmt: skip
    (old / GRU.name).mkdir()  # and from two folders, as after copying runs together
    assert [store.finished(old, GRU, seed) for seed in (3, 4, 5, 6)] == [True, True, True, False]
    assert store.place(old, GRU, 6).parent.name == GRU.name


def test_commands_take_runs_of_softstack_0_1(old, softstack):
    code, out, _ = softstack("evaluate", str(old / "reversal-gru-stack-941f442d" / "seed-3"), "--json")
    assert (code, json.loads(out)["accuracy"]) == (0, 0.5)
    code, out, _ = softstack("reindex", "old")
    assert (code, out) == (0, "old/index.sqlite: 2 runs; 0 directories cannot be read\n")
    code, out, _ = softstack("runs", "old", "--format", "json", "--sort", "seed")
    assert [(row["condition"], row["epochs"]) for row in json.loads(out)] == [
        ("xor-buffered-linear-stack-e3f27273", 2),
        ("reversal-gru-stack-941f442d", 3),
    ]
    assert softstack("view", str(old / "xor-buffered-linear-stack-e3f27273" / "seed-0"), "--no-open")[0] == 0
    assert jobs.missing(old, GRU, (3, 4)) == (4,)  # so that no command trains 3 again


def test_damage_to_a_run_of_softstack_0_1_is_told(old):
    path = store.place(old, GRU, 3)
    text = (path / "config.toml").read_text()
    (path / "config.toml").write_text(text.replace("patience = 5", "patience = 6"))
    with pytest.raises(BadInput, match="one trial and the result of another"):
        store.load(path)
    (path / "config.toml").write_text(text)
    content = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(content[:-1] + b"x")
    with pytest.raises(BadInput, match="is not what was written"):
        store.load(path)


def test_a_field_that_a_file_does_not_have_takes_its_default(trial, tmp_path):
    """As a run of today will be read when there are more options."""
    path = store.save(tmp_path, trial)
    text = (path / "config.toml").read_text().replace("buffered = false\n", "")
    result = json.loads((path / "result.json").read_text())
    result["sha256"]["config.toml"] = store.digest(text.encode())
    (path / "config.toml").write_text(text)
    (path / "result.json").write_text(json.dumps(result))
    assert store.load(path).condition == SMALL


@dataclass(frozen=True)
class Later(Condition):
    """A condition as a later version may have it."""

    clip: float = 0.0


def test_a_new_option_renames_nothing():
    same = Later(**vars(SMALL))
    assert (same.name, same.names) == (SMALL.name, SMALL.names)
    other = replace(same, clip=1.0)
    assert other.name not in SMALL.names
    assert other.names == (other.name,)  # softstack 0.1 could not have trained it


def test_names_stay_what_they_are():
    """Names are on people's disks: those of softstack 0.1, and those since."""
    assert GRU.names == ("reversal-gru-stack-59fb206a", "reversal-gru-stack-941f442d")
    assert XOR.names == ("xor-buffered-linear-stack-0fc80460", "xor-buffered-linear-stack-e3f27273")


def test_a_conditions_name_tells_it_from_every_other():
    names = {SMALL.name, replace(SMALL, learning_rate=0.02).name, replace(SMALL, discard_first=True).name}
    assert len(names) == 3
    assert SMALL.name == replace(SMALL).name


def test_provenance_names_the_commit_and_versions():
    stamp = store.provenance("cpu")
    assert stamp["torch"] == torch.__version__
    head = subprocess.run(
        ["git", "-C", os.path.dirname(__file__), "rev-parse", "--short=12", "HEAD"],
        capture_output=True,
        text=True,
    ).stdout.strip()
    assert stamp["commit"].removesuffix("-dirty") == head
