"""`softstack suite`: what it trains, how it scores, its report, and a memory of a plugin's in it."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from browser import needs_chromium
from softstack.lab import tasks
from softstack.lab.explain import published
from softstack.lab.explain.ablation import hardened
from softstack.lab.reports import costs, scores, suite, suite_page
from softstack.lab.runs import store
from softstack.lab.sweeps import jobs
from softstack.lab.sweeps.workers import Engine
from softstack.lab.tasks.metrics import METRICS
from softstack.lab.training import suite as plan
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import encoded, initial
from softstack.lab.training.published import CLAIMS, Claim
from softstack.lab.training.train import train

FOLDER = Path(__file__).parent / "plugins"
TINY = ("--tasks", "delayed_xor", "--controllers", "linear", "lstm", "--trials", "2", "--steps", "3")
TINY += ("--restarts", "2", "--engine", "inline")


def test_every_memory_meets_every_controller_with_one_budget():
    cells = plan.cells(
        ["reversal"], ["stack", "none"], ["linear", "lstm"], budget=plan.Budget(steps=70, restarts=3)
    )
    assert len(set(cells)) == 8
    assert {(cell.condition.steps, cell.condition.restarts) for cell in cells} == {(70, 3)}
    resets = {(cell.recipe, cell.condition.controller, cell.condition.state_reset) for cell in cells}
    assert resets == {
        ("plain", "linear", 0.0), ("plain", "lstm", 0.0), ("solve", "linear", 0.0), ("solve", "lstm", 0.5)
    }  # fmt: skip
    sizes = {(cell.condition.controller, cell.condition.memory_size) for cell in cells}
    assert sizes == {("linear", 2), ("lstm", 4)}  # the same with the recipe and without


def test_what_is_not_a_number_is_no_answer():
    """The argmax of a network that diverged is its first letter, which is not what it says."""
    condition = Condition("xor", "linear", "stack")
    network = initial(condition, 0)
    parameters = {name: torch.full_like(p, torch.nan)[None] for name, p in network.state_dict().items()}
    data = encoded(condition, scores.strings(tasks.find("xor"), 1)[:5])
    assert scores.scores(network, parameters, condition, data) == [scores.Score(0.0, 0.0, None)]


@pytest.mark.parametrize("room", [1, 10**9])
def test_scores_are_what_one_would_count(monkeypatch, room):
    """However many strings are run at once."""
    monkeypatch.setattr(scores, "ROOM", room)
    condition = Condition("parenthesis", "lstm", "stack")
    networks = [initial(condition, seed) for seed in (0, 1)]
    parameters = {
        name: torch.stack([network.state_dict()[name] for network in networks])
        for name in networks[0].state_dict()
    }
    task = tasks.find("parenthesis")
    examples = scores.strings(task, 1)[:20]
    measured = scores.scores(networks[0], parameters, condition, encoded(condition, examples))
    for network, score in zip(networks, measured, strict=True):
        right = scored = whole = 0
        nats = 0.0
        for example in examples:
            x = torch.nn.functional.one_hot(
                torch.tensor([task.alphabet.index(symbol) for symbol in example.input]), len(task.alphabet)
            )
            y = network(x.unsqueeze(0).float())[0][0].detach().double()
            hits = [
                int(y[k].argmax()) == task.alphabet.index(target)
                for k, target in enumerate(example.target)
                if target is not None
            ]
            right, scored, whole = right + sum(hits), scored + len(hits), whole + all(hits)
            for k, target in enumerate(example.target):
                if target is not None:
                    nats -= float(torch.log_softmax(y[k], 0)[task.alphabet.index(target)])
        assert_close(score.right, right / scored, atol=1e-6, rtol=0)
        assert_close(score.whole, whole / 20, atol=1e-6, rtol=0)
        assert_close(score.nats, nats / scored, rtol=1e-4, atol=0)


def test_strings_are_as_long_as_they_say_and_the_same_for_all():
    task = tasks.find("reversal")
    assert scores.strings(task, 5) == scores.strings(task, 5)
    for factor, count in scores.FACTORS.items():
        examples = scores.strings(task, factor)
        assert len(examples) == count
        assert max(len(example.input) for example in examples) == factor * task.length("train")


def test_a_step_keeps_more_for_a_memory_than_for_none():
    stack, none = (costs.of_step(Condition("reversal", "linear", memory)) for memory in ("stack", "none"))
    assert stack.kib > none.kib > 10 * 24 * 3 * 4 / 1024  # at least the strings, one-hot
    assert stack.ms > 0 and none.ms > 0


def test_trials_without_a_kernel_train_together_where_that_is_asked_for():
    kernel, plain = Condition("reversal", "lstm", "stack"), Condition("reversal", "mlp", "stack")
    left = {kernel: tuple(range(12)), plain: tuple(range(12))}
    sizes = [len(unit.seeds) for unit in jobs.blocks(left, Engine("inline")) if unit.condition == plain]
    assert sizes == [1] * 12
    units = jobs.blocks(left, Engine("inline"), together=True)
    assert [unit.seeds for unit in units if unit.condition == plain] == [tuple(range(12))]
    assert [len(u.seeds) for u in units if u.condition == kernel] == [
        len(u.seeds) for u in jobs.blocks(left, Engine("inline")) if u.condition == kernel
    ]


def test_a_memory_of_ones_own_is_compared_and_finished_trials_are_kept(softstack, registries, tmp_path):
    """Neither the suite nor its report knows it."""
    command = ("suite", "--plugin", str(FOLDER / "register.py"), "--memories", "register", "stack", *TINY)
    code, out, err = softstack(*command, "--out", str(tmp_path))
    assert (code, err) == (0, "")
    rows = json.loads((tmp_path / "suite.json").read_text())
    assert [(row["memory"], row["controller"], row["recipe"]) for row in rows] == [
        (memory, controller, recipe)
        for memory in ("register", "stack")
        for controller in ("linear", "lstm")
        for recipe in ("plain", "solve")
    ]
    for row in rows:
        assert [trial["seed"] for trial in row["trials"]] == [0, 1]
        for trial in row["trials"]:
            assert all(0 <= trial[f"{factor}x"]["right"] <= 1 for factor in (1, 2, 5, 10))
            assert trial["1x"]["nats"] < 2 * math.log(3)
        assert row["ms"] > 0 and row["kib"] > 0
    assert "register" in out and "register" in (tmp_path / "suite.md").read_text()
    meta = json.loads((tmp_path / "meta.json").read_text())
    assert (meta["trained"], meta["steps"], meta["restarts"]) == (16, 3, 2)
    code, _, err = softstack(*command, "--out", str(tmp_path))
    assert code == 0 and "nothing was trained: 16 trials were there already" in err
    assert json.loads((tmp_path / "suite.json").read_text()) == rows
    again = json.loads((tmp_path / "meta.json").read_text())  # what the trials cost is not forgotten
    assert (again["trained"], again["seconds"]) == (16, meta["seconds"])
    fewer = (*command, "--out", str(tmp_path), "--recipe", "plain")
    assert softstack(*fewer)[0] == 0  # a report of other trials, whose cost is not known
    assert json.loads((tmp_path / "meta.json").read_text())["trained"] == 0
    assert softstack(*command, "--out", str(tmp_path))[0] == 0
    more = (*command, "--out", str(tmp_path), "--tasks", "delayed_xor", "xor", "--finished")
    assert softstack(*more)[0] == 0  # what is not there is left out
    assert json.loads((tmp_path / "suite.json").read_text()) == rows
    code, _, err = softstack(*command, "--out", str(tmp_path / "other"), "--finished")
    assert code == 2 and "no cell is finished" in err


@pytest.mark.parametrize(
    ("option", "name", "nearest"),
    [("--tasks", "reversl", "reversal"), ("--memories", "stak", "stack"), ("--recipe", "solved", "solve")],
)
def test_an_unknown_name_is_refused_with_the_nearest(softstack, tmp_path, option, name, nearest):
    code, _, err = softstack("suite", option, name, "--out", str(tmp_path / "none"))
    assert code == 2 and name in err and nearest in err
    assert not (tmp_path / "none").exists()


def row(task, memory, controller, recipe, shares):
    trials = [
        {"seed": k, **{f"{f}x": {"right": s, "whole": s / 2, "nats": 1 - s} for f in (1, 2, 5, 10)}}
        for k, s in enumerate(shares)
    ]
    return {
        "task": task, "memory": memory, "controller": controller, "recipe": recipe, "steps": 3, "restarts": 2,
        "measure": suite.measure(task), "ms": 10 * shares[0], "kib": 1.0, "trials": trials,
    }  # fmt: skip


ROWS = [
    row("reversal", "stack", "lstm", "plain", [0.5, 0.6, 0.7]),
    row("reversal", "stack", "lstm", "solve", [1.0, 1.0, 0.9]),
    row("reversal", "queue", "lstm", "plain", [0.5, 0.55, 0.5]),
    row("delayed_xor", "stack", "linear", "plain", [0.1, 0.2, 0.3]),
]
META = {
    "seeds": [0, 1, 2], "steps": 3, "restarts": 2, "commit": "abc", "softstack": "0", "device": "cpu",
    "trained": 0,
}  # fmt: skip


def test_the_report_has_medians_and_counts():
    assert suite.matrix(ROWS) == [
        ["", "stack", "queue"], ["Reversal", "100.0", "50.0"], ["Delayed XOR", "20.0", ""]
    ]  # fmt: skip
    assert suite.line(ROWS[1])[4:9] == ["100.0", "100.0", "100.0", "100.0", "2 of 3"]
    assert suite.of_task(ROWS, "reversal") == [
        ["", "LSTM, plain", "LSTM, solve"],
        ["stack", "60.0 / 60.0", "100.0 / 100.0"],
        ["queue", "50.0 / 50.0", ""],
    ]
    assert suite.verdict(ROWS).endswith("Tasks solved: stack 1 of 2, queue 0 of 1.")
    assert suite.counting(ROWS) == ""
    mixed = [*ROWS, row("anbn", "stack", "lstm", "plain", [0.5])]
    assert suite.counting(mixed) == "aⁿbⁿ is scored by whole strings, the others by symbols."
    three = [*mixed, *(row(task, "stack", "lstm", "plain", [0.5]) for task in ("dyck_2", "anbmcnm"))]
    assert suite.counting(three).startswith("aⁿbⁿ, Dyck 2 and aⁿbᵐcⁿ⁺ᵐ are scored by whole strings")
    assert (suite.measure("anbn"), suite.measure("reversal")) == ("whole", "right")
    counted = row("anbn", "none", "rnn", "plain", [0.996, 0.998, 0.998])
    assert suite.line(counted)[4:9] == ["49.9"] * 4 + ["0 of 3"]  # half of the strings: not solved
    missing = {**ROWS[0], "trials": [{"seed": 0, "1x": {"right": 0.5, "whole": 0.5, "nats": None}}]}
    assert suite.line(missing)[4:9] == ["50.0", "", "", "", "0 of 1"]
    assert suite.middle(missing, 1, "nats") == math.inf
    assert "Reversal" in suite_page.page([missing], META)


def test_the_page_draws_the_trials_of_each_memorys_best_cell():
    reversal, xor = suite_page.groups(ROWS)
    assert (reversal.title, xor.title) == ("Reversal", "Delayed XOR")
    assert "solved: 99.5% on strings twice as long" in reversal.text  # the lead has another
    stack, queue = reversal.entries
    assert (stack.name, stack.detail, stack.verdicts) == ("stack", "LSTM, solve", [("", "2 of 3 solved")])
    assert (queue.name, queue.detail) == ("queue", "LSTM, plain")
    assert queue.verdicts == [("wrong", "0 of 3 solved")]
    for (lane,) in queue.columns:  # as long, twice and ten times as long
        assert [trial.value for trial in lane.trials] == pytest.approx([50.0, 55.0, 50.0])
        assert [(r.low, r.middle, r.high) for r in lane.ranges] == [pytest.approx((50.0, 50.0, 55.0))]
    page = suite_page.page(ROWS, META)
    assert page.count('class="dot"') == 1 + 3 * 3 * 3  # one explains them
    assert "<code>solved</code> counts the trials" in page


@needs_chromium
def test_the_page_sorts_and_filters(tab, tmp_path):
    file = tmp_path / "suite.html"
    file.write_text(suite_page.page(ROWS, META))
    page = tab(file)

    def column(k):
        return page.evaluate(
            f"[...document.querySelectorAll('.sortable tbody tr')].filter((r) => !r.hidden)"
            f".map((r) => r.cells[{k}].textContent)"
        )

    assert column(5) == ["60.0", "100.0", "50.0", "20.0"]
    page.click("th button:text-is('2x')")
    assert column(5) == ["100.0", "60.0", "50.0", "20.0"]
    page.click("th button:text-is('2x')")
    assert column(5) == ["20.0", "50.0", "60.0", "100.0"]
    page.uncheck("input[name=memory][value=queue]")
    assert column(1) == ["stack"] * 3
    assert page.inner_text("#count") == "3 of 4 cells"
    page.select_option("#measure", "whole")
    assert column(5) == ["10.0", "30.0", "50.0"]
    link = page.evaluate("location.href")
    page.goto("about:blank")
    page.goto(link)  # what is shown is in the address
    assert column(5) == ["10.0", "30.0", "50.0"]
    page.goto("about:blank")
    page.goto(file.as_uri())
    page.click("a.cell >> text=50.0")
    assert (column(0), column(1)) == (["Reversal"], ["queue"])
    page.click(".dots .who a:text-is('stack') >> nth=0")  # what was filtered before is forgotten
    assert (column(0), column(1)) == (["Reversal"] * 2, ["stack"] * 2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


@needs_chromium
def test_headings_stand_over_their_columns_and_numbers_are_the_terminals(tab, tmp_path):
    halves = [
        row("reversal", "stack", "lstm", "plain", [0.482, 0.483]),
        *ROWS,
    ]  # 48.25 can be rounded both ways
    (tmp_path / "suite.html").write_text(suite_page.page(halves, META))
    page = tab(tmp_path / "suite.html", width=390, height=800)
    for width in (390, 700, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        for table, first in ((".matrix", 1), (".sortable", 4)):
            places = page.evaluate(
                """(table) => {
                  const left = (node) => node.getBoundingClientRect().left;
                  const heads = [...document.querySelectorAll(`${table} thead th`)];
                  return heads.map((head) => [left(head.firstChild), left(head), head.offsetWidth]);
                }""",
                table,
            )
            for text, cell, wide in places[first:]:
                assert cell - 1 <= text <= cell + min(wide / 2, 12), (width, table)
    shown = page.locator(".sortable tbody tr").first.locator("td").all_inner_texts()
    assert shown[4:8] == suite.line(halves[0])[4:8]


def test_the_strings_and_measures_of_claims_are_their_papers():
    for claim in CLAIMS:
        for condition in claim.conditions:
            task = tasks.find(condition.task)
            assert tasks.source_of(task) == claim.paper
            assert claim.metric in tasks.metrics_of(task)
            assert condition.restarts > 1


TINY_NETWORK = Condition("anbmcnm", "rnn", "stack", train_size=30, dev_size=10, test_size=10, steps=6)


def test_a_claim_is_scored_by_its_papers_measure_and_rounded_too(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "STRINGS", 60)
    claim = Claim("a paper", "a figure", "strings", 1.0, (TINY_NETWORK,), rounded=True)
    trials = train(TINY_NETWORK, [0, 1])
    store.put(tmp_path, TINY_NETWORK, {trial.seed: store.files(trial) for trial in trials})
    lines = published.scored(tmp_path, claim, TINY_NETWORK, [0, 1], "cpu")
    assert [line["seed"] for line in lines] == [0, 1]
    task = tasks.find("anbmcnm")
    for line in lines:
        network = store.network(store.load(store.place(tmp_path, TINY_NETWORK, line["seed"]))).eval()
        right = {"score": 0, "rounded": 0}
        examples = tasks.draw(task, published.stream(line["seed"], "test"), published.STRINGS, "test")
        for example in examples:
            x = torch.nn.functional.one_hot(
                torch.tensor([task.alphabet.index(symbol) for symbol in example.input]), len(task.alphabet)
            )
            for name, edit in (("score", None), ("rounded", hardened(network.cell.memory))):
                y = network(x.unsqueeze(0).float(), edit=edit)[0][0].argmax(-1).tolist()
                pairs = zip(y, example.target, strict=True)
                right[name] += all(task.alphabet[k] == target for k, target in pairs if target is not None)
        for name, count in right.items():
            assert_close(line[name], count / len(examples), atol=1e-6, rtol=0)
    file = tmp_path / "measured" / f"published-{TINY_NETWORK.name}.json"
    file.write_text(file.read_text().replace('"seed": 1', '"seed": 7'))
    assert published.scored(tmp_path, claim, TINY_NETWORK, [0, 1], "cpu")[1]["seed"] == 7  # it is kept


def claimed(metric, value, scores, losses, rounded=False):
    return {
        "paper": "A 2015", "figure": f"{metric} {value}", "metric": metric, "value": value, "protocol": "",
        "rounded": rounded, "controller": "lstm", "memory": "stack",
        "trials": [
            {"seed": k, "dev_loss": loss, "score": score, "rounded": 1.0}
            for k, (score, loss) in enumerate(zip(scores, losses, strict=True))
        ],
    }  # fmt: skip


def test_the_trial_of_the_lowest_dev_loss_counts():
    share = claimed("strings", 1.0, [1.0, 0.5, None], [0.2, 0.1, math.nan])
    assert published.score_of_best(share) == 0.5 and not published.reaches(share, 0.5)
    assert published.lines([share])[0][2:6] == ["LSTM, stack", "50.0 %", "50.0 %", "1 of 3"]
    nats = claimed("nats", 0.05, [0.01, 0.3, None], [0.1, 0.2, 0.3])
    assert not METRICS["nats"].is_share
    assert published.lines([nats])[0][3:6] == ["0.010 nats, reached", "0.300 nats", "1 of 3"]
    rounded = claimed("strings", 1.0, [0.0], [0.1], rounded=True)
    assert published.score_of_best(rounded) == 1.0
    said = published.verdict([share, nats, rounded])
    assert "reaches 2 of 2 figures that other papers report" in said  # `share` and `rounded` are one
    assert published.verdict([share]).endswith("Not reached: A 2015, strings 1.0.")
    for report in (published.section([nats], META), published.markdown([nats], META)):
        assert "0.010 nats" in report and "at commit abc" in report
