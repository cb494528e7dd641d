"""Put what `make table`, `make figures` and `softstack bench` made where the README shows it.

    python tools/publish.py [--check]

Copies to results/, and writes the README's generated parts from there. With --check nothing is written, and a
README that does not say what results/ says is an error.
"""

import json
import shutil
import sys
from pathlib import Path

from softstack.lab.reports import table1 as report

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
TABLE = ("table1.json", "table1.md", "table1.html", "trials.jsonl", "meta.json")
BENCH = ("bench.json", "bench.png")  # beside gpu.json, from a machine that has one: see `speed_gpu`


def table() -> str:
    rows = json.loads((RESULTS / "table1" / "table1.json").read_text())
    meta = json.loads((RESULTS / "table1" / "meta.json").read_text())
    return f"{report.markdown_table(rows)}\n\n{report.verdict(rows)} {report.stamp(meta)}"


def duration(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds > 10 else f"{1e3 * seconds:,.1f} ms"


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
            f"| {case} | {t['T']:,} | {1e3 * mine:.2f} ms | {name} | {duration(t['seconds'])} "
            f"| {t['seconds'] / mine:,.0f} |"
        )
    million = next(t for t in bench["timings"] if t["T"] == 1_000_000)
    slopes = " and ".join(f"{slope:.2f} ({case})" for case, slope in bench["exponents"].items())
    return (
        "\n".join(lines) + f"\n\nFrom T = 1,024 to 65,536 the time grows with T to the power of {slopes}, "
        f"memory to that of {bench['memory_exponent']:.2f}. A scan of a million steps (B=1, m=16) takes "
        f"{million['seconds']:.2f} s and {bench['memory'][-1]['megabytes']:,.0f} MB. "
        f"Made by `softstack bench --full` at commit {bench['commit']}, torch {bench['torch']}."
    )


def speed_gpu() -> str:
    """The same for what `python benchmarks/gpu.py results/bench/gpu.json COMMIT` wrote on a GPU."""
    bench = json.loads((RESULTS / "bench" / "gpu.json").read_text())
    own = {(t["case"], t["T"]): t["seconds"] for t in bench["timings"] if t["implementation"] == "fused"}
    lines = [
        f"| forward and backward, {bench['device']} | T | fused | beside it | | times |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for t in bench["timings"]:
        if t["implementation"] != "fused":
            mine = own[t["case"], t["T"]]
            lines.append(
                f"| {t['case']} | {t['T']:,} | {1e3 * mine:,.2f} ms | {t['implementation']} "
                f"| {1e3 * t['seconds']:,.2f} ms | {t['seconds'] / mine:,.2f} |"
            )
    long = bench["growth"][-1]
    return (
        "\n".join(lines) + f"\n\n{long['case']}, T = {long['T']:,}: {1e3 * long['seconds']:,.0f} ms and "
        f"{long['megabytes']:,.0f} MB, which grow in proportion to T. Made by "
        f"`python benchmarks/gpu.py` at commit {bench['commit']}, torch {bench['torch']}."
    )


def sweep() -> str:
    """What `benchmarks/sweep.py` measured, in a sentence; nothing before it has been run."""
    file = RESULTS / "sweep" / "sweep.json"
    if not file.exists():
        return ""
    made = json.loads(file.read_text())
    local, cluster = made["local"], made["cluster"]
    same = "identical to the byte" if made["identical"] else "NOT identical"
    return (
        f"{made['trials']:,} trials took {local['seconds']:.0f} s with {made['workers']} workers on this "
        f"machine, of which the engine cost {made['overhead']:.1%} of the training, start and end included; "
        f"on the cluster {cluster['seconds']:.0f} s, a worker killed after {made['killed_after']:,} of them. "
        f"The results are {same}. Made by `python benchmarks/sweep.py` at commit {made['commit']}, "
        f"torch {made['torch']}."
    )


def filled(text: str) -> str:
    parts = (("table 1", table()), ("speed", speed()), ("speed on a GPU", speed_gpu()), ("sweep", sweep()))
    for name, made in parts:
        begin, end = f"<!-- {name}: begin, made by tools/publish.py -->", f"<!-- {name}: end -->"
        before, rest = text.split(begin)
        made = made.rstrip("\n") + "\n" if made else ""
        text = f"{before}{begin}\n{made}{end}{rest.split(end)[1]}"
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
    if (ROOT / "runs/many/sweep.json").exists():
        (RESULTS / "sweep").mkdir(exist_ok=True)
        shutil.copy(ROOT / "runs/many/sweep.json", RESULTS / "sweep" / "sweep.json")
    rows, meta = (
        json.loads((RESULTS / "table1" / name).read_text()) for name in ("table1.json", "meta.json")
    )
    (RESULTS / "table1" / "table1.html").write_text(report.page(rows, meta))  # pages of rows stay at home
    for figure in sorted((ROOT / "figures").glob("*.png")):
        shutil.copy(figure, RESULTS / figure.name)
    readme.write_text(filled(readme.read_text()))


if __name__ == "__main__":
    main()
