"""`softstack view`: run directories as one page in which their networks run on what is typed.

Where the page cannot run a network's memory or controller, recorded runs on some strings are played back.
"""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from softstack import viewer
from softstack.cell import StackCell
from softstack.errors import BadInput
from softstack.formal.transducer import Transducer
from softstack.lab import tasks
from softstack.lab.reports import names, recording
from softstack.lab.reports.figures import FIGURES
from softstack.lab.runs import store
from softstack.lab.tasks import Task
from softstack.lab.tasks.page import record
from softstack.viewer.declared import described, words_for


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
    tasks_of_runs = [tasks.find(run.condition.task) for run in runs]
    first = tasks_of_runs[0]
    inputs = [symbols if symbols and t.inputs == first.inputs else _first_input(t) for t in tasks_of_runs]
    data, scripts = contents(runs, inputs, notes or [""] * len(runs))
    return viewer.page(data, names.task(first.name), stamp=stamp(), before=before, kinds=scripts)


def contents(
    runs: Sequence[store.Run], firsts: Sequence[Sequence[str]], notes: Sequence[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Data of the page: networks, each with its first input and a note, and their tasks; and scripts of tasks
    that bring their own."""
    pages = {run.condition.task: _task(tasks.find(run.condition.task)) for run in runs}
    scripts = {page["kind"]: script for page in pages.values() if (script := page.pop("script", ""))}
    networks = []
    for run, first, note in zip(runs, firsts, notes, strict=True):
        networks += _layers(run, note, first)
        task, page = tasks.find(run.condition.task), pages[run.condition.task]
        if not page["kind"] and tasks.knows(task, tuple(first)):  # the page cannot compute it itself
            page["examples"].append(record(task, tuple(first)))
    return {"networks": networks, "tasks": pages}, scripts


def stamp() -> str:
    """What made a page."""
    versions = store.provenance("cpu")
    commit = f" at commit {versions['commit']}" if versions["commit"] else ""  # an installed package has none
    return f"Made by softstack {versions['softstack']}{commit}."


def _first_input(task: Task) -> tuple[str, ...]:
    """The paper's own input where it shows one."""
    inputs = [figure.symbols for figure in FIGURES if figure.condition.task == task.name]
    return inputs[0] if inputs else task.sample(np.random.default_rng(0), 1, "train")[0]


def _layers(run: store.Run, note: str, first: Sequence[str]) -> list[dict[str, Any]]:
    """A network, once for each of its layers: two of them stand side by side."""
    c, network = run.condition, store.network(run)
    reason, count = recording.why_not_run(network), len(network.cells)
    data = [_network(run, cell, note, first) for cell in network.cells]
    if not reason:
        weights = {
            name.removeprefix("cell."): base64.b64encode(w.numpy().astype("<f4").tobytes()).decode()
            for name, w in network.state_dict().items()
        }
        sizes = ("input_size", "output_size", "hidden_size", "memory_size")
        numbers = {"steps_per_symbol": c.steps_per_symbol, **{name: getattr(network, name) for name in sizes}}
        return [{**data[0], **numbers, "weights": weights}]
    strings = recording.strings(tasks.find(c.task), first)
    records = zip(*(recording.record(network, c, symbols) for symbols in strings), strict=True)
    for layer, (entry, runs) in enumerate(zip(data, records, strict=True), 1):
        entry.update(note=recording.note(reason), runs=list(runs))
        if count > 1:
            prefix = f"Layer {layer} of {count}"
            entry.update({name: f"{prefix}: {entry[name]}" for name in ("title", "label", "short")})
    return data


def _network(run: store.Run, cell: StackCell, note: str, first: Sequence[str]) -> dict[str, Any]:
    """Words for a network, and for the memory of one of its cells."""
    c = run.condition
    kind = names.network(c.controller, buffered=c.buffered)
    words = f"{kind} controller, {words_for(cell.memory)}"
    title = words[0].upper() + words[1:]
    facts = [f"seed {run.seed}", f"dev {run.result['dev']:.1%}", f"test {run.result['test']:.1%}"]
    label = [f"{names.task(tasks.find(c.task).name)}: {title}", note, facts[0], facts[2]]
    return {
        **described(cell.memory, buffered=c.buffered),
        "title": title,
        "short": f"{kind}, {'no stack' if c.memory == 'none' else c.memory}",
        "label": ", ".join(filter(None, label)),
        "facts": " · ".join(filter(None, [note, *facts])),
        "task": c.task,
        "first": list(first),
        "controller": c.controller,
        "buffered": c.buffered,
        "discard_first": c.discard_first,
    }


def _task(task: Task) -> dict[str, Any]:
    strings = task.sample(np.random.default_rng(0), 200, "train")
    machine = tasks.machine_of(task)
    return {
        "title": names.task(task.name),
        "inputs": list(task.inputs),
        "outputs": list(task.outputs),
        "alphabet": list(task.alphabet),
        "padding": task.padding,
        "lengths": sorted({task.length("train"), task.length("dev"), task.length("test")}),
        "trained": max(map(len, strings)),
        "pdt": None if machine is None else transducer(machine),
        **tasks.page_of(task),
    }


def transducer(machine: Transducer) -> dict[str, Any]:
    """A machine as pdt.js runs it."""
    return {"start": machine.start, "rules": [rule._asdict() for rule in machine.rules]}
