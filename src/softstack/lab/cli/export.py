"""`softstack export`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from softstack.errors import unknown
from softstack.lab.cli.options import RunDir, Whole, at_least_one, opened
from softstack.lab.runs import disk
from softstack.lab.runs import export as exporting


def export(
    run_dir: RunDir,
    /,
    *,
    format: Annotated[str | None, Parameter(name=["--format", "-f"])] = None,
    length: Whole = 24,
    out: Path | None = None,
) -> None:
    """Write a trained network in a form that other programs read.

    softstack export RUN_DIR                   # a plain state dict

    softstack export RUN_DIR --format torch    # a graph, for torch.export.load

    Parameters
    ----------
    format
        safetensors, torch or json; where it is not given that of the file's ending, or else safetensors
    length
        steps of the strings that a graph takes, all of them; it takes any number of strings
    out
        the file; named after the run if not given
    """
    by_ending = {form.suffix: name for name, form in exporting.FORMATS.items()}
    format = format or by_ending.get(out.suffix if out else "", "safetensors")
    if format not in exporting.FORMATS:
        raise unknown("format", format, exporting.FORMATS)
    at_least_one("--length", length)
    run = opened(run_dir)
    form = exporting.FORMATS[format]
    path = out or Path(f"{run.condition.name}-seed-{run.seed}{form.suffix}")
    disk.write(path, form.write(run, length))
    print(f"Written: {path}")
