"""The notebooks run from top to bottom, and come to what they say."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


def executed(path, folder):
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}})
    return client.execute()


def printed(notebook):
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(output.get("text", "") for output in outputs), outputs


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebooks_run(path, tmp_path):
    text, outputs = printed(executed(path, tmp_path))
    pages = [o["data"]["text/html"] for o in outputs if "text/html" in o.get("data", {})]
    if path.stem == "reproduce_a_row":
        assert text.count("seed ") == 10
        assert "agrees: True" in text
    else:
        assert any(page.startswith("<iframe srcdoc=") for page in pages)
    if path.stem == "look_inside":
        pushes, pops, pushes_after, pops_after = map(float, re.findall(r"\d\.\d\d", text))
        assert pushes > pops
        assert pops_after > pushes_after
    if path.stem == "language_model":
        surprise = [float(x) for x in re.findall(r"(\d\.\d+) nats", text)]
        assert surprise[-1] < surprise[0] < 1.4  # 1.386 is chance
        assert float(re.search(r"([\d.]+)% of", text)[1]) > 75  # 71.9 without memory


def test_there_are_three_without_outputs():
    """What they print is not kept with them: it would be out of date."""
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        assert not any(cell.get("outputs") for cell in nbformat.read(path, as_version=4).cells)
