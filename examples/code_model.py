"""Does a language model of Python source gain from stacks? A transformer with StackLayers beside one without.

    python examples/code_model.py             minutes on a GPU
    python examples/code_model.py --tiny      seconds on a CPU, to see that it runs

Models read bytes of the standard library's own files and are scored on files that they have not seen: bits
per byte; whether they know which bracket closes, where one does; and whether they know that a line begins
further left, where it does: by the distance to where it was opened and by depth. They have the same number
of parameters, to 1 %. Small models of the same kinds also learn brackets, reversal and formulas from short
strings, and are tried on strings up to 20 times as long. All figures go to code_model.json.
"""

import argparse
import io
import json
import math
import sysconfig
import time
import tokenize
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

import softstack as ss
from softstack.lab.tasks import TASKS
from softstack.lab.tasks.data import encode

# What mixes times, block by block, again and again.
VARIANTS = {"attention": ("attention",), "both": ("attention", "stack"), "stacks": ("stack",)}
DISTANCES = (16, 64, 256, 1024)
DEPTHS = (1, 2, 3)
SPACE = ord(" ")
CLOSERS = b")]}"
FORMAL = ("parenthesis", "reversal", "formula")
TIMES = (1, 2, 5, 10, 20)  # the training length


class Sizes(NamedTuple):
    d_model: int = 384
    blocks: int = 6
    heads: int = 8
    batch: int = 32
    window: int = 2048
    steps: int = 1000
    files: int = 2000
    held_out: int = 60  # files to score
    formal_steps: int = 1200
    formal_length: int = 40
    formal_strings: int = 64


TINY = Sizes(32, 2, 4, 4, 128, 8, 40, 3, 8, 12, 4)


