"""The report of `softstack suite`: memories by controllers by tasks, with and without the recipe of `solve`.

suite.json     a list of rows, one for each cell: its network, its training, its trials and what a step costs
suite.md       a table for each task, to read
suite.html     the same to sort and to filter: suite_page.py
meta.json      commit, versions, seeds and time taken

scores.py says how a trial is scored, and costs.py what a step costs.
"""

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from softstack.lab import tasks
from softstack.lab.reports import costs, names, writing
from softstack.lab.reports.scores import FACTORS, trials
from softstack.lab.reports.writing import SOLVED
from softstack.lab.runs import store
from softstack.lab.training.conditions import Condition
from softstack.lab.training.suite import Cell
from softstack.words import counted

Row = dict[str, Any]
TITLE = "Memories, controllers and tasks, side by side"


def rows(root: Path, cells: Iterable[Cell], seeds: Sequence[int]) -> list[Row]:
    """The rows of suite.json, from the trials under `root`."""
    file = root / "costs.json"
    costs_of: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    lines = []
    for cell in cells:
        c = cell.condition
        network = Condition(c.task, c.controller, c.memory, memory_size=c.memory_size)
        if network.name not in costs_of:
            costs_of[network.name] = costs.of_step(network)._asdict()
            store.write_json(file, costs_of)
        lines.append(
            {
                "task": c.task,
                "memory": c.memory,
                "controller": c.controller,
                "recipe": cell.recipe,
                "measure": measure(c.task),
                "steps": c.steps,
                "restarts": c.restarts,
                "condition": c.name,
                **costs_of[network.name],
                "trials": trials(root, c, seeds),
            }
        )
    return lines


def measure(task: str) -> str:
    """What a task is judged by: whole strings where its paper counts those, else positions. A network
    that never predicts the end of a long a^n b^n is still right at nearly all positions."""
    return "whole" if "strings" in tasks.metrics_of(tasks.find(task)) else "right"


def middle(row: Row, factor: int, what: str = "") -> float | None:
    """The median over the trials, by what the task is judged by or by another measure; None where a task has
    no strings of that length. A network that diverged has no loss: it counts as infinite."""
    scores = [trial[f"{factor}x"][what or row["measure"]] for trial in row["trials"] if f"{factor}x" in trial]
    return median(math.inf if score is None else score for score in scores) if scores else None


def solved(row: Row) -> int:
    return sum(trial["2x"][row["measure"]] >= SOLVED for trial in row["trials"] if "2x" in trial)


HEADER = ("task", "memory", "controller", "recipe", "1x", "2x", "5x", "10x", "solved", "ms", "KiB")


def line(row: Row) -> list[str]:
    shares = [middle(row, factor) for factor in FACTORS]
    return [
        names.task(row["task"]),
        row["memory"],
        names.controller(row["controller"]),
        row["recipe"],
        *("" if share is None else percent(share) for share in shares),
        f"{solved(row)} of {len(row['trials'])}",
        f"{row['ms']:.1f}",
        f"{row['kib']:,.0f}",
    ]


def percent(share: float) -> str:
    """As the terminal, the tables and the page have it: the page does not round again."""
    return f"{100 * share:.1f}"


def best(rows: Sequence[Row], task: str, memory: str) -> Row | None:
    """Of a memory's cells on a task, that of the highest median at 10x."""
    cells = [row for row in rows if (row["task"], row["memory"]) == (task, memory)]
    scored = [row for row in cells if middle(row, 10) is not None]
    return max(scored, key=lambda row: middle(row, 10) or 0.0, default=None)


def values(rows: Sequence[Row], field: str) -> list[str]:
    """Those of a field, in the order of the rows."""
    return list(dict.fromkeys(str(row[field]) for row in rows))


def matrix(rows: Sequence[Row]) -> list[list[str]]:
    """A line for each task: of each memory the median of its best controller and recipe at 10x."""
    memories = values(rows, "memory")
    table = [["", *memories]]
    for task in values(rows, "task"):
        cells = [best(rows, task, memory) for memory in memories]
        table.append([names.task(task), *(percent(middle(row, 10) or 0) if row else "" for row in cells)])
    return table


