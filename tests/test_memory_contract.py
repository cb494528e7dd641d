"""What every memory keeps over sequences of instructions, step by step and through its kernel."""

from dataclasses import dataclass
from typing import NamedTuple

import pytest
import torch
from torch import nn
from torch.func import grad, vmap
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves, tree_map

import softstack as ss
from contract import (
    DOUBLE,
    MEMORIES,
    ORACLES,
    at,
    every_memory,
    gradients,
    instructions,
    longer,
    memory_of,
    run,
    same,
    scans,
    score,
)
from other_memories import Register
from softstack.memory.checking import MEMBERS
from softstack.memory.protocol import instructions_type


@pytest.mark.parametrize("memory", ORACLES)
def test_reads_and_gradients_are_those_of_the_literal_loops(memory, generator):
    steps = 5 if "nondeterministic" in memory else 7
    told = {k: p.requires_grad_() for k, p in instructions(MEMORIES[memory](2), generator, 2, steps).items()}
    ours = run(memory, told)[0]
    theirs = torch.stack([ORACLES[memory](**at(told, b)) for b in range(2)])
    assert_close(ours, theirs)
    same(gradients(score(ours), list(told.values())), gradients(score(theirs), list(told.values())))


@scans
def test_step_by_step_is_the_scan(scan, generator):
    memory = memory_of(scan)
    told = instructions(memory, generator, 3, 7)
    state = memory.init((3,), **DOUBLE)
    reads = []
    for t in range(7):
        state, r = memory.step(state, instructions_type(tuple(told))(**at(told, slice(None), t)))
        reads.append(r)
    whole, final = run(scan, told)
    assert_close(torch.stack(reads, 1), whole)
    assert whole.shape == (3, 7, memory.width)
    same(state, final)


@scans
def test_a_batch_is_one_sequence_at_a_time(scan, generator):
    """And a sequence needs no batch axis."""
    told = instructions(memory_of(scan), generator, 3, 6)
    r, state = run(scan, told)
    for b in range(3):
        same((r[b], tree_map(lambda leaf: leaf[b], state)), run(scan, at(told, b)))  # noqa: B023 (called at once)


@scans
def test_in_pieces(scan, generator):
    told = instructions(memory_of(scan), generator, 3, 9)
    first, state = run(scan, at(told, slice(None), slice(4)))
    second, state = run(scan, at(told, slice(None), slice(4, None)), state)
    same((torch.cat([first, second], 1), state), run(scan, told))


@scans
def test_no_sequences_and_no_steps(scan, generator):
    memory = memory_of(scan)
    told = instructions(memory, generator, 2, 5)
    r, state = run(scan, at(told, slice(0)))
    assert r.shape == (0, 5, memory.width)
    assert [leaf.shape[1:] for leaf in tree_leaves(state)] == [
        leaf.shape[1:] for leaf in tree_leaves(run(scan, told)[1])
    ]
    before = run(scan, told)[1]
    r, state = run(scan, at(told, slice(None), slice(0)), before)
    assert r.shape == (2, 0, memory.width)
    same(state, before)


@scans
def test_padding_changes_neither_state_nor_gradient(scan, generator):
    """Whatever stands in padded steps, NaN included, each sequence comes out as it does on its own. The state
    that it begins with holds something already."""
    memory = memory_of(scan)
    before = tree_map(torch.Tensor.requires_grad_, run(scan, instructions(memory, generator, 3, 2))[1])
    lengths = torch.tensor([5, 0, 3])
    told = instructions(memory, generator, 3, 5)
    for b, n in enumerate(lengths):
        for part in told.values():
            part[b, n:] = torch.nan
    leaves = [*(part.requires_grad_() for part in told.values()), *tree_leaves(before)]
    r, state = run(scan, told, before, lengths)
    for b, n in enumerate(lengths.tolist()):
        alone = [leaf[b, :n].detach() for leaf in leaves[: len(told)]]
        alone += [leaf[b].detach() for leaf in leaves[len(told) :]]
        alone = [leaf.clone().requires_grad_() for leaf in alone]
        start = type(before)(*alone[len(told) :])
        r_alone, state_alone = run(scan, dict(zip(told, alone, strict=False)), start)
        assert_close(r[b, :n], r_alone)
        assert not r[b, n:].any()
        own = tree_map(lambda leaf: leaf[b], state)  # noqa: B023 (called at once)
        same(own, tree_map(longer, state_alone, own))
        ours = gradients(score(r[b], own), leaves, retain_graph=True)
        theirs = gradients(score(longer(r_alone, r[b]), tree_map(longer, state_alone, own)), alone)
        for k, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            assert_close(our[b], longer(their, our[b]) if k < len(told) else their)
            assert not our[[other for other in range(3) if other != b]].any()


