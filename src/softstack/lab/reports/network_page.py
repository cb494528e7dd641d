"""`softstack view`: run directories as one page in which their networks run on what is typed."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from softstack import viewer
from softstack.errors import BadInput
from softstack.formal.transducer import Transducer
from softstack.lab import tasks
from softstack.lab.reports.figures import FIGURES
from softstack.lab.runs import store
from softstack.lab.tasks import Task

CONTROLLERS = ("linear", "mlp", "rnn", "gru", "lstm")
MEMORIES = ("stack", "queue", "none")


def page(
    runs: Sequence[store.Run],
    *,
    symbols: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    before: str = "",
) -> str:
    """The page of some trained networks, the first two side by side, each with a note if there are any."""
    if not runs:
        raise BadInput("no run directory is given: name one, as `softstack train` prints it")
    names = list(dict.fromkeys(run.condition.task for run in runs))
    first = tasks.find(names[0])
    data = {
        "networks": [_network(*pair) for pair in zip(runs, notes or [""] * len(runs), strict=True)],
        "tasks": {name: _task(tasks.find(name)) for name in names},
        "input": " ".join(symbols or _first_input(first)),
    }
    versions = store.provenance("cpu")
    stamp = f"Made by softstack {versions['softstack']} at commit {versions['commit'] or 'unknown'}."
    return viewer.page(data, _title(first), stamp=stamp, before=before)


def _title(task: Task) -> str:
    name = task.name.replace("_", " ").replace("xor", "XOR")
    return name[0].upper() + name[1:]


def _first_input(task: Task) -> tuple[str, ...]:
    """The paper's own input where it shows one."""
    shown = [figure.symbols for figure in FIGURES if figure.condition.task == task.name]
    return shown[0] if shown else task.sample(np.random.default_rng(0), 1, "train")[0]


def _network(run: store.Run, note: str) -> dict[str, Any]:
    c = run.condition
    for kind, given, known in (("controller", c.controller, CONTROLLERS), ("memory", c.memory, MEMORIES)):
        if given not in known:
            raise BadInput(
                f"the page cannot run the {kind} {given!r} of {run.path}: it knows {', '.join(known)}; "
                "`softstack trace` draws any network"
            )
    network = store.network(run)
    memory = "no memory" if c.memory == "none" else f"{c.memory} of {c.memory_size}"
    controller = c.controller if c.controller == "linear" else c.controller.upper()
    words = f"{'buffered, ' if c.buffered else ''}{controller} controller, {memory}"
    title = words[0].upper() + words[1:]
    result = run.result
    facts = [f"seed {run.seed}", f"dev {result['dev']:.1%}", f"test {result['test']:.1%}"]
    return {
        "title": title,
        "label": ", ".join(
            filter(None, [f"{_title(tasks.find(c.task))}: {title}", note, facts[0], facts[2]])
        ),
        "facts": " · ".join(filter(None, [note, *facts])),
        "task": c.task,
        "controller": c.controller,
        "memory": c.memory,
        "buffered": c.buffered,
        "steps_per_symbol": c.steps_per_symbol,
        "discard_first": c.discard_first,
        **network.cell.sizes,
        "weights": {name.removeprefix("cell."): _packed(w) for name, w in network.state_dict().items()},
    }


def _packed(weights: Tensor) -> str:
    return base64.b64encode(weights.numpy().astype("<f4").tobytes()).decode()


def _task(task: Task) -> dict[str, Any]:
    drawn = task.sample(np.random.default_rng(0), 200, "train")
    machine = tasks.machine_of(task)
    return {
        "title": _title(task),
        "inputs": list(task.inputs),
        "outputs": list(task.outputs),
        "alphabet": list(task.alphabet),
        "padding": task.padding,
        "lengths": sorted({task.length("train"), task.length("dev"), task.length("test")}),
        "trained": max(map(len, drawn)),
        "pdt": None if machine is None else transducer(machine),
        **tasks.page_of(task),
    }


def transducer(machine: Transducer) -> dict[str, Any]:
    """A machine as pdt.js runs it."""
    return {"start": machine.start, "rules": [rule._asdict() for rule in machine.rules]}
