"""Resets and noise: what they are, by a loop written out; that kernels do the same; and when they happen."""

import warnings

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

import softstack as ss
from softstack.disturbance import Disturbance, draw
from softstack.errors import BadInput

GPU = "cuda" if torch.cuda.is_available() else "cpu"
RECURRENT = ("rnn", "gru", "lstm")
DOUBLE = {"dtype": torch.float64}
RATES = {"state_reset": 0.4, "hidden_noise": 0.3}


def network(kind=ss.StackRNN, **changed):
    torch.manual_seed(0)
    sizes = dict(input_size=3, hidden_size=5, memory_size=2, output_size=4)
    return kind(**{**sizes, **DOUBLE, **RATES, **changed})


def hidden(net, batch):
    state = net.init((batch,), torch.zeros(batch, 1, 3, **DOUBLE))
    return state.network.h if isinstance(net, ss.BufferedStackRNN) else state.h


def steps_of(net, T):
    return net.steps(T) if isinstance(net, ss.BufferedStackRNN) else T


def gradients(net, backend, x, lengths, disturbance):
    """All that comes out of a call, and the gradients of a sum of it."""
    net.backend = backend
    net.zero_grad()
    x = x.clone().requires_grad_()
    y, state = net(x, lengths=lengths, disturbance=disturbance)
    outputs = [y, *tree_leaves(state)]
    total = sum((z * torch.linspace(-1, 2, z.numel()).view_as(z).to(z)).sum() for z in outputs)
    total.backward()
    return [*(z.detach() for z in outputs), x.grad, *(p.grad.clone() for p in net.parameters())]


@pytest.mark.parametrize("controller", RECURRENT)
def test_a_reset_is_a_new_beginning_for_the_controller_alone(controller):
    """By the step: h is 0 before it where the state is reset, noise is added after it, and r and the memory
    stay."""
    net = network(controller=controller).eval()
    x = torch.randn(6, 9, 3, **DOUBLE)
    disturbance = draw(hidden(net, 6), 9, 0.4, 0.3, torch.Generator().manual_seed(1))
    state, outputs = net.init((6,), x), []
    for t in range(9):
        kept = disturbance.keep[:, t].bool()
        h = tuple(torch.where(kept[:, None], part, torch.zeros_like(part)) for part in state.h)
        features, h = net.cell.core(torch.cat((x[:, t], state.r), -1), h)
        noisy = features + disturbance.noise[:, t]
        actions = net.cell.act(noisy, like=x)
        memory, r = net.cell.memory.step(state.memory, actions.instructions)
        state = ss.State((noisy, *h[1:]), memory, r)
        outputs.append(actions.y)
    y, final = net(x, disturbance=disturbance)
    assert_close(y, torch.stack(outputs, 1))
    assert_close(tree_leaves(final), tree_leaves(state))


