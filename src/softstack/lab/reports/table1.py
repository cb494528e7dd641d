"""Table 1 beside the paper's: rows from run directories, and what is written of them.

table1.json    a list of 18 rows with the columns of the paper's table, plus `trials`, `paper`,
               `agrees` and, for the buffered rows, `corrected`: the same with the read-off corrected
table1.md      the same to read, as Markdown
table1.html    the same to look at: table_page.py; its rows lead to row-1.html and so on: row_page.py
trials.jsonl   each trial's result.json, one per line
meta.json      commit, versions, seeds and time taken
"""

import csv
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any

from softstack.lab.reports import writing
from softstack.lab.training.conditions import TABLE_1, Condition, corrected
from softstack.words import counted, of_seeds

Row = dict[str, Any]
STATISTICS = ("dev_min", "dev_median", "dev_max", "test_min", "test_median", "test_max")


def paper_rows() -> list[Row]:
    """The paper's Table 1, in percent."""
    text = resources.files(__package__).joinpath("paper_table1.csv").read_text()
    return [
        {key: float(value) if key in STATISTICS else value for key, value in row.items()}
        for row in csv.DictReader(text.splitlines())
    ]


def columns(condition: Condition) -> Row:
    """The first columns of Table 1."""
    return {
        "task": condition.task,
        "buffered": "yes" if condition.buffered else "no",
        "controller": condition.controller,
        "stack": "no" if condition.memory == "none" else "yes",
    }


def summary(trials: Sequence[Row]) -> Row:
    """min, median and max over trials, in percent, to the paper's one decimal."""
    return {
        f"{split}_{name}": round(100 * statistic([trial[split] for trial in trials]), 1)
        for split in ("dev", "test")
        for name, statistic in (("min", min), ("median", median), ("max", max))
    }


def table(root: Path, rows: Sequence[int], seeds: Sequence[int]) -> list[Row]:
    """The rows of Table 1, by their number from 1, from the trials under `root`."""
    reproduced = []
    for number in rows:
        condition, paper = TABLE_1[number - 1], paper_rows()[number - 1]
        trials = [run.result for run in writing.runs_of(root, condition, seeds)]
        row = {"row": number, **columns(condition), **summary(trials), "trials": trials}
        row["paper"] = {key: paper[key] for key in STATISTICS}
        row["agrees"] = agrees(row, paper)
        without_discard = corrected(condition)
        if without_discard is not None:
            trials = [run.result for run in writing.runs_of(root, without_discard, seeds)]
            row["corrected"] = {**columns(without_discard), **summary(trials), "trials": trials}
        reproduced.append(row)
    return reproduced


def agrees(row: Row, paper: Row) -> bool:
    """Whether our median lies inside the paper's [min, max], or above it, on dev and test."""
    return all(row[f"{split}_median"] >= paper[f"{split}_min"] for split in ("dev", "test"))


def link(row: Row, *, corrected: bool = False) -> str:
    """The file of a row's own page, beside the report."""
    return f"row-{row['row']}{'-corrected' if corrected else ''}.html"


def write(out: Path, rows: list[Row], meta: Row) -> str:
    """Write the files, and return the name that they have in common: another one if rows are missing."""
    trials = [
        trial for row in rows for part in (row, row.get("corrected", {})) for trial in part.get("trials", [])
    ]
    name = "table1" if len(rows) == len(TABLE_1) else "rows"
    texts = {
        f"{name}.json": json.dumps(rows, indent=1),
        f"{name}.md": markdown(rows, meta),
        "trials.jsonl": "\n".join(json.dumps(trial) for trial in trials),
        "meta.json": json.dumps(meta, indent=2),
    }
    writing.write(out, texts)
    return name


HEADER = (
    "task", "buffered", "controller", "stack",
    "ours: dev", "paper: dev", "ours: test", "paper: test", "agrees",
)  # fmt: skip
AGREES = HEADER.index("agrees")


def cells(rows: Sequence[Row]) -> list[list[str]]:
    """The table as text: min / median / max of each; corrected rows under the rows they correct."""
    lines = []
    for row in rows:
        first = [row["task"].replace("_", " "), row["buffered"], row["controller"], row["stack"]]
        lines.append([*first, *_numbers(row, row["paper"]), "yes" if row["agrees"] else "no"])
        if "corrected" in row:
            first[0] += ", corrected read-off"
            lines.append([*first, *_numbers(row["corrected"], None), ""])
    return lines


def _numbers(ours: Row, paper: Row | None) -> list[str]:
    return [
        " / ".join(f"{source[f'{split}_{name}']:.1f}" for name in ("min", "median", "max")) if source else ""
        for split in ("dev", "test")
        for source in (ours, paper)
    ]


def verdict(rows: Sequence[Row]) -> str:
    wrong = [row for row in rows if not row["agrees"]]
    share = f"{len(rows) - len(wrong)} of {counted(len(rows), 'row agrees', 'rows agree')} with the paper"
    if not wrong:
        return f"{share}: our median lies inside the paper's [min, max] or above it, on dev and test."
    names = "; ".join(f"row {row['row']}, {row['task']} {row['controller']}" for row in wrong)
    return f"{share}. Our median lies below the paper's minimum in: {names}."


def stamp(meta: Row) -> str:
    """Where the numbers come from, in a sentence."""
    cores, trials = counted(meta["cores"], "core"), counted(meta["trained"], "trial")
    return (
        f"Trained by `softstack table` at commit {meta['commit']}, softstack {meta['softstack']}, "
        f"torch {meta['torch']}, Python {meta['python']}, on {meta['device']} ({cores}), "
        f"{of_seeds(meta['seeds'])}; the last call trained {trials} in "
        f"{meta['seconds'] / 60:.1f} minutes, {meta['time']}."
    )


def markdown_table(rows: Sequence[Row]) -> str:
    lines = cells(rows)
    for line in lines:
        if line[AGREES] == "no":
            line[AGREES] = "**no**"
    return writing.table(HEADER, lines)


def legend(meta: Row) -> str:
    trials = counted(len(meta["seeds"]), "trial")
    return f"Accuracy in percent, min / median / max of {trials}: dev in the last epoch, then test."


def markdown(rows: Sequence[Row], meta: Row) -> str:
    parts = ["# Table 1, reproduced", legend(meta), markdown_table(rows), verdict(rows), stamp(meta)]
    return "\n\n".join(parts) + "\n"
