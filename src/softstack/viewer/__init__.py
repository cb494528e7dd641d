"""One self-contained page in which a network runs: plain JavaScript, styles and data in one HTML file.

forward.js    §2: every controller, memory and buffered network; held to the reference by the tests
tasks.js      §4: targets of typed strings, and fresh strings of a length
pdt.js        §3: pushdown transducers
draw.js       colours, elements, a chart; heat.js the whole run; memory.js stacks, queues and buffers
panel.js      one network in step; page.js what is typed and pressed; page.html, style.css the frame

The page is given plain data and knows no module. It needs no server, no network and no library.
"""

import html
import json
from functools import cache
from importlib import resources
from string import Template
from typing import Any

SCRIPTS = (
    "forward.js", "tasks.js", "pdt.js", "draw.js", "heat.js", "memory.js", "panel.js", "page.js",
)  # fmt: skip


@cache
def asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def page(data: dict[str, Any], title: str, *, stamp: str = "", before: str = "") -> str:
    """The page of `data`; `before` is HTML of the caller's that stands above the networks."""
    return Template(asset("page.html")).substitute(
        title=html.escape(title),
        style=asset("style.css"),
        script="\n".join(map(asset, SCRIPTS)),
        data=json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
        stamp=html.escape(stamp),
        before=before,
    )
