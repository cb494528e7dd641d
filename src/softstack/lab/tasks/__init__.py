"""§4: the tasks, and those of other papers. A new one is a file like the others here and a line in TASKS, or
a plugin (lab/plugins.py).

Nothing else knows the tasks by name. What a task may have but need not is asked for by `of_length`,
`knows`, `machine_of`, `metrics_of`, `bounds_of`, `source_of`, `title_of`, `version_of` and `page_of`, which
have an answer for every task.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from statistics import fmean
from typing import NamedTuple, Protocol

import numpy as np

from softstack.errors import BadInput, unknown
from softstack.formal.beginnings import beginning
from softstack.formal.grammar import Grammar
from softstack.formal.running import Live
from softstack.formal.sampling import count_derivations, ends_before, mean_length, sample_derivations
from softstack.formal.transducer import Transducer
from softstack.lab.tasks import collection, prediction
from softstack.lab.tasks.agreement import Agreement
from softstack.lab.tasks.arithmetic import MODULAR_ARITHMETIC, SOLVE_EQUATION
from softstack.lab.tasks.binary_addition import BinaryAddition
from softstack.lab.tasks.counting import Counting
from softstack.lab.tasks.data import Example, Split
from softstack.lab.tasks.dyck import Dyck
from softstack.lab.tasks.formula import Formula
from softstack.lab.tasks.language_models import (
    DYCK_2_MODEL,
    HARDEST_CFL,
    MARKED_REVERSAL,
    PADDED_REVERSAL,
    UNMARKED_REVERSAL,
)
from softstack.lab.tasks.page import Page, recorded
from softstack.lab.tasks.parenthesis import Parenthesis
from softstack.lab.tasks.regular import CYCLE_NAVIGATION, EVEN_PAIRS, PARITY
from softstack.lab.tasks.reversal import Reversal
from softstack.lab.tasks.rewriting import REVERSE_STRING, SHORT_COPY, Rewriting
from softstack.lab.tasks.stack_manipulation import StackManipulation
from softstack.lab.tasks.transduction import Transduction, of_text
from softstack.lab.tasks.translation import GENDER_CONJUGATION, SVO_TO_SOV
from softstack.lab.tasks.xor import Xor


class Task(Protocol):
    """Strings with targets. Networks see a string's symbols one-hot, in the order of the alphabet.

    A task may also have

        grammar                  what its strings are derived from: `longer` draws from deeper derivations
        of_length(rng, length)   a string of about this many symbols, which may be thousands
        machine                  the pushdown transducer that does the task: it writes one symbol for each
                                 that it reads, and the target wherever there is one
        metrics                  how its paper scores networks: names in METRICS
        surprisals(strings)      the nats that the source of the strings needs for each: -log p(string)
        source                   the paper that it comes from
        title                    what it is called in pages, where that is not its name in words
        repeats                  True where there are too few strings for test strings that are all distinct
        examples(rng, n, split)  the examples of a split, where its strings are not drawn: all, or n of them
        sizes                    how many strings its splits have, as fields of a Condition, where it has few
        knows(symbols)           whether the targets of a string are known, where that is not so of every one
        page                     how the page of `softstack view` computes it, see tasks/page.py
        version                  to be raised when the task changes: what was trained on another version is
                                 not mixed with what is trained on this one
    """

    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...  # symbols that strings are made of
    @property
    def outputs(self) -> tuple[str, ...]: ...  # symbols that can be targets
    @property
    def alphabet(self) -> tuple[str, ...]: ...  # all of these and the padding symbol
    @property
    def padding(self) -> str: ...
    @property
    def loss(self) -> str: ...  # the authors' loss for this task, a name in LOSSES

    def length(self, split: Split) -> int:
        """The steps to which the strings of a split are padded."""

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """n strings from the distribution of a split (§5), repetitions included."""

    def example(self, symbols: tuple[str, ...]) -> Example:
        """A string as the network is given it, and its targets."""


TASKS: dict[str, Task] = {
    "reversal": Reversal(),
    "selective_reversal": Reversal(name="selective_reversal", dropped=("2", "3")),
    "xor": Xor(),
    "delayed_xor": Xor(name="delayed_xor", delay=1),
    "parenthesis": Parenthesis(),
    "formula": Formula(),
    "agreement": Agreement(),
    "copy": Rewriting("copy", "same"),
    "short_copy": SHORT_COPY,
    "long_reversal": Rewriting("long_reversal", "reversed"),
    "bigram_flipping": Rewriting("bigram_flipping", "pairs"),
    "svo_to_sov": SVO_TO_SOV,
    "gender_conjugation": GENDER_CONJUGATION,
    "anbn": Counting("anbn", (("a", 1, 0), ("b", 1, 0))),
    "anbncn": Counting("anbncn", (("a", 1, 0), ("b", 1, 0), ("c", 1, 0))),
    "anbncndn": Counting("anbncndn", (("a", 1, 0), ("b", 1, 0), ("c", 1, 0), ("d", 1, 0))),
    "anb2n": Counting("anb2n", (("a", 1, 0), ("b", 2, 0))),
    "anbmcnm": Counting("anbmcnm", (("a", 1, 0), ("b", 0, 1), ("c", 1, 1))),
    "binary_addition": BinaryAddition(),
    "reverse_string": REVERSE_STRING,
    "stack_manipulation": StackManipulation(),
    "modular_arithmetic": MODULAR_ARITHMETIC,
    "solve_equation": SOLVE_EQUATION,
    "parity": PARITY,
    "even_pairs": EVEN_PAIRS,
    "cycle_navigation": CYCLE_NAVIGATION,
    "marked_reversal": MARKED_REVERSAL,
    "unmarked_reversal": UNMARKED_REVERSAL,
    "padded_reversal": PADDED_REVERSAL,
    "dyck_2_model": DYCK_2_MODEL,
    "hardest_cfl": HARDEST_CFL,
    "dyck_1": Dyck("dyck_1", 1),
    "dyck_2": Dyck("dyck_2", 2),
    "dyck_3": Dyck("dyck_3", 3),
    "dyck_4": Dyck("dyck_4", 4),
    "dyck_5": Dyck("dyck_5", 5),
    "dyck_6": Dyck("dyck_6", 6),
    "dyck_2_deep": Dyck(
        "dyck_2_deep", 2, tested=(2, 50), depth=5, tested_depth=15, source="Skachkova et al. 2018"
    ),
    "dyck_2_3": Dyck("dyck_2_3", 2, (2, 82), (86, 166), depth=3, source="Hewitt et al. 2020"),
    "dyck_8_5": Dyck("dyck_8_5", 8, (2, 178), (182, 358), depth=5, source="Hewitt et al. 2020"),
}


def find(name: str) -> Task:
    """A task by its name, by the text of the grammar or of the pushdown transducer that it is, or by the name
    of examples from files that this process has read."""
    if name.startswith(prediction.MARK):
        return prediction.of_grammar(name)
    if name.startswith(collection.MARK):
        if (examples := collection.held(name)) is None:
            raise BadInput(
                f"the examples of {name} are not here: their copy, {name}.tsv, belongs into the folder of "
                "the run's condition, or into the run directory"
            )
        return examples
    if "->" in name or "→" in name:
        return of_text(name)
    if name not in TASKS:
        raise BadInput(f"{unknown('task', name, TASKS)}; one of your own needs --plugin FILE.py")
    return TASKS[name]


def draw(task: Task, rng: np.random.Generator, n: int, split: Split) -> list[Example]:
    """n examples of a split. Those of the test set are distinct, unless the task says that there are too few;
    elsewhere repetitions happen. A task that has its own examples gives those."""
    own: Callable[[np.random.Generator, int, Split], list[Example]] | None = getattr(task, "examples", None)
    if own is not None:
        return own(rng, n, split)
    if split != "test" or getattr(task, "repeats", False):
        return [task.example(symbols) for symbols in task.sample(rng, n, split)]
    distinct: dict[tuple[str, ...], None] = {}
    while len(distinct) < n:
        before = len(distinct)
        distinct.update(dict.fromkeys(task.sample(rng, n, split)))
        if len(distinct) - before < n / 1000:
            raise BadInput(f"{task.name} has too few distinct test strings for {n} of them: ask for fewer")
    return [task.example(symbols) for symbols in list(distinct)[:n]]


def shown(task: Task) -> Example:
    """A training example that fits on a line."""
    return min(
        draw(task, np.random.default_rng(0), 20, "train"), key=lambda example: abs(len(example.input) - 12)
    )


class Typed(NamedTuple):
    """A string that somebody typed, which may leave the task's language."""

    example: Example
    left: int | None  # the place, from 0, of the symbol with which it leaves; None where it does not
    known: bool = True  # whether anything is known of its targets

    @property
    def sentence(self) -> str:
        """What is said of a string that leaves the language or is not known, as in panel.js; else ""."""
        if not self.known:
            return "The targets of this string are not known: nothing is scored."
        if self.left is None:
            return ""
        symbol = self.example.input[self.left]
        return (
            f"The string leaves the task's language at symbol {self.left + 1}, {symbol}: "
            "nothing is scored from there on."
        )


