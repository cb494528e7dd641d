"""Networks of several layers or directions: their training, figures, pages and diagnoses."""

import json
from dataclasses import replace

import pytest
import torch

import softstack as ss
from browser import needs_chromium, page_data
from other_memories import Register
from softstack.cell import Edit
from softstack.lab.explain import ablation, diagnosis, layers
from softstack.lab.explain.extract import extract
from softstack.lab.reports import figures, network_page, recording, trace_page
from softstack.lab.runs import store
from softstack.lab.sweeps import jobs
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import initial
from softstack.lab.training.population import Population, kernel_for
from softstack.lab.training.train import train

TWO = Condition("reversal", "gru", "stack", num_layers=2, hidden_size=6, memory_size=3, test_size=20)
several = pytest.mark.parametrize("kind", [dict(num_layers=2), dict(bidirectional=True)], ids=str)


def network(memory="stack", **kind):
    size = None if isinstance(memory, Register) else 2
    return ss.StackRNN(
        3, output_size=3, controller="gru", hidden_size=5, memory=memory, memory_size=size, **kind
    )


def strong(condition=TWO):
    """A network with large weights, so that its layers differ in what they do."""
    net, generator = initial(condition, 0), torch.Generator().manual_seed(1)
    for p in net.parameters():
        p.data.normal_(0, 1.2, generator=generator)
    return net


def test_a_condition_with_one_layer_is_known_as_before():
    assert Condition("reversal", num_layers=1).name == Condition("reversal").name
    assert TWO.names == (TWO.name,)  # softstack 0.1 could not have made it
    assert [type(cell.memory) for cell in initial(TWO, 0).cells] == [ss.Stack, ss.Stack]
    with pytest.raises(ss.BadInput, match="a buffered network has one layer; got num_layers = 2"):
        Condition("xor", buffered=True, num_layers=2)


@pytest.mark.parametrize("more", [{}, dict(state_reset=0.3, hidden_noise=0.2)], ids=["plain", "disturbed"])
def test_training_is_the_same_whoever_trains_beside(more):
    """All cells have kernels, so that a sweep hands out trials in blocks."""
    small = Condition(
        "reversal", "lstm", num_layers=2, hidden_size=4, train_size=30, dev_size=20, test_size=20,
        max_epochs=2, **more,
    )  # fmt: skip
    assert jobs.exact(small)
    together, (alone,) = train(small, [3, 4, 5]), train(small, [4])
    assert together[1].epochs == alone.epochs
    assert all(torch.equal(together[1].weights[name], w) for name, w in alone.weights.items())


def test_every_layer_is_disturbed_by_itself():
    single = Condition("reversal", state_reset=0.5, hidden_noise=0.1, train_size=10)
    (one,) = Population(single, [0, 1]).disturbance(4, 5)
    first, second = Population(replace(single, num_layers=2), [0, 1]).disturbance(4, 5)
    assert torch.equal(first.keep, one.keep) and torch.equal(first.noise, one.noise)
    assert not torch.equal(first.keep, second.keep) and not torch.equal(first.noise, second.noise)


def test_every_command(softstack, tmp_path):
    code, out, _ = softstack(
        "train", "reversal", "--controller", "gru", "--num-layers", "2", "--hidden-size", "4", "--train-size",
        "40", "--dev-size", "20", "--test-size", "20", "--max-epochs", "2",
    )  # fmt: skip
    assert code == 0
    run = out.split()[0]
    trained = store.load(tmp_path / run)
    assert trained.condition.num_layers == 2 and len(store.network(trained).cells) == 2
    code, out, _ = softstack("evaluate", run, "--json")
    assert code == 0 and json.loads(out)["accuracy"] == pytest.approx(trained.result["test"])
    for kind in ("png", "html", "json"):
        assert softstack("trace", run, "1 0 1", "--out", f"trace.{kind}")[0] == 0
    traces = json.loads((tmp_path / "trace.json").read_text())["layers"]
    assert [len(trace["u"]) for trace in traces] == [6, 6] and len(traces[1]["x"][0]) == 4
    assert softstack("view", run, "--no-open")[0] == 0
    networks = page_data((tmp_path / "view.html").read_text())["networks"]
    assert [network["title"] for network in networks] == [
        "Layer 1 of 2: GRU controller, stack of 2",
        "Layer 2 of 2: GRU controller, stack of 2",
    ]
    for layer in ("1", "2"):
        code, out, err = softstack("diagnose", run, "--layer", layer, "--strings", "10")
        assert code == 0 and "Verdict: it " in out
        assert f"layer {layer} of 2 is diagnosed" in err
        assert f"layer {layer} of 2" in (tmp_path / run / "diagnosis.html").read_text()
    code, _, err = softstack("diagnose", run, "--layer", "3")
    assert code and "the network has 2 layers; got --layer 3" in err
    code, out, _ = softstack("extract", run)
    assert code == 1 and "No PDT can be read off 2 layers" in out
    assert softstack("export", run, "--format", "json", "--out", "run.json")[0] == 0
    assert "more_cells.0.heads.weight" in json.loads((tmp_path / "run.json").read_text())["weights"]


