"""A sweep on this machine, and the same on a cluster of two workers, one of which is killed halfway.

    python benchmarks/sweep.py [FILE.toml] [OUT]

Compares every result.json of the two, and writes OUT/sweep.json: times, what the engine cost, and the commit.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from softstack.lab.runs import store
from softstack.lab.sweeps import plans

BIN = Path(sys.executable).parent
ADDRESS = "tcp://127.0.0.1:8786"


def sweep(file: Path, root: Path, *options: str) -> subprocess.Popen[str]:
    command = [str(BIN / "softstack"), "sweep", str(file), "--out", str(root), "--json", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def outcome(running: subprocess.Popen[str]) -> dict[str, float]:
    output, _ = running.communicate()
    if running.returncode:
        sys.exit(f"the sweep failed: {output}")
    return dict(json.loads(output))


def started(*arguments: str) -> subprocess.Popen[bytes]:
    """Of dask, in a process group of its own, so that it can be killed with all that it started."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [BIN / "dask", *arguments], env=env, start_new_session=True, stderr=subprocess.DEVNULL
    )


def results(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.glob("*/seed-*/result.json")}


def on_a_cluster(file: Path, root: Path) -> tuple[dict[str, float], int]:
    """The outcome, and how many trials were there when a worker was killed."""
    half = plans.load(file).trials // 2
    processes = [started("scheduler", "--host", "127.0.0.1", "--port", "8786", "--no-dashboard")]
    time.sleep(3)
    try:
        processes += [started("worker", ADDRESS, "--nthreads", "1", "--no-dashboard") for _ in range(2)]
        running = sweep(file, root, "--engine", ADDRESS)
        while (done := len(results(root))) < half and running.poll() is None:
            time.sleep(0.5)
        os.killpg(processes[1].pid, signal.SIGKILL)
        return outcome(running), done
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def main() -> None:
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "examples/reversal.toml")
    out = Path(sys.argv[2] if len(sys.argv) > 2 else "runs/many")
    local = outcome(sweep(file, out / "local"))
    cluster, killed_after = on_a_cluster(file, out / "cluster")
    workers = min(os.cpu_count() or 1, 2)
    report = {
        **store.provenance("cpu"),
        "file": file.name,
        "trials": local["trials"],
        "workers": workers,
        "local": local,
        "cluster": cluster,
        "killed_after": killed_after,
        "identical": results(out / "local") == results(out / "cluster"),
        "overhead": workers * local["seconds"] / local["work"] - 1,
    }
    store.write(out / "sweep.json", json.dumps(report, indent=1).encode() + b"\n")
    print(json.dumps(report, indent=1))
    if not report["identical"]:
        sys.exit("the two sweeps differ")


if __name__ == "__main__":
    main()
