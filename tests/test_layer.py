"""StackLayer: the equations head by head, step by step as at once, and what PyTorch users do to a layer."""

import copy
import pickle

import pytest
import torch
from torch.func import functional_call, stack_module_state, vmap
from torch.testing import assert_close

import oracle
import softstack as ss

DOUBLE = dict(dtype=torch.float64)
ORACLES = {"stack": oracle.stack, "queue": oracle.queue}
memories = pytest.mark.parametrize("memory", ORACLES)


def layer_of(memory="stack", d_model=6, heads=3, **more):
    torch.manual_seed(0)
    return ss.StackLayer(d_model, heads=heads, memory=memory, **{**DOUBLE, **more})


def inputs(*shape, generator, **kind):
    return torch.randn(*shape, generator=generator, **{**DOUBLE, **kind})


class Deaf(ss.Stack):
    """A stack of which nothing is read."""

    def step(self, state, instructions):
        state, r = super().step(state, instructions)
        return state, torch.zeros_like(r)


def test_a_memory_that_inherits_from_a_stack_does_its_own_steps(generator):
    layer, x = layer_of(Deaf(2)), inputs(2, 5, 6, generator=generator)
    assert layer.explain(x) == "reference: there is no kernel for the memory Deaf"
    assert_close(layer(x)[0], layer.output.bias.expand(2, 5, 6))


@memories
def test_each_head_is_the_papers_memory(memory, generator):
    layer = layer_of(memory, memory_size=4)
    x = inputs(2, 9, 6, generator=generator)
    y, state = layer(x)
    actions = x @ layer.actions.weight.T + layer.actions.bias
    u, d = torch.sigmoid(actions[..., :3]), torch.sigmoid(actions[..., 3:6])
    for b in range(2):
        reads = []
        for head in range(3):
            v = actions[b, :, 6 + 4 * head : 10 + 4 * head]
            r, s = ORACLES[memory](v, u[b, :, head], d[b, :, head])
            reads.append(r)
            assert_close(state.V[b, head], v)
            assert_close(state.s[b, head], torch.stack(s))
        expected = torch.cat(reads, -1) @ layer.output.weight.T + layer.output.bias
        assert_close(y[b], expected)


@memories
@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_step_by_step_as_at_once(memory, backend, generator):
    layer = layer_of(memory, backend=backend)
    x = inputs(2, 12, 6, generator=generator)
    y, final = layer(x)
    first, state = layer(x[:, :5])
    outputs = [first]
    for t in range(5, 12):
        y_t, state = layer(x[:, t : t + 1], ss.compact(state))
        outputs.append(y_t)
    assert_close(torch.cat(outputs, 1), y)
    assert_close(ss.compact(state).s, ss.compact(final).s)


@memories
@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize("start", [0, 5])
def test_token_by_token(memory, backend, start, generator):
    device = "cuda" if backend == "gpu" and torch.cuda.is_available() else "cpu"
    layer = layer_of(memory).to(device)
    with torch.no_grad():
        layer.actions.weight.mul_(20)  # strengths near 0 and 1: cells are emptied
    T = 12 if backend == "gpu" else 200
    x = inputs(2, T, 6, generator=generator).to(device)
    y, _ = layer(x)
    _, state = layer(x[:, :start])
    cells = layer.cells(state)
    layer.backend = backend
    for t in range(start, T):
        y_t, cells = layer.step(x[:, t], cells)
        assert_close(y_t, y[:, t])


@memories
def test_older_cells_stay_valid(memory, generator):
    """Two ways to go on from the same cells, as a beam search has them, do not see each other."""
    layer = layer_of(memory)
    with torch.no_grad():
        layer.actions.bias[:3] = 5.0  # pops reach the end of a queue
    x = inputs(3, 4, 6, generator=generator)
    cells = layer.cells(layer(x[:1])[1])
    first, ours = layer.step(x[1:2, 0], cells)
    second, theirs = layer.step(x[2:, 0], cells)
    assert_close(first, layer.step(x[1:2, 0], cells)[0])
    ways = {1: (first, ours), 2: (second, theirs)}
    for k, (y_0, after) in ways.items():
        whole = layer(torch.cat((x[:1], x[k : k + 1]), 1))[0]
        y_1, _ = layer.step(x[k : k + 1, 1], after)
        assert_close(torch.stack((y_0, y_1), 1), whole[:, 4:6])


