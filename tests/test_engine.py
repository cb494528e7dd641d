"""Every engine gives the same bytes; workers that die or hang cost nothing; who kills workers is given up."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import SimpleNamespace

import distributed
import psutil
import pytest
import torch

from softstack.errors import BadInput
from softstack.lab.sweeps import engine, jobs
from softstack.lab.sweeps import workers as clusters
from softstack.lab.sweeps.units import Unit
from softstack.lab.sweeps.workers import Engine
from softstack.lab.training.conditions import Condition

SMALL = [
    Condition(task, "linear", "stack", train_size=20, dev_size=5, test_size=5, max_epochs=2)
    for task in ("reversal", "xor", "parenthesis")
]
UNITS = [Unit(condition, (0, 1)) for condition in SMALL]
LONG = replace(SMALL[0], train_size=400, max_epochs=40, patience=40)  # a second or two


def quiet(*event):
    pass


def done(ended):
    ended = list(ended)
    assert all(isinstance(each, engine.Done) for each in ended)
    return {each.unit for each in ended}


def results(root):
    """The bytes by which runs are compared, by their place under the root."""
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.glob("*/seed-*/result.json"))}


def test_local_gives_what_inline_gives(tmp_path):
    told = {"local": [], "inline": []}
    for where in told:
        (tmp_path / where).mkdir()
        ended = engine.run(UNITS, Engine(where), tmp_path / where, lambda *e, w=where: told[w].append(e))
        assert done(ended) == set(UNITS)
    assert results(tmp_path / "local") == results(tmp_path / "inline")
    assert len(results(tmp_path / "local")) == 6
    expected = [(unit, epoch, 0 if epoch == 2 else 2) for unit in UNITS for epoch in (1, 2)]
    assert told["inline"] == expected
    assert set(told["local"]) <= set(expected)
    assert not list((tmp_path / "local").glob(".driver-*"))


@pytest.mark.parametrize("where", ["cloud", "tcp:/x", ""])
def test_unknown_engines(where, tmp_path):
    with pytest.raises(BadInput, match="unknown engine"):
        list(engine.run(UNITS, Engine(where), tmp_path, quiet))


def test_a_scheduler_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr(clusters, "GREETING", 0.5)
    with pytest.raises(BadInput, match=r"no dask scheduler answers at tcp://127.0.0.1:9"):
        list(engine.run(UNITS, Engine("tcp://127.0.0.1:9"), tmp_path, quiet))


def workers():
    """The processes of the local cluster's workers: those that were forked."""
    servers = [p for p in psutil.Process().children() if "forkserver" in " ".join(p.cmdline())]
    return [worker for server in servers for worker in server.children()]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    root = tmp_path_factory.mktemp("undisturbed")
    jobs.run_sweep(root, jobs.Sweep("x", (LONG,), (0, 1, 2)), Engine("inline"))
    return results(root)


