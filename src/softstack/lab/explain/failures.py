"""Parts of docs/solved.md: the trials of solved.json that fail, and those whose machine is not the task's."""

from collections.abc import Mapping, Sequence

from softstack.lab.explain.solved import median_of, same_machine
from softstack.lab.reports import names, writing
from softstack.lab.reports.writing import SOLVED, Line

Trainings = Mapping[str, Mapping[str, Sequence[Line]]]  # trials by condition and training


def failures(rows: Sequence[Line], trainings: Trainings) -> str:
    """The trials of the recipe that do not solve their task, and whether their dev loss shows it: beside each
    stands the highest loss among those of the same network and training that do."""
    lines, higher = [], 0
    for row in solved_by_recipe(rows):
        for title, trials in trainings[row["condition"]].items():
            highest = max((t["dev_loss"] for t in trials if t["test"] >= SOLVED), default=float("nan"))
            for trial in trials:
                if trial["test"] < SOLVED:
                    higher += trial["dev_loss"] > highest
                    numbers = f"{100 * trial['test']:.2f}", f"{trial['dev_loss']:.2e}", f"{highest:.2e}"
                    lines.append([*network(row), title, str(trial["seed"]), *numbers])
    count = sum(len(trials) for by_title in trainings.values() for trials in by_title.values())
    header = ("task", "network", "training", "seed", "test", "dev loss", "highest of those that solve it")
    return (
        f"{writing.table(header, lines)}\n\n{len(lines)} of {count} trials fail. The dev loss of {higher} of "
        "them is higher than that of every trial of the same network and training that solves the task."
    )


def machines(rows: Sequence[Line]) -> str:
    """The solved trials whose machine is not the task's, by network, and how both kinds do at 50x."""
    lines, words, lengths = [], [], set()
    for row in solved_by_recipe(rows):
        wins = [trial for trial in row["trials"] if trial["test"] >= SOLVED]
        equal, unequal = ([t for t in wins if same_machine(t) == same] for same in (True, False))
        lengths |= {trial["length"] for trial in equal}
        name = ", ".join(network(row))
        words += [f"{name}, seed {t['seed']} on `{t['word']}`" for t in unequal if "word" in t]
        if unequal:
            seeds = ", ".join(str(trial["seed"]) for trial in unequal)
            none = sum(trial["machine"] == "none" for trial in unequal)
            medians = (median_of(trials, "test_50x") for trials in (unequal, equal))
            lines.append([*network(row), seeds, str(none), *medians])
    header = ("task", "network", "seeds", "no machine found", "50x", "50x, machine is the task's")
    differ = f" Machines that differ: {'; '.join(words)}." if words else ""
    return (
        f"{writing.table(header, lines)}\n\nSolved trials, medians in percent. Machines were compared on "
        f"every string of up to {min(lengths)} to {max(lengths)} symbols, by task.{differ}"
    )


def solved_by_recipe(rows: Sequence[Line]) -> list[Line]:
    return [row for row in rows if row["recipe"] == "solve" and row["memory"] == "stack"]


def network(row: Line) -> tuple[str, str]:
    return row["task"].replace("_", " "), names.network(row["controller"], buffered=row["buffered"])
