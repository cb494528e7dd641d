"""The recipe, restarts, the report of `softstack solve`, and the study."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from softstack.errors import BadInput
from softstack.formal.running import transduced
from softstack.formal.transducer import Transducer
from softstack.kernels.cpu import train as compiled
from softstack.lab import tasks
from softstack.lab.cli.solve import solve
from softstack.lab.explain import failures, mechanism, solved, solved_page, study_figures
from softstack.lab.runs import index, store
from softstack.lab.training import native, noise, recipes, study
from softstack.lab.training.adam import Adam
from softstack.lab.training.checkpoints import Checkpoint, End
from softstack.lab.training.conditions import TABLE_1, Condition
from softstack.lab.training.draws import Member, members
from softstack.lab.training.population import Population
from softstack.lab.training.train import Ended, choice, fastest, train
from softstack_command import forks

SMALL = dict(train_size=40, dev_size=10, test_size=10)
RATES = dict(state_reset=0.4, reset_spread=0.3, hidden_noise=0.2)
DISTURBED = Condition("parenthesis", **RATES, gradient_clip=1.0, **SMALL)


@pytest.fixture(autouse=True, scope="module")
def pools(processes):
    """Processes of pools begin with everything imported."""
    with pytest.MonkeyPatch.context() as patch:
        forked = SimpleNamespace(get_context=lambda kind: processes, TimeoutError=processes.TimeoutError)
        patch.setattr(forks, "multiprocessing", forked)
        yield


def disturbed(networks, step, shape):
    rates = noise.thresholds(networks, DISTURBED), DISTURBED.hidden_noise
    return noise.disturbance(noise.keys(networks), torch.tensor(step), shape, *rates)


def test_noise_is_a_standard_normal_times_its_scale_and_resets_come_at_their_rate():
    networks = [Member(seed, restart) for seed in range(20) for restart in range(3)]
    keep, numbers = disturbed(networks, 7, (10, 25, 10))
    assert keep.shape == (60, 10, 25) and numbers.shape == (60, 10, 25, 10)
    assert abs(keep[::3].mean() - 0.6) < 0.02 and abs(keep[2::3].mean() - 0.6) < 0.02
    assert abs(keep[1::3].mean() - 0.9) < 0.02  # every second restart of three
    flat = numbers.flatten() / 0.2
    assert abs(flat.mean()) < 0.01 and abs(flat.std() - 1) < 0.01 and abs((flat**4).mean() - 3) < 0.1
    pairs = torch.stack((flat[:-1], flat[1:]))
    assert abs(torch.corrcoef(pairs)[0, 1]) < 0.01
    assert abs(torch.corrcoef(numbers.flatten(1)).triu(1)).max() < 0.1  # networks share nothing


def test_noise_depends_on_the_network_and_the_step_alone():
    """Not on who trains beside it, nor on how far strings are padded."""
    alone, beside = [Member(3, 1)], members(replace(DISTURBED, restarts=2), [2, 3])
    short, long = disturbed(alone, 5, (4, 6, 3)), disturbed(beside, 5, (4, 9, 3))
    assert torch.equal(short.keep[0], long.keep[3][:, :6]) and torch.equal(
        short.noise[0], long.noise[3][:, :6]
    )
    other = disturbed(alone, 6, (4, 6, 3))
    assert not torch.equal(short.noise, other.noise)


@pytest.mark.parametrize("step", [1, 2, 30_000])
def test_compiled_noise_is_the_same_to_the_bit(step):
    networks = members(replace(DISTURBED, restarts=3), [0, 1])
    expected = disturbed(networks, step, (5, 7, 3))
    keep, numbers = np.zeros((6, 5, 7), np.float32), np.zeros((6, 5, 7, 3), np.float32)
    table = noise.quantiles(torch.device("cpu")).numpy()
    keys, below = noise.keys(networks).numpy(), noise.thresholds(networks, DISTURBED).numpy()
    compiled.disturb(keys, step, below, 0.2, table, keep, numbers)
    assert torch.equal(torch.from_numpy(keep), expected.keep)
    assert_close(torch.from_numpy(numbers), expected.noise, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        dict(controller="gru"),
        dict(controller="rnn"),
        dict(controller="linear"),
        dict(task="xor", buffered=True, steps_per_symbol=2),
        dict(hidden_noise=0.0),
        dict(state_reset=0.0, reset_spread=0.0),
        dict(steps=9, final_rate=0.05, weight_width=1.5, push_bias=2.0),
        dict(restarts=3),
    ],
)
def test_the_compiled_step_is_the_step(changed):
    condition = replace(DISTURBED, **changed)
    ours, theirs = Population(condition, [0, 1]), Population(condition, [0, 1])
    assert native.why_not(ours) == ""
    step = None
    for strings in ours.batches()[:3]:
        step = step or fastest(ours, strings)
        assert_close(step(strings), theirs.step(strings), rtol=1e-5, atol=1e-6)
        assert_close(ours.optimiser.vectors, theirs.optimiser.vectors, rtol=1e-4, atol=1e-5)
    assert isinstance(step, native.Native)


def test_the_gradient_of_each_network_is_cut_as_pytorch_cuts_it():
    torch.manual_seed(0)
    start, gradient = torch.randn(3, 7), torch.tensor([[0.01], [1.0], [30.0]]) * torch.randn(3, 7)
    ours = Adam(start.clone(), Condition("reversal", learning_rate=0.1, weight_decay=0.0, gradient_clip=1.0))
    ours.count()
    ours.step(gradient)
    for place in range(3):
        theirs = start[place].clone().requires_grad_()
        theirs.grad = gradient[place].clone()
        torch.nn.utils.clip_grad_norm_([theirs], 1.0)
        torch.optim.Adam([theirs], lr=0.1).step()
        assert_close(ours.vectors[place], theirs.detach(), rtol=1e-5, atol=1e-6)


def test_the_rate_is_a_cosine():
    condition = replace(DISTURBED, steps=100, final_rate=0.1)
    parameter = torch.zeros(1, requires_grad=True)
    optimiser = torch.optim.SGD([parameter], lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 100, eta_min=0.001)
    for step in range(1, 101):
        assert abs(condition.rate(step) - schedule.get_last_lr()[0]) < 1e-9
        optimiser.step()
        schedule.step()


def test_the_budget_is_in_steps_to_the_last():
    condition = replace(DISTURBED, steps=10)  # an epoch has 4
    population_epochs = train(condition, [0])[0].epochs
    assert len(population_epochs) == condition.most_epochs == 3
    population = Population(condition, [0])
    population.optimiser.steps = 8
    assert len(population.batches()) == 2


@pytest.fixture(scope="module")
def restarted():
    return train(replace(DISTURBED, steps=16, restarts=4, halvings=2), [0, 1])


def test_a_trial_is_the_restart_of_the_lowest_dev_loss(restarted):
    for trial in restarted:
        assert [restart.epochs for restart in trial.restarts].count(4) == 1  # one is left after two halvings
        assert sorted(restart.epochs for restart in trial.restarts) == [2, 2, 3, 4]
        best = trial.restarts[trial.restart]
        assert (best.epochs, best.dev_loss, best.dev) == (4, trial.dev_loss, trial.dev)
        at_first = [r.dev_loss for r in trial.restarts if r.epochs == 2]
        assert len(at_first) == 2


def test_halvings_that_fall_on_one_epoch_are_all_made():
    condition = replace(DISTURBED, steps=16, restarts=4, halvings=2, halving_share=0.1)
    assert sorted(restart.epochs for restart in train(condition, [0])[0].restarts) == [1, 1, 1, 4]


def test_restarts_do_not_depend_on_other_trials(restarted):
    alone = train(restarted[1].condition, [1])[0]
    assert alone.restarts == restarted[1].restarts
    assert all(torch.equal(w, restarted[1].weights[name]) for name, w in alone.weights.items())


def test_the_first_restart_is_the_trial_without_restarts():
    condition = replace(DISTURBED, steps=8)
    single = train(condition, [5])[0]
    first = train(replace(condition, restarts=2), [5])[0].restarts[0]
    assert first.dev_loss == pytest.approx(single.dev_loss, rel=1e-6)


def test_restarts_are_written_down(restarted, tmp_path):
    run = store.load(store.save(tmp_path, restarted[0]))
    assert run.result["restart"] == restarted[0].restart
    assert [r["dev_loss"] for r in run.result["restarts"]] == [r.dev_loss for r in restarted[0].restarts]


def test_a_trial_with_restarts_is_listed(restarted, tmp_path):
    store.save(tmp_path, restarted[0])
    row = index.row(tmp_path, f"{restarted[0].condition.name}/seed-0")
    assert (row["restarts"], row["halvings"], row["dev_loss"]) == (4, 2, restarted[0].dev_loss)


def test_what_diverged_or_was_dropped_is_never_chosen():
    ended = [
        Ended({}, Checkpoint(*3 * [torch.zeros(1)], 0, (), [], End(loss, dropped)), 0.0)
        for loss, dropped in ((float("nan"), False), (0.5, False), (0.1, True), (0.7, False))
    ]
    assert choice(ended) == 1


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (dict(state_reset=2.0), "state_reset must lie in"),
        (dict(state_reset=0.2, reset_spread=0.3), "must not be more than state_reset; got 0.3 and 0.2"),
        (dict(steps=9, restarts=4, halvings=1, halving_share=1.0), "less than 1; got 1.0"),
        (dict(hidden_noise=-1.0), "hidden_noise must not be negative"),
        (dict(final_rate=0.5), "give `steps`"),
        (dict(steps=100, restarts=2, halvings=2), "at least 4 restarts"),
        (dict(restarts=4, halvings=1), "needs `steps`"),
    ],
)
def test_options_that_make_no_sense(wrong, sentence):
    with pytest.raises(BadInput, match=sentence):
        Condition("xor", **wrong)


def test_rows():
    rows = recipes.rows()
    names = [row.condition.name for row in rows]
    assert len(set(names)) == len(names)
    by_paper = [row for row in rows if row.recipe == "paper" and row.condition.restarts == 1 and row.paper]
    assert all(row.condition == TABLE_1[row.paper - 1] for row in by_paper)
    assert {row.condition.task for row in rows if row.condition.memory == "none"} == set(recipes.ALL)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Rows of one network, trained for a moment."""
    out = tmp_path_factory.mktemp("solved")
    rows = []
    for row in recipes.rows():
        c = row.condition
        if (c.task, c.controller) == ("delayed_xor", "lstm"):
            changed = dict(steps=300, restarts=2, halvings=0) if row.recipe == "solve" else dict(max_epochs=1)
            if c.steps == 0 and c.restarts > 1:
                changed["restarts"] = 2
            rows.append(row._replace(condition=replace(c, **{**SMALL, **changed})))
    for row in rows:
        for trial in train(row.condition, [0, 1]):
            store.save(out, trial)
    return out, rows, solved.rows(out, rows, [0, 1], processes=1)


