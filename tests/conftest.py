import contextlib
import multiprocessing
import os
import signal
import subprocess

import pytest
import torch
from hypothesis import settings

import interpreter
from browser import (  # noqa: F401 (fixtures)
    CHROMIUM,
    browser,
    idle_tabs,
    opened,
    reverser,
    run_root,
    tab,
    untrained,
)

settings.register_profile("softstack", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("softstack")
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # what we start shares the cores with tests
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in a background job; what we start inherits it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--gpu", action="store_true", help="use this machine's GPU, which is hidden otherwise")


def pytest_configure(config):
    """The same tests on every machine: what is trained on a GPU has other bits, and sweeps are cut up for it.
    The kernels of the GPU are interpreted then: slow, but their own code."""
    if config.getoption("gpu"):
        return
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["TRITON_INTERPRET"] = "1"
    with contextlib.suppress(ImportError):  # Triton is not made for every system
        interpreter.quicken()


def pytest_runtest_setup(item):
    """Skips what this machine cannot run. pytest counts all skips of one line of code in one line."""
    if CHROMIUM is None and item.get_closest_marker("chromium"):
        pytest.skip("no Chromium found: `apt-get install chromium` to test the pages in a browser")
    if not torch.cuda.is_available() and item.get_closest_marker("cuda"):
        pytest.skip("no GPU: `make gpu` where there is one")


def pytest_generate_tests(metafunc):
    """`device` runs a test on the CPU, and on CUDA where there is one."""
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(1)


@pytest.fixture
def softstack(tmp_path, monkeypatch, capsys):
    """Runs a command in an empty directory and gives its exit code, standard output and standard error."""
    from softstack_command import main as cli

    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        try:
            cli(arguments)
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        return code, *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def processes():
    """Processes that begin with everything imported: they are forked where workers are."""
    from softstack_command import forks

    with pytest.MonkeyPatch.context() as patch:  # what the tests' own modules import
        patch.setattr(forks, "IMPORTED", [*forks.IMPORTED, "pytest", "softstack.lab.sweeps.jobs"])
        forks.prepare()
    return multiprocessing.get_context("forkserver")


@pytest.fixture
def registries():
    """What a test registers is taken out again at its end, or whenever this is called. A call returns what
    was taken out, and a call with that puts it back."""
    from softstack.controllers import CONTROLLERS
    from softstack.lab import plugins
    from softstack.lab.tasks import TASKS
    from softstack.memory import MEMORIES

    tables = MEMORIES, CONTROLLERS, TASKS, plugins._plugins
    built_in = [dict(registry) for registry in tables]

    def restore(contents=built_in):
        before = [dict(registry) for registry in tables]
        for registry, entries in zip(tables, contents, strict=True):
            registry.clear()
            registry.update(entries)
        return before

    yield restore
    restore()


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a file system of the size that it is called with. That takes root."""
    disk = tmp_path / "disk"

    def mount(size):
        disk.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode:
            disk.rmdir()
            pytest.skip(f"cannot mount a small disk here: {made.stderr.strip()}")
        return disk

    yield mount
    if disk.exists():
        subprocess.run(["umount", "-l", str(disk)], check=True)
