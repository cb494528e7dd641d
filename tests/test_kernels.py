"""Every kernel against the reference: outputs, final states and every gradient, ties and padding included."""

import subprocess
import sys
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
import torch
import torch._dynamo.testing
import triton
from hypothesis import given
from hypothesis import strategies as st
from torch.func import functional_call, stack_module_state, vmap
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

import softstack as ss
from softstack import fit, fused, kernels
from softstack.kernels.cpu import far
from softstack.kernels.gpu import scan as gpu_scan
from softstack.kernels.gpu import teams
from softstack.kernels.gpu.layout import on_chip
from softstack.kernels.kinds import CORES, MEMORIES
from softstack.kernels.tuples import Options
from softstack.memory import Queue, Stack
from softstack.memory.scan import item_scan
from test_memory import DOUBLE, SCANS, STRENGTHS, instructions

INTERPRETED = not torch.cuda.is_available()  # the kernels of the GPU, on the CPU: a step takes 20 ms
DEVICE = {"cpu": "cpu", "gpu": "cpu" if INTERPRETED else "cuda"}
# B, T, slots before the first step, m
SIZES = [(1, 1, 0, 1), (3, 2, 0, 2), (2, 3, 2, 31), (2, 33, 7, 3), (1, 63, 1, 2), (1, 500, 0, 1)]
SHORT = [(1, 1, 0, 1), (2, 6, 3, 3), (5, 2, 2, 2), (1, 49, 3, 17)]  # interpreted, a tile has 16 indices


@pytest.fixture(autouse=True)
def new_memory_is_nan():
    """What a kernel forgets to write shows."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.utils.deterministic.fill_uninitialized_memory
    yield
    torch.use_deterministic_algorithms(False)


def agree(ours, theirs):
    """To 1e-9 in float64; in float32 to 1e-5 of a tensor's largest number, for sums run over T steps."""
    for our, their in zip(ours, theirs, strict=True):
        if our.dtype == torch.float64:
            assert_close(our, their, rtol=1e-9, atol=1e-9)
        else:
            largest = their.abs().max().item() if their.numel() else 0.0
            assert_close(our, their, rtol=0, atol=1e-5 * max(1.0, largest))


def scanned(scan, backend, given, state, coefficients, lengths):
    """r, the final strengths, and the gradients of everything given, for one weighting of all outputs."""
    leaves = [x.detach().clone().requires_grad_() for x in (*given, *state)]
    r, (V, s) = scan(*leaves[:3], ss.MemoryState(*leaves[3:]), backend=backend, lengths=lengths)
    total = sum((x * c).sum() for x, c in zip((r, V, s), coefficients, strict=True))
    return [r, s, *torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)]


def one_by_one(scan):
    """A scan that takes the sequences of a padded batch one by one, without their padding."""

    def run(v, u, d, state, backend, lengths):
        outcomes = []
        for b, L in enumerate(lengths.tolist()):
            own = ss.MemoryState(state.V[b], state.s[b])
            r, final = scan(v[b, :L], u[b, :L], d[b, :L], own, backend)
            outcomes.append((r, *final))
        r, V, s = zip(*outcomes, strict=True)
        T, N = v.shape[1], state.s.shape[1] + v.shape[1]
        return filled(r, T), ss.MemoryState(filled(V, N), filled(s, N))

    return run


def filled(sequences, size):
    """Stacked, each filled up with zeros to this size of its first axis."""
    return torch.stack([torch.cat((x, x.new_zeros(size - len(x), *x.shape[1:]))) for x in sequences])


@pytest.mark.parametrize("memory", SCANS)
@pytest.mark.parametrize(
    ("kernel", "kind", "dtype", "ragged"),
    [
        *(
            ("cpu", kind, *case)
            for kind in STRENGTHS
            for case in [(torch.float64, True), (torch.float64, False), (torch.float32, True)]
        ),
        *(("gpu", kind, torch.float64, True) for kind in STRENGTHS),
        ("gpu", "tied", torch.float64, False),
        ("gpu", "random", torch.float32, False),
    ],
)
def test_scans(kernel, memory, kind, dtype, ragged, generator):
    sizes = SIZES if (dtype, ragged) == (torch.float64, False) else SIZES[:-1]  # the longest once
    for B, T, n, m in SHORT if INTERPRETED and kernel == "gpu" else sizes:
        given = instructions(kind, generator, B, T, m)
        state = torch.randn(B, n, m, generator=generator, **DOUBLE), STRENGTHS[kind](generator, B, n)
        shapes = (B, T, m), (B, n + T, m), (B, n + T)
        coefficients = [torch.randn(shape, generator=generator, **DOUBLE) for shape in shapes]
        kind_of = dict(device=DEVICE[kernel], dtype=dtype)
        given, state, coefficients = ([x.to(**kind_of) for x in xs] for xs in (given, state, coefficients))
        lengths = torch.randint(0, T + 1, (B,), generator=generator) if ragged else None
        scan = SCANS[memory][0]
        ours = scanned(scan, kernel, given, state, coefficients, lengths)
        reference = one_by_one(scan) if ragged else scan
        agree(ours, scanned(reference, "reference", given, state, coefficients, lengths))


