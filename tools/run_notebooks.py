"""Run the notebooks, and store what they show in them.

    python tools/run_notebooks.py [NAME...]

Without names all of notebooks/ are run. Solutions of exercises, which are hidden in the text, are not.
"""

import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SOLUTION = re.compile(r"<details><summary>Solution</summary>\n(.*?)</details>", re.DOTALL)
CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PRINTED = re.compile(r"^```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def executed(notebook: NotebookNode) -> NotebookNode:
    """The notebook with what its cells show. It runs in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}})
        client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times, which differ from run to run
    return notebook


def main() -> None:
    for path in NOTEBOOKS:
        if not sys.argv[1:] or path.stem in sys.argv[1:]:
            nbformat.write(executed(nbformat.read(path, as_version=4)), path)
            print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
