"""The picture of docs/parallel.md: a stack's items on a line of heights, over time.

`python tools/draw_heights.py` writes docs/heights.svg.
"""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

ROOT = Path(__file__).parent.parent
U = (0.0, 0.0, 0.5, 0.9, 0.0, 1.2, 0.1, 0.3)
D = (0.9, 0.8, 0.7, 0.4, 0.6, 0.5, 0.9, 0.3)
COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#eeca3b", "#9d755d")


def heights(u: tuple[float, ...], d: tuple[float, ...]) -> tuple[list[float], list[float]]:
    """L after the pop and H after the push of each step."""
    L: list[float] = []
    H: list[float] = []
    for pop, push in zip(u, d, strict=True):
        L.append(max(0.0, (H[-1] if H else 0.0) - pop))
        H.append(L[-1] + push)
    return L, H


def draw() -> Figure:
    L, H = heights(U, D)
    figure = Figure(figsize=(8.5, 4.2))
    axis = figure.subplots()
    for t in range(len(U)):
        for i in range(t + 1):
            end = min([H[i], *L[i + 1 : t + 1]])
            if end > L[i]:
                axis.add_patch(
                    Rectangle((t + 0.6, L[i]), 0.62, end - L[i], facecolor=COLOURS[i], edgecolor="white")
                )
                axis.text(t + 0.91, (L[i] + end) / 2, f"$v_{i + 1}$", ha="center", va="center", fontsize=9)
        bottom = max(0.0, H[t] - 1)
        axis.plot([t + 1.27, t + 1.27], [bottom, H[t]], color="black", linewidth=2.5)
        axis.plot([t + 0.55, t + 1.27], [L[t], L[t]], color="black", linewidth=1, linestyle=":")
        axis.text(t + 0.53, L[t], f"$L_{t + 1}$", ha="right", va="center", fontsize=9)
        axis.text(t + 0.91, H[t] + 0.06, f"$H_{t + 1}$", ha="center", fontsize=9)
    ticks = [f"{t + 1}\npop {u:g}\npush {d:g}" for t, (u, d) in enumerate(zip(U, D, strict=True))]
    axis.set_xticks([t + 0.91 for t in range(len(U))], ticks, fontsize=8)
    axis.set(xlim=(0.2, len(U) + 0.5), ylim=(0, max(H) + 0.3), ylabel="height")
    axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure


def main() -> None:
    matplotlib.rcParams["svg.hashsalt"] = "softstack"  # the same file each time
    matplotlib.rcParams["svg.fonttype"] = "none"
    draw().savefig(ROOT / "docs" / "heights.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
