"""Rows of runs as people and programs like them: a table, CSV, JSON or Parquet."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

from softstack.errors import BadInput, install
from softstack.lab.runs.index import COLUMNS
from softstack.words import shown

Row = dict[str, Any]


def as_csv(rows: Sequence[Row]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def as_json(rows: Sequence[Row]) -> bytes:
    return json.dumps(list(rows), indent=1).encode() + b"\n"


def as_parquet(rows: Sequence[Row]) -> bytes:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise BadInput(f"--format parquet needs pyarrow: {install('parquet')}") from None
    kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema), file)
    return file.getvalue()


FORMATS: dict[str, Callable[[Sequence[Row]], bytes]] = {"csv": as_csv, "json": as_json, "parquet": as_parquet}


def told_apart(rows: Sequence[Row]) -> list[str]:
    """Columns that say something: results, and those fields of a condition that are not always the same."""
    always = ["task", "controller", "memory", "seed", "dev", "test", "epochs"]
    varied = [
        name
        for name in COLUMNS
        if name not in (*always, "dev_loss", "condition", "path", "seconds", "commit", "device")
        and len({row[name] for row in rows}) > 1
    ]
    return [*always[:3], *varied, *always[3:], "path"]


def text(name: str, value: Any) -> str:
    if name == "task" and "\n" in value:  # of a grammar or a machine
        value = f"{value.splitlines()[0]} ..."
    return f"{value:.2%}" if name in ("dev", "test") else shown(f"{value}")