class Logarithmic(ss.Superposition):
    """Cannot be told zeros: it looks at the logarithms of its action."""

    def step(self, state, instructions):
        return super().step(state, instructions._replace(action=instructions.action.log().softmax(-1)))


def test_padding_tells_a_memory_nothing_that_a_head_cannot_say(generator):
    memory, lengths = Logarithmic(2), torch.tensor([3, 1])
    told = {name: part.requires_grad_() for name, part in instructions(memory, generator, 2, 3).items()}
    results = ss.scan(memory, told, lengths=lengths)
    same(results, ss.scan(ss.Superposition(2), told, lengths=lengths))
    for grad_of_part in gradients(score(*results), list(told.values())):
        assert grad_of_part.isfinite().all()
        assert not grad_of_part[1, 1:].any()
    net = ss.StackRNN(3, hidden_size=5, memory=memory)
    net(torch.randn(2, 3, 3), lengths=lengths)[0].sum().backward()
    assert all(p.grad.isfinite().all() for p in net.parameters())


@scans
def test_gradcheck(scan, generator):
    """Of reads and of every tensor of the last state."""
    sizes = (1, 3) if "nondeterministic" in scan else (2, 5)  # its state has hundreds of numbers
    told = instructions(memory_of(scan), generator, *sizes)

    def outcome(*parts):
        return tuple(tree_leaves(run(scan, dict(zip(told, parts, strict=True)))))

    assert torch.autograd.gradcheck(outcome, [part.requires_grad_() for part in told.values()])


@scans
def test_vmap_and_grad_transform(scan, generator):
    told = instructions(memory_of(scan), generator, 3, 4)
    assert_close(vmap(lambda parts: run(scan, parts)[0])(told), run(scan, told)[0])
    by_func = grad(lambda parts: score(run(scan, parts)[0]))(told)
    leaves = [part.requires_grad_() for part in told.values()]
    same(list(by_func.values()), gradients(score(run(scan, told)[0]), leaves))


@every_memory
def test_detach_and_compact(memory, generator):
    """A detached state has no history. A compact one reads the same from now on, and has no empty cell."""
    told = {k: p.requires_grad_() for k, p in instructions(MEMORIES[memory](2), generator, 2, 6).items()}
    for name in told.keys() & {"u", "u_top"}:
        told[name] = torch.ones_like(told[name])  # something becomes empty
    state = run(memory, told)[1]
    assert not any(leaf.requires_grad for leaf in tree_leaves(ss.detach(state)))
    same(ss.detach(state), state)
    small = ss.compact(state)
    more = instructions(MEMORIES[memory](2), generator, 2, 4)
    assert_close(run(memory, more, small)[0], run(memory, more, state)[0])
    if memory in ("stack", "deque", "steque"):
        assert small.s.shape[-1] < state.s.shape[-1]
    if isinstance(small, ss.MemoryState) and small.s.numel():
        assert (small.s > 0).flatten(0, -2).any(0).all()


class Toggle(NamedTuple):
    cells: torch.Tensor  # (B, N)


