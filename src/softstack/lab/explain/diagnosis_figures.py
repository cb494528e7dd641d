"""A diagnosis drawn."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from softstack.lab.explain.diagnosis import FALLS, Bin, Diagnosis
from softstack.lab.reports.figures import as_written

BLUE, GREY = "#2b6cb0", "#8a8a8a"


def draw(diagnosis: Diagnosis, title: str) -> Figure:
    """Six panels: ablations, strengths, drift, accuracy by length, by depth and by distance."""
    figure = Figure(figsize=(11, 6.4), layout="constrained")
    axes = figure.subplots(2, 3)
    names = list(diagnosis.ablated)
    axes[0, 0].barh(
        names, [100 * diagnosis.ablated[n] for n in names], color=[GREY, *[BLUE] * (len(names) - 1)]
    )
    axes[0, 0].invert_yaxis()
    _label(axes[0, 0], "accuracy with something taken away", "accuracy, %", "")
    for name, counts in diagnosis.histogram.items():
        total, wide = max(1, sum(counts)), 0.9 / len(counts) / len(diagnosis.histogram)
        left = 0.05 / len(counts) + wide * list(diagnosis.histogram).index(name)
        places = [k / len(counts) + left for k in range(len(counts))]
        axes[0, 1].bar(places, [100 * c / total for c in counts], wide, align="edge", label=name)
    if diagnosis.histogram:  # a memory may have neither strengths nor choices
        axes[0, 1].legend(fontsize=8)
    _label(axes[0, 1], "strengths", "strength", "share of steps, %")
    axes[0, 2].plot(range(1, len(diagnosis.drift) + 1), diagnosis.drift, color=BLUE)
    _label(axes[0, 2], "drift: distance from 0 or 1, added up", "step", "strength")
    sizes = [length for length, _ in diagnosis.lengths]
    axes[1, 0].plot(sizes, [100 * accuracy for _, accuracy in diagnosis.lengths], marker="o", color=BLUE)
    axes[1, 0].axhline(100 * FALLS, color=GREY, linestyle=":")
    axes[1, 0].set_xscale("log")
    axes[1, 0].set_xticks(sizes, map(str, sizes), minor=False)
    axes[1, 0].minorticks_off()
    axes[1, 0].set_ylim(0, 102)
    _label(axes[1, 0], "accuracy by length", "symbols", "accuracy, %")
    _bins(axes[1, 1], diagnosis.depth, "accuracy by depth", "height of the stack that the answer needs")
    _bins(axes[1, 2], diagnosis.distance, "accuracy by distance", "symbols since what decides was pushed")
    figure.suptitle(f"{title}: {diagnosis.verdict}", fontsize=11)
    return as_written(figure)


def _label(axis: Axes, title: str, x: str, y: str) -> None:
    axis.set_title(title, fontsize=9)
    axis.set_xlabel(x, fontsize=8)
    axis.set_ylabel(y, fontsize=8)
    axis.tick_params(labelsize=8)


def _bins(axis: Axes, bins: Sequence[Bin], title: str, x: str) -> None:
    axis.bar([b.name for b in bins], [100 * b.right / b.scored for b in bins], color=BLUE)
    axis.set_ylim(0, 102)
    _label(axis, title, x, "accuracy, %")
