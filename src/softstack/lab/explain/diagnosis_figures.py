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
    (ablations, strengths, drift), (lengths, depths, distances) = figure.subplots(2, 3)
    names, accuracies = zip(*diagnosis.ablated.items(), strict=True)
    ablations.barh(names, [100 * a for a in accuracies], color=[GREY, *[BLUE] * (len(names) - 1)])
    ablations.invert_yaxis()
    _label(ablations, "accuracy with something taken away", "accuracy, %", "")
    for k, (name, counts) in enumerate(diagnosis.histogram.items()):
        total, width = max(1, sum(counts)), 0.9 / len(counts) / len(diagnosis.histogram)
        places = [(bin + 0.05) / len(counts) + width * k for bin in range(len(counts))]
        strengths.bar(places, [100 * c / total for c in counts], width, align="edge", label=name)
    if diagnosis.histogram:  # a memory may have neither strengths nor choices
        strengths.legend(fontsize=8)
    _label(strengths, "strengths", "strength", "share of steps, %")
    drift.plot(range(1, len(diagnosis.drift) + 1), diagnosis.drift, color=BLUE)
    _label(drift, "drift: distance from 0 or 1, added up", "step", "strength")
    sizes = [length for length, _ in diagnosis.lengths]
    lengths.plot(sizes, [100 * accuracy for _, accuracy in diagnosis.lengths], marker="o", color=BLUE)
    lengths.axhline(100 * FALLS, color=GREY, linestyle=":")
    lengths.set_xscale("log")
    lengths.set_xticks(sizes, map(str, sizes), minor=False)
    lengths.minorticks_off()
    lengths.set_ylim(0, 102)
    _label(lengths, "accuracy by length", "symbols", "accuracy, %")
    _bins(depths, diagnosis.depth, "accuracy by depth", "height of the stack that the answer needs")
    _bins(distances, diagnosis.distance, "accuracy by distance", "symbols since what decides was pushed")
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
