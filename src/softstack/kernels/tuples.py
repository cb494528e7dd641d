"""What kernels take and give, in named tuples: of tensors, and in cpu/ of numpy arrays in the same memory.

P models   B sequences each   T steps   k inputs   H hidden   K outputs   m numbers in a vector of the memory
n slots of the memory before the first step, N after the last   n_in items in the input buffer
R numbers that are read, and as many that are pushed: m, or 2 m at the two ends of a deque
A actions of a controller: strengths, those of buffers, i and o, probabilities of choices, R numbers to push,
and y. A stack has two strengths, u and d; how many others have is in kinds.py
G rows of the map that sees [x; r]: A (linear), H (RNN), 3 H (GRU), 4 H (LSTM)
"""

from typing import NamedTuple

from torch import Tensor


class Options(NamedTuple):
    """What kind of network it is."""

    core: int  # see kinds.py
    memory: int
    steps: int  # T
    ragged: bool  # whether steps at or after `lengths` are padding
    buffered: bool
    disturbed: bool  # whether there is a `Disturbance`
    choices: int = 0  # that have a probability: push, pop and no-op, or how many to pop
    depth: int = 0  # cells that a superposition stack has at most; 0 for any number


class Weights(NamedTuple):
    """The parameters of a cell, or their gradients."""

    W: Tensor  # (P, G, k + R) the map that sees [x; r]: a linear controller's heads
    b: Tensor  # (P, G)
    Wh: Tensor  # (P, G, H)
    bn: Tensor  # (P, H) the GRU's bias inside its reset gate
    Wo: Tensor  # (P, A, H) the heads
    bo: Tensor  # (P, A)


class State(NamedTuple):
    """The state before the first step or after the last, or its gradient."""

    h: Tensor  # (P, B, H)
    c: Tensor  # (P, B, H) of the LSTM
    r: Tensor  # (P, B, R)
    V: Tensor  # (P, B, n, m), or N
    s: Tensor  # (P, B, n), or N; by depths, how likely it is that something is there


class Buffer(NamedTuple):
    """The input buffer before the first step or after the last, or its gradient."""

    strengths: Tensor  # (P, B, n_in)
    i: Tensor  # (P, B) to be taken next


class Disturbance(NamedTuple):
    """What training does to the controller's state. Where there is none, of no steps."""

    keep: Tensor  # (P, B, T) what h and c are multiplied by before each step, 1 or 0
    noise: Tensor  # (P, B, T, H) what is added to h after it


class Inputs(NamedTuple):
    x: Tensor  # (P, B, T, k); with buffers, the items (P, B, n_in, k)
    weights: Weights
    start: State
    buffer: Buffer
    disturbance: Disturbance
    lengths: Tensor  # (P, B)


class Outputs(NamedTuple):
    y: Tensor  # (P, B, T, K)
    o: Tensor  # (P, B, T) the strengths with which y enters the output buffer
    final: State
    buffer: Buffer
    tape: Tensor  # (P, ...) numbers for the backward pass
    links: Tensor  # (P, ...) and cells


class Kept(NamedTuple):
    """What the backward pass needs of the forward pass."""

    x: Tensor
    W: Tensor
    Wh: Tensor
    Wo: Tensor
    lengths: Tensor
    s0: Tensor  # of the start
    strengths0: Tensor
    i0: Tensor
    keep: Tensor
    noise: Tensor
    V: Tensor  # of the final state
    s: Tensor
    strengths: Tensor
    tape: Tensor
    links: Tensor


class Gradients(NamedTuple):
    """In: of y and o, of the final state and of the buffer after it. Out: of the state and the buffer before
    the first step, in the same places, of x, and of the weights, added to what is there."""

    y: Tensor
    o: Tensor
    state: State
    buffer: Buffer
    x: Tensor
    weights: Weights


class Sizes(NamedTuple):
    B: int
    T: int
    k: int
    m: int
    H: int
    K: int
    G: int
    N: int
    n_in: int
    A: int
    R: int


class Steps(NamedTuple):
    """What a memory is told, by a scan."""

    V: Tensor  # (B, N, m) what it holds, and in the last T slots what is pushed
    u: Tensor  # (B, T)
    d: Tensor  # (B, T)
    s0: Tensor | None  # (B, n); on a GPU None where there was no state
    lengths: Tensor | None  # (B,); on a GPU None where no sequence is padded


class Log(NamedTuple):
    """What a scan on the CPU notes of its chains. README.md says why this is enough."""

    link: Tensor  # (B, N) the cell that is met after this one
    level: Tensor  # (B, N) its strength then
    first: Tensor  # (B, T + 1) the cell met first, before each step and at the end
    top: Tensor  # (B, T + 1) its strength
