"""`softstack evaluate`."""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from softstack.lab import tasks
from softstack.lab.cli.options import opened
from softstack.lab.runs import store
from softstack.lab.tasks.data import Split, read_tsv
from softstack.lab.training.draws import encoded, examples, padded_alike
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
        nothing is scored; `softstack sample` writes such files. A buffered network is given each string
        padded as in training or, if it is longer than that, as in testing
    split
        train, dev or test, as the trial had it
    as_json
        print JSON; "accuracy" is in [0, 1]
    """
    run = opened(run_dir)
    network = store.network(run)
    task = tasks.find(run.condition.task)
    strings = examples(run.condition, run.seed, split) if data is None else read_tsv(data, task)
    if data is None:
        datasets = [encoded(run.condition, strings, split).stacked()]
    else:
        datasets = [encoded(run.condition, group).stacked() for group in padded_alike(run.condition, strings)]
    parameters = {name: p.detach().unsqueeze(0) for name, p in network.named_parameters()}
    right = scored = 0
    for dataset in datasets:
        if here := int(dataset.mask.sum()):
            right += round(accuracies(network, parameters, dataset, len(task.alphabet)).item() * here)
            scored += here
    accuracy = right / scored
    result = {
        "accuracy": accuracy,
        "right": right,
        "scored": scored,
        "strings": len(strings),
        "data": split if data is None else str(data),
    }
    if as_json:
        print(json.dumps(result))
    else:
        of = f"{counted(scored, 'scored symbol')} in {counted(len(strings), 'string')}"
        print(f"accuracy {accuracy:.2%}: {right} of {of} right")
