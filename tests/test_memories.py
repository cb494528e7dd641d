"""Deque, superposition and multipop stacks, several memories and deep reads: worked examples and options.

What they share with every memory is in test_memory_contract.py and test_network_contract.py.
"""

import pytest
import torch
from torch.testing import assert_close

import oracle
import softstack as ss
from contract import DOUBLE, gradients, instructions, same, score
from softstack.memory.protocol import instructions_type


def told(memory, **parts):
    """Instructions for one sequence, given as lists over time."""
    return {name: torch.tensor(parts[name], **DOUBLE) for name in memory.heads}


def steps(memory, parts):
    """What is read and held after each step."""
    state = memory.init((), **DOUBLE)
    for t in range(len(next(iter(parts.values())))):
        now = {name: part[t] for name, part in parts.items()}
        state, r = memory.step(state, instructions_type(tuple(now))(**now))
        yield r.tolist(), memory.contents(state)


# --- deque -------------------------------------------------------------------------------------------------


def test_a_deque_by_hand():
    """Two steps that push 1 and 3 on top, 2 and 4 below; then pops of 0.5 at the top and 1 at the bottom."""
    memory = ss.Deque(1)
    parts = told(
        memory,
        v_top=[[1.0], [3.0], [0.0]],
        u_top=[0.0, 0.0, 0.5],
        d_top=[0.8, 0.5, 0.0],
        v_bottom=[[2.0], [4.0], [0.0]],
        u_bottom=[0.0, 0.0, 1.0],
        d_bottom=[0.4, 0.7, 0.0],
    )
    reads, contents = zip(*steps(memory, parts), strict=True)
    # after step 1 the items from below are 2 (0.4) and 1 (0.8): 0.8 of 1 and 0.2 of 2; 0.4 of 2 and 0.6 of 1
    assert reads[0] == pytest.approx([0.8 * 1 + 0.2 * 2, 0.4 * 2 + 0.6 * 1])
    # after step 2: 4 (0.7), 2 (0.4), 1 (0.8), 3 (0.5)
    assert contents[1].V.flatten().tolist() == [4, 2, 1, 3]
    assert reads[1] == pytest.approx([0.5 * 3 + 0.5 * 1, 0.7 * 4 + 0.3 * 2])
    # 0.5 is taken of 3, which is then gone; 1 is taken below: all of 4, and 0.3 of 2
    assert contents[2].s.tolist() == pytest.approx([0, 0, 0.1, 0.8, 0, 0])
    assert reads[2] == pytest.approx([0.8 * 1 + 0.1 * 2, 0.1 * 2 + 0.8 * 1])


def test_the_top_of_a_deque_is_drawn_on_top():
    """A pile has its last cell on top, and a deque its top."""
    memory = ss.Deque(1)
    parts = told(
        memory, v_top=[[1.0]], u_top=[0.0], d_top=[1.0], v_bottom=[[2.0]], u_bottom=[0.0], d_bottom=[1.0]
    )
    ((_, contents),) = steps(memory, parts)
    assert (contents.V.flatten().tolist(), memory.drawn) == ([2, 1], "pile")


def test_a_deque_that_uses_one_end_is_a_stack_or_a_queue(generator):
    v, u, d = (part for part in instructions(ss.Stack(2), generator, 3, 6).values())
    none = dict(v_bottom=torch.zeros_like(v), d_bottom=torch.zeros_like(d))
    r, _ = ss.scan(ss.Deque(2), dict(v_top=v, u_top=u, d_top=d, u_bottom=torch.zeros_like(u), **none))
    assert_close(r[..., :2], ss.stack_scan(v, u, d)[0])
    r, _ = ss.scan(ss.Deque(2), dict(v_top=v, u_top=torch.zeros_like(u), d_top=d, u_bottom=u, **none))
    assert_close(r[..., 2:], ss.queue_scan(v, u, d)[0])


# --- superposition -----------------------------------------------------------------------------------------


def test_a_superposition_by_hand():
    memory = ss.Superposition(1)
    parts = told(memory, action=[[1.0, 0, 0], [0.5, 0.3, 0.2], [0, 1.0, 0]], v=[[2.0], [4.0], [9.0]])
    reads, contents = zip(*steps(memory, parts), strict=True)
    assert reads[0] == [2]
    # half a push of 4 onto 2, a pop that leaves nothing, and 2 as it was
    assert reads[1] == pytest.approx([0.5 * 4 + 0.3 * 0 + 0.2 * 2])
    assert contents[1].s.tolist() == pytest.approx([0.5, 0.7])  # from below: there are two with 0.5
    assert contents[1].V.flatten().tolist() == pytest.approx([2, 2.4 / 0.7])
    assert reads[2] == pytest.approx([0.5 * 2])  # under the 4 lies the 2
    assert contents[2].s.tolist() == pytest.approx([0, 0, 0.5])


@pytest.mark.parametrize("options", [dict(noop=False), dict(depth=3), dict(empty=-1.0), dict(depth=1)])
def test_options_of_a_superposition(options, generator):
    memory = ss.Superposition(2, **options)
    parts = {name: part.requires_grad_() for name, part in instructions(memory, generator, 2, 7).items()}
    r, state = ss.scan(memory, parts)
    literal = {name: options[name] for name in options if name != "noop"}
    theirs = torch.stack(
        [oracle.superposition(parts["action"][b], parts["v"][b], **literal) for b in range(2)]
    )
    assert_close(r, theirs)
    if "empty" not in options:  # else the gradient of what does not add up to 1 is another
        same(gradients(score(r), list(parts.values())), gradients(score(theirs), list(parts.values())))
    assert state.cells.shape[1] == min(7, options.get("depth", 7))


