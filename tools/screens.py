"""The screenshots in the README and the documentation: pages of `softstack view` in Chromium.

    python tools/screens.py [RUNS]

RUNS is where `softstack table` put its run directories, runs/table1 if not given. Of each condition the trial
in the middle is shown, in the order of dev accuracy.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

from softstack.lab.reports import network_page, row_page
from softstack.lab.runs import store
from softstack.lab.training.conditions import TABLE_1

SCREENS = Path(__file__).parent.parent / "results" / "screens"
# name: the rows of Table 1, the input, the step, the width of the window and its colours
SHOTS = {
    "reversal": ((1,), "1 1 0 1 0 0 1 0", 11, 1180, "light"),
    "xor": ((7,), "1 1 0 1 0 0 1", 7, 1180, "light"),
    "beside": ((9, 11), "( [ [ ] ( ( ) ) ] )", 8, 1400, "dark"),
    "phone": ((1,), "1 1 0 1 0 0 1 0", 11, 390, "dark"),
}


def middle(root: Path, row: int) -> store.Run:
    places = sorted((root / TABLE_1[row - 1].name).glob("seed-*"))
    chosen = row_page.ordered([store.load(place) for place in places])
    return chosen.get("median", chosen["best"])


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs/table1")
    SCREENS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (rows, symbols, step, width, scheme) in SHOTS.items():
            file = Path(folder) / f"{name}.html"
            file.write_text(network_page.page([middle(root, row) for row in rows]), encoding="utf-8")
            page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
            both = {"left": 0, "right": 1} if len(rows) > 1 else {}
            page.goto(f"{file.as_uri()}#{urlencode({'input': symbols, 'step': step, **both})}")
            page.wait_for_function("softstack && softstack.page.panels[0].run")
            page.evaluate("document.getElementById('measuring').remove()")
            page.add_style_tag(content="footer { display: none } * { animation: none !important }")
            page.wait_for_timeout(300)
            page.screenshot(path=SCREENS / f"{name}.png", full_page=width > 400)
            print(f"{SCREENS / name}.png")
        browser.close()


if __name__ == "__main__":
    main()
