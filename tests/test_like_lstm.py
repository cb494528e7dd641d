"""What users of nn.LSTM expect of a StackRNN.

what                                    what holds
--------------------------------------  ------------------------------------------------------------------
PackedSequence                          in and out, sorted or not: each sequence as it is on its own
truncated backpropagation               state.detach() ends the gradient, ss.compact bounds the memory
compact                                 reads stay as they are; 3,000 steps leave one cell
numpy arrays and lists                  are refused in a sentence
num_layers, bidirectional, dropout      as single layers put together by hand, with lengths and in pieces
output_size=None                        the controller's features
attributes, repr, reset_parameters      the sizes, the names, and weights drawn anew from a generator
explain                                 which backend runs, and why, in a sentence
controller= and memory=                 names or instances
"""

import re

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, unpack_sequence
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves, tree_map

import softstack as ss
from contract import DOUBLE, gradients, inputs, make, same, score
from plugins.layer_norm import NormedRNN
from plugins.mgu import MGU
from plugins.register import Register
from softstack.controllers import LSTM, RNN
from softstack.memory.protocol import TAKEN

both = pytest.mark.parametrize("network", ["StackRNN", "BufferedStackRNN"])


@pytest.mark.parametrize("lengths", [[6, 4, 1], [2, 6, 3], [3, 3, 3]])
def test_packed_sequences(lengths, generator):
    net, x = make("stack"), inputs(generator, 3, 6)
    before = net(inputs(generator, 3, 2))[1]
    pieces = [x[b, :n] for b, n in enumerate(lengths)]
    packed = pack_sequence(pieces, enforce_sorted=lengths == sorted(lengths, reverse=True))
    y, state = net(packed, before)
    assert isinstance(y, PackedSequence)
    same(y[1:], packed[1:])
    for b, own in enumerate(unpack_sequence(y)):
        start = tree_map(lambda leaf: leaf[b], before)  # noqa: B023 (called at once)
        alone, state_alone = net(pieces[b], start)
        assert_close(own, alone)
        assert_close(state.r[b], state_alone.r)
    assert net.explain(packed) == "cpu: the fused kernel runs"
    assert_close(net(packed, return_trace=True)[2].y[0, : lengths[0]], net(pieces[0])[0])
    with pytest.raises(ss.BadInput, match="a PackedSequence knows its lengths: leave `lengths` out"):
        net(packed, lengths=torch.tensor(lengths))


def test_a_packed_sequence_keeps_its_order(generator):
    """Of sequences as long as each other too, whoever sorted them."""
    net, x = make("stack"), inputs(generator, 3, 4)
    order = torch.tensor([2, 0, 1])
    data, sizes, _, _ = pack_padded_sequence(x[order], torch.tensor([4, 4, 4]), batch_first=True)
    y, _ = net(PackedSequence(data, sizes, order, order.argsort()))
    assert torch.equal(y.sorted_indices, order)
    assert_close(torch.stack(unpack_sequence(y)), net(x)[0])


@both
def test_truncated_backpropagation(network, generator):
    """Without detach a loss reaches the first piece. With it, and compacted, the outputs are the same."""
    net, x = make("stack", network), inputs(generator, 2, 6)
    first = x[:, :3].clone().requires_grad_()
    _, state = net(first)
    assert gradients(net(x[:, 3:], state)[0].sum(), [first])[0].any()
    state = net(first)[1]
    whole = net(x[:, 3:], state)[0]
    cut = ss.compact(state.detach())
    assert not any(leaf.requires_grad for leaf in tree_leaves(cut))
    after, _ = net(x[:, 3:], cut)
    assert_close(after, whole[:, : after.shape[1]])
    assert not whole[:, after.shape[1] :].any()
    after.sum().backward()
    assert first.grad is None
    assert net.cell.heads.weight.grad.any()