# --- multipop ----------------------------------------------------------------------------------------------


def test_a_multipop_stack_by_hand():
    """The first item stays: three are pushed, two popped, and the first is read again."""
    memory = ss.Multipop(1, pops=2)
    parts = told(
        memory,
        pops=[[1.0, 0, 0], [1.0, 0, 0], [1.0, 0, 0], [0, 0, 1.0], [0.2, 0.3, 0.5]],
        d=[1.0, 1.0, 1.0, 0.0, 0.5],
        v=[[5.0], [6.0], [7.0], [0.0], [8.0]],
    )
    reads, contents = zip(*steps(memory, parts), strict=True)
    assert [r[0] for r in reads[:4]] == [5, 6, 7, 5]
    assert reads[4] == pytest.approx([0.5 * 8 + 0.5 * 0.2 * 5])
    assert contents[4].s.tolist() == pytest.approx([0, 0, 0, 0.5 * 0.2, 0.5 + 0.5 * 0.2])


def test_a_multipop_stack_is_the_mean_over_all_that_may_happen(generator):
    memory = ss.Multipop(2, pops=2)
    raw = {name: torch.randn(5, head.size, generator=generator, **DOUBLE).requires_grad_()
           for name, head in memory.heads.items()}  # fmt: skip
    parts = {name: head.value(raw[name]) for name, head in memory.heads.items()}
    ours, theirs = ss.scan(memory, parts)[0], oracle.multipop_ways(**parts)
    assert_close(ours, theirs)
    leaves = list(raw.values())
    same(gradients(score(ours), leaves, retain_graph=True), gradients(score(theirs), leaves))


# --- several, and deep -------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [ss.Deque(2), ss.Superposition(2, depth=3), ss.Multipop(2), ss.Queue(2)])
def test_several_are_each_alone(memory, generator):
    three = ss.Several(memory, 3)
    parts = instructions(three, generator, 2, 5)
    r, state = ss.scan(three, parts)
    for k in range(3):
        own, own_state = ss.scan(memory, {name: parts[f"{name}_{k + 1}"] for name in memory.heads})
        assert_close(r[..., k * memory.width : (k + 1) * memory.width], own)
        same(type(state)(*(part[:, k] for part in state)), own_state)
    V, s = three.contents(state)
    assert V.shape[:2] == s.shape == (2, 3 * memory.contents(own_state).s.shape[1])


@pytest.mark.parametrize("memory", [ss.Stack(2), ss.Queue(2), ss.Superposition(2), ss.Multipop(2, pops=1)])
def test_a_deep_read_is_what_pops_would_uncover(memory, generator):
    parts = instructions(memory, generator, 2, 5)
    _, state = ss.scan(memory, parts)
    r = memory.tops(state, 3)
    pop = {"u": 1.0, "d": 0.0, "action": torch.tensor([0, 1.0, 0]), "pops": torch.tensor([0, 1.0])}
    for depth in range(3):
        if depth:
            now = {name: torch.zeros_like(part[:, 0]) + pop.get(name, 0.0) for name, part in parts.items()}
            state, beneath = memory.step(state, instructions_type(tuple(now))(**now))
            assert_close(r[:, depth], beneath)
    assert_close(r[:, 0], ss.scan(memory, parts)[0][:, -1])


def test_a_memory_that_cannot_be_read_deep_is_refused():
    with pytest.raises(ss.BadInput, match=r"Deque\(size=2\) cannot be read several items deep: it has no"):
        ss.Deep(ss.Deque(2), 2)
    assert ss.Deep(ss.Several(ss.Stack(2), 2).memory, 3).width == 6


@pytest.mark.parametrize("memory", ss.MEMORIES)
def test_a_memory_begins_for_a_number_of_sequences(memory):
    """As well as for a shape: `init(3)` is `init((3,))`, and `init(None)` is `init()`."""
    memory = ss.MEMORIES[memory](2)
    same(memory.init(3), memory.init((3,)))
    same(memory.init(None), memory.init())


def test_sentences_and_pages_tell_memories_apart():
    names = {memory(2).name for memory in ss.MEMORIES.values()}
    assert len(names) == len(ss.MEMORIES)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ss.Nondeterministic(2, vectors=-1), "vectors must be a whole number of at least 1; got -1"),
        (lambda: ss.Superposition(2, empty=float("nan")), "empty must be a finite number; got nan"),
        (lambda: ss.Superposition(2, empty="-1"), "empty must be a finite number; got '-1'"),
    ],
)
def test_options_that_are_no_numbers(make, sentence):
    with pytest.raises(ss.BadInput, match=sentence):
        make()


def test_within_a_network_nothing_is_checked_twice():
    net = ss.StackRNN(3, hidden_size=4, memory=ss.Deep(ss.Stack(2), 3))
    assert not net.cell.memory.memory.validate
    assert net.explain(torch.zeros(1, 2, 3)) == "reference: there is no kernel for the memory Deep"
    net = ss.StackRNN(3, hidden_size=4, memory=ss.Several(ss.Stack(2), 3))
    assert "u_1, u_2, u_3, d_1, d_2, d_3, v_1" in str(net)


@pytest.mark.parametrize("memory", ["deque", "superposition", "multipop"])
def test_a_thousand_steps(memory, generator):
    """Everything stays finite: reads, state, gradients."""
    net = ss.StackRNN(3, hidden_size=4, memory=memory, memory_size=2, output_size=3)
    x = torch.randn(2, 1000, 3, generator=generator)
    y, state = net(x)
    y[:, -1].sum().backward()
    assert y.isfinite().all()
    assert all(part.isfinite().all() for part in state.memory)
    assert all(p.grad.isfinite().all() and p.grad.abs().sum() > 0 for p in net.parameters())