def test_a_sweep_over_layers(softstack, tmp_path):
    (tmp_path / "layers.toml").write_text(
        'seeds = 2\n[condition]\ntask = "reversal"\ncontroller = "linear"\ntrain_size = 20\ndev_size = 10\n'
        "test_size = 10\nmax_epochs = 1\n[product]\nnum_layers = [1, 2]\n"
    )
    assert softstack("sweep", "layers.toml", "--out", "runs", "--engine", "inline")[0] == 0
    code, out, _ = softstack("runs", "runs", "--where", "num_layers = 2", "--format", "csv")
    assert code == 0 and len(out.strip().splitlines()) == 3  # a header and two trials


def test_a_figure_has_the_heads_of_every_layer():
    net = strong()
    seen = figures.observe(net, TWO, list("101"))
    _, _, traces = net(torch.eye(3)[[1, 0, 1, 2, 2, 2]], return_trace=True)
    blocks = figures.blocks(seen, "01#", buffered=False)
    assert [block.title.split("\n")[:2] for block in blocks[:6]] == [
        [title, f"layer {layer}"] for layer in (1, 2) for title in ("pop", "push", "pushed vector")
    ]
    for layer, trace in enumerate(traces):
        torch.testing.assert_close(blocks[3 * layer].values[:, 0], trace.u)
    assert [block.title for block in blocks[6:]] == ["input", "output"]
    page = trace_page.page(net, TWO, seen, "two")
    assert "<th scope=col>push\nlayer 2</th>" in page and f"<td>{traces[1].d[0]:.3f}</td>" in page


def test_a_page_has_what_each_layer_did(untrained):
    run = untrained(TWO)
    first, second = page_data(network_page.page([run], symbols=list("1001")))["networks"]
    assert "cannot run several layers" in first["note"]
    seen = figures.observe(store.network(run), TWO, list("1001"))
    for entry, trace in zip((first, second), seen.traces, strict=True):
        played = entry["runs"][0]
        torch.testing.assert_close(torch.tensor(played["said"]["u"]), trace.u, rtol=0, atol=1e-5)
        answers = torch.tensor(played["y"]).argmax(-1).tolist()
        assert ["01#"[k] for k in answers] == list(seen.predicted)  # the network's, beside every layer


@needs_chromium
def test_layers_stand_side_by_side(opened, untrained):
    page = opened([untrained(TWO)], symbols=list("1001"))
    titles = page.locator("#panels h2").all_inner_texts()
    assert titles == [f"Layer {layer} of 2: GRU controller, stack of 3" for layer in (1, 2)]
    page.keyboard.press("ArrowRight")
    seen = figures.observe(store.network(untrained(TWO)), TWO, list("1001"))
    for panel, trace in enumerate(seen.traces):
        said = page.locator(".words").nth(panel).inner_text()
        assert f"Pops {trace.u[1]:.2f}, pushes {trace.d[1]:.2f}." in said


def test_the_bias_of_a_head_that_one_layer_has():
    net = ss.StackRNN(3, hidden_size=4, memory_size=2, output_size=2, num_layers=2)
    net.reset_parameters(biases={"y": 0.5, "d": 2.0})
    assert net.cells[1].heads.bias_of("y").tolist() == [0.5, 0.5]
    assert [cell.heads.bias_of("d").item() for cell in net.cells] == [2.0, 2.0]
    before = [p.clone() for p in net.parameters()]
    for refusing in (net, net.cells[0]):
        with pytest.raises(ss.BadInput, match="unknown head 'z'"):
            refusing.reset_parameters(biases={"z": 0.5})
    assert all(map(torch.equal, before, net.parameters()))  # nothing was drawn


