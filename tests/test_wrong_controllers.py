"""What is wrong with a controller of one's own is said in a sentence, when a network is made with it."""

import re

import pytest
import torch
from torch import nn

import softstack as ss
from softstack.lab.training.conditions import Condition


class Core(nn.Module):
    """What `init` and `forward` give is handed in; the right thing is h of (B, 4), and features of 4."""

    def __init__(self, init=None, forward=None):
        super().__init__()
        self.features = 4
        self.init_gives = init or (lambda batch, like: (like.new_zeros(*batch, 4),))
        self.forward_gives = forward or (lambda z, h: (h[0] + 1, h))

    def init(self, batch, like):
        return self.init_gives(batch, like)

    def forward(self, z, h):
        return self.forward_gives(z, h)


def make(core):
    return ss.StackRNN(3, memory_size=2, output_size=3, controller=core)


@pytest.mark.parametrize(
    ("gives", "message"),
    [
        (
            dict(init=lambda batch, like: like.new_zeros(*batch, 4)),
            "init(batch=(2,), like) must give a tuple of tensors, each with the batch (2,) first, or () if "
            "it has no state; got a tensor of (2, 4)",
        ),
        (dict(init=lambda batch, like: None), "or () if it has no state; got NoneType"),
        (dict(init=lambda batch, like: (like.new_zeros(4),)), "got a tuple of a tensor of (4,)"),
        (
            dict(init=lambda batch: ()),
            "fails in init(batch=(2,), like): ",
        ),
        (
            dict(forward=lambda z, h: h[0]),
            "forward(z, h) must give two things, features and h; got a tensor of (2, 4)",
        ),
        (
            dict(forward=lambda z, h: (z, h)),
            "forward(z, h) must give features of (2, 4) for a batch of 2, because its `features` is 4; got a "
            "tensor of (2, 5)",
        ),
        (
            dict(forward=lambda z, h: (h[0], h[0])),
            "forward(z, h) must give h as init does, a tuple of a tensor of (2, 4); got a tensor of (2, 4)",
        ),
        (dict(forward=lambda z, h: (h[0], ())), "got an empty tuple"),
        (
            dict(forward=lambda z, h: (h[0].add_(1), h)),
            "forward(z, h) writes into the h that it is given: give a new one back",
        ),
        (dict(forward=lambda z, h: (h[0], (z,))), "got a tuple of a tensor of (2, 5)"),
    ],
)
def test_what_init_and_forward_give(gives, message):
    with pytest.raises(ss.BadInput, match=re.escape(message)) as refusal:
        make(Core(**gives))
    assert str(refusal.value).startswith("the controller Core")


def test_what_a_class_lacks(monkeypatch):
    class Bare(nn.Module):
        def __init__(self, input_size, hidden_size, **kind):
            super().__init__()

    monkeypatch.setitem(ss.CONTROLLERS, "bare", Bare)
    with pytest.raises(ss.BadInput, match="the controller Bare lacks features and init"):
        ss.StackRNN(3, hidden_size=4, memory_size=2, controller="bare")


def test_a_right_one_is_left_as_it_was():
    """Its step is made by a copy, and random numbers are those that would have come."""

    class Counting(Core):
        calls = 0

        def forward(self, z, h):
            self.calls += 1
            return torch.nn.functional.dropout(h[0], 0.5), h

    torch.manual_seed(0)
    make(Core())
    expected = torch.rand(3)
    torch.manual_seed(0)
    core = Counting()
    rnn = make(core)
    assert core.calls == 0
    assert torch.equal(torch.rand(3), expected)
    rnn(torch.zeros(2, 5, 3))
    assert core.calls == 5


def test_what_fails_inside_a_step_fails_in_the_first_call():
    """Such as a core that only works on a GPU: it may be moved there."""

    def forward(z, h):
        raise RuntimeError("only on a GPU")

    rnn = make(Core(forward=forward))
    with pytest.raises(RuntimeError, match="only on a GPU"):
        rnn(torch.zeros(2, 5, 3))


def test_unknown_names_say_where_others_come_from(softstack):
    with pytest.raises(ss.BadInput, match=r"accepted: stack, .*; one of your own needs --plugin FILE.py"):
        Condition("xor", memory="heap")
    with pytest.raises(ss.BadInput, match=r"unknown controller 'lstn'.*; one of your own needs --plugin"):
        Condition("xor", controller="lstn")
    code, out, _ = softstack("train", "--help")
    assert code == 0
    assert " ".join(out.replace("│", " ").split()).count("or one of a plugin") == 2
