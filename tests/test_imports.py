"""Imports go one way, none hides in a function without a reason, and what is not needed is not loaded."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from softstack_command import app, forks

SOURCE = Path(__file__).parent.parent / "src"
# Each part of the library imports only parts that stand before it; "" is softstack/__init__.py.
PARTS = [
    "errors", "words", "kernels", "checks", "memory", "buffers", "controllers", "disturbance", "cell", "fit",
    "trace", "fused", "networks", "buffered", "layer", "viewer", "formal", "", "lab", "__main__",
]  # fmt: skip
# So do the packages of the laboratory.
ROOMS = ["tasks", "plugins", "training", "runs", "sweeps", "reports", "explain", "cli"]
# What is imported inside functions, and why.
LAZY = {
    "softstack.kernels": "numba and Triton take long to import, and the reference needs neither",
    "torch": "it takes seconds, and the command parses before",
    "softstack.lab.plugins": "so does torch",
    "softstack.errors": "so does torch",
    "softstack.words": "so does torch",
    "softstack_command.app": "it needs softstack[lab], and workers need not have it",
    "softstack_command.interrupts": "workers import the program that started them, and not this",
    "distributed": "it takes long, and only workers need it",
    "dask": "it comes with distributed",
    "cryptography": "only workers need it",
    "dask_jobqueue": "optional",
    "pyarrow": "optional",
    "torch.utils.tensorboard": "optional",
    "wandb": "optional",
    "matplotlib": "it takes long, and the benchmarks run without a figure",
}
FOR_TYPES: set[tuple[str, str]] = set()  # against the line, for annotations alone


class Import(NamedTuple):
    importer: str
    imported: str
    kind: str  # "top", "lazy" in a function, "types" under TYPE_CHECKING, or "string"


def name_of(file):
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(file): file for file in SOURCE.rglob("*.py")}


def imports_of(module):
    tree = ast.parse(FILES[module].read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    checking = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
    lazy = {id(node) for function in functions for node in ast.walk(function)}
    types = {id(node) for block in checking for node in ast.walk(block)}
    for node in ast.walk(tree):
        kind = "types" if id(node) in types else "lazy" if id(node) in lazy else "top"
        if isinstance(node, ast.Import):
            yield from (Import(module, alias.name, kind) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield Import(module, whole if whole in FILES else node.module, kind)


@cache
def imports():
    """All of them. Modules that are named in strings are imported all the same."""
    strings = [f"{app.CLI}.{place.split(':')[0]}" for place, _ in app.COMMANDS.values()]
    named = [Import("softstack_command.app", module, "string") for module in (*strings, *forks.IMPORTED)]
    return [found for module in sorted(FILES) for found in imports_of(module)] + named


@cache
def ours():
    return [found for found in imports() if found.imported in FILES]


def part(module):
    return (*module.split("."), "")[1]


def room(module):
    return (*module.split("."), "", "")[2]


def test_every_module_is_looked_at():
    assert len(FILES) > 100 and len(ours()) > 300
    inside = [module for module in FILES if module.split(".")[0] == "softstack"]
    assert {part(module) for module in inside} == set(PARTS)
    assert {room(module) for module in inside if part(module) == "lab"} == {*ROOMS, ""}
    command = {"", ".advice", ".app", ".forks", ".interrupts"}
    assert set(FILES) - set(inside) == {f"softstack_command{name}" for name in command}
    named = {found.imported for found in imports() if found.imported.startswith("softstack")}
    assert named <= set(FILES)  # those in strings too


@pytest.mark.parametrize("name", PARTS)
def test_parts_form_a_line(name):
    for importer, imported, _ in ours():
        if (
            importer.startswith("softstack_command")
            or part(importer) != name
            or (importer, imported) in FOR_TYPES
        ):
            continue
        if imported.startswith("softstack_command"):
            assert (importer, imported) in {
                ("softstack.__main__", "softstack_command"),
                ("softstack.lab.sweeps.workers", "softstack_command.forks"),
                ("softstack.lab.sweeps.engine", "softstack_command.interrupts"),
                ("softstack.lab.training.study", "softstack_command.forks"),
                ("softstack.lab.reports.speed", "softstack_command.forks"),
                ("softstack.lab.explain.solved", "softstack_command.forks"),
            }
        else:
            assert PARTS.index(part(imported)) <= PARTS.index(name), f"{importer} imports {imported}"


def test_kernels_know_no_module():
    known = {part(imported) for importer, imported, _ in ours() if part(importer) == "kernels"}
    assert known == {"kernels", "errors"}


@pytest.mark.parametrize("name", ROOMS)
def test_rooms_of_the_laboratory_form_a_line(name):
    for importer, imported, _ in ours():
        if (part(importer), room(importer)) == ("lab", name) and part(imported) == "lab":
            assert ROOMS.index(room(imported)) <= ROOMS.index(name), f"{importer} imports {imported}"


def test_no_cycle_not_even_through_functions():
    """Modules in an order in which each comes after all that it imports, whenever it imports them."""
    needs = {
        module: {i.imported for i in ours() if i.importer == module and i.kind != "types"} for module in FILES
    }
    ordered = set()
    while ready := [module for module in needs if module not in ordered and needs[module] <= ordered]:
        ordered.update(ready)
    assert set(needs) - ordered == set(), "these import each other, or what does"


def test_imports_inside_functions_have_a_reason():
    def reason(imported):
        return [name for name in LAZY if f"{imported}.".startswith(f"{name}.")]

    lazy = [found for found in imports() if found.kind == "lazy"]
    for found in lazy:
        assert reason(found.imported), f"{found.importer} imports {found.imported} inside a function"
    assert {name for found in lazy for name in reason(found.imported)} == set(LAZY)
    outside = {found.importer for found in lazy if part(found.imported) in ("errors", "lab")}
    assert outside <= {"softstack_command.app", "softstack.lab.training.step"}


def loaded_by(statement):
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()


def test_the_command_and_its_help_wait_for_no_torch():
    """Nor does the start of the process from which workers are forked."""
    help_page = "import softstack_command, contextlib, io\n"
    help_page += "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out: "
    help_page += "softstack_command.main(['--help'])\n"
    loaded = loaded_by(f"exec({help_page!r}); assert 'transducers' in out.getvalue()")
    assert {"multiprocessing.forkserver", "cyclopts"} <= set(loaded)
    assert not {"torch", "softstack", "numpy"} & set(loaded)


def test_workers_of_the_command_load_little_with_it():
    """They import what started them."""
    assert not {"torch", "cyclopts", "rich", "softstack"} & set(loaded_by("import softstack_command"))
    assert not {"torch", "cyclopts", "rich", "softstack"} & set(loaded_by("import softstack_command.forks"))


HEAVY = {
    "softstack": {
        "numba",
        "triton",
        "matplotlib",
        "distributed",
        "dask",
        "cyclopts",
        "rich",
        "safetensors",
        "softstack.lab",
    },
    "softstack.lab.cli.data": {"matplotlib", "distributed", "softstack.lab.sweeps"},
    "softstack.lab.cli.evaluate": {
        "matplotlib",
        "distributed",
        "softstack.lab.sweeps",
        "softstack.lab.reports",
    },
    "softstack.lab.cli.runs": {"matplotlib", "distributed", "softstack.lab.sweeps", "softstack.lab.reports"},
    "softstack.lab.cli.sweep": {"matplotlib", "softstack.lab.reports"},
    "softstack.lab.cli.machines": {"matplotlib", "distributed", "softstack.lab.reports"},
}
EACH = """
import os, sys
import torch  # once for all
for module in sys.argv[1:]:
    if os.fork() == 0:
        __import__(module)
        print(*sys.modules, flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, module
"""


def test_modules_load_what_they_need():
    """softstack itself, and what the commands are made of."""
    command = [sys.executable, "-c", EACH, *HEAVY]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    for (module, heavy), line in zip(HEAVY.items(), lines, strict=True):
        loaded = set(line.split())
        assert module in loaded
        assert not heavy & loaded, module
