"""`softstack trace`, `softstack figures` and `softstack plot`."""

import json
from pathlib import Path

from softstack.errors import BadInput
from softstack.lab.cli.options import EngineName, RunDir, Trials, all_opened, at_least_one, opened, writable
from softstack.lab.cli.screen import say
from softstack.lab.reports import curves, names, trace_page
from softstack.lab.reports import figures as drawing
from softstack.lab.reports.writing import ranked, runs_of
from softstack.lab.runs import store
from softstack.lab.sweeps.jobs import train_missing
from softstack.words import counted


def trace(run_dir: RunDir, symbols: str, /, *, out: Path = Path("trace.png")) -> None:
    """Draw what a trained network does on an input: pops, pushes, vectors, input and output at each step.

    softstack trace RUN_DIR "1 0 0 1 1 1"

    Parameters
    ----------
    symbols
        the input, symbols separated by spaces; the #s after a string to reverse may be left out
    out
        FILE.png, .svg, .html (the figure and its steps in a table) or .json (all that the network did)
    """
    writable(out, ".png", ".svg", ".html", ".json")
    trial = opened(run_dir)
    network, title = store.network(trial), names.trial(trial)
    run = drawing.observe(network, trial.condition, symbols.split())
    if out.suffix == ".json":
        store.write(out, json.dumps(drawing.as_json(run)))
    elif out.suffix == ".html":
        store.write(out, trace_page.page(network, trial.condition, run, title))
    else:
        figure = drawing.draw(network, trial.condition, run, title)
        store.write(out, drawing.rendered(figure, out.suffix[1:]))
    if run.note:
        say(run.note[0].lower() + run.note[1:])
    print(f"input      {' '.join(run.example.input)}")
    print(f"predicted  {' '.join(run.predicted)}")
    if run.known:
        print(f"target     {' '.join(t or '_' for t in run.example.target)}")
    print(f"Written: {out}")


def figures(
    *,
    out: Path = Path("figures"),
    runs: Path = Path("runs/table1"),
    trials: Trials = 10,
    engine: EngineName = "local",
) -> None:
    """Draw the paper's Figures 5 and 6: five networks, each on the input that the paper shows.

    Of each network's trials, in the order of their dev accuracy, the one in the middle is drawn. Trials that
    `--runs` has are loaded, the rest are trained and kept there.

    Parameters
    ----------
    out
        where the figures go, each as PNG and SVG
    runs
        where run directories are; that of `softstack table` by default
    """
    seeds = range(at_least_one("--trials", trials))
    train_missing(runs, [shown.condition for shown in drawing.FIGURES], seeds, engine, say=say)
    for shown in drawing.FIGURES:
        middle = ranked(runs_of(runs, shown.condition, seeds))[trials // 2]
        network = store.network(middle)
        run = drawing.observe(network, shown.condition, shown.symbols)
        figure = drawing.draw(network, shown.condition, run, shown.title)
        for kind in ("png", "svg"):
            store.write(out / f"{shown.name}.{kind}", drawing.rendered(figure, kind))
        print(f"{out / shown.name}.png  {shown.title}: seed {middle.seed}, dev {middle.result['dev']:.1%}")


def plot(*run_dirs: Path, out: Path = Path("curves.png")) -> None:
    """Draw how networks learnt: dev accuracy and loss after each epoch.

    softstack plot RUN_DIR

    softstack plot runs/reversal-linear-* runs/reversal-lstm-* --out curves.svg

    Parameters
    ----------
    run_dirs
        directories of trials, or folders of them: trials of one condition have one colour, and the one in the
        middle, in the order of dev accuracy, is bold
    out
        FILE.png or FILE.svg
    """
    if not run_dirs:
        raise BadInput("no run directory is given: name one, as `softstack train` prints it")
    writable(out, ".png", ".svg")
    places = curves.run_directories(run_dirs)
    runs = all_opened(places)
    trained = [run for run in runs if run.epochs]
    if not trained:
        raise BadInput(f"{places[0]} was compiled and not trained: it has no learning curve")
    if len(trained) < len(runs):
        say(f"{counted(len(runs) - len(trained), 'network')} left out: compiled, and not trained")
    figure = curves.draw(trained)
    store.write(out, drawing.rendered(figure, out.suffix[1:]))
    print(f"{counted(len(trained), 'run')}. Written: {out}")
