"""§2.1: last in, first out."""

from typing import ClassVar

from softstack.memory.items import Items, above
from softstack.memory.protocol import Drawn


class Stack(Items):
    """§2.1: last in, first out. `validate=False` trusts the strengths, as a network trusts its sigmoids."""

    name = "stack"
    drawn: ClassVar[Drawn] = "pile"
    ahead = staticmethod(above)
