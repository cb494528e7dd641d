"""Kernels of memories that have them on the CPU alone, and without buffers: superposition and multipop stacks
and the deque, against the reference and against the equations of their papers."""

from functools import partial

import pytest
import torch
from torch.func import functional_call, stack_module_state, vmap
from torch.testing import assert_close

import oracle
import softstack as ss
from softstack.kernels.cpu.layout import SEGMENT
from softstack.kernels.kinds import CORES, UNBUFFERED
from test_kernels import DEVICE, agree, build, compare, leaves_of, new_memory_is_nan, outcome
from test_memory import DOUBLE

__all__ = ["new_memory_is_nan"]  # a fixture that runs for every test

SUPERPOSITIONS = {
    "with a no-op": ss.Superposition(2),
    "without": ss.Superposition(2, noop=False),
    "three deep": ss.Superposition(2, depth=3),
    "one deep, without": ss.Superposition(2, noop=False, depth=1),
}
MULTIPOPS = {f"{pops} pops": ss.Multipop(2, pops=pops) for pops in (1, 3, 9)}
MEMORIES = {**SUPERPOSITIONS, **MULTIPOPS, "deque": "deque"}
SIZES = [(1, 1, 0, False), (3, 6, 0, True), (17, 9, 0, False), (5, 7, 4, True), (33, 3, 2, False)]


@pytest.mark.parametrize("controller", CORES)
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_networks(controller, memory, dtype, generator):
    for B, T, before, ragged in SIZES:
        compare("cpu", "plain", controller, MEMORIES[memory], dtype, B, T, before, ragged, generator)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("T", [SEGMENT, SEGMENT + 1, 4 * SEGMENT + 12])
def test_networks_of_many_steps(memory, T, generator):
    """Of a segment, of two, and of so many that a stack would be a chain."""
    compare("cpu", "plain", "lstm", MEMORIES[memory], torch.float64, 3, T, 5, True, generator)


def obedient(memory):
    """A linear controller that says what it is told, and puts out what it has just read: in its input are the
    heads of the memory, strengths first."""
    cell = build("linear", memory).cell
    size, width = sum(head.size for head in cell.memory.heads.values()), cell.memory.width
    net = build("linear", memory, input_size=size, output_size=width)
    weight, bias = net.parameters()
    with torch.no_grad():
        weight.copy_(torch.eye(size + width, **DOUBLE))
        bias.zero_()
    return net


def equations(memory):
    if isinstance(memory, ss.Superposition):
        return partial(oracle.superposition, depth=memory.depth)
    return oracle.multipop if isinstance(memory, ss.Multipop) else oracle.deque


@pytest.mark.parametrize("memory", MEMORIES)
def test_the_equations(memory, generator):
    net = obedient(MEMORIES[memory])
    net.backend = "cpu"
    heads = dict(list(net.cell.head_kinds.items())[:-1])  # without y
    x = torch.randn(1, 8, net.input_size, generator=generator, **DOUBLE, requires_grad=True)
    y, state = net(x)
    parts = x[0].split([head.size for head in heads.values()], -1)
    told = {name: head.value(part) for (name, head), part in zip(heads.items(), parts, strict=True)}
    r = equations(net.cell.memory)(**told)
    assert_close(torch.cat((y[0, 1:], state.r)), r)
    weights = torch.randn(r.shape, generator=generator, **DOUBLE)
    ours = torch.autograd.grad((torch.cat((y[0, 1:], state.r)) * weights).sum(), x)
    assert_close(ours, torch.autograd.grad((r * weights).sum(), x))


@pytest.mark.parametrize("T", [12, SEGMENT + 8])
@pytest.mark.parametrize("ragged", [False, True])
def test_ties_in_a_deque(T, ragged, generator):
    """Strengths of exactly 1/2 and 1, straight from the input, and cells that come in empty: pops end between
    cells, those of both ends meet, and reads are full."""
    net = obedient("deque")
    x = torch.randn(4, T, net.input_size, generator=generator, **DOUBLE)
    x[..., :4] = 60 * torch.randint(0, 2, (4, T, 4), generator=generator)
    x[2, :, [0, 2]] -= 30  # hardly a pop: most cells stay
    state = net(x[:, :5])[1]
    empty = torch.arange(state.memory.s.shape[1]) % 3 == 0
    state = state._replace(memory=state.memory._replace(s=state.memory.s.masked_fill(empty, 0)))
    lengths = torch.tensor([0, 1, T, T - 1]) if ragged else None
    coefficients = []
    theirs = outcome(net, "reference", x, state, lengths, coefficients, one_by_one=ragged)
    agree(outcome(net, "cpu", x, state, lengths, coefficients), theirs)