def of_task(rows: Sequence[Row], task: str) -> list[list[str]]:
    """A line for each memory, a column for each controller and recipe: medians at 2x and 10x."""
    cells = {(row["memory"], row["controller"], row["recipe"]): row for row in rows if row["task"] == task}
    kinds = list(dict.fromkeys((controller, recipe) for _, controller, recipe in cells))
    table = [["", *(f"{names.controller(controller)}, {recipe}" for controller, recipe in kinds)]]
    for memory in dict.fromkeys(memory for memory, _, _ in cells):
        table.append([memory, *(_two(cells.get((memory, *kind))) for kind in kinds)])
    return table


def _two(row: Row | None) -> str:
    shares = [] if row is None else [middle(row, factor) for factor in (2, 10)]
    return " / ".join("-" if share is None else percent(share) for share in shares)


def cost_table(rows: Sequence[Row]) -> list[list[str]]:
    """A line for each memory, a column for each controller: median time and memory over the tasks."""
    kinds = values(rows, "controller")
    table = [["", *(names.controller(kind) for kind in kinds)]]
    for memory in values(rows, "memory"):
        cells = ([row for row in rows if (row["memory"], row["controller"]) == (memory, k)] for k in kinds)
        table.append([memory, *map(_median_cost, cells)])
    return table


def _median_cost(rows: Sequence[Row]) -> str:
    ms, kib = (median([row[what] for row in rows] or [0.0]) for what in ("ms", "kib"))
    return f"{ms:.2f} ms, {kib:,.0f} KiB" if rows else ""


def as_markdown(table: Sequence[Sequence[str]]) -> str:
    return writing.table(table[0], table[1:])


def legend(meta: Row) -> str:
    return (
        f"Medians of {counted(len(meta['seeds']), 'trial')}, in percent of the scored positions, or of "
        "the strings where the task's paper counts those; empty where nothing was trained. `1x` are "
        "strings as long as those of the training, `10x` are ten times as long. `plain`: trained as the "
        "paper does; `solve`: by the recipe of `softstack solve`; both for "
        f"{meta['steps']:,} steps of 10 strings, and each trial is that of the lowest dev loss among "
        f"{counted(meta['restarts'], 'restart')}. "
        f"`solved` counts the trials of at least {SOLVED:.1%} at 2x. `ms` and `KiB` are what one network "
        "takes for one batch, forward and backward, on one core, and what it keeps from one to the other."
    )


def verdict(rows: Sequence[Row]) -> str:
    """What came out, in a sentence or two."""
    counts = {}
    for memory in values(rows, "memory"):
        cells = [row for task in values(rows, "task") if (row := best(rows, task, memory))]
        if cells:  # else no string of any task is that long
            counts[memory] = sum((middle(row, 10) or 0) >= SOLVED for row in cells), len(cells)
    order = sorted(counts.items(), key=lambda item: -item[1][0])
    tally = ", ".join(f"{memory} {count} of {total}" for memory, (count, total) in order) or "not measured"
    return (
        f"A memory solves a task if the median trial of its best controller and recipe reaches {SOLVED:.1%} "
        f"on strings ten times as long as in training. Tasks solved: {tally}."
    )


def counting(rows: Sequence[Row]) -> str:
    """Which tasks count whole strings, where others count positions; "" where all are alike."""
    all_tasks = values(rows, "task")
    whole = [names.task(task) for task in all_tasks if measure(task) == "whole"]
    if len(whole) in (0, len(all_tasks)):
        return ""
    *before, last = whole
    subject = f"{', '.join(before)} and {last} are" if before else f"{last} is"
    return f"{subject} scored by whole strings, the others by symbols."


def stamp(meta: Row) -> str:
    return writing.stamp("suite", meta)


def markdown(rows: Sequence[Row], meta: Row, published: str = "", heading: str = "##") -> str:
    """`published` is the table of what papers report, if there is one."""
    parts = [legend(meta), " ".join([verdict(rows), counting(rows)]).strip(), as_markdown(matrix(rows))]
    for task in values(rows, "task"):
        parts += [f"{heading} {names.task(task)}", as_markdown(of_task(rows, task))]
    if published:
        parts += [f"{heading} What papers report", published]
    parts += [f"{heading} What a step costs", as_markdown(cost_table(rows)), stamp(meta)]
    return "\n\n".join(parts) + "\n"


def write(out: Path, rows: Sequence[Row], meta: Row, published: str = "") -> None:
    texts = {
        "suite.json": writing.json_rows(rows),
        "suite.md": f"# {TITLE}\n\n" + markdown(rows, meta, published),
        "meta.json": json.dumps(meta, indent=2),
    }
    writing.write(out, texts)