def typed(task: Task, symbols: tuple[str, ...]) -> Typed:
    """The example of any string. The task's machine, if it has one, knows where a string leaves its language:
    nothing is scored from there on, and if the network was asked for the symbol with which it does, the right
    answer is what the machine says. So does the grammar whose next symbols are asked for, but it leaves the
    answer open. The padding symbol may always follow."""
    example = task.example(symbols)
    if not knows(task, symbols):
        return Typed(example, None, known=False)
    outputs = _said(task, example.input)
    read = len(outputs)
    if set(example.input[read:]) <= {task.padding}:
        return Typed(example, None)
    if all(len(written) == 1 for written in outputs):
        target = [*example.target[:read], *[None] * (len(example.input) - read)]
        if read and target[read - 1] == example.input[read]:
            (right,) = outputs[-1]
            target[read - 1] = right if right in task.outputs else None
        example = example._replace(target=tuple(target))
    return Typed(example, read)


def knows(task: Task, symbols: tuple[str, ...]) -> bool:
    """Whether the targets of a string are known."""
    own: Callable[[tuple[str, ...]], bool] | None = getattr(task, "knows", None)
    return own is None or own(symbols)


def whole(task: Task, example: Example) -> Example:
    """An example with all that should be said, where that may be more than is read."""
    if isinstance(task, Transduction) and len(example.input) == len(example.target):
        longer = task.whole(example.input)
        return longer if len(longer.target) > len(example.target) else example
    return example


