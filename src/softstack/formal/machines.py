"""Pushdown transducers: the paper's, ours for the tasks of §4 that it draws none for, and families of them.

Tasks name theirs (`lab/tasks`); nothing looks a task up here.
"""

from collections.abc import Sequence

from softstack.formal.transducer import BOTTOM, Rule, Transducer


def reversal(kept: Sequence[str], dropped: Sequence[str] = (), end: str = "") -> Transducer:
    """Push what is to be said again, forget the rest, and pop while reading #; then say `end`, if any."""
    rules = [Rule("q0", symbol, "", "q0", ("#",), (symbol,)) for symbol in kept]
    rules += [Rule("q0", symbol, "", "q0", ("#",), ()) for symbol in dropped]
    rules += [Rule("q0", "#", symbol, "q0", (symbol,), ()) for symbol in kept]
    if dropped or end:  # then there are more #s than symbols to say
        rules.append(Rule("q0", "#", BOTTOM, "q0", (end or "#",), (BOTTOM,)))
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


def counter(counted: Sequence[str], foretold: str, times: int, blank: str) -> Transducer:
    """Of a^n b^(times n), or a^n b^m c^(n+m): the first letters are counted, one run of each, and each is
    worth `times` of the last one, which it foretells. Then comes the first letter of another string.

    The first symbol of all lies under the others, marked, so that the last pop is known for what it is.
    """
    rules = [Rule("start", counted[0], "", counted[0], (blank,), ("first", *["more"] * (times - 1)))]
    for letter, following in zip(counted, [*counted[1:], foretold], strict=True):
        rules.append(Rule(letter, letter, "", letter, (blank,), ("more",) * times))
        if following != foretold:
            rules.append(Rule(letter, following, "", following, (blank,), ("more",) * times))
    for state in (counted[-1], foretold):
        rules.append(Rule(state, foretold, "more", foretold, (foretold,), ()))
        rules.append(Rule(state, foretold, "first", "end", (counted[0],), ()))
    return Transducer("start", rules)


def answering(
    moves: Sequence[Sequence[int]], letters: Sequence[str], answers: Sequence[str], mark: str
) -> Transducer:
    """A finite automaton that tells its state when it reads `mark`: moves[state][letter] is the next state,
    answers[state] what is said of it, and 0 is the first. It writes `mark` until then, and afterwards."""
    rules = []
    for state, row in enumerate(moves):
        for letter, following in zip(letters, row, strict=True):
            rules.append(Rule(f"q{state}", letter, "", f"q{following}", (mark,), ()))
        rules.append(Rule(f"q{state}", mark, "", "end", (answers[state],), ()))
    return Transducer("q0", [*rules, Rule("end", mark, "", "end", (mark,), ())])


def stack_program(symbols: Sequence[str], mark: str, end: str) -> Transducer:
    """Push the symbols that are read; POP and PUSH-x do what they say; reading `mark`, tell what is on the
    stack, the top first, and then `end`. A POP from the empty stack does nothing."""
    rules = [Rule("q", symbol, "", "q", (mark,), (symbol,)) for symbol in symbols]
    for state in ("q", "program"):
        rules += [Rule(state, f"PUSH-{symbol}", "", "program", (mark,), (symbol,)) for symbol in symbols]
        rules += [Rule(state, "POP", symbol, "program", (mark,), ()) for symbol in symbols]
        rules.append(Rule(state, "POP", BOTTOM, "program", (mark,), (BOTTOM,)))
        rules += [Rule(state, mark, symbol, "telling", (symbol,), ()) for symbol in symbols]
        rules.append(Rule(state, mark, BOTTOM, "told", (end,), (BOTTOM,)))
    rules += [Rule("telling", mark, symbol, "telling", (symbol,), ()) for symbol in symbols]
    rules += [
        Rule("telling", mark, BOTTOM, "told", (end,), (BOTTOM,)),
        Rule("told", mark, "", "told", (mark,), ()),
    ]
    return Transducer("q", rules)


def arithmetic(modulus: int, operators: Sequence[str], mark: str, unknown: str = "") -> Transducer:
    """The value of an expression in which each operator has brackets of its own, told when `mark` is read.

    The state is the value of the operand that has just ended, a + b x; the stack has a symbol for each open
    bracket: what stands in it before the operand to come. With an unknown there are no products, and an
    equals sign, a digit and then what the unknown must be.
    """
    signs = (0, 1, -1) if unknown else (0,)
    values = [(a, b) for b in signs for a in range(modulus)]
    names = {(a, b): str(a) + {0: "", 1: "+x", -1: "-x"}[b] for a, b in values}
    quiet = (mark,)
    rules = [Rule("operand", "(", "", "operand", quiet, ("(",)), Rule("operand", "-", "", "minus", quiet, ())]
    for state, sign in (("operand", 1), ("minus", -1)):
        rules += [Rule(state, str(a), "", names[sign * a % modulus, 0], quiet, ()) for a in range(modulus)]
        if unknown:
            rules.append(Rule(state, unknown, "", names[0, sign], quiet, ()))
    for (a, b), name in names.items():
        rules.append(Rule(name, ")", "(", name, quiet, ()))
        rules += [Rule(name, symbol, "(", "operand", quiet, (name + symbol,)) for symbol in operators]
        for (c, d), left in names.items():
            for symbol in operators if not (b and d) else ():
                total, slope = c * a if symbol == "*" else c + a, d + b
                if symbol == "-":
                    total, slope = c - a, d - b
                rules.append(Rule(name, ")", left + symbol, names[total % modulus, slope], quiet, ()))
        if not unknown:
            rules.append(Rule(name, mark, BOTTOM, "told", (name,), (BOTTOM,)))
        elif b:
            rules.append(Rule(name, "=", BOTTOM, name + "=", quiet, (BOTTOM,)))
            solutions = [f"x={b * (result - a) % modulus}" for result in range(modulus)]
            rules += [Rule(name + "=", str(k), "", solutions[k], quiet, ()) for k in range(modulus)]
    if unknown:
        rules += [Rule(f"x={a}", mark, "", "told", (str(a),), ()) for a in range(modulus)]
    return Transducer("operand", [*rules, Rule("told", mark, "", "told", quiet, ())])
