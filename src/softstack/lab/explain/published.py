"""How our networks compare with the figures that papers publish (`training/published.py`): part of the report
of `softstack suite`.

published.json has a line for each network that a claim was tried with: its trials, each scored on test
strings of the paper's lengths by the paper's measure, and with its actions rounded too. The trial of the
lowest dev loss counts.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import torch

from softstack.lab import tasks
from softstack.lab.explain.ablation import hardened
from softstack.lab.reports import names, sheet, writing
from softstack.lab.reports.writing import Line
from softstack.lab.runs import store
from softstack.lab.tasks.data import Example, one_hot
from softstack.lab.tasks.metrics import METRICS, Answers
from softstack.lab.training.conditions import Condition, Network
from softstack.lab.training.draws import encoded, stream
from softstack.lab.training.published import CLAIMS, Claim
from softstack.lab.training.scores import compared
from softstack.lab.training.train import finite
from softstack.words import counted

STRINGS = 200  # test strings of each trial
AT_ONCE = 50  # of them


@torch.no_grad()
def answers(network: Network, condition: Condition, examples: Sequence[Example], *, rounded: bool) -> Answers:
    """A network's answers to strings; with its actions rounded by an edit, which needs the plain loop."""
    task = tasks.find(condition.task)
    edit = hardened(network.cell.memory) if rounded else None
    parts = []
    for first in range(0, len(examples), AT_ONCE):
        strings = examples[first : first + AT_ONCE]
        data = encoded(condition, strings)
        x = one_hot(data.x, len(task.alphabet), next(network.parameters()))
        y = network.eval()(x, edit=edit)[0].cpu()  # (n, T, K)
        parts.append(compared(task, strings, data, y))
    return Answers(*(torch.cat(tensors) for tensors in zip(*parts, strict=True)))


def scored(root: Path, claim: Claim, condition: Condition, seeds: Sequence[int], device: str) -> list[Line]:
    """The trials of a network of a claim. What was measured is kept under `root`."""
    runs = writing.runs_of(root, condition, seeds)
    file = root / "measured" / f"published-{condition.name}.json"
    return writing.measured(file, runs, lambda: [_line(run, claim, device) for run in runs])


def _line(run: store.Run, claim: Claim, device: str) -> Line:
    task = tasks.find(run.condition.task)
    examples = tasks.draw(task, stream(run.seed, "test"), STRINGS, "test")
    network = store.network(run).to(device)
    line = {"seed": run.seed, "dev_loss": run.result["dev_loss"], "dev": run.result["dev"]}
    for name, rounded in (("score", False), ("rounded", True)):
        value = METRICS[claim.metric].of(answers(network, run.condition, examples, rounded=rounded)).item()
        line[name] = round(value, 6) if math.isfinite(value) else None
    return line


def rows(root: Path, seeds: Sequence[int]) -> list[Line]:
    return [
        {
            **{name: part for name, part in claim._asdict().items() if name != "conditions"},
            "task": condition.task,
            "memory": condition.memory,
            "controller": condition.controller,
            "condition": condition.name,
            "steps": condition.steps,
            "restarts": condition.restarts,
            "trials": scored(root, claim, condition, seeds, "cpu"),
        }
        for claim in CLAIMS
        for condition in claim.conditions
    ]


def scores_of(row: Line) -> list[float]:
    """The scores of its trials, by the measure of its claim; the worst possible for one that diverged."""
    worst = 0.0 if METRICS[row["metric"]].is_share else math.inf
    name = "rounded" if row["rounded"] else "score"
    return [worst if trial[name] is None else trial[name] for trial in row["trials"]]


def reaches(row: Line, value: float) -> bool:
    target: float = row["value"]
    return value >= target if METRICS[row["metric"]].is_share else value <= target


def score_of_best(row: Line) -> float:
    """The score of the trial of the lowest dev loss."""
    place = min(range(len(row["trials"])), key=lambda k: finite(row["trials"][k]["dev_loss"]))
    return scores_of(row)[place]


HEADER = (
    "paper", "figure", "network",
    "chosen by dev loss", "median", "trials that reach it", "where ours differs",
)  # fmt: skip


def lines(rows: Sequence[Line]) -> list[list[str]]:
    return [
        [
            row["paper"],
            row["figure"],
            f"{names.controller(row['controller'])}, {row['memory']}",
            f"{_text(row, score_of_best(row))}{', reached' if reaches(row, score_of_best(row)) else ''}",
            _text(row, median(scores_of(row))),
            f"{sum(reaches(row, score) for score in scores_of(row))} of {len(row['trials'])}",
            row["protocol"],
        ]
        for row in rows
    ]


def _text(row: Line, score: float) -> str:
    return f"{100 * score:.1f} %" if METRICS[row["metric"]].is_share else f"{score:.3f} nats"


def verdict(rows: Sequence[Line]) -> str:
    """Which figures are reached by a network chosen by its dev loss."""
    claims: dict[str, bool] = {}  # whether each is reached, by paper and figure
    for row in rows:
        claim = f"{row['paper']}, {row['figure']}"
        claims[claim] = claims.get(claim, False) or reaches(row, score_of_best(row))
    sentence = (
        f"The trial of the lowest dev loss reaches {sum(claims.values())} of "
        f"{counted(len(claims), 'figure')} that other papers report."
    )
    missed = "; ".join(claim for claim, reached in claims.items() if not reached)
    return f"{sentence} Not reached: {missed}." if missed else sentence


def stamp(meta: Line) -> str:
    return writing.stamp("suite --published", meta)


def markdown(rows: Sequence[Line], meta: Line) -> str:
    return f"{verdict(rows)} {stamp(meta)}\n\n{writing.table(HEADER, lines(rows))}"


def section(rows: Sequence[Line], meta: Line) -> str:
    """The same for the page."""
    ours = "Test strings, lengths and measure are the paper's; the training is ours."
    legend = f"{verdict(rows)} {ours} {stamp(meta)}"
    return sheet.table(legend, HEADER, lines(rows), title="What papers report", kind="numbers wrapped")
