"""Delétang et al. 2023: arithmetic modulo 5 with brackets; its value, or what x must be.

    modular_arithmetic   input    ( 4 - ( 2 * - 3 ) ) #        4 - 2 * (5 - 3) = 0
                         target   _ _ _ _ _ _ _ _ _ _ 0
    solve_equation       input    ( 4 - ( x + 3 ) ) = 2 #      4 - (4 + 3) = -3 = 2
                         target   _ _ _ _ _ _ _ _ _ _ _ 4

Equations have no products, so that there is one solution, and their words have three symbols at least.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softstack.errors import BadInput
from softstack.formal.machines import arithmetic
from softstack.formal.transducer import Transducer
from softstack.lab.tasks import hierarchy
from softstack.lab.tasks.answering import MARK, answered, word_of
from softstack.lab.tasks.data import Example, Split

MODULUS = 5
DIGITS = tuple(str(digit) for digit in range(MODULUS))

Value = tuple[int, int]  # (a, b) is a + b x


@dataclass(frozen=True)
class Arithmetic:
    name: str
    operators: tuple[str, ...]
    has_unknown: bool = False

    source = hierarchy.SOURCE
    outputs = DIGITS
    padding = MARK
    loss = "sum"
    metrics = hierarchy.METRICS

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.alphabet

    @property
    def alphabet(self) -> tuple[str, ...]:
        unknown = ("x", "=") if self.has_unknown else ()
        return (*DIGITS, *self.operators, "(", ")", *unknown, MARK)

    @cached_property
    def machine(self) -> Transducer:
        return arithmetic(MODULUS, self.operators, MARK, unknown="x" if self.has_unknown else "")

    def length(self, split: Split) -> int:
        return hierarchy.longest(split) + 1

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> list[tuple[str, ...]]:
        """Of uniform lengths."""
        shortest = 3 if self.has_unknown else 1
        return [self._word(rng, length) for length in hierarchy.lengths(rng, n, split, shortest)]

    def of_length(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        return self._word(rng, max(3 if self.has_unknown else 1, length - 1))

    def example(self, symbols: tuple[str, ...]) -> Example:
        word = word_of(symbols)
        if not self.has_unknown:
            return answered(symbols, [DIGITS[value(word)[0]]])
        if len(word) < 3 or word[-2] != "=" or word[-1] not in DIGITS or word.count("x") != 1:
            raise BadInput(f"{' '.join(word)!r} is not an equation: write one like ( 1 + x ) = 3, with one x")
        a, b = value(word[:-2])
        return answered(symbols, [DIGITS[b * (int(word[-1]) - a) % MODULUS]])  # b is 1 or -1

    def _word(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """For an equation, a digit becomes x: that of a uniform place, or else the next one to its right."""
        if not self.has_unknown:
            return tuple(self._expression(rng, length))
        word = self._expression(rng, length - 2)
        result = value(tuple(word))[0]
        place = int(rng.integers(len(word)))
        while word[place] not in DIGITS:
            place = (place + 1) % len(word)
        word[place] = "x"
        return (*word, "=", DIGITS[result])

    def _expression(self, rng: np.random.Generator, length: int) -> list[str]:
        """d, -d, (d) or (-d), and from five symbols on (left operator right): the length of the left side,
        the operator and the digits are uniform."""
        if length < 5:
            digit = DIGITS[rng.integers(MODULUS)]
            return [[digit], ["-", digit], ["(", digit, ")"], ["(", "-", digit, ")"]][length - 1]
        left = int(rng.integers(1, length - 3))
        sides = self._expression(rng, left), self._expression(rng, length - 3 - left)
        return ["(", *sides[0], self.operators[rng.integers(len(self.operators))], *sides[1], ")"]


def value(word: tuple[str, ...]) -> Value:
    """Of an expression whose operators are all in brackets of their own."""
    fault = BadInput(
        f"{' '.join(word)!r} is not an expression with a pair of brackets for each operator, such as "
        "( 4 - ( 2 + - 3 ) )"
    )
    open_brackets: list[tuple[Value, str] | None] = []  # what stands before each operand to come, or nothing
    operand: Value | None = None  # the one that has just ended
    sign = 1
    for symbol in word:
        if operand is None and symbol in (*DIGITS, "x"):
            operand = (0, sign) if symbol == "x" else (sign * int(symbol) % MODULUS, 0)
            sign = 1
        elif operand is None and symbol == "-" and sign == 1:
            sign = -1
        elif operand is None and symbol == "(" and sign == 1:
            open_brackets.append(None)
        elif operand is not None and symbol in ("+", "-", "*") and open_brackets[-1:] == [None]:
            open_brackets[-1] = (operand, symbol)
            operand = None
        elif operand is not None and symbol == ")" and open_brackets:
            if (before := open_brackets.pop()) is not None:
                operand = _result(*before, operand)
        else:
            raise fault
    if operand is None or open_brackets:
        raise fault
    return operand


def _result(left: Value, operator: str, right: Value) -> Value:
    (a, b), (c, d) = left, right
    if operator == "*":
        return a * c % MODULUS, 0  # equations have no products
    sign = 1 if operator == "+" else -1
    return (a + sign * c) % MODULUS, b + sign * d


MODULAR_ARITHMETIC = Arithmetic("modular_arithmetic", ("+", "-", "*"))
SOLVE_EQUATION = Arithmetic("solve_equation", ("+", "-"), has_unknown=True)
