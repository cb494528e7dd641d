"""How quick the page of `softstack view` is in Chromium: results/screens/timings.json, in milliseconds.

    python tools/time_page.py [RUNS]

For networks of Table 1, each on 1,000 symbols: the first paint of the page; when the whole run is there; and
a step, with the layout that it causes. Medians of several, on a machine that should be idle.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
from playwright.sync_api import Browser, sync_playwright
from screens import SCREENS, middle

from softstack.lab import tasks
from softstack.lab.reports import network_page
from softstack.lab.runs import store
from softstack.lab.training.conditions import TABLE_1

ROWS = (1, 3, 7, 16)  # linear, LSTM, buffered, and the largest alphabet
SYMBOLS, LOADS, STEPS = 1000, 7, 300
STEP = """(steps) => Array.from({ length: steps }, (_, k) => {
  const began = performance.now();
  softstack.go(500 + k);
  document.body.offsetHeight;
  return performance.now() - began;
})"""


def timed(browser: Browser, file: Path, fragment: str) -> dict[str, float]:
    paints, shown, steps = [], [], []
    for _ in range(LOADS):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(file.as_uri() + fragment)
        page.wait_for_function("softstack && performance.getEntriesByType('paint').length > 1")
        paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        shown.append(page.evaluate("performance.getEntriesByName('shown')[0].startTime"))
        steps.append(median(page.evaluate(STEP, STEPS)))
        page.close()
    return {name: round(median(of), 1) for name, of in (("paint", paints), ("run", shown), ("step", steps))}


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs/table1")
    rng = np.random.default_rng(0)
    result = {**store.provenance("cpu"), "symbols": SYMBOLS, "rows": {}}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        result["chromium"] = browser.version
        for row in ROWS:
            file = Path(folder) / f"row-{row}.html"
            file.write_text(network_page.page([middle(root, row)]), encoding="utf-8")
            letters = [s for s in tasks.find(TABLE_1[row - 1].task).inputs if s != "#"]
            symbols = "+".join(letters[k] for k in rng.integers(len(letters), size=SYMBOLS))
            result["rows"][row] = timed(browser, file, f"#input={symbols}")
            print(f"row {row}: {result['rows'][row]}")
        browser.close()
    (SCREENS / "timings.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
