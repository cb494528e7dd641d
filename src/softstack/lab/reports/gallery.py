"""`softstack gallery`: networks that work and networks that fail, which come with the package.

exhibits/NAME/           a run directory for each, as `softstack train` writes them
exhibits/inputs.json     for each an input that it gets right, and one that breaks it

`python tools/make_gallery.py` trains or compiles them and looks for the inputs.
"""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

from softstack import viewer
from softstack.errors import BadInput
from softstack.lab.reports import network_page
from softstack.lab.runs import store

EXHIBITS = Path(__file__).parent / "exhibits"
WAYS = {  # how an exhibit came to be, and what is said of that
    "paper": "trained as in the paper",
    "solved": "trained to use its stack",
    "compiled": "compiled, not trained",
}


class Exhibit(NamedTuple):
    """A network of the gallery."""

    name: str  # of its folder: the task, and what is special
    way: str  # one of WAYS
    works: bool  # on strings twice as long as those of the training
    row: int  # of Table 1, from 1
    look: str  # two sentences: what to look for
    seed: int = 0
    least: int = 1  # symbols of the input that breaks it: shorter ones are less telling


LISTED: tuple[Exhibit, ...] = (
    Exhibit(
        "reversal-linear", "paper", works=True, row=1, seed=9,
        look="Pop and push change places at the first #: what was pushed with 0.9 is popped with 0.9, as "
        "the transducer beside it does. Each # also pushes 0.2 of a vector that means nothing, and blurs "
        "what is read: see the output grow unsure towards the end of a long string.",
    ),
    Exhibit(
        "reversal-buffered", "paper", works=False, row=2, seed=8, least=12,
        look="Its input buffer empties and its output buffer fills, and the stack does what it does without"
        " buffers. As in the paper the first unit of output is thrown away, so that of a string of twelve "
        "nothing is left for the last symbol: it is a guess, and on twelve 1s a wrong one.",
    ),
    Exhibit(
        "reversal-lstm", "paper", works=False, row=3, seed=1, least=12,
        look="Pop and push change little when the #s begin, and the stack never holds more than 0.6: it is "
        "not used. The string is kept in the state instead, and there is no room for longer ones.",
    ),
    Exhibit(
        "reversal-lstm-alone", "paper", works=False, row=4, seed=5, least=12,
        look="Without a stack, all that it knows of the string is in the ten bars of its state and of its "
        "cell. It gets most symbols right, but from eight symbols on fewer and fewer.",
    ),
    Exhibit(
        "reversal-lstm-solved", "solved", works=True, row=3,
        look="It was trained while its state was taken away now and then, and so it pushes each symbol with"
        " strength 1 and pops with strength 1: a stack as in a textbook. Only after some 570 symbols has "
        "what the strengths lack added up to half a symbol.",
    ),
    Exhibit(
        "xor-linear", "paper", works=False, row=5, seed=4,
        look="To combine what it reads with what lies on the stack takes two steps, and a linear controller"
        " has one for each symbol. So it is hardly better than chance: push and pop hardly depend on the "
        "input, and no answer is sure.",
    ),
    Exhibit(
        "xor-lstm", "paper", works=True, row=6, seed=4,
        look="It keeps the parity in its state and ignores its stack, which only grows. It passes the "
        "paper's test, but a 1 with many 0s behind it is forgotten: watch how much less sure it is after "
        "each 0.",
    ),
    Exhibit(
        "xor-buffered", "paper", works=True, row=7, seed=6,
        look="With two steps for each symbol it takes a part of a symbol in each, and an answer is whole "
        "about when the next symbol comes. The parts do not quite add up to symbols, and on longer strings "
        "some answers go wrong.",
    ),
    Exhibit(
        "delayed-xor-linear", "paper", works=True, row=8, seed=9,
        look="A 1 pushes a vector that stands for the new parity and a 0 leaves the stack nearly as it is: "
        "the top is all that it needs, and the old parities lie below for nothing. But a 0 pushes a little,"
        " too, and nearly forty of them cover the 1 below.",
    ),
    Exhibit(
        "parenthesis-linear", "paper", works=False, row=9, seed=9,
        look="It pushes at every symbol and pops little: what it reads is a blend of the last brackets, and"
        " not the innermost open one. Of the 32 ways to nest five brackets it gets 17 wrong, since what the"
        " closing ones push covers what the opening ones pushed.",
    ),
    Exhibit(
        "parenthesis-linear-alone", "paper", works=False, row=10, seed=7,
        look="Without any memory it sees only the bracket that it reads: after ( it says ), after [ it says"
        " ], and after a closing one it guesses. That alone is right seven times in ten on strings like "
        "those of the training.",
    ),
    Exhibit(
        "parenthesis-lstm", "paper", works=False, row=11, seed=9,
        look="Pop and push stay nearly the same whatever it reads: the stack is ignored and only grows. "
        "Open brackets are kept in the state, and of the 64 ways to nest six it gets half wrong.",
    ),
    Exhibit(
        "parenthesis-lstm-alone", "paper", works=False, row=12, seed=8,
        look="It does as well as its twin with a stack, which shows how little that one uses it. Five open "
        "brackets can be too many for its state: of the 32 ways to nest them it gets three wrong.",
    ),
    Exhibit(
        "parenthesis-linear-solved", "solved", works=True, row=9,
        look="An opening bracket pushes a half and a closing one pops a half, so that a read sees the two "
        "innermost brackets: where one is closed, it says what closes the other. It goes wrong where some "
        "fifty brackets of both kinds are nested.",
    ),
    Exhibit(
        "parenthesis-compiled", "compiled", works=True, row=11,
        look="Nobody trained it: its weights were written down from the transducer beside it, so loosely "
        "that strengths may be off by 0.02. After some 1,600 symbols that has added up: its input buffer "
        "hands it a mixture of two brackets, no rule fits, and it stops.",
    ),
    Exhibit(
        "formula-linear", "paper", works=False, row=13, seed=6,
        look="T and F push vectors that can be told apart, and & pops most of what lies on top: nearly a "
        "calculator. But values below the top are blurred by those above, and F T T | & already goes wrong.",
    ),
    Exhibit(
        "formula-lstm", "paper", works=False, row=14, seed=8,
        look="Pop and push are nearly the same for all symbols: it ignores its stack. Four values that wait"
        " for their operators can be too many: of the 128 formulas that begin with four and end with three "
        "operators it gets 29 wrong.",
    ),
    Exhibit(
        "formula-lstm-alone", "paper", works=False, row=15, seed=1,
        look="All values that wait for an operator are in its state. It is right on every formula of up to "
        "three values, but of the 128 that begin with four and end with three operators it gets 33 wrong.",
    ),
    Exhibit(
        "formula-linear-solved", "solved", works=True, row=13,
        look="T and F push a half each, and an operator pops both values and pushes a half that is the "
        "result: a calculator. In a formula of a hundred symbols or more some values can have faded.",
    ),
    Exhibit(
        "agreement-linear", "paper", works=False, row=16, seed=6,
        look="Only has and have pop much more than they push, so that a subject is still on the stack when "
        "its auxiliary comes. But every word pushes something on top of it: after “the lobster in the "
        "lobsters in the lobsters” it says have.",
    ),
    Exhibit(
        "agreement-lstm", "paper", works=False, row=17, seed=3,
        look="Pop and push hardly depend on the word: the stack is ignored and fills up. The state "
        "remembers a subject over a short clause, but a long one can be too much, and so can five subjects "
        "that wait.",
    ),
    Exhibit(
        "agreement-lstm-alone", "paper", works=False, row=18, seed=9,
        look="With its state alone it does about as well as with a stack that it ignores. Four subjects "
        "that wait for their auxiliaries can be too many, and of the 32 ways to have five it gets half "
        "wrong.",
    ),
    Exhibit(
        "agreement-lstm-solved", "solved", works=True, row=17,
        look="At every noun, verb and auxiliary the stack is as high as there are subjects that wait: a "
        "clause pushes one more vector as it begins, its has or have pops one, and other words replace the "
        "top. It loses a subject only after some two hundred words.",
    ),
)  # fmt: skip


