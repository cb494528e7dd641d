"""The report of `softstack solve`: what the recipe makes of the paper's tasks, beside what the paper has.

solved.json    a list of rows: a network, how it was trained, and its trials with every restart's dev loss
solved.md      a line for each network, to read
solved.html    the same to look at: solved_page.py; its lines lead to pages in which the networks run
meta.json      commit, versions, seeds and time taken

A trial is scored on its test strings, about twice as long as those of the training; on strings ten and
fifty times as long, drawn in the same way (`tasks.longer`); and on strings ten times as long that are built
to go deeper (`tasks.of_length`). For a network with a stack that the recipe trained, the report also says
what it does with its stack (`swaps.py`), and whether the machine that is read off it does the task.
"""

import json
from collections.abc import Sequence
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch

from softstack.formal.grammar import Grammar
from softstack.formal.running import transduced
from softstack.formal.sampling import count_strings, enumerate_strings
from softstack.formal.transducer import Transducer
from softstack.lab import tasks
from softstack.lab.explain.diagnosis import accuracy_at
from softstack.lab.explain.extract import extract
from softstack.lab.explain.fidelity import output_of
from softstack.lab.explain.swaps import use
from softstack.lab.reports import names, table1, writing
from softstack.lab.reports.writing import SOLVED, Line
from softstack.lab.runs import store
from softstack.lab.tasks import Task
from softstack.lab.training.recipes import Row
from softstack.words import counted
from softstack_command import forks

Word = tuple[str, ...]
WORDS = 20_000  # strings that are tried on two machines
LONGEST = 12  # symbols of such a string
FACTORS = {10: 100, 50: 20}  # strings, by how many times they are as long as those of the training
TITLE = "How to make a controller use its stack"


def scored(path: Path, recipe: str) -> Line:
    """A trial of a row: its result, and what is measured of its network."""
    torch.set_num_threads(1)
    run = store.load(path)
    condition, result = run.condition, run.result
    network, task = store.network(run), tasks.find(condition.task)
    line = {name: result[name] for name in ("seed", "dev", "test", "dev_loss")}
    for factor, count in FACTORS.items():
        strings = tasks.longer(task, np.random.default_rng([run.seed, factor]), count, factor)
        line[f"test_{factor}x"] = accuracy_at(network, condition, strings)
    deep = tasks.of_length(task, np.random.default_rng([run.seed, 0]), FACTORS[10], 10 * task.length("train"))
    line["test_10x_deep"] = accuracy_at(network, condition, deep)
    line |= {name: result[name] for name in ("restart", "restarts") if name in result}
    if recipe == "solve" and condition.memory == "stack":
        line["use"] = use(network, condition, run.seed).kind
        line |= _machine(run, network)
    return line


def _machine(run: store.Run, network: Any) -> Line:
    """Whether the machine read off a network does the task, or why there is none."""
    task = tasks.find(run.condition.task)
    extraction = extract(network, run.condition, run.seed)
    if extraction.machine is None or not extraction.explained:
        return {"machine": "none", "why": extraction.sentence}
    line = {"states": len(extraction.machine.states)}
    exact = tasks.machine_of(task)
    if exact is None:
        return {**line, "machine": "unknown"}
    word, length = difference(exact, extraction.machine, task)
    if word is not None:
        return {**line, "machine": "different", "word": " ".join(word)}
    return {**line, "machine": "equal", "length": length}


def difference(exact: Transducer, machine: Transducer, task: Task) -> tuple[Word | None, int]:
    """A shortest beginning of the task's strings to which a machine does not say what is scored, and the
    length up to which every one was tried, WORDS of them at most. A task without a grammar has all strings
    that its own machine reads."""
    grammar: Grammar | None = getattr(task, "grammar", None)
    beginnings = None if grammar is None else _beginnings(grammar)

    def begins(word: Word) -> bool:
        return len(transduced(exact, word)) == len(word) if beginnings is None else word in beginnings

    words: list[Word] = [()]
    count = length = 0
    while words and count + len(words) * len(task.inputs) <= WORDS and length < LONGEST:
        longer = [(*word, symbol) for word in words for symbol in task.inputs]
        words = [word for word in longer if begins(word)]
        for word in words:
            pairs = zip_longest(output_of(exact, word), output_of(machine, word))
            if any(right != answer for right, answer in pairs if right not in (None, task.padding)):
                return word, len(word)
        count, length = count + len(longer), length + 1
    return None, length


@cache
def _beginnings(grammar: Grammar) -> frozenset[Word]:
    """The beginnings, of up to LONGEST symbols, of all strings of a depth that has at least WORDS of them."""
    depth = 2
    while count_strings(grammar, depth) < WORDS:
        depth += 1
    return frozenset(
        string[:end]
        for string in enumerate_strings(grammar, depth)
        for end in range(1, min(LONGEST, len(string)) + 1)
    )


def rows(root: Path, plan: Sequence[Row], seeds: Sequence[int], processes: int) -> list[Line]:
    """The rows of solved.json, from the trials under `root`. What was measured of a trial is kept there."""
    places = {(row, seed): store.place(root, row.condition, seed) for row in plan for seed in seeds}
    files = {k: root / "measured" / f"{path.parent.name}-{path.name}.json" for k, path in places.items()}
    missing = [
        partial(_measure, path, row.recipe, files[row, seed])
        for (row, seed), path in places.items()
        if _measured(files[row, seed], path) is None
    ]
    for _ in forks.results(missing, processes):
        pass
    return [
        {
            "task": row.condition.task,
            "controller": row.condition.controller,
            "memory": row.condition.memory,
            "buffered": row.condition.buffered,
            "recipe": row.recipe,
            "restarts": row.condition.restarts,
            "paper_row": row.paper,
            "condition": row.condition.name,
            "trials": [_measured(files[row, seed], places[row, seed]) for seed in seeds],
        }
        for row in plan
    ]


