"""A network as JSON, and a reader for it that needs nothing but Python.

    python examples/export_to_json.py [FILE]

Trains a linear controller with a stack to reverse strings, writes it to FILE (network.json if not given) and
runs it again from there: the equations of the paper's sections 2.1 and 2.2, in plain numbers.
`softstack export RUN_DIR --format json` writes the same file for any run.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

import torch

from softstack.lab.runs import export, store
from softstack.lab.training.conditions import Condition
from softstack.lab.training.train import train

CONDITION = Condition("reversal", "linear", "stack")


def exported(file: Path, runs: Path) -> store.Run:
    """Train, keep the run directory, and write the network."""
    torch.set_num_threads(1)
    (trial,) = train(CONDITION, seeds=[0])
    run = store.load(store.save(runs, trial))
    file.write_bytes(export.as_json(run, length=0))
    return run


def said(network: dict[str, Any], symbols: list[str]) -> list[str]:
    """What the network says to symbols. Its heads are u, d, v and y, rows of one linear map of [x; r]."""
    weight, bias = network["weights"]["cell.heads.weight"], network["weights"]["cell.heads.bias"]
    m, alphabet = network["condition"]["memory_size"], network["alphabet"]
    stack: list[tuple[list[float], float]] = []  # vectors and their strengths, the top last
    r = [0.0] * m
    output = []
    for symbol in symbols:
        z = [float(symbol == letter) for letter in alphabet] + r
        row = [
            sum(w * x for w, x in zip(line, z, strict=True)) + b for line, b in zip(weight, bias, strict=True)
        ]
        u, d, *v = [1 / (1 + math.exp(-value)) for value in row[: 2 + m]]
        left, kept = u, []
        for vector, strength in reversed(stack):  # pop: strength u, from the top
            kept.append((vector, max(0.0, strength - left)))
            left = max(0.0, left - strength)
        stack = [*reversed(kept), (v, d)]  # push
        room, r = 1.0, [0.0] * m
        for vector, strength in reversed(stack):  # read: the topmost unit of strength
            r = [sofar + min(strength, room) * value for sofar, value in zip(r, vector, strict=True)]
            room = max(0.0, room - strength)
        scores = row[2 + m :]
        output.append(alphabet[scores.index(max(scores))])
    return output


def main(file: Path, runs: Path = Path("runs")) -> list[str]:
    run = exported(file, runs)
    print(f"{file}: {file.stat().st_size:,} bytes, test accuracy {run.result['test']:.1%}")
    symbols = ["1", "1", "0", "1", "0", "0", "#", "#", "#", "#", "#", "#"]
    output = said(json.loads(file.read_text()), symbols)
    print("input ", *symbols)
    print("output", *output)
    return output


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path("network.json"))
