"""`softstack schema`."""

import json
from pathlib import Path
from typing import Literal

from softstack.errors import BadInput
from softstack.lab.runs import disk
from softstack.lab.sweeps.schema import SCHEMAS


def schema(kind: Literal["condition", "sweep"] | None = None, /, *, out: Path | None = None) -> None:
    """Write what a TOML file may say as JSON Schema, by which editors complete and check it.

    softstack schema sweep --out sweep.schema.json

    Begin mine.toml with the line  #:schema sweep.schema.json  for editors that look for it there.

    Parameters
    ----------
    kind
        condition, for `softstack train --config`, or sweep, for `softstack sweep`
    out
        a file to write to; standard output if not given
    """
    if kind is None:
        raise BadInput("name a kind of file: condition, for train --config, or sweep, for softstack sweep")
    if out is None:
        print(json.dumps(SCHEMAS[kind](), indent=1))
    else:
        disk.write_json(out, SCHEMAS[kind]())
        print(f"Written: {out}")
