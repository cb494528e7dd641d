"""The screenshots in the README and the documentation, taken in Chromium: results/screens.

    python tools/screens.py [RUNS]
    python tools/screens.py --every FOLDER [RUNS]

RUNS is where `softstack table` put its run directories, runs/table1 if not given. Of each condition the trial
in the middle is shown, in the order of dev accuracy. With --every all pages that softstack writes are taken
at the widths of a desk and of a phone, those of docs/_build too if they are there, to be looked at.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from softstack import viewer
from softstack.lab.explain import solved_page
from softstack.lab.reports import figures, gallery, network_page, row_page, table1, table_page, trace_page
from softstack.lab.runs import store
from softstack.lab.training.conditions import TABLE_1

ROOT = Path(__file__).parent.parent
SCREENS, RESULTS, DOCS = ROOT / "results" / "screens", ROOT / "results", ROOT / "docs" / "_build"
EXAMPLE = "memory=stack&size=3&steps=0,0.8,1,0,0;0.1,0.5,0,1,0;0.9,0.9,0,0,1&step=3"
COLOURS = 128  # of a published picture: a quarter of the bytes, and no difference to see


class Shot(NamedTuple):
    """A page and how it is looked at."""

    name: str
    text: str
    fragment: str = ""
    width: int = 1180
    scheme: str = "light"
    whole: bool = True  # and not just what is on the screen
    brief: bool = False  # without what is at the end of every page


def middle(root: Path, row: int) -> store.Run:
    places = sorted((root / TABLE_1[row - 1].name).glob("seed-*"))
    chosen = row_page.ordered([store.load(place) for place in places])
    return chosen.get("median", chosen["best"])


def at(symbols: str, step: int, **more: int) -> str:
    return urlencode({"input": symbols, "step": step, **more})


def published(root: Path) -> Iterator[Shot]:
    reversal, xor, both = (
        network_page.page([middle(root, row) for row in rows]) for rows in ((1,), (7,), (9, 11))
    )
    yield Shot("reversal", reversal, at("1 1 0 1 0 0 1 0", 11))
    yield Shot("phone", reversal, at("1 1 0 1 0 0 1 0", 11), 390, "dark", whole=False)
    yield Shot("xor", xor, at("1 1 0 1 0 0 1", 7))
    yield Shot("beside", both, at("( [ [ ] ( ( ) ) ] )", 8, left=0, right=1), 1400, "dark")
    yield Shot("play", viewer.play(), EXAMPLE)
    yield Shot("gallery", gallery.page(), urlencode({"left": 8}), whole=False)


def every(root: Path) -> Iterator[Shot]:
    """Each kind of page at both widths."""
    texts = {shot.name: (shot.text, shot.fragment) for shot in published(root) if shot.name != "phone"}
    rows = table1.table(root, range(1, 19), range(10))
    meta = json.loads((RESULTS / "table1" / "meta.json").read_text())
    texts["table"] = (table_page.page(rows, meta), "")
    runs = [store.load(store.place(root, TABLE_1[8], seed)) for seed in range(10)]
    texts["row"] = (row_page.page(runs, rows[8]["paper"], "table1.html"), "")
    files = (RESULTS / "solved" / name for name in ("solved.json", "meta.json"))
    texts["solve"] = (solved_page.page(*(json.loads(file.read_text()) for file in files)), "")
    for name, row, symbols in (("trace", 9, "[ ( [ ] ) ] ("), ("trace-buffered", 7, "1 1 0 1 0 0 1")):
        run = middle(root, row)
        network = store.network(run)
        seen = figures.observe(network, run.condition, symbols.split())
        texts[name] = (trace_page.page(network, run.condition, seen, name), "")
    for name, (text, fragment) in texts.items():
        for width in (1280, 390):
            yield Shot(f"{name}-{width}", text, fragment, width)


def taken(browser: Browser, shot: Shot, folder: Path, out: Path) -> Path:
    file = folder / f"{shot.name}.html"
    file.write_text(shot.text, encoding="utf-8")
    picture(browser, f"{file.as_uri()}#{shot.fragment}", shot, out / f"{shot.name}.png")
    return out / f"{shot.name}.png"


def picture(browser: Browser, address: str, shot: Shot, file: Path) -> None:
    page = browser.new_page(viewport={"width": shot.width, "height": 844}, color_scheme=shot.scheme)
    page.goto(address)
    page.wait_for_function("typeof softstack === 'undefined' || softstack !== undefined")
    hidden = "footer, #measuring { display: none }" if shot.brief else ""
    page.add_style_tag(content=f"* {{ animation: none !important }} {hidden}")
    page.wait_for_timeout(300)
    wide = page.evaluate("document.documentElement.scrollWidth")
    if wide > shot.width:
        print(f"{shot.name} is {wide} pixels wide, on a screen of {shot.width}")
    page.screenshot(path=file, full_page=shot.whole)
    page.close()


def main() -> None:
    words = sys.argv[1:]
    out = SCREENS
    if words[:1] == ["--every"]:
        out, words = Path(words[1]), words[2:]
    root = Path(words[0]) if words else Path("runs/table1")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        if out == SCREENS:
            for shot in published(root):
                file = taken(browser, shot._replace(brief=True), Path(folder), out)
                Image.open(file).convert("RGB").quantize(COLOURS).save(file, optimize=True)
                print(file)
        else:
            for shot in every(root):
                print(taken(browser, shot, Path(folder), out))
            for page in sorted(DOCS.rglob("*.html")):
                name = "-".join(page.relative_to(DOCS).with_suffix("").parts)
                for width in (1280, 390):
                    shot = Shot(f"docs-{name}-{width}", "", width=width)
                    picture(browser, page.as_uri(), shot, out / f"{shot.name}.png")
        browser.close()


if __name__ == "__main__":
    main()
