"""PDTs drawn as in the paper's Figures 3 and 4: states as circles, rules as labels `x:y, s → s'` on arrows.

`svg` needs nothing but this file; `dot` is the same for Graphviz, which lays out large machines better.
"""

import html
from collections.abc import Sequence
from math import atan2, cos, hypot, pi, sin

from softstack.formal.transducer import Rule, Transducer

RADIUS = 26  # of a state
LETTER, LINE = 7.4, 17  # the size of a letter, and of a line, of a label
APART = 240  # between neighbouring states, at least

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom
Arrow = tuple[str, str]

STYLE = """
text { font: 13px system-ui, sans-serif; text-anchor: middle; fill: #1a1a1a }
.label { paint-order: stroke; stroke: #fff; stroke-width: 4px; stroke-linejoin: round }
.state { font-size: 14px; font-style: italic }
circle, path { fill: none; stroke: #1a1a1a; stroke-width: 1.3 }
circle { fill: #fff }
.head { fill: #1a1a1a; stroke: none }
"""


def label(rule: Rule) -> str:
    """The paper's label of an arrow; the stack is left out where a rule does not look at it."""

    def word(symbols: Sequence[str]) -> str:
        return " ".join(symbols) or "ε"

    stack = f", {rule.pop or 'ε'} → {word(rule.push)}" if rule.pop or rule.push else ""
    return f"{rule.read or 'ε'}:{word(rule.write)}{stack}"


def arrows(machine: Transducer) -> dict[Arrow, list[str]]:
    """The labels of each arrow, in the order of the rules."""
    labels: dict[Arrow, list[str]] = {}
    for rule in machine.rules:
        labels.setdefault((rule.state, rule.next), []).append(label(rule))
    return labels


def dot(machine: Transducer) -> str:
    """The machine as Graphviz reads it."""

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

    lines = ["digraph {", "  rankdir=LR; node [shape=circle]; start [shape=point, style=invis];"]
    for state in machine.states:
        shape = "doublecircle" if state in machine.accepting else "circle"
        lines.append(f"  {quoted('q ' + state)} [label={quoted(state)}, shape={shape}];")
    lines.append(f"  start -> {quoted('q ' + machine.start)};")
    for (source, target), labels in arrows(machine).items():
        text = quoted("\n".join(labels))
        lines.append(f"  {quoted('q ' + source)} -> {quoted('q ' + target)} [label={text}];")
    return "\n".join([*lines, "}"]) + "\n"


def svg(machine: Transducer) -> str:
    """The machine as an SVG image: two states side by side, more of them around a circle."""
    edges = arrows(machine)
    at = _places(machine, edges)
    centre = (sum(x for x, _ in at.values()) / len(at), sum(y for _, y in at.values()) / len(at))
    parts: list[str] = []
    box: list[Point] = []
    for state, (x, y) in at.items():
        box += [(x - RADIUS, y - RADIUS), (x + RADIUS, y + RADIUS)]
        if state == machine.start:
            parts += [
                _path(f"M{x - RADIUS - 34:.1f},{y:.1f} L{x - RADIUS:.1f},{y:.1f}"),
                _head((x - RADIUS, y), 0),
            ]
            box.append((x - RADIUS - 34, y))
    texts: list[str] = []
    obstacles: list[Box] = [_around(place, 2 * RADIUS, 2 * RADIUS) for place in at.values()]
    for (source, target), labels in edges.items():
        if source == target:
            curve, end, angle, places = _loop(at[source], centre, len(at), labels)
        else:
            curve, end, angle, places = _edge(at[source], at[target], (target, source) in edges, labels)
        boxes = [_around(place, *_size(labels)) for place in places]
        place, own = min(
            zip(places, boxes, strict=True), key=lambda at: sum(_overlap(at[1], b) for b in obstacles)
        )
        obstacles.append(own)
        parts += [_path(curve), _head(end, angle)]
        texts += _lines(labels, place)
        box += [own[:2], own[2:]]
    for state, (x, y) in at.items():
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}"/>')
        if state in machine.accepting:
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS - 4}"/>')
        size = f' style="font-size:{max(7, 60 / max(4, len(state)) + 2):.1f}px"' if len(state) > 4 else ""
        parts.append(f'<text class="state" x="{x:.1f}" y="{y + 4.5:.1f}"{size}>{html.escape(state)}</text>')
    left, top = min(x for x, _ in box) - 12, min(y for _, y in box) - 12
    wide, high = max(x for x, _ in box) + 12 - left, max(y for _, y in box) + 12 - top
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.0f} {top:.0f} {wide:.0f} {high:.0f}" '
        f'width="{wide:.0f}" height="{high:.0f}" role="img" aria-label="pushdown transducer">\n'
        f"<style>{STYLE}</style>\n"
        f'<rect x="{left:.0f}" y="{top:.0f}" width="{wide:.0f}" height="{high:.0f}" fill="#fff"/>\n'
        + "\n".join([*parts, *texts])
        + "\n</svg>\n"
    )


