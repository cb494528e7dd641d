"""Whether two machines, two networks, or one of each say the same.

Of a network the machine that is read off it is compared. A word that tells the machines apart is given to
the networks themselves, and counts only if it tells them apart too. Equal are networks only where they said
what their machines say to every new string.
"""

from typing import NamedTuple

from softstack.formal.equivalence import Comparison, compare
from softstack.formal.recognising import is_recogniser, with_verdicts
from softstack.formal.transducer import Transducer
from softstack.lab import tasks
from softstack.lab.explain.ablation import Network
from softstack.lab.explain.extract import extract
from softstack.lab.explain.fidelity import output_of, outputs
from softstack.lab.tasks.data import Example
from softstack.lab.training.conditions import Condition


class Party(NamedTuple):
    """A machine or a network that is compared."""

    machine: Transducer | None
    network: Network | None = None
    condition: Condition | None = None
    note: str = ""  # how a network's machine was found
    agreed: int = 0  # new strings to which a network said what its machine says, if that is all of them

    def says(self, word: tuple[str, ...]) -> list[str]:
        """The whole answer to a word, by the network itself where there is one that knows the symbols."""
        alphabet = () if self.condition is None else tasks.find(self.condition.task).alphabet
        if self.network is not None and self.condition is not None and set(word) <= set(alphabet):
            return outputs(self.network, self.condition, [Example(word, (None,) * len(word))])[0]
        return [] if self.machine is None else output_of(self.machine, word)


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
    answer = compare(*machines, within_first=within_first)
    word = () if answer.difference is None else answer.difference.word
    if word and networks and first.says(word) == second.says(word):
        reason = f"at {' '.join(word)} a network does not say what the machine read off it says"
        return Comparison("undecided", None, len(word) - 1, reason)
    if answer.answer == "equal":
        for name, party in (("first", first), ("second", second)):
            if party.network is not None and not party.agreed:
                reason = f"some strings were found to which the {name} does not say what its machine says"
                return Comparison("undecided", None, None, f"the machines are equal, but {reason}")
    return answer
