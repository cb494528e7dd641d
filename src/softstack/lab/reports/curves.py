"""Learning curves of any runs: dev accuracy and loss by epoch, one line for each trial.

Trials of one condition have one colour. The bold one is in the middle in the order of dev accuracy.
"""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from statistics import median

from matplotlib.figure import Figure

from softstack.errors import BadInput
from softstack.lab import tasks
from softstack.lab.reports import names
from softstack.lab.reports.figures import as_written
from softstack.lab.reports.writing import ranked
from softstack.lab.runs import store
from softstack.lab.training.conditions import Condition
from softstack.words import counted

# Okabe and Ito's, which colour-blind readers can tell apart; further lines are dashed
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
STYLES = ("-", "--", ":", "-.")
MOST_LINES = 28  # conditions that can be told apart
MOST_FIELDS = 3  # that a name has


def run_directories(paths: Sequence[Path]) -> list[Path]:
    """The run directories that paths name: themselves, or all beneath them. A path that holds no run is
    skipped where another does: `runs/*` may name such."""
    places: list[Path] = []
    for path in paths:
        is_run = (path / "result.json").is_file() or not path.exists()
        places += [path] if is_run else sorted(file.parent for file in path.rglob("result.json"))
    if not places:
        raise BadInput(f"{paths[0]} holds no finished run: name a run directory, or a folder of them")
    return list(dict.fromkeys(places))


def draw(runs: Sequence[store.Run]) -> Figure:
    """Dev accuracy on the left, loss on the right."""
    groups: dict[Condition, list[store.Run]] = {}
    for run in runs:
        groups.setdefault(run.condition, []).append(run)
    if len(groups) > MOST_LINES:
        raise BadInput(
            f"{len(groups)} conditions cannot be told apart in one figure: name {MOST_LINES} at most"
        )
    figure = Figure(figsize=(11, 4.4 + 0.22 * len(groups)), layout="constrained")
    left, right = figure.subplots(1, 2)
    labels = described(list(groups))
    for k, (condition, trials) in enumerate(groups.items()):
        style = {"color": COLOURS[k % len(COLOURS)], "linestyle": STYLES[k // len(COLOURS) % len(STYLES)]}
        middle = ranked(trials)[len(trials) // 2]
        for run in (*(run for run in trials if run is not middle), middle):
            bold = run is middle
            epochs = range(1, len(run.epochs) + 1)
            look = {**style, "linewidth": 2.2 if bold else 0.9, "alpha": 1.0 if bold else 0.4}
            label = f"{labels[condition]}: {_results(trials)}" if bold else None
            left.plot(epochs, [100 * epoch.dev for epoch in run.epochs], label=label, **look)
            right.plot(epochs, [epoch.loss for epoch in run.epochs], **look)
            for axis, end in ((left, 100 * run.epochs[-1].dev), (right, run.epochs[-1].loss)):
                axis.plot(len(run.epochs), end, "o", color=style["color"], markersize=4 if bold else 2.5)
    left.set(title="Dev accuracy, in percent", xlabel="epoch")
    right.set(title="Loss", xlabel="epoch")
    right.set_ylim(bottom=0)
    for axis in (left, right):
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
        axis.xaxis.get_major_locator().set_params(integer=True)
    figure.legend(loc="outside lower left", fontsize=9, frameon=False)
    return as_written(figure)


def described(conditions: Sequence[Condition]) -> dict[Condition, str]:
    """A name for each; where several would have the same, with some fields that differ from their defaults,
    and, if that is not enough, with the end of the folder's name."""
    labels = {condition: _name(condition) for condition in conditions}
    for alike in _sharing(labels):
        differing = [f.name for f in fields(Condition) if len({getattr(c, f.name) for c in alike}) > 1]
        for condition in alike:
            changed = [f"{name} {value}" for name, value in condition.changed.items() if name in differing]
            more = ["..."] if len(changed) > MOST_FIELDS else []
            labels[condition] = ", ".join([labels[condition], *changed[:MOST_FIELDS], *more])
    for alike in _sharing(labels):
        for condition in alike:
            labels[condition] += f" ({condition.name.rsplit('-', 1)[1]})"
    return labels


def _sharing(labels: dict[Condition, str]) -> list[list[Condition]]:
    """Conditions that share a label with others, together."""
    groups: dict[str, list[Condition]] = {}
    for condition, label in labels.items():
        groups.setdefault(label, []).append(condition)
    return [group for group in groups.values() if len(group) > 1]


def _name(condition: Condition) -> str:
    memory = "no memory" if condition.memory == "none" else condition.memory
    network = names.network(condition.controller, buffered=condition.buffered)
    return f"{names.task(tasks.find(condition.task).name)}, {network}, {memory}"


def _results(trials: Sequence[store.Run]) -> str:
    dev, test = (100 * median(run.result[split] for run in trials) for split in ("dev", "test"))
    if len(trials) == 1:
        return f"seed {trials[0].seed}, dev {dev:.1f}, test {test:.1f}"
    return f"{counted(len(trials), 'trial')}, median dev {dev:.1f}, test {test:.1f}"
