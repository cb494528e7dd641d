"""The nondeterministic stack: by hand, against all runs one by one, and where weights would overflow."""

import math

import pytest
import torch
from torch.testing import assert_close

import oracle
import softstack as ss
from contract import DOUBLE, gradients, instructions, same, score
from softstack.lab.explain.diagnosis import diagnose
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import initial

NEVER = -300.0  # the logarithm of a weight that is as good as 0


def log_weights(*rows):
    """One state, two symbols: from each symbol, push 0, push 1, replace by 0, replace by 1, pop."""
    return torch.tensor([math.log(w) if w else NEVER for row in rows for w in row], **DOUBLE)


def test_by_hand():
    memory = ss.Nondeterministic(symbols=2, states=1)
    told = [
        log_weights((0, 2, 1, 0, 0), (1, 1, 1, 1, 1)),  # two of three runs push a 1 onto the 0
        log_weights((0, 0, 3, 0, 0), (0, 0, 0, 0, 1)),  # they pop it; the third stays, with a weight of 3
        log_weights((0, 1, 1, 0, 5), (1, 1, 1, 1, 1)),  # to pop the bottom ends a run
    ]
    reads = []
    state = memory.init((), **DOUBLE)
    held = []
    for delta in told:
        state, r = memory.step(state, _told(delta))
        reads.append(r)
        held.append(memory.contents(state))
    expected = torch.tensor([[1 / 3, 2 / 3], [1, 0], [0.5, 0.5]], **DOUBLE)
    assert_close(torch.stack(reads), expected)
    assert_close(held[0].s, torch.tensor([1, 2 / 3], **DOUBLE))
    assert_close(held[0].V, torch.eye(2, **DOUBLE))
    assert_close(held[1].s, torch.tensor([1.0, 0, 0], **DOUBLE))
    assert_close(held[2].s, torch.tensor([1.0, 0, 0, 0.5], **DOUBLE))


def _told(delta):
    return ss.memory.protocol.instructions_type(("delta",))(delta)


def every_run(delta, symbols, states):
    """All runs, one by one: {(state, ((step that pushed, symbol), ...)): weight} after each step."""
    K = symbols * states
    runs = {(0, ((0, 0),)): 1.0}
    for t, row in enumerate(delta.view(len(delta), K, -1).exp().tolist(), 1):
        new: dict = {}
        for (q, stack), weight in runs.items():
            item, x = stack[-1]
            weights = row[q * symbols + x]
            for n in range(K):
                r, y = divmod(n, symbols)
                new[r, (*stack, (t, y))] = new.get((r, (*stack, (t, y))), 0) + weight * weights[n]
                after = (r, (*stack[:-1], (item, y)))
                new[after] = new.get(after, 0) + weight * weights[K + n]
            for r in range(states) if len(stack) > 1 else ():
                after = (r, stack[:-1])
                new[after] = new.get(after, 0) + weight * weights[2 * K + r]
        runs = new
        yield runs


@pytest.mark.parametrize(("symbols", "states"), [(2, 2), (3, 1), (1, 2)])
def test_reads_and_contents_are_those_of_all_runs(symbols, states, generator):
    memory = ss.Nondeterministic(symbols, states)
    delta = torch.randn(5, memory.heads["delta"].size, generator=generator, **DOUBLE)
    state = memory.init((), **DOUBLE)
    for t, runs in enumerate(every_run(delta, symbols, states), 1):
        state, r = memory.step(state, _told(delta[t - 1]))
        total = sum(runs.values())
        tops, items = torch.zeros(states, symbols, **DOUBLE), torch.zeros(t + 1, symbols, **DOUBLE)
        for (q, stack), weight in runs.items():
            tops[q, stack[-1][1]] += weight / total
            for item, y in stack:
                items[item, y] += weight / total
        assert_close(r, tops.flatten())
        V, s = memory.contents(state)
        assert_close(s, items.sum(-1))
        assert_close(V * s.unsqueeze(-1), items)


