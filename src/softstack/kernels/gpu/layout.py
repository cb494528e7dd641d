"""Where a network's numbers lie on the tape of `gpu/rnn.py`, and a scan's. Triton is not imported here: see
`cpu/layout.py`."""

import torch

from softstack.kernels.kinds import GRU, LINEAR, LSTM, NONE, RNN
from softstack.kernels.tuples import Options, Sizes

ALIGNED = 32  # numbers: each part begins with a line of the cache
ON_CHIP = 160 * 1024  # bytes of weights that a program on the GPU holds in its registers


def geometry_size(N: int) -> int:
    """How many numbers say where a sequence's N indices lie: `gpu/heights.py`. Tiles have 16 indices or more,
    and everything begins at a multiple of 16 bytes."""
    return 4 * (N + N % 2) + 6 * ((N + 31) // 32)


def places(options: Options, sizes: Sizes) -> tuple[list[int], int]:
    """Where on a sequence's tape its parts begin, and the end; and how many links it has."""
    core, memory, _, _, buffered, *_ = options
    _, T, _, m, H, _, G, N, n_in, *_ = sizes
    chained = memory != NONE
    parts = (
        T * G,
        (T + 1) * H,
        (T + 1) * H if core == LSTM else 0,
        (T + 1) * m,
        T * ((4 if buffered else 2) + m),
        T * 4 * H if core in (GRU, LSTM) else 0,
        N if chained else 0,
        T + 1 if chained else 0,
        n_in * G if buffered else 0,
        n_in if buffered else 0,
        T + 1 if buffered else 0,
    )
    starts = [0]
    for part in parts:
        starts.append((starts[-1] + part + ALIGNED - 1) // ALIGNED * ALIGNED)
    return starts, (N + T + 1 if chained else 0) + (n_in + T + 1 if buffered else 0)


def weights_held(core: int, m: int, H: int) -> int:
    """How many numbers a program would hold: the maps that see r and h, padded to powers of two."""
    M, H = (1 << (size - 1).bit_length() for size in (m, max(1, H)))
    if core == LINEAR:
        return M * M
    return (1 if core == RNN else 4) * H * (M + H) + M * H


def on_chip(core: int, m: int, H: int, dtype: torch.dtype) -> bool:
    return weights_held(core, m, H) * max(4, dtype.itemsize) <= ON_CHIP
