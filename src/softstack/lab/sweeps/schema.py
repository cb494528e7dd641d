"""What files of settings and of sweeps may say, as JSON Schema: editors complete and check TOML by it."""

from dataclasses import fields
from typing import Any

import docstring_parser

from softstack.controllers import CONTROLLERS
from softstack.lab.sweeps.plans import MOST_TRIALS, SAMPLERS
from softstack.lab.tasks import TASKS
from softstack.lab.tasks.losses import LOSSES
from softstack.lab.training.conditions import FROM_ZERO, NOT_NEGATIVE, SHARES, Condition
from softstack.memory import MEMORIES

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
TYPES: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
FILE = {"type": "string", "minLength": 1}
DEPTH = {"type": "integer", "minimum": 1}


def condition() -> Schema:
    """The schema of a file for `softstack train --config`: fields of a condition."""
    return {"$schema": DIALECT, "title": "A condition of softstack", **_table(_fields())}


def sweep() -> Schema:
    """The schema of a file for `softstack sweep`."""
    values = _fields()
    one = _table(values)
    seeds = {
        "description": "how many, from 0 on; or a list; or where they begin and how many they are",
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": MOST_TRIALS},
            {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}},
            _table(
                {
                    "first": {"type": "integer", "minimum": 0},
                    "count": {"type": "integer", "minimum": 1, "maximum": MOST_TRIALS},
                },
                required=["count"],
            ),
        ],
    }
    properties: Schema = {
        "seeds": seeds,
        "condition": {
            "description": "what stays the same, or several of that",
            "anyOf": [one, {"type": "array", "minItems": 1, "items": one}],
        },
        "product": {
            "description": "every combination of these values",
            **_table({name: _several(value) for name, value in values.items()}),
        },
        "slurm": {"description": "how to ask SLURM for workers", "type": "object"},
    }
    spread = {name: _spread(value) for name, value in values.items()}
    for kind in SAMPLERS:
        properties[kind] = {
            "description": "values drawn from ranges and lists",
            **_table(
                {
                    "samples": {"type": "integer", "minimum": 1, "description": "how many to draw"},
                    "seed": {"type": "integer", "minimum": 0, "description": "of what is drawn"},
                    **spread,
                },
                required=["samples"],
            ),
        }
    alone = {"not": {"required": list(SAMPLERS)}}
    return {"$schema": DIALECT, "title": "A sweep of softstack", **_table(properties), **alone}


SCHEMAS = {"condition": condition, "sweep": sweep}


def _table(properties: Schema, required: list[str] | None = None) -> Schema:
    needed = {"required": required} if required else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **needed}


def _fields() -> Schema:
    """Of a condition, each with what it means, its default, and what it may be."""
    docs = {p.arg_name: p.description for p in docstring_parser.parse_from_object(Condition).params}
    names: dict[str, Any] = {"controller": CONTROLLERS, "memory": MEMORIES, "loss": ("task", *LOSSES)}
    schemas: Schema = {}
    for field in fields(Condition):
        description = " ".join((docs[field.name] or "").split())
        schema: Schema = {"type": TYPES[field.type], "description": description}
        if field.name == "task":
            schema = {"description": description, "anyOf": _tasks()}
        else:
            schema["default"] = field.default
        if field.name in names:
            schema["enum"] = list(names[field.name])
        if field.type is int:
            schema["minimum"] = 0 if field.name in FROM_ZERO else 1
        if field.name in (*NOT_NEGATIVE, *SHARES):
            schema["minimum"] = 0
        if field.name in SHARES:
            schema["maximum"] = 1
        schemas[field.name] = schema
    return schemas


def _tasks() -> list[Schema]:
    return [
        {"enum": list(TASKS)},
        {"type": "string", "pattern": r"\.pdt$|->|→|^predict |^data-", "description": "a machine: FILE.pdt"},
        _table(
            {"grammar": FILE, "predict": {"type": "string"}, "depth": DEPTH, "test_depth": DEPTH},
            required=["grammar"],
        ),
        _table({"data": FILE, "dev": FILE, "test": FILE}, required=["data"]),
    ]


def _several(schema: Schema) -> Schema:
    return {"type": "array", "minItems": 1, "items": schema}


def _spread(schema: Schema) -> Schema:
    """A list of values or, for numbers, a range."""
    if schema.get("type") not in ("integer", "number"):
        return _several(schema)
    end = {"type": schema["type"]}
    span = _table({"low": end, "high": end, "log": {"type": "boolean"}}, required=["low", "high"])
    return {"anyOf": [_several(schema), span], "description": schema["description"]}
