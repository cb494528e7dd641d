"""Points put into groups: the vectors that a network pushes, and the states that its controller is in."""

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
ROUNDS = 20  # of Lloyd's algorithm, at most


def distances(points: Points, centre: Points) -> Points:
    """The largest difference in any component."""
    gaps: Points = np.abs(points - centre).max(-1, initial=0.0)
    return gaps


def farthest_first(points: Points, most: int, radius: float) -> tuple[Points, float]:
    """At most so many of the points, each the farthest from those before, until all are within the radius of
    one; and how far the farthest then is."""
    centres = points[:1]
    nearest = distances(points, centres[0])
    while nearest.max(initial=0.0) > radius and len(centres) < most:
        new = points[int(nearest.argmax())]
        centres = np.concatenate([centres, new[None]])
        nearest = np.minimum(nearest, distances(points, new))
    return centres, float(nearest.max(initial=0.0))


def assign(points: Points, centres: Points) -> NDArray[np.int64]:
    """The nearest centre of each point."""
    nearest = distances(points, centres[0])
    groups = np.zeros(len(points), np.int64)
    for k, centre in enumerate(centres[1:], 1):
        gaps = distances(points, centre)
        closer = gaps < nearest
        groups[closer] = k
        nearest[closer] = gaps[closer]
    return groups


def grouped(points: Points, k: int) -> Points:
    """k centres by Lloyd's algorithm, from a farthest-first start."""
    centres, _ = farthest_first(points, k, 0.0)
    for _ in range(ROUNDS):
        groups = assign(points, centres)
        moved = np.stack(
            [points[groups == j].mean(0) if (groups == j).any() else c for j, c in enumerate(centres)]
        )
        if np.allclose(moved, centres):
            break
        centres = moved
    return centres
