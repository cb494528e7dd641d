"""How fast on a GPU: `python benchmarks/gpu.py OUT.json --commit COMMIT`; torch and Triton are enough.

A case first compares outputs and gradients with the reference, of its first steps where the reference would
take too long, and is not timed where they differ. Times are medians of device events, forward and backward
together.
"""

import argparse
import json
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

import softstack as ss
from softstack.errors import BadInput
from softstack.lab.reports.speed import STRENGTHS, Peer, Timing, agree, both_ways, instructions
from softstack.lab.training.conditions import Condition
from softstack.lab.training.graphed import Graphed
from softstack.lab.training.population import Population

WARM = 0.3  # seconds: Python launches the same kernels in half of the time once it has done so for a while


def clock(run: Callable[..., Any], *arguments: Any, repeats: int = 20, alone: bool = False) -> float:
    """Seconds on the device: the median of so many calls, or of as many as WARM has room for, after as long
    to warm up. Calls follow each other as a training's steps do; `alone` waits for the device after each."""

    def timed(least: int) -> list[float]:
        times: list[float] = []
        while len(times) < least or sum(times) < WARM:
            events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(least)]
            for began, ended in events:
                began.record()
                run(*arguments)
                ended.record()
                if alone:
                    torch.cuda.synchronize()
            torch.cuda.synchronize()
            times += [began.elapsed_time(ended) / 1e3 for began, ended in events]
        return times

    timed(3)
    return statistics.median(timed(repeats))


def captured(run: Callable[..., Any], *arguments: Any) -> Callable[[], None]:
    """The same call as a CUDA graph, which takes no time in Python."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        run(*arguments)  # allocates what has to be allocated
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run(*arguments)
    return graph.replay


def on_device(B: int, T: int, m: int, kind: str = "random") -> list[Tensor]:
    return [x.detach().cuda().requires_grad_() for x in instructions(B, T, m, kind)]


def fused(v: Tensor, u: Tensor, d: Tensor) -> Tensor:
    return ss.stack_scan(v, u, d, backend="gpu")[0]


def vectorised(v: Tensor, u: Tensor, d: Tensor) -> Tensor:
    return ss.stack_scan(v, u, d, backend="reference")[0]


def scans(B: int, m: int, T: int, peer: Peer | None) -> Iterator[Timing]:
    if peer:
        inputs, case = on_device(B, 256, m), f"scan, B={B}, m={m}"
        agree(case, both_ways(fused, inputs), both_ways(peer, inputs))
        yield Timing(case, 256, "fused", clock(both_ways, fused, inputs))
        yield Timing(case, 256, "peer", clock(both_ways, peer, inputs, repeats=3))
    inputs, case = on_device(B, T, m), f"scan, B={B}, m={m}"
    agree(case, both_ways(fused, inputs), both_ways(vectorised, inputs))
    yield Timing(case, T, "fused", clock(both_ways, fused, inputs))
    yield Timing(case, T, "fused, waiting after each call", clock(both_ways, fused, inputs, alone=True))
    yield Timing(case, T, "fused, as a CUDA graph", clock(captured(both_ways, fused, inputs)))
    yield Timing(case, T, "vectorised", clock(both_ways, vectorised, inputs, repeats=3))


def worst(B: int, m: int, T: int) -> Iterator[Timing]:
    for kind in STRENGTHS:
        inputs, case = on_device(B, T, m, kind), f"scan, B={B}, m={m}, strengths {kind}"
        agree(case, both_ways(fused, inputs), both_ways(vectorised, inputs))
        yield Timing(case, T, "fused", clock(both_ways, fused, inputs))


def layers(B: int, d_model: int, heads: int, T: int) -> Iterator[Timing]:
    """A StackLayer and causal attention of the same width with its projections, in bfloat16."""
    case = f"StackLayer({d_model}, heads={heads}), B={B}, bfloat16"
    layer = ss.StackLayer(d_model, heads=heads, device="cuda")
    x = torch.randn(B, T, d_model, device="cuda")
    agree(case, *by_backend(layer, x[:, :256]))
    attention = Attention(d_model, heads).to("cuda", torch.bfloat16)
    x, layer = x.bfloat16(), layer.bfloat16()
    near(case, *by_backend(layer, x[:, :256]))
    layer.backend = "gpu"
    yield Timing(case, T, "fused", clock(trained, layer, x))
    yield Timing(case, T, "attention", clock(trained, attention, x))
    case += ", as CUDA graphs"
    yield Timing(case, T, "fused", clock(captured(trained, layer, x)))
    yield Timing(case, T, "attention", clock(captured(trained, attention, x)))


def by_backend(layer: ss.StackLayer, x: Tensor) -> list[list[Tensor]]:
    results = []
    for backend in ("gpu", "reference"):
        layer.backend = backend
        results.append(trained(layer, x))
    return results


class Attention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inward, self.outward = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x: Tensor) -> tuple[Any]:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.inward(x).chunk(3, -1)
        )
        r = scaled_dot_product_attention(q, k, v, is_causal=True)
        return (self.outward(r.transpose(1, 2).flatten(-2)),)


def growth(B: int, m: int, lengths: tuple[int, ...]) -> Iterator[tuple[Timing, float]]:
    """One scan over many T, with the most memory that it took, in megabytes."""
    case = f"scan, B={B}, m={m}"
    for T in lengths:
        inputs = on_device(B, T, m)
        first = [x[:, :1024].detach().requires_grad_() for x in inputs]
        agree(case, both_ways(fused, first), both_ways(vectorised, first))
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        seconds = clock(both_ways, fused, inputs, repeats=5)
        yield (
            Timing(case, T, "fused", seconds),
            (torch.cuda.max_memory_allocated() - before) / 1e6,
        )


def near(case: str, ours: list[Tensor], theirs: list[Tensor]) -> None:
    """Refuse to time what differs by more than bfloat16 rounds."""
    for our, their in zip(ours, theirs, strict=True):
        off = float((our - their).norm() / their.norm())
        if not off < 0.05:
            raise BadInput(f"{case} is off by {off:.1e}, so it is not timed")


def trained(network: nn.Module, x: Tensor) -> list[Tensor]:
    y = network(x)[0]
    return [y.detach(), *torch.autograd.grad(y.sum(), list(network.parameters()))]


def networks(B: int, size: int, m: int, T: int) -> Iterator[Timing]:
    """A StackRNN and an nn.LSTM of the same sizes: in float32, in tf32 and under autocast to bfloat16.

    Of float32, PyTorch's LSTM makes its products in tf32 unless told not to; ours does so only if told to."""
    torch.cuda.empty_cache()  # the references before took most of the device's memory
    case = f"StackRNN, LSTM({size}), m={m}, B={B}"
    network = ss.StackRNN(size, hidden_size=size, memory_size=m, output_size=size, device="cuda")
    x = torch.randn(B, T, size, device="cuda")
    network.backend = "gpu"
    ours = trained(network, x[:, :64])
    network.backend = "reference"
    agree(case, ours, trained(network, x[:, :64]))
    network.backend = "gpu"
    lstm = nn.LSTM(size, size, batch_first=True, device="cuda")
    yield Timing(case, T, "fused", clock(trained, network, x, repeats=9))
    yield Timing(case, T, "nn.LSTM", clock(trained, lstm, x, repeats=9))
    for name, precision in (("tf32", tf32()), ("bfloat16", torch.autocast("cuda", torch.bfloat16))):
        with precision:
            near(f"{case}, {name}", trained(network, x[:, :64]), ours)
            yield Timing(f"{case}, {name}", T, "fused", clock(trained, network, x, repeats=9))
            yield Timing(f"{case}, {name}", T, "nn.LSTM", clock(trained, lstm, x, repeats=9))


