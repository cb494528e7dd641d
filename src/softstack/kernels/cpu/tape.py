"""Where a network's numbers lie: the tape of `cpu/rnn.py`; and arrays as rows of LANES sequences."""

from numba import njit

from softstack.kernels.cpu.lanes import LANES
from softstack.kernels.cpu.memory import fast
from softstack.kernels.cpu.short import SHORT

LINEAR, RNN, GRU, LSTM = range(4)
STACK, QUEUE, NONE = range(3)


@njit(**fast)
def squashed(core):
    """Rows kept for each hidden unit and step: the GRU's reset, update, g and rec; the LSTM's i, f, g, o
    and tanh(c)."""
    return 5 if core == LSTM else 4 if core == GRU else 0


@njit(**fast)
def layout(core, memory, B, T, k, m, H, A, N, n_in):
    """Where on a model's tape begin x, h, c, r, acts, gates, the memory's level and top (a short one's V and
    strengths held), those of the input buffer, and the end. n_in is the number of items of the input buffer,
    -1 without one."""
    per_row = T * -(-B // LANES) * LANES
    more = -(-B // LANES) * LANES  # h, c and r have T + 1 steps
    h = per_row * k
    c = h + (per_row + more) * H
    r = c + ((per_row + more) * H if core == LSTM else 0)
    acts = r + (per_row + more) * m
    gates = acts + per_row * A
    level = gates + per_row * squashed(core) * H
    if memory != NONE and N <= SHORT:
        top = level + more * N * m
        level_in = top + more * ((T + 1) * (N - T) + (T + 1) * T // 2)  # cells after 0, 1, ... T steps
    else:
        top = level + (B * N if memory != NONE else 0)
        level_in = top + (B * (T + 1) if memory != NONE else 0)
    top_in = level_in + max(0, B * n_in)
    return 0, h, c, r, acts, gates, level, top, level_in, top_in, top_in + (B * (T + 1) if n_in >= 0 else 0)


@njit(**fast)
def spread(rows, x, block):
    """x (B, rows) -> the rows of a block, LANES apart; 0 for what is beyond the last sequence."""
    first = block * LANES
    for i in range(x.shape[1]):
        for lane in range(LANES):
            rows[i * LANES + lane] = x[first + lane, i] if first + lane < x.shape[0] else 0


@njit(**fast)
def gather(x, rows, block):
    """The other way."""
    first = block * LANES
    for i in range(x.shape[1]):
        for lane in range(min(LANES, x.shape[0] - first)):
            x[first + lane, i] = rows[i * LANES + lane]
