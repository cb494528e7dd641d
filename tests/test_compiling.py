"""Where machine code is kept: never stale, never without bound, and nothing stops where it cannot be kept."""

import fcntl
import os
import pty
import subprocess
import sys

import pytest

from softstack.kernels.cpu import compiling

SCAN = """
import torch, softstack as ss
v, u, d = torch.tensor([[[2.0]], [[4.0]]]), torch.zeros(2, 1), torch.full((2, 1), 0.5)
print(ss.stack_scan(v, u, d)[0].flatten().tolist(), ss.kernels.explain("auto", v))
"""


STEP = """
import numpy as np
from softstack.kernels.cpu import train
vectors, *moments = (np.ones((1, 2)) for _ in range(4))
train.adam(vectors, *moments, 1, 0.0, 0.0, 0.0)
print(vectors[0].tolist(), moments[0][0].tolist())
"""  # which takes a fifth of a scan's time to compile


def started(cache, terminal=None, script=STEP, **environment):
    """A process of its own."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment}
    streams = dict(stdout=subprocess.PIPE, stderr=terminal or subprocess.PIPE, text=True)
    return subprocess.Popen([sys.executable, "-c", script], env=environment, **streams)


def ended(process):
    """What it has printed, and what it said on standard error, unless that is a terminal."""
    printed, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return printed.strip(), said


def run(cache, **more):
    return ended(started(cache, **more))


def kept(cache):
    """The files of machine code, and when they were written."""
    return {path.name: path.stat().st_mtime_ns for path in cache.rglob("*.nb?")}


STEPPED = "[1.0, 1.0] [1.0, 1.0]"


def test_what_is_kept_is_used_again_and_what_is_damaged_is_made_again(tmp_path):
    """And only a terminal is told that kernels are being compiled. While one process compiles, another that
    wants the same waits for it."""
    cache, aside = tmp_path / "cache", tmp_path / "aside"
    ours, theirs = pty.openpty()
    assert run(cache, terminal=theirs) == (STEPPED, None)
    assert os.read(ours, 1000).startswith(b"softstack: compiling kernels, about ")
    first = kept(cache)
    assert any(name.startswith("train.adam") for name in first)
    with open(next(cache.rglob("locks")), "ab") as locks:
        fcntl.lockf(locks, fcntl.LOCK_EX)  # as a process that compiles everything
        aside.mkdir()
        places = {path: aside / path.name for path in cache.rglob("*.nb?")}
        for path, place in places.items():
            path.rename(place)
        process = started(cache, terminal=theirs)
        assert os.read(ours, 1000).startswith(b"softstack: compiling kernels, about ")  # it waits
        for path, place in places.items():
            place.rename(path)
    assert ended(process) == (STEPPED, None)
    assert kept(cache) == first
    for path in cache.rglob("train.adam*"):
        path.write_bytes(path.read_bytes()[:100])
    assert run(cache) == (STEPPED, "")
    assert all(path.stat().st_size > 100 for path in cache.rglob("train.adam*"))


def test_a_full_disk_costs_time_alone(small_disk):
    printed, said = run(small_disk("16k"))
    assert printed == STEPPED
    assert said.count("softstack compiles its kernels anew in every process") == 1
    assert "No space left on device" in said


def test_without_numbas_compiler_the_reference_runs(tmp_path):
    printed, said = run(tmp_path, script=SCAN, NUMBA_DISABLE_JIT="1")
    reason = "its kernels cannot be loaded: numba is switched off by NUMBA_DISABLE_JIT"
    assert printed == f"[1.0, 2.0] reference: {reason}"
    assert said.count(f"softstack runs without compiled kernels, and slowly: {reason}") == 1


@pytest.mark.parametrize("change", ["text", "name", "more"])
def test_the_digest_is_of_every_source(tmp_path, change):
    sources = [tmp_path / "a.py", tmp_path / "b.py"]
    for source in sources:
        source.write_text("x = 1\n")
    before = compiling.digest(sources)
    if change == "text":
        sources[1].write_text("x = 2\n")
    elif change == "name":
        sources[1] = sources[1].rename(tmp_path / "c.py")
    else:
        sources.append(sources[0])
    assert compiling.digest(sources) != before


def test_every_module_of_the_cpus_kernels_is_a_source():
    from softstack.kernels.cpu import rnn, scan  # with all that they import

    ours = {
        name: module.__file__
        for name, module in sys.modules.items()
        if name.startswith("softstack.kernels.cpu.")
    }
    assert {rnn.__name__, scan.__name__} < set(ours)
    assert set(ours.values()) <= set(map(str, compiling.SOURCES))
    assert os.path.join(os.path.dirname(compiling.HERE), "kinds.py") in map(str, compiling.SOURCES)


def test_old_directories_go_and_the_last_used_stay(tmp_path):
    assert compiling.KEPT == 4
    for age, name in enumerate("abcd"):
        path = compiling.directory([tmp_path], name)
        assert path == tmp_path / f"softstack-kernels-{name}"
        os.utime(path, (1000 - age, 1000 - age))
    (tmp_path / "something else").mkdir()
    compiling.directory([tmp_path], "e")
    assert {path.name[-1] for path in tmp_path.glob("softstack-kernels-*")} == set("abce")
    compiling.directory([tmp_path], "c")
    compiling.directory([tmp_path], "f")
    assert {path.name[-1] for path in tmp_path.glob("softstack-kernels-*")} == set("acef")
    assert (tmp_path / "something else").exists()


def test_a_directory_that_cannot_be_written_to_is_passed_over(tmp_path):
    (tmp_path / "file").write_text("")
    assert (
        compiling.directory([tmp_path / "file", tmp_path / "new"], "a")
        == tmp_path / "new" / "softstack-kernels-a"
    )
    assert compiling.directory([tmp_path / "file"], "a") is None
