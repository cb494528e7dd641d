"""SLURM's part is played by two commands of its names that run a job script on this machine."""

import os
import time
from pathlib import Path

import psutil
import pytest

from softstack.errors import BadInput
from softstack.lab.sweeps import jobs
from softstack.lab.sweeps import workers as clusters
from softstack.lab.sweeps.plans import Sweep
from softstack.lab.sweeps.workers import Engine
from softstack.lab.training.conditions import Condition
from softstack_command import main as cli

SMALL = Condition("reversal", "linear", "stack", train_size=20, dev_size=5, test_size=5, max_epochs=2)
FILE = """
seeds = 3
[condition]
task = "reversal"
[slurm]
queue = "short"
memory = "2GB"
walltime = "00:10:00"
jobs = 2
job_extra_directives = ["--exclusive"]
"""


def test_a_dry_run_shows_the_job_script_and_submits_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(FILE)
    with pytest.raises(SystemExit) as stop:
        cli(["sweep", "mine.toml", "--engine", "slurm", "--dry-run"])
    assert not stop.value.code
    out = capsys.readouterr().out
    assert "3 of 3 trials to train under runs/mine, in 1 block" in out
    for line in ("#SBATCH -p short", "#SBATCH --mem=2G", "#SBATCH -t 00:10:00", "#SBATCH --exclusive"):
        assert line in out
    assert "export OMP_NUM_THREADS=1" in out
    assert "distributed.cli.dask_worker tls://" in out
    assert [p.name for p in tmp_path.iterdir()] == ["mine.toml"]


def test_options_that_slurm_does_not_have():
    with pytest.raises(BadInput, match=r"unknown key in \[slurm\], 'que': did you mean 'queue'"):
        clusters.check(Engine("slurm", slurm={"que": "short"}))


def test_jobs_do_the_work(tmp_path, monkeypatch):
    """sbatch starts a script and says its number; scancel ends it."""
    commands = tmp_path / "bin"
    commands.mkdir()
    scripts = {
        "sbatch": f'cp "$1" {tmp_path}/job.sh\nsetsid sh {tmp_path}/job.sh >{tmp_path}/job.log 2>&1 &\n'
        'echo "Submitted batch job $!"',
        "scancel": f'echo "$1" >> {tmp_path}/cancelled\nkill -9 -- "-$1"',
    }
    for name, script in scripts.items():
        (commands / name).write_text(f"#!/bin/sh\n{script}\n")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    sweep = Sweep("x", (SMALL,), (0, 1, 2))
    options = {"queue": "short", "memory": "2GB", "jobs": 1}
    assert jobs.run_sweep(tmp_path / "slurm", sweep, Engine("slurm", slurm=options)).trained == 3
    jobs.run_sweep(tmp_path / "inline", sweep, Engine("inline"))
    results = [
        [p.read_bytes() for p in sorted((tmp_path / root).glob("*/seed-*/result.json"))]
        for root in ("slurm", "inline")
    ]
    assert results[0] == results[1]
    assert "#SBATCH -p short" in (tmp_path / "job.sh").read_text()
    (cancelled,) = (tmp_path / "cancelled").read_text().split()
    end = time.monotonic() + 30
    while psutil.pid_exists(int(cancelled)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not list(tmp_path.glob(".softstack-slurm-*"))
