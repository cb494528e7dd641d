"""Jaeger (2001): an echo state network. Its recurrent weights are drawn and never trained: buffers."""

import torch
from torch import nn


class Reservoir(nn.Module):
    """tanh of random sums of z and of its own last output h, half of them with the other sign."""

    def __init__(self, input_size, hidden_size, **kind):
        super().__init__()
        self.features = hidden_size
        self.register_buffer("weight", torch.empty(hidden_size, input_size + hidden_size, **kind))
        self.register_buffer("signs", torch.ones(hidden_size, dtype=torch.int64))
        self.reset_parameters()

    def reset_parameters(self, generator=None):
        if not self.weight.is_meta:
            self.weight.normal_(0, 0.8 * self.features**-0.5, generator=generator)
            self.signs[::2] = -1

    def init(self, batch, like):
        return (like.new_zeros(*batch, self.features),)

    def forward(self, z, h):
        new = self.signs * torch.tanh(torch.cat((z, h[0]), -1) @ self.weight.T)
        return new, (new,)


CONTROLLERS = {"reservoir": Reservoir}
