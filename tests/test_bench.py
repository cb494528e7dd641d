"""The benchmark: what it times agrees, and what does not agree it refuses to time."""

from functools import partial

import pytest
import torch

from softstack.errors import BadInput
from softstack.lab.reports import speed as bench


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Numbers are made in hundredths of a second: nobody reads them."""
    monkeypatch.setattr(bench, "clock", partial(bench.clock, budget=0.01))


def test_scans_are_timed_side_by_side():
    timings = list(bench.scans({"fused": 32, "vectorised": 32, "literal": 8}, 2, 3, (8, 32)))
    assert [(t.T, t.implementation) for t in timings] == [
        (8, "fused"), (8, "vectorised"), (8, "literal"), (32, "fused"), (32, "vectorised"),
    ]  # fmt: skip
    assert all(t.seconds > 0 for t in timings)


def test_worst_cases_and_networks_are_timed():
    assert [t.case.split("strengths ")[1] for t in bench.worst(2, 2, 16)] == list(bench.STRENGTHS)
    assert [t.implementation for t in bench.networks(24)] == ["fused", "vectorised", "nn.LSTM"]


def test_what_differs_is_not_timed(monkeypatch):
    monkeypatch.setitem(bench.SCANS, "vectorised", lambda v, u, d: 2 * bench.reference(v, u, d))
    with pytest.raises(BadInput, match=r"two implementations differ by .*, so they are not timed"):
        list(bench.scans({"fused": 8, "vectorised": 8}, 2, 3, (8,)))


def test_the_literal_loop_is_the_reference():
    given = bench.instructions(2, 7, 3)
    for ours, theirs in zip(
        bench.both_ways(bench.literal, given), bench.both_ways(bench.reference, given), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_growth_is_a_slope_and_the_plot_has_its_lines():
    timings = [bench.Timing("c", T, "fused", 1e-6 * T**1.5) for T in (1024, 4096, 16384)]
    assert bench.of_time(timings, "c") == pytest.approx(1.5)
    assert len(bench.plot(timings).axes[0].lines) == 1


PEER = """
import torch

class Theirs:
    def __init__(self, elements, bottom):
        self.elements, self.bottom = elements, bottom

    def next(self, actions, value):
        push, left = actions.unbind(1)
        kept = []
        for vector, strength in reversed(self.elements):
            kept.insert(0, (vector, torch.relu(strength - torch.relu(left)))){extra}
            left = left - strength
        return Theirs([*kept, (value, push)], self.bottom)

    def reading(self):
        read, left = self.bottom, torch.ones_like(self.bottom[:, 0])
        for vector, strength in reversed(self.elements):
            read = read + torch.minimum(strength, torch.relu(left))[:, None] * vector
            left = left - strength
        return read
"""


def test_a_peers_stack_is_timed_where_it_agrees(tmp_path):
    (tmp_path / "theirs_right.py").write_text(PEER.replace("{extra}", ""))
    peer = bench.Peer.at(tmp_path, "theirs_right:Theirs")
    timings = list(bench.scans({"fused": 8, "peer": 8}, 2, 3, (8,), peer))
    assert [t.implementation for t in timings] == ["fused", "peer"]
    (tmp_path / "theirs_wrong.py").write_text(PEER.replace("{extra}", "; left = left + 1"))
    with pytest.raises(BadInput, match="so they are not timed"):
        list(bench.scans({"peer": 8}, 2, 3, (8,), bench.Peer.at(tmp_path, "theirs_wrong:Theirs")))
    with pytest.raises(BadInput, match=r"there is no 'theirs_right:Other' in .*: give the folder"):
        bench.Peer.at(tmp_path, "theirs_right:Other")
