"""Put what `make table` and `make figures` made where the README shows it: results/table1/ and README.md.

    python tools/publish.py [--check]

With --check nothing is written, and a README that does not say what results/table1 says is an error.
"""

import json
import shutil
import sys
from pathlib import Path

from softstack.lab import report

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "table1"
BEGIN, END = "<!-- table 1: begin, made by tools/publish.py -->", "<!-- table 1: end -->"


def readme_with_table(text: str) -> str:
    rows = json.loads((RESULTS / "table1.json").read_text())
    meta = json.loads((RESULTS / "meta.json").read_text())
    made = f"{report.markdown_table(rows)}\n\n{report.verdict(rows)} {report.stamp(meta)}"
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


def main() -> None:
    readme = ROOT / "README.md"
    if "--check" in sys.argv:
        if readme.read_text() != readme_with_table(readme.read_text()):
            sys.exit("README.md does not say what results/table1 says: run python tools/publish.py")
        return
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in ("table1.json", "table1.md", "table1.html", "trials.jsonl", "meta.json"):
        shutil.copy(ROOT / "runs" / "table1" / name, RESULTS / name)
    for figure in sorted((ROOT / "figures").glob("*.png")):
        shutil.copy(figure, ROOT / "results" / figure.name)
    readme.write_text(readme_with_table(readme.read_text()))


if __name__ == "__main__":
    main()