@memories
@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize("place", ["x", "u", "V", "s"])
def test_what_is_not_a_number_shows_token_by_token(memory, backend, place, generator):
    """As in the parallel pass: from its step on in all that is read, also when it has been popped."""
    device = "cuda" if backend == "gpu" and torch.cuda.is_available() else "cpu"
    layer = layer_of(memory).to(device)
    x = inputs(2, 8, 6, generator=generator).to(device)
    with torch.no_grad():
        layer.actions.bias[:3] = 3.0  # everything is popped soon
        if place == "u":
            layer.actions.bias[1] = torch.nan
    start = 0 if place in "xu" else 3
    _, state = layer(x[:, :start])
    if place == "x":
        x[0, 2, 1] = torch.nan
    elif place == "V":
        state.V.detach()[0, 1, 0, 1] = torch.nan
    elif place == "s":
        state.s.detach()[0, 1, 0] = torch.nan
    y, _ = layer(x[:, start:], state)
    cells = layer.cells(state)
    layer.backend = backend
    tokens = []
    for t in range(start, 8):
        token, cells = layer.step(x[:, t], cells)
        tokens.append(token)
    assert y[0, -1].isnan().all()
    assert_close(torch.stack(tokens, 1), y, equal_nan=True)


def test_a_strength_that_is_not_a_number_is_kept(generator):
    """`compact` drops what is empty, and NaN is not: or what follows would be read as if nothing had been."""
    layer = layer_of()
    x = inputs(1, 4, 6, generator=generator)
    x[0, 1] = torch.nan
    state = ss.compact(layer(x)[1])
    assert layer(inputs(1, 1, 6, generator=generator), state)[0].isnan().all()


class Adapted(torch.nn.Module):
    """A map of low rank beside another, which is frozen. It has no weight of its own."""

    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.narrow = torch.nn.Linear(base.in_features, rank, bias=False, **DOUBLE)
        self.wide = torch.nn.Linear(rank, base.out_features, bias=False, **DOUBLE)
        torch.nn.init.zeros_(self.wide.weight)

    def forward(self, x):
        return self.base(x) + self.wide(self.narrow(x))


def test_maps_may_be_replaced(generator):
    layer = layer_of()
    x = inputs(2, 5, 6, generator=generator)
    y, _ = layer(x)
    layer.actions, layer.output = Adapted(layer.actions), Adapted(layer.output)
    adapted, _ = layer(x)
    assert_close(adapted, y)
    adapted.sum().backward()
    assert layer.actions.wide.weight.grad.any()
    assert_close(layer.step(x[:, 0], layer.cells(layer.init((2,), x)))[0], y[:, 0])
    with pytest.raises(ss.BadInput, match="x must be of the parameters' dtype"):
        layer(x.float())


def test_cells_without_a_batch_and_bad_ones(generator):
    layer = layer_of()
    x = inputs(3, 6, generator=generator)
    y, _ = layer(x)
    cells = layer.cells(layer(x[:2])[1])
    assert_close(layer.step(x[2], cells)[0], y[2])
    with pytest.raises(ss.BadInput, match="cells must be of 2 sequences on cpu to match x; got those of 1"):
        layer.step(x[:2], cells)
    layer.backend = "reference"
    with pytest.raises(ss.BadInput, match="token by token a memory runs in a kernel only: reference: it was"):
        layer.step(x[2], cells)