@pytest.mark.parametrize(
    ("kind", "controller", "memory", "B", "T", "ragged"),
    [
        (ss.StackRNN, "rnn", "stack", 3, 6, True),  # by rows
        (ss.StackRNN, "gru", "queue", 3, 6, True),
        (ss.StackRNN, "lstm", "stack", 3, 6, True),
        (ss.StackRNN, "gru", "stack", 18, 5, False),  # of two blocks
        (ss.StackRNN, "lstm", "queue", 2, 140, False),  # as a chain
        (ss.StackRNN, "rnn", "none", 18, 5, True),
        (ss.StackRNN, "gru", "superposition", 3, 6, True),
        (ss.StackRNN, "rnn", "multipop", 18, 5, False),
        (ss.StackRNN, "lstm", "deque", 3, 40, True),
        (ss.BufferedStackRNN, "rnn", "queue", 18, 5, False),
        (ss.BufferedStackRNN, "gru", "stack", 3, 6, True),
        (ss.BufferedStackRNN, "lstm", "stack", 3, 6, True),
    ],
)
def test_kernels_of_the_cpu(kind, controller, memory, B, T, ragged, generator):
    """A disturbance meets the controller alone: each controller, each way that a memory is worked, and
    buffers, but not all of these together."""
    net = network(kind, controller=controller, memory=memory)
    x = torch.randn(B, T, 3, generator=generator, **DOUBLE)
    lengths = torch.randint(0, T + 1, (B,), generator=generator) if ragged else None
    disturbance = draw(hidden(net, B), steps_of(net, T), **RATES, generator=generator)
    for ours, theirs in zip(
        *(gradients(net, backend, x, lengths, disturbance) for backend in ("cpu", "reference")), strict=True
    ):
        assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("kind", "controller", "on_chip", "ragged"),
    [
        (ss.StackRNN, "rnn", True, True),
        (ss.StackRNN, "gru", True, False),
        (ss.StackRNN, "lstm", True, True),
        (ss.StackRNN, "rnn", False, False),
        (ss.StackRNN, "gru", False, True),
        (ss.StackRNN, "lstm", False, True),
        (ss.BufferedStackRNN, "lstm", True, False),
    ],
)
def test_kernels_of_the_gpu(kind, controller, on_chip, ragged, generator, monkeypatch):
    if not on_chip:
        monkeypatch.setattr("softstack.kernels.gpu.layout.ON_CHIP", 0)
    net = network(kind, controller=controller).to(GPU)
    x = torch.randn(3, 4, 3, generator=generator, **DOUBLE).to(GPU)
    lengths = torch.tensor([4, 0, 3]) if ragged else None
    drawn = draw(hidden(net, 3), steps_of(net, 4), **RATES, generator=generator)
    disturbance = Disturbance(*(z.to(GPU) for z in drawn))
    for ours, theirs in zip(
        *(gradients(net, backend, x, lengths, disturbance) for backend in ("gpu", "reference")), strict=True
    ):
        assert_close(ours, theirs)


@pytest.mark.parametrize("kind", [ss.StackRNN, ss.BufferedStackRNN])
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_in_training_and_not_in_evaluation(kind, backend):
    net, plain = network(kind, backend=backend), network(kind, backend=backend, state_reset=0, hidden_noise=0)
    plain.load_state_dict(net.state_dict())
    x = torch.randn(4, 7, 3, **DOUBLE)
    assert_close(net.eval()(x)[0], plain(x)[0])
    net.train()
    torch.manual_seed(3)
    first, second = net(x)[0], net(x)[0]
    torch.manual_seed(3)
    assert not torch.allclose(first, second) and torch.equal(first, net(x)[0])


def test_the_reference_and_a_kernel_draw_the_same():
    net, x = network(), torch.randn(4, 7, 3, **DOUBLE)
    outputs = []
    for backend in ("reference", "cpu"):
        net.backend = backend
        torch.manual_seed(5)
        outputs.append(net(x)[0])
    assert_close(*outputs)


def test_every_layer_and_direction_has_its_own():
    net = network(num_layers=2, bidirectional=True, output_size=None, state_reset=1.0, hidden_noise=0.0)
    x = torch.randn(2, 4, 3, **DOUBLE)
    drawn = [draw(cell.init((2,), x).h, 4, 1.0, 0.0) for cell in net.cells]
    assert_close(net(x)[0], net(x, disturbance=drawn)[0])
    with pytest.raises(BadInput, match="for 4 cells give as many disturbances; got"):
        net(x, disturbance=drawn[0])


def test_what_is_drawn():
    h = (torch.zeros(100, 8),)
    keep, noise = draw(h, 50, 0.3, 0.2, torch.Generator().manual_seed(0))
    assert keep.unique().tolist() == [0, 1] and abs(keep.mean() - 0.7) < 0.02
    assert abs(noise.std() - 0.2) < 0.005 and noise.shape == (100, 50, 8)
    assert draw((), 50, 0.3, 0.2) is None and draw(h, 50, 0.0, 0.0) is None


