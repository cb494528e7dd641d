"""What training does to a controller's state, so that the controller comes to keep things in its memory.

A recurrent controller likes its own state better than its memory. Where that state is lost now and then, only
what lies in the memory survives: so that is where a controller learns to put what it needs. docs/solved.md
measures it. All of it is drawn here, outside the loop over time, so that the reference and the kernels see
the same numbers.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from softstack.checks import described
from softstack.controllers import Hidden
from softstack.errors import BadInput
from softstack.memory import Batch
from softstack.words import counted

NO_STATE = "state_reset and hidden_noise do nothing for a controller without a state"


class Disturbance(NamedTuple):
    """Before step t all of the controller's state is multiplied by keep_t; after it noise_t is added to h,
    the first part of the state, which the heads see then too if it is what the controller puts out."""

    keep: Tensor  # (B, T) 1, or 0 where the state is reset
    noise: Tensor  # (B, T, hidden)

    def at(self, t: int) -> "Disturbance":
        """The disturbance of one step: keep (B,) and noise (B, hidden)."""
        return Disturbance(self.keep[..., t], self.noise.select(self.keep.ndim - 1, t))

    def kept(self, h: Hidden) -> Hidden:
        """What is left of a state before one step; its parts may have any shape behind the batch."""
        shapes = [(*self.keep.shape, *[1] * (part.ndim - self.keep.ndim)) for part in h]
        keeps = [self.keep.to(part.dtype).view(shape) for part, shape in zip(h, shapes, strict=True)]
        return tuple(part * keep for part, keep in zip(h, keeps, strict=True))


Disturbances = Disturbance | Sequence[Disturbance]


def draw(
    h: Hidden,
    steps: int,
    state_reset: float,
    hidden_noise: float,
    generator: torch.Generator | None = None,
    batch: Batch | None = None,
) -> Disturbance | None:
    """For a state like h and as many steps: a reset with a probability of `state_reset`, and Gaussian noise
    with a standard deviation of `hidden_noise`, for each sequence and step by itself. `batch` is (B,), or ()
    for one sequence; without it h[0] is (B, hidden). None where there is nothing to disturb."""
    if not h or not (state_reset or hidden_noise):
        return None
    batch = h[0].shape[:-1] if batch is None else batch
    hidden = h[0].shape[len(batch) :]
    kind: dict[str, Any] = dict(device=h[0].device, dtype=h[0].dtype)
    # torch.compile has no rule for symbolic shapes and a generator, not even for one that is None
    source: dict[str, Any] = {} if generator is None else {"generator": generator}
    keep = torch.rand(*batch, steps, device=h[0].device, **source) >= state_reset
    if hidden_noise:
        noise = hidden_noise * torch.randn(*batch, steps, *hidden, **kind, **source)
    else:
        noise = torch.zeros(*batch, steps, *hidden, **kind)
    return Disturbance(keep.to(h[0].dtype), noise)


def check_rates(state_reset: float, hidden_noise: float) -> None:
    for name, rate in (("state_reset", state_reset), ("hidden_noise", hidden_noise)):
        if not isinstance(rate, int | float):
            raise BadInput(f"{name} must be a number; got {rate!r}")
    if not 0 <= state_reset <= 1:
        raise BadInput(f"state_reset is a probability, in [0, 1]; got {state_reset}")
    if not 0 <= hidden_noise < float("inf"):
        raise BadInput(f"hidden_noise must be a finite number of at least 0; got {hidden_noise}")


def warn_without_state(state_reset: float, hidden_noise: float, h: Hidden) -> None:
    """Warn that nothing disturbs a controller whose state h is ()."""
    if not h and (state_reset or hidden_noise):
        warnings.warn(
            f"{NO_STATE}; got state_reset={state_reset} and hidden_noise={hidden_noise}",
            UserWarning,
            stacklevel=3,
        )


class Disturbed(nn.Module):
    """A network with rates at which its controllers are disturbed in training. They may be changed later.

    Whether there are any is kept beside them: torch.compile takes a number for a symbol, and compiles twice
    where one decides what is done.
    """

    def __init__(self, state_reset: float, hidden_noise: float) -> None:
        super().__init__()
        self._state_reset, self._hidden_noise = 0.0, 0.0
        self.state_reset, self.hidden_noise = state_reset, hidden_noise

    @property
    def state_reset(self) -> float:
        return self._state_reset

    @state_reset.setter
    def state_reset(self, rate: float) -> None:
        check_rates(rate, self._hidden_noise)
        self._state_reset, self.disturbed = rate, bool(rate or self._hidden_noise)

    @property
    def hidden_noise(self) -> float:
        return self._hidden_noise

    @hidden_noise.setter
    def hidden_noise(self, deviation: float) -> None:
        check_rates(self._state_reset, deviation)
        self._hidden_noise, self.disturbed = deviation, bool(self._state_reset or deviation)


def of_call(
    network: Disturbed, disturbance: Disturbances | None, batch: Batch, states: Sequence[Hidden], steps: int
) -> Sequence[Disturbance | None]:
    """The disturbance of each cell: the caller's or, in training, what is drawn. `states` are the cells'."""
    if disturbance is not None:
        return checked(disturbance, batch, states, steps)
    if not network.training or not network.disturbed:
        return [None] * len(states)
    rates = network.state_reset, network.hidden_noise
    return [draw(h, steps, *rates, batch=batch) for h in states]


def checked(
    disturbance: Disturbances, batch: Batch, states: Sequence[Hidden], steps: int
) -> list[Disturbance]:
    """The disturbances that a caller gave."""
    several = isinstance(disturbance, list | tuple) and not isinstance(disturbance, Disturbance)
    disturbances = cast(list[Disturbance], list(disturbance) if several else [disturbance])
    for item in disturbances:
        if not isinstance(item, Disturbance) or not all(isinstance(part, Tensor) for part in item):
            raise BadInput(f"disturbance must be an ss.Disturbance of two tensors; got {described(item)}")
    if len(disturbances) != len(states):
        cells = counted(len(states), "cell")
        raise BadInput(f"for {cells} give as many disturbances; got {len(disturbances)}")
    for (keep, noise), h in zip(disturbances, states, strict=True):
        if not h:
            raise BadInput("this controller has no state to disturb: leave `disturbance` out")
        times = (*batch, steps)
        shapes = tuple(keep.shape), tuple(noise.shape)
        expected = times, (*times, *h[0].shape[len(batch) :])
        if shapes != expected:
            raise BadInput(f"keep and noise of a disturbance must be {expected}; got {shapes}")
    return disturbances
