"""The tape of `cpu/rnn.py`, compiled; and arrays as rows of LANES sequences."""

from softstack.kernels.cpu import layout as plain
from softstack.kernels.cpu.compiling import compiled
from softstack.kernels.cpu.layout import LANES

layout = compiled(plain.layout)


@compiled
def spread(rows, x, block):
    """x (B, rows) -> the rows of a block, LANES apart; 0 for what is beyond the last sequence."""
    first = block * LANES
    for i in range(x.shape[1]):
        for lane in range(LANES):
            rows[i * LANES + lane] = x[first + lane, i] if first + lane < x.shape[0] else 0


@compiled
def spread_lane(rows, x, first, lane):
    """The same for one sequence of a block, which begins with sequence `first`."""
    for i in range(x.shape[1]):
        rows[i * LANES + lane] = x[first + lane, i]


@compiled
def gather(x, rows, block):
    """The other way."""
    first = block * LANES
    for i in range(x.shape[1]):
        for lane in range(min(LANES, x.shape[0] - first)):
            x[first + lane, i] = rows[i * LANES + lane]