class Attention(nn.Module):
    """Causal, with rotary positions."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inward, self.outward = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.inward(x).chunk(3, -1)
        )
        r = scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
        return self.outward(r.transpose(1, 2).flatten(-2))


def rotated(x: Tensor) -> Tensor:
    """x (B, heads, T, m): pairs of numbers turn with their position."""
    T, half = x.shape[-2], x.shape[-1] // 2
    rates = 10000.0 ** -(torch.arange(half, device=x.device) / half)
    angles = torch.arange(T, device=x.device).unsqueeze(-1) * rates  # (T, half)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class Block(nn.Module):
    def __init__(self, mixer: str, d_model: int, heads: int) -> None:
        super().__init__()
        self.mixer: nn.Module = (
            Attention(d_model, heads)
            if mixer == "attention"
            # vectors twice as wide: as many parameters as attention has
            else ss.StackLayer(d_model, heads=heads, memory_size=2 * d_model // heads)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2))
        self.inner = nn.Sequential(
            nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model)
        )

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.mixer(self.norms[0](x))
        x = x + (mixed[0] if isinstance(mixed, tuple) else mixed)
        return x + self.inner(self.norms[1](x))


class Model(nn.Module):
    def __init__(self, variant: str, letters: int, sizes: Sizes) -> None:
        super().__init__()
        mixers = VARIANTS[variant]
        self.embed = nn.Embedding(letters, sizes.d_model)
        self.blocks = nn.Sequential(
            *(Block(mixers[k % len(mixers)], sizes.d_model, sizes.heads) for k in range(sizes.blocks))
        )
        self.norm, self.read = nn.LayerNorm(sizes.d_model), nn.Linear(sizes.d_model, letters)

    def forward(self, x: Tensor) -> Tensor:
        return self.read(self.norm(self.blocks(self.embed(x))))  # (B, T, letters)


class Event(NamedTuple):
    """A byte that depends on something opened before it."""

    kind: str  # "closer" or "dedent"
    position: int
    distance: int  # bytes since it was opened
    depth: int  # how many are open


def events(source: bytes) -> Iterator[Event]:
    """Closing brackets outside strings and comments, and the first byte of lines that begin further left."""
    starts = np.cumsum([0, *(len(line) for line in source.splitlines(keepends=True))])
    brackets: list[int] = []
    indents: list[int] = []
    left_at = -1
    for token in tokenize.tokenize(io.BytesIO(source).readline):
        at = int(starts[min(token.start[0] - 1, len(starts) - 1)]) + token.start[1]
        if token.type == tokenize.OP and token.string in "([{":
            brackets.append(at)
        elif token.type == tokenize.OP and token.string in ")]}" and brackets:
            yield Event("closer", at, at - brackets[-1], len(brackets))
            brackets.pop()
        elif token.type == tokenize.INDENT:
            indents.append(at)
        elif token.type == tokenize.DEDENT:
            if at != left_at and at < len(source):
                yield Event("dedent", at, at - indents[-1], len(indents))
            left_at = at
            indents.pop()


def read_files(count: int) -> tuple[list[bytes], list[bytes]]:
    """The standard library's files: to learn from, and held out, which a file's name alone decides."""
    root = Path(sysconfig.get_paths()["stdlib"])
    paths = sorted(path for path in root.rglob("*.py") if "site-packages" not in path.parts)
    split: dict[bool, list[bytes]] = {True: [], False: []}
    for path in paths:
        name = str(path.relative_to(root)).encode()
        source = path.read_bytes()
        if source.isascii() and b"\r" not in source and len(source) > 400:
            split[zlib.crc32(name) % 10 == 0].append(source)
    return split[False][:count], split[True]


def in_bfloat16(device: str) -> Any:
    return torch.autocast("cuda", dtype=torch.bfloat16, enabled=device == "cuda")


def trained(model: nn.Module, batches: Iterator[tuple[Tensor, Tensor]], steps: int, device: str) -> float:
    """The loss at the end, a mean over the last tenth. Targets of -1 are not scored."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.01)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-3, total_steps=steps, pct_start=0.1)
    losses: list[Tensor] = []
    for _ in range(steps):
        x, y = next(batches)
        with in_bfloat16(device):
            logits = model(x)
        loss = cross_entropy(logits.float().flatten(0, 1), y.flatten(), ignore_index=-1)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        rate.step()
        losses.append(loss.detach())
    return float(torch.stack(losses[-max(1, steps // 10) :]).mean())


def windows(files: list[bytes], sizes: Sizes, device: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Stretches of the files laid end to end, and the byte that follows each."""
    data = torch.frombuffer(bytearray(b"\n".join(files)), dtype=torch.uint8).to(device)
    generator = torch.Generator().manual_seed(0)
    steps = torch.arange(sizes.window + 1, device=device)
    while True:
        begins = torch.randint(len(data) - sizes.window, (sizes.batch, 1), generator=generator).to(device)
        stretch = data[begins + steps].long()
        yield stretch[:, :-1], stretch[:, 1:]


def bucket(value: int, edges: tuple[int, ...], unit: str) -> str:
    return next((f"{unit} <= {edge}" for edge in edges if value <= edge), f"{unit} > {edges[-1]}")


@torch.no_grad()
def scored(model: nn.Module, files: list[bytes], sizes: Sizes, device: str) -> dict[str, Any]:
    """Bits per byte, and how often the model is right about events whose beginning it has seen."""
    bits, count = 0.0, 0
    right: dict[str, list[bool]] = defaultdict(list)
    for source in files:
        there = sorted(events(source), key=lambda event: event.position)
        for begin in range(0, len(source) - 1, sizes.window):
            stretch = torch.tensor(list(source[begin : begin + sizes.window + 1]), device=device)
            with in_bfloat16(device):
                logits = model(stretch[None, :-1])[0].float()
            bits += float(cross_entropy(logits, stretch[1:], reduction="sum")) / math.log(2)
            count += len(stretch) - 1
            said = logits.cpu()
            for kind, position, distance, depth in there:
                k = position - begin - 1  # where the model says what comes
                if not 0 <= k < len(said) or distance > k:
                    continue
                if kind == "closer":
                    fine = CLOSERS[int(said[k, list(CLOSERS)].argmax())] == source[position]
                else:
                    fine = int(said[k].argmax()) != SPACE
                for name in (
                    kind,
                    f"{kind}, {bucket(distance, DISTANCES, 'distance')}",
                    f"{kind}, {bucket(depth, DEPTHS, 'depth')}",
                ):
                    right[name].append(fine)
    shares = {name: {"right": sum(v) / len(v), "of": len(v)} for name, v in sorted(right.items())}
    return {"bits per byte": bits / max(1, count), **shares}


def strings(task: Any, lengths: list[int], rng: np.random.Generator, device: str) -> tuple[Tensor, Tensor]:
    data = encode(task, [task.example(task.of_length(rng, length)) for length in lengths])
    return data.x.to(device), torch.where(data.mask, data.y, -1).to(device)


def formal(variant: str, name: str, sizes: Sizes, device: str) -> dict[str, float]:
    """Trained on strings of up to `formal_length` symbols: the share of right answers on longer ones."""
    task: Any = TASKS[name]
    torch.manual_seed(0)
    small = sizes._replace(d_model=min(64, sizes.d_model), blocks=2, heads=4)
    model = Model(variant, len(task.alphabet), small).to(device)
    rng = np.random.default_rng(0)
    pool = [
        strings(task, rng.integers(2, sizes.formal_length + 1, sizes.batch).tolist(), rng, device)
        for _ in range(min(400, sizes.formal_steps))
    ]
    trained(model, (pool[k % len(pool)] for k in range(sizes.formal_steps)), sizes.formal_steps, device)
    shares: dict[str, float] = {}
    for times in TIMES:
        x, y = strings(task, [times * sizes.formal_length] * sizes.formal_strings, rng, device)
        with torch.no_grad(), in_bfloat16(device):
            fine = model(x).argmax(-1) == y
        shares[f"{times}x"] = float(fine[y >= 0].float().mean())
    return shares


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="seconds on a CPU")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--parts", nargs="+", choices=("code", "formal"), default=["code", "formal"])
    parser.add_argument("--steps", type=int, help="training steps on code")
    parser.add_argument("--formal-steps", type=int, help="training steps on each formal task")
    parser.add_argument("--commit", default="unknown", help="what is measured, noted with the figures")
    parser.add_argument("--out", type=Path, default=Path("code_model.json"))
    options = parser.parse_args(arguments)
    sizes = TINY if options.tiny else Sizes()
    sizes = sizes._replace(
        steps=options.steps or sizes.steps, formal_steps=options.formal_steps or sizes.formal_steps
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    results: dict[str, Any] = {"commit": options.commit, "sizes": sizes._asdict()}
    name = torch.cuda.get_device_name() if device == "cuda" else device
    results |= {"torch": torch.__version__, "device": name}
    train_files, held_out = read_files(sizes.files) if "code" in options.parts else ([], [])
    for variant in options.variants:
        outcome: dict[str, Any] = {}
        if "code" in options.parts:
            torch.manual_seed(0)
            model = Model(variant, 256, sizes).to(device)
            began = time.monotonic()
            outcome["training loss"] = trained(
                model, windows(train_files, sizes, device), sizes.steps, device
            )
            outcome["seconds"] = time.monotonic() - began
            outcome["parameters"] = sum(p.numel() for p in model.parameters())
            outcome["code"] = scored(model, held_out[: sizes.held_out], sizes, device)
        if "formal" in options.parts:
            outcome["formal"] = {name: formal(variant, name, sizes, device) for name in FORMAL}
        results[variant] = outcome
        print(variant, json.dumps(outcome, indent=1), flush=True)
        options.out.write_text(json.dumps(results, indent=1) + "\n")
    return results


if __name__ == "__main__":
    main()
