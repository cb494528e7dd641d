"""The parallel scans on a GPU: are they right, and how fast is each way of cutting them up?

`python benchmarks/scan_candidates.py [SECONDS]`; torch and Triton are enough. A row that fails says why, and
the rest goes on; no row begins after SECONDS (330).
"""

import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

import softstack as ss
from softstack.kernels.gpu import scan as gpu
from softstack.memory.scan import item_scan

BEGAN = time.monotonic()
BUDGET = float(sys.argv[1]) if len(sys.argv) > 1 else 330.0
DEVICE = "cuda"
SCANS: dict[str, Callable[..., Any]] = {"stack": ss.stack_scan, "queue": ss.queue_scan}
TOLERANCES = {torch.float32: 3e-5, torch.float64: 1e-9, torch.bfloat16: 2e-2}
CUTS = [
    gpu.Cut(*sizes)
    for sizes in (
        (64, 64, 8),
        (64, 64, 4),
        (64, 32, 8),
        (32, 32, 4),
        (32, 64, 2),
        (64, 128, 8),
        (32, 128, 4),
        (16, 64, 2),
    )
]


def say(*words: object) -> None:
    print(f"[{time.monotonic() - BEGAN:5.0f} s]", *words, flush=True)


def row(name: str, run: Callable[..., object], *arguments: Any) -> None:
    if time.monotonic() - BEGAN > BUDGET:
        say(name, "left out: no time")
        return
    try:
        say(name, run(*arguments))
    except Exception as error:  # whatever it is, the next row is worth having
        say(name, "FAILED", type(error).__name__, str(error)[:600].replace("\n", " | "))
        traceback.print_exc(limit=-3, file=sys.stdout)


def random(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Numbers that bfloat16 has, so that every dtype is told the same."""
    return torch.rand(shape, generator=generator, dtype=torch.float64).bfloat16().double()


def plateau(u: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    """A long plateau, then deep pops."""
    late = torch.arange(u.shape[-1]) >= u.shape[-1] // 2
    return torch.where(late, 8 * u, 0 * u), d / 8


STRENGTHS: dict[str, Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    "random": lambda u, d: (u, d),
    "tiny": lambda u, d: (u / 128, d / 128),
    "tiniest, never popping": lambda u, d: (0 * u, 0 * d + 2.0**-17),
    "large": lambda u, d: (4 * u, 4 * d),
    "hard": lambda u, d: (u.round(), d.round()),
    "quarters": lambda u, d: ((4 * u).round() / 4, (4 * d).round() / 4),
    "never popping": lambda u, d: (0 * u, d),
    "always popping": lambda u, d: (0 * u + 1, d),
    "plateau, then deep pops": plateau,
}


class Case:
    """One kind of strengths, ragged and with a state, and what the reference makes of it in float64."""

    def __init__(self, memory: str, kind: str, B: int, T: int, n: int, m: int) -> None:
        generator = torch.Generator().manual_seed(1)
        self.scan = SCANS[memory]
        v, V, *gradients = (
            random(shape, generator) - 0.5 for shape in ((B, T, m), (B, n, m), (B, T, m), (B, n + T, m))
        )
        u, d = STRENGTHS[kind](random((B, T), generator), random((B, T), generator))
        s = STRENGTHS[kind](random((B, n), generator), random((B, n), generator))[1]
        self.tensors = [x.to(DEVICE) for x in (v, u, d, V, s)]
        self.gradients = [x.to(DEVICE) for x in (*gradients, random((B, n + T), generator))]
        self.lengths = torch.tensor([T, T // 3, 0, 1, *[T] * B][:B]).to(DEVICE)
        self.expected = self.run(torch.float64, "reference")

    def run(self, dtype: torch.dtype, backend: str) -> list[Tensor]:
        leaves = [x.to(dtype).requires_grad_() for x in self.tensors]
        state = ss.MemoryState(*leaves[3:])
        r, (V, s) = self.scan(*leaves[:3], state, backend, lengths=self.lengths)
        total = sum((x * g.to(dtype)).sum() for x, g in zip((r, V, s), self.gradients, strict=True))
        gradients = torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
        return [x.detach().double() for x in (r, s, *gradients)]

    def verdict(self, dtype: torch.dtype) -> str:
        ours = self.run(dtype, "gpu")
        again = self.run(dtype, "gpu")
        off = [
            float((x - y).abs().max() / y.abs().max().clamp(min=1)) if y.numel() else 0.0
            for x, y in zip(ours, self.expected, strict=True)
        ]
        same = all(torch.equal(x, y) for x, y in zip(ours, again, strict=True))
        worst = max(range(len(off)), key=off.__getitem__)
        fine = max(off) < TOLERANCES[dtype]
        name = ("r", "s", "dv", "du", "dd", "dV", "ds")[worst]
        return (
            f"{'ok' if fine else 'DIFFERS'}: {max(off):.1e} in {name}{'' if same else ', NOT THE SAME TWICE'}"
        )


def milliseconds(run: Callable[[], object], repeats: int = 20) -> float:
    """On the device: the median, after three to warm up."""
    for _ in range(3):
        run()
    times: list[float] = []
    for _ in range(repeats):
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        run()
        ended.record()
        torch.cuda.synchronize()
        times.append(began.elapsed_time(ended))
    return statistics.median(times)


def instructions(B: int, T: int, m: int, kind: str, dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    v = torch.rand((B, T, m), generator=generator)
    u, d = STRENGTHS[kind](*(torch.rand((B, T), generator=generator) for _ in "ud"))
    return [x.to(DEVICE, dtype).requires_grad_() for x in (v, u, d)]


def timed(memory: str, B: int, m: int, T: int, kind: str = "random", dtype: Any = torch.float32) -> str:
    inputs = instructions(B, T, m, kind, dtype)
    scan, repeats = SCANS[memory], 20 if B * T * m < 1 << 26 else 7
    gradient = torch.ones_like(inputs[0])

    def forward() -> Any:
        return scan(*inputs, backend="gpu")[0]

    def both() -> None:
        torch.autograd.grad(forward(), inputs, gradient)

    torch.cuda.reset_peak_memory_stats()
    whole, first = milliseconds(both, repeats), milliseconds(forward, repeats)
    megabytes = torch.cuda.max_memory_allocated() / 1e6
    return f"{whole:.3f} ms, forward {first:.3f} ms, {megabytes:.0f} MB"


def graphed(B: int, m: int, T: int) -> str:
    """Without what Python takes to launch it."""
    inputs = instructions(B, T, m, "random", torch.float32)
    gradient = torch.ones_like(inputs[0])

    def both() -> None:
        torch.autograd.grad(SCANS["stack"](*inputs, backend="gpu")[0], inputs, gradient)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            both()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        both()
    return f"{milliseconds(graph.replay):.3f} ms"


def kernels(B: int, m: int, T: int, kind: str, memory: str) -> str:
    """How long each kernel takes, in microseconds."""
    inputs = instructions(B, T, m, kind, torch.float32)
    gradient = torch.ones_like(inputs[0])
    for _ in range(2):
        torch.autograd.grad(SCANS[memory](*inputs, backend="gpu")[0], inputs, gradient)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(3):
            torch.autograd.grad(SCANS[memory](*inputs, backend="gpu")[0], inputs, gradient)
        torch.cuda.synchronize()
    shares = sorted(profile.key_averages(), key=lambda event: -event.device_time_total)
    return ", ".join(f"{event.key[:28]} {event.device_time_total / 3:.0f}" for event in shares[:12])


class Attention(nn.Module):
    """Causal attention of the same width, with the projections around it."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inward, self.outward = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x: Tensor) -> Any:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.inward(x).chunk(3, -1)
        )
        r = scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.outward(r.transpose(1, 2).flatten(-2))