def _places(machine: Transducer, edges: dict[Arrow, list[str]]) -> dict[str, Point]:
    """Where states are: neighbours are further apart than the widest label between them."""
    n = len(machine.states)
    widest = max((_size(labels)[0] for (a, b), labels in edges.items() if a != b), default=0)
    apart = max(APART, widest + 3 * RADIUS)
    if n <= 2:
        return {state: (k * apart, 0.0) for k, state in enumerate(machine.states)}
    radius = max(apart / 2 / sin(pi / n), apart * 0.7)
    return {
        state: (radius * cos(pi + 2 * pi * k / n), radius * sin(pi + 2 * pi * k / n))
        for k, state in enumerate(machine.states)
    }


def _edge(
    a: Point, b: Point, both_ways: bool, labels: Sequence[str]
) -> tuple[str, Point, float, list[Point]]:
    """A curve from state to state, bent to its left: its end, its direction there, and places for its label,
    best first."""
    (ax, ay), (bx, by) = a, b
    length = hypot(bx - ax, by - ay)
    nx, ny = (by - ay) / length, -(bx - ax) / length  # to the left of the arrow, on a screen
    bend = 0.16 * length if both_ways else 0.06 * length
    mx, my = (ax + bx) / 2 + nx * bend * 2, (ay + by) / 2 + ny * bend * 2  # of a quadratic curve
    sx, sy = _towards(a, (mx, my), RADIUS)
    ex, ey = _towards(b, (mx, my), RADIUS + 1)
    wide, high = _size(labels)
    away = abs(nx) * wide / 2 + abs(ny) * high / 2 + 6
    places = []
    for t in (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8):
        x = (1 - t) ** 2 * ax + 2 * t * (1 - t) * mx + t**2 * bx
        y = (1 - t) ** 2 * ay + 2 * t * (1 - t) * my + t**2 * by
        places += [(x + side * nx * away, y + side * ny * away) for side in (1, -1)]
    angle = atan2(by - my, bx - mx)
    return f"M{sx:.1f},{sy:.1f} Q{mx:.1f},{my:.1f} {ex:.1f},{ey:.1f}", (ex, ey), angle, places


def _loop(
    at: Point, centre: Point, states: int, labels: Sequence[str]
) -> tuple[str, Point, float, list[Point]]:
    """An arrow from a state to itself: above it, or away from the middle where states lie around a circle."""
    x, y = at
    out = -pi / 2 if states <= 2 else atan2(y - centre[1], x - centre[0])
    first, last = out - 0.45, out + 0.45
    sx, sy = x + RADIUS * cos(first), y + RADIUS * sin(first)
    ex, ey = x + (RADIUS + 1) * cos(last), y + (RADIUS + 1) * sin(last)
    far = RADIUS + 52
    one = (x + far * cos(out - 0.55), y + far * sin(out - 0.55))
    two = (x + far * cos(out + 0.55), y + far * sin(out + 0.55))
    wide, high = _size(labels)
    away = RADIUS + 42 + abs(cos(out)) * wide / 2 + abs(sin(out)) * high / 2
    place = (x + away * cos(out), y + away * sin(out))
    curve = f"M{sx:.1f},{sy:.1f} C{one[0]:.1f},{one[1]:.1f} {two[0]:.1f},{two[1]:.1f} {ex:.1f},{ey:.1f}"
    return curve, (ex, ey), atan2(ey - two[1], ex - two[0]), [place]


def _towards(a: Point, b: Point, far: float) -> Point:
    length = hypot(b[0] - a[0], b[1] - a[1])
    return a[0] + (b[0] - a[0]) / length * far, a[1] + (b[1] - a[1]) / length * far


def _size(labels: Sequence[str]) -> Point:
    return LETTER * max(map(len, labels)), LINE * len(labels)


def _around(place: Point, wide: float, high: float) -> Box:
    return place[0] - wide / 2, place[1] - high / 2, place[0] + wide / 2, place[1] + high / 2


def _overlap(a: Box, b: Box) -> float:
    """The area that two boxes share."""
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _path(curve: str) -> str:
    return f'<path d="{curve}"/>'


def _head(tip: Point, angle: float) -> str:
    sides = [(tip[0] - 9 * cos(angle + turn), tip[1] - 9 * sin(angle + turn)) for turn in (-0.35, 0.35)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (tip, *sides))
    return f'<polygon class="head" points="{points}"/>'


def _lines(labels: Sequence[str], place: Point) -> list[str]:
    x, middle = place
    first = middle - LINE * (len(labels) - 1) / 2 + 4.5
    return [
        f'<text class="label" x="{x:.1f}" y="{first + LINE * k:.1f}">{html.escape(text)}</text>'
        for k, text in enumerate(labels)
    ]
