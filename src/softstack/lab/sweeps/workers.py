"""Where workers come from: a dask cluster of this machine's cores, one that runs already, or SLURM's jobs."""

import asyncio
import atexit
import datetime
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from softstack.errors import BadInput, install, unknown
from softstack_command.forks import one_thread, prepare

SLURM = {"cores": 1, "processes": 1, "memory": "4GB", "walltime": "01:00:00"}
SLURM_KEYS = (
    "jobs", "queue", "account", "project", "walltime", "cores", "processes", "memory", "job_extra_directives",
    "job_script_prologue", "interface", "local_directory", "log_directory", "python", "scheduler_options",
)  # fmt: skip
FORKED = {"distributed.worker.multiprocessing-method": "forkserver"}
QUIET: dict[str, Any] = {
    "distributed.worker.memory.spill": False,
    "distributed.admin.log-length": 0,
    "distributed.scheduler.worker-ttl": None,  # goes by a clock that may jump; the engine looks itself
    "distributed.comm.timeouts.connect": "30s",
    "distributed.scheduler.http.routes": [],  # what listens there has nothing to show
    "distributed.worker.http.routes": [],
}
GREETING = 10.0  # seconds in which a scheduler says who it is
CERTIFIED = (datetime.datetime(2000, 1, 1), datetime.datetime(2100, 1, 1))  # a clock may jump


class Engine(NamedTuple):
    """Where the work is done, and how patiently."""

    where: str = "local"  # local, inline, slurm, or tcp://host:port or tls://host:port
    workers: int | None = None  # how many are started; one per core (or GPU) if not said
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    slurm: dict[str, Any] = {}  # noqa: RUF012 (never changed): see SLURM_KEYS
    every: float = 30.0  # seconds from one saving of unfinished trials to the next
    stall: float = 600.0  # seconds without an epoch after which a worker is taken to hang


def check(engine: Engine) -> Engine:
    """Refuse an unknown engine and unknown options, before anything is done."""
    if engine.where not in ("local", "inline", "slurm") and not engine.where.startswith(("tcp://", "tls://")):
        raise BadInput(
            f"unknown engine {engine.where!r}: accepted are local, inline, slurm and the address of a dask "
            "scheduler, tcp://host:port or tls://host:port"
        )
    paths = [path for path in (engine.tls_ca, engine.tls_cert, engine.tls_key) if path is not None]
    if (paths or engine.where.startswith("tls://")) and len(paths) < 3:
        raise BadInput("TLS needs all of --tls-ca-file, --tls-cert and --tls-key")
    if paths and not engine.where.startswith("tls://"):
        raise BadInput(f"--engine {engine.where} does not use TLS: write tls://host:port")
    for path in paths:
        with path.open("rb"):
            pass  # the error for a missing one has its name
    for key in engine.slurm:
        if key not in SLURM_KEYS:
            raise unknown("key in [slurm],", key, SLURM_KEYS)
    return engine


def risk(engine: Engine) -> str:
    """What there is to fear of an engine, in a sentence; nothing for most."""
    if not engine.where.startswith("tcp://"):
        return ""
    return (
        f"{engine.where} asks nobody who they are: anyone who reaches that address can run programs as you, "
        "here and on its workers; use tls:// on a network that others are on"
    )


def reach(engine: Engine) -> None:
    """Refuse a scheduler that is not there, before anything is written."""
    if engine.where.startswith(("tcp://", "tls://")):
        try:
            address = urlsplit(engine.where)
            socket.create_connection((address.hostname, address.port or 8786), timeout=10).close()
        except (OSError, ValueError) as error:
            raise _no_scheduler(engine, error) from None


def _no_scheduler(engine: Engine, error: Exception) -> BadInput:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return BadInput(
        f"no dask scheduler answers at {engine.where} ({reason}): start one with `dask scheduler`"
    )


@contextmanager
def client(engine: Engine, most: int) -> Iterator[Any]:
    """A client of the cluster asked for; ours is started and ended. There is work for `most` workers."""
    from distributed.utils import silence_logging_cmgr

    cluster = CLUSTERS[engine.where.split(":")[0]](engine, most)
    with silence_logging_cmgr("CRITICAL"), cluster as connected:  # we say it ourselves
        yield connected


