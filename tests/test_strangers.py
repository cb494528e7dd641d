"""Other users of the machine: they reach the ports of a sweep, and nothing that answers them."""

import json
import os
import subprocess
import sys
from contextlib import suppress

import distributed
import psutil
import pytest

from softstack.lab.sweeps import engine, jobs
from softstack.lab.sweeps.plans import Sweep
from softstack.lab.sweeps.units import Unit
from softstack.lab.sweeps.workers import Engine
from softstack.lab.training.conditions import Condition

SMALL = Condition("reversal", "linear", "stack", train_size=20, dev_size=5, test_size=5, max_epochs=2)
NOBODY = 65534
STRANGER = """
import asyncio, encodings.idna, http.client, json, os, sys
from distributed.core import rpc
from distributed.security import Security

own = Security.temporary()  # a certificate, but not that of the sweep
os.setgroups([])
os.setgid({nobody})
os.setuid({nobody})

async def identity(port, protocol):
    arguments = own.get_connection_args("client") if protocol == "tls" else {{}}
    try:
        async with rpc(f"{{protocol}}://127.0.0.1:{{port}}", timeout=5, connection_args=arguments) as server:
            return (await asyncio.wait_for(server.identity(), 5))["type"]
    except Exception:
        return None

def page(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/info/main/workers.html")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None

async def main(ports):
    asked = [(port, protocol) for port in ports for protocol in ("tcp", "tls")]
    answers = await asyncio.gather(*(identity(*question) for question in asked))
    return [answer for answer in answers if answer] + [page(port) for port in ports if page(port) == 200]

ports = [int(port) for port in sys.argv[1:]]
print(json.dumps([os.getuid(), asyncio.run(main(ports))]))
"""


def listening():
    """Ports of this process and of all that it started."""
    own, ports = psutil.Process(), set()
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # it may have ended by now
            connections = process.net_connections("inet")
            ports |= {c.laddr.port for c in connections if c.status == psutil.CONN_LISTEN}
    return ports


def answers(ports):
    """What another user hears on ports."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user for a test")
    script = STRANGER.format(nobody=NOBODY)
    command = [sys.executable, "-c", script, *map(str, ports)]
    user, answered = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)
    assert user == NOBODY
    return answered


def test_another_user_gets_no_answer_from_the_workers_of_a_sweep(tmp_path):
    before, heard = listening(), []

    def progress(unit, epoch, left):
        if not heard:
            ports = listening() - before
            heard.append((len(ports), answers(ports)))

    unit = Unit(SMALL, (0, 1))
    (ended,) = engine.run([unit], Engine("local", workers=1), tmp_path, progress)
    assert ended.unit == unit
    ((ports, answered),) = heard
    assert ports >= 3  # of the scheduler, a nanny and its worker
    assert answered == []


def test_the_stranger_of_these_tests_is_heard_where_nobody_asks_for_a_certificate():
    before = listening()
    with distributed.LocalCluster(
        n_workers=1, processes=False, protocol="tcp://", host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ):
        ports, answered = listening() - before, set()
        for _ in range(10):  # on a busy machine somebody may be too slow for a stranger's patience
            answered |= set(answers(ports))
            if {"Scheduler", "Worker", 200} <= answered:
                break
    assert {"Scheduler", "Worker", 200} <= answered


def test_a_scheduler_that_asks_nobody_who_they_are_is_announced(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "LONELY", 1.0)
    sweep = Sweep("x", (SMALL,), (0,))
    said = []
    with distributed.LocalCluster(
        n_workers=0, processes=False, protocol="tcp://", host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as cluster:
        address = cluster.scheduler_address

        def hear(sentence):
            said.append(sentence)
            if "no workers" in sentence:
                cluster.scale(1)

        assert jobs.run_sweep(tmp_path, sweep, Engine(address), hear).trained == 1
    assert said == [
        f"{address} asks nobody who they are: anyone who reaches that address can run programs as you, here "
        "and on its workers; use tls:// on a network that others are on",
        f"the dask scheduler of --engine {address} has no workers: waiting for one to come",
    ]
    said.clear()
    assert jobs.run_sweep(tmp_path / "inline", sweep, Engine("inline"), said.append).trained == 1
    assert said == []