@pytest.mark.skipif(not INTERPRETED, reason="what is compiled cannot be changed")
@pytest.mark.parametrize(
    ("memory", "kind", "cut", "span"),
    [
        ("stack", "tied", (16, 16, 4), 2),
        ("queue", "tiny", (16, 16, 4), 2),
        ("stack", "tiny", (32, 32, 4), 128),
        ("queue", "tied", (32, 32, 4), 128),
    ],
)
def test_scans_however_they_are_cut_up(memory, kind, cut, span, generator, monkeypatch):
    """Tiles of other sizes, and so many that a search for the next one that matters takes several looks."""
    monkeypatch.setattr("softstack.kernels.gpu.scan.INTERPRETED_CUT", gpu_scan.Cut(*cut))
    monkeypatch.setattr("softstack.kernels.gpu.tiles.SPAN", triton.language.constexpr(span))
    B, T, n, m = 1, 80, 10, 20
    given = instructions(kind, generator, B, T, m)
    given[1][:, :40] /= 16  # a long rise, and then pops that reach far back
    state = torch.randn(B, n, m, generator=generator, **DOUBLE), STRENGTHS[kind](generator, B, n)
    coefficients = [
        torch.randn(shape, generator=generator, **DOUBLE) for shape in ((B, T, m), (B, n + T, m), (B, n + T))
    ]
    scan = SCANS[memory][0]
    theirs = scanned(scan, "reference", given, state, coefficients, None)
    agree(scanned(scan, "gpu", given, state, coefficients, None), theirs)


@pytest.mark.parametrize("kernel", ["cpu"] if INTERPRETED else DEVICE)
@pytest.mark.parametrize("memory", SCANS)
@pytest.mark.parametrize("unit", [1 / 1024, 1 / 128, 1 / 256 + 1e-5])
@pytest.mark.parametrize("least", [far.LEAST, 1])
def test_reads_that_reach_far(kernel, memory, unit, least, generator, monkeypatch):
    """Hundreds of cells in a read, over many blocks, that end between cells and within; small pops and deep
    ones, empty cells among the others, and a state that is as deep. Blocks are as in short sequences, or of
    the square root of all."""
    monkeypatch.setattr(far, "LEAST", least)
    B, T, n, m = 3, 500, 300, 2
    d, s, u = (unit * torch.randint(0, 4, (B, k), generator=generator) for k in (T, n, T))
    deep = torch.rand(B, T, generator=generator) < 0.02
    u = torch.where(deep, 100 * u, torch.where(torch.rand(B, T, generator=generator) < 0.3, u, 0.0))
    shapes = (B, T, m), (B, n, m), (B, T, m), (B, n + T, m), (B, n + T)
    v, V, *coefficients = (torch.randn(shape, generator=generator) for shape in shapes)
    kind_of = dict(device=DEVICE[kernel], **DOUBLE)
    given, state, coefficients = ([x.to(**kind_of) for x in xs] for xs in ((v, u, d), (V, s), coefficients))
    scan = SCANS[memory][0]
    theirs = scanned(scan, "reference", given, state, coefficients, None)
    agree(scanned(scan, kernel, given, state, coefficients, None), theirs)


def test_a_read_of_all_cells_takes_the_square_root_of_steps():
    for N in (1, 100, 10_000, 1_000_000):
        room = far.room(N, 1, np.float32)
        leaps, rest = len(room.owner), room.block
        assert leaps + rest <= 2 * N**0.5 + far.LEAST + 1


@given(st.data())
def test_scans_on_any_strengths(data):
    """Mixtures of 0, 1, quarters and arbitrary strengths, into a memory that holds some already."""
    T, n = data.draw(st.integers(1, 9)), data.draw(st.integers(0, 3))
    quarter = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 1.25])
    u, d = (torch.tensor([data.draw(st.lists(quarter, min_size=T, max_size=T))], **DOUBLE) for _ in "ud")
    s = torch.tensor([data.draw(st.lists(quarter, min_size=n, max_size=n))], **DOUBLE)
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 5)))
    v, V, *coefficients = (
        torch.randn(1, k, 2, generator=generator, **DOUBLE) for k in (T, n, T, n + T, n + T)
    )
    coefficients[2] = coefficients[2][..., 0]
    for scan, _ in SCANS.values():
        ours = scanned(scan, "cpu", (v, u, d), (V, s), coefficients, None)
        theirs = scanned(scan, "reference", (v, u, d), (V, s), coefficients, None)
        agree(ours, theirs)


def leaves_of(state):
    return [state] if isinstance(state, torch.Tensor) else [x for part in state for x in leaves_of(part)]


def fresh(state):
    """A copy that gradients can be asked of."""
    if state is None:
        return None
    if isinstance(state, torch.Tensor):
        return state.detach().clone().requires_grad_()
    parts = [fresh(part) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)


def rows_of(state, b):
    """The state of sequence b alone."""
    if isinstance(state, torch.Tensor):
        return state[b]
    parts = [rows_of(part, b) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)


def alone(net, x, state, lengths, like):
    """y and the leaves of the state as a padded batch gives them, from sequences that run one by one and
    without their padding."""
    outcomes = []
    for b, L in enumerate(lengths.tolist()):
        y, final = net(x[b, :L], None if state is None else rows_of(state, b))
        outcomes.append([y, *leaves_of(final)])
    return [
        filled(leaf, shape[1]) if len(shape) > 1 else torch.stack(leaf)
        for leaf, shape in zip(zip(*outcomes, strict=True), like, strict=True)
    ]


