"""The theorem of docs/parallel.md against the reference: reads, strengths and gradients, ties included."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import heights
import softstack as ss
from test_memory import DOUBLE, STRENGTHS

SCANS = {
    "stack": (ss.stack_scan, heights.stack, heights.stack_gradients),
    "queue": (ss.queue_scan, heights.queue, heights.queue_gradients),
}


def compare(memory, v, u, d, V0, s0, generator):
    scan, forward, backward = SCANS[memory]
    leaves = [x.clone().requires_grad_() for x in (v, u, d, V0, s0)]
    r, (V, s) = scan(*leaves[:3], ss.MemoryState(*leaves[3:]), backend="reference")
    ours = forward(v, u, d, V0, s0)
    assert_close(ours.r, r.detach(), rtol=0, atol=1e-12)
    assert_close(ours.s, s.detach(), rtol=0, atol=1e-12)
    gradients = [torch.randn(x.shape, generator=generator, **DOUBLE) for x in (r, V, s)]
    total = sum((x * g).sum() for x, g in zip((r, V, s), gradients, strict=True))
    theirs = torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
    names = ("v", "u", "d", "V0", "s0")
    for name, our, their in zip(names, backward(v, u, d, V0, s0, *gradients), theirs, strict=True):
        assert_close(our, their, rtol=0, atol=1e-11, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("memory", SCANS)
@pytest.mark.parametrize("kind", STRENGTHS)
@pytest.mark.parametrize(("T", "n"), [(0, 2), (1, 0), (1, 3), (9, 4), (40, 0), (150, 3)])
def test_the_theorem(memory, kind, T, n, generator):
    draw = STRENGTHS[kind]
    for _ in range(3 if T < 20 else 1):
        v, V0 = (torch.randn(k, 3, generator=generator, **DOUBLE) for k in (T, n))
        u, d, s0 = (draw(generator, k) for k in (T, T, n))
        compare(memory, v, u, d, V0, s0, generator)
        compare(memory, v, 0 * u, d, V0, s0, generator)
        compare(memory, v, torch.ones_like(u), d, V0, s0, generator)
        compare(memory, v, u, 1.5 * d, V0, s0, generator)


@given(st.data())
def test_the_theorem_on_any_strengths(data):
    T, n = data.draw(st.integers(1, 9)), data.draw(st.integers(0, 3))
    quarter = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 2.0])
    u, d = (torch.tensor(data.draw(st.lists(quarter, min_size=T, max_size=T)), **DOUBLE) for _ in "ud")
    s0 = torch.tensor(data.draw(st.lists(quarter, min_size=n, max_size=n)), **DOUBLE)
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 5)))
    v, V0 = (torch.randn(k, 2, generator=generator, **DOUBLE) for k in (T, n))
    for memory in SCANS:
        compare(memory, v, u, d, V0, s0, generator)
