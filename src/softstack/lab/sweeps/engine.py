"""How the work is done: each block of trials on a worker, and again on another one if that one dies.

Workers return finished trials, and a thread of the driver saves them while the next block trains. A worker
that sees the run root keeps unfinished ones there, by rename alone. It has one block at a time, so that its
death is known to be that block's fault. A block that kills three workers has failed, and the others go on.
"""

import asyncio
import errno
import math
import os
import queue
import signal
import time
import traceback
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from softstack.errors import BadInput
from softstack.lab import plugins
from softstack.lab.runs import disk, store
from softstack.lab.sweeps import workers
from softstack.lab.sweeps.units import Unit, Work, begun_trials, device, parts, work
from softstack.lab.sweeps.workers import Engine
from softstack.lab.tasks import collection
from softstack.lab.training import checkpoints
from softstack_command import interrupts

MOST_ATTEMPTS = 3
TICK = 0.5  # seconds from one look at the workers to the next
LONELY = 10.0  # seconds without a worker before that is said
FATAL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)  # the run root takes no more: nothing else will go better


class Done(NamedTuple):
    """A block whose trials are in their directories, the seconds that their training took, and the seeds of
    those that diverged."""

    unit: Unit
    seconds: float
    diverged: tuple[int, ...] = ()


class Failure(NamedTuple):
    """A block that was given up, and what was seen of each attempt."""

    unit: Unit
    log: str


Progress = Callable[[Unit, int, int], None]  # (unit, epoch, trials still training)
Say = Callable[[str], None]  # shows a sentence to the user


def silent(sentence: str) -> None:
    pass


def run(
    units: Sequence[Unit], engine: Engine, root: Path, progress: Progress, say: Say = silent
) -> Iterator[Done | Failure]:
    """Train each unit into its run directories; gives them in the order in which they end."""
    workers.check(engine)
    if engine.where == "inline":
        for unit in units:
            for part in parts(root, unit):
                begun = begun_trials(root, part)
                trained = work(part, begun, root, engine.every, partial(progress, part), device())
                yield _put(root, part, trained)
    elif units:
        yield from _distributed(units, engine, root, progress, say)


def _remote(
    number: int, unit: Unit, begun: list[bytes], root: str, token: str, every: float,
    sent: list[plugins.Source], examples: str | None,
) -> Work:  # fmt: skip
    """What a worker does. By a file that the driver put there it knows whether it sees the run root."""
    from distributed import get_worker

    plugins.receive(sent)
    if examples is not None:
        collection.hold(examples)
    worker = get_worker()
    trials = [checkpoints.loads(content, unit.condition, "a checkpoint from the driver") for content in begun]
    shared = Path(root) if (Path(root) / _token(token)).is_file() else None

    def report(epoch: int, training: int) -> None:
        worker.log_event(token, (number, epoch, training))

    report(0, len(unit.seeds))  # everything is imported
    return work(unit, trials, shared, every, report, device(worker.name))


def _token(token: str) -> str:
    return f".driver-{token}"


@contextmanager
def _shared(root: Path) -> Iterator[str]:
    """A file by which workers can tell that they see the same run root. Its lock goes with the driver."""
    for lock in root.glob(_token("*")):
        with suppress(OSError), lock.open("r+") as file:
            if disk.lock(file.fileno()):  # the driver that had it is gone
                lock.unlink(missing_ok=True)
    token = uuid.uuid4().hex
    path = root / _token(token)
    with path.open("x") as file:
        disk.lock(file.fileno())
        try:
            yield token
        finally:
            path.unlink(missing_ok=True)


class _Task(NamedTuple):
    unit: Unit
    log: tuple[str, ...]  # a line or more for each attempt that failed


class _Attempt(NamedTuple):
    task: _Task
    part: Unit  # what of it is left to do
    future: Any
    worker: str
    heard: float  # when it last reported, by the monotonic clock


def _distributed(
    units: Sequence[Unit], engine: Engine, root: Path, progress: Progress, say: Say
) -> Iterator[Done | Failure]:
    waiting = deque(_Task(unit, ()) for unit in units)
    with (
        interrupts.later() as stop_if_asked,
        _shared(root) as token,
        workers.client(engine, len(units)) as client,
        futures.ThreadPoolExecutor(1) as saver,
    ):
        yield from _dispatch(waiting, client, saver, engine, root, token, progress, say, stop_if_asked)


