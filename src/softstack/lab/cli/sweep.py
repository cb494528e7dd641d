"""`softstack sweep` and `softstack status`."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from rich.table import Table

from softstack.errors import BadInput, unknown
from softstack.lab.cli.options import Json, Names
from softstack.lab.cli.screen import say, show
from softstack.lab.runs import sinks, store
from softstack.lab.sweeps import jobs, progress, tally
from softstack.lab.sweeps import plans as sweeps
from softstack.lab.sweeps import workers as clusters
from softstack.lab.sweeps.workers import Engine
from softstack.words import counted, shown


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
    sink: Names = None,
    dry_run: bool = False,
    as_json: Json = False,
) -> None:
    """Train every condition of a TOML file with every seed.

    Stop it at any time, or lose the machine, and run it again: what is finished is kept, and what was in the
    middle of its training goes on from there.

    softstack sweep mine.toml

    softstack sweep mine.toml --engine tcp://host:8786    # on a dask cluster

    softstack sweep mine.toml --engine slurm --dry-run    # show the job script

    A file:

        # 0 to 19; or a list, or {first = 100, count = 20}
        seeds = 20
        # What stays the same; [[condition]] for several
        [condition]
        task = "reversal"
        # Every combination
        [product]
        controller = ["linear", "lstm"]
        # Or [sobol], which spreads more evenly
        [random]
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
        local (one process per core), inline (in this process), tcp://host:port or tls://host:port (a running
        dask scheduler), or slurm (with the options of the file's [slurm])
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
    """
    root = out or Path("runs") / file.stem
    plan = sweeps.load(file, root)
    for note in plan.notes:
        say(note)
    if not (checkpoint >= 0 and stall > 0 and (workers is None or workers > 0)):
        raise BadInput("--checkpoint must not be negative, and --stall and --workers must be more than 0")
    chosen = clusters.check(
        Engine(engine, workers, tls_ca_file, tls_cert, tls_key, plan.slurm, checkpoint, stall)
    )
    if dry_run:
        _dry_run(root, plan, chosen)
        return
    done = jobs.run_sweep(root, plan, chosen, say, _all_of(root, sink or []))
    missing = sum(len(jobs.missing(root, condition, plan.seeds)) for condition in plan.conditions)
    if as_json:
        outcome = {**done._asdict(), "failed": [str(path) for path in done.failed], "trials": plan.trials}
        print(json.dumps({**outcome, "there": plan.trials - missing}))
    else:
        trials = counted(plan.trials, "trial is", "trials are")
        print(f"{root}: {plan.trials - missing} of {trials} there, {done.trained} trained now")
        if done.trained:
            print(f"{done.seconds:.1f} s by the clock, {done.work:.1f} s of training on all workers together")
        for path in done.failed:
            print(f"failed: {path}: {shown(jobs.reason(path))}")
    if missing:
        sys.exit(1)


def _all_of(root: Path, names: list[str]) -> Callable[[store.Run], None] | None:
    for name in names:
        if name not in sinks.SINKS:
            raise unknown("sink", name, sinks.SINKS)

    def into_all(run: store.Run) -> None:
        for name in names:
            sinks.SINKS[name](root, run)

    return into_all if names else None


def _dry_run(root: Path, plan: sweeps.Sweep, engine: Engine) -> None:
    seeds_of = {condition: jobs.missing(root, condition, plan.seeds) for condition in plan.conditions}
    blocks = counted(len(jobs.blocks(seeds_of, engine)), "block")
    conditions, seeds = counted(len(plan.conditions), "condition"), counted(len(plan.seeds), "seed")
    missing, trials = sum(map(len, seeds_of.values())), counted(plan.trials, "trial")
    print(f"{conditions} with {seeds} each; {missing} of {trials} to train under {root}, in {blocks}")
    if engine.where == "slurm":
        with clusters.slurm_cluster(engine) as cluster:
            print(cluster.job_script(), end="")


def status(root: Path = Path("runs"), /, *, as_json: Json = False) -> None:
    """How far the sweeps under a directory are: done, running, failed, rate and time left.

    softstack status runs/mine

    Parameters
    ----------
    root
        where run directories are, or folders with them
    """
    standings: list[progress.Standing] = []
    started = progress.plans(root)
    for plan in started:
        try:
            standings.append(progress.read(plan))
        except (BadInput, OSError) as error:
            say(f"{plan} is left out: {error}")
    if as_json:
        print(json.dumps([standing._asdict() for standing in standings]))
        return
    if started and not standings:
        raise BadInput(f"no sweep under {root} could be read")
    if not standings:
        raise BadInput(f"no sweep was started under {root}: `softstack sweep FILE.toml` starts one")
    screen = Table("under", "sweep", "trials", "done", "running", "failed", "missing", "rate", "time left")
    for now in standings:
        numbers = (now.trials, now.done, now.running, now.failed, now.missing)
        rate = f"{now.rate:.1f} a second" if now.rate else "-"
        counts = map(str, numbers)
        screen.add_row(shown(now.root), shown(now.name), *counts, rate, tally.duration(now.seconds_left))
    show(screen)
    for standing in standings:
        for path in standing.records:
            print(f"failed: {shown(path)}: {shown(jobs.reason(Path(path)))}")