@dataclass(frozen=True)
class Wrong:
    """A memory that does one thing wrong."""

    fault: str
    name = "wrong"
    drawn = "cells"
    width = 2

    @property
    def heads(self):
        names = {"keyword": "class", "hidden": "_x"}
        if self.fault == "a list of heads":
            return [ss.Strength()]
        head = 1 if self.fault == "no kind" else ss.Strength()
        return {} if self.fault == "no heads" else {names.get(self.fault, "d"): head}

    def init(self, batch=(), *, device=None, dtype=None):
        if self.fault == "a batch that is not there":
            batch = batch or batch[0]
        if self.fault == "no tensor":
            return Toggle(0)
        if self.fault == "batch":
            return Toggle(torch.zeros(3, *batch))
        return Toggle(torch.zeros(*batch, 2, device=device, dtype=dtype))

    def step(self, state, instructions):
        (d,) = instructions
        r = d.unsqueeze(-1).expand(*d.shape, 3 if self.fault == "width" else 2)
        if self.fault == "order":
            return r, state
        if self.fault == "shrinks":
            return Toggle(state.cells[..., :-1]), r
        return (tuple(state) if self.fault == "tuple" else state), r

    def contents(self, state):
        return ss.Contents(state.cells.unsqueeze(-1), state.cells)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            "width",
            r"must give \(state, r\): a Toggle.*read of 2 numbers; got a Toggle.* and a tensor of \(3, 3\)",
        ),
        ("order", r"must give \(state, r\).*got a tensor of \(3, 2\) and a Toggle"),
        ("tuple", r"got a tuple of .* and a tensor of \(3, 2\)"),
        ("shrinks", r"a state of \(3, 2\) became \(3, 1\) in a step: a state may grow but not shrink"),
        ("no heads", r"Wrong.heads must be a dict of what it is told, by name"),
        ("a list of heads", r"Wrong.heads must be a dict of what it is told, by name"),
        ("no kind", r"the head 'd' of Wrong must be a Strength, Vector, Choice or Scores; got 1"),
        ("a batch that is not there", r"Wrong fails in init\(batch=\(\)\): tuple index out of range"),
        ("no tensor", r"Wrong.init must give a NamedTuple of tensors; got a Toggle of int"),
        ("batch", r"must give tensors with the batch first; got a Toggle of a tensor of \(3, 2\)"),
        ("keyword", r"has a head called 'class': its name must be one that Python takes for a variable"),
        ("hidden", r"has a head called '_x'"),
    ],
)
def test_what_is_wrong_with_a_memory_is_said(fault, message):
    def use():
        rnn = ss.StackRNN(3, hidden_size=4, memory=Wrong(fault))
        rnn(torch.zeros(3, 2, 3), lengths=torch.tensor([2, 1, 0]))

    with pytest.raises(ss.BadInput, match=message):
        use()


@pytest.mark.parametrize("member", MEMBERS)
def test_a_memory_that_lacks_something_is_refused(member):
    members = {name: getattr(Wrong("nothing"), name) for name in MEMBERS if name != member}
    memory = type("Part", (), members)()
    message = f"the memory Part lacks {member}: docs/add/memory.md has a whole one"
    for build in (
        lambda: ss.StackRNN(3, hidden_size=4, memory=memory),
        lambda: ss.StackLayer(4, heads=2, memory=memory),
        lambda: ss.Several(memory, 2),
    ):
        with pytest.raises(ss.BadInput, match=message):
            build()


def test_wrong_kinds_of_heads():
    for make, message in (
        (lambda: ss.Vector(0), "size of a Vector must be a whole number of at least 1; got 0"),
        (lambda: ss.Strength(count=0), "count of a Strength must be"),
        (lambda: ss.Choice(()), "actions of a Choice must be a tuple of names"),
        (lambda: ss.Choice(("push", "push")), "actions of a Choice must be a tuple of names, each another"),
        (lambda: ss.Choice("abc"), "actions of a Choice must be a tuple of names, each another"),
        (lambda: ss.Several("stack", 2), "a memory is needed here, such as"),
        (lambda: ss.scan("stack", {}), "a memory is needed here, such as"),
        (lambda: ss.scan(ss.Stack, {}), "a memory is needed here, such as"),
        (lambda: ss.StackLayer(8, memory=ss.Stack), "a memory is needed here, such as"),
        (lambda: ss.detach(None), "a state is a tuple of tensors, as networks give it; got NoneType"),
        (lambda: ss.scan(ss.Deque(2), [torch.zeros(2)]), "told .* by name, in a dict; got a list"),
    ):
        with pytest.raises(ss.BadInput, match=message):
            make()