@pytest.mark.parametrize("memory", UNBUFFERED)
def test_what_is_not_a_number_shows(memory, generator):
    for fault in ("x", "weight", *build("gru", memory).cell.head_kinds):
        net = build("gru", memory, backend="cpu")
        x = torch.randn(2, 5, 3, generator=generator, **DOUBLE)
        with torch.no_grad():
            if fault == "x":
                x[0, 2, 1] = torch.nan
            elif fault == "weight":
                net.cell.core.from_hidden.weight[1, 1] = torch.nan
            else:
                net.cell.heads.bias_of(fault)[0] = torch.nan
        (ours, theirs) = ([y, *leaves_of(state)] for y, state in (net(x), _by_reference(net, x)))
        assert not theirs[0].isfinite().all()
        for our, their in zip(ours, theirs, strict=True):
            assert torch.equal(our.isfinite(), their.isfinite())


def _by_reference(net, x):
    net.backend = "reference"
    return net(x)


@pytest.mark.parametrize("memory", UNBUFFERED)
@pytest.mark.parametrize("controller", CORES)
def test_a_population_is_one_call(controller, memory, generator):
    nets = [build(controller, memory, backend="cpu") for _ in range(3)]
    x = torch.randn(3, 7, 6, 3, generator=generator, **DOUBLE)
    stacked, _ = stack_module_state(nets)
    parameters = {name: p.detach().requires_grad_() for name, p in stacked.items()}
    y = vmap(lambda p, x: functional_call(nets[0], p, (x,))[0])(parameters, x)
    grads = torch.autograd.grad(y.square().sum(), list(parameters.values()))
    for k, net in enumerate(nets):
        alone, _ = _by_reference(net, x[k])
        alone.square().sum().backward()
        assert_close(y[k], alone)
        for name, grad in zip(parameters, grads, strict=True):
            assert_close(grad[k], net.get_parameter(name).grad)


@pytest.mark.parametrize("memory", UNBUFFERED)
def test_the_same_call_gives_the_same_bits(memory, generator):
    net = build("lstm", memory, dtype=torch.float32, backend="cpu")
    x = torch.randn(5, 40, 3, generator=generator)
    first, second = ([net(x)[0], *torch.autograd.grad(net(x)[0].sum(), net.parameters())] for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("memory", UNBUFFERED)
def test_where_it_fits_and_where_it_does_not(memory, generator):
    x = torch.randn(1, 4, 3, generator=generator, **DOUBLE)
    net, buffered = build("lstm", memory), build("lstm", memory, "buffered")
    assert net.explain(x) == "cpu: the fused kernel runs"
    reason = f"there is no kernel for the memory {type(net.cell.memory).__name__} with buffers"
    assert buffered.explain(x) == f"reference: {reason}"
    with pytest.raises(ss.BadInput, match=f"(?i)no kernel for the memory '?{memory}'? on a GPU"):
        build("lstm", memory, backend="gpu").to(DEVICE["gpu"])(x.to(DEVICE["gpu"]))
    handle = net.cell.heads.register_forward_hook(lambda *_: None)
    assert net.explain(x) == "reference: cell.heads has a hook"
    handle.remove()
    assert net.explain(x, return_trace=True) == "reference: a trace is kept step by step"


def test_a_superposition_stack_that_reads_something_where_nothing_is(generator):
    net = build("lstm", ss.Superposition(2, empty=-1.0))
    reason = "there is no kernel for the memory Superposition that reads -1.0 where nothing is"
    assert net.explain(torch.randn(1, 4, 3, generator=generator, **DOUBLE)) == f"reference: {reason}"


def test_a_state_that_is_deeper_than_the_memory(generator):
    """It comes from another network, and loses its lowest cells in the first step, as in the reference."""
    deep, shallow = (build("lstm", ss.Superposition(2, depth=depth)) for depth in (None, 2))
    x = torch.randn(2, 5, 3, generator=generator, **DOUBLE)
    state, coefficients = deep(x)[1], []
    theirs = outcome(shallow, "reference", x, state, None, coefficients)
    agree(outcome(shallow, "auto", x, state, None, coefficients), theirs)
    assert shallow(x, state)[1].memory.cells.shape[1] == 2
