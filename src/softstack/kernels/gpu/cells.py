"""What controllers do number by number, on the GPU: for vectors of units, of one sequence or of several.

A controller's numbers before squashing come in four parts, but for the RNN's one:

    LSTM  i, f, g, o      GRU  reset, z, n's part from [x; r], n's part from h
"""

import triton
import triton.language as tl

from softstack.kernels.kinds import CORES, MEMORIES

LINEAR, RNN, GRU, LSTM = map(tl.constexpr, CORES.values())
STACK, QUEUE, NONE = map(tl.constexpr, MEMORIES.values())


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def apart(pre, SIZE: tl.constexpr):
    """(..., 4), in all 4 SIZE numbers -> four vectors (SIZE,), one for each gate."""
    even, odd = tl.split(tl.reshape(pre, (SIZE, 2, 2)))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit
def together(first, second, third, fourth, SIZE: tl.constexpr):
    """Four vectors as one (4 SIZE,): the reverse of `apart`."""
    return tl.reshape(tl.join(tl.join(first, third), tl.join(second, fourth)), (4 * SIZE,))


@triton.jit
def gated(first, second, third, fourth, h, c, CORE: tl.constexpr):
    """The new h and c of an LSTM or a GRU, and its gates, for the way back."""
    first, second = tl.sigmoid(first), tl.sigmoid(second)
    if CORE == LSTM:
        third, fourth = tanh(third), tl.sigmoid(fourth)
        c = second * c + first * third
        h = fourth * tanh(c)
    else:
        third = tanh(third + first * fourth)
        h = third + second * (h - third)
    return h, c, first, second, third, fourth


@triton.jit
def ungated(gh, gc, first, second, third, fourth, h, c, c_new, CORE: tl.constexpr):
    """The reverse, from h and c before the step: the gradients of the four parts and of c, and what of gh
    does not go through them."""
    if CORE == LSTM:
        squashed = tanh(c_new)
        gc += gh * fourth * (1 - squashed * squashed)
        g1 = gc * third * first * (1 - first)
        g2 = gc * c * second * (1 - second)
        g3 = gc * first * (1 - third * third)
        g4 = gh * squashed * fourth * (1 - fourth)
        gc *= second
        kept = tl.zeros_like(gh)
    else:
        g3 = gh * (1 - second) * (1 - third * third)
        g1 = g3 * fourth * first * (1 - first)
        g2 = gh * (h - third) * second * (1 - second)
        g4 = g3 * first
        kept = gh * second
    return g1, g2, g3, g4, gc, kept


@triton.jit
def note(at, H, there, first, second, third, fourth):
    """Put gates on the tape, where they lie gate by gate, H numbers apart."""
    tl.store(at, first, mask=there)
    tl.store(at + H, second, mask=there)
    tl.store(at + 2 * H, third, mask=there)
    tl.store(at + 3 * H, fourth, mask=there)


@triton.jit
def noted(at, H, there):
    """Gates from the tape."""
    return (
        tl.load(at, mask=there, other=0), tl.load(at + H, mask=there, other=0),
        tl.load(at + 2 * H, mask=there, other=0), tl.load(at + 3 * H, mask=there, other=0),
    )  # fmt: skip
