"""Stacks and queues against the oracle: reads, states and gradients, ties included; and what is refused."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import oracle
import softstack as ss
from softstack.memory import above, before

SCANS = {"stack": (ss.stack_scan, oracle.stack), "queue": (ss.queue_scan, oracle.queue)}
DOUBLE = dict(dtype=torch.float64)


def random_strengths(generator, *shape):
    return torch.rand(*shape, generator=generator, **DOUBLE)


def saturated(generator, *shape):
    """Many exact 0s and 1s, as sigmoids in float32 give. Multiples of 1/1024, so that every sum is exact and
    what is a tie in the equations is one in floating point, in whatever order they are computed."""
    raw = torch.randint(0, 1025, shape, generator=generator).double() / 1024
    return torch.where(raw < 0.3, 0.0, torch.where(raw > 0.6, 1.0, raw))


def tied(generator, *shape):
    """Multiples of a quarter: sums meet 1 and each other exactly."""
    return torch.randint(0, 5, shape, generator=generator).double() / 4


def tiny(generator, *shape):
    return 1e-3 * torch.rand(*shape, generator=generator, **DOUBLE)


STRENGTHS = {"random": random_strengths, "saturated": saturated, "tied": tied, "tiny": tiny}


def instructions(kind, generator, B, T, m):
    draw = STRENGTHS[kind]
    v = torch.randn(B, T, m, generator=generator, **DOUBLE)
    return v, draw(generator, B, T), draw(generator, B, T)


def test_grefenstettes_worked_example():
    """Figure 1 of Grefenstette et al.: the read vectors written out there."""
    v = torch.eye(3, **DOUBLE)
    u, d = torch.tensor([0.0, 0.1, 0.9], **DOUBLE), torch.tensor([0.8, 0.5, 0.9], **DOUBLE)
    r, state = ss.stack_scan(v, u, d)
    assert_close(r, torch.tensor([[0.8, 0, 0], [0.5, 0.5, 0], [0.1, 0, 0.9]], **DOUBLE))
    assert_close(state.s, torch.tensor([0.3, 0.0, 0.9], **DOUBLE))
    assert_close(state.V, v)


def test_a_queue_by_hand():
    """Push a, b, c with strength 1 while taking 0, 0.5, 1: the front moves from a to half of b and c."""
    v = torch.eye(3, **DOUBLE)
    u, d = torch.tensor([0.0, 0.5, 1.0], **DOUBLE), torch.ones(3, **DOUBLE)
    r, state = ss.queue_scan(v, u, d)
    assert_close(r, torch.tensor([[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]], **DOUBLE))
    assert_close(state.s, torch.tensor([0, 0.5, 1], **DOUBLE))


def test_ahead_is_what_lies_nearer():
    s = torch.tensor([1.0, 2.0, 4.0])
    assert_close(above(s), torch.tensor([6.0, 4.0, 0.0]))
    assert_close(before(s), torch.tensor([0.0, 1.0, 3.0]))
    assert above(s[:0]).shape == before(s[:0]).shape == (0,)


@pytest.mark.parametrize("memory", SCANS)
@pytest.mark.parametrize("kind", STRENGTHS)
@pytest.mark.parametrize("T", [1, 2, 13])
def test_reads_and_states_are_the_papers(memory, kind, T, generator, device):
    scan, literal = SCANS[memory]
    v, u, d = instructions(kind, generator, 4, T, 3)
    r, state = scan(*(x.to(device) for x in (v, u, d)))
    for b in range(4):
        expected_r, expected_s = literal(v[b], u[b], d[b])
        assert_close(r[b].cpu(), expected_r)
        assert_close(state.s[b].cpu(), torch.stack(expected_s))
    assert_close(state.V.cpu(), v)


@pytest.mark.parametrize("memory", SCANS)
@pytest.mark.parametrize("kind", STRENGTHS)
def test_gradients_are_the_papers(memory, kind, generator):
    """Ties included: the nested ReLUs and their telescoped form have the same slopes there.

    But for one, u = 0 exactly: the equations then take u from the nearest item without a ReLU, so with slope
    1, and we with slope 0 (test_the_convention_at_a_tie). A sigmoid does not get there.
    """
    scan, literal = SCANS[memory]
    v, u, d = instructions(kind, generator, 2, 9, 3)
    given = [x.requires_grad_() for x in (v, u.clamp(min=1 / 1024), d)]
    weights = torch.randn(2, 9, 3, generator=generator, **DOUBLE)
    ours = torch.autograd.grad((scan(*given)[0] * weights).sum(), given)
    theirs = torch.autograd.grad(
        sum((literal(*(x[b] for x in given))[0] * weights[b]).sum() for b in range(2)), given
    )
    for our, their in zip(ours, theirs, strict=True):
        assert_close(our, their)


@given(st.data())
def test_reads_are_the_papers_on_any_strengths(data):
    """Any mixture of exact 0, exact 1, strengths beyond 1, halves and arbitrary numbers."""
    T = data.draw(st.integers(1, 8))
    strength = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5]), st.floats(0, 2, allow_subnormal=False))
    u, d = (torch.tensor(data.draw(st.lists(strength, min_size=T, max_size=T)), **DOUBLE) for _ in "ud")
    v = torch.eye(T, **DOUBLE)
    for scan, literal in SCANS.values():
        assert_close(scan(v, u, d)[0], literal(v, u, d)[0], atol=1e-12, rtol=0)


def test_the_convention_at_a_tie():
    """minimum gives each of two equal arguments half of the gradient; relu has slope 0 at 0."""
    v, u = torch.ones(1, 1, 1, **DOUBLE), torch.zeros(1, 1, **DOUBLE)
    d = torch.ones(1, 1, **DOUBLE, requires_grad=True)  # s = rho = 1: a tie
    (grad,) = torch.autograd.grad(ss.stack_scan(v, u, d)[0].sum(), d)
    assert_close(grad, torch.tensor([[0.5]], **DOUBLE))
    u = torch.tensor([[0.0, 1.0]], **DOUBLE, requires_grad=True)  # pops nothing, then exactly what is there
    v, d = torch.ones(1, 2, 1, **DOUBLE), torch.tensor([[1.0, 0.0]], **DOUBLE)
    (grad,) = torch.autograd.grad(ss.stack_scan(v, u, d)[0].sum(), u)
    assert_close(grad, torch.tensor([[0.0, 0.0]], **DOUBLE))


def test_autocast_keeps_full_precision(generator):
    v, u, d = (x.float() for x in instructions("random", generator, 2, 6, 3))
    plain = ss.stack_scan(v, u, d)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_close(ss.stack_scan(v, u, d)[0], plain, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(u=torch.zeros(2, 5)), r"u must be \(B, T\) = \(2, 4\) to match v; got \(2, 5\)"),
        (dict(v=torch.zeros(4)), r"v must be \(B, T, m\) or \(T, m\); got \(4,\)"),
        (dict(d=torch.zeros(2, 4).double()), r"d must be a floating point tensor of v's dtype"),
        (dict(u=torch.full((2, 4), -0.5)), r"u holds a strength of -0.5; strengths must be finite"),
        (dict(d=torch.full((2, 4), torch.nan)), r"d holds a strength of nan"),
        (dict(d=torch.full((2, 4), torch.inf)), r"d holds a strength of inf"),
        (dict(backend="cuda"), r"unknown backend 'cuda': .*accepted: auto, reference, cpu, gpu"),
        (dict(lengths=torch.tensor([1, 5])), r"lengths must lie between 0 and T = 4; got 5"),
        (dict(lengths=torch.tensor([1.0, 2.0])), r"lengths must be whole numbers; got torch.float32"),
        (dict(lengths=torch.tensor([1])), r"lengths must be \(B,\) = \(2,\) to match x; got \(1,\)"),
        (
            dict(state=ss.MemoryState(torch.zeros(2, 3, 1), torch.zeros(2, 3))),
            r"state.V must be \(B, N, m\) = \(2, 3, 2\)",
        ),
    ],
)
def test_bad_arguments(change, message):
    arguments = dict(v=torch.zeros(2, 4, 2), u=torch.zeros(2, 4), d=torch.zeros(2, 4))
    with pytest.raises(ss.BadInput, match=message):
        ss.stack_scan(**(arguments | change))


def test_a_bad_step():
    stack = ss.Stack(2)
    good = ss.Instructions(torch.zeros(3, 2), torch.zeros(3), torch.zeros(3))
    with pytest.raises(ss.BadInput, match=r"u holds a strength of -1.0"):
        stack.step(stack.init(3), good._replace(u=-torch.ones(3)))
    with pytest.raises(ss.BadInput, match=r"v must be \(B, m\) or \(m\) with m = 2"):
        stack.step(stack.init(3), good._replace(v=torch.zeros(3, 4)))
