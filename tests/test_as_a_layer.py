"""What PyTorch users do to a layer, and what comes of it. (What they know from nn.LSTM: test_like_lstm.py.)

    what is done                            what comes of it
    --------------------------------------  ------------------------------------------------------------------
    hooks                                   forward, pre and backward hooks fire in every step, and may change
    hooks on every module                   the same
    LoRA-like replacement of a layer        the new layer computes and learns
    a layer with another forward            that forward computes; the same for its whole class
    a layer of another size                 is refused by the reference
    pruning                                 the masked weights compute
    parametrisations                        spectral_norm and weight_norm, old and new, compute and learn
    quantize_dynamic                        the quantised layers compute
    tensor subclasses as weights            they say what is computed
    a TorchFunctionMode                     it sees what is computed, and may change it
    an edit, a trace                        the reference runs
    checkpointing                           the same gradients
    torch.export before any call            the same outputs: test_kernels.py
    torch.export.save, torch.save           graphs and states come back from their files, as safe ones
    torch.compile with five shapes          the same outputs and gradients
    pickle and deepcopy                     the same outputs, hooks and replacements included
    bfloat16 and half                       near float32
    autocast                                near float32, and a state in float32
    DDP, two processes                      the mean of their gradients
    vmap                                    over parameters, of several layers and directions too
    gradcheck                               in float64, of several layers and directions too

Where a kernel would not compute what the layers say, `explain` says so. Each test checks that sentence.
"""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.nn.utils import parametrizations, prune
from torch.overrides import TorchFunctionMode
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.checkpoint import checkpoint

import softstack as ss
from contract import DOUBLE, gradients, inputs, make, same, score
from softstack.cell import StackCell
from softstack.controllers import LSTM

FUSED = "cpu: the fused kernel runs"
both = pytest.mark.parametrize("network", ["StackRNN", "BufferedStackRNN"])
LAYERS = {"heads": "heads", "core": "core", "from_input": "core.from_input", "cell": ""}


def steps_of(network, T):
    return T if network == "StackRNN" else 2 * T


@both
@pytest.mark.parametrize("layer", LAYERS)
def test_hooks_fire_in_every_step(network, layer, generator):
    """And once they are removed the kernel runs again."""
    net, x = make("stack", network), inputs(generator, 2, 5).requires_grad_()
    module = net.cell.get_submodule(LAYERS[layer])
    plain = net(x)[0]
    assert net.explain(x) == FUSED
    calls = {"before": 0, "after": 0, "back": 0, "before back": 0}

    def count(name):
        def hook(*_):
            calls[name] += 1

        return hook

    handles = [
        module.register_forward_pre_hook(count("before")),
        module.register_forward_hook(count("after")),
        module.register_full_backward_hook(count("back")),
        module.register_full_backward_pre_hook(count("before back")),
    ]
    named = "cell" if layer == "cell" else f"cell.{LAYERS[layer]}"
    assert net.explain(x) == f"reference: {named} has a hook"
    y = net(x)[0]
    y.sum().backward()
    assert set(calls.values()) == {steps_of(network, 5)}
    assert_close(y, plain)
    for k, handle in enumerate(handles):  # each of the four alone is enough
        handle.remove()
        assert (net.explain(x) == FUSED) == (k == 3)


@both
def test_hooks_change_what_comes_out(network, generator):
    """A hook that doubles what a layer says is that layer with its weights doubled."""
    net, x = make("stack", network), inputs(generator, 2, 5)
    doubled = copy.deepcopy(net)
    with torch.no_grad():
        for p in doubled.cell.core.from_input.parameters():
            p.mul_(2)
    handle = net.cell.core.from_input.register_forward_hook(lambda module, given, out: 2 * out)
    assert_close(net(x)[0], doubled(x)[0])
    handle.remove()
    net.cell.register_forward_hook(lambda module, given, out: (torch.zeros_like(out[0]), *out[1:]))
    assert not net(x)[0].any()


