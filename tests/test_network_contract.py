"""What a network keeps with every memory, every controller, and with or without buffers."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves, tree_map

import softstack as ss
from contract import (
    CONTROLLERS,
    DOUBLE,
    MEMORIES,
    at,
    every_controller,
    every_memory,
    every_network,
    every_pair,
    gradients,
    inputs,
    longer,
    make,
    same,
    score,
)
from softstack.memory.protocol import instructions_type


@pytest.fixture(autouse=True)
def names(monkeypatch):
    """The plugins' names are known, as `--plugin` makes them."""
    for name in MEMORIES:
        monkeypatch.setitem(ss.MEMORIES, name, MEMORIES[name])
    for name in CONTROLLERS:
        monkeypatch.setitem(ss.CONTROLLERS, name, CONTROLLERS[name])


@every_pair
def test_traces_hold_what_the_memory_did(memory, network, controller, generator):
    """Replaying the instructions of a trace gives what it says was read and held, cell by cell."""
    net = make(memory, network, controller)
    x = inputs(generator, 2, 4)
    y, state, trace = net(x, return_trace=True)
    kind, own = net.cell.memory, state if network == "StackRNN" else state.network
    steps = 4 if network == "StackRNN" else 8
    assert trace.r.shape == (2, steps, kind.width)
    assert list(trace.instructions) == list(kind.heads)
    replayed = kind.init((2,), **DOUBLE)
    for t in range(steps):
        now = at(trace.instructions, slice(None), t)
        replayed, r = kind.step(replayed, instructions_type(tuple(now))(**now))
        V, s = kind.contents(replayed)
        assert_close(trace.r[:, t], r)
        assert_close(trace.V[:, t, : V.shape[1]], V)
        assert_close(trace.s[:, t, : s.shape[1]], s)
        assert not trace.s[:, t, s.shape[1] :].any()
    same(replayed, own.memory)
    assert_close(trace.r[:, -1], own.r)
    for name in kind.heads:
        assert getattr(trace, name) is trace.instructions[name]
    if network == "StackRNN":
        same((trace.x, trace.y), (x, y))
        assert (trace.i == 1).all()
        assert (trace.o == 1).all()
    assert_close(net(x)[0], y)  # through a kernel where there is one


@every_pair
def test_networks_in_batches_and_with_lengths(memory, network, controller, generator):
    """Each sequence comes out as it does on its own, without a batch axis, whatever its padding holds."""
    net = make(memory, network, controller)
    lengths = torch.tensor([5, 0, 3])
    x = inputs(generator, 3, 5)
    for b, n in enumerate(lengths):
        x[b, n:] = torch.nan
    y, state = net(x, lengths=lengths)
    ours = gradients(score(y), list(net.parameters()))
    rest = [torch.zeros_like(p) for p in net.parameters()]
    for b, n in enumerate(lengths.tolist()):
        y_alone, state_alone = net(x[b, :n])
        own = tree_map(lambda leaf: leaf[b], state)  # noqa: B023 (called at once)
        assert_close(y[b], longer(y_alone, y[b]))
        same(own, tree_map(longer, state_alone, own))
        weights = torch.linspace(-1, 1, y.numel(), **DOUBLE).view(y.shape)[b, : y_alone.shape[0]]
        own_gradients = gradients((y_alone * weights).sum(), list(net.parameters()))
        rest = [total + own for total, own in zip(rest, own_gradients, strict=True)]
    same(ours, rest)


@every_memory
@every_controller
def test_networks_in_pieces(memory, controller, generator):
    net, x = make(memory, controller=controller), inputs(generator, 3, 6)
    first, state = net(x[:, :2])
    second, state = net(x[:, 2:], state)
    same((torch.cat([first, second], 1), state), net(x))


@every_pair
def test_no_sequences_and_no_steps(memory, network, controller, generator):
    net, x = make(memory, network, controller), inputs(generator, 3, 5)
    kind, steps = net.cell.memory, 5 if network == "StackRNN" else 10
    y, _, trace = net(x[:0], return_trace=True)
    assert y.shape == (0, steps, 4)
    assert trace.r.shape == (0, steps, kind.width)
    y, state, trace = net(x[:, :0], return_trace=True)
    assert y.shape == (3, 0, 4)
    assert trace.r.shape == (3, 0, kind.width)
    assert {name: part.shape for name, part in trace.instructions.items()} == {
        name: (3, 0, *head.shape) for name, head in kind.heads.items()
    }
    same(net(x, state), net(x))
    before = net(x)[1]
    same(net(x[:, :0], before)[1], before)


