"""Where the work is done: in this process, on a local dask cluster, or on one that is running elsewhere.

The unit of work is (condition, block of seeds), trained as a population. Workers return their trials and
write nothing; what is done with a result is the caller's affair.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch

from softstack.errors import BadInput
from softstack.lab.experiments import Condition
from softstack.lab.train import Trial, train

TOPIC = "softstack"


class Unit(NamedTuple):
    condition: Condition
    seeds: tuple[int, ...]


Progress = Callable[[Unit, int, int], None]  # (unit, epoch, trials still training)


def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def run(units: Sequence[Unit], engine: str, progress: Progress) -> Iterator[tuple[Unit, list[Trial]]]:
    """Each unit with its trials, in the order in which they finish."""
    if engine == "inline":
        for unit in units:
            yield unit, train(*unit, device(), partial(progress, unit))
    elif engine == "local" or engine.startswith(("tcp://", "tls://")):
        yield from _distributed(units, engine, progress)
    else:
        raise BadInput(
            f"unknown engine {engine!r}: accepted are local, inline and the address of a dask scheduler, tcp://host:port"
        )


def _distributed(
    units: Sequence[Unit], engine: str, progress: Progress
) -> Iterator[tuple[Unit, list[Trial]]]:
    from distributed import as_completed

    with _client(engine, len(units)) as client:
        numbered = dict(enumerate(units))
        client.subscribe_topic(TOPIC, lambda event: progress(numbered[event[1][0]], *event[1][1:]))
        futures = {client.submit(_work, n, unit, pure=False): unit for n, unit in numbered.items()}
        for future in as_completed(futures):
            yield futures[future], future.result()


@contextmanager
def _client(engine: str, units: int) -> Iterator[Any]:
    """A client of the cluster asked for; a local one is started, on loopback alone, and ended."""
    import dask
    from distributed import Client, LocalCluster

    if engine != "local":
        try:
            client = Client(engine, timeout="10s")
        except (OSError, ValueError) as error:
            raise BadInput(
                f"no dask scheduler answers at {engine} ({error}): start one with `dask scheduler`"
            ) from None
        with client:
            yield client
        return
    workers = min(units, os.cpu_count() or 1)
    quiet = {"distributed.worker.memory.spill": False, "distributed.admin.log-length": 0}
    with (
        dask.config.set(quiet),
        LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0",
            silence_logs="ERROR",
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        yield client


def _work(number: int, unit: Unit) -> list[Trial]:
    from distributed import get_worker

    torch.set_num_threads(1)
    worker = get_worker()
    return train(*unit, device(), lambda epoch, left: worker.log_event(TOPIC, (number, epoch, left)))