def test_a_backward_hook_changes_gradients(generator):
    net, x = make("stack"), inputs(generator, 2, 5).requires_grad_()
    (plain,) = torch.autograd.grad(net(x)[0].sum(), x)
    net.cell.register_full_backward_hook(lambda module, inputs, outputs: (3 * inputs[0], *inputs[1:]))
    (changed,) = torch.autograd.grad(net(x)[0].sum(), x)
    assert_close(changed, 3 * plain)


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize(
    "register",
    [
        nn.modules.module.register_module_forward_hook,
        nn.modules.module.register_module_forward_pre_hook,
        nn.modules.module.register_module_full_backward_hook,
        nn.modules.module.register_module_full_backward_pre_hook,
    ],
)
def test_hooks_on_every_module(register, generator):
    net, x = make("stack"), inputs(generator, 2, 5).requires_grad_()
    called = []
    handle = register(lambda module, *_: called.append(module))
    try:
        assert net.explain(x) == "reference: a hook is set on every module"
        net(x)[0].sum().backward()
    finally:
        handle.remove()
    assert called.count(net.cell.heads) == 5
    assert net.explain(x) == FUSED


class LoRA(nn.Module):
    """A layer plus a low-rank update of it; it has no weight of its own name."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.down = nn.Linear(layer.in_features, 1, bias=False, **DOUBLE)
        self.up = nn.Linear(1, layer.out_features, bias=False, **DOUBLE)

    def forward(self, x):
        return self.layer(x) + self.up(self.down(x))


@both
@pytest.mark.parametrize("name", ["heads", "core.from_input", "core.from_hidden"])
def test_lora(network, name, generator):
    """What is put in the place of a layer computes, and learns."""
    net, x = make("stack", network), inputs(generator, 2, 5)
    merged = copy.deepcopy(net)
    lora = LoRA(net.cell.get_submodule(name))
    net.cell.set_submodule(name, lora)
    with torch.no_grad():
        merged.cell.get_submodule(name).weight += lora.up.weight @ lora.down.weight
    assert merged.explain(x) == FUSED
    kind = "Heads" if name == "heads" else "Linear"
    assert net.explain(x) == f"reference: cell.{name} is a LoRA, not the {kind} that a kernel stands for"
    assert_close(net(x)[0], merged(x)[0])
    assert gradients(net(x)[0].sum(), [lora.up.weight])[0].any()


@both
def test_a_layer_with_another_forward(network, generator):
    net, x = make("stack", network), inputs(generator, 2, 5)
    silent = copy.deepcopy(net)
    with torch.no_grad():
        for p in silent.cell.core.from_input.parameters():
            p.zero_()
    layer = net.cell.core.from_input
    layer.forward = lambda z: z.new_zeros(*z.shape[:-1], layer.out_features)
    assert net.explain(x) == "reference: cell.core.from_input has a forward of its own"
    assert_close(net(x)[0], silent(x)[0])


@both
@pytest.mark.parametrize("kind", [nn.Linear, LSTM, StackCell])
def test_a_class_with_another_forward(network, kind, generator, monkeypatch):
    """What every layer of a class is made to do."""
    net, x = make("stack", network), inputs(generator, 2, 5)
    reference = copy.deepcopy(net)
    reference.backend = "reference"
    plain, forward = net(x)[0], kind.forward

    def half(part):
        return part if part is None else part / 2

    def halved(self, *arguments):
        return tree_map(half, forward(self, *arguments))

    monkeypatch.setattr(kind, "forward", halved)
    assert "has a forward of its own" in net.explain(x)
    y = net(x)[0]
    assert not torch.allclose(y, plain)
    assert_close(y, reference(x)[0])


def test_a_memory_with_another_step(generator, monkeypatch):
    net, x = make("stack"), inputs(generator, 2, 5)
    step, nothing = ss.Stack.step, torch.zeros(2, 2, **DOUBLE)
    monkeypatch.setattr(ss.Stack, "step", lambda *arguments: (step(*arguments)[0], nothing))
    assert net.explain(x) == "reference: the memory has a step of its own"
    assert not net(x)[1].r.any()


@both
def test_a_layer_of_another_size(network, generator):
    """The reference says what is wrong; a kernel would have read past the end."""
    net, x = make("stack", network), inputs(generator, 2, 5)
    net.cell.core.from_hidden = nn.Linear(5, 12, **DOUBLE)
    assert net.explain(x) == "reference: cell.core.from_hidden.weight is (12, 5), not (20, 5)"
    with pytest.raises(RuntimeError, match="size of tensor"):
        net(x)


@both
def test_pruning(network, generator):
    net, x = make("stack", network), inputs(generator, 2, 5)
    for layer in (net.cell.heads, net.cell.core.from_input):
        prune.l1_unstructured(layer, "weight", amount=0.4)
    assert net.explain(x) == "reference: cell.heads has a hook"
    y = net(x)[0]
    for layer in (net.cell.heads, net.cell.core.from_input):
        prune.remove(layer, "weight")
        assert (layer.weight == 0).float().mean() > 0.3
    assert net.explain(x) == FUSED
    assert_close(net(x)[0], y)


PARAMETRISATIONS = {
    "spectral": (parametrizations.spectral_norm, "Parametrized"),
    "weight": (parametrizations.weight_norm, "Parametrized"),
    "old spectral": (nn.utils.spectral_norm, "has a hook"),
    "old weight": (nn.utils.weight_norm, "has a hook"),
}


@both
@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
@pytest.mark.parametrize("name", ["heads", "core.from_input"])
@pytest.mark.parametrize("kind", PARAMETRISATIONS)
def test_parametrisations(network, name, kind, generator):
    """They compute and learn; the plain network with the weight that they give says the same."""
    net, x = make("stack", network).eval(), inputs(generator, 2, 5)
    plain = copy.deepcopy(net)
    apply, reason = PARAMETRISATIONS[kind]
    apply(net.cell.get_submodule(name))
    assert reason in net.explain(x)
    y = net(x)[0]
    with torch.no_grad():
        plain.cell.get_submodule(name).weight.copy_(net.cell.get_submodule(name).weight)
    assert_close(y, plain(x)[0])
    assert all(grad.any() for grad in gradients(score(y), list(net.parameters())))


@both
@pytest.mark.filterwarnings("ignore")
def test_quantize_dynamic(network, generator):
    """Its layers round, so that something changes, but little."""
    net, x = make("stack", network).float().eval(), inputs(generator, 2, 5).float()
    quantised = torch.ao.quantization.quantize_dynamic(net, {nn.Linear}, dtype=torch.qint8)
    kind = "torch.ao.nn.quantized.dynamic.modules.linear.Linear"
    assert quantised.explain(x) == (
        f"reference: cell.core.from_input is a {kind}, not the Linear that a kernel stands for"
    )
    y, plain = quantised(x)[0], net(x)[0]
    assert not torch.equal(y, plain)
    assert_close(y, plain, atol=0.05, rtol=0.05)


class Doubled(torch.Tensor):
    """A weight that counts twice in every linear layer."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        plain = [x.as_subclass(torch.Tensor) if isinstance(x, Doubled) else x for x in arguments]
        if function is nn.functional.linear:
            plain[1] = 2 * plain[1]
        return function(*plain, **(keywords or {}))