def test_memory_stays_bounded():
    """60 pieces of 50 steps that each pop and push 1: one cell is left, and reads are those of the whole."""
    net = make("stack", controller="linear", dtype=torch.float32)
    with torch.no_grad():
        net.cell.heads.bias_of("u").fill_(100)
        net.cell.heads.bias_of("d").fill_(100)
    x = torch.randn(2, 3000, 3)
    state, outputs = None, []
    for piece in x.split(50, 1):
        y, state = net(piece, state)
        assert state.memory.V.shape == (2, 50 + (len(outputs) > 0), 2)
        state = ss.compact(state.detach())
        assert state.memory.V.shape == (2, 1, 2)
        outputs.append(y)
    whole, final = net(x)
    assert_close(torch.cat(outputs, 1), whole)
    assert final.memory.V.shape == (2, 3000, 2)
    same(ss.compact(final), state)


def test_compact_keeps_items_in_order():
    V = torch.arange(8.0).view(2, 4, 1)
    s = torch.tensor([[0.0, 0.5, 0.0, 1.0], [0.0, 0.0, 0.0, 0.25]])
    V, s = ss.compact(ss.MemoryState(V, s))
    assert s.tolist() == [[0.5, 1.0], [0.25, 0.0]]
    assert V[0, :, 0].tolist() == [1.0, 3.0]
    assert V[1, 0, 0] == 7.0
    nothing = ss.compact(ss.Stack(2).init(3))
    assert nothing.V.shape == (3, 0, 2)


@both
@pytest.mark.parametrize(("x", "kind"), [([[0.0, 0.0, 1.0]], "list"), (np.zeros((2, 3, 3)), "ndarray")])
def test_arrays_and_lists_are_refused(network, x, kind):
    net = make("stack", network)
    for call in (net, net.explain):
        with pytest.raises(ss.BadInput, match=f"^x must be a tensor; got {kind}: torch.as_tensor makes one$"):
            call(x)
    with pytest.raises(ss.BadInput, match=r"^lengths must be a tensor of whole numbers; got list$"):
        net(torch.zeros(2, 3, 3, **DOUBLE), lengths=[1, 2])


def single_layers(net):
    """Each cell of a network as a network of its own."""
    for cell in net.cells:
        alone = ss.StackRNN(
            cell.input_size, hidden_size=5, memory_size=2, output_size=cell.output_size, **DOUBLE
        )
        alone.cell = cell
        yield alone


def reversed_within(x, lengths):
    return torch.stack([torch.cat((row[:n].flip(0), row[n:])) for row, n in zip(x, lengths, strict=True)])


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("output_size", [4, None])
def test_layers_and_directions(layers, bidirectional, output_size, generator):
    """As single layers put together by hand: outputs, states, gradients, with lengths and in pieces."""
    net = make("stack", num_layers=layers, bidirectional=bidirectional, output_size=output_size)
    x, lengths = inputs(generator, 3, 5), torch.tensor([5, 0, 3])
    before = net(inputs(generator, 3, 2))[1].detach()
    y, state = net(x, before, lengths)
    starts = before.layers if isinstance(before, ss.LayerStates) else [before]
    z, finals, cells = x, [], iter(zip(single_layers(net), starts, strict=True))
    for _ in range(layers):
        alone, start = next(cells)
        forwards, final = alone(z, start, lengths)
        finals.append(final)
        if bidirectional:
            alone, start = next(cells)
            backwards, final = alone(reversed_within(z, lengths), start, lengths)
            forwards = torch.cat((forwards, reversed_within(backwards, lengths)), -1)
            finals.append(final)
        z = forwards
    assert y.shape == (3, 5, (output_size or 5) * (1 + bidirectional))
    assert_close(y, z)
    same(state, finals)
    parameters = list(net.parameters())
    same(gradients(score(y), parameters), gradients(score(z), parameters))
    assert_close(net(x[2, :3])[0], net(x[2:, :3])[0][0])
    if not bidirectional:
        first, between = net(x[:, :2])
        second, last = net(x[:, 2:], between)
        same((torch.cat((first, second), 1), last), net(x))


def test_traces_of_several_cells(generator):
    net, x = make("stack", num_layers=2, bidirectional=True), inputs(generator, 2, 4)
    y, state, traces = net(x, return_trace=True)
    assert len(traces) == len(state.layers) == 4
    for trace, final in zip(traces, state.layers, strict=True):
        assert_close(trace.r[:, -1], final.r)
    assert_close(torch.cat((traces[2].y, traces[3].y.flip(1)), -1), y)


