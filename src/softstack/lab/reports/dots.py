"""Trials as dots on small axes of accuracy, and ranges under them: what reports of many networks are made of.

An axis is as wide as its place: places along it are percentages of its width, so that text and dots keep
their size on a phone and on a wide screen. viewer/report.css has the colours.
"""

import html
import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

MARGIN = 3.0  # percent of the width of an axis, on either side
RADIUS, BAND = 4, 24  # pixels: a dot, and the height that dots share
NEAR = 1.5  # percent of accuracy, below which dots are set one above the other
MOST_APART = 3  # dots of a pile that can be told apart
ROOM = 5.0  # percent of accuracy that a count of dots takes
APART = 11  # pixels between ranges
THREE = ("min", "median", "max")  # what a range shows, as columns of a table are called
OWNERS = {"ours": "ours", "paper": "the paper's"}  # of ranges


class Trial(NamedTuple):
    """A dot: a trial's name and its accuracy in percent, which are shown when it is pointed at."""

    name: str
    value: float


class Range(NamedTuple):
    """Minimum, median and maximum in percent."""

    kind: str  # one of OWNERS: its colour and its line
    low: float
    middle: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.1f} / {self.middle:.1f} / {self.high:.1f}"


def range_of(trials: Iterable[Trial]) -> Range:
    values = [trial.value for trial in trials]
    return Range("ours", min(values), median(values), max(values))


class Lane(NamedTuple):
    """An axis with a name in front of it, which may be empty."""

    name: str
    trials: Sequence[Trial]
    ranges: Sequence[Range]


class Entry(NamedTuple):
    """A network: its name, a verdict beside it, and columns of lanes."""

    name: str
    detail: str
    link: str  # of its own page; "" without one
    verdicts: Sequence[tuple[str, str]]  # kind and text; the kind is "right", "wrong" or ""
    columns: Sequence[Sequence[Lane]]


class Group(NamedTuple):
    """Networks that stand together, under a title and the names of their columns."""

    title: str
    text: str
    columns: Sequence[str]
    entries: Sequence[Entry]


def verdict(count: int, of: int, what: str) -> tuple[str, str]:
    """How it is marked, right if all do it and wrong if none does, and what it says."""
    return "right" if count == of else "" if count else "wrong", f"{count} of {of} {what}"


def groups(sections: Sequence[Group]) -> str:
    """All of them as HTML, on axes with one beginning."""
    least = beginning(
        value
        for group in sections
        for entry in group.entries
        for lanes in entry.columns
        for lane in lanes
        for value in (*(t.value for t in lane.trials), *(r.low for r in lane.ranges))
    )
    return "\n".join(_group(group, least) for group in sections)


def beginning(values: Iterable[float]) -> float:
    """Where axes begin: at a multiple of ten below all values, and at 90 at the latest."""
    least = min(values, default=90.0)
    return max(0.0, min(90.0, 10 * math.floor((least - 1) / 10)))


def _group(group: Group, least: float) -> str:
    heads = "".join(f"<div><b>{html.escape(name)}</b>{_ticks(least)}</div>" for name in group.columns)
    labelled = any(lane.name for entry in group.entries for lanes in entry.columns for lane in lanes)
    kind = "panel dots labelled" if labelled else "panel dots"
    text = f"<p>{html.escape(group.text)}</p>" if group.text else ""
    entries = "".join(_entry(entry, group.columns, least) for entry in group.entries)
    return (
        f'<section class="{kind}"><h2>{html.escape(group.title)}</h2>{text}'
        f'<div class="entry heads" aria-hidden="true"><div></div>{heads}</div>{entries}</section>'
    )


def _entry(entry: Entry, names: Sequence[str], least: float) -> str:
    name = html.escape(entry.name)
    title = f'<a href="{html.escape(entry.link)}">{name}</a>' if entry.link else f"<b>{name}</b>"
    chips = "".join(f'<span class="chip {kind}">{html.escape(text)}</span>' for kind, text in entry.verdicts)
    columns = "".join(
        f'<div class="lanes"><b class="column">{html.escape(column)}</b>'
        + "".join(_lane(lane, column, least) for lane in lanes)
        + f'<div class="below" aria-hidden="true">{_ticks(least)}</div></div>'
        for column, lanes in zip(names, entry.columns, strict=True)
    )
    detail = f"<small>{html.escape(entry.detail)}</small>" if entry.detail else ""
    who = f'<div class="who">{title}{detail}<span class="chips">{chips}</span></div>'
    return f'<div class="entry">{who}{columns}</div>'


