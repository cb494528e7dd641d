"""How fast: each kernel beside the reference and beside a loop written as the equations read, in one run.

A case first compares outputs and gradients, and is not timed where they differ. Times are medians of repeats,
forward and backward together, on one thread where no other number is given; what counts are the ratios.
"""

import importlib
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

import softstack as ss
from softstack.errors import BadInput
from softstack.lab.training.conditions import Condition
from softstack.lab.training.population import Population
from softstack.lab.training.train import fastest
from softstack_command import forks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STRENGTHS: dict[str, Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    "random": lambda u, d: (u, d),
    "tiny": lambda u, d: (u / 100, d / 100),
    "never popping": lambda u, d: (torch.zeros_like(u), d),
    "always popping": lambda u, d: (torch.ones_like(u), d),
}
ENOUGH = 3.0  # seconds, above which one timing is enough


class Timing(NamedTuple):
    """The time of one implementation for one case."""

    case: str
    T: int
    implementation: str
    seconds: float


class Memory(NamedTuple):
    """The memory that the fused kernel took for one case."""

    case: str
    T: int
    megabytes: float


def instructions(B: int, T: int, m: int, kind: str = "random") -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    v, u, d = (torch.rand(shape, generator=generator) for shape in ((B, T, m), (B, T), (B, T)))
    u, d = STRENGTHS[kind](u, d)
    return [v.requires_grad_(), u.requires_grad_(), d.requires_grad_()]


def literal(v: Tensor, u: Tensor, d: Tensor) -> Tensor:
    """§2.1 item by item and example by example, as it is written."""
    reads = []
    for b in range(v.shape[0]):
        s: list[Tensor] = []
        for t in range(v.shape[1]):
            left = u[b, t]
            for i in range(t - 1, -1, -1):
                rest = torch.relu(left - s[i])
                s[i] = torch.relu(s[i] - left)
                left = rest
            s.append(d[b, t])
            rho, r = torch.ones(()), torch.zeros(v.shape[2])
            for i in range(t, -1, -1):
                r = r + torch.minimum(s[i], rho) * v[b, i]
                rho = torch.relu(rho - s[i])
            reads.append(r)
    return torch.stack(reads).view(v.shape)


def fused(v: Tensor, u: Tensor, d: Tensor) -> Tensor:
    return ss.stack_scan(v, u, d, backend="cpu")[0]


def reference(v: Tensor, u: Tensor, d: Tensor) -> Tensor:
    return ss.stack_scan(v, u, d, backend="reference")[0]


SCANS: dict[str, Callable[..., Tensor]] = {"fused": fused, "vectorised": reference}


@dataclass(frozen=True)
class Peer:
    """Someone else's stack: a class with `reading()`, and `next(actions, value)`, which gives the next stack
    for push and pop strengths (B, 2) and vectors (B, m). It begins empty, above a bottom of zeros."""

    stack: Any

    @classmethod
    def at(cls, root: Path, name: str) -> "Peer":
        """`name` is module:class, and the module is found from `root`."""
        module, _, attribute = name.partition(":")
        sys.path.insert(0, str(root))
        try:
            return cls(getattr(importlib.import_module(module), attribute))
        except (ImportError, AttributeError) as error:
            advice = f"there is no {name!r} in {root} ({error}): give the folder of its source"
            raise BadInput(advice) from None
        finally:
            sys.path.remove(str(root))

    def __call__(self, v: Tensor, u: Tensor, d: Tensor) -> Tensor:
        stack, reads = self.stack([], v.new_zeros(v.shape[0], v.shape[2])), []
        for t in range(v.shape[1]):
            stack = stack.next(torch.stack((d[:, t], u[:, t]), 1), v[:, t])
            reads.append(stack.reading())
        return torch.stack(reads, 1)


def both_ways(run: Callable[..., Tensor], inputs: list[Tensor]) -> list[Tensor]:
    r = run(*inputs)
    return [r, *torch.autograd.grad(r.sum(), inputs)]


def agree(case: str, ours: list[Tensor], theirs: list[Tensor]) -> None:
    """Refuse to time what does not compute the same."""
    for our, their in zip(ours, theirs, strict=True):
        off = (our - their).abs().max().item() / max(1.0, their.abs().max().item())
        if not off < 1e-4:
            raise BadInput(f"{case}: two implementations differ by {off:.1e}, so they are not timed")


def clock(run: Callable[..., Any], *inputs: Any, budget: float = 1.0) -> float:
    """The median of as many repeats as fit the budget, three at least unless one takes all of it."""
    run(*inputs)
    times: list[float] = []
    while (
        not times
        or (sum(times) < budget and len(times) < 300)
        or (len(times) < 3 and sum(times) < 3 * budget)
    ):
        began = time.perf_counter()
        run(*inputs)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def scans(
    longest: dict[str, int], B: int, m: int, lengths: tuple[int, ...], peer: Peer | None = None
) -> Iterator[Timing]:
    """One size over many T, each implementation up to its longest T. The literal loop takes one example after
    the other, so it is run on one of them, and its time counted B times; it takes gigabytes, and so has a
    process of its own."""
    case = f"scan, B={B}, m={m}"
    for T in lengths:
        inputs = instructions(B, T, m)
        ours = both_ways(fused, inputs)
        for name, most in longest.items():
            if most < T:
                continue
            if name == "literal":
                theirs, seconds = elsewhere(one_example, B, T, m)
            else:
                run = peer if name == "peer" and peer else SCANS[name]
                theirs, seconds = both_ways(run, inputs), None
            agree(f"{case}, T={T}", [x[: len(theirs[0])] for x in ours], theirs)
            yield Timing(case, T, name, seconds or clock(both_ways, run, inputs))


