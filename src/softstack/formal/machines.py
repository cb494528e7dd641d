"""Pushdown transducers: the paper's, ours for the tasks of §4 that it draws none for, and two families.

Tasks name theirs (`lab/tasks`); nothing looks a task up here.
"""

from collections.abc import Sequence

from softstack.formal.transducer import BOTTOM, Rule, Transducer


def reversal(kept: Sequence[str], dropped: Sequence[str] = ()) -> Transducer:
    """Push what is to be said again, forget the rest, and pop while reading #."""
    rules = [Rule("q0", symbol, "", "q0", ("#",), (symbol,)) for symbol in kept]
    rules += [Rule("q0", symbol, "", "q0", ("#",), ()) for symbol in dropped]
    rules += [Rule("q0", "#", symbol, "q0", (symbol,), ()) for symbol in kept]
    if dropped:  # then there are more #s than symbols to say
        rules.append(Rule("q0", "#", BOTTOM, "q0", ("#",), (BOTTOM,)))
    return Transducer("q0", rules)


PDTS: dict[str, Transducer] = {
    # Figure 3: w #^|w| -> #^|w| w^R, e.g. 100### -> ###001.
    "reversal": reversal("01"),
    # Figure 4, left: the state is the XOR so far, and is written after reading, e.g. 1101 -> 1001.
    "xor": Transducer.parse("""
        start 0
        0 -> 0   0 : 0
        0 -> 1   1 : 1
        1 -> 1   0 : 1
        1 -> 0   1 : 0
    """),
    # §4.2: the same states, written before reading, e.g. 1101 -> 0100.
    "delayed_xor": Transducer.parse("""
        start 0
        0 -> 0   0 : 0
        0 -> 1   1 : 0
        1 -> 1   0 : 1
        1 -> 0   1 : 1
    """),
    # Figure 4, right: after each symbol the bracket that closes the innermost open one, e.g. ([]) -> )]).
    "parenthesis": Transducer.parse("""
        start q1
        q1 -> q1   ( : ) , ε -> (
        q1 -> q1   [ : ] , ε -> [
        q1 -> q2   ) : ε , ( -> ε
        q1 -> q2   ] : ε , [ -> ε
        q2 -> q1   ε : ) , ( -> (
        q2 -> q1   ε : ] , [ -> [
        q2 -> q1   ε : ε , $ -> $
    """),
    # Figure 5, centre (§6): only 0 and 1 are reversed, then # again, e.g. 2031#### -> ####10##.
    "selective_reversal": reversal("01", dropped="23"),
    # §4.4: the state is the value on top, the stack holds those beneath it, e.g. T F | T & -> 1 0 1 1 1.
    "formula": Transducer.parse("""
        start none
        none -> 1   T : 1
        none -> 0   F : 0
        0 -> 1      T : 1 , ε -> 0
        1 -> 1      T : 1 , ε -> 1
        0 -> 0      F : 0 , ε -> 0
        1 -> 0      F : 0 , ε -> 1
        0 -> 0      & : 0 , 0 -> ε
        0 -> 0      & : 0 , 1 -> ε
        1 -> 0      & : 0 , 0 -> ε
        1 -> 1      & : 1 , 1 -> ε
        0 -> 0      | : 0 , 0 -> ε
        0 -> 1      | : 1 , 1 -> ε
        1 -> 1      | : 1 , 0 -> ε
        1 -> 1      | : 1 , 1 -> ε
    """),
    # §4.5: the stack holds the number of each noun that waits for an auxiliary of its own, innermost on top.
    # Nouns after `in` and `devoured` have none; after `that` comes the auxiliary of the noun before it.
    "agreement": Transducer.parse("""
        start clause
        clause -> subject       the : _
        subject -> singular     lobster : has , ε -> s
        subject -> plural       lobsters : have , ε -> p
        inside -> other         the : _
        other -> singular       lobster : has , s -> s
        other -> singular       lobster : have , p -> p
        other -> plural         lobsters : has , s -> s
        other -> plural         lobsters : have , p -> p
        singular -> inside      in : _
        plural -> inside        in : _
        singular -> that-one    that : has
        plural -> that-many     that : have
        that-one -> verb        has : _
        that-many -> verb       have : _
        that-one -> subject     the : _
        that-many -> subject    the : _
        verb -> ended           slept : has , s -> s
        verb -> ended           slept : have , p -> p
        verb -> inside          devoured : _
        singular -> said        has : _ , s -> ε
        singular -> said        have : _ , p -> ε
        plural -> said          has : _ , s -> ε
        plural -> said          have : _ , p -> ε
        ended -> said           has : _ , s -> ε
        ended -> said           have : _ , p -> ε
        said -> ended           devoured : has , s -> s
        said -> ended           devoured : have , p -> p
    """),
}


def dyck(pairs: Sequence[tuple[str, str]], blank: str = "") -> Transducer:
    """Figure 4, right, for any pairs of brackets. Where no bracket is open it writes `blank`, nothing if "".

    With a blank it writes exactly one symbol for each that it reads, as a task's targets are laid out.
    """
    rules = [Rule("q1", a, "", "q1", (b,), (a,)) for a, b in pairs]
    rules += [Rule("q1", b, a, "q2", (), ()) for a, b in pairs]
    rules += [Rule("q2", "", a, "q1", (b,), (a,)) for a, b in pairs]
    return Transducer("q1", [*rules, Rule("q2", "", BOTTOM, "q1", (blank,) if blank else (), (BOTTOM,))])


def real_time_dyck(pairs: Sequence[tuple[str, str]], blank: str) -> Transducer:
    """The same without ε-moves, in one state: each symbol on the stack also says what lies beneath it."""
    closing = {**dict(pairs), BOTTOM: blank}
    rules = []
    for a, b in pairs:
        for under in (BOTTOM, *(x for x, _ in pairs)):
            rules.append(Rule("q", b, a + under, "q", (closing[under],), ()))
        tops = [(BOTTOM, BOTTOM), *((x + under, x) for x, _ in pairs for under in closing)]
        rules += [Rule("q", a, top, "q", (b,), (top, a + symbol)) for top, symbol in tops]
    return Transducer("q", rules)
