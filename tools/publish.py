"""Put what `make table`, `make figures` and `softstack bench`, `solve`, `study` and `suite` made where it is
read.

    python tools/publish.py [--check]

Copies what is there to results/, and writes the generated parts of README.md and of pages in docs/ from
there. With --check nothing is written, and a page that does not say what results/ says is an error.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from softstack.lab import tasks
from softstack.lab.explain import failures, published, solved, study_figures
from softstack.lab.reports import distributions, names, suite, suite_page, table_page
from softstack.lab.reports import table1 as report
from softstack.lab.reports.writing import SOLVED
from softstack.lab.runs.compare import wilson
from softstack.lab.tasks.data import UNSCORED
from softstack.lab.tasks.metrics import METRICS
from softstack.lab.training.recipes import HARD
from softstack.words import counted

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
COPIED = {  # what results/ takes, by its folder there and where it is made
    "table1": ("runs/table1", ("table1.json", "table1.md", "trials.jsonl", "meta.json")),
    "distributions": ("runs/table200", ("distributions.json",)),
    "bench": ("bench", ("bench.json", "bench.png")),  # beside gpu.json, from a machine that has a GPU
    "solved": ("runs/solved", ("solved.json", "solved.md", "meta.json")),
    "study": ("runs/study", ("study.jsonl", "study.png", "mechanism.json", "mechanism.png", "meta.json")),
    "sweep": ("runs/many", ("sweep.json",)),
    "suite": ("runs/suite", ("suite.json", "published.json", "meta.json")),
}


def table() -> str:
    rows = json.loads((RESULTS / "table1" / "table1.json").read_text())
    meta = json.loads((RESULTS / "table1" / "meta.json").read_text())
    return f"{report.markdown_table(rows)}\n\n{report.verdict(rows)} {report.stamp(meta)}"


def distributed() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows of `softstack table --trials 200`, and where they come from."""
    meta = json.loads((RESULTS / "distributions" / "distributions.json").read_text())
    return meta.pop("rows"), meta


def by_distributions() -> str:
    return distributions.markdown(*distributed())


def by_distributions_briefly() -> str:
    rows, _ = distributed()
    return f"{distributions.verdict(rows)} [How, and what is known of them](docs/distributions.md)."


def torture() -> str:
    """What `benchmarks/torture.py` counted."""
    report = json.loads((RESULTS / "torture" / "torture.json").read_text())
    kills, fuzz = report["kills"], report["fuzz"]
    hit = {victim: kills[victim] for victim in ("driver", "group", "worker")}
    counts = {
        "rounds of kills": kills["rounds"],
        **{f"of them, the {victim} was killed": n for victim, n in hit.items()},
        "of them, the sweep was over before": kills["rounds"] - sum(hit.values()),
        "of them, some trials had finished": kills["after trials had finished"],
        "sweeps that were gone on with to their end": kills["sweeps"],
        "results that differ": kills["results that differ"],
        **{f"strange directories: {name}" if name != "directories" else "strange directories": n
           for name, n in fuzz.items() if name != "faults"},
    }  # fmt: skip
    lines = ["| | |", "| --- | --- |", *(f"| {name} | {n:,} |" for name, n in counts.items())]
    return "\n".join(lines) + (
        f"\n\nMade by `python benchmarks/torture.py` at commit {report['commit']} in "
        f"{report['seconds'] / 60:.0f} minutes."
    )


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
    """The same for what `python benchmarks/gpu.py results/bench/gpu.json` wrote on a GPU."""
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
    alone = [t for t in bench["timings"] if "strengths" in t["case"]] + bench["growth"]
    for t in alone:
        lines.append(f"| {t['case']} | {t['T']:,} | {1e3 * t['seconds']:,.2f} ms | | | |")
    long = bench["growth"][-1]
    return (
        "\n".join(lines) + f"\n\nThe longest scan takes {long['megabytes']:,.0f} MB. Made by "
        f"`python benchmarks/gpu.py` at commit {bench['commit']}, torch {bench['torch']}."
    )


