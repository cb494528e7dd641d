"""Adam (Kingma & Ba 2015), for a population."""

import torch
from torch import Tensor


class Adam:
    """Adam with L2 added to the gradient, on one vector of numbers for each trial.

    Each line rounds each number once, so a trial's vector does not depend on the others. PyTorch's own Adam
    rounds the last few numbers of a tensor in another way, and which ones those are depends on who is there.
    """

    def __init__(self, vectors: Tensor, learning_rate: float, weight_decay: float) -> None:
        self.vectors = vectors  # (P, n), the parameters
        self.first, self.second, self.steps = torch.zeros_like(vectors), torch.zeros_like(vectors), 0
        self.unbias = vectors.detach().new_ones(2)  # what the moments are divided by
        self.learning_rate, self.weight_decay = learning_rate, weight_decay

    def count(self) -> None:
        """Before a step: what differs from one step to the next, kept in a tensor for CUDA graphs."""
        self.steps += 1
        self.unbias.copy_(torch.tensor([1 - 0.9**self.steps, 1 - 0.999**self.steps]))

    @torch.no_grad()
    def step(self, gradient: Tensor) -> None:
        gradient = gradient + self.vectors * self.weight_decay
        self.first.mul_(0.9).add_(gradient * (1 - 0.9))
        self.second.mul_(0.999).add_((gradient * gradient) * (1 - 0.999))
        first, second = self.first / self.unbias[0], self.second / self.unbias[1]
        self.vectors.sub_(first / (second.sqrt() + 1e-8) * self.learning_rate)

    def keep(self, places: list[int]) -> None:
        """Go on with the trials at these places alone."""
        self.vectors = self.vectors.detach()[places].requires_grad_()
        self.first, self.second = self.first[places], self.second[places]
