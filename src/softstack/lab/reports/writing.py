"""What reports of many trials share: tables in Markdown, their files, and where their numbers come from."""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from softstack.lab.runs import store
from softstack.lab.training.conditions import Condition
from softstack.words import counted, of_seeds

Line = dict[str, Any]
SOLVED = 0.995  # a trial that scores this has solved its task


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """In Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *lines))


def json_rows(rows: Sequence[Line]) -> str:
    """A list in JSON, with one row on each line."""
    return "[\n{}\n]".format(",\n".join(map(json.dumps, rows)))


def write(out: Path, texts: Mapping[str, str]) -> None:
    """Files by name, each with one end of line at its end."""
    for name, text in texts.items():
        store.write(out / name, text.rstrip("\n") + "\n")


def meta(
    root: Path,
    conditions: Sequence[Condition],
    seeds: Sequence[int],
    trained: int,
    began: float,
    former: Line,
) -> Line:
    """Where the trials under `root` come from, their commits and devices, and what training them cost in
    a call that began at `began`. If it trained none, the cost in a `former` report of them stays."""
    paths = [store.place(root, condition, seed) for condition in conditions for seed in seeds]
    sources = [json.loads((path / "provenance.json").read_text()) for path in paths]
    origin = {
        "commit": ", ".join(sorted({source["commit"] or "unknown" for source in sources})),
        "device": " and ".join(sorted({source["device"] for source in sources})),
        "seeds": list(seeds),
        "trials": len(paths),
    }
    cost = {"trained": trained, "cores": os.cpu_count(), "seconds": round(time.perf_counter() - began, 1)}
    if not trained and origin == {name: former.get(name) for name in origin}:
        cost = {name: former[name] for name in cost}
    return {**store.provenance("cpu"), **origin, **cost}


def former(out: Path) -> Line:
    """The meta.json of an earlier report in a folder, or nothing."""
    file = out / "meta.json"
    content: Line = json.loads(file.read_text()) if file.exists() else {}
    return content


def stamp(command: str, meta: Line) -> str:
    """Where the numbers come from, in a sentence, and what the call cost that trained them, in another."""
    source = (
        f"Trained by `softstack {command}` at commit {meta['commit']}, softstack {meta['softstack']}, on "
        f"{meta['device']}, {of_seeds(meta['seeds'])}."
    )
    if not meta["trained"]:
        return source
    trials, cores = counted(meta["trained"], "trial"), counted(meta["cores"], "core")
    return f"{source} The call trained {trials} and took {meta['seconds'] / 60:.0f} minutes on {cores}."


def measured(file: Path, runs: Sequence[store.Run], measure: Callable[[], list[Line]]) -> list[Line]:
    """What is measured of runs. It is kept in a file, with digests of what it was measured of."""
    digests = [store.digest((run.path / "result.json").read_bytes()) for run in runs]
    if file.exists() and (content := json.loads(file.read_text()))["results"] == digests:
        lines: list[Line] = content["trials"]
        return lines
    lines = measure()
    store.write(file, json.dumps({"results": digests, "trials": lines}) + "\n")
    return lines


def runs_of(root: Path, condition: Condition, seeds: Sequence[int]) -> list[store.Run]:
    """The trials of a condition under `root`."""
    return [store.load(store.place(root, condition, seed)) for seed in seeds]


def ranked(runs: Iterable[store.Run]) -> list[store.Run]:
    """In the order of their dev accuracy, the worst first."""
    return sorted(runs, key=lambda run: (run.result["dev"], run.result["test"]))
