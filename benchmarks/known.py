"""Confusion tables of diagnose and extract, on networks and machines of known truth.

    python benchmarks/known.py [--seeds 3]

The networks are those of tests/known_networks.py, each judged with several seeds. The machines are its
machines, the paper's, and random ones, of up to 192 rules or with so few that they often stop: each is
compiled, read off again, and compared with what came out by the test of equivalence. Prints the tables, and
exits with 1 if a row is wrong.
"""

import argparse
import itertools
import random
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from known_networks import KNOWN, MACHINES  # type: ignore[import-not-found]
from softstack.errors import BadInput
from softstack.formal.equivalence import compare
from softstack.formal.machines import PDTS, dyck, real_time_dyck
from softstack.formal.transducer import BOTTOM, Rule, Transducer
from softstack.lab.explain.compiled import compile_task
from softstack.lab.explain.extract import extract
from softstack.lab.explain.swaps import use
from softstack.words import counted

CLASSES = ("stack", "queue", "counter", "register", "ignored")
SPARSE = 60  # random machines with few rules
SIZES = ((2, 1, 2), (3, 1, 2), (2, 2, 3), (4, 2, 2), (5, 2, 4), (6, 2, 5), (6, 3, 6), (8, 3, 6))


def random_machine(states: int, letters: int, symbols: int, seed: int) -> Transducer:
    """For each of some letters a call that pushes, a return that pops, and one that leaves the stack."""
    rng = random.Random(seed)
    names, stack = [f"q{k}" for k in range(states)], [f"S{k}" for k in range(symbols)]
    rules = []
    for q in names:
        for k in range(letters):
            rules.append(Rule(q, f"c{k}", "", rng.choice(names), (rng.choice("xyz"),), (rng.choice(stack),)))
            rules.append(Rule(q, f"i{k}", "", rng.choice(names), (rng.choice("xyz"),), ()))
            rules += [Rule(q, f"r{k}", s, rng.choice(names), (rng.choice("xyz"),), ()) for s in stack]
    return Transducer("q0", rules)


def sparse_machine(seed: int) -> Transducer:
    """Rules for some states, symbols and tops alone, which write up to two symbols, and some ε-moves."""
    rng = random.Random(seed)
    names, letters = [f"q{k}" for k in range(rng.randint(1, 4))], "abc"[: rng.randint(2, 3)]
    stack, share = ["A", "B"][: rng.randint(0, 2)], rng.choice((0.35, 0.5, 0.8))
    rules = []
    for q in names:
        for top in (*stack, BOTTOM):
            for x in ("",) if rng.random() < 0.15 else letters:
                if x and rng.random() > share:
                    continue
                written = tuple(rng.choice("xyz") for _ in range(rng.choice((0, 0, 1, 1, 1, 2))))
                more = (rng.choice(stack),) if stack else ()
                pile = rng.choice([(top,), (top, *more), (top,) if top == BOTTOM else ()])
                rules.append(Rule(q, x, top, rng.choice(names), written, pile))
    return Transducer("q0", rules)


def sparse_machines(count: int) -> dict[str, Transducer]:
    """The first of these that are tasks: that read and write, and whose ε-moves end."""
    tasks: dict[str, Transducer] = {}
    for seed in itertools.count():
        with suppress(BadInput):
            machine = sparse_machine(seed)
            compile_task(machine, str(machine))
            tasks[f"few rules, seed {seed}"] = machine
        if len(tasks) == count:
            break
    return tasks


def machines() -> dict[str, Transducer]:
    brackets = [("(", ")"), ("[", "]"), ("{", "}")]
    return {
        **MACHINES,
        **PDTS,
        "two brackets, blank": dyck(brackets[:2], "_"),
        "three brackets at once": real_time_dyck(brackets, "_"),
        **{
            f"random, {'-'.join(map(str, size))}, seed {seed}": random_machine(*size, seed)
            for size in SIZES
            for seed in range(2 if size[0] > 4 else 3)
        },
        **sparse_machines(SPARSE),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(parser.parse_args().seeds)
    torch.set_num_threads(1)
    wrong = 0
    judged: Counter[tuple[str, str]] = Counter()
    for name, (build, truth) in KNOWN.items():
        network, condition = build()
        for seed in seeds:
            verdict = use(network, condition, seed).kind
            judged[truth, verdict] += 1
            if verdict != truth:
                wrong += 1
                print(f"WRONG: {name}, seed {seed}: {truth}, judged {verdict}", flush=True)
    print(f"{len(KNOWN)} networks, {counted(len(seeds), 'seed')}")
    print(f"{'truth':12}" + "".join(f"{kind:>10}" for kind in CLASSES))
    for truth in CLASSES:
        print(f"{truth:12}" + "".join(f"{judged[truth, kind]:>10}" for kind in CLASSES))
    answers: Counter[str] = Counter()
    tried = machines()
    for name, machine in tried.items():
        began = time.perf_counter()
        compilation, trial = compile_task(machine, str(machine))
        extraction = extract(compilation.network, trial.condition, 0, states=64, symbols=32)
        answer = "none" if extraction.machine is None else compare(machine, extraction.machine).answer
        answers[answer] += 1
        wrong += answer not in ("equal", "undecided")
        size = "nothing" if extraction.machine is None else extraction.machine.size
        print(f"{answer:10}{name:36}{len(machine.rules):5} rules, read off: {size}, "
              f"{time.perf_counter() - began:.1f} s", flush=True)  # fmt: skip
    print(f"{len(tried)} machines: {dict(answers)}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
