"""The local cluster gives what this process gives, and cleans up after itself."""

import pytest
import torch

from softstack.errors import BadInput
from softstack.lab import engine
from softstack.lab.experiments import Condition

SMALL = [
    Condition(task, "linear", "stack", train_size=20, dev_size=5, test_size=5, max_epochs=2)
    for task in ("reversal", "xor", "parenthesis")
]
UNITS = [engine.Unit(condition, (0, 1)) for condition in SMALL]


def test_local_gives_what_inline_gives():
    told = {"local": [], "inline": []}
    results = {
        where: dict(engine.run(UNITS, where, lambda *event, w=where: told[w].append(event))) for where in told
    }
    for unit in UNITS:
        for ours, theirs in zip(results["local"][unit], results["inline"][unit], strict=True):
            assert (ours.seed, ours.dev, ours.test, ours.epochs) == (
                theirs.seed,
                theirs.dev,
                theirs.test,
                theirs.epochs,
            )
            assert all(torch.equal(w, theirs.weights[name]) for name, w in ours.weights.items())
    expected = [(unit, epoch, 0 if epoch == 2 else 2) for unit in UNITS for epoch in (1, 2)]
    assert told["inline"] == expected
    assert set(told["local"]) <= set(expected)


def test_a_failure_on_a_worker_reaches_the_caller():
    broken = engine.Unit(SMALL[0], ())  # no seeds: training fails
    with pytest.raises((RuntimeError, ValueError, IndexError, KeyError)):
        list(engine.run([broken], "local", lambda *event: None))


@pytest.mark.parametrize("where", ["cloud", "tcp:/x", ""])
def test_unknown_engines(where):
    with pytest.raises(BadInput, match="unknown engine"):
        list(engine.run(UNITS, where, lambda *event: None))


def test_a_scheduler_that_is_not_there():
    with pytest.raises(BadInput, match=r"no dask scheduler answers at tcp://127.0.0.1:9"):
        list(engine.run(UNITS, "tcp://127.0.0.1:9", lambda *event: None))
