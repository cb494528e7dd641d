"""Where a network's numbers lie on the tape of `cpu/rnn.py`.

This is plain Python, which `cpu/tape.py` compiles: PyTorch asks for sizes while it traces, with symbols for
numbers and with functions of `math` replaced by its own, and numba must not be imported then.
"""

from softstack.kernels.kinds import LSTM, NONE

LANES = 16  # sequences that are computed at once
SHORT = 128  # slots of a memory that is worked by rows; beyond about 190 chains are faster, whatever m
KEPT = (0, 0, 4, 5)  # rows kept per hidden unit and step, by core: the GRU's reset, update, g and rec; the
# LSTM's i, f, g, o and tanh(c)


def layout(
    core: int, memory: int, short: bool, B: int, T: int, k: int, m: int, H: int, A: int, N: int, n_in: int,
    buffered: bool,
) -> tuple[int, ...]:  # fmt: skip
    """Where on a model's tape begin x, h, c, r, acts, gates, the memory's level and top (where `short`, its V
    and the strengths held), those of the input buffer with its n_in items, and the end."""
    lanes = -(-B // LANES) * LANES
    h = T * lanes * k  # h, c and r have T + 1 steps
    c = h + (T + 1) * lanes * H
    r = c + ((T + 1) * lanes * H if core == LSTM else 0)
    acts = r + (T + 1) * lanes * m
    gates = acts + T * lanes * A
    level = gates + T * lanes * KEPT[core] * H
    if memory == NONE:
        top, level_in = level, level
    elif short:
        top = level + lanes * N * m
        level_in = top + lanes * ((T + 1) * (N - T) + (T + 1) * T // 2)  # cells after 0, 1, ... T steps
    else:
        top = level + B * N
        level_in = top + B * (T + 1)
    top_in = level_in + (B * n_in if buffered else 0)
    return 0, h, c, r, acts, gates, level, top, level_in, top_in, top_in + (B * (T + 1) if buffered else 0)


def links(B: int, T: int, N: int, n_in: int, buffered: bool) -> int:
    """How many cells a model's chains name: link and first, of the memory and of the input buffer."""
    return B * (N + T + 1) + (B * (n_in + T + 1) if buffered else 0)
