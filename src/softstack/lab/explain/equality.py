"""Whether two machines, two networks, or one of each say the same.

Of a network the machine that is read off it is compared, and then the networks themselves are asked: a word
that tells the machines apart, what it begins, and words that lead into every situation of either machine.
Only a word that tells the networks apart counts. Equal are networks only where they said what their machines
say to every new string: what they do after a rare word stays unknown.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from softstack.formal.equivalence import Comparison, Difference, compare, covering
from softstack.formal.product import Word
from softstack.formal.recognising import is_recogniser, with_verdicts
from softstack.formal.transducer import Transducer
from softstack.lab import tasks
from softstack.lab.explain.ablation import Network
from softstack.lab.explain.extract import LONGEST, extract
from softstack.lab.explain.fidelity import output_of, outputs
from softstack.lab.tasks.data import Example
from softstack.lab.training.conditions import Condition

FURTHER = 3  # symbols by which a word is made longer, where one machine is stuck and the other silent


class Party(NamedTuple):
    """A machine or a network that is compared."""

    machine: Transducer | None
    network: Network | None = None
    condition: Condition | None = None
    note: str = ""  # how a network's machine was found
    agreed: int = 0  # new strings to which a network said what its machine says, if that is all of them

    @property
    def says_all(self) -> bool:
        """Whether all that it writes counts: without buffers it also writes where nothing is asked."""
        return self.condition is None or self.condition.buffered

    def answers(self, words: Sequence[Word]) -> list[list[str]]:
        """The whole answers to words, by the network itself where there is one that knows the symbols."""
        by_network: dict[Word, list[str]] = {}
        if self.network is not None and self.condition is not None:
            alphabet = set(tasks.find(self.condition.task).alphabet)
            known = [word for word in dict.fromkeys(words) if word and set(word) <= alphabet]
            strings = [Example(word, (None,) * len(word)) for word in known]
            if strings:
                by_network = dict(zip(known, outputs(self.network, self.condition, strings), strict=True))
        machine = self.machine
        return [
            by_network[word] if word in by_network else [] if machine is None else output_of(machine, word)
            for word in words
        ]


def network_party(network: Network, condition: Condition, seed: int) -> Party:
    """The machine that is read off a network, if that explains it."""
    extraction = extract(network, condition, seed)
    machine = extraction.machine if extraction.explained else None
    return Party(machine, network, condition, extraction.sentence, extraction.agreed)


def equal(first: Party, second: Party, *, within_first: bool = False) -> Comparison:
    """One of three answers. Two networks are equal if the machines that explain them are."""
    if first.machine is None or second.machine is None:
        name = "first" if first.machine is None else "second"
        return Comparison("undecided", None, None, f"no machine explains the {name}")
    machines = [first.machine, second.machine]
    networks = first.network is not None or second.network is not None
    if networks:  # what they accept is heard only where they write it
        machines = [with_verdicts(m) if is_recogniser(m) else Transducer(m.start, m.rules) for m in machines]
    first, second = (p._replace(machine=m) for p, m in zip((first, second), machines, strict=True))
    answer = compare(*machines, within_first=within_first)
    told_apart = answer.difference
    if not networks or answer.answer == "undecided" or (told_apart and not told_apart.word):
        return answer
    says_all = first.says_all and second.says_all
    words = [] if told_apart is None else [told_apart.word]
    if says_all:
        words = [word for seed in words for word in _further(seed, machines)]
        if not within_first:
            rng = np.random.default_rng(0)
            covered = [word for m in machines for word in covering(m, rng) if len(word) <= LONGEST]
            words += sorted(covered, key=len)
    found = _apart(first, second, words)
    if found is not None:
        return answer if not says_all else Comparison("different", found, None, "the networks were asked")
    if told_apart is not None:
        reason = f"at {' '.join(told_apart.word)} the machines differ, and what the networks write does not"
        return Comparison("undecided", None, len(told_apart.word) - 1, reason)
    for name, party in (("first", first), ("second", second)):
        if party.network is not None and not party.agreed:
            reason = f"some strings were found to which the {name} does not say what its machine says"
            return Comparison("undecided", None, None, f"the machines are equal, but {reason}")
    count = min(party.agreed for party in (first, second) if party.network is not None)
    reason = f"{answer.reason}; of a network this is known by {count} strings, and not of what is rarer"
    return answer._replace(reason=reason)


def _further(word: Word, machines: Sequence[Transducer]) -> list[Word]:
    """The word, and those that begin with it and go on for a few symbols, short ones first."""
    alphabet = tuple(dict.fromkeys(symbol for machine in machines for symbol in machine.alphabet))
    lengths = [n for n in range(FURTHER + 1) if len(alphabet) ** n <= 1000]
    return [(*word, *more) for n in lengths for more in product(alphabet, repeat=n)]


def _apart(first: Party, second: Party, words: Sequence[Word]) -> Difference | None:
    """The first of these words to which the two give other answers, cut off where that shows."""
    pairs = zip(words, first.answers(words), second.answers(words), strict=True)
    word = next((word for word, ours, theirs in pairs if ours != theirs), None)
    if word is None:
        return None
    beginnings = [word[:n] for n in range(1, len(word) + 1)]
    ours, theirs = first.answers(beginnings), second.answers(beginnings)
    n = next(
        (n for n, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1]), len(word) - 1
    )
    before = len(ours[n - 1]) if n else 0
    return Difference(beginnings[n], tuple(ours[n][before:]), tuple(theirs[n][before:]))
