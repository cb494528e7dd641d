"""Every code block of the documentation is executed, and prints what the page says it does.

Blocks of a page share their names and a folder. Files of tests/plugins that it shows are there, and so is a
block that begins with a comment `# name.py`. A `text` block right after a Python block is what that prints;
in a `console` block, what follows a command is. `...` stands for anything.
"""

import contextlib
import doctest
import glob
import inspect
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import softstack as ss
from browser import needs_chromium
from softstack_command import main

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PLUGIN = re.compile(r"^```\{literalinclude\} (\S+/tests/plugins/\S+)$", re.MULTILINE)
LANGUAGES = {"python", "console", "text", "sh"}
INSTALL = 'pip install -c constraints.txt -e ".[lab]"\n'  # would install softstack anew: `make` does it so
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def same(said, expected):
    return doctest.OutputChecker().check_output(expected, said, FLAGS)


def test_all_pages_are_found():
    assert len(PAGES) >= 16
    for page in PAGES:
        assert {language for language, _ in BLOCK.findall(page.read_text())} <= LANGUAGES, page


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT / "docs")) for page in PAGES])
def test_code_blocks_run_and_print_what_they_say(page, tmp_path, monkeypatch, registries):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    text = page.read_text(encoding="utf-8")
    for file in PLUGIN.findall(text):
        shutil.copy(page.parent / file, tmp_path)
    names: dict = {"__name__": "page"}
    printed = None
    for language, body in BLOCK.findall(text):
        if language == "python":
            if name := re.match(r"# (\w+\.py)\n", body):
                Path(name[1]).write_text(body)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(body, str(page), "exec"), names)
            printed = out.getvalue()
            continue
        if language == "text":
            assert printed is not None, f"{page} has output that no Python block made:\n{body}"
            assert same(printed, body), f"{page} prints\n{printed}\nand says\n{body}"
        elif language == "console":
            for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", body, re.MULTILINE):
                registered = registries()  # a command knows only what its plugins register
                said = shell(command)
                registries(registered)
                assert same(said, expected), f"{page}: {command}\nprints\n{said}\nand says\n{expected}"
        else:
            assert body == INSTALL
        printed = None


def shell(command):
    """What a command prints. A plain `softstack ...` runs in this process: torch is imported here."""
    if plain := re.fullmatch(r"softstack ([^|&;<>$`]+?)(?: > (\S+))?", command):
        words = [sorted(glob.glob(word)) or [word] for word in shlex.split(plain[1])]
        out = io.StringIO()
        with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as end:
            main([word for several in words for word in several])
        assert not end.value.code, command
        if not plain[2]:
            return out.getvalue()
        Path(plain[2]).write_text(out.getvalue())
        return ""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


def test_the_install_command_is_the_makefiles():
    assert INSTALL.strip().removeprefix("pip ") in (ROOT / "Makefile").read_text().replace("--quiet ", "")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The documentation as pages; a warning is an error."""
    out = tmp_path_factory.mktemp("docs") / "html"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", out]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return out


def test_the_documentation_builds_without_a_warning(built):
    paper = (built / "paper.html").read_text()
    assert paper.count("<math") > 15
    assert 'class="nf">pop<' in paper
    for name in ("play.html", "gallery.html"):  # which run by themselves
        assert "softstack" in (built / name).read_text()
        assert f'href="{name}"' in (built / "index.html").read_text()
    assert len(list(built.glob("_downloads/*/*.ipynb"))) == 4
    reference = (built / "reference.html").read_text()
    assert "(B, T, N) and how much of it; 0 where a cell is yet to come" in reference


def test_every_public_name_is_in_the_reference_with_its_arguments(built):
    page = (built / "reference.html").read_text()
    entries = dict(re.findall(r'<dt class="sig[^>]* id="softstack\.(\w+)">(.*?)</dt>', page, re.DOTALL))
    for name in ss.__all__:
        assert name in entries, f"docs/reference.md has no entry for softstack.{name}"
        if name not in ("CONTROLLERS", "MEMORIES", "BadInput", "Memory"):  # not called
            shown = re.sub(r"<[^>]+>", "", entries[name])
            for argument in inspect.signature(getattr(ss, name)).parameters:
                assert re.search(rf"\b{argument}\b", shown), f"{name}({argument}): {shown}"


@needs_chromium
def test_the_search_works_from_the_folder(browser, built):
    """Without a server: the index is a script. Sphinx also asks for the pages that it found, in vain."""
    page = browser.new_page()
    page.goto(f"{(built / 'search.html').as_uri()}?q=queue_scan")
    page.wait_for_selector("ul.search li a")
    addresses = page.eval_on_selector_all("ul.search li a", "links => links.map((link) => link.href)")
    assert any(address.split("#")[0].endswith("/reference.html") for address in addresses)
    page.close()


@needs_chromium
def test_pages_fit_a_phone_and_a_desk(tab, built):
    """No page is wider than the screen, and no line of code is cut off."""
    page = tab(built / "index.html")
    for file in PAGES:
        name = file.relative_to(ROOT / "docs").with_suffix(".html")
        page.goto((built / name).as_uri())
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            kinds = ", ".join(f".highlight-{kind} pre" for kind in ("python", "sh", "toml", "default"))
            widths = "codes => codes.map((code) => [code.scrollWidth, code.clientWidth])"
            blocks = page.eval_on_selector_all(kinds, widths)
            assert all(needed <= there for needed, there in blocks), (name, width)
            assert blocks or name.stem != "paper"


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT / "docs")) for page in PAGES])
def test_what_a_page_includes_is_linked_for_those_who_read_it_elsewhere(page):
    """GitHub shows the name of an included file and none of it."""
    text = page.read_text(encoding="utf-8")
    for file in re.findall(r"^```\{literalinclude\} (\S+)$", text, re.MULTILINE):
        assert f"]({file})" in text, file