def test_a_step_says_what_is_wrong(generator):
    layer, queue, other = (layer_of(memory) for memory in ("stack", "queue", "superposition"))
    x = inputs(2, 4, 6, generator=generator)
    state = layer(x)[1]
    cells, token = layer.cells(state), x[:, 0]
    own = other(x)[1]
    for call, reason in [
        (lambda: layer.step(token[:, :3], cells), r"x must be \(B, d_model\) .* d_model = 6; got \(2, 3\)"),
        (lambda: layer.step(x, cells), r"x must be \(B, d_model\) .* got \(2, 4, 6\)"),
        (lambda: layer.step(token.float(), cells), "x must be of the parameters' dtype"),
        (lambda: layer.step(token, state), "cells must be those of a stack, .* got MemoryState"),
        (lambda: layer.step(token, None), "got NoneType"),
        (lambda: queue.step(token, cells), "cells must be those of a queue, .* got those of a stack"),
        (lambda: layer.cells(cells), "state must be what this layer gave; got Cells"),
        (lambda: layer.cells(own), "got Depths"),
        (lambda: other.step(token[:, :3], own), "x must be"),
        (lambda: other.step(token, cells), "cells is not one that this network gave"),
        (lambda: other.step(token[:1], own), "to match x; got"),
    ]:
        with pytest.raises(ss.BadInput, match=reason):
            call()


def test_it_is_causal(generator):
    layer = layer_of()
    x = inputs(1, 10, 6, generator=generator).requires_grad_()
    y, _ = layer(x)
    (grad,) = torch.autograd.grad(y[0, 4].sum(), x)
    assert (grad[0, 5:] == 0).all() and (grad[0, 3:5] != 0).any(-1).all()


@memories
def test_padding_changes_nothing(memory, generator):
    layer = layer_of(memory)
    x, lengths = inputs(3, 7, 6, generator=generator), torch.tensor([7, 0, 4])
    x.requires_grad_()
    _, state = layer(inputs(3, 2, 6, generator=generator))
    y, final = layer(x, state, lengths)
    (grad,) = torch.autograd.grad(y.square().sum() + final.s.square().sum(), x)
    for b, length in enumerate(lengths.tolist()):
        own = x[b, :length].detach().requires_grad_()
        y_own, final_own = layer(own, ss.MemoryState(state.V[b], state.s[b]))
        assert_close(y[b, :length], y_own)
        assert_close(final.s[b, :, : 2 + length], final_own.s)
        (grad_own,) = torch.autograd.grad(
            y_own.square().sum() + final_own.s.square().sum(), own, allow_unused=True, materialize_grads=True
        )
        assert_close(grad[b, :length], grad_own)
        assert (y[b, length:] == 0).all() and (final.s[b, :, 2 + length :] == 0).all()
        assert (grad[b, length:] == 0).all()


@memories
def test_gradients_are_right(memory, generator):
    layer = layer_of(memory, d_model=4, heads=2)
    names, values = zip(*layer.named_parameters(), strict=True)
    values = [value.detach().requires_grad_() for value in values]
    x = inputs(1, 5, 4, generator=generator).requires_grad_()

    def run(x, *values):
        y, state = functional_call(layer, dict(zip(names, values, strict=True)), (x,))
        return y, state.s

    assert torch.autograd.gradcheck(run, (x, *values))


def test_backends_agree(generator):
    layer = layer_of()
    x = inputs(2, 20, 6, generator=generator)
    results = {}
    for backend in ("cpu", "gpu", "reference"):
        layer.backend = backend
        if backend == "gpu" and torch.cuda.is_available():
            continue  # its kernels are for tensors there
        y, _ = layer(x)
        results[backend] = [y, *torch.autograd.grad(y.square().sum(), layer.parameters())]
    for other in results.values():
        for ours, theirs in zip(other, results["reference"], strict=True):
            assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_without_a_batch_and_with_nothing(generator):
    layer = layer_of()
    x = inputs(5, 6, generator=generator)
    y, state = layer(x)
    assert_close(y, layer(x.unsqueeze(0))[0].squeeze(0))
    assert state.V.shape == (3, 5, 2)
    assert layer(x[:0])[0].shape == (0, 6)
    assert layer(x.expand(0, 5, 6))[0].shape == (0, 5, 6)
    nobody = layer.cells(layer.init((0,), x))
    assert layer.step(x[:0], nobody)[0].shape == (0, 6)


