"""Kill sweeps at random, and feed commands with run directories that somebody else could have written.

    python benchmarks/torture.py                100 rounds and 500 directories, 20 minutes at most
    python benchmarks/torture.py --rounds 10 --directories 50 --minutes 3

A round starts a sweep, or goes on with the one that was killed before, and kills its driver, its whole
process group or one of its workers. Every run that has its name must then be whole, and have the bytes of a
sweep that nobody disturbed. A directory is a valid run of which one value was changed, with correct digests:
every command that reads runs must answer with its result or a sentence.
"""

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

import softstack_command
from softstack.lab.runs import disk, store

COMMAND = [sys.executable, "-c", "import softstack_command; softstack_command.main()"]
SWEEP = """seeds = 6
[[condition]]
task = "reversal"
[[condition]]
task = "xor"
steps = 200
restarts = 4
halvings = 2
[product]
train_size = [100]
dev_size = [5]
test_size = [5]
max_epochs = [20]
patience = [20]
"""
VALUES: tuple[Any, ...] = (
    None, True, -1, 1.5, 2**63, 10**400, 1e308, float("inf"), float("nan"), "", "[/red]", "\x1b[31m",
    "\ud800", "../../..", [], [[]], {}, [1e999], {"a": 1}, "x" * 5000,
)  # fmt: skip


def results(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.glob("*/seed-*/result.json"))}