def test_the_report_has_what_is_asked_of_each_row(report):
    _, _, lines = report
    assert [(line["recipe"], line["memory"], line["restarts"]) for line in lines] == [
        ("paper", "stack", 1),
        ("paper", "stack", 2),
        ("solve", "stack", 2),
        ("solve", "none", 2),
    ]
    for line in lines:
        assert [trial["seed"] for trial in line["trials"]] == [0, 1]
        for trial in line["trials"]:
            assert 0 <= trial["test_10x"] <= 1 and 0 <= trial["test_50x"] <= 1
    for trial in lines[2]["trials"]:
        assert trial["use"] in ("stack", "counter", "register", "ignored")
        assert trial["machine"] in ("equal", "different", "undecided", "none")
        assert len(trial["restarts"]) == 2


def test_the_report_is_written(report):
    out, rows, lines = report
    meta = {**store.provenance("cpu"), "trained": 0, "seeds": [0, 1]}
    solved.write(out, lines, meta)
    solved_page.write(out, rows, lines, meta)
    assert json.loads((out / "solved.json").read_text()) == json.loads(json.dumps(lines))
    table = (out / "solved.md").read_text()
    assert "| delayed xor | LSTM |" in table and "2 trials" in table
    page = (out / "solved.html").read_text()
    assert 'href="delayed-xor-lstm.html"' in page
    assert "How to make a controller use its stack" in (out / "delayed-xor-lstm.html").read_text()


