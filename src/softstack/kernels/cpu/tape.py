"""The tape of `cpu/rnn.py`: views of its parts; and arrays as rows of LANES sequences."""

from softstack.kernels.cpu.compiling import inlined, internal
from softstack.kernels.cpu.layout import KEPT, LANES, SEGMENT
from softstack.kernels.cpu.layout import places as places_in_python
from softstack.kernels.cpu.short import rows_before
from softstack.kernels.kinds import LSTM

places = internal(places_in_python)


@inlined
def tracks(tape, at, options, sizes):
    """What a model's tape holds of every step: x, h, c, r, actions and gates."""
    B, T, k, _, H, _, _, _, _, A, R = sizes
    blocks = -(-B // LANES)
    gates = KEPT[options.core] * H
    cells = H if options.core == LSTM else 0
    return (
        tape[at.x : at.h].reshape(T, blocks, k, LANES),
        tape[at.h : at.c].reshape(T + 1, blocks, H, LANES),
        tape[at.c : at.r].reshape(T + 1, blocks, cells, LANES),
        tape[at.r : at.acts].reshape(T + 1, blocks, R, LANES),
        tape[at.acts : at.gates].reshape(T, blocks, A, LANES),
        tape[at.gates : at.level].reshape(T, blocks, gates, LANES),
    )


@inlined
def rows_of_memory(tape, at, sizes, block):
    """A short memory on a model's tape: the vectors and the strengths of a block."""
    blocks, rows = -(-sizes.B // LANES), rows_before(sizes.N - sizes.T, sizes.T + 1)
    V = tape[at.level : at.top].reshape(blocks, sizes.N * sizes.m, LANES)
    strengths = tape[at.top : at.level_in].reshape(blocks, rows, LANES)
    return V[block], strengths[block]


@inlined
def depths_of_memory(tape, at, sizes, block):
    """A stack by depths on a model's tape: the cells of a block before every SEGMENTth step."""
    blocks, rows = -(-sizes.B // LANES), sizes.N * (sizes.m + 1)
    return (tape[at.level : at.top].reshape(blocks, sizes.T // SEGMENT + 1, rows, LANES)[block],)


@inlined
def ends_of_memory(tape, at, sizes, block):
    """A deque on a model's tape: the vectors of a block, and its strengths before every SEGMENTth step."""
    blocks, N = -(-sizes.B // LANES), sizes.N
    V = tape[at.level : at.top].reshape(blocks, N * sizes.m, LANES)
    notes = tape[at.top : at.level_in].reshape(blocks, sizes.T // SEGMENT + 1, N, LANES)
    return V[block], notes[block]


@inlined
def chain_of_memory(tape, links, at, sizes):
    """A long memory on a model's tape: link, level, first and top."""
    B, T, N = sizes.B, sizes.T, sizes.N
    return (
        links[: B * N].reshape(B, N),
        tape[at.level : at.top].reshape(B, N),
        links[B * N : B * (N + T + 1)].reshape(B, T + 1),
        tape[at.top : at.level_in].reshape(B, T + 1),
    )


@inlined
def chain_of_buffer(tape, links, at, sizes):
    """The same of the input buffer."""
    B, T, n_in = sizes.B, sizes.T, sizes.n_in
    begin = links.shape[0] - B * (n_in + T + 1)
    return (
        links[begin : begin + B * n_in].reshape(B, n_in),
        tape[at.level_in : at.top_in].reshape(B, n_in),
        links[begin + B * n_in :].reshape(B, T + 1),
        tape[at.top_in : at.end].reshape(B, T + 1),
    )


@internal
def spread(rows, x, first):
    """x (B, ...) -> rows (n, LANES), the first n numbers of sequence `first` and those after it; 0 for what
    is beyond the last sequence."""
    for i in range(rows.shape[0]):
        for lane in range(LANES):
            rows[i, lane] = x[first + lane, i] if first + lane < x.shape[0] else 0


@internal
def gather(x, rows, first):
    """Rows as x again: the reverse of `spread`."""
    lanes = min(LANES, x.shape[0] - first)
    for i in range(rows.shape[0]):
        for lane in range(lanes):
            x[first + lane, i] = rows[i, lane]


@internal
def spread_step(rows, x, t, first):
    """The same for step t of x (B, T, n)."""
    for i in range(rows.shape[0]):
        for lane in range(LANES):
            rows[i, lane] = x[first + lane, t, i] if first + lane < x.shape[0] else 0


@internal
def gather_step(x, rows, begin, t, first):
    """The reverse of `spread_step`, for the rows from `begin` on."""
    lanes = min(LANES, x.shape[0] - first)
    for i in range(x.shape[2]):
        for lane in range(lanes):
            x[first + lane, t, i] = rows[begin + i, lane]


@internal
def spread_lane(rows, x, first, lane):
    """One sequence of x (B, n) into its lane."""
    for i in range(rows.shape[0]):
        rows[i, lane] = x[first + lane, i]
