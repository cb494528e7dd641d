"""A diagnosis drawn, and as a page of its own."""

import html
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from softstack.lab.explain.diagnosis import FALLS, Bin, Diagnosis
from softstack.lab.reports.figures import as_written, rendered

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


def page(diagnosis: Diagnosis, title: str) -> str:
    """The sentence, the figure, and every number in tables."""
    falls = f"Accuracy falls below 99 % at: {diagnosis.falls} ({diagnosis.falls_by})."
    svg = rendered(draw(diagnosis, title), "svg").decode()
    svg = svg[svg.index("<svg") :]
    tables = [
        _table(
            ("taken away", "accuracy", "answers that stay"),
            [(n, f"{a:.2%}", f"{diagnosis.agreement[n]:.2%}") for n, a in diagnosis.ablated.items()],
        ),
        _table(
            ("swapped", "swaps", "next answers that change"),
            [(n, str(e.grafts), f"{e.share:.2%}") for n, e in diagnosis.use.effects.items()],
        ),
        _table(("symbols", "accuracy"), [(f"{n:,}", f"{a:.2%}") for n, a in diagnosis.lengths]),
        _table(("depth", "accuracy", "scored"), _rows(diagnosis.depth)),
        _table(("distance", "accuracy", "scored"), _rows(diagnosis.distance)),
    ]
    return (
        f"<!doctype html>\n<html lang=en><meta charset=utf-8><title>{html.escape(title)}</title>"
        "<style>body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}"
        "svg{max-width:100%;height:auto;background:#fff}td,th{padding:.1rem .8rem;text-align:left}"
        "table{margin:1rem 0;border-collapse:collapse}tr{border-bottom:1px solid #ccc}</style>\n"
        f"<h1>{html.escape(title)}</h1>\n<p><strong>{html.escape(diagnosis.sentence)}</strong></p>\n"
        f"<p>{html.escape(falls)}</p>\n"
        f"{svg}\n" + "\n".join(tables) + "\n</html>\n"
    )


def _label(axis: Axes, title: str, x: str, y: str) -> None:
    axis.set_title(title, fontsize=9)
    axis.set_xlabel(x, fontsize=8)
    axis.set_ylabel(y, fontsize=8)
    axis.tick_params(labelsize=8)


def _bins(axis: Axes, bins: Sequence[Bin], title: str, x: str) -> None:
    axis.bar([_name(b) for b in bins], [100 * b.right / b.scored for b in bins], color=BLUE)
    axis.set_ylim(0, 102)
    _label(axis, title, x, "accuracy, %")


def _name(b: Bin) -> str:
    return str(b.least) if b.least == b.most else f"{b.least}-{b.most}"


def _rows(bins: Sequence[Bin]) -> list[tuple[str, str, str]]:
    return [(_name(b), f"{b.right / b.scored:.2%}", f"{b.scored:,}") for b in bins]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def cells(kind: str, row: Sequence[str]) -> str:
        return "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in row)

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', head)}</tr></thead><tbody>{body}</tbody></table>"
