"""The buffers of a user's core. A trial's own are drawn with its first weights and saved with its last."""

from collections.abc import Sequence
from copy import deepcopy

import torch

from softstack.errors import BadInput
from softstack.lab.training.conditions import Network


@torch.no_grad()
def refuse_changes(network: Network, names: Sequence[str], letters: int) -> None:
    """Refuse buffers that change in training: a population and its checkpoints would lose that."""
    trained = deepcopy(network).train()
    before = {name: trained.get_buffer(name).clone() for name in names}
    with torch.random.fork_rng():
        trained(torch.eye(letters, device=next(network.parameters()).device).expand(2, -1, -1))
    for name, buffer in before.items():
        if not torch.equal(trained.get_buffer(name), buffer):
            raise BadInput(
                f"the controller {network.cell.controller_name!r} changes its buffer {name!r} while it "
                "trains, but a buffer must stay as it was drawn: keep what changes in the state h, or make "
                "it a parameter"
            )
