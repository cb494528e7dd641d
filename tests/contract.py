"""What the contract of every memory is tested with: the memories, their oracles, and what is told to them.

The memories are softstack's and those of tests/plugins, of which the library knows nothing. A memory is told
random values of its own heads, whatever those are.
"""

import pytest
import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

import oracle
import softstack as ss
from plugins import mgu, register, steque, tape

DOUBLE = dict(dtype=torch.float64)
MEMORIES = {**ss.MEMORIES, **register.MEMORIES, **steque.MEMORIES, **tape.MEMORIES}
CONTROLLERS = {**ss.CONTROLLERS, **mgu.CONTROLLERS}
ORACLES = {
    "stack": lambda **told: oracle.stack(**told)[0],
    "queue": lambda **told: oracle.queue(**told)[0],
    "none": lambda v, u, d: torch.zeros_like(v),
    "register": oracle.register,
    "steque": oracle.steque,
    "tape": oracle.tape,
    "deque": oracle.deque,
    "superposition": oracle.superposition,
    "superposition_without_noop": oracle.superposition,
    "multipop": oracle.multipop,
    "nondeterministic": oracle.nondeterministic,
    "vector_nondeterministic": oracle.nondeterministic,
    "two_stacks": oracle.two_stacks,
    "deep_stack": oracle.deep_stack,
}
KERNELS = {"stack": ss.stack_scan, "queue": ss.queue_scan}
scans = pytest.mark.parametrize("scan", [*MEMORIES, *(f"{name} kernel" for name in KERNELS)])
every_memory = pytest.mark.parametrize("memory", MEMORIES)
NETWORKS = ["StackRNN", "BufferedStackRNN"]
every_network = pytest.mark.parametrize("network", NETWORKS)
every_controller = pytest.mark.parametrize("controller", CONTROLLERS)
# Every memory with every controller, and both with either network.
every_pair = pytest.mark.parametrize(
    ("memory", "controller", "network"),
    [
        (memory, controller, NETWORKS[(row + column) % 2])
        for row, memory in enumerate(MEMORIES)
        for column, controller in enumerate(CONTROLLERS)
    ],
)


def instructions(memory, generator, *steps):
    """What heads of the memory's kinds could say: by name, (B, T, ...)."""
    return {
        name: head.value(2 * torch.randn(*steps, head.size, generator=generator, **DOUBLE))
        for name, head in memory.heads.items()
    }


def run(scan, told, state=None, lengths=None):
    """A memory over a sequence, by name: step by step, or through its kernel."""
    name, *kernel = scan.split()
    if kernel:
        return KERNELS[name](**told, state=state, lengths=lengths)
    return ss.scan(MEMORIES[name](2), told, state, lengths)


def at(told, *index):
    return {name: part[index] for name, part in told.items()}


def memory_of(scan):
    return MEMORIES[scan.split()[0]](2)


def same(a, b):
    for ours, theirs in zip(tree_leaves(a), tree_leaves(b), strict=True):
        assert_close(ours, theirs)


def longer(part, like):
    """A leaf of a state that made fewer steps, with empty cells as `like` has them."""
    out = torch.zeros_like(like)
    out[tuple(slice(size) for size in part.shape)] = part
    return out


def gradients(total, leaves, retain_graph=False):
    """Zeros where nothing depends on a leaf, as with no memory."""
    if not total.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves]
    return torch.autograd.grad(
        total, leaves, retain_graph=retain_graph, allow_unused=True, materialize_grads=True
    )


def score(*results):
    """A number that depends on every tensor of the results, each part of it in another way."""
    total = 0
    for k, leaf in enumerate(tree_leaves(results)):
        total = total + (leaf * torch.linspace(-1, 1 + k, leaf.numel(), **DOUBLE).view(leaf.shape)).sum()
    return total


def make(memory, network="StackRNN", controller="lstm", seed=0, **more):
    sizes = dict(hidden_size=5, memory_size=2, output_size=4, controller=controller, memory=memory)
    net = getattr(ss, network)(3, **{**sizes, **DOUBLE, **more})
    net.reset_parameters(torch.Generator().manual_seed(seed))
    return net


def inputs(generator, *shape):
    return torch.randn(*shape, 3, generator=generator, **DOUBLE)
