"""`softstack schema`, held to what the commands accept, by a validator of JSON Schema."""

import copy
import json
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from softstack.errors import BadInput
from softstack.lab.sweeps import plans, schema
from softstack.lab.training.conditions import TABLE_1, Condition

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.toml"))
SWEEP = """
seeds = {first = 100, count = 20}
[condition]
task = "reversal"
state_reset = 0.5
[product]
controller = ["linear", "lstm"]
[random]
samples = 5
learning_rate = {low = 1e-3, high = 1e-1, log = true}
hidden_size = {low = 5, high = 40}
memory = ["stack", "none"]
"""


def validator(kind):
    content = schema.SCHEMAS[kind]()
    Draft202012Validator.check_schema(content)
    return Draft202012Validator(content)


def changed(path, value):
    """The sweep above with one value put in at a path."""
    content = copy.deepcopy(tomllib.loads(SWEEP))
    place = content
    for key in path[:-1]:
        place = place.setdefault(key, {})
    place[path[-1]] = value
    return content


@pytest.mark.parametrize("file", EXAMPLES, ids=[file.name for file in EXAMPLES])
def test_sweeps_that_we_ship_are_valid(file):
    validator("sweep").validate(tomllib.loads(file.read_text()))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("seeds",), 3),
        (("seeds",), [0, 5]),
        (("condition", "max_epochs"), 7),
        (("condition", "steps"), 0),
        (("condition", "pop_bias"), -3),
        (("product", "memory_size"), [2, 3]),
        (("random", "seed"), 1),
        (("condition",), [{"task": "xor"}, {"task": "formula"}]),
    ],
)
def test_what_a_sweep_may_say(path, value):
    content = changed(path, value)
    plans.parse(content, "x", "x")
    validator("sweep").validate(content)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("seed",), 3),
        (("seeds",), 0),
        (("seeds",), [-1]),
        (("seeds",), {"first": 3}),
        (("condition", "taks"), "xor"),
        (("condition", "task"), "reversel"),
        (("condition", "task"), {"predict": "a"}),
        (("condition", "task"), {"data": "x.tsv", "grammar": "y.cfg"}),
        (("condition", "hidden_noise"), -1.0),
        (("condition", "state_reset"), 1.5),
        (("condition", "loss"), "mean"),
        (("condition", "max_epochs"), 0),
        (("condition", "buffered"), "yes"),
        (("product", "memory_size"), 2),
        (("product", "memory_sizes"), [2]),
        (("random", "samples"), 0),
        (("random", "batch_size"), {"low": 1}),
        (("random", "loss"), {"low": 1, "high": 2}),
        (("sobol",), {"samples": 2, "patience": [3]}),
    ],
)
def test_what_a_sweep_may_not_say(path, value):
    content = changed(path, value)
    with pytest.raises(BadInput):
        plans.parse(content, "x", "x")
    assert not validator("sweep").is_valid(content)


def test_tasks_that_are_files():
    accepted = validator("condition")
    grammar = {"grammar": "a.cfg", "predict": ") ]", "depth": 6}
    for task in ({"data": "a.tsv", "dev": "b.tsv"}, grammar, "a.pdt"):
        accepted.validate({"task": task})
    assert not accepted.is_valid({"task": {"data": "a.tsv", "depth": 6}})


def test_a_field_has_its_meaning_and_its_default():
    properties = schema.condition()["properties"]
    assert properties["patience"] == {
        "type": "integer",
        "description": "epochs in a row without a new best dev accuracy that stop the training",
        "default": 5,
        "minimum": 1,
    }
    for condition in TABLE_1:
        validator("condition").validate(condition.changed)
    defaults = {name: field["default"] for name, field in properties.items() if name != "task"}
    assert Condition("xor", **defaults) == Condition("xor")


def test_the_command(softstack):
    code, out, _ = softstack("schema", "condition")
    assert code == 0 and json.loads(out) == schema.condition()
    code, out, _ = softstack("schema", "sweep", "--out", "there/sweep.json")
    assert (code, out) == (0, "Written: there/sweep.json\n")
    assert json.loads(Path("there/sweep.json").read_text()) == schema.sweep()
    assert softstack("schema", "runs")[0] == 2
    code, _, err = softstack("schema")
    assert code == 2 and "name a kind of file: condition" in err and "or sweep" in err
