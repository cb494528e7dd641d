"""Kinds of options that commands share."""

from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter


def whole(kind: Any, tokens: Sequence[Any]) -> int:
    """A whole number, and not one that a fraction is rounded to."""
    return int(tokens[0].value)


Whole = Annotated[int, Parameter(converter=whole)]