def test_autocast_keeps_strengths_wide(generator):
    layer = layer_of(dtype=torch.float32)
    x = inputs(2, 30, 6, generator=generator, dtype=torch.float32)
    plain, _ = layer(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, state = layer(x)
        _, state = layer(x[:, :1], state)
        token, _ = layer.step(x[:, 1], layer.cells(layer(x[:, :1])[1]))
    assert y.dtype == state.V.dtype == token.dtype == torch.bfloat16 and state.s.dtype == torch.float32
    assert_close(token, y[:, 1], rtol=0.02, atol=0.02)
    assert_close(y.float(), plain, rtol=0.05, atol=0.05)
    y.float().sum().backward()
    assert layer.actions.weight.grad.isfinite().all()


def test_halves(generator):
    layer = layer_of(dtype=torch.float32).bfloat16()
    x = inputs(2, 8, 6, generator=generator, dtype=torch.bfloat16)
    y, state = layer(x)
    layer.backend = "reference"
    y_slow, state_slow = layer(x)
    assert y.dtype == torch.bfloat16 and state.s.dtype == torch.float32
    assert_close(y, y_slow, rtol=0.02, atol=0.02)
    assert_close(state.s, state_slow.s)


def test_compiled(generator):
    layer = layer_of()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    for T in (4, 7, 11):
        x = inputs(2, T, 6, generator=generator).requires_grad_()
        ours, theirs = compiled(x)[0], layer(x)[0]
        assert_close(ours, theirs)
        assert_close(torch.autograd.grad(ours.sum(), x), torch.autograd.grad(theirs.sum(), x))


@pytest.mark.skipif(torch.__version__.startswith("2.11."), reason="torch 2.11 exports no two axes made one")
def test_exported(generator):
    layer = layer_of().eval()
    x = inputs(2, 6, 6, generator=generator)
    steps = torch.export.Dim("steps", min=2, max=1000)
    program = torch.export.export(layer, (x,), dynamic_shapes={"x": {1: steps}})
    longer = inputs(2, 9, 6, generator=generator)
    assert_close(program.module()(longer)[0], layer(longer)[0])


def test_a_population(generator):
    layers = [layer_of() for _ in range(3)]
    for layer in layers:
        layer.reset_parameters(generator)
    parameters, _ = stack_module_state(layers)
    x = inputs(3, 2, 5, 6, generator=generator)
    ys = vmap(lambda p, x: functional_call(layers[0], p, (x,))[0])(parameters, x)
    assert_close(ys, torch.stack([layer(z)[0] for layer, z in zip(layers, x, strict=True)]))


def test_copies_are_the_same(generator):
    layer = layer_of()
    x = inputs(1, 4, 6, generator=generator)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert_close(twin(x)[0], layer(x)[0])
    other = layer_of()
    other.reset_parameters(torch.Generator().manual_seed(5))
    other.load_state_dict(layer.state_dict())
    assert_close(other(x)[0], layer(x)[0])
    assert repr(layer).startswith("StackLayer(\n  6, heads=3, memory_size=2, memory='stack', backend='auto'")


def brackets(generator, B, T):
    """Four kinds of opening brackets and one that closes, 4; and after each step which kind is still open
    innermost, 4 if none."""
    x = torch.randint(4, (B, T), generator=generator)
    closes = torch.rand(B, T, generator=generator) < 0.48
    innermost = torch.full((B, T), 4)
    for b in range(B):
        opened = []
        for t in range(T):
            if opened and closes[b, t]:
                opened.pop()
                x[b, t] = 4
            else:
                opened.append(x[b, t])
            innermost[b, t] = opened[-1] if opened else 4
    return x, innermost


def test_it_learns_brackets_and_goes_on_six_times_as_far(generator):
    torch.manual_seed(0)
    embed, read, layer = torch.nn.Embedding(5, 32), torch.nn.Linear(32, 5), ss.StackLayer(32, heads=4)
    optimiser = torch.optim.Adam([*embed.parameters(), *layer.parameters(), *read.parameters()], lr=0.01)
    batches = [brackets(generator, 32, 24) for _ in range(100)]
    for x, innermost in batches * 3:
        loss = torch.nn.functional.cross_entropy(read(layer(embed(x))[0]).flatten(0, 1), innermost.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    x, innermost = brackets(generator, 64, 150)
    right = read(layer(embed(x))[0]).argmax(-1) == innermost
    assert right.float().mean() > 0.98


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(d_model=10), r"d_model = 10 is not a multiple of heads = 8: give a memory_size"),
        (dict(memory_size=0), r"memory_size must be a whole number of at least 1; got 0"),
        (dict(heads=0), r"heads must be a whole number of at least 1; got 0"),
        (dict(memory="stock"), r"unknown memory 'stock'.*stack"),
        (dict(backend="cuda"), r"unknown backend 'cuda'"),
        (dict(dtype=torch.int64), r"dtype must be floating point"),
    ],
)
def test_what_is_refused(change, message):
    arguments = dict(d_model=16)
    with pytest.raises(ss.BadInput, match=message):
        ss.StackLayer(**(arguments | change))