def test_the_command(report, monkeypatch, capsys, tmp_path):
    _, rows, _ = report
    monkeypatch.setattr(recipes, "rows", lambda: rows)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    solve(["delayed_xor"], controllers=["lstm"], trials=1, out=tmp_path, engine="inline")
    assert "Report:" in capsys.readouterr().out
    assert len(json.loads((tmp_path / "solved.json").read_text())) == 4
    assert json.loads((tmp_path / "meta.json").read_text())["trained"] == 4
    solve(["delayed_xor"], controllers=["lstm"], trials=1, out=tmp_path, engine="inline")
    assert "nothing was trained: 4 trials were there already" in capsys.readouterr().err
    for wrong, sentence in ((["sorting"], "task of the paper"), (["xor"], "xor")):
        with pytest.raises(BadInput, match=sentence):
            solve(wrong, out=tmp_path)


def test_what_was_measured_is_kept_and_made_again_for_another_trial(report, monkeypatch):
    out, rows, lines = report
    monkeypatch.setattr(solved, "_measure", None)
    assert solved.rows(out, rows, [0, 1], processes=1) == lines  # nothing is measured again
    path = store.place(out, rows[0].condition, 0)
    assert (
        solved._measured(out / "measured" / f"{path.parent.name}-seed-0.json", path.parent / "seed-1") is None
    )