def test_tensor_subclasses_as_weights(generator):
    net, x = make("stack"), inputs(generator, 2, 5)
    twice = copy.deepcopy(net)
    with torch.no_grad():
        twice.cell.heads.weight.mul_(2)
    net.cell.heads._parameters["weight"] = net.cell.heads.weight.detach().as_subclass(Doubled)
    assert net.explain(x) == "reference: cell.heads.weight is a Doubled"
    assert_close(net(x)[0], twice(x)[0])


@both
def test_a_mode_sees_what_is_computed(network, generator):
    """And a default device, which torch keeps as a mode, leaves the kernel alone."""

    class Halved(TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), options=None):
            result = function(*arguments, **(options or {}))
            return result / 2 if function is torch.sigmoid else result

    net, x = make("stack", network), inputs(generator, 2, 5)
    plain = net(x)[0]
    with Halved():
        assert net.explain(x) == "reference: Halved may change what torch computes"
        changed = net(x)[0]
    net.backend = "reference"
    with Halved():
        assert_close(net(x)[0], changed)
    assert not torch.allclose(plain, changed)
    net.backend = "auto"
    with torch.device("cpu"):
        assert net.explain(x) == FUSED


@both
def test_layers_without_a_bias_or_of_another_dtype(network, generator):
    net, x = make("stack", network), inputs(generator, 2, 5)
    unbiased = copy.deepcopy(net)
    with torch.no_grad():
        unbiased.cell.core.from_hidden.bias.zero_()
    net.cell.core.from_hidden.bias = None
    assert net.explain(x) == "reference: cell.core.from_hidden has no bias"
    assert_close(net(x)[0], unbiased(x)[0])
    net.cell.core.from_input.float()
    net.cell.core.from_hidden.bias = nn.Parameter(torch.zeros(20, **DOUBLE))
    assert net.explain(x) == (
        "reference: cell.core.from_input.weight has another dtype or device than cell.heads.weight"
    )