def outcome(net, backend, x, state, lengths, coefficients, one_by_one=False):
    net.backend = backend
    x = x.detach().clone().requires_grad_()
    state = fresh(state)
    y, final = net(x, state, lengths)
    made = [y, *leaves_of(final)]
    if one_by_one:
        made = alone(net, x, state, lengths, [leaf.shape for leaf in made])
    while len(coefficients) < len(made):
        coefficients.append(torch.randn(made[len(coefficients)].shape, dtype=x.dtype).to(x.device))
    total = sum((z * c).sum() for z, c in zip(made, coefficients, strict=True))
    inputs = [x, *net.parameters(), *([] if state is None else leaves_of(state))]
    grads = torch.autograd.grad(total, inputs, allow_unused=True, materialize_grads=True)
    return [*made, *grads]


NETWORKS = {
    "plain": ss.StackRNN,
    "buffered": partial(ss.BufferedStackRNN, steps=lambda T: (3 * T + 1) // 2),
    "as the authors read": partial(ss.BufferedStackRNN, steps=lambda T: T, discard_first=True),
}


def build(controller="lstm", memory="stack", network="plain", **more):
    """A small network."""
    sizes = dict(input_size=3, hidden_size=5, memory_size=2, output_size=4)
    return NETWORKS[network](**{**sizes, "controller": controller, "memory": memory, **DOUBLE, **more})


def compare(kernel, network, controller, memory, dtype, B, T, before, ragged, generator):
    """A network through a kernel and through the reference, from a state that holds `before` steps."""
    torch.manual_seed(0)
    net = build(controller, memory, network, dtype=dtype)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.5 * torch.randn(p.shape, generator=generator, dtype=dtype))
    net = net.to(DEVICE[kernel])
    x = torch.randn(B, before + T, 3, generator=generator, dtype=dtype).to(DEVICE[kernel])
    lengths = torch.randint(0, T + 1, (B,), generator=generator) if ragged else None
    net.backend = "reference"
    state = net(x[:, :before])[1] if before else None
    coefficients = []
    theirs = outcome(net, "reference", x[:, before:], state, lengths, coefficients, one_by_one=ragged)
    ours = outcome(net, kernel, x[:, before:], state, lengths, coefficients)
    agree(ours, theirs)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("controller", CORES)
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize(("B", "T", "before", "ragged"), [(17, 5, 0, False), (5, 4, 3, True)])
def test_networks(network, controller, memory, B, T, before, ragged, generator):
    compare("cpu", network, controller, memory, torch.float64, B, T, before, ragged, generator)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("controller", CORES)
def test_networks_in_float32(network, controller, generator):
    compare("cpu", network, controller, "stack", torch.float32, 3, 6, 2, True, generator)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize(
    ("B", "T", "before", "ragged"), [(1, 1, 0, False), (3, 6, 0, True), (33, 3, 2, False)]
)
def test_networks_in_batches_of_all_sizes(memory, B, T, before, ragged, generator):
    for network, controller in zip(NETWORKS, ("lstm", "gru", "linear"), strict=True):
        compare("cpu", network, controller, memory, torch.float64, B, T, before, ragged, generator)


@pytest.mark.parametrize("memory", SCANS)
@pytest.mark.parametrize(
    ("T", "before", "controller"), [(124, 4, "lstm"), (125, 4, "linear"), (125, 4, "lstm")]
)
def test_networks_of_many_steps(controller, memory, T, before, generator):
    """Where chains take over from rows."""
    compare("cpu", "plain", controller, memory, torch.float64, 3, T, before, True, generator)


@pytest.mark.parametrize("memory", SCANS)
@pytest.mark.parametrize("T", [30, 140])
@pytest.mark.parametrize("ragged", [False, True])
def test_ties_in_networks(memory, T, ragged, generator):
    """Strengths of exactly 1/2 and 1, straight from the input: pops end between cells, and reads are full."""
    net = build("linear", memory, input_size=6, output_size=2)
    weight, bias = net.parameters()
    with torch.no_grad():
        weight.copy_(torch.eye(6, 8, **DOUBLE))
        bias.zero_()
    x = torch.randn(4, T, 6, generator=generator, **DOUBLE)
    x[..., :2] = 60 * torch.randint(0, 2, (4, T, 2), generator=generator)
    lengths = torch.tensor([0, 7, T, T - 1]) if ragged else None
    state = net(x[:, :5])[1]
    coefficients = []
    theirs = outcome(net, "reference", x, state, lengths, coefficients, one_by_one=ragged)
    agree(outcome(net, "cpu", x, state, lengths, coefficients), theirs)


