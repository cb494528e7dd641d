"""Networks beside the transducers that they are, or should be: compiled and trained, in one table.

For each of the paper's six tasks the network compiled from its PDT, and of each of Table 1's networks with a
stack and without buffers the best and the median trial: accuracy at 1, 2, 10 and 100 times the length, the
verdict on its use of the stack, and the PDT extracted from it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from softstack.formal import drawing
from softstack.formal.transducer import Transducer
from softstack.lab import tasks
from softstack.lab.explain.ablation import Network
from softstack.lab.explain.compiled import compile_task, find
from softstack.lab.explain.diagnosis import accuracy_at, diagnose
from softstack.lab.explain.extract import extract
from softstack.lab.reports import writing
from softstack.lab.runs import store
from softstack.lab.training.conditions import TABLE_1, Condition
from softstack.lab.training.draws import stream

Row = dict[str, Any]
TASKS = ("reversal", "xor", "delayed_xor", "parenthesis", "formula", "agreement")
STRINGS = {1: 1000, 2: 1000, 10: 100, 100: 10}  # by how many times the length of the training strings
HEADER = (
    "task", "network", *(f"{factor}x" for factor in STRINGS), "does it use its stack?",
    "extracted PDT", "fidelity, 2x: strings", "symbols", "its accuracy, 2x",
)  # fmt: skip


def conditions(names: Sequence[str] = TASKS) -> list[Condition]:
    """Table 1's networks with a stack and without buffers."""
    return [c for c in TABLE_1 if c.memory == "stack" and not c.buffered and c.task in names]


def rows(runs: Path, seeds: Sequence[int], names: Sequence[str]) -> Iterator[tuple[Row, Transducer | None]]:
    """Each row, and the machine extracted from its network."""
    for name in names:
        compilation, trial = compile_task(*find(name))
        yield _row(compilation.network, trial.condition, 0, "compiled")
        for condition in conditions([name]):
            trials = writing.ranked(writing.runs_of(runs, condition, seeds))
            for kind, run in (("best", trials[-1]), ("median", trials[len(trials) // 2])):
                label = f"{condition.controller}, {kind} trial"
                yield _row(store.network(run), run.condition, run.seed, label)


def _row(network: Network, condition: Condition, seed: int, label: str) -> tuple[Row, Transducer | None]:
    extraction = extract(network, condition, seed)
    row = {
        "task": condition.task,
        "network": label,
        "seed": seed,
        "accuracy": {str(f): accuracy_at(network, condition, _strings(condition, seed, f)) for f in STRINGS},
        "diagnosis": diagnose(network, condition, seed).as_dict(),
        "extraction": extraction.as_dict(),
    }
    return row, extraction.machine


def _strings(condition: Condition, seed: int, factor: int) -> list[Any]:
    """Strings that are new to a trial: like those of its training, like those of its test, or longer."""
    task = tasks.find(condition.task)
    rng = np.random.default_rng([seed, factor])
    if factor == 1:
        return [task.example(word) for word in task.sample(rng, STRINGS[factor], "train")]
    if factor == 2:
        return tasks.draw(task, stream(seed, "test"), STRINGS[factor], "test")
    return tasks.of_length(task, rng, STRINGS[factor], factor * task.length("train"))


def cells(row: Row) -> list[str]:
    extraction, verdict = row["extraction"], row["diagnosis"]["verdict"]
    score = next((s for s in extraction["scores"] if s["factor"] == 2), None)
    if score is None:
        off = extraction["off"]
        size = f"none: strengths {off:.2f} from 0 or 1" if off > 0.01 else "none"
    else:
        size = extraction["size"] + ("" if extraction["explained"] else ", *which does not explain it*")
    return [
        row["task"].replace("_", " "),
        row["network"],
        *(f"{100 * accuracy:.1f}" for accuracy in row["accuracy"].values()),
        verdict,
        size,
        *("" if score is None else _share(score[name]) for name in ("fidelity", "symbols", "accuracy")),
    ]


def _share(share: Row) -> str:
    low, high = share["interval"]
    return f"{100 * share['value']:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


INTRODUCTION = """# Networks and the transducers that they are

Each of the paper's six tasks is done by a pushdown transducer (PDT). `softstack compile` turns that into a
network ([how](compile.md)); training by the paper's protocol finds another network. `softstack diagnose` says
what a network does with its stack, and `softstack extract` reads a PDT off it ([how](extract.md)).

Accuracy is in percent at 1, 2, 10 and 100 times the length of the training strings. The verdict is causal:
what two runs hold is swapped, and answers follow or do not. An extracted PDT's *fidelity* is the share of
strings to which it says all that the network says and nothing else, and of the symbols said; its *accuracy*
is how many of the symbols that the task asks for it says. All are measured on new strings of twice the
length, with 95 % intervals by Wilson's score over strings. A PDT that says something else to more than 1 % of
the strings at 1x or 2x does not explain its network. Of ten trials, in the order of their dev accuracy, the
best and the one in the middle are shown.
"""


def page(rows: Sequence[Row], meta: Row, pictures: Sequence[str]) -> str:
    """The docs page."""
    stamp = (
        f"Made by `softstack transducers` at commit {meta['commit']}, softstack {meta['softstack']}, torch "
        f"{meta['torch']}, Python {meta['python']}, in {meta['seconds'] / 60:.1f} minutes, {meta['time']}; "
        "the numbers behind it are in [transducers.json](transducers.json)."
    )
    parts = [INTRODUCTION, writing.table(HEADER, map(cells, rows)), stamp]
    if pictures:
        parts.append("## Machines that training found")
    for path in pictures:
        name = Path(path).stem.replace("-", " ")
        parts.append(f"{name.capitalize()}:\n\n![the PDT extracted from it: {name}]({path})")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def picture(row: Row, machine: Transducer | None) -> tuple[str, str] | None:
    """The name and the drawing of a small machine that explains a trained network."""
    if machine is None or row["network"] == "compiled" or not row["extraction"]["explained"]:
        return None
    if len(machine.states) > 3 or len(machine.rules) > 12:
        return None
    name = f"{row['task']}-{row['network'].replace(',', '').replace(' ', '-')}.svg".replace("_", "-")
    return name, drawing.svg(machine)