def _said(task: Task, symbols: Sequence[str]) -> list[tuple[str, ...]]:
    """What a task's machine writes at each symbol, as far as it reads; nothing at all if there is none."""
    machine = machine_of(task)
    if machine is None:
        grammar: Grammar | None = getattr(task, "grammar", None)
        if grammar is None or (getattr(task, "page", None) or {}).get("kind") != "next":
            return [()] * len(symbols)
        return [("",)] * beginning(grammar, symbols)
    live, outputs = Live(machine), list[tuple[str, ...]]()
    live.settle()
    for symbol in symbols:
        if (written := live.feed(symbol)) is None:
            break
        outputs.append(written)
    return outputs


def of_length(task: Task, rng: np.random.Generator, n: int, length: int) -> list[Example]:
    """n examples of about this many symbols, the #s of a reversal among them.

    A task that does not build strings of any length has those of its splits. It gives the longest of them,
    and none at all for a length beyond its test strings.
    """
    build = getattr(task, "of_length", None)
    if build is not None:
        words = [build(rng, length) for _ in range(n)]
        return [task.example(word) for word in words]
    splits: tuple[Split, ...] = ("train", "test")
    split = next((split for split in splits if length <= task.length(split)), None)
    if split is None:
        return []
    examples = [task.example(word) for word in task.sample(rng, 10 * n, split)]
    return sorted(examples, key=lambda example: len(example.input))[-n:]


def longer(task: Task, rng: np.random.Generator, n: int, factor: int) -> list[Example]:
    """n examples about `factor` times as long as those of the training, as the paper draws its test strings:
    uniform over deeper derivations of the task's grammar, where it has one; else those of `of_length`."""
    grammar = getattr(task, "grammar", None)
    if grammar is None:
        return of_length(task, rng, n, factor * task.length("train"))
    trained_on = task.sample(np.random.default_rng(0), 500, "train")
    depth = _depth(grammar, factor * fmean(map(len, trained_on)))
    return [task.example(word) for word in sample_derivations(grammar, rng, n, depth)]


@cache
def _depth(grammar: Grammar, length: float) -> int:
    """The depth whose strings are nearest to this length, on average."""
    means = {}
    for depth in count(2):
        if count_derivations(grammar, depth):
            means[depth] = mean_length(grammar, depth)
            if means[depth] > length or ends_before(grammar, depth):
                return min(means, key=lambda depth: abs(means[depth] - length))
    raise AssertionError("unreachable")


def machine_of(task: Task) -> Transducer | None:
    """The pushdown transducer that does a task, where one is known."""
    machine: Transducer | None = getattr(task, "machine", None)
    return machine


def metrics_of(task: Task) -> tuple[str, ...]:
    """How the task's paper scores networks, by the names in METRICS."""
    metrics: tuple[str, ...] = getattr(task, "metrics", ("symbols",))
    return metrics


def bounds_of(task: Task, strings: Sequence[tuple[str, ...]]) -> list[float]:
    """The nats that the source needs for each string; no network needs fewer, on average. 0 where the task
    does not say."""
    surprisals = getattr(task, "surprisals", None)
    return [0.0] * len(strings) if surprisals is None else list(surprisals(strings))


def source_of(task: Task) -> str:
    """The paper that a task comes from; "" where it does not say."""
    source: str = getattr(task, "source", "")
    return source


def title_of(name: str) -> str:
    """What the task of a name is called; "" where it does not say."""
    title: str = getattr(TASKS.get(name), "title", "")
    return title


def version_of(task: Task) -> int:
    version: int = getattr(task, "version", 1)
    return version


def page_of(task: Task) -> Page:
    """What tasks.js needs to score strings of a task and to draw them; by default, examples."""
    page: Page | None = getattr(task, "page", None)
    return recorded(task) if page is None else page
