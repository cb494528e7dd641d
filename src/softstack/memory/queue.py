"""§2.3: first in, first out."""

from typing import ClassVar

from softstack.memory.items import Items, before
from softstack.memory.protocol import Drawn


class Queue(Items):
    """§2.3: first in, first out. `validate=False` trusts the strengths, as a network trusts its sigmoids."""

    name = "queue"
    drawn: ClassVar[Drawn] = "line"
    ahead = staticmethod(before)