@pytest.mark.parametrize(
    ("network", "memory", "kernel", "T", "on_chip"),
    [
        *((network, memory, "cpu", 5, True) for network in NETWORKS for memory in SCANS),
        ("plain", "stack", "cpu", 130, True),  # as a chain
        ("plain", "queue", "cpu", 130, True),
        ("buffered", "stack", "cpu", 90, True),
        ("plain", "stack", "gpu", 3, True),
        ("plain", "queue", "gpu", 3, True),
        ("buffered", "queue", "gpu", 3, True),
        ("as the authors read", "stack", "gpu", 3, True),
        ("plain", "stack", "gpu", 3, False),  # by teams, which have no buffers
        ("plain", "queue", "gpu", 3, False),
    ],
)
def test_padding_changes_nothing_at_ties(network, memory, kernel, T, on_chip, generator, monkeypatch):
    """Cells that come in empty keep the slope that they have where the sequence runs alone: any if it makes
    no step, and none if it makes one."""
    if not on_chip:
        monkeypatch.setattr("softstack.kernels.gpu.layout.ON_CHIP", 0)
    net = build("lstm", memory, network).to(DEVICE[kernel])
    x = torch.randn(4, T, 3, generator=generator, **DOUBLE).to(DEVICE[kernel])
    state = net(x[:, :3])[1]

    def emptied(memory):
        """Every second cell."""
        return memory._replace(s=memory.s * (torch.arange(memory.s.shape[1], device=x.device) % 2))

    if network == "plain":
        state = state._replace(memory=emptied(state.memory))
    else:
        kept = state.network._replace(memory=emptied(state.network.memory))
        state = state._replace(network=kept, input=emptied(state.input))
    lengths = torch.tensor([0, 1, T - 1, T])
    coefficients = []
    theirs = outcome(net, "reference", x, state, lengths, coefficients, one_by_one=True)
    agree(outcome(net, kernel, x, state, lengths, coefficients), theirs)


@pytest.mark.parametrize(
    ("network", "controller", "memory"),
    [
        (network, controller, memory)
        for i, network in enumerate(NETWORKS)
        for j, controller in enumerate(CORES)
        for k, memory in enumerate(MEMORIES)
        if not INTERPRETED or (i + j + k) % 3 == 0  # every two of them together
    ],
)
def test_networks_on_the_gpu(network, controller, memory, generator):
    B, T = (2, 3) if INTERPRETED else (18, 33)
    compare("gpu", network, controller, memory, torch.float64, B, T, 2, True, generator)


@pytest.mark.parametrize(
    ("network", "controller", "memory"),
    [
        ("plain", "lstm", "stack"),
        ("buffered", "gru", "queue"),
        ("as the authors read", "rnn", "none"),
        ("plain", "linear", "queue"),
    ],
)
def test_networks_on_the_gpu_in_float32(network, controller, memory, generator):
    B, T = (1, 4) if INTERPRETED else (9, 8)  # rounding grows
    compare("gpu", network, controller, memory, torch.float32, B, T, 0, False, generator)


@pytest.mark.parametrize("controller", CORES)
@pytest.mark.parametrize(
    ("memory", "ragged"), [("stack", False), ("stack", True), ("queue", True), ("none", False)]
)
def test_networks_too_large_for_a_chip(controller, memory, ragged, generator, monkeypatch):
    """They are run by teams on a GPU; here a small one is made to, by a team of one."""
    monkeypatch.setattr("softstack.kernels.gpu.layout.ON_CHIP", 0)
    compare("gpu", "plain", controller, memory, torch.float64, 2, 3, 2, ragged, generator)


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float16,
        pytest.param(
            torch.bfloat16,
            marks=pytest.mark.skipif(INTERPRETED, reason="Triton's interpreter multiplies bfloat16's bits"),
        ),
    ],
)
def test_large_networks_multiply_in_halves(dtype, generator, monkeypatch):
    """On a GPU, where parameters are halves: products in them, all else in float32."""
    monkeypatch.setattr("softstack.kernels.gpu.layout.ON_CHIP", 0)
    net = build("lstm", dtype=torch.float32, backend="gpu").to(DEVICE["gpu"])
    x = torch.randn(2, 4, 3, generator=generator).to(DEVICE["gpu"])
    y, (_, memory, _) = net(x)
    expected = torch.autograd.grad(y.square().sum(), net.parameters())
    net = net.to(dtype)
    z, (_, narrow, _) = net(x.to(dtype))
    gradients = torch.autograd.grad(z.square().sum(), net.parameters())
    assert z.dtype == dtype
    assert_close(z.float(), y, rtol=0, atol=0.03)
    assert_close(narrow.s.float(), memory.s, rtol=0, atol=0.03)
    for ours, theirs in zip(gradients, expected, strict=True):
        assert ours.dtype == dtype
        assert_close(ours.float(), theirs, rtol=0, atol=0.05 * theirs.abs().max())


@pytest.mark.parametrize(
    ("B", "H", "m"), [(1, 70, 3), (64, 256, 256), (256, 256, 256), (16, 512, 64), (3, 1, 900)]
)
@pytest.mark.parametrize("core", CORES.values())
@pytest.mark.parametrize("P", [1, 40])
def test_teams_make_every_number(B, H, m, core, P, monkeypatch):
    """All units, actions and columns have a member, and a team fits a GPU of 132 processors."""
    monkeypatch.setattr("softstack.kernels.gpu.teams.INTERPRETED", False)
    H = 0 if core == CORES["linear"] else H
    team = teams.teamed(core, P, B, m, H, torch.float32, 132)
    assert team.members * team.UNITS >= max(m, H)
    assert team.members * team.ACTIONS >= 2 + m
    assert team.members <= 132


def test_less_precise_products_are_asked_for():
    assert teams.precision(torch.float32) == "tf32x3"
    torch.set_float32_matmul_precision("high")
    try:
        assert teams.precision(torch.float32) == "tf32"
        assert teams.precision(torch.float64) == "ieee"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_what_a_chip_holds():
    assert on_chip(CORES["lstm"], 64, 64, torch.float32)
    assert not on_chip(CORES["lstm"], 64, 64, torch.float64)
    assert not on_chip(CORES["lstm"], 256, 256, torch.float32)


