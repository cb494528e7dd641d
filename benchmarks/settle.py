"""How the recipe of `softstack solve` was settled: variants of it, on seeds that no result uses.

    python benchmarks/settle.py --out settled.jsonl [--processes 2] [--only parenthesis ...]
    python benchmarks/settle.py --choices settled.jsonl ... --out results/study/choices.json

A network is judged by strings of one and a half times the training length, which are longer than what it
trains on and shorter than what it is tested on. Test strings are not looked at. One line of JSON for each
variant and four trials: every network's dev loss at each eighth of the training, and its accuracy on those
strings. Takes a GPU if there is one. The second command tells how often the network that would have been
chosen is right, for each variant and for trials of which every second restart is of another variant.
"""

import argparse
import json
import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

SEEDS = range(1000, 1100)  # of which no result uses any
BLOCK = 4  # trials that train together
SOLVED = 0.995
HARD = ("reversal", "parenthesis", "formula", "agreement")
EASY = ("selective_reversal", "xor", "delayed_xor")
LINEAR = ("reversal", "delayed_xor", "parenthesis", "formula")
RECIPE: dict[str, Any] = dict(
    memory_size=4, state_reset=0.5, hidden_noise=0.2, gradient_clip=1.0, steps=30_000, final_rate=0.05,
    restarts=16, weight_width=1.5, push_bias=2.0, weight_decay=1e-5,
)  # fmt: skip
VARIANTS: dict[str, dict[str, Any]] = {
    "recipe": {},
    "rate 0.02": dict(learning_rate=0.02),
    "width 2": dict(weight_width=2.0),
    "vectors of 2": dict(memory_size=2),
    "no push bias": dict(push_bias=0.0),
    "step mean": dict(loss="step_mean"),
    "noise 0.25": dict(hidden_noise=0.25),
    "noise 0.3": dict(hidden_noise=0.3),
    "noise 0.3, resets 0.25": dict(hidden_noise=0.3, state_reset=0.25),
    "noise 0.3, resets 0.35": dict(hidden_noise=0.3, state_reset=0.35),
    "noise 0.35, resets 0.25": dict(hidden_noise=0.35, state_reset=0.25),
    "push bias 1": dict(push_bias=1.0),
    "push bias 1, width 2": dict(push_bias=1.0, weight_width=2.0),
    "push bias 1, vectors of 2": dict(push_bias=1.0, memory_size=2),
    "push bias 1, vectors of 2, rate 0.02": dict(push_bias=1.0, memory_size=2, learning_rate=0.02),
    "no push bias, vectors of 2": dict(push_bias=0.0, memory_size=2),
    "push bias 1, vectors of 2, decay 1e-3": dict(push_bias=1.0, memory_size=2, weight_decay=1e-3),
}
BUFFERED: list[dict[str, Any]] = [
    dict(task="reversal", buffered=True),
    dict(task="xor", buffered=True, steps_per_symbol=2, memory_size=6),
]


def cells() -> list[tuple[str, dict[str, Any]]]:
    """(variant, fields of the condition)."""
    networks = [dict(task=task) for task in (*HARD, *EASY)]
    networks += [dict(task=task, controller=name) for name in ("gru", "rnn") for task in HARD]
    networks += [dict(task=task, controller="linear") for task in LINEAR]
    networks += [dict(fields, controller="linear") for fields in BUFFERED]
    return [
        (variant, {**RECIPE, **changed, **fields})
        for variant, changed in VARIANTS.items()
        for fields in networks
        if variant in ("recipe", "rate 0.02") or fields["task"] not in EASY
    ]


