"""Figures of `softstack study`."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from matplotlib.figure import Figure

from softstack.lab.reports.figures import rendered
from softstack.lab.reports.writing import SOLVED
from softstack.lab.runs.compare import wilson
from softstack.lab.training.study import AXES

TITLES = {
    "state_reset": "reset rate",
    "hidden_noise": "noise",
    "steps": "steps of training",
    "train_size": "training strings",
    "memory_size": "numbers in a stack's vector",
    "hidden_size": "hidden units",
}
COLOURS = {"reversal": "#1b6ca8", "parenthesis": "#b3541e", "formula": "#3c7a3c", "agreement": "#7b3fa0"}


def successes(line: dict[str, Any]) -> tuple[int, int]:
    """Networks that solve their task, and all."""
    return sum(trial["test"] >= SOLVED for trial in line["trials"]), len(line["trials"])


def success(lines: Sequence[dict[str, Any]]) -> bytes:
    """How many single networks solve their task, by each number of the recipe, with 95 % intervals."""
    figure = Figure(figsize=(11, 6.4), layout="constrained")
    panels = figure.subplots(2, 3, sharey=True).flat
    for panel, (axis, values) in zip(panels, AXES.items(), strict=True):
        for offset, (task, colour) in enumerate(COLOURS.items()):
            of_task = {
                line["value"]: line
                for line in lines
                if line["axis"] == axis and line["condition"]["task"] == task
            }
            places = [k for k, value in enumerate(values) if value in of_task]
            shares = [wilson(*successes(of_task[values[k]])) for k in places]
            below = [share.value - share.low for share in shares]
            above = [share.high - share.value for share in shares]
            x = [k + 0.08 * (offset - 1.5) for k in places]
            panel.errorbar(
                x, [share.value for share in shares], [below, above],
                color=colour, marker="o", markersize=4, capsize=2, linewidth=1.2, label=task,
            )  # fmt: skip
        panel.set_xticks(range(len(values)), [f"{value:,}" for value in values])
        panel.set_xlabel(TITLES[axis])
        panel.set_ylim(-0.02, 1.02)
        panel.grid(axis="y", alpha=0.3)
    for panel in (figure.axes[0], figure.axes[3]):
        panel.set_ylabel("networks that solve their task")
    figure.axes[0].legend(frameon=False, fontsize=9)
    return rendered(figure, "png", dpi=130)


def needs(moments: Sequence[dict[str, Any]]) -> bytes:
    """Along the training: how many of the next answers change with another run's state, or memory."""
    names = list(dict.fromkeys(line["task"] for line in moments))
    kinds = list(dict.fromkeys(line["training"] for line in moments))
    figure = Figure(figsize=(3.2 * len(names), 5.6), layout="constrained")
    panels = figure.subplots(len(kinds), len(names), sharey=True, sharex=True, squeeze=False)
    for row, kind in zip(panels, kinds, strict=True):
        for panel, task in zip(row, names, strict=True):
            of_panel = [line for line in moments if (line["task"], line["training"]) == (task, kind)]
            steps = sorted({line["steps"] for line in of_panel})
            for what, colour in (("state", "#b3541e"), ("memory", "#1b6ca8")):
                for seed in sorted({line["seed"] for line in of_panel}):
                    curve = [line[what] for line in of_panel if line["seed"] == seed]
                    panel.plot(range(len(steps)), curve, color=colour, alpha=0.25, linewidth=1)
                middle = [median(line[what] for line in of_panel if line["steps"] == step) for step in steps]
                panel.plot(range(len(steps)), middle, color=colour, linewidth=2.5, label=f"{what} replaced")
            panel.set_title(f"{task}, {kind}", fontsize=10)
            panel.set_xticks(range(len(steps)), [f"{step:,}" for step in steps], rotation=45, fontsize=8)
            panel.grid(axis="y", alpha=0.3)
        row[0].set_ylabel("next answers that change")
    for panel in panels[-1]:
        panel.set_xlabel("steps of training")
    panels[0][0].legend(frameon=False, fontsize=9)
    return rendered(figure, "png", dpi=130)
