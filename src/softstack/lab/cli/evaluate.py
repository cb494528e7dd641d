"""`softstack evaluate`."""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from softstack.lab import tasks
from softstack.lab.cli.options import RunDir, opened
from softstack.lab.runs import store
from softstack.lab.tasks.data import Split, read_tsv
from softstack.lab.tasks.metrics import METRICS
from softstack.lab.training.draws import examples
from softstack.lab.training.scores import answers, scores
from softstack.words import counted


def evaluate(
    run_dir: RunDir,
    /,
    *,
    data: Path | None = None,
    split: Split = "test",
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Score a trained network, on a split of its own task or on a file of yours.

    Beside accuracy, it prints what the task's paper measures, such as how many strings are right as a whole.

    softstack evaluate RUN_DIR --split dev

    softstack evaluate RUN_DIR --data FILE.tsv --json

    Parameters
    ----------
    data
        a file with one example per line: input symbols, a tab, target symbols, separated by spaces, `_` where
        nothing is scored; `softstack sample` writes such files. If there are more targets than input symbols,
        padding follows the input. A buffered network is given each string
        padded as in training or, if it is longer than that, as in testing
    split
        train, dev or test, as the trial had it
    as_json
        print JSON; "accuracy" is in [0, 1], and "metrics" has what the task's paper measures
    """
    run = opened(run_dir)
    network = store.network(run)
    task = tasks.find(run.condition.task)
    strings = examples(run.condition, run.seed, split) if data is None else read_tsv(data, task)
    answer = answers(run.condition, network, strings, split if data is None else None)
    right, scored = int(answer.right.sum()), int(answer.scored.sum())
    accuracy = right / scored
    metrics = scores(task, answer)
    result = {
        "accuracy": accuracy,
        "right": right,
        "scored": scored,
        "strings": len(strings),
        "data": split if data is None else str(data),
        "metrics": metrics,
    }
    if as_json:
        print(json.dumps(result))
    else:
        of = f"{counted(scored, 'scored symbol')} in {counted(len(strings), 'string')}"
        print(f"accuracy {accuracy:.2%}: {right} of {of} right")
        for name, value in metrics.items():
            if name != "symbols":
                print(METRICS[name].text(value))
