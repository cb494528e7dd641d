"""PDTs for the tasks, and networks compiled from PDTs as run directories like any other."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from softstack.errors import BadInput, unknown
from softstack.formal.compiler import Compiled, compiled
from softstack.formal.transducer import Transducer
from softstack.lab import tasks
from softstack.lab.runs import store
from softstack.lab.tasks import sources
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import encoded, examples
from softstack.lab.training.population import accuracies
from softstack.lab.training.train import Trial


def find(name: str) -> tuple[Transducer, str]:
    """A machine by the name of its task, or from a file; and its task, which may be the machine's text."""
    if name in tasks.TASKS and (machine := tasks.machine_of(tasks.TASKS[name])) is not None:
        return machine, name
    path = Path(name)
    if not path.is_file():
        if name in tasks.TASKS:
            raise BadInput(f"the task {name!r} has no machine: name a file with a pushdown transducer")
        if path.suffix or path.parent != Path():
            raise BadInput(f"{name}: no such file or directory; give a pushdown transducer's file, or a task")
        machines = [task for task in tasks.TASKS if tasks.machine_of(tasks.TASKS[task])]
        raise unknown("machine", name, [*machines, "a file with a pushdown transducer"])
    machine = sources.machine(path)
    return machine, str(machine)


def compile_task(machine: Transducer, task: str, **options: Any) -> tuple[Compiled, Trial]:
    """A network compiled from a machine over a task's alphabet, as a trial that took no epochs. The options
    are those of `formal.compiler.compiled`."""
    alphabet = tasks.find(task).alphabet
    compilation = compiled(machine, inputs=alphabet, outputs=alphabet, **options)
    network = compilation.network
    condition = Condition(
        task,
        network.cell.controller_name,
        buffered=network.cell.buffered,
        hidden_size=network.hidden_size,
        memory_size=network.memory_size,
        steps_per_symbol=max(1, compilation.steps(1)),
    )
    weights = {name: p.detach().clone() for name, p in network.named_parameters()}
    parameters = {name: p.unsqueeze(0) for name, p in weights.items()}
    scores = []
    for split in ("dev", "test"):
        for size in (condition.test_size if task in tasks.TASKS else 200, 100, 10, 1):  # few may be distinct
            condition = replace(condition, test_size=size)
            try:
                data = encoded(condition, examples(condition, 0, split), split).stacked()
                break
            except BadInput:
                if size == 1:
                    raise
        scores.append(accuracies(network, parameters, data, len(alphabet)).item())
    dev, test = scores
    return compilation, Trial(condition, 0, [], dev, test, weights, 0.0, 0.0)


def save(root: Path, machine: Transducer, trial: Trial) -> Path:
    """The trial's run directory, with the machine's text beside the weights."""
    path = store.place(root, trial.condition, trial.seed)
    if store.finished(root, trial.condition, trial.seed):
        weights = safetensors.torch.load_file(path / "model.safetensors")
        if any(not torch.equal(weights[name], weight) for name, weight in trial.weights.items()):
            raise BadInput(f"{path} holds another network of the same sizes: give another --out")
    path = store.save(root, trial)
    store.write(path / "machine.pdt", f"{machine}\n")
    return path
