"""Adam (Kingma & Ba 2015), for a population."""

import torch
from torch import Tensor

from softstack.lab.training.conditions import Condition


class Adam:
    """Adam with L2 added to the gradient, on one vector of numbers for each trial; the gradient is cut to a
    norm first, if there is one to cut it to. A condition has its rates: an option is a field there and a line
    here.

    Each line rounds each number once, so a trial's vector does not depend on the others. PyTorch's own Adam
    rounds the last few numbers of a tensor in another way, and which ones those are depends on who is there.
    """

    def __init__(self, vectors: Tensor, condition: Condition) -> None:
        self.vectors = vectors  # (P, n), the parameters
        self.first, self.second, self.steps = torch.zeros_like(vectors), torch.zeros_like(vectors), 0
        self.of_step = vectors.detach().new_ones(3)  # what the moments are divided by, and the rate
        self.number = torch.zeros((), dtype=torch.int64, device=vectors.device)  # steps, for what is captured
        self.condition = condition

    def count(self) -> None:
        """Before a step: what differs from one step to the next, kept in a tensor for CUDA graphs."""
        self.steps += 1
        numbers = [1 - 0.9**self.steps, 1 - 0.999**self.steps, self.condition.rate(self.steps)]
        self.of_step.copy_(torch.tensor(numbers))
        self.number.fill_(self.steps)

    @torch.no_grad()
    def step(self, gradient: Tensor) -> None:
        clip, weight_decay = self.condition.gradient_clip, self.condition.weight_decay
        if clip:
            norms = gradient.double().square().sum(1, keepdim=True).sqrt()
            gradient = gradient * (clip / (norms + 1e-6)).clamp(max=1).to(gradient.dtype)
        gradient = gradient + self.vectors * weight_decay
        self.first.mul_(0.9).add_(gradient * (1 - 0.9))
        self.second.mul_(0.999).add_((gradient * gradient) * (1 - 0.999))
        unbias, unbias_second, rate = self.of_step
        first, second = self.first / unbias, self.second / unbias_second
        self.vectors.sub_(first / (second.sqrt() + 1e-8) * rate)

    def keep(self, places: list[int]) -> None:
        """Go on with the trials at these places alone."""
        self.vectors = self.vectors.detach()[places].requires_grad_()
        self.first, self.second = self.first[places], self.second[places]