def _lane(lane: Lane, column: str, least: float) -> str:
    name = f"<span>{html.escape(lane.name)}</span>" if lane.name else ""
    return f'<div class="lane">{name}{axis(lane, column, least)}</div>'


def axis(lane: Lane, what: str, least: float) -> str:
    """One lane as SVG: dots on top, then the ranges, with numbers for who points at them or listens."""
    band = BAND if lane.trials else 6
    height = band + APART * len(lane.ranges) + 2
    marks = "".join(
        f'<line class="level" x1="{x}" x2="{x}" y1="0" y2="{height}"/>'
        for x in (_x(level, least) for level in _levels(least))
    )
    piles = _piles(lane.trials)
    lefts = [-math.inf, *(pile[-1].value for pile in piles)]
    dots = "".join(
        _pile(pile, band, least) + _count(pile, left, band, least)
        for pile, left in zip(piles, lefts, strict=False)
    )
    ranges = "".join(_range(r, band + APART * (k + 0.5), least) for k, r in enumerate(lane.ranges))
    numbers = "; ".join(f"{OWNERS[r.kind]} {r}" for r in lane.ranges)
    label = html.escape(", ".join(filter(None, (what, lane.name))))
    return (
        f'<svg class="axis" height="{height}" role="img" aria-label="{label}, in percent: {numbers}">'
        f"{marks}{dots}{ranges}</svg>"
    )


def _piles(trials: Sequence[Trial]) -> list[list[Trial]]:
    """Dots that would hide each other stand together."""
    piles: list[list[Trial]] = []
    for trial in sorted(trials, key=lambda trial: trial.value):
        if piles and trial.value - piles[-1][0].value < NEAR:
            piles[-1].append(trial)
        else:
            piles.append([trial])
    return piles


def _pile(pile: Sequence[Trial], band: float, least: float) -> str:
    """Dots one above the other. In a large pile the title of each dot names all of them."""
    floor, room = band - RADIUS - 1, band - 2 * RADIUS - 2
    apart = min(2 * RADIUS - 1, room / max(len(pile) - 1, 1))
    titles = [f"{trial.name}: {trial.value:.1f} %" for trial in pile]
    if len(pile) > MOST_APART:
        titles = ["\n".join(titles)] * len(pile)
    return "".join(
        f'<circle class="dot" cx="{_x(trial.value, least)}" cy="{floor - k * apart:.1f}" r="{RADIUS}">'
        f"<title>{html.escape(title)}</title></circle>"
        for k, (trial, title) in enumerate(zip(pile, titles, strict=True))
    )


def _count(pile: Sequence[Trial], before: float, band: float, least: float) -> str:
    """How many lie there, beside dots in one place; `before` is the value of the next dot on the left."""
    low, high = pile[0].value, pile[-1].value
    if len(pile) <= MOST_APART or high - low > NEAR / 3 or low - before < ROOM:
        return ""
    return f'<text class="count" x="{_x(low, least)}" dx="-8" y="{band / 2 + 4:.1f}">{len(pile)}</text>'


def _range(r: Range, y: float, least: float) -> str:
    low, middle, high = (_x(value, least) for value in (r.low, r.middle, r.high))
    ends = "".join(f'<line x1="{x}" x2="{x}" y1="{y - 2.5}" y2="{y + 2.5}"/>' for x in (low, high))
    return (
        f'<g class="range {r.kind}"><title>{OWNERS[r.kind]}: {r}, least / median / most</title>'
        f'<line class="hit" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>'
        f'<line x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>{ends}'
        f'<line class="median" x1="{middle}" x2="{middle}" y1="{y - 4.5}" y2="{y + 4.5}"/></g>'
    )


def _ticks(least: float) -> str:
    names = "".join(f'<text x="{_x(v, least)}" y="11">{v:.0f}</text>' for v in _levels(least))
    return f'<svg class="ticks" height="14">{names}</svg>'


def _levels(least: float) -> list[float]:
    apart = 10 if least >= 40 else 20
    return [float(v) for v in range(100, math.ceil(least) - 1, -apart)][::-1]


def _x(value: float, least: float) -> str:
    return f"{MARGIN + (100 - 2 * MARGIN) * (value - least) / (100 - least):.2f}%"