def _dispatch(
    waiting: deque[_Task], client: Any, saver: futures.Executor, engine: Engine, root: Path, token: str,
    progress: Progress, say: Say, stop_if_asked: Callable[[], None],
) -> Iterator[Done | Failure]:  # fmt: skip
    """Keeps the workers busy, while `saver` fetches finished trials and writes them."""
    events: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
    # (attempt, the worker's future, the saver's, or (epoch, trials left))
    client.subscribe_topic(token, lambda event: events.put((event[1][0], event[1][1:])))
    running: dict[int, _Attempt] = {}
    saving: dict[int, _Attempt] = {}
    shunned: set[str] = set()
    number, last_look, alive = 0, -TICK, set[str]()
    patience = time.monotonic() + LONELY

    def news_of(number: int) -> Callable[[Any], None]:
        return lambda news: events.put((number, news))

    def ended(attempt: _Attempt, reason: str) -> Iterator[Failure]:
        """An attempt came to nothing: once more, or not."""
        log = (*attempt.task.log, f"attempt {len(attempt.task.log) + 1}, on {attempt.worker}: {reason}")
        if len(log) < MOST_ATTEMPTS:
            waiting.append(_Task(attempt.part, log))
        else:
            yield Failure(attempt.part, "\n".join(log) + "\n")

    while waiting or running or saving:
        stop_if_asked()
        now = time.monotonic()
        if now - last_look >= TICK or not alive:
            last_look = now
            alive = _alive(client, engine) - shunned
            if alive:
                patience = now + LONELY
            elif now > patience:
                patience = math.inf  # it is said once
                say(f"the dask scheduler of --engine {engine.where} has no workers: waiting for one to come")
            for key, attempt in list(running.items()):
                if attempt.worker not in alive or now - attempt.heard > engine.stall:
                    del running[key]
                    attempt.future.cancel()
                    if attempt.worker in alive:
                        shunned.add(attempt.worker)
                        _end(client, attempt.worker)
                        yield from ended(attempt, f"no epoch for {engine.stall:g} seconds: taken to hang")
                    else:
                        yield from ended(attempt, "the worker died")
            for attempt in saving.values():
                if attempt.worker not in alive:
                    attempt.future.cancel()  # or the saver would wait for what is gone
        for worker in alive - shunned - {attempt.worker for attempt in running.values()}:
            if saving and waiting and waiting[0].log:
                break  # what killed a worker once must not take finished trials with another
            task, done_before = _next(waiting, root)
            yield from done_before
            if task is None:
                break
            number += 1
            future = _submit(client, number, task.unit, worker, engine, root, token)
            future.add_done_callback(news_of(number))
            running[number] = _Attempt(task, task.unit, future, worker, time.monotonic())
        if not (waiting or running or saving):
            break  # without waiting for news that nobody will send
        try:
            key, news = events.get(timeout=TICK)
        except queue.Empty:
            continue
        if isinstance(news, futures.Future):
            attempt, outcome = saving.pop(key), news.result()
            if outcome is None:
                yield from ended(attempt, "the worker died before it handed its trials over")
            else:
                yield outcome
            continue
        attempt_or_none = running.get(key)
        if attempt_or_none is None:
            continue  # of an attempt that was given up
        attempt = attempt_or_none
        if news is not attempt.future:
            running[key] = attempt._replace(heard=time.monotonic())
            if news[0] > 0:
                progress(attempt.part, *news)
            continue
        del running[key]
        if news.status == "finished":
            saving[key] = attempt
            saver.submit(_save, attempt, root).add_done_callback(news_of(key))
        elif news.status == "error":
            yield from _error(attempt, news.exception(), news.traceback(), ended)
        else:
            yield from ended(attempt, f"the work was {news.status}")


def _next(waiting: deque[_Task], root: Path) -> tuple[_Task | None, list[Done]]:
    """The next work to hand out; and units that turn out to be done, by a worker that died later."""
    done = []
    while waiting:
        task = waiting.popleft()
        pieces = parts(root, task.unit)
        waiting.extendleft(_Task(part, task.log) for part in reversed(pieces[1:]))
        finished = set(task.unit.seeds) - {seed for part in pieces for seed in part.seeds}
        if finished:
            done.append(Done(Unit(task.unit.condition, tuple(sorted(finished))), 0.0))
        if pieces:
            return _Task(pieces[0], task.log), done
    return None, done


def _submit(client: Any, number: int, unit: Unit, worker: str, engine: Engine, root: Path, token: str) -> Any:
    begun = [checkpoints.dumps(networks) for networks in begun_trials(root, unit)]
    task = collection.held(unit.condition.task)
    return client.submit(
        _remote, number, unit, begun, str(root.absolute()), token, engine.every, plugins.sources(),
        task and task.text,
        pure=False, workers=[worker], allow_other_workers=False,
    )  # fmt: skip


def _put(root: Path, unit: Unit, result: Work) -> Done:
    """Write what was trained."""
    store.put(root, unit.condition, result.trials)
    return Done(unit, result.seconds, result.diverged)


def _save(attempt: _Attempt, root: Path) -> Done | None:
    """Fetch and write what a worker trained; None if it is gone, and all with it."""
    from distributed.scheduler import KilledWorker

    try:
        result: Work = attempt.future.result(timeout=60)
    except (KilledWorker, futures.CancelledError, asyncio.CancelledError, TimeoutError, OSError):
        attempt.future.cancel()
        return None
    return _put(root, attempt.part, result)


def _error(
    attempt: _Attempt, error: BaseException, trace: Any, ended: Callable[[_Attempt, str], Iterable[Failure]]
) -> Iterator[Failure]:
    if isinstance(error, OSError) and error.errno in FATAL:
        raise error
    if isinstance(error, BadInput):  # which only a person can mend
        yield Failure(attempt.part, f"{error}\n")
        return
    yield from ended(attempt, "".join(traceback.format_exception(type(error), error, trace)))


def _alive(client: Any, engine: Engine) -> set[str]:
    """Asked of the scheduler itself: `client.scheduler_info` may give what the client asked for meanwhile, by
    itself, which is without workers. It closes itself at any moment, too, and then has no scheduler."""
    with suppress(OSError, AttributeError):
        if client.status == "running":
            return set(client.sync(client.scheduler.identity, n_workers=-1)["workers"])
    raise BadInput(
        f"the dask scheduler of --engine {engine.where} is gone: start it, and run the same command to go on"
    )


def _end(client: Any, worker: str) -> None:
    """Have a worker that hangs killed by its nanny, which then starts another. One without is left alone."""
    client.run(_kill, workers=[worker], nanny=True, on_error="ignore")


def _kill(dask_worker: Any) -> None:
    """Run by a nanny, which dask hands over under this name."""
    os.kill(dask_worker.pid, signal.SIGKILL)
