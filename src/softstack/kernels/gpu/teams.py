"""A large StackRNN on the GPU, whose weights one program cannot hold: how its work is parted among teams of
programs. What a team does is in `gpu/teamwork.py`."""

from functools import cache
from typing import NamedTuple

import torch

from softstack.kernels.gpu.launching import INTERPRETED, cdiv, launch, power_of_2
from softstack.kernels.gpu.teamwork import backward_kernel, begin_kernel, finish_kernel, forward_kernel
from softstack.kernels.kinds import GRU, LINEAR, LSTM, NONE, STACK

LEAST = 16  # sequences of a team, and products in a sum: what a tensor core multiplies at once
NARROW = 8  # columns
HELD = 224 * 1024  # bytes that a chip has for weights and for what they are multiplied with


class Team(NamedTuple):
    """How the work is cut up."""

    SEQUENCES: int  # of a team
    UNITS: int  # of the controller that a member makes, and columns of r
    ACTIONS: int
    members: int


def joined(core, W, Wh, k, H):
    """(P, R, m + H): the map from [r; h] to `pre`."""
    from_r = W[..., k:]
    if core == LINEAR:
        return from_r.contiguous()
    if core != GRU:
        return torch.cat((from_r, Wh), 2)
    top = torch.cat((from_r[:, : 2 * H], Wh[:, : 2 * H]), 2)
    n_r, n_h = from_r[:, 2 * H :], Wh[:, 2 * H :]
    new = torch.cat((n_r, torch.zeros_like(n_h)), 2), torch.cat((torch.zeros_like(n_r), n_h), 2)
    return torch.cat((top, *new), 1)


