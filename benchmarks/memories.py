"""What 1,000 steps of each memory cost: `python benchmarks/memories.py [MEMORY ...]`. Takes some minutes.

One sequence goes through a network with each memory that has a name, forward and backward, on one core and
in a process of its own. Seconds are the processor's; megabytes are what the process grows by. The
nondeterministic stacks would keep some 20 GB for their gradients: they keep the state of every 16th step, and
compute the others again. Writes results/bench/memories.json, which `python tools/publish.py` puts into
docs/memories.md.
"""

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

import softstack as ss
from softstack.lab.reports.speed import elsewhere
from softstack.lab.runs import store

OUT = Path(__file__).parents[1] / "results" / "bench" / "memories.json"
STEPS, SEGMENT = 1_000, 16
SIZES: dict[str, Any] = dict(hidden_size=10, memory_size=2, output_size=3)


def run(net: ss.StackRNN, steps: int, segment: int) -> None:
    """Forward and backward; with a segment shorter than that, states are kept between segments alone."""
    x, state, total = torch.randn(1, steps, 3), None, torch.zeros(())
    for part in x.split(segment, 1):
        if segment < steps:
            y, state = checkpoint(net, part, state, use_reentrant=False)
        else:
            y, state = net(part, state)
        total = total + y.square().sum()
    gradients = torch.autograd.grad(total, list(net.parameters()))
    if not all(gradient.isfinite().all() for gradient in (total, *gradients)):
        raise SystemExit(f"{net} gives what is not a number")


def measured(name: str) -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = ss.StackRNN(3, memory=name, **SIZES)
    segment = SEGMENT if isinstance(net.cell.memory, ss.Nondeterministic) else STEPS
    run(net, 2 * SEGMENT, SEGMENT)  # which compiles what has to be compiled
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    run(net, STEPS, segment)
    return {
        "memory": name,
        "backend": net.explain(torch.zeros(1, segment, 3)).split(":")[0],
        "seconds": time.process_time() - began,
        "megabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3,
        "segment": segment,
    }


if __name__ == "__main__":
    rows = []
    for name in sys.argv[1:] or ss.MEMORIES:
        rows.append(elsewhere(measured, name))
        print("{memory:28}{backend:12}{seconds:10.2f} s{megabytes:12,.0f} MB".format(**rows[-1]), flush=True)
    if len(rows) == len(ss.MEMORIES):
        content = {**store.provenance("cpu"), "steps": STEPS, **SIZES, "rows": rows}
        OUT.write_text(json.dumps(content, indent=1) + "\n")
