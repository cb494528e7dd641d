"""Put what `make table`, `make figures` and `softstack bench` made where the README shows it.

    python tools/publish.py [--check]

Copies to results/, and writes the README's generated parts from there. With --check nothing is written, and a
README that does not say what results/ says is an error.
"""

import json
import shutil
import sys
from pathlib import Path

from softstack.lab import report

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
TABLE = ("table1.json", "table1.md", "table1.html", "trials.jsonl", "meta.json")
BENCH = ("bench.json", "bench.png")


def table() -> str:
    rows = json.loads((RESULTS / "table1" / "table1.json").read_text())
    meta = json.loads((RESULTS / "table1" / "meta.json").read_text())
    return f"{report.markdown_table(rows)}\n\n{report.verdict(rows)} {report.stamp(meta)}"


def speed() -> str:
    """Each case at the longest T that another implementation reaches, and how many times slower that is."""
    bench = json.loads((RESULTS / "bench" / "bench.json").read_text())
    own = {(t["case"], t["T"]): t["seconds"] for t in bench["timings"] if t["implementation"] == "fused"}
    others = [t for t in bench["timings"] if t["implementation"] != "fused"]
    longest = {(t["case"], t["implementation"]): t for t in others}  # timings are in the order of T
    lines = [
        "| forward and backward, one core | T | fused | beside it | | times |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for (case, name), t in longest.items():
        mine = own[case, t["T"]]
        lines.append(
            f"| {case} | {t['T']:,} | {1e3 * mine:.2f} ms | {name} | {1e3 * t['seconds']:,.1f} ms "
            f"| {t['seconds'] / mine:,.0f} |"
        )
    slopes = " and ".join(f"{slope:.2f} ({case})" for case, slope in bench["exponents"].items())
    return (
        "\n".join(lines) + f"\n\nFrom T = 1,024 to 65,536 the time grows with T to the power of {slopes}. "
        f"Made by `softstack bench` at commit {bench['commit']}, torch {bench['torch']}."
    )


def filled(text: str) -> str:
    for name, made in (("table 1", table()), ("speed", speed())):
        begin, end = f"<!-- {name}: begin, made by tools/publish.py -->", f"<!-- {name}: end -->"
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{made}\n{end}{rest.split(end)[1]}"
    return text


def main() -> None:
    readme = ROOT / "README.md"
    if "--check" in sys.argv:
        if readme.read_text() != filled(readme.read_text()):
            sys.exit("README.md does not say what results/ says: run python tools/publish.py")
        return
    for folder, names in (("table1", TABLE), ("bench", BENCH)):
        (RESULTS / folder).mkdir(parents=True, exist_ok=True)
        for name in names:
            shutil.copy(
                ROOT / ("runs/table1" if folder == "table1" else "bench") / name, RESULTS / folder / name
            )
    rows, meta = (
        json.loads((RESULTS / "table1" / name).read_text()) for name in ("table1.json", "meta.json")
    )
    (RESULTS / "table1" / "table1.html").write_text(report.page(rows, meta))  # pages of rows stay at home
    for figure in sorted((ROOT / "figures").glob("*.png")):
        shutil.copy(figure, RESULTS / figure.name)
    readme.write_text(filled(readme.read_text()))


if __name__ == "__main__":
    main()