def page() -> str:
    """The page of all of them, one at a time, each with what to look for and its two inputs."""
    inputs = json.loads((EXHIBITS / "inputs.json").read_text())
    runs = [store.load(EXHIBITS / exhibit.name) for exhibit in LISTED]
    firsts = [inputs[exhibit.name]["right"].split() for exhibit in LISTED]
    data, scripts = network_page.contents(runs, firsts, [WAYS[exhibit.way] for exhibit in LISTED])
    data["gallery"] = [
        {
            "name": exhibit.name,
            "works": exhibit.works,
            "look": exhibit.look,
            "way": WAYS[exhibit.way],
            "special": "" if exhibit.way == "paper" else exhibit.way,
            **inputs[exhibit.name],
        }
        for exhibit in LISTED
    ]
    commits = ", ".join(sorted({run.provenance["commit"] for run in runs}))
    stamp = f"{network_page.stamp()} The networks were made by tools/make_gallery.py at commit {commits}."
    return viewer.page(data, "Gallery", stamp=stamp, kinds=scripts)


def copy(out: Path) -> None:
    """Copies of the run directories, for use with other commands."""
    for exhibit in LISTED:
        if (out / exhibit.name).exists():
            raise BadInput(f"{out / exhibit.name} is there already: name another folder")
    for exhibit in LISTED:
        shutil.copytree(EXHIBITS / exhibit.name, out / exhibit.name)