def beside_attention(T: int, B: int = 8, d_model: int = 512, heads: int = 8) -> str:
    kind: dict[str, Any] = dict(device=DEVICE, dtype=torch.bfloat16)
    torch.manual_seed(0)
    layer, attention = ss.StackLayer(d_model, heads=heads), Attention(d_model, heads)
    layer, attention = layer.to(**kind), attention.to(**kind)
    x = torch.randn(B, T, d_model, **kind).requires_grad_()
    gradient = torch.randn_like(x)

    def both(run: Callable[[], Any], inputs: list[Tensor]) -> Callable[[], None]:
        return lambda: void(torch.autograd.grad(run(), inputs, gradient))

    def void(_: object) -> None:
        return None

    q, k, v = (torch.randn(B, heads, T, d_model // heads, **kind).requires_grad_() for _ in "qkv")
    upstream = torch.randn_like(q)
    ours = milliseconds(both(lambda: layer(x)[0], [x, *layer.parameters()]))
    theirs = milliseconds(both(lambda: attention(x), [x, *attention.parameters()]))
    alone = milliseconds(
        lambda: void(
            torch.autograd.grad(scaled_dot_product_attention(q, k, v, is_causal=True), [q, k, v], upstream)
        )
    )
    u, d = (torch.rand(B * heads, T, device=DEVICE, requires_grad=True) for _ in "ud")
    items = torch.randn(B * heads, T, d_model // heads, **kind).requires_grad_()
    memory = ss.Stack(d_model // heads, validate=False)
    empty = ss.MemoryState(items[:, :0].detach(), u[:, :0].detach())

    def scanned() -> None:
        r, _ = item_scan(memory, items, u, d, empty, "gpu", validate=False)
        torch.autograd.grad(r, [items, u, d], torch.ones_like(r))

    return (
        f"StackLayer {ours:.3f} ms, attention with its projections {theirs:.3f} ms ({ours / theirs:.2f}x), "
        f"sdpa alone {alone:.3f} ms, the scan alone {milliseconds(scanned):.3f} ms"
    )


def candidate(cut: gpu.Cut, precision: str, B: int, m: int, T: int, kind: str) -> str:
    kept = gpu.CUTS[torch.float32], gpu.PRECISIONS[torch.float32]
    gpu.CUTS[torch.float32], gpu.PRECISIONS[torch.float32] = cut, precision
    try:
        return f"{case('stack', kind, 300, 64).verdict(torch.float32)}; {timed('stack', B, m, T, kind)}"
    finally:
        gpu.CUTS[torch.float32], gpu.PRECISIONS[torch.float32] = kept


@cache
def case(memory: str, kind: str, T: int, m: int) -> Case:
    return Case(memory, kind, 4, T, 20, m)


def right(memory: str, dtype: torch.dtype, kind: str, T: int) -> str:
    """Some with an odd width; Triton compiles for each kind of width anew, and that takes long."""
    odd = dtype == torch.float32 and kind in ("random", "quarters")
    return case(memory, kind, T, 24 if odd else 64).verdict(dtype)


def token_by_token(held: int) -> str:
    """One token through a StackLayer whose stacks hold so many cells."""
    layer = ss.StackLayer(512, heads=8, device=DEVICE, dtype=torch.bfloat16)
    with torch.no_grad():
        layer.actions.bias[:8] = -20.0  # nothing is popped
        x = torch.randn(1, held, 512, device=DEVICE, dtype=torch.bfloat16)
        y, state = layer(x)
        cells = layer.cells(layer(x[:, :-1])[1])
        token, _ = layer.step(x[:, -1], cells)
        off = float((token - y[:, -1]).abs().max())
        many = layer.cells(state).grown().grown()
    return f"{milliseconds(lambda: layer.step(x[:, 0], many)):.3f} ms a token, off by {off:.1e}"


def rows() -> Iterator[tuple[Any, ...]]:
    small, wide, long = (64, 64, 1024), (256, 256, 1024), (8, 64, 65536)  # B, m, T
    tiniest = "tiniest, never popping"
    yield "stack 64, 64, 1024", timed, "stack", *small
    yield "its kernels", kernels, *small, "random", "stack"
    for memory in SCANS:
        for kind in STRENGTHS:
            yield f"{memory}, float32, {kind}: right?", right, memory, torch.float32, kind, 300
    yield "stack 256, 256, 1024", timed, "stack", *wide
    yield "its kernels", kernels, *wide, "random", "stack"
    yield "stack 8, 64, 65536", timed, "stack", *long
    yield "its kernels", kernels, *long, "random", "stack"
    yield "stack 1, 64, 1048576", timed, "stack", 1, 64, 1 << 20
    for kind in STRENGTHS:
        yield f"stack 64, 64, 1024, {kind}", timed, "stack", *small, kind
    yield "its kernels", kernels, *small, tiniest, "stack"
    yield "stack 64, 64, 1024 as a CUDA graph", graphed, *small
    yield "bf16, B = 8, T = 2048", beside_attention, 2048
    yield "bf16, B = 8, T = 16384", beside_attention, 16384
    for held in (100, 10000):
        yield f"token by token, {held} cells held", token_by_token, held
    for size in (small, wide, long):
        yield f"queue {size}", timed, "queue", *size
    for kind in ("never popping", "tiny"):
        yield f"queue 64, 64, 1024, {kind}", timed, "queue", *small, kind
    yield f"stack 8, 64, 16384, {tiniest}", timed, "stack", 8, 64, 16384, tiniest
    for dtype in (torch.bfloat16, torch.float64):
        for memory in SCANS:
            for kind in STRENGTHS:
                yield f"{memory}, {str(dtype)[6:]}, {kind}: right?", right, memory, dtype, kind, 100
        yield f"stack 64, 64, 1024, {str(dtype)[6:]}", timed, "stack", *small, "random", dtype
    for precision in ("ieee", "tf32"):
        cut = gpu.CUTS[torch.float32]
        yield f"{tuple(cut)} {precision} 64, 64, 1024", candidate, cut, precision, *small, "random"
    for cut in CUTS:
        yield f"{tuple(cut)} 64, 64, 1024", candidate, cut, "tf32x3", *small, "random"
        yield f"{tuple(cut)} 256, 256, 1024", candidate, cut, "tf32x3", *wide, "random"
        yield f"{tuple(cut)} 64, 64, 1024, {tiniest}", candidate, cut, "tf32x3", *small, tiniest


def main() -> None:
    say(torch.cuda.get_device_name(), "torch", torch.__version__)
    for name, run, *arguments in rows():
        row(name, run, *arguments)


if __name__ == "__main__":
    main()