@every_pair
def test_gradcheck_of_networks(memory, network, controller, generator):
    more = dict(steps=lambda T: T + 1) if network == "BufferedStackRNN" else {}
    net = make(memory, network, controller, **more)
    names = [name for name, _ in net.named_parameters()]
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=generator, **DOUBLE))

    def outcome(x, *weights):
        return functional_call(net, dict(zip(names, weights, strict=True)), (x,))[0]

    weights = [p.detach().requires_grad_() for p in net.parameters()]
    x = inputs(generator, 2, 3).requires_grad_()
    assert torch.autograd.gradcheck(outcome, (x, *weights), fast_mode=True)


@every_pair
def test_a_population_is_vmapped(memory, network, controller, generator, device):
    """stack_module_state, vmap and functional_call, with gradients, against one model at a time."""
    nets = [make(memory, network, controller, seed=k).to(device) for k in range(3)]
    x = inputs(generator, 3, 2, 4).to(device)
    stacked, _ = stack_module_state(nets)
    grads = vmap(grad(lambda weights, x: functional_call(nets[0], weights, (x,))[0].square().sum()))(
        stacked, x
    )
    for k, net in enumerate(nets):
        own = gradients(net(x[k])[0].square().sum(), list(net.parameters()))
        same([grads[name][k] for name, _ in net.named_parameters()], own)


@every_memory
@every_network
def test_copies_and_saves(memory, network, generator):
    """state_dict, deepcopy, pickle of a network, of its state and of its trace."""
    net, other, x = make(memory, network), make(memory, network, seed=1), inputs(generator, 2, 5)
    _, state, trace = net(x, return_trace=True)
    assert not torch.equal(other(x)[0], net(x)[0])
    other.load_state_dict(net.state_dict())
    for twin in (other, copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(twin(x)[0], net(x)[0])
    state, trace = state.detach(), trace.map(torch.Tensor.detach)
    for twin in (copy.deepcopy((state, trace)), pickle.loads(pickle.dumps((state, trace)))):
        same(twin[0], state)
        assert torch.equal(twin[1].V, trace.V)
        assert twin[1].memory == trace.memory
        assert twin[1].instructions.keys() == trace.instructions.keys()


@every_pair
def test_autocast(memory, network, controller, generator):
    """Matrix products in bfloat16; strengths, memory and what comes out in float32, to be gone on with."""
    net, x = make(memory, network, controller).float(), inputs(generator, 2, 5).float()
    plain = net(x)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, state, trace = net(x, return_trace=True)
        assert {leaf.dtype for leaf in tree_leaves((y, state, trace[3:6]))} == {torch.float32}
        after_a_layer, state = net(nn.Linear(3, 3)(x))
    assert not torch.equal(y, plain)
    assert_close(y, plain, atol=0.05, rtol=0.05)
    assert net(x, state)[0].dtype == after_a_layer.dtype == torch.float32


@pytest.mark.parametrize(
    ("memory", "network"), [*((memory, "StackRNN") for memory in MEMORIES), ("multipop", "BufferedStackRNN")]
)
def test_compiles(memory, network, generator):
    """One graph, the loop unrolled. These backends show what torch captures, and wait for no compiler; the
    second also makes a graph of the backward pass, of the memories that compute most."""
    more = dict(steps=lambda T: T) if network == "BufferedStackRNN" else {}
    net, x = make(memory, network, **more), inputs(generator, 2, 2)
    torch._dynamo.reset()  # which counts how often the same lines are compiled
    backend = "aot_eager" if memory in ("multipop", "tape", "nondeterministic") else "eager"
    compiled = torch.compile(net, fullgraph=True, backend=backend)
    lengths = torch.tensor([2, 1])
    ours, theirs = compiled(x, lengths=lengths), net(x, lengths=lengths)
    same(ours, theirs)
    parameters = list(net.parameters())
    same(gradients(score(ours[0]), parameters), gradients(score(theirs[0]), parameters))


@pytest.mark.parametrize(
    ("memory", "network"), [*((memory, "StackRNN") for memory in MEMORIES), ("stack", "BufferedStackRNN")]
)
def test_exports(memory, network, generator):
    net, x = make(memory, network, backend="reference"), inputs(generator, 2, 2)
    same(torch.export.export(net, (x,)).module()(x), net(x))


@pytest.mark.parametrize(
    ("memory", "controller"),
    sorted({(memory, "lstm") for memory in MEMORIES} | {("stack", controller) for controller in CONTROLLERS}),
)
def test_learns(memory, controller, generator):
    """To say what came in the step before."""
    net, x = make(memory, controller=controller), inputs(generator, 8, 6)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.02)
    losses = []
    for _ in range(15):
        optimiser.zero_grad()
        loss = (net(x)[0][:, 1:, :3] - x[:, :-1]).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.97 * losses[0]
