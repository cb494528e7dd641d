"""The screenshots in the README and the documentation, taken in Chromium: results/screens.

    python tools/screens.py [RUNS]
    python tools/screens.py --every FOLDER

RUNS is where `softstack table` put its run directories, runs/table1 if not given. Of each condition the trial
in the middle is shown, in the order of dev accuracy. With --every all pages that softstack writes are taken
at the widths of a desk and of a phone, to be looked at: of the gallery's networks, of what is in results/,
and those of docs/_build if they are there.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from softstack import viewer
from softstack.lab.explain import diagnosis_page, solved_page
from softstack.lab.explain import published as claimed
from softstack.lab.explain.diagnosis import diagnose
from softstack.lab.reports import (
    figures,
    gallery,
    network_page,
    row_page,
    suite_page,
    table_page,
    trace_page,
)
from softstack.lab.runs import store
from softstack.lab.sweeps.jobs import train_missing
from softstack.lab.training.conditions import TABLE_1, Condition

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
    scheme: Literal["light", "dark"] = "light"
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


def every(folder: Path) -> Iterator[Shot]:
    """Each kind of page at both widths."""
    for name, text, fragment in pages(folder):
        for width in (1280, 390):
            yield Shot(f"{name}-{width}", text, fragment, width)


def pages(folder: Path) -> Iterator[tuple[str, str, str]]:
    """A name, the page, and what is behind the # of its address."""
    yield "play", viewer.play(), EXAMPLE
    yield "play-empty", viewer.play(), ""
    yield "gallery", gallery.page(), ""
    yield "gallery-broken", gallery.page(), urlencode({"left": 9, "step": 10, "input": "( ( ( ( ( ) ) ) ) )"})
    one, buffered, words = map(exhibit, ("reversal-linear", "xor-buffered", "agreement-lstm"))
    lstm, linear = map(exhibit, ("parenthesis-lstm", "parenthesis-linear"))
    yield "view", network_page.page([one]), at("1 1 0 1 0 0 1 0", 11)
    yield "view-two", network_page.page([linear, lstm]), at("( [ [ ] ( ( ) ) ] )", 8, left=0, right=1)
    yield "view-left", network_page.page([lstm]), at("( ( [ ) ]", 5)  # the string leaves the language
    yield "view-words", network_page.page([words]), ""
    yield "view-two-tasks", network_page.page([one, lstm]), ""
    yield "view-buffered", network_page.page([buffered]), at("1 1 0 1 0 0 1", 7)
    yield "view-played-back", network_page.page([played_back(folder)]), ""
    for name, run, symbols in (
        ("trace", linear, "[ ( [ ] ) ] ("),
        ("trace-words", words, "the lobsters in the lobster have"),
        ("trace-buffered", buffered, "1 1 0 1 0 0 1"),
    ):
        network = store.network(run)
        seen = figures.observe(network, run.condition, symbols.split())
        yield name, trace_page.page(network, run.condition, seen, name), ""
    for name, run in (("diagnosis", one), ("diagnosis-ignored", lstm)):
        diagnosis = diagnose(store.network(run), run.condition, run.seed, strings=50)
        yield name, diagnosis_page.page(diagnosis, name), ""
    rows, meta = published_json("table1", "table1.json", "meta.json")
    yield "table", table_page.page(rows, meta), ""
    yield "row", row_page.page([lstm], rows[10]["paper"], "table1.html"), ""
    yield "solve", solved_page.page(*published_json("solved", "solved.json", "meta.json")), ""
    rows, meta, claims = published_json("suite", "suite.json", "meta.json", "published.json")
    yield "suite", suite_page.page(rows, meta, claimed.section(claims, meta["published"])), ""


def exhibit(name: str) -> store.Run:
    return store.load(gallery.EXHIBITS / name)


def played_back(folder: Path) -> store.Run:
    """A network that the page cannot run itself."""
    condition = Condition("reversal", "linear", "superposition", max_epochs=1)
    train_missing(folder, [condition], [0], "inline")
    return store.load(store.place(folder, condition, 0))


def published_json(folder: str, *names: str) -> list[Any]:
    return [json.loads((RESULTS / folder / name).read_text()) for name in names]


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
            for shot in every(Path(folder) / "runs"):
                print(taken(browser, shot, Path(folder), out))
            for page in sorted(DOCS.rglob("*.html")):
                name = "-".join(page.relative_to(DOCS).with_suffix("").parts)
                for width in (1280, 390):
                    shot = Shot(f"docs-{name}-{width}", "", width=width)
                    picture(browser, page.as_uri(), shot, out / f"{shot.name}.png")
        browser.close()


if __name__ == "__main__":
    main()