def test_an_edit_may_be_of_one_cell():
    net, x = network(num_layers=2), torch.randn(2, 5, 3)
    quiet = Edit(actions=lambda actions: actions._replace(y=torch.zeros_like(actions.y)))
    y, _, (below, above) = net(x, return_trace=True, edit=[quiet, None])
    assert not below.y.any() and above.y[:, 1:].all()
    torch.testing.assert_close(y, net(x, edit=quiet)[0] + above.y)  # an edit by itself is of all
    with pytest.raises(ss.BadInput, match="for 2 cells give as many edits, or one; got 1"):
        net(x, edit=[quiet])


def test_a_layer_is_diagnosed_by_itself():
    """Its edits, its trace and its verdict are those of the layer that was asked for."""
    net = strong()
    lower, upper = (layers.at(net, layer) for layer in (1, 2))
    x = torch.eye(3)[torch.randint(3, (4, 7))]
    for view, cell in ((lower, net.cells[0]), (upper, net.cells[1])):
        assert view.cell is cell
        torch.testing.assert_close(view(x)[0], net(x)[0])
    _, _, traces = net(x, return_trace=True)
    torch.testing.assert_close(ablation.run(upper, x, Edit()).trace.u, traces[1].u)
    silent = Edit(state=ablation.without_reads)
    torch.testing.assert_close(ablation.run(upper, x, silent).y, net(x, edit=[None, silent])[0])
    assert not torch.allclose(ablation.run(upper, x, silent).y, ablation.run(lower, x, silent).y)
    assert layers.at(network(), 1).cells  # a network of one layer is as it is
    result = diagnosis.diagnose(upper, TWO, 0, strings=10)
    assert result.accuracy == diagnosis.diagnose(lower, TWO, 0, strings=10).accuracy
    assert result.use != diagnosis.diagnose(lower, TWO, 0, strings=10).use
    assert not extract(net, TWO, 0).explained


@several
def test_all_cells_are_shown(kind):
    net = network(**kind)
    _, _, traces = net(torch.eye(3), return_trace=True)
    data = page_data(ss.show(traces, list("abc"), inputs=list("xyz")).text)
    backwards = "bidirectional" in kind
    assert [shown["title"] for shown in data["networks"]] == [
        "Cell 1 of 2: 3 steps",
        "Cell 2 of 2, backwards: 3 steps" if backwards else "Cell 2 of 2: 3 steps",
    ]
    runs = [shown["runs"][0] for shown in data["networks"]]
    assert [run["fed"] for run in runs] == [list("abc"), list("123") if backwards else list("abc")]
    for run, trace in zip(runs, traces, strict=True):
        torch.testing.assert_close(torch.tensor(run["said"]["u"]), trace.u, rtol=0, atol=1e-5)
    assert data["tasks"]["0"]["letters"] == list("xyz")
    assert len(data["tasks"]["1"]["letters"]) == traces[1].x.shape[-1]
    assert all("3 steps" in ss.show(trace).text for trace in traces)
    with pytest.raises(ss.BadInput, match=r"show takes a Trace, .* got tuple"):
        ss.show(())


@several
def test_a_kernel_runs_where_every_cell_has_one(kind):
    net, x = network(**kind), torch.zeros(2, 4, 3)
    assert kernel_for(net, x) == "cpu"
    net.cells[1].core.register_forward_hook(lambda *_: None)
    assert kernel_for(net, x) == "reference"
    assert kernel_for(network(Register(2), **kind), x) == "reference"
    assert recording.why_not_run(net) == "several layers"


def test_the_trace_of_a_cell_that_reads_backwards_begins_with_the_last_item():
    _, _, (forwards, backwards) = network(bidirectional=True)(torch.eye(3), return_trace=True)
    torch.testing.assert_close(backwards.x, torch.eye(3).flip(0))
    assert backwards.backwards and not forwards.backwards