def settled(job: tuple[str, dict[str, Any], list[int]]) -> dict[str, Any]:
    import torch

    from softstack.lab import tasks
    from softstack.lab.tasks.data import Dataset
    from softstack.lab.training.conditions import Condition
    from softstack.lab.training.draws import encoded, stream
    from softstack.lab.training.population import Population, accuracies
    from softstack.lab.training.train import train_epoch

    torch.set_num_threads(1)
    variant, fields, seeds = job
    condition, device = Condition(**fields), "cuda" if torch.cuda.is_available() else "cpu"
    began = time.perf_counter()
    population = Population(condition, seeds, device)
    steps: dict[int, Any] = {}
    losses: list[list[float]] = []
    while len(population.histories[0]) < condition.most_epochs:
        train_epoch(population, steps)
        while len(losses) < 8 * len(population.histories[0]) // condition.most_epochs:
            losses.append(population.dev_losses())
    task = tasks.find(condition.task)
    strings = tasks.of_length(task, stream(seeds[0], "test"), 200, 3 * task.length("train") // 2)
    data = Dataset(*(x.to(device) for x in encoded(condition, strings).stacked()))
    held_out = []
    for place in range(len(population.members)):
        weights = {name: w.unsqueeze(0) for name, w in population.weights(place).items()}
        held_out.append(accuracies(population.network, weights, data, population.letters).item())
    return {
        "variant": variant, **fields, "seeds": seeds, "losses": losses, "held_out": held_out,
        "seconds": round(time.perf_counter() - began, 1),
    }  # fmt: skip


Trial = tuple[
    list[list[float]], list[float]
]  # dev losses (8, restarts) along the training, accuracies at its end
SCHEDULES = {"none dropped": (), "after 1/2 and 3/4": (4, 6), "after 1/4 and 1/2": (2, 4)}  # eighths
MIXED = ("noise 0.3", "noise 0.3, resets 0.25")


def chosen(losses: list[list[float]], eighths: tuple[int, ...]) -> int:
    """The restart of the lowest dev loss, if the worse half is dropped at these moments."""
    left = list(range(len(losses[0])))
    for eighth in eighths:
        left = sorted(left, key=lambda k: losses[eighth - 1][k])[: len(left) // 2]
    return min(left, key=lambda k: losses[-1][k])


def of_restarts(trials: list[Trial], count: int) -> tuple[int, int]:
    """How many choices out of so many restarts are right, and of how many. Each restart is in one of them."""
    right = [
        accuracies[min(range(begin, begin + count), key=losses[-1].__getitem__)] >= SOLVED
        for losses, accuracies in trials
        for begin in range(0, len(accuracies), count)
    ]
    return sum(right), len(right)


def every_second(one: Trial, other: Trial) -> Trial:
    """A trial whose restarts of odd number are the other's."""

    def mixed(a: list[float], b: list[float]) -> list[float]:
        return [(a, b)[k % 2][k] for k in range(len(a))]

    return [mixed(a, b) for a, b in zip(one[0], other[0], strict=True)], mixed(one[1], other[1])


def choices(files: list[Path]) -> list[dict[str, Any]]:
    """How many trials are right, by network, variant and schedule of dropping."""
    trials: dict[tuple[str, str, str], dict[int, Trial]] = {}
    for line in (json.loads(text) for file in files for text in file.read_text().splitlines()):
        of_variant = trials.setdefault((line["task"], line.get("controller", "lstm"), line["variant"]), {})
        for k, seed in enumerate(line["seeds"]):
            part = slice(k * line["restarts"], (k + 1) * line["restarts"])
            of_variant[seed] = [row[part] for row in line["losses"]], line["held_out"][part]
    listed = {key: list(of_seeds.values()) for key, of_seeds in trials.items()}
    for task, controller, variant in list(trials):
        one, other = (trials.get((task, controller, name)) for name in MIXED)
        if variant == MIXED[0] and one and other:
            pairs = [pair for seed in one for pair in ((one[seed], other[seed]), (other[seed], one[seed]))]
            listed[task, controller, " | ".join(MIXED)] = [every_second(*pair) for pair in pairs]
    return [
        {
            "task": task, "controller": controller, "variant": variant, "trials": len(of_variant),
            "networks": sum(len(right) for _, right in of_variant),
            "single": sum(a >= SOLVED for _, right in of_variant for a in right),
            **{
                name: sum(right[chosen(losses, eighths)] >= SOLVED for losses, right in of_variant)
                for name, eighths in SCHEDULES.items()
            },
            "restarts": {count: of_restarts(of_variant, count) for count in (1, 2, 4, 8, 16)},
        }
        for (task, controller, variant), of_variant in sorted(listed.items())
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--choices", type=Path, nargs="+", help="what this script wrote")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="*", default=[], help="tasks")
    parser.add_argument("--controllers", nargs="*", default=[])
    parser.add_argument("--variants", nargs="*", default=[])
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument("--trials", type=int, default=BLOCK)
    arguments = parser.parse_args()
    if arguments.choices:
        rows = ",\n".join(map(json.dumps, choices(arguments.choices)))
        arguments.out.write_text(f"[\n{rows}\n]\n")
        return
    jobs = [job for job in cells() if not arguments.only or job[1]["task"] in arguments.only]
    jobs = [
        (variant, fields)
        for variant, fields in jobs
        if fields.get("controller", "lstm") in (arguments.controllers or [fields.get("controller", "lstm")])
        and variant in (arguments.variants or [variant])
    ]
    blocks = [list(SEEDS[k : k + BLOCK]) for k in range(0, arguments.trials, BLOCK)]
    work = [
        (variant, {**fields, "steps": arguments.steps}, seeds) for variant, fields in jobs for seeds in blocks
    ]
    settled((work[0][0], {**work[0][1], "steps": 80}, work[0][2]))  # compiles what all of them use
    with (
        multiprocessing.get_context("spawn").Pool(arguments.processes) as pool,
        arguments.out.open("w") as file,
    ):
        for line in pool.imap_unordered(settled, work):
            file.write(json.dumps(line) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
