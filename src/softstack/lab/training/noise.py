"""Resets and noise for a population, by counting: every number is a hash of its trial's key, the step of the
training and its place in the batch. So a trial's numbers do not depend on who trains beside it or where, and
there is nothing to save: a trial that goes on knows its step.

Noise is Gaussian, one of 4,096 equally likely values. `kernels/cpu/train.py` has the compiled twin.

    P trials   B strings in a batch   T steps   H hidden
"""

from collections.abc import Iterable
from functools import cache

import torch
from torch import Tensor

from softstack.disturbance import Disturbance
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import Member, stream

BITS = 12
WORD = 0xFFFFFFFF  # hashes are 32 bits wide, in int64
GOLDEN = 0x9E3779B9  # by which places differ: 2^32 over the golden ratio
RESETS = 0x5BD1E995  # what parts the hashes of resets from those of noise


@cache
def quantiles(device: torch.device) -> Tensor:
    """(2^BITS,) of a standard normal distribution, as float32."""
    shares = (torch.arange(2**BITS, dtype=torch.float64) + 0.5) / 2**BITS
    numbers: Tensor = torch.special.ndtri(shares)
    return numbers.float().to(device)


def keys(members: Iterable[Member]) -> Tensor:
    """(P,): a number of 32 bits for each network."""
    return torch.tensor([int(stream(seed, "noise", restart).integers(WORD + 1)) for seed, restart in members])


def of_layer(keys: Tensor, layer: int) -> Tensor:
    """The keys of a layer, counted from 0: the first has the network's own."""
    return mixed(keys + layer * GOLDEN & WORD) if layer else keys


def mixed(x: Tensor) -> Tensor:
    """A hash of 32 bits: every bit depends on every bit of x."""
    x = (x ^ (x >> 16)) * 0x85EBCA6B & WORD
    x = (x ^ (x >> 13)) * 0xC2B2AE35 & WORD
    return x ^ (x >> 16)


def words(keys: Tensor, step: Tensor, count: int) -> Tensor:
    """(P, count) for a step of the training, by its number."""
    base = mixed(mixed(keys) + step & WORD)  # (P,)
    places = torch.arange(count, device=keys.device) * GOLDEN
    return mixed(base.unsqueeze(1) + places & WORD)


def thresholds(members: Iterable[Member], condition: Condition) -> Tensor:
    """(P,): below which a word means a reset. Every second restart loses its state less often by the
    condition's `reset_spread`."""
    rates = [condition.state_reset - restart % 2 * condition.reset_spread for _, restart in members]
    return torch.tensor([round(rate * (WORD + 1)) for rate in rates])


def disturbance(
    keys: Tensor, step: Tensor, shape: tuple[int, int, int], below: Tensor, hidden_noise: float
) -> Disturbance:
    """keep (P, B, T) and noise (P, B, T, H) of a step, where `shape` is (B, T, H). Words under `below` (P,)
    are resets. Places count by step, then by string, so that what is padded behind changes nothing before.
    """
    B, T, H = shape
    resets = words(keys ^ RESETS, step, T * B) < below.unsqueeze(1)
    keep = (~resets).float().unflatten(1, (T, B)).transpose(1, 2)
    pairs = words(keys, step, (T * B * H + 1) // 2)
    places = torch.stack((pairs & 2**BITS - 1, pairs >> 16 & 2**BITS - 1), -1).flatten(1)[:, : T * B * H]
    normal = quantiles(keys.device)[places].unflatten(1, (T, B, H)).transpose(1, 2)
    return Disturbance(keep, normal * hidden_noise)
