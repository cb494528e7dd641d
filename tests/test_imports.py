"""Imports go one way, and `import softstack` takes torch and numpy alone."""

import ast
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "softstack"
# What each part may import of softstack, besides itself.
ALLOWED = {
    "errors": set(),
    "checks": {"errors", "memory"},  # memory: for its types alone
    "kernels": {"errors"},
    "fused": {"buffers", "cell", "kernels", "memory"},
    "memory": {"checks", "errors", "kernels"},
    "buffers": {"memory"},
    "controllers": {"errors"},
    "cell": {"checks", "controllers", "errors", "memory"},
    "trace": {"cell", "controllers"},
    "networks": {"buffers", "cell", "checks", "controllers", "errors", "fused", "kernels", "memory", "trace"},
    "formal": {"controllers", "errors", "networks"},
    "lab": {
        "buffers",
        "cell",
        "checks",
        "controllers",
        "errors",
        "formal",
        "fused",
        "kernels",
        "memory",
        "networks",
        "trace",
        "viewer",
        "",
    },
    "viewer": {"errors", "memory", "trace"},
    "__main__": set(),
    "": {"cell", "controllers", "errors", "memory", "networks", "trace", "viewer"},
}


def imported(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "softstack":
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                if parts[0] == "softstack":
                    yield parts[1] if len(parts) > 1 else ""


def test_imports_go_one_way():
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 15
    for file in files:
        part = file.relative_to(SOURCE).parts[0].removesuffix(".py").replace("__init__", "")
        wrong = set(imported(file)) - ALLOWED[part] - {part}
        assert not wrong, f"{file} imports {wrong}"


def loaded_by(module):
    code = f"import sys, {module}; print(' '.join(sys.modules))"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()


def test_the_command_starts_before_torch_is_imported():
    loaded = loaded_by("softstack_command")
    assert "multiprocessing.forkserver" in loaded
    assert "torch" not in loaded
    assert "softstack" not in loaded


def test_importing_softstack_loads_little():
    loaded = loaded_by("softstack")
    assert "torch" in loaded
    heavy = {
        "numba",
        "triton",
        "matplotlib",
        "distributed",
        "dask",
        "cyclopts",
        "rich",
        "safetensors",
        "softstack.lab",
    }
    assert not heavy & set(loaded)
