"""`softstack plot`: the lines are the runs' own numbers."""

from dataclasses import replace

import pytest

from softstack.errors import BadInput
from softstack.lab.reports import curves
from softstack.lab.runs import store
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import initial
from softstack.lab.training.epochs import Epoch
from softstack.lab.training.train import Trial

LINEAR = Condition("reversal", "linear")
SLOW = replace(LINEAR, learning_rate=0.001)
LSTM = Condition("reversal", "lstm", "none", hidden_size=3)


def saved(root, condition, seed, dev):
    epochs = [Epoch(2.0 / n, dev * n / (4 + seed)) for n in range(1, 5 + seed)]
    weights = dict(initial(condition, seed).state_dict())
    return store.load(store.save(root, Trial(condition, seed, epochs, dev, dev - 0.25, weights, 0.1, 0.5)))


@pytest.fixture
def runs(tmp_path):
    root = tmp_path / "runs"
    return [saved(root, LINEAR, seed, dev) for seed, dev in enumerate((0.5, 1.0, 0.75))] + [
        saved(root, condition, 0, 0.5) for condition in (SLOW, LSTM)
    ]


def test_each_run_is_a_line_of_its_own_numbers(runs):
    left, right = curves.draw(runs).axes
    for axis, value in ((left, lambda epoch: 100 * epoch.dev), (right, lambda epoch: epoch.loss)):
        drawn = {tuple(line.get_ydata()) for line in axis.lines if len(line.get_xdata()) > 1}
        assert drawn == {tuple(map(value, run.epochs)) for run in runs}
        assert all(line.get_xdata()[0] == 1 for line in axis.lines if len(line.get_xdata()) > 1)


def test_the_legend_has_a_line_for_each_condition_and_the_middle_trial_is_bold(runs):
    figure = curves.draw(runs)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == [
        "Reversal, linear, stack: 3 trials, median dev 75.0, test 50.0",
        "Reversal, linear, stack, learning_rate 0.001: seed 0, dev 50.0, test 25.0",
        "Reversal, LSTM, no memory: seed 0, dev 50.0, test 25.0",
    ]
    bold = [line for line in figure.axes[0].lines if line.get_linewidth() > 2 and len(line.get_xdata()) > 1]
    assert [max(line.get_ydata()) for line in bold] == [100 * runs[2].epochs[-1].dev, 50.0, 50.0]
    assert len({line.get_color() for line in bold}) == 3


def test_names_are_short_and_never_the_same():
    """Three fields of many, and the end of the folder's name where they do not tell."""
    many = dict(learning_rate=0.1, weight_decay=0.5, train_size=7, batch_size=3)
    some = [LINEAR, SLOW, replace(LINEAR, **many), replace(LINEAR, **many, patience=9)]
    names = curves.described(some)
    assert names[LINEAR] == "Reversal, linear, stack"
    assert names[SLOW] == "Reversal, linear, stack, learning_rate 0.001"
    long = "Reversal, linear, stack, train_size 7, batch_size 3, learning_rate 0.1, ..."
    assert names[some[2]] == f"{long} ({some[2].name[-8:]})"
    assert len(set(names.values())) == 4


@pytest.mark.parametrize("end", ["png", "svg"])
def test_the_command_takes_runs_and_folders_of_them(softstack, runs, tmp_path, end):
    begins = {"png": b"\x89PNG", "svg": b"<?xml"}[end]
    one, root = runs[0].path, tmp_path / "runs"
    given = {"1 run": [one], "3 runs": [one.parent], "5 runs": [root, one]}
    (tmp_path / "empty").mkdir()
    given["2 runs"] = [one, runs[1].path, tmp_path / "empty", one / "result.json"]  # as by `runs/*`
    for count, paths in given.items():
        code, out, _ = softstack("plot", *map(str, paths), "--out", f"here/curves.{end}")
        assert (code, out) == (0, f"{count}. Written: here/curves.{end}\n")
        assert (tmp_path / "here" / f"curves.{end}").read_bytes().startswith(begins)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "no run directory is given"),
        (["nowhere"], "nowhere is not a run directory"),
        (["."], ". holds no finished run"),
        ([".", "--out", "curves.pdf"], "must end in .png or .svg"),
    ],
)
def test_what_cannot_be_drawn_is_said(softstack, arguments, sentence):
    code, _, said = softstack("plot", *arguments)
    assert code == 2 and sentence in said


def test_what_was_not_trained_has_no_curve(softstack, runs, tmp_path):
    weights = dict(initial(LSTM, 7).state_dict())
    compiled = store.save(tmp_path / "runs", Trial(LSTM, 7, [], 1.0, 1.0, weights, 0.0, 0.0))
    code, _, said = softstack("plot", str(compiled))
    assert code == 2 and "compiled and not trained" in said
    code, out, said = softstack("plot", str(tmp_path / "runs"))
    assert (code, out) == (0, "5 runs. Written: curves.png\n")
    assert "1 network left out" in said


def test_more_lines_than_can_be_told_apart_are_refused(runs):
    many = [runs[0]._replace(condition=replace(LINEAR, train_size=n + 1)) for n in range(29)]
    with pytest.raises(BadInput, match="29 conditions cannot be told apart"):
        curves.draw(many)
