"""`softstack bench`."""

from contextlib import nullcontext
from pathlib import Path

from rich.console import Console

from softstack.lab.cli.screen import print_table
from softstack.lab.reports import speed as benchmarks
from softstack.lab.reports.figures import rendered
from softstack.lab.runs import store


def bench(
    *,
    full: bool = False,
    peer: Path | None = None,
    peer_stack: str = "nsrnn.models.grefenstette:GrefenstetteStack",
    out: Path = Path("bench"),
) -> None:
    """Time the kernels beside the reference and beside a loop written as the equations read.

    Prints a table and writes bench.json and bench.png, cost against length. Takes about three minutes.

    Parameters
    ----------
    full
        run the loop written as the equations read up to T = 1024, four minutes more, and not just to 256
    peer
        time a stack of someone else's too: the folder of its source
    peer_stack
        where that stack is, as module:class; it has next(actions, value), where actions are push and pop
        strengths, and reading()
    out
        where the files go
    """
    their_stack = benchmarks.Peer.at(peer, peer_stack) if peer else None
    out.mkdir(parents=True, exist_ok=True)
    errors = Console(stderr=True)
    with errors.status("timing") if errors.is_terminal else nullcontext():
        memory = list(benchmarks.memory())
        timings = list(benchmarks.cases(full, their_stack))
    fused = {(t.case, t.T): t.seconds for t in timings if t.implementation == "fused"}
    lines = []
    for case, T, implementation, seconds in timings:
        ratio = seconds / fused[case, T]
        lines.append((case, str(T), implementation, f"{1e3 * seconds:.3f}", f"{ratio:,.1f}"))
    print_table(("case", "T", "implementation", "ms", "times fused"), lines)
    scans = ("scan, B=10, m=2", "scan, B=32, m=32")
    slopes = {case: round(benchmarks.of_time(timings, case), 3) for case in scans}
    for case, slope in slopes.items():
        print(f"{case}: fused time grows with T to the power of {slope}, from T = 1024 to 65536")
    *growing, long = memory
    slope = round(benchmarks.exponent([(use.T, use.megabytes) for use in growing]), 3)
    end = f"to {growing[-1].megabytes:.0f} MB"
    print(f"{growing[0].case}: memory grows with T to the power of {slope}, {end}")
    print(f"{long.case}, T={long.T}: {long.megabytes:.0f} MB")
    result = {
        **store.provenance("cpu"),
        "exponents": slopes,
        "memory_exponent": slope,
        "memory": [use._asdict() for use in memory],
        "timings": [t._asdict() for t in timings],
    }
    store.write_json(out / "bench.json", result)
    store.write(out / "bench.png", rendered(benchmarks.plot(timings), "png"))
    print(f"Written: {out / 'bench.json'}, {out / 'bench.png'}")