@pytest.mark.parametrize("name", ["parenthesis", "formula", "agreement", "reversal"])
def test_longer_strings_are_about_as_long_as_asked_for_and_in_the_language(name):
    task = tasks.find(name)
    rng = np.random.default_rng(0)
    trained = np.mean([len(task.example(word).input) for word in task.sample(rng, 300, "train")])
    strings = tasks.longer(task, rng, 50, 10)
    assert 6 * trained < np.mean([len(example.input) for example in strings]) < 14 * trained
    for example in strings[:10]:
        assert len(transduced(tasks.machine_of(task), example.input)) == len(example.input)


def test_machines_are_compared_where_something_is_scored():
    task = tasks.find("parenthesis")
    exact = tasks.machine_of(task)
    assert solved.difference(exact, exact, task)[0] is None
    assert solved.difference(exact, exact, task)[1] >= 6
    other = tasks.machine_of(tasks.find("agreement"))
    assert solved.difference(exact, other, task)[0] == ("(",)
    talks = Transducer.parse(str(exact).replace(": _ ,", ": ( ,"))
    assert talks != exact
    assert solved.difference(exact, talks, task)[0] is None  # what it says where nothing is scored is its own


def test_machines_are_compared_on_strings_of_the_task_alone():
    """Brackets of which one encloses two: the exact machine reads them, but the task has no such string."""
    task = tasks.find("parenthesis")
    exact = tasks.machine_of(task)
    assert len(transduced(exact, tuple("(()("))) == 4
    assert tuple("(()(") not in solved._beginnings(task.grammar)
    assert tuple("()((") in solved._beginnings(task.grammar)
    assert tuple("[([])]") in solved._beginnings(task.grammar)