@both
def test_an_edit_and_a_trace(network, generator, monkeypatch):
    """Pushing nothing reads nothing. Where the reference runs, no kernel does."""

    def refuse(*_):
        raise AssertionError("a kernel ran")

    net, x = make("stack", network), inputs(generator, 2, 5)
    net(x)
    for kernel in ("scan.scan", "rnn.run"):
        monkeypatch.setattr(f"softstack.kernels.{kernel}", refuse)
    mute = ss.Edit(
        actions=lambda actions: actions._replace(
            instructions=actions.instructions._replace(d=torch.zeros_like(actions.instructions.d))
        )
    )
    assert net.explain(x, edit=mute) == "reference: steps are edited"
    assert net.explain(x, return_trace=True) == "reference: a trace is kept step by step"
    _, _, trace = net(x, edit=mute, return_trace=True)
    assert not trace.r.any()


def halved(state):
    return state._replace(memory=state.memory._replace(s=state.memory.s / 2))


@both
def test_an_edit_leaves_padding_alone(network, generator):
    """A state that is halved before each step is halved as often as there are steps."""
    net, x = make("stack", network), inputs(generator, 2, 5)
    edit = ss.Edit(state=halved)
    padded = net(x, lengths=torch.tensor([5, 2]), edit=edit)[1]
    alone = net(x[1, :2], edit=edit)[1]
    s, s_alone = ((state if network == "StackRNN" else state.network).memory.s for state in (padded, alone))
    assert_close(s[1, : len(s_alone)], s_alone)
    assert not s[1, len(s_alone) :].any()


STORED = {
    "State": lambda: ss.StackRNN(3, hidden_size=4, memory_size=2),
    "LayerStates": lambda: ss.StackRNN(3, hidden_size=4, memory_size=2, memory="superposition", num_layers=2),
    "BufferedState": lambda: ss.BufferedStackRNN(3, hidden_size=4, memory_size=2, output_size=3),
    "Runs": lambda: ss.StackLayer(3, heads=1, memory="nondeterministic"),
}


@pytest.mark.parametrize("kind", STORED)
def test_graphs_and_states_come_back_from_their_files(kind, generator, tmp_path):
    network = STORED[kind]()
    x = inputs(generator, 2, 4).float()
    y, state = network(x)
    torch.export.save(torch.export.export(network, (x,)), tmp_path / "graph.pt2")
    torch.save(state, tmp_path / "state.pt")
    of_graph = torch.export.load(tmp_path / "graph.pt2").module()(x)
    assert_close(of_graph[0], y)
    for other in (of_graph[1], torch.load(tmp_path / "state.pt", weights_only=True)):
        assert type(other) is type(state)
        assert_close(tree_leaves(other), tree_leaves(state))


@both
@pytest.mark.parametrize("backend", ["auto", "reference"])
@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing(network, backend, reentrant, generator):
    net, x = make("stack", network, backend=backend), inputs(generator, 2, 5).requires_grad_()
    leaves = [x, *net.parameters()]
    net(x)[0].square().sum().backward()
    theirs = [leaf.grad.clone() for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    checkpoint(lambda x: net(x)[0], x, use_reentrant=reentrant).square().sum().backward()
    same([leaf.grad for leaf in leaves], theirs)


@pytest.mark.parametrize(("network", "backend"), [("StackRNN", "reference"), ("BufferedStackRNN", "auto")])
def test_compile_with_five_shapes(network, backend, generator):
    more = dict(steps=lambda T: T + 1) if network == "BufferedStackRNN" else {}
    net = make("stack", network, backend=backend, **more)
    torch._dynamo.reset()  # which counts how often the same lines are compiled
    compiled = torch.compile(net, fullgraph=True, backend="aot_eager" if backend == "auto" else "eager")
    parameters = list(net.parameters())
    last = (7, 4) if backend == "auto" else (7, 1)  # a loop is written out for every length that is new
    for B, T in [(2, 2), (3, 2), (4, 1), (5, 3), last]:
        x = inputs(generator, B, T)
        ours, theirs = compiled(x), net(x)
        same(ours, theirs)
        same(gradients(score(ours[0]), parameters), gradients(score(theirs[0]), parameters))


class Tripled(nn.Linear):
    def forward(self, x):
        return 3 * super().forward(x)


def test_pickle_and_deepcopy(generator):
    """A replaced layer is still replaced."""
    net, x = make("stack", num_layers=2, bidirectional=True), inputs(generator, 2, 5)
    net.cells[1].core.from_input = Tripled(5, 20, **DOUBLE)
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(twin(x)[0], net(x)[0])
        assert twin.explain(x) == net.explain(x)
    reason = "reference: cell.core.from_input is a Tripled, not the Linear that a kernel stands for"
    assert net.explain(x) == f"cells[0]: {FUSED}; cells[1]: {reason}; cells[2]: {FUSED}; cells[3]: {FUSED}"


@both
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.half])
def test_bfloat16_and_half(network, dtype, generator):
    net, x = make("stack", network).float(), inputs(generator, 2, 5).float()
    plain = net(x)[0]
    small = copy.deepcopy(net).to(dtype)
    y, state = small(x.to(dtype))
    assert {leaf.dtype for leaf in tree_leaves((y, state))} == {dtype}
    assert_close(y.float(), plain, atol=0.05, rtol=0.05)
    y.float().square().sum().backward()
    plain.square().sum().backward()
    for p, whole in zip(small.parameters(), net.parameters(), strict=True):
        assert_close(p.grad.float(), whole.grad, atol=0.1 * whole.grad.abs().max().item(), rtol=0.1)


