"""A minimal gated unit (Zhou et al. 2016): one gate where a GRU has two, and here a layer normalisation."""

import torch
from torch import nn


class MGU(nn.Module):
    """Sees z = [x_t; r_{t-1}] and its own last output h."""

    def __init__(self, input_size, hidden_size, **kind):
        super().__init__()
        self.features = hidden_size
        self.from_input = nn.Linear(input_size, 2 * hidden_size, **kind)
        self.from_hidden = nn.Linear(hidden_size, 2 * hidden_size, **kind)
        self.norm = nn.LayerNorm(hidden_size, **kind)

    def init(self, batch, like):
        return (like.new_zeros(*batch, self.features),)

    def forward(self, z, h):
        (h,) = h
        forget_z, new_z = self.from_input(z).chunk(2, -1)
        forget_h, new_h = self.from_hidden(h).chunk(2, -1)
        forget = torch.sigmoid(forget_z + forget_h)
        new = torch.tanh(self.norm(new_z + forget * new_h))
        h = h + forget * (new - h)  # (B, hidden)
        return h, (h,)


CONTROLLERS = {"mgu": MGU}