@pytest.mark.parametrize("hurt", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_dies_or_hangs_costs_nothing(hurt, undisturbed, tmp_path, monkeypatch):
    """Hit in its sixth epoch. The block goes on elsewhere from the last epoch that was saved. While nobody
    has seen that it hangs the clock jumps over the wait, whenever there was no news for two seconds."""
    seen, hanging, ahead, heard, end = [], [], 0.0, time.monotonic(), engine._end

    def clock():
        nonlocal ahead, heard
        if hurt == signal.SIGSTOP and 6 in seen and not hanging and time.monotonic() > heard + 2:
            ahead, heard = ahead + patient.stall, time.monotonic()
        return time.monotonic() + ahead

    def progress(unit, epoch, left):
        nonlocal heard
        if epoch == 6 and 6 not in seen:
            for process in workers():
                process.send_signal(hurt)
        seen.append(epoch)
        heard = time.monotonic()

    def ended(client, worker):
        hanging.append(worker)
        end(client, worker)

    monkeypatch.setattr(engine, "time", SimpleNamespace(monotonic=clock))
    monkeypatch.setattr(engine, "_end", ended)
    unit = Unit(LONG, (0, 1, 2))
    patient = Engine("local", workers=1, every=0.0)
    assert done(engine.run([unit], patient, tmp_path, progress)) == {unit}
    assert results(tmp_path) == undisturbed
    assert len(hanging) == (hurt == signal.SIGSTOP)
    assert seen.count(1) == seen.count(2) == 1  # it did not begin again
    assert not list(tmp_path.glob("*/*.unfinished"))


def test_who_kills_three_workers_is_given_up_and_the_others_go_on(tmp_path):
    bad, good = Unit(LONG, (7, 8)), Unit(SMALL[0], (0, 1))
    killed = []

    def progress(unit, epoch, left):
        if unit == bad:
            killed.append([process.kill() for process in workers()])
            time.sleep(1)  # until it is gone

    ended = list(engine.run([bad, good], Engine("local", workers=1), tmp_path, progress))
    assert good in [each.unit for each in ended if isinstance(each, engine.Done)]
    (failure,) = (e for e in ended if isinstance(e, engine.Failure))
    assert failure.unit == bad
    assert [line.split(",")[0] for line in failure.log.splitlines()] == [f"attempt {n}" for n in (1, 2, 3)]
    assert failure.log.count("the worker died") == 3
    assert len(results(tmp_path)) == 2
    path = jobs.record(tmp_path, failure)
    assert "the worker died" in path.read_text()


def test_what_cannot_be_trained_is_given_up_and_the_others_go_on(tmp_path):
    """A network of 16 TB. What is larger than any address is refused before anything is done."""
    huge = replace(SMALL[0], controller="lstm", hidden_size=10**6)
    done = jobs.run_sweep(tmp_path, jobs.Sweep("x", (huge, SMALL[0]), (0,)), Engine("local", workers=1))
    assert done.trained == 1
    (path,) = done.failed
    said = path.read_text()
    assert path.parent.name == huge.name
    assert "attempt 3" in said and "alloc" in said
    with pytest.raises(BadInput, match="no network has sizes as large as those of"):
        jobs.run_sweep(
            tmp_path, jobs.Sweep("x", (replace(huge, hidden_size=10**10),), (0,)), Engine("inline")
        )


@contextmanager
def cluster(folder, *prefix, count=1, tls=()):
    """A scheduler and workers started by hand, on loopback. Gives the address and the processes."""
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    file = folder / "scheduler.json"
    started = [
        subprocess.Popen([*dask, "--host", "127.0.0.1", "--port", "0", "--no-dashboard", *tls,
                          "--scheduler-file", str(file)], stderr=subprocess.DEVNULL)
    ]  # fmt: skip
    try:
        end = time.monotonic() + 60
        while not file.exists() and time.monotonic() < end:
            time.sleep(0.1)
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file), *tls,
                  "--nthreads", "1", "--no-dashboard", "--no-nanny",
                  "--local-directory", str(folder)]  # fmt: skip
        started += [
            subprocess.Popen([*prefix, *worker, "--host", "127.0.0.1"], stderr=subprocess.DEVNULL,
                             env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True)
            for _ in range(count)
        ]  # fmt: skip
        yield json.loads(file.read_text())["address"], started
    finally:
        for process in reversed(started):
            for child in (
                psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
            ):
                child.kill()
            process.kill()
            process.wait()


