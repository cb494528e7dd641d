"""Table 1 by distributions: how likely the paper's figures are if its ten trials were drawn from ours.

That our median of ten lies inside the paper's [min, max] is a lenient test. With many trials of ours one can
ask more: draw ten of them, again and again, and see how often their min, median or max lies as far out as the
paper's, on the same side.

Our trials have test strings of their own. The authors tested the ten trials of a row on one file of strings:
networks that all guess in the same way then score the same. So for the test figures each draw is of one set
of strings and of ten trials on it.

distributions.json   every trial's dev and test accuracy, by row, and the probability of each figure
distributions.md     the same to read
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softstack.lab import tasks
from softstack.lab.reports import table1 as report
from softstack.lab.reports import writing
from softstack.lab.reports.scores import stacked
from softstack.lab.runs import store
from softstack.lab.tasks.data import Dataset
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import encoded
from softstack.lab.training.population import correct, tested
from softstack.words import counted

Row = report.Row
ENOUGH = 100  # trials of a row from which its distribution is known well enough
TRIALS, DRAWS = 10, 20_000  # of the paper, and how often as many are drawn from ours
UNLIKELY = 0.01
STRINGS = 8_000  # on which all trials of a row are scored
SETS = 400  # sets of test strings that are drawn from them
TOGETHER, AT_ONCE = 20, 1_000  # networks, and strings, that are scored at once
STATISTICS: dict[str, Callable[..., Any]] = {"min": np.min, "median": np.median, "max": np.max}


class Common(NamedTuple):
    """How the trials of a row score on the same strings, one by one."""

    right: NDArray[np.float64]  # (strings, trials) positions that are right
    scored: NDArray[np.float64]  # (strings,) positions that are scored

    def on_sets(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """(SETS, trials) accuracies on sets of so many of the strings, drawn with replacement."""
        chances = np.full(len(self.scored), 1 / len(self.scored))
        counts = rng.multinomial(size, chances, SETS)  # (SETS, strings)
        accuracies: NDArray[np.float64] = (counts @ self.right) / (counts @ self.scored)[:, None]
        return accuracies


def on_common_strings(
    root: Path, condition: Condition, seeds: Sequence[int], strings: int = STRINGS
) -> Common:
    """All trials of a row on test strings that none of them has for its own."""
    task = tasks.find(condition.task)
    rng = np.random.default_rng(10**6)
    data = encoded(condition, [task.example(word) for word in task.sample(rng, strings, "test")], "test")
    networks = [store.network(run) for run in writing.runs_of(root, condition, seeds)]
    right = np.empty((len(data.mask), len(seeds)))
    for first in range(0, len(seeds), TOGETHER):
        group = networks[first : first + TOGETHER]
        parameters = stacked(group)
        for begin in range(0, len(data.mask), AT_ONCE):
            part = Dataset(*(z[begin : begin + AT_ONCE] for z in data))
            y = tested(group[0], parameters, part.x.expand(len(group), -1, -1), len(task.alphabet))
            counts = correct(y, part).sum(-1)  # (networks, strings)
            right[begin : begin + AT_ONCE, first : first + TOGETHER] = counts.T
    return Common(right, data.mask.sum(-1).double().numpy())


def probabilities(
    trials: Sequence[Row], paper: Row, common: NDArray[np.float64] | None = None
) -> dict[str, float]:
    """Of each of the paper's figures, in percent: twice the smaller share of draws on either side of it, to
    the paper's one decimal. Test accuracies are those in `common` (sets, trials), else the trials' own."""
    rng = np.random.default_rng(0)
    chances = {}
    for split in ("dev", "test"):
        ours = 100 * np.array([trial[split] for trial in trials])
        draws = rng.choice(ours, (DRAWS, TRIALS))
        if split == "test" and common is not None:
            sets = rng.integers(len(common), size=(DRAWS, 1))
            draws = 100 * common[sets, rng.integers(len(trials), size=(DRAWS, TRIALS))]
        for name, statistic in STATISTICS.items():
            figure, values = paper[f"{split}_{name}"], statistic(draws, axis=1).round(1)
            below, above = (values <= figure + 1e-9).mean(), (values >= figure - 1e-9).mean()
            chances[f"{split}_{name}"] = float(min(1.0, 2 * min(below, above)))
    return chances


def rows(table: Sequence[Row], common: Sequence[NDArray[np.float64]]) -> list[Row]:
    """The rows of a table with the probability of each figure, and no more of a trial than its accuracies;
    `common` has those of each row on sets of strings that its trials share."""
    lines = []
    for row, scores in zip(table, common, strict=True):
        trials = [{name: trial[name] for name in ("seed", "dev", "test")} for trial in row["trials"]]
        first = {name: row[name] for name in ("row", "task", "buffered", "controller", "stack", "paper")}
        statistics = {name: row[name] for name in report.STATISTICS}
        chances = {
            "probability": probabilities(trials, row["paper"], scores),
            "on_own_strings": probabilities(trials, row["paper"]),
        }
        lines.append({**first, **statistics, **chances, "trials": trials})
    return lines


HEADER = ("task", "buffered", "controller", "stack", "ours: dev", "paper: dev", "ours: test", "paper: test")


def cells(row: Row) -> list[str]:
    """min / median / max of ours, and of the paper's each with its probability."""
    texts = [row["task"].replace("_", " "), row["buffered"], row["controller"], row["stack"]]
    for split in ("dev", "test"):
        names = [f"{split}_{name}" for name in STATISTICS]
        texts.append(" / ".join(f"{row[name]:.1f}" for name in names))
        texts.append(" / ".join(f"{row['paper'][n]:.1f} ({_chance(row['probability'][n])})" for n in names))
    return texts


def _chance(chance: float) -> str:
    text = f"{chance:.2f}" if chance >= UNLIKELY else f"{chance:.3f}" if chance >= 0.001 else "<0.001"
    return text if chance >= UNLIKELY else f"**{text}**"


def verdict(lines: Sequence[Row]) -> str:
    unlikely = [
        (row, name) for row in lines for name, chance in row["probability"].items() if chance < UNLIKELY
    ]
    figures = sum(len(row["probability"]) for row in lines)
    trials = counted(len(lines[0]["trials"]), "trial")
    sentences = (
        f"We have {trials} of each row. If the paper's ten were ten of ours, how likely would its figures "
        f"be? {len(unlikely)} of the paper's {figures} figures have a probability below {UNLIKELY}, where "
        f"chance gives about {UNLIKELY * figures:.0f}."
    )
    names = [f"{_named(row)}: {name.replace('_', ' ')} {row['paper'][name]:.1f}" for row, name in unlikely]
    return f"{sentences} The unlikely ones: {'; '.join(names)}." if names else sentences


def _named(row: Row) -> str:
    buffered = ", buffered" if row["buffered"] == "yes" else ""
    alone = "" if row["stack"] == "yes" else " without a stack"
    return f"{row['task'].replace('_', ' ')}{buffered}, {row['controller']}{alone}"


def markdown(lines: Sequence[Row], meta: Row) -> str:
    return f"{writing.table(HEADER, map(cells, lines))}\n\n{verdict(lines)} {report.stamp(meta)}\n"


def write(out: Path, lines: Sequence[Row], meta: Row) -> None:
    texts = {
        "distributions.json": json.dumps({**meta, "rows": lines}),
        "distributions.md": "# Table 1 by distributions\n\n" + markdown(lines, meta),
    }
    writing.write(out, texts)