@pytest.mark.parametrize("kernel", DEVICE)
@pytest.mark.parametrize("memory", SCANS)
@pytest.mark.parametrize("name", ["v", "u", "d", "V", "s"])
def test_what_is_not_a_number_shows_in_scans(kernel, memory, name, generator):
    """Also where it lies in a cell that a chain has left out, or has not come to: the equations multiply it
    by 0, and that is not a number either."""
    T, n, m = (4, 2, 2) if INTERPRETED and kernel == "gpu" else (40, 5, 3)
    cells = Stack(m, validate=False) if memory == "stack" else Queue(m, validate=False)
    for place in range(n if name in "Vs" else T):
        tensors = dict(zip("vud", instructions("saturated", generator, 2, T, m), strict=True))
        tensors["V"] = torch.randn(2, n, m, generator=generator, **DOUBLE)
        tensors["s"] = STRENGTHS["saturated"](generator, 2, n)
        tensors[name][(0, place, 1) if name in "vV" else (0, place)] = torch.nan
        v, u, d, V, s = (x.to(DEVICE[kernel]) for x in tensors.values())
        ours, theirs = (
            item_scan(cells, v, u, d, ss.MemoryState(V, s), backend, validate=False)
            for backend in (kernel, "reference")
        )
        assert not theirs[0].isfinite().all()
        assert torch.equal(ours[0].isfinite(), theirs[0].isfinite())
        assert torch.equal(ours[1].V.isfinite(), theirs[1].V.isfinite())
        assert torch.equal(ours[1].s.isfinite().all(1), theirs[1].s.isfinite().all(1))