def test_bad_states(generator):
    layer = layer_of()
    x = inputs(2, 3, 6, generator=generator)
    _, state = layer(x)
    with pytest.raises(ss.BadInput, match=r"state.s must be \(B, heads, N\) = \(1, 3, 3\)"):
        layer(x[:1], state)
    with pytest.raises(ss.BadInput, match=r"state.V must be torch.float64 on cpu.*got torch.float32"):
        layer(x, state._replace(V=state.V.float()))
    with pytest.raises(ss.BadInput, match="state must be what this layer gave"):
        layer(x, tuple(state))
    with pytest.raises(ss.BadInput, match=r"state.s must be a tensor; got NoneType"):
        layer(x, ss.MemoryState(None, None))


# --- other memories: the stack attention of DuSell and Chiang (2024) ---------------------------------------

ATTENTION = ["superposition", "vector_nondeterministic", ss.Deep(ss.Superposition(2), 2), "multipop"]


@pytest.mark.parametrize("memory", ATTENTION, ids=str)
def test_stack_attention_is_a_memory_for_each_head(memory, generator):
    """Actions from x alone, by the memory's own heads; what each head reads, through one projection."""
    layer = ss.StackLayer(6, heads=3, memory=memory, **DOUBLE)
    x = torch.randn(2, 5, 6, generator=generator, **DOUBLE)
    y, state = layer(x)
    raw = (x @ layer.actions.weight.T + layer.actions.bias).view(2, 5, 3, -1)
    reads = []
    for head in range(3):
        parts = raw[:, :, head].split([kind.size for kind in layer.memory.heads.values()], -1)
        kinds = layer.memory.heads.items()
        told = {name: kind.value(part) for (name, kind), part in zip(kinds, parts, strict=True)}
        r, own = ss.scan(layer.memory, told)
        reads.append(r)
        for ours, theirs in zip(state, own, strict=True):
            assert_close(ours[:, head], theirs)
    assert_close(y, torch.cat(reads, -1) @ layer.output.weight.T + layer.output.bias)
    assert layer.explain(x).startswith("reference: there is no kernel for the memory ")
    with pytest.raises(ss.BadInput, match="backend 'cpu' does not fit this call"):
        ss.StackLayer(6, heads=3, memory=memory, backend="cpu", **DOUBLE)(x)


@pytest.mark.parametrize("memory", ATTENTION, ids=str)
def test_stack_attention_in_parts_with_lengths_and_token_by_token(memory, generator):
    layer = ss.StackLayer(6, heads=3, memory=memory, **DOUBLE)
    x = torch.randn(2, 5, 6, generator=generator, **DOUBLE)
    y, final = layer(x)
    first, state = layer(x[:, :2])
    second, state = layer(x[:, 2:], state)
    assert_close(torch.cat((first, second), 1), y)
    cells = layer.cells(layer.init((2,), x))
    for t in range(5):
        token, cells = layer.step(x[:, t], cells)
        assert_close(token, y[:, t])
    for ours, theirs, other in zip(state, final, cells, strict=True):
        assert_close(ours, theirs)
        assert_close(other, theirs)
    x[0, 3:] = torch.nan
    padded, _ = layer(x, lengths=torch.tensor([3, 5]))
    assert_close(padded[0, :3], y[0, :3])
    assert not padded[0, 3:].any()
    assert_close(layer(x[1])[0], y[1])  # without a batch axis
    padded.sum().backward()
    assert all(p.grad.isfinite().all() for p in layer.parameters())
    with pytest.raises(ss.BadInput, match="is not one that this network gave"):
        layer(x, ss.Stack(2).init(2, **DOUBLE))