def memories() -> str:
    """The same for what `python benchmarks/memories.py` wrote."""
    bench = json.loads((RESULTS / "bench" / "memories.json").read_text())
    lines = ["| memory | runs by | time | memory taken |", "| --- | --- | --- | --- |"]
    for row in bench["rows"]:
        by = {"cpu": "a kernel", "reference": "plain PyTorch"}[row["backend"]]
        if row["segment"] < bench["steps"]:
            by += f", of every {row['segment']}th step a state kept"
        lines.append(f"| `{row['memory']}` | {by} | {row['seconds']:.2f} s | {row['megabytes']:,.0f} MB |")
    return (
        "\n".join(lines) + f"\n\n{bench['steps']:,} steps of one sequence, forward and backward, on a core: "
        f"an LSTM of {bench['hidden_size']}, and {bench['memory_size']} for the size of the memory. Made by "
        f"`python benchmarks/memories.py` at commit {bench['commit']}, torch {bench['torch']}."
    )


def code_model() -> dict[str, Any]:
    return dict(json.loads((RESULTS / "code_model" / "code_model.json").read_text()))


VARIANTS = {"attention": "attention", "both": "attention and stacks, in turn", "stacks": "stacks alone"}


def by_number(name: str) -> tuple[Any, ...]:
    """closer, distance <= 64 comes after closer, distance <= 16, and before closer, distance > 64."""
    kind, _, rest = name.partition(", ")
    words = rest.split()
    return (kind, words[0], int(words[2]), words[1] == ">") if words else (kind,)


def of_code() -> str:
    """Bits per byte and what is known of brackets and of lines that begin further left."""
    results = code_model()
    scores = {name: results[name]["code"] for name in VARIANTS}
    names = sorted((name for name in scores["attention"] if name != "bits per byte"), key=by_number)

    def row(name: str, cells: list[str]) -> str:
        return f"| {name} | " + " | ".join(cells) + " |"

    lines = [row("", list(VARIANTS.values())), row("---", ["---"] * len(VARIANTS))]
    lines += [row("parameters", [f"{results[name]['parameters']:,}" for name in VARIANTS])]
    lines += [row("**bits per byte**", [f"**{scores[name]['bits per byte']:.3f}**" for name in VARIANTS])]
    for name in names:
        cells = [f"{100 * score[name]['right']:.1f} %" for score in scores.values()]
        lines.append(row(f"{name} ({scores['attention'][name]['of']:,})", cells))
    sizes = results["sizes"]
    return "\n".join(lines) + (
        f"\n\n{sizes['steps']:,} steps with {sizes['batch']} windows of {sizes['window']:,} bytes each, on "
        f"{sizes['held_out']} files that were held out; in brackets how many places are scored. Made by "
        f"`python examples/code_model.py` at commit {results['commit']}, on {results['device']}."
    )


