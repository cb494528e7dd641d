"""`softstack evaluate`."""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from softstack.lab import tasks
from softstack.lab.cli.options import opened
from softstack.lab.runs import store
from softstack.lab.tasks.data import Split, read_tsv
from softstack.lab.training.draws import encoded, examples
from softstack.lab.training.population import accuracies
from softstack.words import counted


def evaluate(
    run_dir: Path,
    /,
    *,
    data: Path | None = None,
    split: Split = "test",
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Score a trained network, on a split of its own task or on a file of yours.

    softstack evaluate RUN_DIR --split dev

    softstack evaluate RUN_DIR --data FILE.tsv --json

    Parameters
    ----------
    run_dir
        the directory of one trial, as `softstack train` prints it
    data
        a file with one example per line: input symbols, a tab, target symbols, separated by spaces, `_` where
        nothing is scored; `softstack sample` writes such files
    split
        train, dev or test, as the trial had it
    as_json
        print JSON; "accuracy" is in [0, 1]
    """
    run = opened(run_dir)
    network = store.network(run)
    task = tasks.find(run.condition.task)
    strings = examples(run.condition, run.seed, split) if data is None else read_tsv(data, task)
    dataset = encoded(run.condition, strings, split if data is None else None).stacked()
    parameters = {name: p.detach().unsqueeze(0) for name, p in network.named_parameters()}
    accuracy = accuracies(network, parameters, dataset, len(task.alphabet)).item()
    scored = int(dataset.mask.sum())
    result = {
        "accuracy": accuracy,
        "right": round(accuracy * scored),
        "scored": scored,
        "strings": len(strings),
        "data": split if data is None else str(data),
    }
    if as_json:
        print(json.dumps(result))
    else:
        of = f"{counted(scored, 'scored symbol')} in {counted(len(strings), 'string')}"
        print(f"accuracy {accuracy:.2%}: {result['right']} of {of} right")
