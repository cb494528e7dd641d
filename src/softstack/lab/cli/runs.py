"""The commands for many runs. Each is a few lines: the work is done elsewhere."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from softstack.errors import BadInput, unknown
from softstack.lab.cli.screen import say, wide
from softstack.lab.runs import disk, sinks, store
from softstack.lab.runs import export as exporting
from softstack.lab.sweeps import jobs, progress, tally
from softstack.lab.sweeps import plans as sweeps
from softstack.lab.sweeps import workers as clusters
from softstack.lab.sweeps.workers import Engine

Sinks = Annotated[list[str] | None, Parameter(consume_multiple=True)]


def sweep(
    file: Path,
    /,
    *,
    out: Path | None = None,
    engine: str = "local",
    workers: int | None = None,
    tls_ca_file: Path | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    checkpoint: float = 30.0,
    stall: float = 600.0,
    sink: Sinks = None,
    dry_run: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Train every condition of a TOML file with every seed.

    Stop it at any time, or lose the machine, and run it again: what is finished is kept, and what was in the
    middle of its training goes on from there.

    softstack sweep mine.toml

    softstack sweep mine.toml --engine tcp://host:8786      on a running dask cluster

    softstack sweep mine.toml --engine slurm --dry-run      show the job script that would be submitted

    A file:

        seeds = 20                          # 0 to 19; or a list; or {first = 100, count = 20}
        [condition]                         # what stays the same; [[condition]] for several
        task = "reversal"
        [product]                           # every combination
        controller = ["linear", "lstm"]
        [random]                            # or [sobol], which spreads more evenly
        samples = 50
        learning_rate = {low = 1e-3, high = 1e-1, log = true}
        hidden_size = {low = 5, high = 40}

    Parameters
    ----------
    file
        the sweep
    out
        where run directories go; runs/NAME for NAME.toml if not given
    engine
        local (a process a core), inline (in this process), tcp://host:port or tls://host:port (a running dask
        scheduler), or slurm (with the options of the file's [slurm])
    workers
        how many workers local or slurm start
    tls_ca_file
        certificate of the authority that signed the cluster's, for tls://
    tls_cert
        our certificate, for tls://
    tls_key
        our key, for tls://
    checkpoint
        seconds from one saving of unfinished trials to the next
    stall
        seconds without an epoch after which a worker is taken to hang
    sink
        where the curves of each finished trial go too: tensorboard, wandb or both
    dry_run
        say what would be done, and do nothing
    as_json
        print JSON
    """
    asked = sweeps.load(file)
    root = out or Path("runs") / file.stem
    if not (checkpoint >= 0 and stall > 0 and (workers is None or workers > 0)):
        raise BadInput("--checkpoint must not be negative, and --stall and --workers must be more than 0")
    chosen = clusters.check(
        Engine(engine, workers, tls_ca_file, tls_cert, tls_key, asked.slurm, checkpoint, stall)
    )
    if dry_run:
        _dry_run(root, asked, chosen)
        return
    done = jobs.run_sweep(root, asked, chosen, say, _all_of(root, sink or []))
    lost = sum(len(jobs.missing(root, condition, asked.seeds)) for condition in asked.conditions)
    if as_json:
        about = {**done._asdict(), "failed": [str(path) for path in done.failed], "trials": asked.trials}
        print(json.dumps({**about, "there": asked.trials - lost}))
    else:
        print(f"{root}: {asked.trials - lost} of {asked.trials} trials are there, {done.trained} trained now")
        if done.trained:
            print(f"{done.seconds:.1f} s by the clock, {done.work:.1f} s of training on all workers together")
        for path in done.failed:
            print(f"failed: {path}")
    if lost:
        sys.exit(1)


def _all_of(root: Path, names: list[str]) -> Callable[[store.Run], None] | None:
    for name in names:
        if name not in sinks.SINKS:
            raise unknown("sink", name, sinks.SINKS)

    def each(run: store.Run) -> None:
        for name in names:
            sinks.SINKS[name](root, run)

    return each if names else None


def _dry_run(root: Path, asked: sweeps.Sweep, engine: Engine) -> None:
    left = {condition: jobs.missing(root, condition, asked.seeds) for condition in asked.conditions}
    units = jobs.blocks(left, engine)
    trials = sum(map(len, left.values()))
    print(
        f"{len(asked.conditions)} conditions with {len(asked.seeds)} seeds each; "
        f"{trials} of {asked.trials} trials to train under {root}, in {len(units)} blocks"
    )
    if engine.where == "slurm":
        with clusters.slurm_cluster(engine) as cluster:
            print(cluster.job_script(), end="")


def export(
    run_dir: Path,
    /,
    *,
    format: Annotated[str, Parameter(name=["--format", "-f"])] = "safetensors",
    length: int = 24,
    out: Path | None = None,
) -> None:
    """Write a trained network in a form that other programs read.

    softstack export RUN_DIR                      a plain state dict

    softstack export RUN_DIR --format torch       a graph as torch.export saves it, for `torch.export.load`

    Parameters
    ----------
    run_dir
        the directory of one trial, as `softstack train` prints it
    format
        safetensors, torch or json
    length
        the steps of the strings that a graph takes; their number is free
    out
        the file; named after the run if not given
    """
    if format not in exporting.FORMATS:
        raise unknown("format", format, exporting.FORMATS)
    if length < 1:
        raise BadInput(f"--length must be at least 1; got {length}")
    run = store.load(run_dir)
    made = exporting.FORMATS[format]
    path = out or Path(f"{run.condition.name}-seed-{run.seed}{made.suffix}")
    disk.write(path, made.write(run, length))
    print(f"Written: {path}")


def status(
    root: Path = Path("runs"), /, *, as_json: Annotated[bool, Parameter(name="--json")] = False
) -> None:
    """How far the sweeps under a directory are: done, running, failed, rate and time left.

    softstack status runs/mine

    Parameters
    ----------
    root
        where run directories are
    as_json
        print JSON
    """
    found = [progress.read(path) for path in progress.plans(root)]
    if as_json:
        print(json.dumps([each._asdict() for each in found]))
        return
    if not found:
        raise BadInput(f"no sweep was started under {root}: `softstack sweep FILE.toml` starts one")
    screen = Table("sweep", "trials", "done", "running", "failed", "missing", "rate", "time left")
    for each in found:
        numbers = (each.trials, each.done, each.running, each.failed, each.missing)
        rate = f"{each.rate:.1f} a second" if each.rate else "-"
        screen.add_row(each.name, *map(str, numbers), rate, tally.duration(each.seconds_left))
    wide().print(screen)
    for each in found:
        for path in each.records:
            print(f"failed: {path}")


COMMANDS: list[Callable[..., Any]] = [sweep, status, export]