def of_formal() -> str:
    """The share of right answers by length."""
    results = code_model()
    lines = ["| task | blocks | 1x | 2x | 5x | 10x | 20x |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for task in results["attention"]["formal"]:
        for name, title in VARIANTS.items():
            shares = [f"{100 * share:.1f} %" for share in results[name]["formal"][task].values()]
            lines.append(f"| {task} | {title} | " + " | ".join(shares) + " |")
    sizes = results["sizes"]
    return "\n".join(lines) + (
        f"\n\nTrained for {sizes['formal_steps']:,} steps on strings of up to {sizes['formal_length']} "
        f"symbols. Made by `python examples/code_model.py --parts formal` at commit {results['commit']}."
    )


def of_code_briefly() -> str:
    results = code_model()
    bits = {name: results[name]["code"]["bits per byte"] for name in VARIANTS}
    gain = 1 - bits["both"] / bits["attention"]
    return (
        f"A byte-level model of Python source with stacks in every other block takes {bits['both']:.3f} bits "
        f"per byte of files that it has not seen, where attention alone takes {bits['attention']:.3f} with "
        f"as many parameters and steps: {gain:.0%} less ([more](docs/code_model.md)). Measured at commit "
        f"{results['commit']}."
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


def loaded(folder: str) -> tuple[list[Any], dict[str, Any]]:
    name = "solved.json" if folder == "solved" else "mechanism.json"
    rows, meta = (json.loads((RESULTS / folder / file).read_text()) for file in (name, "meta.json"))
    return rows, meta


def solved_briefly() -> str:
    """The LSTMs on the hard tasks."""
    rows, meta = loaded("solved")
    lstm = [row for row in rows if row["controller"] == "lstm" and row["task"] in HARD]
    keep = [k for k, name in enumerate(solved.HEADER) if name not in ("network", "machine is the task's")]
    table = [solved.HEADER, ["---"] * len(solved.HEADER), *solved.lines(lstm)]
    text = "\n".join("| " + " | ".join(line[k] for k in keep) + " |" for line in table)
    trials = trainings()
    all_of = {
        row["task"]: wins([x for part in trials[row["condition"]].values() for x in part])
        for row in lstm
        if row["condition"] in trials
    }
    every = ", ".join(f"{task} {share}" for task, share in all_of.items())
    return (
        f"{text}\n\nOther tasks and controllers are in [docs/solved.md](docs/solved.md). "
        f"{solved.verdict(rows)} {solved.stamp(meta)}\n\nTwo more trainings are there, too. In all three "
        f"together LSTMs solve: {every}."
    )


def solved_whole() -> str:
    rows, meta = loaded("solved")
    return solved.markdown(rows, meta)


def solved_by_choices() -> str:
    """What settled how often restarts lose their state, and when they are dropped."""
    rows = json.loads((RESULTS / "study" / "choices.json").read_text())
    networks = list(dict.fromkeys((row["controller"], row["task"]) for row in rows))
    titles = [f"{names.network(controller, buffered=False)}, {task}" for controller, task in networks]
    lines = [f"| | {' | '.join(titles)} |", "| --- " * (1 + len(titles)) + "|"]
    cells = {
        (row["variant"], row["controller"], row["task"]): (
            f"{row['after 1/4 and 1/2']} of {row['trials']} ({100 * row['single'] / row['networks']:.0f} %)"
        )
        for row in rows
    }
    for variant in dict.fromkeys(row["variant"] for row in rows):
        shares = (cells.get((variant, *network), "") for network in networks)
        parts = [part if "resets" in part else f"{part}, resets 0.5" for part in variant.split(" | ")]
        lines.append(f"| {'; every second restart: '.join(parts)} | {' | '.join(shares)} |")
    total, none, late, early = (
        sum(row[name] for row in rows)
        for name in ("trials", "none dropped", "after 1/2 and 3/4", "after 1/4 and 1/2")
    )
    return "\n".join(lines) + (
        f"\n\nHere restarts are dropped after 1/4 and 1/2 of the steps, and {early} of {total} trials are "
        f"right. With drops after 1/2 and 3/4 it would be {late}, and without drops {none}."
    )


def by_restarts() -> str:
    """How often the network of the lowest dev loss is right, by how many there are to choose from."""
    rows = json.loads((RESULTS / "study" / "choices.json").read_text())
    mixed = {row["task"]: row["restarts"] for row in rows if " | " in row["variant"]}
    lines = [f"| restarts | {' | '.join(mixed)} |", "| --- " * (1 + len(mixed)) + "|"]
    for count in next(iter(mixed.values())):
        shares = [of_all(*by_count[count]) for by_count in mixed.values()]
        lines.append(f"| {count} | {' | '.join(shares)} |")
    return "\n".join(lines)


def of_all(won: int, of: int) -> str:
    """With Wilson's interval of 95 %."""
    bounds = wilson(won, of)
    return f"{won} of {of} ({100 * bounds.low:.0f}-{100 * bounds.high:.0f} %)"


def trainings() -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The trials of the recipe, by condition and training: that of the report first."""
    reported = failures.solved_by_recipe(loaded("solved")[0])
    trials: dict[str, dict[str, list[dict[str, Any]]]] = {row["condition"]: {} for row in reported}
    for row in (*reported, *json.loads((RESULTS / "solved" / "again.json").read_text())):
        seeds = [trial["seed"] for trial in row["trials"]]
        title = f"seeds {min(seeds)} to {max(seeds)}" + (f", {row['device']}" if "device" in row else "")
        trials[row["condition"]][title] = row["trials"]
    return trials


def wins(trials: Sequence[dict[str, Any]]) -> str:
    won = sum(trial["test"] >= SOLVED for trial in trials)
    return f"{won} of {len(trials)}" if trials else ""


def solved_failures() -> str:
    return failures.failures(loaded("solved")[0], trainings())


def solved_machines() -> str:
    return failures.machines(loaded("solved")[0])


def solved_again() -> str:
    """How many trials solve their task, in each training of the recipe."""
    networks, trials = {row["condition"]: row for row in loaded("solved")[0]}, trainings()
    titles = list(dict.fromkeys(title for by_title in trials.values() for title in by_title))
    lines = [f"| task | network | {' | '.join(titles)} | all |", "| --- " * (3 + len(titles)) + "|"]
    for condition, by_title in trials.items():
        cells = [*failures.network(networks[condition])]
        cells += [wins(by_title.get(title, [])) for title in titles]
        lines.append(f"| {' | '.join(cells)} | {wins([x for part in by_title.values() for x in part])} |")
    return "\n".join(lines)


def study_lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RESULTS / "study" / "study.jsonl").read_text().splitlines()]


def study() -> str:
    """A line for each value: how many single networks solve each task, with 95 % intervals."""
    lines, (_, meta) = study_lines(), loaded("study")
    cells = {(line["axis"], line["value"], line["condition"]["task"]): line for line in lines}
    names = {**study_figures.TITLES, "neither": "no resets, no noise"}
    table = [["", "", *HARD], ["---"] * (2 + len(HARD))]
    for axis, value in dict.fromkeys((axis, value) for axis, value, _ in cells):
        shares = []
        for task in HARD:
            shares.append(of_all(*study_figures.successes(cells[axis, value, task])))
        table.append([names[axis], "" if axis == "neither" else f"{value:,}", *shares])
    text = "\n".join("| " + " | ".join(line) + " |" for line in table)
    return (
        f"{text}\n\nTrained by `softstack study` at commit {meta['commit']} on {meta['device']}. In "
        "brackets: 95 % intervals (Wilson's)."
    )


def mechanism() -> str:
    """At the end of the training: how much of what the answers need is where."""
    moments, meta = loaded("study")
    table = ["| | training | state replaced | stack replaced |", "| --- | --- | --- | --- |"]
    more: dict[str, list[bool]] = {}  # whether a network's stack counts for more than its state
    for task, kind in dict.fromkeys((line["task"], line["training"]) for line in moments):
        of_kind = [line for line in moments if (line["task"], line["training"]) == (task, kind)]
        last = [line for line in of_kind if line["steps"] == max(other["steps"] for other in of_kind)]
        shares = [f"{100 * median(line[what] for line in last):.1f} %" for what in ("state", "memory")]
        table.append(f"| {task} | {kind} | {shares[0]} | {shares[1]} |")
        more.setdefault(kind, []).extend(line["memory"] > line["state"] for line in last)
    by_stack = ", ".join(f"{kind}: {sum(own)} of {len(own)}" for kind, own in more.items())
    count = len({line["seed"] for line in moments})
    return "\n".join(table) + (
        f"\n\nMedians of {count} networks at the end of their training. Networks whose stack counts for more "
        f"than their state: {by_stack}. Measured by `softstack study` at commit {meta['mechanism_commit']}."
    )


def of_tasks() -> str:
    """Every task by its paper."""
    tables = []
    for source in dict.fromkeys(map(tasks.source_of, tasks.TASKS.values())):
        lines = [
            f"### {source}\n",
            "| task | input, and target below | symbols | steps: training, test | metric | machine |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for name, task in tasks.TASKS.items():
            if tasks.source_of(task) == source:
                symbols, target = tasks.shown(task)
                example = " <br> ".join(
                    f"`{' '.join(some(line)).replace('|', chr(92) + '|')}`"
                    for line in (symbols, [t or UNSCORED for t in target])
                )
                metrics = ", ".join(METRICS[metric].words for metric in tasks.metrics_of(task))
                machine = tasks.machine_of(task)
                lines.append(
                    f"| `{name}` | {example} | {len(task.alphabet)} "
                    f"| {task.length('train')}, {task.length('test')} | {metrics} "
                    f"| {'' if machine is None else counted(len(machine.states), 'state')} |"
                )
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def some(symbols: Sequence[str]) -> list[str]:
    """As many as fit into a table."""
    return [*symbols] if len(symbols) <= 24 else [*symbols[:23], "..."]


def of_suite() -> tuple[Any, Any, Any]:
    names = ("suite.json", "meta.json", "published.json")
    rows, meta, claims = (json.loads((RESULTS / "suite" / name).read_text()) for name in names)
    return rows, meta, claims


def suite_briefly() -> str:
    rows, meta, claims = of_suite()
    sentences = [suite.counting(rows), published.verdict(claims), suite.stamp(meta)]
    return f"{suite.as_markdown(suite.matrix(rows))}\n\n{' '.join(filter(None, sentences))}"


def suite_whole() -> str:
    rows, meta, claims = of_suite()
    return suite.markdown(rows, meta, published.markdown(claims, meta["published"]), "###")


PAGES = {
    "README.md": {
        "table 1": table,
        "distributions": by_distributions_briefly,
        "speed": speed,
        "solved": solved_briefly,
        "code model": of_code_briefly,
        "suite": suite_briefly,
    },
    "docs/speed.md": {"speed": speed, "speed on a GPU": speed_gpu},
    "docs/memories.md": {"cost": memories},
    "docs/sweeps.md": {"sweep": sweep},
    "docs/reliability.md": {"torture": torture},
    "docs/distributions.md": {"distributions": by_distributions},
    "docs/code_model.md": {"code": of_code, "formal": of_formal},
    "docs/tasks.md": {"tasks": of_tasks},
    "docs/suite.md": {"suite": suite_whole},
    "docs/solved.md": {
        "solved": solved_whole,
        "choices": solved_by_choices,
        "restarts": by_restarts,
        "machines": solved_machines,
        "again": solved_again,
        "failures": solved_failures,
        "study": study,
        "mechanism": mechanism,
    },
}


def filled(page: str) -> str:
    """A page with its generated parts."""
    text = (ROOT / page).read_text()
    for name, part in PAGES[page].items():
        begin, end = f"<!-- {name}: begin, made by tools/publish.py -->", f"<!-- {name}: end -->"
        before, rest = text.split(begin)
        content = part().rstrip("\n")
        content = content + "\n" if content else ""
        text = f"{before}{begin}\n{content}{end}{rest.split(end)[1]}"
    return text


def copy() -> None:
    for folder, (source, files) in COPIED.items():
        (RESULTS / folder).mkdir(parents=True, exist_ok=True)
        for name in files:
            if (ROOT / source / name).exists():
                shutil.copy(ROOT / source / name, RESULTS / folder / name)
    for figure in sorted((ROOT / "figures").glob("*.png")):
        shutil.copy(figure, RESULTS / figure.name)


def whole() -> dict[Path, str]:
    """The pages of results/, by where they are, and those of PAGES with their marked parts filled."""
    rows, meta = (
        json.loads((RESULTS / "table1" / name).read_text()) for name in ("table1.json", "meta.json")
    )
    cells, suite_meta, claims = of_suite()
    section = published.section(claims, suite_meta["published"])
    return {
        RESULTS / "table1" / "table1.html": table_page.page(rows, meta),  # pages of rows stay at home
        RESULTS / "suite" / "suite.html": suite_page.page(cells, suite_meta, section),
        **{ROOT / page: filled(page) for page in PAGES},
    }


def said(text: str) -> str:
    """A page without its styles: looks may change, numbers may not."""
    return text.split("</style>")[-1]


def main() -> None:
    if "--check" not in sys.argv:
        copy()
    for page, text in whole().items():
        if "--check" not in sys.argv:
            page.write_text(text)
        elif said(text) != said(page.read_text()):
            sys.exit(f"{page.relative_to(ROOT)} does not say what results/ says: run python tools/publish.py")


if __name__ == "__main__":
    main()