@pytest.mark.parametrize("network", ["scan", "plain", "buffered"])
def test_one_sequence_with_its_length(network, generator):
    """Without a batch axis, by the kernel and by the reference."""
    if network == "scan":
        v, u, d = (torch.rand(5, *more, generator=generator, **DOUBLE) for more in ((2,), (), ()))
        results = [
            ss.stack_scan(v, u, d, lengths=torch.tensor(3), backend=kernel) for kernel in ("cpu", "reference")
        ]
    else:
        more = dict(hidden_size=4, memory_size=2, output_size=2, **DOUBLE)
        net = ss.StackRNN(3, **more) if network == "plain" else ss.BufferedStackRNN(3, **more)
        x, results = torch.randn(5, 3, generator=generator, **DOUBLE), []
        for net.backend in ("cpu", "reference"):
            results.append(net(x, lengths=torch.tensor(3)))
    same(*results)
    assert network == "buffered" or not results[0][0][3:].any()


def test_a_scan_takes_what_a_network_tells_its_memory(generator):
    memory, told = ss.Superposition(2), []
    net = ss.StackRNN(3, hidden_size=4, memory=memory, **DOUBLE)
    edit = ss.Edit(actions=lambda actions: told.append(actions.instructions) or actions)
    _, _, trace = net(torch.randn(2, 5, 3, generator=generator, **DOUBLE), edit=edit, return_trace=True)
    sequence = type(told[0])(*(torch.stack(parts, 1) for parts in zip(*told, strict=True)))
    assert_close(ss.scan(memory, sequence)[0], trace.r)


class Learnt(nn.Module):
    """A memory with a weight of its own: a register of what it makes of a vector."""

    name, drawn, width, heads = "learnt", "cells", 2, {"v": ss.Vector(2)}

    def __init__(self, size=2):
        super().__init__()
        self.map = nn.Linear(size, size)

    def init(self, batch=(), *, device=None, dtype=None):
        return Left(torch.zeros(*batch, 2, device=device, dtype=dtype))

    def step(self, state, instructions):
        value = self.map(instructions.v)
        return Left(value), value

    def contents(self, state):
        return ss.Contents(state.left.unsqueeze(-2), torch.ones_like(state.left[..., :1]))


def test_a_memory_with_weights_of_its_own(monkeypatch, generator):
    net = ss.StackRNN(3, hidden_size=4, memory=Learnt(), **DOUBLE)
    x = torch.randn(2, 4, 3, generator=generator, **DOUBLE)
    grads = torch.autograd.grad(net(x)[0].sum(), [net.cell.memory.map.weight])
    assert grads[0].any() and "cell.memory.map.weight" in net.state_dict()
    layer = ss.StackLayer(8, heads=2, memory=Learnt(), **DOUBLE)
    assert layer(torch.randn(2, 4, 8, generator=generator, **DOUBLE))[0].dtype == torch.float64
    for make, message in (
        (lambda: ss.Several(Learnt(), 2), "Learnt has weights .* would not be trained inside Several"),
        (lambda: ss.Deep(Learnt(), 2), "Learnt has weights .* would not be trained inside Deep"),
        (lambda: ss.StackRNN(3, hidden_size=4, memory=Learnt(), num_layers=2), "serves one cell"),
    ):
        with pytest.raises(ss.BadInput, match=message):
            make()
    monkeypatch.setitem(ss.MEMORIES, "learnt", Learnt)
    net = ss.StackRNN(3, hidden_size=4, memory="learnt", memory_size=2, num_layers=2)
    first, second = (cell.memory.map.weight for cell in net.cells)
    assert first is not second


def test_trying_a_memory_draws_no_number():
    class Noisy(Register):
        def step(self, state, instructions):
            torch.rand(1)
            return super().step(state, instructions)

    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    ss.Several(Noisy(2), 2)
    assert torch.equal(torch.rand(1), expected)


class Left(NamedTuple):
    left: torch.Tensor  # (B,)