@contextmanager
def tf32() -> Iterator[None]:
    """All float32 products of three parts become one."""
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision("highest")


def population(P: int) -> Iterator[Timing]:
    """One training step of P networks of Table 1."""
    condition = Condition("reversal", "lstm", "stack", train_size=20, dev_size=2, test_size=2)
    case = f"training step of {P:,} networks, LSTM(10), m=2, B=10"
    strings = torch.arange(10, device="cuda").repeat(P, 1)
    both = {name: Population(condition, range(P), "cuda") for name in ("gpu", "reference")}
    results = {}
    for name, each in both.items():
        each.network.backend = name
        loss = each.losses(strings).sum()
        results[name] = [loss.detach(), *torch.autograd.grad(loss, each.optimiser.vectors)]
    agree(case, results["gpu"], results["reference"])
    T = both["gpu"].data["train"].x.shape[2]
    yield Timing(case, T, "fused", clock(Graphed(both["gpu"], strings), strings))
    yield Timing(case, T, "fused, without a CUDA graph", clock(both["gpu"].step, strings))
    yield Timing(case, T, "vectorised, as a CUDA graph", clock(Graphed(both["reference"], strings), strings))


def cases(peer: Peer | None) -> Iterator[Timing]:
    yield from scans(64, 64, 1024, peer)
    yield from scans(256, 256, 1024, peer)
    yield from worst(64, 64, 1024)
    yield from layers(8, 512, 8, 2048)
    yield from layers(8, 512, 8, 16384)
    yield from networks(64, 64, 64, 1024)
    yield from networks(64, 256, 256, 1024)
    yield from networks(256, 256, 256, 1024)
    yield from networks(32, 128, 32, 256)
    yield from networks(16, 512, 64, 512)
    yield from population(1000)


def main() -> None:
    if not torch.cuda.is_available():
        raise BadInput("there is no CUDA device here")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--commit", default="unknown", help="what is measured")
    parser.add_argument("--peer", type=Path, help="someone else's stack, see softstack bench --help")
    parser.add_argument("--peer-stack", default="nsrnn.models.grefenstette:GrefenstetteStack")
    options = parser.parse_args()
    peer = Peer.at(options.peer, options.peer_stack) if options.peer else None
    result: dict[str, Any] = {
        "commit": options.commit,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(),
        "timings": [],
        "growth": [],
    }
    lengths = (8, 64, (1024, 4096, 16384, 65536)), (1, 64, (1 << 20,))
    for timing, megabytes in chain(*(growth(*sizes) for sizes in lengths)):
        print(f"{timing.case}, T={timing.T}: {1e3 * timing.seconds:.3f} ms, {megabytes:.0f} MB", flush=True)
        result["growth"].append({**timing._asdict(), "megabytes": round(megabytes, 1)})
    for timing in cases(peer):
        print(
            f"{timing.case}, T={timing.T}: {timing.implementation} {1e3 * timing.seconds:.3f} ms", flush=True
        )
        result["timings"].append(timing._asdict())
        options.out.write_text(json.dumps(result, indent=1) + "\n")  # what is measured is not lost


if __name__ == "__main__":
    main()