def test_dropout_is_between_layers_and_in_training(generator):
    """All of the features between the two layers are dropped or scaled; nothing else is."""
    net, x = make("stack", num_layers=2, dropout=0.5), inputs(generator, 2, 4)
    plain = net.eval()(x)[0]
    lower, upper = single_layers(net)
    assert_close(plain, upper(lower(x)[0])[0])
    torch.manual_seed(3)
    dropped = net.train()(x)[0]
    torch.manual_seed(3)
    assert_close(dropped, upper(torch.nn.functional.dropout(lower(x)[0], 0.5))[0])
    assert not torch.equal(dropped, plain)
    net.dropout = 0.0
    assert_close(net(x)[0], plain)


@both
@pytest.mark.parametrize("controller", ["linear", "lstm"])
def test_features_come_out_without_an_output_size(network, controller, generator):
    net, x = make("stack", network, controller, output_size=None), inputs(generator, 2, 4)
    y, _, trace = net(x, return_trace=True)
    assert net.output_size is None
    assert "y" not in net.cell.heads.heads
    assert_close(trace.y, trace.h)
    assert trace.h.shape[-1] == (5 if controller == "lstm" else 3 + 2)
    if network == "StackRNN":
        assert_close(y, trace.h)
    assert_close(net(x)[0], y)  # through the kernel
    parameters = list(net.parameters())
    same(gradients(score(net(x)[0]), parameters), gradients(score(y), parameters))


def test_attributes():
    net = make("queue", controller="gru", num_layers=2, dropout=0.25, bidirectional=True)
    sizes = ("input_size", "hidden_size", "memory_size", "output_size", "num_layers", "dropout")
    assert [getattr(net, size) for size in sizes] == [3, 5, 2, 4, 2, 0.25]
    assert net.bidirectional
    assert [cell.input_size for cell in net.cells] == [3, 3, 10, 10]
    assert [cell.output_size for cell in net.cells] == [None, None, 4, 4]
    deque = make("deque")
    assert (deque.memory_size, deque.cell.memory.width) == (2, 4)  # it reads both of its ends
    assert make(Register(7), memory_size=None).memory_size == 7
    assert make("stack", controller=MGU(5, 6, **DOUBLE), hidden_size=None).hidden_size == 6


def test_repr():
    assert str(make("stack", num_layers=2)).startswith(
        "StackRNN(\n  backend='auto', num_layers=2, dropout=0.0, bidirectional=False\n"
    )
    text = str(make("queue", "BufferedStackRNN", "gru"))
    assert text.startswith("BufferedStackRNN(\n  backend='auto', discard_first=False\n")
    assert "input_size=3, hidden_size=5, memory_size=2, output_size=4" in text
    assert "controller='gru', memory='queue'" in text
    assert "(heads): Heads(" in text
    assert "bias=True, heads=u, d, i, o, v, y" in text
    assert "controller='mgu', memory='register'" in str(make(Register(2), controller=MGU(5, 5, **DOUBLE)))


@both
@pytest.mark.parametrize("controller", ["lstm", "mgu", "normed"])
def test_reset_parameters(network, controller, generator, monkeypatch):
    """All weights anew, the same for the same generator. A LayerNorm begins with ones, as PyTorch has it."""
    monkeypatch.setitem(ss.CONTROLLERS, "mgu", MGU)
    monkeypatch.setitem(ss.CONTROLLERS, "normed", NormedRNN)  # whose reset_parameters takes no generator
    net, twin = (make("stack", network, controller, seed=seed) for seed in (0, 1))
    weights = [name for name, _ in net.named_parameters() if not re.search("bias|norm", name)]
    assert not any(torch.equal(net.get_parameter(name), twin.get_parameter(name)) for name in weights)
    random_state = torch.get_rng_state()
    twin.reset_parameters(torch.Generator().manual_seed(0), biases={"u": 3.0})
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(torch.equal(net.get_parameter(name), twin.get_parameter(name)) for name in weights)
    assert net.cell.heads.bias_of("u").item() == -1
    assert twin.cell.heads.bias_of("u").item() == 3
    twin.reset_parameters()
    assert not any(torch.equal(net.get_parameter(name), twin.get_parameter(name)) for name in weights)
    if controller != "lstm":
        for network in (net, twin):
            assert (network.cell.core.norm.weight == 1).all()
            assert not network.cell.core.norm.bias.any()