class Purse:
    """What is left of a half, of which a root is read: no number after too many steps."""

    name, drawn, width, heads = "purse", "cells", 1, {"d": ss.Strength(bias=-1.0)}

    def init(self, batch=(), *, device=None, dtype=None):
        return Left(torch.full(batch, 0.5, device=device, dtype=dtype))

    def step(self, state, instructions):
        left = state.left - instructions.d
        return Left(left), left.sqrt().unsqueeze(-1)

    def contents(self, state):
        return ss.Contents(state.left[..., None, None], state.left[..., None])


@pytest.mark.parametrize("network", [ss.StackRNN, ss.BufferedStackRNN])
def test_padding_that_leads_to_no_number_leaves_gradients_alone(network, generator):
    """After one step the memory has something left, and after four it has not."""
    steps = {"steps": lambda T: T} if network is ss.BufferedStackRNN else {}
    net = network(3, hidden_size=4, output_size=2, memory=Purse(), **steps)
    x = torch.randn(1, 4, 3, generator=generator)
    assert net(x)[0].isnan().any()
    gradients_of_one = gradients(net(x[:, :1])[0].sum(), list(net.parameters()))
    padded = net(x, lengths=torch.tensor([1]))[0]
    same(gradients(padded.sum(), list(net.parameters())), gradients_of_one)
    d = torch.full((1, 4), 0.3, requires_grad=True)
    r, _ = ss.scan(Purse(), {"d": d}, lengths=torch.tensor([1]))
    (grad,) = torch.autograd.grad(r.sum(), d)
    assert_close(grad, torch.tensor([[-0.5 / 0.2**0.5, 0, 0, 0]]))


def test_a_class_that_takes_no_size_is_named(monkeypatch):
    monkeypatch.setitem(ss.MEMORIES, "nameless", lambda: Wrong("width"))
    with pytest.raises(ss.BadInput, match="the memory 'nameless' cannot be made with a size of 2"):
        ss.StackRNN(3, hidden_size=4, memory="nameless", memory_size=2)


def test_the_bias_of_a_choice_has_a_number_for_each_action():
    @dataclass(frozen=True)
    class Eager(ss.Superposition):
        @property
        def heads(self):
            return {**super().heads, "action": ss.Choice(("push", "pop", "no-op"), bias=(2.0, 0.1, -1.0))}

    rnn = ss.StackRNN(3, hidden_size=4, memory=Eager(2), dtype=torch.float64)
    assert rnn.cell.heads.bias_of("action").tolist() == [2.0, 0.1, -1.0]
    assert rnn.cell.heads.bias_of("v").tolist() == [0.0, 0.0]
    rnn.cell.heads.weight.data.zero_()
    _, _, trace = rnn(torch.zeros(1, 3, **DOUBLE), return_trace=True)
    assert_close(trace.action[0], torch.softmax(torch.tensor([2.0, 0.1, -1.0], **DOUBLE), -1))
    assert ss.Choice(("a", "b")).bias is None
    for bias in (1.0, (1.0, 2.0), [1.0, 2.0, 3.0]):
        with pytest.raises(ss.BadInput, match="must be a tuple with a number for each of"):
            ss.Choice(("push", "pop", "no-op"), bias=bias)


@dataclass(frozen=True)
class Writing(Register):
    """Its step writes into the state that it is given."""

    def step(self, state, instructions):
        state.value.mul_(0.5).add_(instructions.value)
        return state, state.value.clone()


def test_a_step_that_writes_into_its_state_is_refused():
    for build in (
        lambda: ss.StackRNN(3, hidden_size=4, memory=Writing(2)),
        lambda: ss.StackLayer(4, heads=2, memory=Writing(2)),
    ):
        with pytest.raises(ss.BadInput, match=r"Writing\(size=2\) writes into the state that it is given"):
            build()


@dataclass(frozen=True)
class Undrawn(Register):
    """Its contents are a tuple without names."""

    def contents(self, state):
        return tuple(super().contents(state))


def test_contents_that_cannot_be_drawn_are_refused():
    sentence = r"contents of Undrawn\(size=2\) must give ss.Contents\(V, s\); got a tuple"
    with pytest.raises(ss.BadInput, match=sentence):
        ss.StackRNN(3, hidden_size=4, memory=Undrawn(2))
