"""Networks of several layers or directions, where figures, pages and training look at cells."""

import pytest
import torch

import softstack as ss
from other_memories import Register
from softstack.lab.reports import figures, recording
from softstack.lab.training.conditions import Condition
from softstack.lab.training.population import kernel_for

REVERSAL = Condition("reversal", "gru", "stack")
several = pytest.mark.parametrize("kind", [dict(num_layers=2), dict(bidirectional=True)], ids=str)


def network(memory="stack", **kind):
    size = None if isinstance(memory, Register) else 2
    return ss.StackRNN(
        3, output_size=3, controller="gru", hidden_size=5, memory=memory, memory_size=size, **kind
    )


@several
def test_figures_and_pages_say_what_to_do(kind):
    net = network(**kind)
    assert recording.why_not_run(net) == "several layers or directions"
    with pytest.raises(ss.BadInput, match="has 2 of them, in layers or directions: show them one by one"):
        figures.observe(net, REVERSAL, list("101"))
    with pytest.raises(ss.BadInput, match="shows one cell"):
        recording.record(net, REVERSAL, list("101"))


@several
def test_each_cell_can_be_shown(kind):
    net = network(**kind)
    _, _, traces = net(torch.eye(3), return_trace=True)
    with pytest.raises(ss.BadInput, match="this network has 2, one for each"):
        ss.show(traces)
    assert all("3 steps" in ss.show(trace).text for trace in traces)


@several
def test_a_kernel_runs_where_every_cell_has_one(kind):
    net, x = network(**kind), torch.zeros(2, 4, 3)
    assert kernel_for(net, x) == "cpu"
    net.cells[1].core.register_forward_hook(lambda *_: None)
    assert kernel_for(net, x) == "reference"
    assert kernel_for(network(Register(2), **kind), x) == "reference"


def test_the_trace_of_a_cell_that_reads_backwards_begins_with_the_last_item():
    _, _, (_, backwards) = network(bidirectional=True)(torch.eye(3), return_trace=True)
    torch.testing.assert_close(backwards.x, torch.eye(3).flip(0))