@both
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({}, "cpu: the fused kernel runs"),
        (dict(backend="reference"), "reference: it was asked for"),
        (dict(controller="mlp"), "reference: there is no kernel for the controller MLP"),
        (dict(controller=MGU(5, 5)), "reference: there is no kernel for the controller MGU"),
        (dict(memory=Register(2)), "reference: there is no kernel for the memory Register"),
    ],
)
def test_explain(network, change, sentence, generator):
    """What is done to layers has its sentences in test_as_a_layer.py."""
    net = make(network=network, **{"memory": "stack", **change})
    assert net.explain(inputs(generator, 2, 4)) == sentence


@both
def test_explain_of_inputs(network, generator):
    net, x = make("stack", network), inputs(generator, 2, 4)
    nothing = "reference: there is nothing to compute"
    assert net.explain(x[:0]) == net.explain(x[:, :0]) == nothing
    assert net.to("meta").explain(x.to("meta")) == "reference: its tensors are on meta"
    with pytest.raises(ss.BadInput, match=r"x must be \(B, T, input_size\)"):
        net.explain(x[..., :2])
    net = make(Register(2), network, backend="cpu")
    reason = "there is no kernel for the memory Register; use 'auto' or 'reference'"
    with pytest.raises(ss.BadInput, match=f"backend 'cpu' does not fit this call: {reason}"):
        net(x)


def test_instances_and_names_are_the_same(generator):
    """An instance of what a name stands for computes the same, and takes the same kernel."""
    x = inputs(generator, 2, 5)
    named = make("queue", controller="rnn")
    given = make(ss.Queue(2), controller=RNN(5, 5, **DOUBLE))
    given.load_state_dict(named.state_dict())
    assert torch.equal(given(x)[0], named(x)[0])
    assert given.explain(x) == named.explain(x) == "cpu: the fused kernel runs"


def test_an_instance_keeps_its_weights_and_moves():
    """To the dtype of the network; a controller that was trained before stays trained."""
    core = LSTM(5, 5)
    weight = core.from_input.weight.detach().clone()
    net = ss.StackRNN(3, memory=ss.Superposition(2), controller=core, **DOUBLE)
    assert net.cell.core is core
    assert_close(core.from_input.weight, weight.double())
    net.reset_parameters()
    assert not torch.equal(core.from_input.weight, weight.double())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(memory=Register), "a memory is needed here, such as ss.Stack(4); got <class"),
        (dict(memory=3), "a memory is needed here, such as ss.Stack(4); got 3"),
        (dict(memory=Register(3)), "memory_size is 2, but Register(size=3) reads vectors of 3: leave memory"),
        (
            dict(controller=MGU),
            "controller must be a name, or a module with features, init and forward",
        ),
        (
            dict(controller=MGU(5, 6)),
            "hidden_size is 5, but the controller has 6 features: leave",
        ),
        (
            dict(controller=MGU(5, 5), num_layers=2),
            "a controller that is given as a module serves one cell",
        ),
        (dict(num_layers=0), "num_layers must be a whole number of at least 1; got 0"),
    ],
)
def test_what_is_refused(change, message):
    with pytest.raises(ss.BadInput, match=re.escape(message)):
        make(**{"memory": "stack", **change})


def test_heads_may_not_be_called_as_a_trace_calls_its_own(monkeypatch):
    assert {name for name in dir(ss.Trace) if not name.startswith("_")} == TAKEN
    for name in TAKEN:
        monkeypatch.setattr(Register, "heads", {name: ss.Vector(2), "d": ss.Strength()})
        for build in (make, lambda memory: ss.StackLayer(4, heads=2, memory=memory)):
            with pytest.raises(ss.BadInput, match=f"Register has a head called '{name}': rename it"):
                build(Register(2))