def test_a_controller_without_a_state_has_nothing_to_lose():
    for kind in (ss.StackRNN, ss.BufferedStackRNN):
        with pytest.warns(UserWarning, match="do nothing for a controller without a state; got") as warned:
            kind(3, memory_size=2, output_size=2, controller="linear", state_reset=0.5)
        assert len(warned) == 1 and warned[0].filename == __file__  # the caller's line
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ss.StackRNN(3, memory_size=2, controller="linear")
        ss.StackRNN(3, hidden_size=4, memory_size=2, controller="rnn", state_reset=0.5)
    with pytest.warns(UserWarning, match="do nothing"):
        net = network(controller="linear")
    x = torch.randn(2, 4, 3, **DOUBLE)
    assert_close(net(x)[0], net.eval()(x)[0])
    with pytest.raises(BadInput, match="no state to disturb"):
        net(x, disturbance=Disturbance(torch.ones(2, 4), torch.zeros(2, 4, 5)))
    with pytest.raises(BadInput, match=r"must be an ss.Disturbance of two tensors; got int"):
        net(x, disturbance=5)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (dict(state_reset=1.5), "in \\[0, 1\\]"),
        (dict(hidden_noise=-1.0), "at least 0"),
        (dict(state_reset="half"), "must be a number; got 'half'"),
    ],
)
def test_rates_that_are_none(wrong, sentence):
    with pytest.raises(BadInput, match=sentence):
        network(**wrong)


def test_rates_can_be_changed_on_the_way():
    net, x = network(state_reset=0.0, hidden_noise=0.0), torch.randn(4, 7, 3, **DOUBLE)
    quiet = net(x)[0]
    net.state_reset = 0.5
    assert not torch.allclose(net(x)[0], quiet)
    net.state_reset = 0.0
    assert_close(net(x)[0], quiet)
    with pytest.raises(BadInput, match="in \\[0, 1\\]"):
        net.state_reset = 2.0


def test_shapes_are_checked():
    net = network()
    with pytest.raises(BadInput, match="must be"):
        net(torch.randn(2, 4, 3, **DOUBLE), disturbance=Disturbance(torch.ones(2, 5), torch.zeros(2, 5, 5)))


def test_compiled():
    net, x = network(), torch.randn(2, 4, 3, **DOUBLE)
    disturbance = draw(hidden(net, 2), 4, **RATES)
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    assert_close(compiled(x, disturbance=disturbance)[0], net(x, disturbance=disturbance)[0])


def test_compiled_for_batches_of_several_shapes():
    """Drawn inside the graph, of which sizes are symbols once they have changed."""
    net = network()
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    for B, T in ((2, 4), (3, 7), (5, 9)):
        x = torch.randn(B, T, 3, **DOUBLE)
        torch.manual_seed(2)
        first = compiled(x)[0]
        torch.manual_seed(2)
        assert_close(first, net(x)[0])


class Odd(nn.Module):
    """A core whose state has parts of every shape: two rows, a number and a count for each sequence."""

    features = 4

    def __init__(self):
        super().__init__()
        self.map = nn.Linear(5 + 4, 4)

    def init(self, batch, like):
        counts = torch.zeros(batch, dtype=torch.int64, device=like.device)
        return like.new_zeros(*batch, 2, 4), like.new_zeros(batch), counts

    def forward(self, z, h):
        rows, mean, count = h
        out = torch.tanh(self.map(torch.cat((z, rows.sum(-2)), -1)) + mean.unsqueeze(-1))
        return out, (torch.stack((rows[..., 1, :], out), -2), out.mean(-1), count + 1)


@pytest.mark.parametrize("batch", [(), (2,), (3,)])
def test_a_state_whose_parts_have_other_shapes(batch):
    net = network(controller=Odd(), hidden_size=None)
    x = torch.randn(*batch, 9, 3, **DOUBLE)
    torch.manual_seed(4)
    y, state = net(x)
    assert [part.shape for part in state.h] == [(*batch, 2, 4), batch, batch]
    torch.manual_seed(4)
    drawn = draw(net.init(batch, x).h, 9, **RATES, batch=batch)
    assert_close(y, net(x, disturbance=drawn)[0])
    since = [9 - max((t for t in range(9) if not kept[t]), default=0) for kept in drawn.keep.reshape(-1, 9)]
    assert state.h[2].reshape(-1).tolist() == since  # steps since a reset, of each sequence by itself
