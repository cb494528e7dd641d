"""Where a network's numbers lie on the tape of `gpu/rnn.py`. Triton is not imported here: see
`cpu/layout.py`."""

from softstack.kernels.kinds import GRU, LSTM, NONE


def layout(
    core: int, memory: int, T: int, m: int, H: int, G: int, N: int, n_in: int, buffered: bool
) -> tuple[list[int], int]:
    """Where on a sequence's tape its parts begin, and the end; and how many links it has."""
    acts = (4 if buffered else 2) + m
    chained = memory != NONE
    parts = (
        T * G,
        (T + 1) * H,
        (T + 1) * H if core == LSTM else 0,
        (T + 1) * m,
        T * acts,
        T * 4 * H if core in (GRU, LSTM) else 0,
        N if chained else 0,
        T + 1 if chained else 0,
        n_in * G if buffered else 0,
        n_in if buffered else 0,
        T + 1 if buffered else 0,
    )
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + part)
    return starts, (N + T + 1 if chained else 0) + (n_in + T + 1 if buffered else 0)
