"""The notebooks run from top to bottom, show what is stored in them, and their exercises have solutions."""

import doctest
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from run_notebooks import CODE, NOTEBOOKS, PRINTED, SOLUTION, executed

NAMES = ["1_first_steps", "2_a_row_of_the_paper", "3_your_own_model", "4_transducers"]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def printed(cells):
    return "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", []))


def kinds(cell):
    """The kinds of what a cell shows, such as a picture."""
    return sorted({kind for output in cell.get("outputs", []) for kind in output.get("data", {})})


def quicker(solution):
    """With less training, and fewer strings: what a solution prints is compared without its numbers."""
    solution = solution.replace("seeds=range(10)", "seeds=range(2)").replace("seed=0)", "seed=0, strings=60)")
    solution = solution.replace('"lstm", "stack")', '"lstm", "stack", max_epochs=3)')
    return re.sub(r"steps=\d+", "steps=20", solution)


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def both(request):
    """A notebook as it is stored, and as it runs, with its solutions as cells of their own at the end."""
    stored = nbformat.read(request.param, as_version=4)
    fresh = nbformat.read(request.param, as_version=4)
    for cell in stored.cells:
        if cell.cell_type == "markdown" and (solution := SOLUTION.search(cell.source)):
            fresh.cells += [new_code_cell(quicker(code)) for code in CODE.findall(solution[1])]
    return request.param.stem, stored, executed(fresh)


def test_there_are_four():
    assert [path.stem for path in NOTEBOOKS] == NAMES


def test_they_show_what_is_stored(both):
    _, stored, fresh = both
    for before, after in zip(stored.cells, fresh.cells, strict=False):
        assert kinds(before) == kinds(after), after.source
        assert shape(printed([before])) == shape(printed([after])), after.source


def shape(text):
    """A text without its digits, which another machine may round in another way."""
    return re.sub(r"\d+", "0", text)


def test_exercises_have_solutions_that_print_what_they_say(both):
    _, stored, fresh = both
    texts = [cell.source for cell in stored.cells if cell.cell_type == "markdown"]
    exercises = [text for text in texts if re.search(r"^\*\*\d\.\*\*", text, re.MULTILINE)]
    assert len(exercises) == 3
    added = fresh.cells[len(stored.cells) :]
    solutions = [SOLUTION.search(text) for text in exercises]
    assert all(solutions)
    assert len(added) == 3
    for cell, solution in zip(added, solutions, strict=True):
        (expected,) = PRINTED.findall(solution[1])
        got = printed([cell])
        assert doctest.OutputChecker().check_output(expected, got, FLAGS), f"{got}\nand not\n{expected}"


def test_they_say_how_to_open_them(both):
    name, stored, _ = both
    assert f"jupyter lab notebooks/{name}.ipynb" in stored.cells[0].source.replace("\n", " ")


def test_they_come_to_what_they_teach(both):
    name, _, fresh = both
    text = printed(fresh.cells)
    shown = {kind for cell in fresh.cells for kind in kinds(cell)}
    numbers = [float(number) for number in re.findall(r"[\d.]+(?=%)", text)]
    if name == "1_first_steps":
        assert "read 1.50" in text
        assert {"text/html", "image/png"} <= shown
        pushes, pops, pushes_after, pops_after = map(
            float, re.findall(r"(?:pushes|pops) (\d\.\d\d)", text)[:4]
        )
        assert pushes > pops and pops_after > pushes_after
    elif name == "2_a_row_of_the_paper":
        assert text.count("seed ") == 11 and "agrees: True" in text
        assert "image/png" in shown
    elif name == "3_your_own_model":
        stack, none, undisturbed = numbers[:5], numbers[5:10], numbers[10:15]
        assert min(stack[:4]) > 97  # over 17 to 48 symbols
        assert max(none[3], undisturbed[3]) < 90 < stack[4]
        assert {"text/html", "image/png"} <= shown
    else:
        assert text.count("right True") == 2
        assert "it uses its stack as a stack" in text
        assert text.count("equal: ") == 2
        assert "image/svg+xml" in shown
