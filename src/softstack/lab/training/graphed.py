"""`Population.step` captured once as a CUDA graph and replayed: a GPU spends its time on launches else."""

import torch
from torch import Tensor

from softstack.lab.training.population import Population


def why_not(population: Population) -> str:
    """Why this step does not fit a population; "" where it does. A memory without a kernel is captured too:
    its many small launches gain the most."""
    device = population.optimiser.vectors.device
    return "" if device.type == "cuda" else f"there are no CUDA graphs on {device}"


def captured(population: Population, strings: Tensor) -> "Graphed | None":
    """The step as a graph; None where it cannot be captured, such as with a memory that looks at its numbers
    in Python."""
    try:
        return Graphed(population, strings)
    except RuntimeError as error:
        if "captur" not in str(error):
            raise
        return None


class Graphed:
    """Steps on batches like `strings` (P, B)."""

    def __init__(self, population: Population, strings: Tensor) -> None:
        optimiser = self.optimiser = population.optimiser
        self.strings = strings.clone()
        # the same numbers, but a leaf that no other stream has met, or it could not be captured
        optimiser.vectors = optimiser.vectors.detach().requires_grad_()
        changed = (optimiser.vectors, optimiser.first, optimiser.second)
        before = [x.detach().clone() for x in changed]
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(aside):
                population.update(self.strings)  # compiles what has to be compiled, and allocates
            torch.cuda.current_stream().wait_stream(aside)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.losses = population.update(self.strings)
        finally:
            with torch.no_grad():
                for x, was in zip(changed, before, strict=True):
                    x.copy_(was)

    def __call__(self, strings: Tensor) -> Tensor:
        self.strings.copy_(strings)
        self.optimiser.count()
        self.graph.replay()
        return self.losses.clone()