@both
@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_autocast(network, backend, generator):
    """After another layer, whose output is bfloat16; the state can be gone on with outside."""
    net, x = make("stack", network, backend=backend).float(), inputs(generator, 2, 5).float()
    layer = nn.Linear(3, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        before = layer(x)
        y, state = net(before)
        assert before.dtype == torch.bfloat16
        assert net.explain(before) == (FUSED if backend == "auto" else "reference: it was asked for")
    assert {leaf.dtype for leaf in tree_leaves((y, state))} == {torch.float32}
    plain, plain_state = net(layer(x))
    assert_close(y, plain, atol=0.05, rtol=0.05)
    assert_close(net(x, state)[0], net(x, plain_state)[0], atol=0.05, rtol=0.05)


def half_of_the_work(rank, folder):
    """One of two processes: the gradients that DDP agrees on, of this rank's sequences."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    torch.set_num_threads(1)
    net, x = make("stack"), inputs(torch.Generator().manual_seed(1), 4, 5)
    parallel = nn.parallel.DistributedDataParallel(net)
    parallel(x[2 * rank :][:2])[0].square().mean().backward()
    torch.save([p.grad for p in net.parameters()], f"{folder}/{rank}")
    torch.distributed.destroy_process_group()


def test_ddp(processes, tmp_path, generator):
    arguments = dict(args=(str(tmp_path),), nprocs=2, start_method="forkserver")
    torch.multiprocessing.start_processes(half_of_the_work, **arguments)
    net, x = make("stack"), inputs(generator, 4, 5)
    net(x)[0].square().mean().backward()
    for rank in range(2):
        same(torch.load(tmp_path / str(rank)), [p.grad for p in net.parameters()])


def test_vmap(generator):
    """A population of networks with two layers and both directions, of a kernel's memory and of another."""
    for memory in ("stack", ss.NoMemory(2)):
        more = dict(memory_size=None) if isinstance(memory, ss.NoMemory) else {}
        nets = [make(memory, seed=k, num_layers=2, bidirectional=True, **more) for k in range(3)]
        stacked, _ = stack_module_state(nets)
        x = inputs(generator, 3, 2, 4)
        grads = vmap(grad(lambda p, x: functional_call(nets[0], p, (x,))[0].square().sum()))(stacked, x)  # noqa: B023 (called at once)
        for k, net in enumerate(nets):
            own = gradients(net(x[k])[0].square().sum(), list(net.parameters()))
            same([grads[name][k] for name, _ in net.named_parameters()], own)


@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_gradcheck(backend, generator):
    """Of outputs and of final states."""
    net = make("stack", num_layers=2, bidirectional=True, hidden_size=3, output_size=2, backend=backend)
    names = [name for name, _ in net.named_parameters()]

    def outcome(x, *weights):
        return tuple(tree_leaves(functional_call(net, dict(zip(names, weights, strict=True)), (x,))))

    weights = [p.detach().requires_grad_() for p in net.parameters()]
    assert torch.autograd.gradcheck(
        outcome, (inputs(generator, 2, 3).requires_grad_(), *weights), fast_mode=True
    )
