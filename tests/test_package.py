"""The wheel and the sdist: what is in them, and that the wheel works alone, with no more than it declares."""

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import softstack as ss
from softstack_command.advice import INSTALL

ROOT = Path(__file__).parent.parent
DATA = (
    "py.typed", "viewer/page.html", "viewer/page.js", "viewer/style.css", "viewer/play.html",
    "lab/reports/paper_table1.csv", "lab/reports/exhibits/inputs.json",
    "lab/reports/exhibits/reversal-linear/model.safetensors",
)  # fmt: skip


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    pytest.importorskip("build", reason="pip install -e '.[dev]' brings it")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def only(folder, pattern):
    (path,) = folder.glob(pattern)
    return path


def declared(name, packages):
    """The installed packages that a requirement needs, itself included and optional ones left out."""
    if name not in packages:
        packages[name] = metadata.distribution(name)
        for line in packages[name].requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                declared(needed.name, packages)
    return packages


def requirements(wheel):
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"softstack-{ss.__version__}.dist-info/METADATA").decode()
    lines = re.findall(r"^Requires-Dist: (.+)$", text.split("\n\n")[0], re.MULTILINE)
    return [Requirement(line) for line in lines if "extra ==" not in line]


@pytest.fixture(scope="module")
def fresh(dist, tmp_path_factory):
    """Python of an environment with the wheel and what it declares, linked to save the download."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    install = ["-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([sys.executable, *install, only(dist, "*.whl")], check=True)
    (site,) = (folder / "lib").glob("python*/site-packages")
    packages: dict = {}
    for requirement in requirements(only(dist, "*.whl")):
        declared(requirement.name, packages)
    for package in packages.values():
        for top in {file.parts[0] for file in package.files if file.parts[0] != ".."}:
            if top != "__pycache__" and not (site / top).exists():
                (site / top).symlink_to(package.locate_file(top))
    return python


def run(fresh, *arguments, folder):
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run([fresh, *arguments], capture_output=True, text=True, cwd=folder, env=alone)


def test_the_wheel_holds_the_package_and_its_data_and_nothing_else(dist):
    with zipfile.ZipFile(only(dist, "*.whl")) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {
        "softstack", "softstack_command", f"softstack-{ss.__version__}.dist-info"
    }  # fmt: skip
    assert {f"softstack/{name}" for name in DATA} <= set(names)
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True)
    assert {name.removeprefix("src/") for name in tracked.stdout.split()} <= set(names)


def test_the_sdist_holds_the_tests_and_the_pages(dist):
    with tarfile.open(only(dist, "*.tar.gz")) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "PKG-INFO"):
        assert name in names
    assert {"src/softstack/py.typed", "tests/test_package.py", "docs/index.md", "constraints.txt"} <= names


def test_it_declares_ranges_and_the_pin_lies_in_them(dist):
    ranges = {requirement.name: requirement.specifier for requirement in requirements(only(dist, "*.whl"))}
    assert set(ranges) == {"torch", "numpy", "numba", "safetensors"}
    (pin,) = re.findall(r"^torch==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert pin in ranges["torch"]
    assert "2.10.0" not in ranges["torch"] and "3.0" not in ranges["torch"]


def test_versions_agree():
    newest = re.search(r"^## \[(\d[^\]]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1]
    assert newest == cited == ss.__version__


def test_the_readmes_ten_lines_run_from_the_wheel_alone(fresh, tmp_path):
    lines = re.search(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)[
        1
    ]
    (tmp_path / "ten.py").write_text(f"{lines}print(ss.__file__)\n")
    done = run(fresh, "ten.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    assert Path(printed[-1]).is_relative_to(fresh.parent.parent)
    assert printed[0] == "torch.Size([10, 24]) torch.Size([10, 24, 4]) torch.Size([10, 24, 24])"


def test_the_command_says_what_it_needs_where_the_laboratory_is_missing(fresh, tmp_path):
    for arguments in ([], ["--help"], ["train", "reversal"]):
        done = run(fresh, fresh.parent / "softstack", *arguments, folder=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"softstack: the command needs cyclopts: {INSTALL}\n"