def test_a_cluster_started_by_hand_loses_a_worker_and_then_its_scheduler(undisturbed, tmp_path):
    """The one costs nothing. The other is said in a sentence, and what was saved by then is taken up by
    whoever comes next."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    seen = []
    with cluster(tmp_path, count=2) as (address, processes):

        def kill_a_worker(unit, epoch, left):
            seen.append(epoch)
            if epoch == 5 and seen.count(5) == 1:
                os.killpg(processes[1].pid, signal.SIGKILL)

        def kill_the_scheduler(unit, epoch, left):
            if epoch == 5:
                processes[0].kill()

        units = [Unit(LONG, (seed,)) for seed in (0, 1, 2)]
        assert done(engine.run(units, Engine(address, every=0.0), first, kill_a_worker)) == set(units)
        assert results(first) == undisturbed
        unit = Unit(LONG, (0, 1, 2))
        with pytest.raises(BadInput, match=r"the dask scheduler of --engine tcp:.* is gone: start it"):
            list(engine.run([unit], Engine(address, every=0.0), second, kill_the_scheduler))
    assert list(second.glob("*/*.unfinished"))
    assert done(engine.run([unit], Engine("inline"), second, quiet))
    assert results(second) == undisturbed


def test_a_scheduler_that_dies_is_told_of_in_one_sentence(tmp_path):
    """What dask has to say about it is not printed."""
    (tmp_path / "mine.toml").write_text(
        '[condition]\ntask = "xor"\ntrain_size = 4000\nmax_epochs = 500\npatience = 500\n'
    )
    with cluster(tmp_path) as (address, processes):
        arguments = ["sweep", "mine.toml", "--out", "root", "--checkpoint", "0", "--engine", address]
        driver = subprocess.Popen(
            [sys.executable, "-c", "import softstack_command; softstack_command.main()", *arguments],
            cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        while not list(tmp_path.glob("root/*/*.unfinished")) and driver.poll() is None:
            time.sleep(0.1)
        processes[0].kill()
        risk, gone = driver.communicate(timeout=120)[1].splitlines()
    assert driver.returncode == 2
    assert "asks nobody who they are" in risk and f"scheduler of --engine {address} is gone" in gone


def test_a_worker_is_alive_whatever_the_client_asks_for_meanwhile():
    """The client asks its scheduler every two seconds, for no workers, and keeps the answer."""
    enough = threading.Event()
    with (
        distributed.LocalCluster(
            n_workers=1, processes=False, protocol="tcp://", host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as local,
        distributed.Client(local) as client,
    ):

        async def ask():
            while not enough.is_set():
                await client._update_scheduler_info()

        (worker,) = local.workers.values()
        asking = asyncio.run_coroutine_threadsafe(ask(), client.loop.asyncio_loop)
        try:
            alive = [engine._alive(client, Engine()) for _ in range(100)]
        finally:
            enough.set()
            asking.result()
    assert alive == [{worker.address}] * 100


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.0 400 Bad request"])  # its beginning is a size, for dask
def test_something_else_that_listens_is_no_scheduler(answer, tmp_path, monkeypatch):
    monkeypatch.setattr(clusters, "GREETING", 1.0)
    connections = []

    def serve():
        with suppress(OSError):  # when it is closed
            while True:
                connections.append(server.accept()[0])
                connections[-1].sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(BadInput, match=r"no dask scheduler answers at tcp://127.0.0.1"):
            list(engine.run(UNITS[:1], Engine(address), tmp_path, quiet))
    assert connections


def test_workers_that_do_not_see_the_run_root_return_their_trials(tmp_path):
    """Each worker has an empty disk of its own where the run root is."""
    root = tmp_path / "root"
    root.mkdir()
    hide = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs none {root} && exec "$@"', "-"]
    tried = subprocess.run([*hide, "true"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"cannot hide a directory from a process here: {tried.stderr.strip()}")
    inline = tmp_path / "inline"
    list(engine.run(UNITS, Engine("inline"), inline, quiet))
    with cluster(tmp_path, *hide) as (address, _):
        assert done(engine.run(UNITS, Engine(address), root, quiet)) == set(UNITS)
    assert results(root) == results(inline)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """An authority, and a certificate that it signed, which everyone here uses."""
    folder = tmp_path_factory.mktemp("tls")
    openssl = lambda *a: subprocess.run(["openssl", *a], cwd=folder, check=True, capture_output=True)  # noqa: E731
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
            "-days", "2", "-subj", "/CN=authority")  # fmt: skip
    openssl(
        "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "mine.csr", "-subj", "/CN=us"
    )
    openssl("x509", "-req", "-in", "mine.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out",
            "cert.pem", "-days", "2")  # fmt: skip
    return folder / "ca.pem", folder / "cert.pem", folder / "key.pem"


def test_a_cluster_that_speaks_tls(certificates, tmp_path):
    ca, cert, key = certificates
    tls = ("--tls-ca-file", str(ca), "--tls-cert", str(cert), "--tls-key", str(key), "--protocol", "tls")
    root = tmp_path / "root"
    root.mkdir()
    with cluster(tmp_path, tls=tls) as (address, _):
        assert address.startswith("tls://")
        secure = Engine(address, None, *certificates)
        assert done(engine.run(UNITS[:1], secure, root, quiet)) == set(UNITS[:1])
    assert len(results(root)) == 2


def test_tls_options_that_do_not_fit(certificates, tmp_path):
    for wrong, message in (
        (Engine("tls://x:1"), "TLS needs all of"),
        (Engine("tcp://x:1", None, *certificates), "does not use TLS"),
        (Engine("local", None, *certificates), "does not use TLS"),
    ):
        with pytest.raises(BadInput, match=message):
            clusters.check(wrong)
    with pytest.raises(FileNotFoundError):
        clusters.check(Engine("tls://x:1", None, tmp_path / "none", *certificates[1:]))


def test_blocks_are_large_enough_and_there_is_one_for_everyone():
    many = {SMALL[0]: tuple(range(2000))}
    units = jobs.blocks(many, Engine("local", workers=2))
    sizes = [len(unit.seeds) for unit in units]
    assert sizes[:30] == [50] * 30
    assert sizes[30:] == sorted(sizes[30:], reverse=True)
    assert sizes[-3] == 10
    assert [seed for unit in units for seed in unit.seeds] == list(range(2000))
    few = {SMALL[0]: tuple(range(25)), SMALL[1]: (3, 5)}
    assert [u.seeds for u in jobs.blocks(few, Engine("local", workers=2))] == [
        tuple(range(10)), tuple(range(10, 20)), tuple(range(20, 25)), (3, 5),
    ]  # fmt: skip
    reference = {replace(SMALL[0], controller="mlp"): (0, 1)}  # no kernel: each alone, for the bits' sake
    assert [u.seeds for u in jobs.blocks(reference, Engine())] == [(0,), (1,)]


def test_each_worker_of_a_machine_with_gpus_takes_its_own(monkeypatch):
    """By its number; one that was named otherwise takes the first that it is shown."""
    if not torch.cuda.is_available():
        assert engine.device(3) == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert [engine.device(name) for name in (0, 1, 3, 4, "tcp://host:1")] == [
        "cuda:0", "cuda:1", "cuda:3", "cuda:0", "cuda:0",
    ]  # fmt: skip
