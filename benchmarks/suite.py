"""`softstack suite` trained and scored by processes of its own, for a machine with a GPU and without dask.

    python benchmarks/suite.py --out runs/suite [--published] [--processes 28] [--seconds 500] [--pack FOLDER]

Writes what `softstack suite --out runs/suite` reads: run directories and measured scores, so that the command
has only the report left to do. A cell that is there is not trained again; after `--seconds` no further one is
begun. With `--pack` everything is put into archives of at most 14 MB in a folder. Several processes share a
GPU best under CUDA MPS: `nvidia-cuda-mps-control -d` first.
"""

import argparse
import gc
import multiprocessing
import os
import tarfile
import time
import traceback
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
HEAVY = ("nondeterministic", "deque", "superposition", "multipop")  # begun first, the longest of all


def worked(job: tuple[Path, Any, list[int], float, str, Any]) -> str:
    import torch

    from softstack.lab.explain import published
    from softstack.lab.reports import scores
    from softstack.lab.runs import store, versions
    from softstack.lab.training.train import train

    root, condition, seeds, until, commit, claim = job
    if time.time() > until:
        return f"{condition.name}: left for another time"
    if commit:
        versions.commit = lambda: commit  # type: ignore[assignment] # there is no git where this runs
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    began = time.perf_counter()
    try:
        missing = [seed for seed in seeds if not store.finished(root, condition, seed)]
        trials = train(condition, missing, device) if missing else []
        trained = time.perf_counter()
        store.put(root, condition, {trial.seed: store.files(trial) for trial in trials})
        if claim:
            published.scored(root, claim, condition, seeds, device)
        else:
            scores.trials(root, condition, seeds, device)
    except Exception:
        return f"{condition.name} failed\n{traceback.format_exc()}"
    finally:
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()
    return f"{condition.name}: {trained - began:.1f} s, scored in {time.perf_counter() - trained:.1f} s"


def packed(root: Path, folder: Path, most: int = 14_000_000) -> None:
    """Archives of the directories under a root, each of at most about this many bytes."""
    number, archive = 0, None
    for path in sorted(root.iterdir()):
        if archive is None:
            archive = tarfile.open(folder / f"part-{number}.tar.gz", "w:gz", compresslevel=6)  # noqa: SIM115
        archive.add(path, path.name)
        if archive.fileobj is not None and archive.fileobj.tell() > most:
            archive.close()
            number, archive = number + 1, None
    if archive is not None:
        archive.close()


def main() -> None:
    from softstack.lab import tasks
    from softstack.lab.training import suite
    from softstack.lab.training.published import CLAIMS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--pack", type=Path)
    parser.add_argument("--commit", default="", help="what is trained, where there is no git")
    parser.add_argument("--tasks", nargs="*", default=list(suite.TASKS))
    parser.add_argument("--memories", nargs="*", default=suite.memories())
    parser.add_argument("--controllers", nargs="*", default=list(suite.CONTROLLERS))
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--trials", type=int, default=suite.TRIALS)
    arguments = parser.parse_args()
    until, seeds = time.time() + arguments.seconds, list(range(arguments.trials))
    conditions = [
        cell.condition for cell in suite.cells(arguments.tasks, arguments.memories, arguments.controllers)
    ]

    wanted = CLAIMS if arguments.published else ()
    claims = {condition: claim for claim in wanted for condition in claim.conditions}

    def weight(condition: Any) -> tuple[int, int]:
        place = HEAVY.index(condition.memory) if condition.memory in HEAVY else len(HEAVY)
        return place, -tasks.find(condition.task).length("train")

    jobs = [
        (arguments.out, c, seeds, until, arguments.commit, claims.get(c))
        for c in (*claims, *sorted(conditions, key=weight))
    ]
    began = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        for k, line in enumerate(pool.imap_unordered(worked, jobs), 1):
            print(f"{time.perf_counter() - began:6.0f} s  {k} of {len(jobs)}  {line}", flush=True)
    if arguments.pack:
        packed(arguments.out, arguments.pack)


if __name__ == "__main__":
    main()
