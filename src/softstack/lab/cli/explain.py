"""`softstack diagnose` and `softstack extract`: what a network does, and the machine that it is."""

import sys
from pathlib import Path

from softstack import checks
from softstack.formal import drawing
from softstack.lab.cli.options import RunDir, Whole, opened
from softstack.lab.cli.screen import say
from softstack.lab.explain import diagnosis, diagnosis_figures, diagnosis_page, layers
from softstack.lab.explain.extract import extract as extraction
from softstack.lab.reports import names
from softstack.lab.reports.figures import rendered
from softstack.lab.runs import store


def diagnose(run_dir: RunDir, /, *, layer: Whole = 1, out: Path | None = None, strings: Whole = 200) -> None:
    """Say whether a network uses its memory: as a stack, a queue, a counter, a register, or not at all.

    Swaps what two runs hold and sees whether answers follow; takes its reads, its state and the depth of its
    stack from it, rounds its strengths, and measures accuracy by length, depth and distance. Writes
    diagnosis.json, .png and .html.

    softstack diagnose RUN_DIR

    Parameters
    ----------
    layer
        whose memory, in a network of several layers; the first reads the symbols
    out
        where the files go; the run directory by default
    strings
        how many strings of the test set
    """
    checks.positive("--strings", strings)
    run = opened(run_dir)
    network, title = store.network(run), names.trial(run)
    result = diagnosis.diagnose(layers.at(network, layer), run.condition, run.seed, strings)
    if len(network.cells) > 1:
        title += f", layer {layer} of {len(network.cells)}"
        more = "; --layer chooses another" if layer == 1 else ""
        say(f"layer {layer} of {len(network.cells)} is diagnosed{more}")
    folder = run_dir if out is None else out
    store.write_json(folder / "diagnosis.json", result.as_dict())
    store.write(folder / "diagnosis.png", rendered(diagnosis_figures.draw(result, title), "png"))
    store.write(folder / "diagnosis.html", diagnosis_page.page(result, title))
    for measured in diagnosis_page.tables(result):
        print(diagnosis_page.text(measured), end="\n\n")
    print(result.fall)
    print(f"Written: {folder / 'diagnosis.html'}, and .json and .png beside it")
    print(result.sentence)


def extract(
    run_dir: RunDir,
    /,
    *,
    states: Whole = 20,
    symbols: Whole = 16,
    strings: Whole = 400,
    every_position: bool = False,
    out: Path | None = None,
) -> None:
    """Read off a network the pushdown transducer that it computes, and say how well that explains it.

    Writes extracted.json and, where there is one, the machine as extracted.pdt and extracted.svg. Where none
    explains the network the exit code is 1.

    softstack extract RUN_DIR

    Parameters
    ----------
    states
        the most states that an explanation may have
    symbols
        the most symbols on its stack
    strings
        strings to read transitions from; fidelity is measured on others
    every_position
        explain also what the network says where its task scores nothing
    out
        where the files go; the run directory by default
    """
    run = opened(run_dir)
    result = extraction(
        store.network(run),
        run.condition,
        run.seed,
        states=states,
        symbols=symbols,
        strings=strings,
        every_position=every_position,
    )
    folder = run_dir if out is None else out
    files = [folder / "extracted.json"]
    store.write_json(folder / "extracted.json", result.as_dict())
    if result.machine is not None:
        store.write(folder / "extracted.pdt", f"{result.machine}\n")
        store.write(folder / "extracted.svg", drawing.svg(result.machine))
        files += [folder / "extracted.pdt", folder / "extracted.svg"]
        print(result.machine)
        print()
    for score in result.scores:
        fidelity = f"fidelity {score.fidelity} of strings, {score.symbols} of symbols"
        print(f"{f'{score.factor}x length':12}{fidelity}; accuracy of the machine {score.accuracy}")
    if result.counterexample is not None:
        word, position, ours, theirs = result.counterexample
        print(f"They differ at symbol {position + 1} of  {' '.join(word)}")
        print(f"the machine says {ours or 'nothing'}, the network {theirs or 'nothing'}")
    print(f"Written: {', '.join(map(str, files))}")
    print(result.sentence)
    if not result.explained:
        sys.exit(1)
