"""One self-contained page in which networks run or are played back: plain JavaScript, styles and data in one
HTML file.

forward.js     §2: the paper's controllers, memories and buffered networks; held to the reference by the tests
played.js      runs that were recorded, of any memory and controller
tasks.js       §4: targets of typed strings, and fresh strings of a length
pdt.js         §3: pushdown transducers; beginnings.js how far a string is the beginning of a grammar's word
draw.js        colours, elements, a chart; heat.js the whole run
memory.js      what a memory holds; buffer.js a buffered network's output buffer
controller.js  what a controller says; tape.js the input and what is said of it
panel.js       one network in step; measure.js accuracy against length
gallery.js     networks to choose from, and what to look for in them
page.js        what is typed and pressed; page.html, style.css the frame

step.js        §2.1 and §2.3, one step as the paper writes it; equations.js its numbers beside the letters
sequence.js    steps and the link that holds them; knobs.js sliders
play.js        the page to play with a memory, without a network: play.html, play.css

declared.py    what is drawn of a memory; recorded.py a run as data; show.py `ss.show`

The page is given plain data and knows no module. It needs no server, no network and no library.
"""

import html
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from string import Template
from typing import Any

SCRIPTS = (
    "forward.js", "played.js", "tasks.js", "pdt.js", "beginnings.js", "draw.js", "heat.js", "memory.js",
    "buffer.js", "controller.js", "tape.js", "panel.js", "measure.js", "gallery.js", "page.js",
)  # fmt: skip

PLAY = (  # those of `softstack play`
    "draw.js", "tasks.js", "memory.js", "step.js", "equations.js", "sequence.js", "knobs.js", "play.js",
)  # fmt: skip


@cache
def asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def page(
    data: dict[str, Any],
    title: str,
    *,
    stamp: str = "",
    before: str = "",
    kinds: Mapping[str, str] | None = None,
) -> str:
    """The page of `data`; `before` is HTML of the caller's that stands above the networks, and `kinds` are
    kinds of tasks that tasks.js does not have, by name: the text of a JavaScript object."""
    own = [f"KINDS[{json.dumps(kind)}] = ({script});" for kind, script in (kinds or {}).items()]
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Template(asset("page.html")).substitute(
        title=html.escape(title),
        style=asset("style.css"),
        script="\n".join([*map(asset, SCRIPTS), *(line.replace("</", "<\\/") for line in own)]),
        data=text.replace("<", "\\u003c"),
        stamp=html.escape(stamp),
        before=before,
    )


def report(title: str, body: str, *, stamp: str = "") -> str:
    """A page of figures and tables in the same style: `body` is HTML of the caller's, `stamp` is text."""
    return Template(asset("report.html")).substitute(
        title=html.escape(title),
        style=asset("style.css") + asset("report.css"),
        body=body,
        stamp=html.escape(stamp),
    )


def play(*, stamp: str = "") -> str:
    """The page to play with a stack or a queue, without a network."""
    return Template(asset("play.html")).substitute(
        style=asset("style.css") + asset("play.css"),
        script="\n".join(map(asset, PLAY)),
        stamp=html.escape(stamp),
    )
