"""Networks against the oracle, their heads and first weights, and what they refuse."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import oracle
import softstack as ss

NETWORKS = {"StackRNN": ss.StackRNN, "BufferedStackRNN": ss.BufferedStackRNN}
DOUBLE = dict(dtype=torch.float64)


def make(network="StackRNN", controller="lstm", memory="stack", *, seed=0, **more):
    sizes = dict(hidden_size=5, memory_size=2, output_size=4)
    net = NETWORKS[network](3, controller=controller, memory=memory, **{**sizes, **DOUBLE, **more})
    net.reset_parameters(torch.Generator().manual_seed(seed))
    return net


def inputs(generator, B=3, T=6, dtype=torch.float64):
    return torch.randn(B, T, 3, generator=generator, dtype=dtype)


def leaves(state):
    """The tensors of a state, in order."""
    return [state] if isinstance(state, torch.Tensor) else [leaf for part in state for leaf in leaves(part)]


every_network = pytest.mark.parametrize("network", NETWORKS)
every_controller = pytest.mark.parametrize("controller", ss.CONTROLLERS)
every_memory = pytest.mark.parametrize("memory", ss.MEMORIES)


@pytest.mark.parametrize("controller", ["linear", "lstm"])
@pytest.mark.parametrize("buffers", [None, "first", "discard"])
def test_the_papers_networks(controller, buffers, generator, device):
    """Figures 1 and 2, with both controllers of §2.2: outputs and the gradient of every weight."""
    more = {} if buffers is None else dict(steps=lambda T: 2 * T - 1, discard_first=buffers == "discard")
    net = make("BufferedStackRNN" if buffers else "StackRNN", controller, **more)
    x = inputs(generator, T=5)
    weights = {
        name.removeprefix("cell."): p.detach().clone().requires_grad_() for name, p in net.named_parameters()
    }
    steps = 9 if buffers else None
    expected = torch.stack(
        [
            oracle.network(
                one, weights, 2, lstm=controller == "lstm", steps=steps, discard_first=buffers == "discard"
            )
            for one in x
        ]
    )
    y, _ = net.to(device)(x.to(device))
    assert_close(y.cpu(), expected)
    coefficients = torch.randn(y.shape, generator=generator, **DOUBLE)
    (y * coefficients.to(device)).sum().backward()
    (expected * coefficients).sum().backward()
    for name, p in net.named_parameters():
        assert_close(p.grad.cpu(), weights[name.removeprefix("cell.")].grad)


@pytest.mark.parametrize(
    ("controller", "cell"), [("rnn", nn.RNNCell), ("gru", nn.GRUCell), ("lstm", nn.LSTMCell)]
)
def test_recurrent_cores_are_pytorchs(controller, cell, generator):
    core = make(controller=controller).cell.core
    theirs = cell(5, 5, **DOUBLE)
    names = {"from_input": "ih", "from_hidden": "hh"}
    theirs.load_state_dict(
        {f"{p.split('.')[1]}_{names[p.split('.')[0]]}": w for p, w in core.state_dict().items()}
    )
    z, h = (torch.randn(4, 5, generator=generator, **DOUBLE) for _ in "zh")
    c = torch.randn(4, 5, generator=generator, **DOUBLE)
    state, ours = (h, (h,)) if controller != "lstm" else ((h, c), (h, c))
    expected = theirs(z, state)
    features, new = core(z, ours)
    assert_close(features, expected[0] if controller == "lstm" else expected)
    assert_close(new[-1], expected[1] if controller == "lstm" else expected)


def test_heads_are_split_by_name(generator):
    cell = ss.StackCell(1, controller="linear", memory=ss.Stack(2), output_size=4, buffered=True, **DOUBLE)
    features = torch.randn(5, 3, generator=generator, **DOUBLE)
    heads, actions = cell.heads, cell.act(features, like=features)
    raw = features @ heads.weight.T + heads.bias
    assert heads.sizes == {"u": 1, "d": 1, "i": 1, "o": 1, "v": 2, "y": 4}
    said = {**actions.instructions._asdict(), "y": actions.y, "i": actions.i, "o": actions.o}
    for name in heads.sizes:
        own = raw[:, heads.rows(name)]
        expected = own if name == "y" else torch.sigmoid(own)
        assert_close(said[name], expected.squeeze(1) if name in "udio" else expected)
    with torch.no_grad():
        heads.bias_of("o").fill_(7.0)
    assert heads.bias[3] == 7.0


def test_each_kind_of_head(generator):
    """A strength, several, a vector, a choice and scores: what they make of the same rows, and hardened."""
    raw = torch.randn(5, 3, generator=generator, **DOUBLE)
    assert_close(ss.Strength().value(raw[:, :1]), torch.sigmoid(raw[:, 0]))
    assert_close(ss.Strength(count=3).value(raw), torch.sigmoid(raw))
    assert_close(ss.Vector(3).value(raw), torch.sigmoid(raw))
    assert_close(ss.Choice(("push", "pop", "no-op")).value(raw), raw.exp() / raw.exp().sum(1, keepdim=True))
    assert_close(ss.Scores(3).value(raw), raw)
    likeliest = torch.zeros(5, 3, **DOUBLE).scatter(1, raw.argmax(1, keepdim=True), 1.0)
    choice = ss.Choice(("push", "pop", "no-op"))
    assert_close(choice.hardened(choice.value(raw)), likeliest)
    assert_close(ss.Strength().hardened(torch.tensor([0.2, 0.7])), torch.tensor([0.0, 1.0]))


@pytest.mark.parametrize(
    "layer",
    [
        ss.StackRNN(3, hidden_size=4, memory_size=2, num_layers=2),
        ss.BufferedStackRNN(3, hidden_size=4, memory_size=2),
        ss.StackLayer(3, heads=2, memory_size=2),
        ss.StackLayer(3, heads=2, memory=ss.Superposition(2)),
    ],
)
def test_a_batch_may_be_a_number(layer, generator):
    x = torch.randn(2, 5, 3, generator=generator)
    assert_close(layer(x, layer.init(2, x))[0], layer(x, layer.init((2,), x))[0])
    assert_close(layer(x[0], layer.init(None, x))[0], layer(x[0], layer.init((), x))[0])


def test_initialisation_is_the_authors():
    net = ss.BufferedStackRNN(50, output_size=60, hidden_size=40, memory_size=30)
    heads = net.cell.heads
    assert heads.bias_of("u").item() == -1
    assert heads.bias_of("i").item() == heads.bias_of("o").item() == 1
    assert not heads.bias_of("d").any()
    assert not heads.bias_of("v").any()
    assert not heads.bias_of("y").any()
    assert not net.cell.core.from_input.bias.any()
    for weight in (heads.weight, net.cell.core.from_input.weight, net.cell.core.from_hidden.weight):
        assert weight.std().item() == pytest.approx(weight.shape[0] ** -0.5, rel=0.05)
        assert abs(weight.mean().item()) < 0.01


def test_a_buffered_network_in_pieces(generator):
    """With as many steps as items it never runs out of input, so pieces do as the whole does."""
    net = make("BufferedStackRNN", "lstm", steps=lambda T: T)
    with torch.no_grad():
        net.cell.heads.bias_of("i").fill_(-3.0)  # take little
    x = inputs(generator)
    whole, final = net(x)
    _, state = net(x[:, :4])
    y, state = net(x[:, 4:], state)
    assert_close(y, whole)
    for a, b in zip(leaves(state), leaves(final), strict=True):
        assert_close(a, b)


@every_network
def test_saturated_strengths_give_finite_gradients(network, generator):
    """Sigmoids at exactly 0 and 1, as trained networks have them: every strength on a kink."""
    net = make(network, "linear", dtype=torch.float32)
    with torch.no_grad():
        net.cell.heads.weight.mul_(200)
    y, _, trace = net(inputs(generator, dtype=torch.float32), return_trace=True)
    assert (trace.d == 1).any()
    assert (trace.u < 1e-30).any()
    y.square().sum().backward()
    assert all(p.grad.isfinite().all() for p in net.parameters())


@every_network
def test_a_state_that_is_not_its_own_is_refused(network, generator):
    """Every part of it is compared before anything is computed."""
    net, x = make(network, "lstm"), inputs(generator)
    state = net(x)[1]
    own = state if network == "StackRNN" else state.network

    def refused(changed, message):
        given = changed if network == "StackRNN" else state._replace(network=changed)
        with pytest.raises(ss.BadInput, match=message):
            net(x, given)

    name = "state" if network == "StackRNN" else "state.network"
    refused(
        own._replace(h=(own.h[0][:1], own.h[1])), rf"{name}.h.0 must be \(3, 5\) to match x; got \(1, 5\)"
    )
    refused(own._replace(h=own.h[:1]), f"{name}.h is not one that this network gave")
    refused(own._replace(r=own.r.float()), f"{name}.r must be torch.float64 on cpu; got torch.float32")
    wide = own.memory._replace(V=own.memory.V[..., :1])
    refused(own._replace(memory=wide), rf"{name}.memory.V must be \(B, N, m\) = \(3, \d+, 2\) to match x")
    negative = own.memory._replace(s=own.memory.s - 5)
    refused(own._replace(memory=negative), f"{name}.memory.s holds a strength of -")
    with pytest.raises(ss.BadInput, match="state is not one that this network gave"):
        net(x, tuple(state))


def test_dtype_and_device(device):
    net = ss.StackRNN(3, hidden_size=4, memory_size=2, device=device, dtype=torch.float64)
    assert {p.dtype for p in net.parameters()} == {torch.float64}
    assert {p.device.type for p in net.parameters()} == {device}
    assert net(torch.zeros(2, 3, 3, device=device, dtype=torch.float64))[0].dtype == torch.float64


def test_the_output_buffer_as_the_paper_reads_it_and_as_it_should_be():
    """PAPER: dequeue, then read, so pushing 1 2 3 4 whole reads 2 3 4 0; corrected: 1 2 3 4."""
    from softstack.buffers import read_off

    buffer = ss.MemoryState(torch.tensor([[[1.0], [2.0], [3.0], [4.0]]]), torch.ones(1, 4))
    assert_close(read_off(buffer, 4).flatten(), torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert_close(read_off(buffer, 4, discard_first=True).flatten(), torch.tensor([2.0, 3.0, 4.0, 0.0]))
    halves = buffer._replace(s=torch.full((1, 4), 0.5))
    assert_close(read_off(halves, 3).flatten(), torch.tensor([1.5, 3.5, 0.0]))


def test_a_network_that_copies_its_input():
    """Taking and giving whole items at every step: the input buffer, the output buffer and no misprint.

    Taken literally, §2.3's ι would leave nothing to read after one whole item; here every item comes through.
    """
    net = ss.BufferedStackRNN(3, output_size=3, memory_size=2, controller="linear", steps=lambda T: T)
    with torch.no_grad():
        net.cell.heads.weight.zero_()
        net.cell.heads.weight[net.cell.heads.rows("y"), :3] = torch.eye(3)
        net.cell.heads.bias.zero_()
        net.cell.heads.bias_of("i").fill_(100)
        net.cell.heads.bias_of("o").fill_(100)
    x = torch.eye(3)[[0, 2, 1, 1]]
    assert_close(net(x)[0], x)


def small(network=ss.StackRNN, **more):
    return network(3, **{**dict(hidden_size=10, memory_size=2, output_size=3), **more})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: small(controller="lstn"), r"unknown controller 'lstn': did you mean 'lstm'\?"),
        (lambda: small(memory="stak"), r"unknown memory 'stak': did you mean 'stack'\?"),
        (lambda: small(output_size=0), r"output_size must be a whole number of at least 1; got 0"),
        (lambda: small(backend="cuda"), r"unknown backend 'cuda'"),
        (lambda: small(hidden_size=None), r"hidden_size is missing: how many hidden units has the lstm"),
        (lambda: small(memory_size=None), r"memory_size is missing: how many numbers has a vector"),
        (lambda: small(dropout=1.0), r"dropout must lie in \[0, 1\); got 1.0"),
        (
            lambda: small()(torch.zeros(2, 5)),
            r"x must be \(B, T, input_size\).*input_size = 3; got \(2, 5\)",
        ),
        (lambda: small()(torch.zeros(2, 5, 3).long()), r"x must be floating point"),
        (
            lambda: small()(torch.zeros(2, 5, 3).double()),
            r"x must be of the parameters' dtype and device, torch.float32 on cpu; got torch.float64 on cpu",
        ),
        (lambda: ss.Stack(0), r"size must be a whole number of at least 1; got 0"),
        (
            lambda: small()(torch.zeros(2, 5, 3), small()(torch.zeros(4, 5, 3))[1]),
            r"state.h.0 must be \(2, 10\) to match x; got \(4, 10\)",
        ),
        (
            lambda: small(ss.BufferedStackRNN, steps=lambda T: T / 2)(torch.zeros(2, 5, 3)),
            r"steps\(5\) must be a whole number of at least 0; got 2.5",
        ),
        (
            lambda: small()(torch.zeros(2, 5, 3), lengths=torch.tensor([6, 1])),
            r"lengths must lie between 0 and T = 5; got 6",
        ),
        (lambda: small(controller="LSTM"), r"unknown controller 'LSTM': did you mean 'lstm'\?"),
        (lambda: small(dtype=torch.int64), r"dtype must be floating point"),
        (lambda: small(ss.BufferedStackRNN, steps=20), r"steps must be a function of the number of items"),
        (lambda: small().reset_parameters(biases={"push": 1.0}), r"unknown head 'push'"),
        (lambda: small()(torch.zeros(2, 5, 3).to_sparse()), r"x must be a dense tensor"),
        (lambda: small()(torch.zeros(2, 5, 3), edit=lambda s: s), r"edit must be an ss.Edit, .*got function"),
        (
            lambda: small()(torch.zeros(2, 5, 3), edit=ss.Edit(state=lambda state: None)),
            r"the `state` of an Edit must give a State; got NoneType",
        ),
        (
            lambda: small(ss.BufferedStackRNN)(torch.zeros(2, 5, 3), edit=[ss.Edit()]),
            r"edit must be an ss.Edit; got a list",
        ),
        (lambda: small().cell(torch.zeros(2, 3), (1,)), r"state must be a State, as init gives it"),
        (
            lambda: small()(torch.zeros(2, 5, 3), edit=ss.Edit(actions=lambda actions: None)),
            r"the `actions` of an Edit must give Actions; got NoneType",
        ),
        (
            lambda: small()(torch.zeros(2, 5, 3), disturbance=torch.zeros(2, 5)),
            r"disturbance must be an ss.Disturbance of two tensors; got a tensor of \(2, 5\)",
        ),
        (
            lambda: small()(torch.zeros(2, 5, 3), disturbance=ss.Disturbance(None, None)),
            r"must be an ss.Disturbance of two tensors; got a Disturbance of NoneType, NoneType",
        ),
        (
            lambda: small()(torch.zeros(5, 3), lengths=torch.tensor([5])),
            r"lengths must be one number, of shape \(\), to match x; got \(1,\)",
        ),
        (lambda: ss.stack_scan(*torch.zeros(3, 2, 2), 3), r"state must be a MemoryState, or None"),
        (lambda: ss.compact(None), r"a state is a tuple of tensors, as networks give it; got NoneType"),
        (lambda: ss.StackLayer(8, memory=ss.Stack(4), memory_size=3), r"vectors of 4: leave memory_size out"),
        (lambda: ss.StackLayer(8)(torch.zeros(2, 5, 3)), r"x must be \(B, T, d_model\)"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ss.BadInput, match=message):
        call()


def test_sizes_are_given_by_name():
    with pytest.raises(TypeError, match="positional"):
        ss.StackRNN(8, 32)