def sweep(folder: Path, root: str, *options: str) -> subprocess.Popen[bytes]:
    arguments = [*COMMAND, "sweep", "mine.toml", "--out", root, "--checkpoint", "0", *options]
    return subprocess.Popen(
        arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def kill(driver: subprocess.Popen[bytes], victim: str, rng: random.Random) -> bool:
    """Whether there was something to kill."""
    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
        if victim == "group":
            os.killpg(driver.pid, signal.SIGKILL)
        elif victim == "driver":
            driver.kill()
        else:
            grandchildren = [p for c in psutil.Process(driver.pid).children() for p in c.children()]
            if not grandchildren:
                return False
            rng.choice(grandchildren).kill()
        return True
    return False


def kills(folder: Path, rounds: int, end: float, rng: random.Random) -> dict[str, Any]:
    """What came of many kills."""
    began = time.monotonic()
    sweep(folder, "another", "--workers", "2").wait()
    usual = time.monotonic() - began
    expected = results(folder / "undisturbed")
    assert results(folder / "another") == expected and len(expected) == 12
    counts: Counter[str] = Counter()
    root, completed = folder / "0", 0
    while counts["rounds"] < rounds and time.monotonic() < end:
        victim = rng.choice(("driver", "group", "worker"))
        driver = sweep(folder, root.name, "--workers", "2")
        with contextlib.suppress(subprocess.TimeoutExpired):
            driver.wait(rng.uniform(0.2, 1.2) * usual)
        before = len(results(root))
        counts[victim] += kill(driver, victim, rng)
        driver.wait(timeout=300)
        counts["rounds"] += 1
        counts["after trials had finished"] += before > 0
        for path in root.glob("*/seed-*"):
            if not path.name.endswith(".unfinished"):
                store.network(store.load(path))  # raises where it is not whole
        there = results(root)
        counts["results that differ"] += sum(expected[name] != content for name, content in there.items())
        if there == expected:
            completed += 1
            root = folder / str(completed)
    sweep(folder, root.name, "--workers", "2").wait()
    counts["results that differ"] += results(root) != expected
    return {"sweeps": completed + 1, **counts}


def changed(content: Any, rng: random.Random) -> Any:
    """JSON with one value, anywhere in it, that is another."""
    if isinstance(content, dict) and content and rng.random() < 0.9:
        key = rng.choice(list(content))
        if rng.random() < 0.1:
            return {k: v for k, v in content.items() if k != key}
        return {**content, key: changed(content[key], rng)}
    return rng.choice(VALUES)


def strange(path: Path, rng: random.Random) -> None:
    """Change one thing in a run directory, and the digests with it."""
    name = rng.choice(store.FILES)
    content = (path / name).read_bytes()
    if name.endswith(".json"):
        content = json.dumps(changed(json.loads(content), rng)).encode()
    elif name == "metrics.jsonl":
        lines = [json.loads(line) for line in content.splitlines()]
        lines[rng.randrange(len(lines))] = changed(lines[0], rng)
        content = "\n".join(map(json.dumps, lines)).encode()
    elif name == "config.toml":
        value = rng.choice(
            ("inf", "nan", "-1", "0", "9" * 30, "1e308", '"[/red]"', "true", "[]", '"\\u001b"')
        )
        lines = content.decode().splitlines()
        at = rng.choice([k for k, line in enumerate(lines) if " = " in line])
        lines[at] = f"{lines[at].split(' = ')[0]} = {value}"
        content = "\n".join(lines).encode()
    else:
        at = rng.randrange(len(content))
        content = content[:at] + rng.randbytes(rng.choice((1, 4, 40))) + content[at + 4 :]
    (path / name).write_bytes(content)
    with contextlib.suppress(ValueError, TypeError, KeyError):
        result = disk.read_json(path / "result.json", 1 << 20)
        result["sha256"] = {n: store.digest((path / n).read_bytes()) for n in store.HASHED}
        (path / "result.json").write_text(json.dumps(result))


def asked(arguments: list[str]) -> tuple[int, str]:
    """The exit code of a command, and the traceback if there is one."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            softstack_command.main(arguments)
        except SystemExit as stop:
            return int(stop.code or 0), ""
        except Exception:
            return 1, traceback.format_exc()
    return 0, "Traceback" * ("Traceback" in said.getvalue())


def fuzz(folder: Path, directories: int, end: float, rng: random.Random) -> dict[str, Any]:
    """What commands make of directories with correct digests."""
    source = next((folder / "undisturbed").glob("reversal-*"))
    counts: Counter[str] = Counter()
    faults: list[str] = []
    root, out = folder / "strange", str(folder / "out")
    while counts["directories"] < directories and time.monotonic() < end:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(source, root / source.name)
        shutil.copytree(folder / "undisturbed" / "sweeps", root / "sweeps")
        for seed in range(1, 6):
            strange(root / source.name / f"seed-{seed}", rng)
        counts["directories"] += 5
        whole, one = str(root), [str(root / source.name / f"seed-{seed}") for seed in range(1, 6)]
        commands = [
            ["runs", whole],
            ["reindex", whole],
            ["status", whole],
            ["compare", "seed = 0", "seed < 9", whole],
        ]
        for path in one:
            commands += [["evaluate", path], ["trace", path, "0 1", "--out", f"{out}.json"]]
            commands += [
                ["view", path, "--no-open", "--out", f"{out}.html"],
                ["plot", path, "--out", f"{out}.svg"],
            ]
            commands += [["export", path, "--format", "json", "--out", f"{out}.export.json"]]
        for command in commands:
            code, fault = asked(command)
            counts["commands"] += 1
            counts["refused in a sentence"] += code == 2
            if fault:
                faults.append(f"{' '.join(command)}\n{fault}")
        counts["roots whose good run was lost"] += asked(["runs", whole, "--where", "seed = 0"])[0] != 0
    return {**counts, "tracebacks": len(faults), "faults": faults[:10]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--directories", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/torture"))
    options = parser.parse_args()
    rng, began = random.Random(options.seed), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "mine.toml").write_text(SWEEP)
        sweep(folder, "undisturbed", "--engine", "inline").wait()
        fuzzed = fuzz(folder, options.directories, began + 30 * options.minutes, rng)
        killed = kills(folder, options.rounds, began + 60 * options.minutes, rng)
    report = {
        **store.provenance("cpu"),
        "seconds": round(time.monotonic() - began),
        "kills": killed,
        "fuzz": fuzzed,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    store.write(options.out / "torture.json", json.dumps(report, indent=1).encode() + b"\n")
    for title, part in (("Kills", killed), ("Strange directories", fuzzed)):
        print(title)
        for key, value in part.items():
            if key != "faults":
                print(f"  {key:32}{value:8}")
    for fault in fuzzed["faults"]:
        print(fault)
    sys.exit(bool(killed["results that differ"] or fuzzed["tracebacks"]))


if __name__ == "__main__":
    main()