def test_with_vectors_it_reads_the_vector_on_top(generator):
    """Of all runs; a symbol that is replaced keeps its vector, and the first symbol has none."""
    memory = ss.Nondeterministic(2, 2, vectors=3)
    told = instructions(memory, generator, 4)
    r, _ = ss.scan(memory, told)
    runs = list(every_run(told["delta"], 2, 2))[-1]
    expected = torch.zeros(4, 3, **DOUBLE)
    for (q, stack), weight in runs.items():
        item, y = stack[-1]
        if item:
            expected[2 * q + y] += weight / sum(runs.values()) * told["v"][item - 1]
    assert_close(r[-1], expected.flatten())


def test_normalised_weights(generator):
    memory = ss.Nondeterministic(2, 2, normalised=True)
    told = {name: part.requires_grad_() for name, part in instructions(memory, generator, 6).items()}
    ours, theirs = ss.scan(memory, told)[0], oracle.nondeterministic(**told, normalised=True)
    assert_close(ours, theirs)
    same(gradients(score(ours), list(told.values())), gradients(score(theirs), list(told.values())))


def test_a_deterministic_machine_is_a_stack():
    """Push 1, 2, 1, then pop all of them: what is on top is read off the weights' largest."""
    memory = ss.Nondeterministic(symbols=3, states=1)

    def only(place):
        return torch.where(torch.arange(7) == place, 0.0, NEVER).repeat(3).double()

    told = torch.stack([only(1), only(2), only(1), only(6), only(6), only(6)])
    r, state = ss.scan(memory, {"delta": told})
    assert r.argmax(-1).tolist() == [1, 2, 1, 2, 1, 0]
    assert_close(r.amax(-1), torch.ones(6, **DOUBLE))
    assert_close(memory.contents(state).s, torch.tensor([1.0, *[0] * 6], **DOUBLE))


def test_weights_of_any_size(generator):
    """A factor common to all weights of a step changes nothing, however large: 1e400 or 1e-400."""
    memory = ss.Nondeterministic(2, 2)
    told = instructions(memory, generator, 2, 12)["delta"]
    r, _ = ss.scan(memory, {"delta": told})
    scale = torch.where(torch.arange(12) % 2 == 0, 921.0, -921.0).unsqueeze(-1)
    assert_close(ss.scan(memory, {"delta": told + scale})[0], r)


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_long_sequences_stay_finite(scale, generator):
    """In float32, with weights that differ by e^100 and more in every step; gradients too."""
    memory = ss.Nondeterministic(2, 2)
    delta = (scale * torch.randn(60, memory.heads["delta"].size, generator=generator)).requires_grad_()
    r, _ = ss.scan(memory, {"delta": delta})
    assert_close(r.sum(-1), torch.ones(60))
    assert_close(r, ss.scan(memory, {"delta": delta.double()})[0].float(), atol=1e-4, rtol=0)
    (gradient,) = torch.autograd.grad(r[:, 0].sum(), delta)
    assert gradient.isfinite().all()
    assert gradient.abs().sum() > 0


def test_a_thousand_steps(generator):
    memory = ss.Nondeterministic(2, 1)
    delta = torch.randn(1000, memory.heads["delta"].size, generator=generator)
    r, state = ss.scan(memory, {"delta": delta})
    assert_close(r.sum(-1), torch.ones(1000), atol=1e-4, rtol=0)
    assert state.below.shape == (2, 1000, 1, 1000, 2, 1)


def test_it_is_diagnosed_on_strings_that_it_can_afford():
    condition = Condition("reversal", "linear", "nondeterministic", test_size=10)
    diagnosis = diagnose(initial(condition, 0), condition, 0, strings=5)
    assert [length for length, _ in diagnosis.lengths] == [24, 48, 96]
    assert diagnosis.use.effects["whole"].grafts == 200
    assert diagnosis.verdict == "ignores its nondeterministic stack"
    assert diagnosis.histogram == {}