def one_example(B: int, T: int, m: int) -> tuple[list[Tensor], float]:
    """The literal loop on the first of B examples: its results, and the seconds that all would take."""
    torch.set_num_threads(1)
    inputs = [x[:1].detach().requires_grad_() for x in instructions(B, T, m)]
    began = time.perf_counter()
    results = both_ways(literal, inputs)
    seconds = time.perf_counter() - began
    if seconds <= ENOUGH:
        seconds = clock(both_ways, literal, inputs)
    return [x.detach() for x in results], B * seconds


def elsewhere(run: Callable[..., Any], *inputs: Any) -> Any:
    """In a process of its own."""
    [result] = forks.results([partial(run, *inputs)], 1)
    return result


def worst(B: int, m: int, T: int) -> Iterator[Timing]:
    """Strengths that make a kernel of this kind slow."""
    for kind in STRENGTHS:
        inputs = instructions(B, T, m, kind)
        ours = both_ways(fused, inputs)
        agree(kind, ours, both_ways(reference, inputs))
        case = f"scan, B={B}, m={m}, strengths {kind}"
        yield Timing(case, T, "fused", clock(both_ways, fused, inputs))


def two_threads(B: int, T: int, m: int) -> float:
    torch.set_num_threads(2)
    return clock(both_ways, fused, instructions(B, T, m))


def networks(T: int) -> Iterator[Timing]:
    """A training step of ten networks of Table 1 at once; and as many LSTMs without a memory, one by one."""
    condition = Condition("reversal", "lstm", "stack", train_size=10)
    case = "training step of 10 networks, LSTM(10), m=2, B=10"
    populations = {name: Population(condition, range(10), "cpu") for name in ("fused", "vectorised")}
    populations["vectorised"].network.backend = "reference"
    strings = torch.arange(10).repeat(10, 1)
    results: dict[str, list[Tensor]] = {}
    for name, population in populations.items():
        losses = population.losses(strings)
        results[name] = [losses.detach(), *torch.autograd.grad(losses.sum(), population.optimiser.vectors)]
    agree(case, results["fused"], results["vectorised"])
    for name, population in populations.items():
        yield Timing(case, T, name, clock(fastest(population, strings), strings))
    lstms = [nn.LSTM(3, 10, batch_first=True) for _ in range(10)]
    x = torch.rand(10, T, 3)
    yield Timing(case, T, "nn.LSTM", clock(lambda: [lstm(x)[0].sum().backward() for lstm in lstms]))


def cases(full: bool, peer: Peer | None = None) -> Iterator[Timing]:
    longest = {"fused": 65536, "vectorised": 1024, "literal": 1024 if full else 256}
    if peer:
        longest["peer"] = 256
    sizes = (64, 256, 1024, 4096, 16384, 65536)
    for B, m in ((10, 2), (32, 32)):
        yield from scans(longest, B, m, sizes, peer)
    yield from worst(10, 2, 1024)
    seconds = clock(both_ways, fused, instructions(1, 1_000_000, 16))
    yield Timing("scan, B=1, m=16", 1_000_000, "fused", seconds)
    yield Timing("scan, B=8, m=64, two threads", 65536, "fused", elsewhere(two_threads, 8, 65536, 64))
    yield from networks(24)


def exponent(points: list[tuple[int, float]]) -> float:
    """The slope of log cost over log T of points (T, cost), from T = 1024 on."""
    T, cost = np.log([point for point in points if point[0] >= 1024]).T
    return float(np.polyfit(T, cost, 1)[0])


def of_time(timings: list[Timing], case: str) -> float:
    """The exponent of the fused kernel's time."""
    return exponent([(t.T, t.seconds) for t in timings if (t.case, t.implementation) == (case, "fused")])


def peak(B: int, T: int, m: int) -> float:
    """Megabytes that a scan takes with its arguments and gradients, in a process that does nothing else."""
    both_ways(fused, instructions(B, 8, m))  # compiled
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    both_ways(fused, instructions(B, T, m))
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3


def memory() -> Iterator[Memory]:
    """To be called before anything else: Linux counts to a process what its parent took."""
    for B, m, T in (*((32, 32, T) for T in (1024, 4096, 16384, 65536)), (1, 16, 1_000_000)):
        yield Memory(f"scan, B={B}, m={m}", T, elsewhere(peak, B, T, m))


def plot(timings: list[Timing]) -> "Figure":
    """Cost against T, both on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5))
    axis = figure.subplots()
    lines = dict.fromkeys((t.case, t.implementation) for t in timings if ", strengths" not in t.case)
    for case, implementation in lines:
        points = [(t.T, t.seconds) for t in timings if (t.case, t.implementation) == (case, implementation)]
        if len(points) > 1:
            x, y = zip(*points, strict=True)
            axis.loglog(x, y, marker="o", label=f"{case}: {implementation}")
    axis.set(xlabel="T, steps", ylabel="seconds, forward and backward", title="Cost against length")
    axis.grid(visible=True, which="both", alpha=0.3)
    axis.legend(fontsize=8)
    return figure