def _measure(path: Path, recipe: str, file: Path) -> None:
    digest = store.digest((path / "result.json").read_bytes())
    store.write(file, json.dumps({"result": digest, "line": scored(path, recipe)}))


def _measured(file: Path, path: Path) -> Line | None:
    """What was measured of this very trial."""
    if not file.exists():
        return None
    content: dict[str, Any] = json.loads(file.read_text())
    return content["line"] if content["result"] == store.digest((path / "result.json").read_bytes()) else None


HEADER = (
    "task", "network", "the paper", "its recipe, ours", "with 16 restarts", "this recipe", "solved",
    "10x", "50x", "10x, deep", "without a stack", "uses its stack", "machine is the task's",
)  # fmt: skip


class Key(NamedTuple):
    """A network, whatever it was trained by."""

    task: str
    controller: str
    buffered: bool


def networks(rows: Sequence[Line]) -> dict[Key, dict[str, Line]]:
    """The rows of each network, by how it was trained: "paper", "restarts", "solve", or "alone", by the
    recipe without a stack."""
    kinds: dict[Key, dict[str, Line]] = {}
    for row in rows:
        key = Key(row["task"], row["controller"], row["buffered"])
        kind = row["recipe"] if row["recipe"] == "solve" or row["restarts"] == 1 else "restarts"
        kinds.setdefault(key, {})["alone" if row["memory"] == "none" else kind] = row
    return kinds


def counts(row: Line) -> dict[str, tuple[int, int]]:
    """How many trials solve their task, and what is true of how many of those."""
    wins = [trial for trial in row["trials"] if trial["test"] >= SOLVED]
    return {
        "solved": (len(wins), len(row["trials"])),
        "use their stack": (sum(trial["use"] == "stack" for trial in wins), len(wins)),
        "machines are the task's": (sum(map(same_machine, wins)), len(wins)),
    }


def lines(rows: Sequence[Line]) -> list[list[str]]:
    """One for each network: its rows side by side. Medians of the trials, in percent."""
    return [_line(key, kinds) for key, kinds in networks(rows).items()]


def _line(key: Key, kinds: dict[str, Line]) -> list[str]:
    row, trials_of = kinds["solve"], {kind: row["trials"] for kind, row in kinds.items()}
    solved, stacks, machines = (f"{count} of {of}" for count, of in counts(row).values())
    number = row["paper_row"]
    return [
        key.task.replace("_", " "),
        names.network(key.controller, buffered=key.buffered),
        f"{table1.paper_rows()[number - 1]['test_median']:.1f}" if number else "",
        median_of(trials_of.get("paper")),
        median_of(trials_of.get("restarts")),
        median_of(row["trials"]),
        solved,
        median_of(row["trials"], "test_10x"),
        median_of(row["trials"], "test_50x"),
        median_of(row["trials"], "test_10x_deep"),
        median_of(trials_of.get("alone")),
        stacks,
        machines,
    ]


def same_machine(trial: Line) -> bool:
    """Whether the machine of a trial gives the task's answers, up to the length that was tried."""
    return bool(trial["machine"] == "equal")


def median_of(trials: Sequence[Line] | None, what: str = "test") -> str:
    """In percent; nothing without trials."""
    return f"{100 * median(trial[what] for trial in trials):.1f}" if trials else ""


def legend(trials: int) -> str:
    return (
        f"Median test accuracy of {counted(trials, 'trial')} in percent, on strings about twice as long as "
        "those of the training; `10x` and `50x`: as many times as long, drawn in the same way; `deep`: built "
        "to go deeper than those (parentheses nested to a quarter of the length, formulas of any shape). "
        f"`solved`: trials of at least {SOLVED:.1%}. The last two columns count those of them that "
        "`softstack diagnose` finds to use their stack as a stack, and those whose extracted machine gives "
        "the task's own answers, wherever they are scored, on every string up to a length (see solved.json)."
    )


def verdict(rows: Sequence[Line]) -> str:
    """What it means, in two sentences."""
    stacks, alone = (
        [
            (row["task"], median(trial["test"] for trial in row["trials"]))
            for row in rows
            if (row["recipe"], row["memory"]) == ("solve", memory)
        ]
        for memory in ("stack", "none")
    )
    full = sum(round(100 * accuracy, 1) == 100.0 for _, accuracy in stacks)
    sentence = (
        f"A median test accuracy of 100.0 % is reached by {full} of {counted(len(stacks), 'network')} with a "
        "stack that this recipe trained."
    )
    if not alone:
        return sentence
    solved = [names.task(task) for task, accuracy in alone if accuracy >= SOLVED]
    tasks = f": {' and '.join(solved)}" if solved else ""
    return f"{sentence} Without a stack the same recipe solves {len(solved)} of {len(alone)} tasks{tasks}."


def stamp(meta: Line) -> str:
    return writing.stamp("solve", meta)


def markdown(rows: Sequence[Line], meta: Line) -> str:
    table = writing.table(HEADER, lines(rows))
    return "\n\n".join([legend(len(meta["seeds"])), table, verdict(rows), stamp(meta)]) + "\n"


def write(out: Path, rows: Sequence[Line], meta: Line) -> None:
    texts = {
        "solved.json": json.dumps(rows, indent=1),
        "solved.md": f"# {TITLE}\n\n" + markdown(rows, meta),
        "meta.json": json.dumps(meta, indent=2),
    }
    writing.write(out, texts)