@contextmanager
def _local(engine: Engine, most: int) -> Iterator[Any]:
    """One single-threaded worker per core, or one per GPU; on loopback alone.

    Other users of the machine can reach that, so it speaks TLS alone, with a certificate made for the run,
    which never leaves the memory of these processes. There is no dashboard.
    """
    prepare()
    import dask
    import torch
    from distributed import Client, LocalCluster

    workers = engine.workers or torch.cuda.device_count() or os.cpu_count() or 1
    with (
        one_thread(),
        dask.config.set({**QUIET, **FORKED}),
        LocalCluster(
            n_workers=min(most, workers), threads_per_worker=1, host="127.0.0.1",
            protocol="tls://", security=_security(_certificates()), silence_logs="CRITICAL", memory_limit=0,
            dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": False},
        ) as cluster,
        Client(cluster) as connected,
    ):  # fmt: skip
        connected.run(atexit.register, os._exit, 0)  # they hold nothing worth a second of taking torch apart
        yield connected


@contextmanager
def _running(engine: Engine, most: int) -> Iterator[Any]:
    from distributed import Client

    security = None
    if engine.where.startswith("tls://"):
        paths = {"ca_file": engine.tls_ca, "cert": engine.tls_cert, "key": engine.tls_key}
        security = _security({part: str(path) for part, path in paths.items()})
    try:
        with futures.ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _greet(engine, security)).result()
        connected = Client(engine.where, timeout="10s", security=security)
    except Exception as error:  # whatever dask makes of what it hears there
        raise _no_scheduler(engine, error) from None
    with connected:
        yield connected


async def _greet(engine: Engine, security: Any) -> None:
    """Ask the scheduler who it is. A client waits for ever where something else listens."""
    from distributed.core import rpc

    arguments = security.get_connection_args("client") if security else {}
    async with rpc(engine.where, connection_args=arguments) as scheduler:
        await asyncio.wait_for(scheduler.identity(), GREETING)


def _certificates() -> dict[str, str]:
    """A key and a certificate for one cluster: who does not have them can neither ask nor answer."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise BadInput(
            f"workers are reached by TLS alone, which needs cryptography: {install('lab')}; or train in this "
            "process with --engine inline"
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "softstack")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), *CERTIFIED)
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {"ca_file": certificate, "cert": certificate, "key": secret.decode()}


def _security(certificates: dict[str, str]) -> Any:
    """From certificates or the names of their files: everyone shows them, and asks for them."""
    from distributed.security import Security

    roles = ("client", "scheduler", "worker")
    shown = {f"tls_{role}_{part}": certificates[part] for role in roles for part in ("cert", "key")}
    return Security(tls_ca_file=certificates["ca_file"], **shown, require_encryption=True)


def _in_files(certificates: dict[str, str], folder: Path) -> dict[str, str]:
    """The names of files with certificates, which only we can read."""
    paths = {part: str(folder / f"{part}.pem") for part in certificates}
    for part, path in paths.items():
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as file:
            file.write(certificates[part])
    return paths


@contextmanager
def slurm_cluster(engine: Engine) -> Iterator[Any]:
    """The cluster whose workers are jobs of SLURM; nothing is submitted before it is scaled.

    Its scheduler listens on the network, so it speaks TLS alone, with certificates made for the occasion.
    Workers read them from a folder here, which must be on a disk that they see; it is removed at the end.
    """
    try:
        from dask_jobqueue.slurm import SLURMCluster
    except ImportError:
        raise BadInput(f"--engine slurm needs dask-jobqueue: {install('slurm')}") from None
    options = {**SLURM, **{key: value for key, value in engine.slurm.items() if key != "jobs"}}
    scheduler_options = options.get("scheduler_options", {})
    hidden = {"dashboard": "dashboard_address" in scheduler_options, "dashboard_address": "127.0.0.1:0"}
    options["scheduler_options"] = {**hidden, **scheduler_options}
    options["job_script_prologue"] = ["export OMP_NUM_THREADS=1", *options.get("job_script_prologue", [])]
    with tempfile.TemporaryDirectory(prefix=".softstack-slurm-", dir=Path.cwd()) as folder:
        try:
            security = _security(_in_files(_certificates(), Path(folder)))
            cluster = SLURMCluster(**options, protocol="tls://", security=security)
        except (TypeError, ValueError) as error:
            raise BadInput(f"dask-jobqueue refuses the [slurm] options ({error}): mend them") from None
        with cluster:
            yield cluster


@contextmanager
def _slurm(engine: Engine, most: int) -> Iterator[Any]:
    from distributed import Client

    with slurm_cluster(engine) as cluster, Client(cluster) as connected:
        cluster.scale(jobs=min(most, engine.workers or engine.slurm.get("jobs", 1)))
        yield connected


CLUSTERS: dict[str, Callable[[Engine, int], Any]] = {
    "local": _local,
    "tcp": _running,
    "tls": _running,
    "slurm": _slurm,
}