@pytest.mark.parametrize(
    ("network", "memory", "kernel", "T", "on_chip"),
    [
        *((network, memory, "cpu", 5, True) for network in NETWORKS for memory in MEMORIES),
        ("plain", "stack", "cpu", 130, True),  # as a chain
        ("plain", "queue", "cpu", 130, True),
        ("buffered", "stack", "cpu", 90, True),
        *(("plain", memory, "gpu", 3, on_chip) for memory in MEMORIES for on_chip in (True, False)),
        ("buffered", "stack", "gpu", 3, True),
        ("as the authors read", "queue", "gpu", 3, True),
    ],
)
def test_what_is_not_a_number_shows_in_networks(network, memory, kernel, T, on_chip, generator, monkeypatch):
    if not on_chip:
        monkeypatch.setattr("softstack.kernels.gpu.layout.ON_CHIP", 0)
    faults = ["x", "weight", *(["u", "v", "y"] if network == "plain" else ["u", "v", "y", "i", "o"])]
    for fault in faults:
        net = build("gru", memory, network).to(DEVICE[kernel])
        x = torch.randn(2, T, 3, generator=generator, **DOUBLE).to(DEVICE[kernel])
        with torch.no_grad():
            if fault == "x":
                x[0, T // 2, 1] = torch.nan
            elif fault == "weight":
                net.cell.core.from_hidden.weight[1, 1] = torch.nan
            else:
                net.cell.heads.bias_of(fault)[0] = torch.nan
        net.backend = kernel
        y, state = net(x)
        net.backend = "reference"
        expected, final = net(x)
        assert not expected.isfinite().all() or (memory == "none" and fault in "uv")
        assert torch.equal(y.isfinite(), expected.isfinite())
        for ours, theirs in zip(leaves_of(state), leaves_of(final), strict=True):
            assert ours.isfinite().all() == theirs.isfinite().all()


@pytest.mark.parametrize("kernel", DEVICE)
@pytest.mark.parametrize(
    ("dtype", "network"),
    [
        (torch.bfloat16, "plain"),
        (torch.float16, "plain"),
        (torch.bfloat16, "buffered"),
        (torch.float16, "as the authors read"),
    ],
)
def test_halves_are_computed_in_float32_and_rounded(kernel, dtype, network, generator):
    """Outputs, states and gradients are those of float32, rounded once."""
    T = 3 if INTERPRETED and kernel == "gpu" else 12
    net = build("lstm", network=network, dtype=torch.float32, backend=kernel).to(DEVICE[kernel]).to(dtype)
    wide = deepcopy(net).float()
    x = torch.randn(2, T, 3, generator=generator).to(DEVICE[kernel], dtype).requires_grad_()
    x_wide = x.detach().float().requires_grad_()
    (y, state), (y_wide, state_wide) = net(x), wide(x_wide)
    for ours, theirs in zip(leaves_of((y, state)), leaves_of((y_wide, state_wide)), strict=True):
        assert ours.dtype == dtype
        assert_close(ours.float(), theirs, rtol=2e-2 if network != "plain" else 8e-3, atol=2e-2)
    if network == "plain":
        assert torch.equal(y, y_wide.to(dtype))
        weights = torch.randn(y.shape, generator=generator).to(y)
        grads = torch.autograd.grad((y * weights).sum(), [x, *net.parameters()])
        wides = torch.autograd.grad((y_wide * weights.float()).sum(), [x_wide, *wide.parameters()])
        for ours, theirs in zip(grads, wides, strict=True):
            assert torch.equal(ours, theirs.to(dtype))


@pytest.mark.parametrize("kernel", DEVICE)
@pytest.mark.parametrize("memory", SCANS)
def test_scans_of_halves(kernel, memory, generator):
    v, u, d = (x.bfloat16().to(DEVICE[kernel]) for x in instructions("random", generator, 2, 6, 3))
    tensors = [x.requires_grad_() for x in (v, u, d)]
    wides = [x.detach().float().requires_grad_() for x in tensors]
    r, state = SCANS[memory][0](*tensors, backend=kernel)
    r_wide, state_wide = SCANS[memory][0](*wides, backend=kernel)
    for ours, theirs in zip((r, *state), (r_wide, *state_wide), strict=True):
        assert torch.equal(ours, theirs.bfloat16())
    grads, expected = torch.autograd.grad(r.sum(), tensors), torch.autograd.grad(r_wide.sum(), wides)
    for ours, theirs in zip(grads, expected, strict=True):
        assert torch.equal(ours, theirs.bfloat16())


@pytest.mark.parametrize("kernel", [*DEVICE, "reference"])
def test_a_state_is_its_own(kernel, generator):
    """What a caller writes later into what was pushed changes no state, and no gradient."""
    v, u, d = (x.to(DEVICE.get(kernel, "cpu")) for x in instructions("random", generator, 2, 4, 3))
    u.requires_grad_()
    pushed = v.clone()
    r, state = ss.stack_scan(v, u, d, backend=kernel)
    v.zero_()
    assert_close(state.V, pushed)
    if kernel != "reference":
        (grad,) = torch.autograd.grad(r.sum(), u)
        (expected,) = torch.autograd.grad(ss.stack_scan(pushed, u, d, backend=kernel)[0].sum(), u)
        assert torch.equal(grad, expected)


@pytest.mark.parametrize(
    ("kernel", "controller", "size"),
    [
        *(("cpu", controller, size) for controller in CORES for size in (1, 2, 31, 33)),
        *(("gpu", controller, size) for controller in ("linear", "lstm") for size in (1, 33)),
        *(("gpu", controller, size) for controller in ("rnn", "gru") for size in (2, 31)),
    ],
)
def test_awkward_widths(kernel, controller, size, generator):
    """Every width that is not a whole tile or vector, and saturated gates."""
    torch.manual_seed(0)
    net = build(controller, input_size=size, hidden_size=size, memory_size=size, output_size=size)
    with torch.no_grad():
        net.cell.heads.weight.mul_(20)
    net = net.to(DEVICE[kernel])
    x = torch.randn(2, 5, size, generator=generator, **DOUBLE).to(DEVICE[kernel])
    coefficients = []
    theirs = outcome(net, "reference", x, None, None, coefficients)
    ours = outcome(net, kernel, x, None, None, coefficients)
    agree(ours, theirs)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("controller", CORES)
def test_a_population_is_one_call(network, controller, generator):
    """Through vmap, as the trainer calls it: each model as it is on its own."""
    nets = [build(controller, network=network) for _ in range(3)]
    x = torch.randn(3, 7, 6, 3, generator=generator, **DOUBLE)
    stacked, _ = stack_module_state(nets)
    parameters = {name: p.detach().requires_grad_() for name, p in stacked.items()}
    y = vmap(lambda p, x: functional_call(nets[0], p, (x,))[0])(parameters, x)
    grads = torch.autograd.grad(y.square().sum(), list(parameters.values()))
    for k, net in enumerate(nets):
        net.zero_grad()
        net.backend = "reference"
        alone = net(x[k])[0]
        alone.square().sum().backward()
        net.backend = "auto"
        assert_close(y[k], alone)
        for name, grad in zip(parameters, grads, strict=True):
            assert_close(grad[k], net.get_parameter(name).grad)


@pytest.mark.parametrize("kernel", DEVICE)
def test_the_same_call_gives_the_same_bits(kernel, generator):
    net = build(backend=kernel, dtype=torch.float32).to(DEVICE[kernel])
    B, T = (2, 3) if INTERPRETED and kernel == "gpu" else (5, 30)
    x = torch.randn(B, T, 3, generator=generator).to(DEVICE[kernel])
    first, second = ([net(x)[0], *torch.autograd.grad(net(x)[0].sum(), net.parameters())] for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_not_contiguous(generator):
    v, u, d = instructions("random", generator, 4, 6, 2)
    given = v.transpose(0, 1).contiguous().transpose(0, 1), u.t().contiguous().t(), d.expand(4, 6)[:, ::1]
    assert not given[0].is_contiguous()
    assert_close(ss.stack_scan(*given, backend="cpu")[0], ss.stack_scan(v, u, d, backend="reference")[0])
    net = build("gru", input_size=2)
    x = v.transpose(0, 1)
    assert_close(net(x)[0], net(x.contiguous())[0])


def test_long_sequences_take_linear_memory():
    """T = 200,000 in a fraction of a second; the reference would need T squared numbers."""
    T = 200_000
    v, u, d = torch.randn(1, T, 4), torch.rand(1, T), torch.rand(1, T)
    d.requires_grad_()
    r, _ = ss.stack_scan(v, u, d)
    r.sum().backward()
    assert d.grad.isfinite().all()


@pytest.mark.parametrize("memory", SCANS)
def test_operators_are_registered_as_torch_wants(memory, generator):
    from softstack.kernels.rnn import rnn_op
    from softstack.kernels.scan import scan_op

    v, u, d = instructions("random", generator, 2, 5, 3)
    lengths = torch.tensor([5, 3])
    empty = torch.zeros(2, 0, 3, **DOUBLE), torch.zeros(2, 0, **DOUBLE)
    for kernel, device in DEVICE.items():
        tensors = [x.to(device) for x in (v, u, d, *empty, lengths)]
        torch.library.opcheck(scan_op, (*tensors, memory == "stack", kernel))
    net = build("lstm", memory)
    state = net.cell.init((2,), v)
    weights = fused.weights_of("lstm", {k: p.detach() for k, p in net.cell.named_parameters()})
    arguments = (v, *weights, *state.h, state.r, *state.memory, v[..., :0, 0], v[:, 0, 0])
    arguments += (v[..., :0, 0], v[:, :0, :0], lengths)  # no disturbance
    options = Options(CORES["lstm"], MEMORIES[memory], steps=5, ragged=True, buffered=False, disturbed=False)
    torch.library.opcheck(
        rnn_op,
        (*(z.unsqueeze(0) for z in arguments), *options, "cpu"),
        test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
    )


@pytest.mark.parametrize(
    ("kernel", "network", "controller", "memory"),
    [
        ("cpu", "plain", "lstm", "stack"),
        ("cpu", "plain", "linear", "none"),
        ("cpu", "plain", "gru", "superposition"),
        ("cpu", "plain", "linear", ss.Superposition(2, depth=5)),
        ("cpu", "plain", "lstm", "deque"),
        ("cpu", "buffered", "gru", "queue"),
        ("gpu", "plain", "lstm", "none"),
        ("gpu", "as the authors read", "linear", "queue"),
    ],
)
def test_compiles_as_one_graph_for_all_shapes(kernel, network, controller, memory, generator):
    torch._dynamo.reset()
    net = build(controller, memory, network, backend=kernel).to(DEVICE[kernel])
    graphs = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(net, fullgraph=True, dynamic=True, backend=graphs)
    shapes = [(4, 2), (2, 3), (3, 3), (2, 7), (3, 140)]  # at first all different: equal sizes are one symbol
    for B, T in shapes[:2] if INTERPRETED and kernel == "gpu" else shapes:
        x = torch.randn(B, T, 3, generator=generator, **DOUBLE).to(DEVICE[kernel]).requires_grad_()
        inputs = [x, *net.parameters()]
        y, expected = compiled(x)[0], net(x)[0]
        assert_close(y, expected)
        gradients = torch.autograd.grad(y.sum(), inputs)
        for ours, theirs in zip(gradients, torch.autograd.grad(expected.sum(), inputs), strict=True):
            assert_close(ours, theirs)
    # torch begins anew when it finds that a superposition stack's `empty` is a float that decides something
    assert graphs.frame_count == (2 if isinstance(net.cell.memory, ss.Superposition) else 1)


@pytest.mark.parametrize("kernel", DEVICE)
def test_gradient_checkpointing(kernel, generator):
    net = build(backend=kernel).to(DEVICE[kernel])
    x = torch.randn(2, 3, 3, generator=generator, **DOUBLE).to(DEVICE[kernel]).requires_grad_()
    u, d = torch.rand(2, 2, 3, generator=generator, **DOUBLE).to(DEVICE[kernel]).requires_grad_()

    def run(x, u, d):
        return ss.stack_scan(net(x)[0], u, d, backend=kernel)[0]

    inputs = [x, u, d, *net.parameters()]
    again = checkpoint(run, x, u, d, use_reentrant=False)
    gradients = torch.autograd.grad(again.square().sum(), inputs)
    for ours, theirs in zip(gradients, torch.autograd.grad(run(x, u, d).square().sum(), inputs), strict=True):
        assert torch.equal(ours, theirs)


EXPORT_FIRST = """
import sys, torch, softstack as ss
x, sizes = torch.randn(2, 6, 3), dict(hidden_size=5, memory_size=2, output_size=4, controller="gru")
plain, buffered = ss.StackRNN(3, **sizes), ss.BufferedStackRNN(3, **sizes)
reference = ss.StackRNN(3, backend="reference", **sizes)
axes = (torch.export.Dim("B"), torch.export.Dim("T", min=2, max=4000), torch.export.Dim.STATIC)
exported = torch.export.export(plain, (x,), dynamic_shapes=(axes,)).module()
others = [(net, torch.export.export(net, (x,)).module()) for net in (buffered, reference)]
assert "numba" not in sys.modules, "numba cannot be imported while torch exports: it has replaced math.pow"
for T in (6, 140):
    longer = torch.randn(2, T, 3)
    torch.testing.assert_close(exported(longer), plain(longer))
for net, made in others:
    torch.testing.assert_close(made(x), net(x))
assert "numba" in sys.modules
"""


def test_exports_before_the_first_call():
    """In a process that has done nothing else."""
    process = subprocess.run([sys.executable, "-c", EXPORT_FIRST], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr


def test_exports(generator):
    net = build("gru")
    x = torch.randn(2, 6, 3, generator=generator, **DOUBLE)
    exported = torch.export.export(net, (x,))
    assert any("softstack.rnn" in str(node.target) for node in exported.graph.nodes)
    made, ours = exported.module()(x)[0], net(x)[0]
    assert_close(made, ours)
    parameters = list(net.parameters())  # which the exported module shares
    gradients = torch.autograd.grad(made.sum(), parameters)
    for got, expected in zip(gradients, torch.autograd.grad(ours.sum(), parameters), strict=True):
        assert_close(got, expected)


def test_twice_is_refused_in_a_sentence(generator):
    v, u, d = (x.requires_grad_() for x in instructions("random", generator, 2, 5, 3))
    (grad,) = torch.autograd.grad(ss.stack_scan(v, u, d)[0].square().sum(), u, create_graph=True)
    with pytest.raises(ss.BadInput, match="cannot be differentiated twice: use backend='reference'"):
        grad.sum().backward()
    net = build()
    (grad, *_) = torch.autograd.grad(net(v)[0].square().sum(), list(net.parameters()), create_graph=True)
    with pytest.raises(ss.BadInput, match="cannot be differentiated twice"):
        grad.sum().backward()
    (grad,) = torch.autograd.grad(
        ss.stack_scan(v, u, d, backend="reference")[0].square().sum(), u, create_graph=True
    )
    grad.sum().backward()


@pytest.mark.parametrize(
    ("backend", "x", "why_not", "said"),
    [
        ("auto", torch.zeros(1), "", "cpu: the fused kernel runs"),
        ("gpu", torch.zeros(1, device=DEVICE["gpu"]), "", "gpu: the fused kernel runs"),
        ("reference", torch.zeros(1), "", "reference: it was asked for"),
        ("auto", torch.zeros(1).half(), "", "cpu: the fused kernel runs"),
        ("auto", torch.zeros(1, dtype=torch.int32), "", "reference: its dtype is torch.int32"),
        ("auto", torch.zeros(1, device="meta"), "", "reference: its tensors are on meta"),
        ("auto", torch.zeros(1), "a trace is kept step by step", "reference: a trace is kept step by step"),
    ],
)
def test_explain(backend, x, why_not, said):
    assert kernels.explain(backend, x, why_not).startswith(said)


def test_what_does_not_fit_falls_back_or_says_so():
    mlp, x = build("mlp", dtype=torch.float32), torch.zeros(1, 2, 3)
    assert fit.why_not(mlp.cell, x, 2) == "there is no kernel for the controller MLP"
    assert mlp(x)[0].shape == (1, 2, 4)
    mlp.backend = "cpu"
    with pytest.raises(
        ss.BadInput, match="'cpu' does not fit this call: there is no kernel for the controller"
    ):
        mlp(x)
    with pytest.raises(ss.BadInput, match="backend 'gpu' does not fit this call: its tensors are on meta"):
        ss.stack_scan(*(torch.zeros(1, 2, *more, device="meta") for more in ((3,), (), ())), backend="gpu")


def test_exp_sigmoid_and_tanh():
    """To two units in the last place over all that a float holds, and saturated beyond."""
    from numba import njit

    from softstack.kernels.cpu.math import exp, sigmoid, tanh
    from softstack.kernels.cpu.row import load, store

    @njit
    def over(x, a, b, c):
        for i in range(len(x)):
            row = load(x, i)
            store(a, i, exp(row))
            store(b, i, sigmoid(row))
            store(c, i, tanh(row))

    @njit
    def one_by_one(x, a):
        for i in range(len(x)):
            a[i] = exp(x[i])

    for real, most in ((np.float32, 87), (np.float64, 700)):
        x = np.concatenate([np.linspace(-most, most, 20000), np.resize([0.0, -1e-9, 1e-3], 16)]).astype(real)
        made = [np.empty_like(x) for _ in range(3)]
        over(*(z.reshape(-1, 16) for z in (x, *made)))
        alone = np.empty_like(x)
        one_by_one(x, alone)
        np.testing.assert_array_equal(alone, made[0])
        wide = x.astype(np.float64)
        eps = np.finfo(real).eps
        np.testing.assert_allclose(made[0], np.exp(wide), rtol=2 * eps)
        np.testing.assert_allclose(made[1], 1 / (1 + np.exp(-wide)), rtol=3 * eps)
        np.testing.assert_allclose(made[2], np.tanh(wide), rtol=0, atol=3 * eps)
        far = np.resize(np.array([-1e5, 1e5, np.nan], dtype=real), 16)
        ends = [np.empty_like(far) for _ in range(3)]
        over(*(z.reshape(-1, 16) for z in (far, *ends)))
        assert ends[1][1] == 1
        assert ends[1][0] < 1e-37
        assert ends[2][:2].tolist() == [-1, 1]
        assert all(np.isnan(end[2]) for end in ends)


@pytest.mark.parametrize("memory", SCANS)
def test_cores_change_no_bit(memory, generator, monkeypatch):
    """Sequences that are computed side by side are those that are computed one after the other."""
    tensors = [x.float().requires_grad_() for x in instructions("random", generator, 5, 30, 3)]
    outcomes = []
    for threads in (1, 3):
        monkeypatch.setattr("softstack.kernels.cpu.SHARE", 1)
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        r, state = SCANS[memory][0](*tensors, backend="cpu", lengths=torch.tensor([30, 0, 7, 1, 30]))
        outcomes.append([r, state.s, *torch.autograd.grad(r.square().sum() + state.s.sum(), tensors)])
    for one, other in zip(*outcomes, strict=True):
        assert torch.equal(one, other)