@cache
def teamed(core, P, B, m, H, dtype, processors):
    """Teams as large as fill the processors, with as little for each member to load as can be: the rows of
    its sequences and of its weights."""
    two = power_of_2
    if INTERPRETED:  # one program after the other: nobody can be waited for
        return Team(2, two(max(m, H)), two(2 + m), 1)
    rows = max(H, m)

    def cut(sequences):
        most = max(processors // (P * cdiv(B, sequences)), cdiv(rows, 4 * NARROW))
        members = cdiv(rows, two(cdiv(rows, min(most, cdiv(rows, NARROW)))))
        units, actions = (max(NARROW, two(cdiv(size, members))) for size in (rows, 2 + m))
        return Team(sequences, units, actions, members)

    def load(team):
        return team.SEQUENCES + gates_of(core) * team.UNITS

    return min((cut(LEAST << k) for k in range(3)), key=load)


def gates_of(core):
    return 4 if core in (GRU, LSTM) else 1


def launched(kernel, team, P, B, processors, tensors, sizes, constants):
    """Call a kernel for all teams, as many at once as can run at the same time."""
    count = cdiv(B, team.SEQUENCES)
    at_once = max(1, processors // team.members)
    counters = tensors[0].new_zeros(P * count * 32, dtype=torch.int32)
    if not INTERPRETED:
        constants.update(num_stages=1, launch_cooperative_grid=True)
    for first in range(0, P * count, at_once):
        programs = min(at_once, P * count - first) * team.members
        numbers = first, count, team.members, *sizes
        launch(kernel, (programs,), (*tensors, counters), numbers, **constants)


@cache
def processors_on(device):
    return torch.cuda.get_device_properties(device).multi_processor_count


def processors_of(x):
    return processors_on(x.device) if x.is_cuda else 1


def kinds(options, m, team, dtype):
    """The constants of both kernels."""
    return {
        "CORE": options.core, "MEMORY": options.memory, "DISTURBED": options.disturbed,
        "RAGGED": options.ragged, "SEQUENCES": team.SEQUENCES, "UNITS": team.UNITS,
        "MP": power_of_2(m), "PRECISION": precision(dtype),
    }  # fmt: skip


def precision(dtype):
    """How products are made: those of float32 in three parts of tf32, to float32's own rounding, unless torch
    was told that less will do."""
    if dtype != torch.float32:
        return "ieee"
    return "tf32x3" if torch.get_float32_matmul_precision() == "highest" else "tf32"


def fits(weights, factors, dtype):
    """Whether a chip holds so many weights, and what they are multiplied with. Weights in parts of tf32 take
    two places."""
    places = 2 if precision(dtype) == "tf32x3" else 1
    return (weights * places + factors) * dtype.itemsize <= HELD


def of_forward(core, m, H, team, dtype):
    gates = gates_of(core)
    warps = min(8, max(4, team.SEQUENCES * gates * team.UNITS // 256))
    parts = 2 if INTERPRETED else warps
    padded = [max(LEAST * parts, power_of_2(size)) for size in (m, H)]
    held = fits(sum(padded) * gates * team.UNITS, max(padded) * team.SEQUENCES, dtype)
    held &= max(padded) * dtype.itemsize <= 1024
    return {
        "ACTIONS": team.ACTIONS, "GATES": gates, "FROM_R": padded[0] if held else m,
        "FROM_H": padded[1] if held else H, "HELD": held, "PARTS": parts, "num_warps": warps,
    }  # fmt: skip


def of_backward(m, R, team, dtype):
    warps = 8
    parts = 2 if INTERPRETED else warps
    padded = [parts * max(LEAST, power_of_2(cdiv(size, parts))) for size in (2 + m, R)]
    held = fits((padded[0] + 2 * padded[1]) * team.UNITS, max(padded) * team.SEQUENCES, dtype)
    return {
        "FROM_ACTIONS": padded[0] if held else 2 + m, "FROM_PRE": padded[1] if held else R, "HELD": held,
        "PARTS": parts, "num_warps": warps,
    }  # fmt: skip


def forward(options, inputs, outputs, at, parts):
    """All steps; x's projection is on the tape. `parts` are the tape's, by step."""
    core, memory, T, ragged, *_ = options
    x, (W, b, Wh, bn, Wo, bo), start, _, (keep, noise), lengths = inputs
    _, _, final, _, tape, links = outputs
    xs, hs, cs, rs = parts
    (P, B, _, G), m, H, N, k = xs.shape, start.r.shape[2], start.h.shape[2], final.V.shape[2], x.shape[3]
    n, size, chains = N - T if memory != NONE else N, at[-1], links.shape[1] // B
    places = [B * part for part in at]
    rs[:, :, 0] = start.r
    if core != LINEAR:
        hs[:, :, 0] = start.h
    if core == LSTM:
        cs[:, :, 0] = start.c
    grid = (P * B,)
    if memory == NONE:
        rs[:, :, 1:] = 0
    else:
        launch(
            begin_kernel, grid, (start.s, links, tape), (n, N, B, T, size, chains, places[6], places[7]),
            LIFO=memory == STACK,
        )  # fmt: skip
    if core != LINEAR or memory != NONE:
        matrix = joined(core, W, Wh, k, H)
        bias = torch.cat((b, bn), 1) if core == GRU else b
        processors = processors_of(x)
        team = teamed(core, P, B, m, H, W.dtype, processors)
        launched(
            forward_kernel, team, P, B, processors,
            (matrix, bias, Wo, bo, keep, noise, lengths, start.s, final.V, tape, links),
            (B, T, m, H, Wo.shape[1], G, matrix.shape[1], N, n, size, chains, *places[1:8]),
            kinds(options, m, team, W.dtype) | of_forward(core, m, H, team, W.dtype),
        )  # fmt: skip
    ends = lengths.clamp(max=T) if ragged else None
    for result, by_step in zip((final.r, final.h, final.c), (rs, hs, cs), strict=True):
        if result.numel():
            result.copy_(by_step[:, :, T] if ends is None else at_end(by_step, ends))
    if memory != NONE:
        launch(
            finish_kernel, grid, (final.s, links, tape, lengths),
            (B, N, T, m, size, chains, places[3], places[6], places[7]),
        )  # fmt: skip


def at_end(by_step, ends):
    """(P, B, T + 1, H), ends (P, B) -> (P, B, H)."""
    return by_step.take_along_dim(ends[..., None, None], 2).squeeze(2)


def backward(options, kept, state, to_f, gout, gpre, at):
    """All steps, from the last: gout and gpre are filled, and the gradients of the final state become those
    of the first."""
    core, memory, *_ = options
    x, W, Wh, Wo, lengths, s0, _, _, keep, noise, V, _, _, tape, links = kept
    gh, gc, gr, gV, gs = state
    (P, B, T, A), (N, m), H, R, k = gout.shape, V.shape[2:], gh.shape[2], gpre.shape[3], x.shape[3]
    n, size, chains = N - T if memory != NONE else N, at[-1], links.shape[1] // B
    places = [B * part for part in at]
    if core == LINEAR and memory == NONE:  # r_0 is all that is read
        gr.copy_(torch.where((lengths > 0).unsqueeze(-1), to_f[:, :, 0], gr))
        return
    transposed = joined(core, W, Wh, k, H).mT.contiguous(), Wo.mT.contiguous()
    processors = processors_of(x)
    team = teamed(core, P, B, m, H, W.dtype, processors)
    launched(
        backward_kernel, team, P, B, processors,
        (*transposed, to_f, gout, gpre, gh, gc, gr, keep, noise, lengths, s0, V, gV, gs, tape, links),
        (B, T, m, H, A, R, to_f.shape[3], N, n, size, chains, *(places[j] for j in (1, 2, 4, 5, 6, 7))),
        kinds(options, m, team, W.dtype) | of_backward(m, R, team, W.dtype),
    )  # fmt: skip
