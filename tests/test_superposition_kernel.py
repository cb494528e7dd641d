"""The superposition stack's kernel against the reference and against the paper's equations."""

import pytest
import torch
from torch.func import functional_call, stack_module_state, vmap
from torch.testing import assert_close

import oracle
import softstack as ss
from softstack.kernels.kinds import CORES
from test_kernels import agree, build, compare, leaves_of, new_memory_is_nan, outcome
from test_memory import DOUBLE

__all__ = ["new_memory_is_nan"]  # a fixture that runs for every test

MEMORIES = {
    "with a no-op": ss.Superposition(2),
    "without": ss.Superposition(2, noop=False),
    "three deep": ss.Superposition(2, depth=3),
    "one deep, without": ss.Superposition(2, noop=False, depth=1),
}


@pytest.mark.parametrize("controller", CORES)
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("B", "T", "before", "ragged"),
    [(1, 1, 0, False), (3, 6, 0, True), (17, 9, 0, False), (5, 7, 4, True), (33, 3, 2, False)],
)
def test_networks(controller, memory, dtype, B, T, before, ragged, generator):
    compare("cpu", "plain", controller, MEMORIES[memory], dtype, B, T, before, ragged, generator)


@pytest.mark.parametrize("memory", MEMORIES)
def test_networks_of_many_steps(memory, generator):
    compare("cpu", "plain", "lstm", MEMORIES[memory], torch.float64, 3, 140, 5, True, generator)


@pytest.mark.parametrize("memory", MEMORIES)
def test_the_equations(memory, generator):
    """A linear controller that says what it is told, and puts out what it has just read."""
    memory = MEMORIES[memory]
    actions = memory.heads["action"].size
    net = ss.StackRNN(actions + 2, controller="linear", memory=memory, output_size=2, backend="cpu", **DOUBLE)
    weight, bias = net.parameters()
    with torch.no_grad():
        weight.copy_(torch.eye(actions + 4, **DOUBLE))
        bias.zero_()
    x = torch.randn(1, 8, actions + 2, generator=generator, **DOUBLE, requires_grad=True)
    y, state = net(x)
    told = x[0, :, :actions].softmax(-1), x[0, :, actions:].sigmoid()
    r = oracle.superposition(*told, depth=memory.depth)
    assert_close(torch.cat((y[0, 1:], state.r)), r)
    weights = torch.randn(r.shape, generator=generator, **DOUBLE)
    ours = torch.autograd.grad((torch.cat((y[0, 1:], state.r)) * weights).sum(), x)
    assert_close(ours, torch.autograd.grad((r * weights).sum(), x))


@pytest.mark.parametrize("fault", ["x", "weight", "action", "v", "y"])
def test_what_is_not_a_number_shows(fault, generator):
    net = build("gru", "superposition")
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


@pytest.mark.parametrize("controller", CORES)
def test_a_population_is_one_call(controller, generator):
    nets = [build(controller, "superposition") for _ in range(3)]
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


def test_where_it_does_not_fit(generator):
    x = torch.randn(1, 4, 3, generator=generator, **DOUBLE)
    reading = build("lstm", ss.Superposition(2, empty=-1.0))
    reason = "there is no kernel for the memory Superposition that reads -1.0 where nothing is"
    assert reading.explain(x) == f"reference: {reason}"
    buffered = build("lstm", "superposition", "buffered")
    reason = "there is no kernel for the memory Superposition with buffers"
    assert buffered.explain(x) == f"reference: {reason}"
    with pytest.raises(ss.BadInput, match="a superposition stack has no kernel on a GPU"):
        build("lstm", "superposition", backend="gpu")(x)


def test_a_state_that_is_deeper_than_the_memory(generator):
    """It comes from another network, and loses its lowest cells in the first step, as in the reference."""
    deep, shallow = (build("lstm", ss.Superposition(2, depth=depth)) for depth in (None, 2))
    x = torch.randn(2, 5, 3, generator=generator, **DOUBLE)
    state, coefficients = deep(x)[1], []
    theirs = outcome(shallow, "reference", x, state, None, coefficients)
    agree(outcome(shallow, "auto", x, state, None, coefficients), theirs)
    assert shallow(x, state)[1].memory.cells.shape[1] == 2