def of_one_network(*trials):
    network = dict(task="delayed_xor", controller="lstm", memory="stack", buffered=False, recipe="solve")
    return {**network, "condition": "it", "trials": list(trials)}


def test_failures_are_listed_with_what_there_was_to_see():
    def trial(seed, test, dev_loss):
        return dict(seed=seed, test=test, dev_loss=dev_loss)

    row = of_one_network(trial(0, 1.0, 1e-6), trial(1, 0.9, 2e-6), trial(2, 0.8, 5e-7))
    text = failures.failures([row], {"it": {"ours": row["trials"], "theirs": [trial(7, 1.0, 1e-6)]}})
    assert "| delayed xor | LSTM | ours | 1 | 90.00 | 2.00e-06 | 1.00e-06 |" in text
    assert "2 of 4 trials fail. The dev loss of 1 of them is higher" in text


def test_machines_that_are_not_the_task_s_are_counted():
    def trial(seed, machine, far, **more):
        return dict(seed=seed, test=1.0, test_50x=far, machine=machine, **more)

    unsolved = {**trial(4, "none", 0.1), "test": 0.5}
    row = of_one_network(
        trial(0, "equal", 1.0, length=9),
        trial(1, "none", 0.7),
        trial(2, "different", 0.8, word="1 0"),
        unsolved,
    )
    text = failures.machines([row])
    assert "| delayed xor | LSTM | 1, 2 | 1 | 75.0 | 100.0 |" in text
    assert "up to 9 to 9 symbols, by task. Machines that differ: delayed xor, LSTM, seed 2 on `1 0`." in text


def test_the_study_changes_one_number_at_a_time():
    cells = study.cells(["parenthesis"])
    base = replace(recipes.single(Condition("parenthesis")), hidden_noise=study.NOISE)
    for cell in cells:
        differs = {name for name, value in vars(cell.condition).items() if value != getattr(base, name)}
        assert differs <= ({"state_reset", "hidden_noise"} if cell.axis == "neither" else {cell.axis})
        assert len(cell.seeds) >= 32
    assert sum(cell.condition == base for cell in cells) == len(study.AXES)


def test_the_study_is_kept_and_gone_on_with(tmp_path, monkeypatch):
    cells = [
        cell._replace(condition=replace(cell.condition, **{**SMALL, "steps": 4}), seeds=(0, 1))
        for cell in study.cells(["parenthesis"])
        if cell.axis in ("state_reset", "hidden_noise")
    ][3:7]  # with the recipe itself, which is on both axes
    file = tmp_path / "study.jsonl"
    assert len(list(study.run(file, cells, processes=1))) == 4
    assert list(study.run(file, cells, processes=1)) == []
    lines = study.read(file)
    assert [len(line["trials"]) for line in lines] == [2] * 4
    assert study_figures.success(lines).startswith(b"\x89PNG")


def test_a_network_that_keeps_all_in_one_place_needs_that_alone():
    condition = Condition("reversal", "lstm", "stack", memory_size=2)
    network = Population(condition, [0]).network
    with torch.no_grad():
        network.cell.core.from_input.weight[:, -2:] = 0  # what is read does not reach the controller
    assert mechanism.share(network.eval(), condition, "memory") == 0
    linear = Population(replace(condition, controller="linear"), [0]).network
    assert mechanism.share(linear.eval(), replace(condition, controller="linear"), "state") == 0


def test_needs_are_followed_along_the_training(monkeypatch):
    small = {name: replace(c, **SMALL) for name, c in mechanism.trainings("parenthesis").items()}
    monkeypatch.setattr(mechanism, "trainings", lambda task: small)
    moments = list(mechanism.along("parenthesis", seeds=[0], moments=[0, 4]))
    assert [(line["training"], line["steps"]) for line in moments] == [
        (name, steps) for name in small for steps in (0, 4)
    ]
    assert study_figures.needs(moments).startswith(b"\x89PNG")
