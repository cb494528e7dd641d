"""Whether a network uses its stack: edits by hand, verdicts on networks whose answer is known."""

import html
import json

import numpy as np
import pytest
import torch
from torch.nn.functional import one_hot

from known_networks import KNOWN
from other_memories import Register
from softstack.cell import Actions, State
from softstack.formal.running import looks, transduced
from softstack.formal.transducer import Transducer
from softstack.lab import tasks
from softstack.lab.explain import ablation, diagnosis_page, grafts, swaps
from softstack.lab.explain.compiled import compile_task
from softstack.lab.explain.diagnosis import diagnose, predict_fall, sentence, verdict_on
from softstack.lab.explain.grafts import KINDS, Graft, grafted, piles_of
from softstack.lab.explain.swaps import EVERYTHING, Effect, kind_of, use
from softstack.lab.training.conditions import Condition, build
from softstack.lab.training.draws import initial
from softstack.memory import Instructions, MemoryState, NoMemory, Queue, Stack
from softstack_command import main

STACK, REGISTERS, IGNORED = (verdict_on(kind, Stack(2)) for kind in ("stack", "register", "ignored"))
MACHINES = {name: tasks.machine_of(task) for name, task in tasks.TASKS.items()}
REGISTER = Transducer.parse("""
    start q
    q -> q   0 : 0 , $ -> $ 0
    q -> q   1 : 1 , $ -> $ 1
    q -> q   0 : 0 , 0 -> 0
    q -> q   1 : 1 , 0 -> 1
    q -> q   0 : 1 , 1 -> 1
    q -> q   1 : 0 , 1 -> 0
""")  # XOR in one state: the stack is one bit of memory


# --- edits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize("controller", ["linear", "gru", "lstm"])
def test_without_an_edit_the_loop_is_the_network(controller, buffered):
    network = build(
        Condition("parenthesis", controller, buffered=buffered, steps_per_symbol=2 if buffered else 1)
    )
    x = one_hot(torch.randint(5, (4, 9), generator=torch.Generator().manual_seed(0)), 5).float()
    network.backend = "reference"
    y, _, trace = network(x, return_trace=True)
    ran = ablation.run(network, x, ablation.edits(network.cell.memory)["nothing"])
    torch.testing.assert_close(ran.y, y[:, :9])
    for name in ("u", "d", "i", "o", "v", "x"):
        torch.testing.assert_close(getattr(ran.trace, name), getattr(trace, name))


def test_edits_by_hand():
    state = State(
        (torch.tensor([[1.0], [2.0]]),),
        MemoryState(torch.zeros(2, 4, 1), torch.tensor([[1.0, 0.5, 0.75, 0.5], [1.0, 1.0, 0.0, 0.0]])),
        torch.tensor([[0.25, 0.0], [0.75, 1.0]]),
    )
    assert ablation.without_reads(state).r.tolist() == [[0, 0], [0, 0]]
    assert ablation.others_reads(state).r.tolist() == [[0.75, 1], [0.25, 0]]
    assert ablation.mean_reads(state).r.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert ablation.without_state(state).h[0].tolist() == [[0], [0]]
    top, front = (ablation.nearest_alone(memory).state(state) for memory in (Stack(1), Queue(1)))
    assert top.memory.s.tolist() == [[0, 0, 0.5, 0.5], [0, 1, 0, 0]]
    assert front.memory.s.tolist() == [[1, 0, 0, 0], [1, 0, 0, 0]]
    assert ablation.nearest_alone(NoMemory(1)) is None
    instructions = Instructions(torch.tensor([0.4]), torch.tensor(0.6), torch.tensor(0.4))
    actions = Actions(instructions, torch.tensor([0.3]))
    rounded = ablation.hardened(Stack(1)).actions(actions)
    v, u, d = rounded.instructions
    assert (u, d, rounded.i) == (1, 0, None)
    assert v == instructions.v and rounded.y == actions.y


# --- verdicts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "task", "verdict"),
    [
        (MACHINES["reversal"], "reversal", STACK),
        (MACHINES["parenthesis"], "parenthesis", STACK),
        (MACHINES["formula"], "formula", STACK),
        (MACHINES["agreement"], "agreement", STACK),
        (MACHINES["xor"], "xor", IGNORED),
        (REGISTER, "xor", REGISTERS),
    ],
)
def test_verdicts_on_compiled_networks(machine, task, verdict):
    made, trial = compile_task(machine, task)
    found = diagnose(made.network, trial.condition, 0, strings=60)
    assert found.verdict == verdict
    assert found.sentence.startswith(f"Verdict: it {verdict}. It is right 100.0% of the time")
    assert found.accuracy == found.ablated["nothing"] == 1
    assert {accuracy for _, accuracy in found.lengths} == {1.0}
    assert all(b.right == b.scored for b in (*found.depth, *found.distance))
    assert sum(b.scored for b in found.depth) == sum(b.scored for b in found.distance) > 300
    assert sum(found.histogram["u"][1:9]) == 0
    assert found.drift[-1] < 1e-15
    assert found.falls_at is None or found.falls_at > 1e12


def test_a_network_without_a_memory_ignores_it():
    condition = Condition("xor", "lstm", "none")
    found = diagnose(initial(condition, 0), condition, 0, strings=20)
    assert found.verdict == "ignores it (it has no memory)"
    assert found.use.effects == {}


def test_the_verdict_names_the_memory():
    assert (STACK, IGNORED) == ("uses its stack as a stack", "ignores its stack")
    assert verdict_on("counter", Queue(2)) == "uses its queue as a counter"
    assert verdict_on("queue", Queue(2)) == "uses its queue as a queue"
    assert verdict_on("ignored", NoMemory(2)) == "ignores it (it has no memory)"


def test_the_class_is_the_most_that_some_swap_shows():
    def effects(whole, contents, height):
        return {
            name: Effect(10, 10, 1000, different)
            for name, different in zip(KINDS, (whole, contents, height), strict=True)
        }

    assert kind_of(effects(500, 500, 500), Stack(2)) == "stack"
    assert kind_of(effects(500, 500, 500), Queue(2)) == "queue"
    assert kind_of(effects(500, 0, 500), Queue(2)) == "counter"
    assert kind_of(effects(500, 0, 0), Queue(2)) == "register"
    assert kind_of({"whole": Effect(10, 10, 10, 10)}, Register(2)) == "register"
    assert kind_of({"whole": Effect(0, 0, 0, 0)}, Register(2)) == "ignored"
    for whole, everything, kind in (
        (39, 500, "ignored"), (39, 200, "register"), (39, None, "register"),
        (9, 9, "ignored"), (9, None, "ignored"),
    ):  # fmt: skip
        more = {} if everything is None else {EVERYTHING: Effect(10, 10, 1000, everything)}
        assert kind_of(effects(whole, 39, 39) | more, Stack(2)) == kind


@pytest.mark.parametrize("name", KNOWN)
def test_networks_of_known_truth(name, monkeypatch):
    """No row of the confusion table is wrong, and a third of the grafts tells it."""
    monkeypatch.setattr(grafts, "MOST", 70)
    build_known, truth = KNOWN[name]
    assert use(*build_known(), strings=60).kind == truth


def test_accuracy_has_no_part_in_the_verdict():
    """0 and 1 swapped in all that reversal says: never right, and the same swaps change the same answers."""
    network, condition = KNOWN["reversal, others said"][0]()
    found = diagnose(network, condition, 0, strings=40)
    assert found.accuracy == 0
    assert found.verdict == STACK
    assert found.use == use(*KNOWN["reversal"][0]())


@torch.no_grad()
def test_a_swap_by_hand():
    """Two runs of reversal, stopped before the #s: the vectors beneath the top are those of the other."""
    network, condition = KNOWN["reversal, linear"][0]()
    task = tasks.find("reversal")
    strings = [task.example(tuple(word)) for word in ("0011", "1100")]
    past = swaps._past(network, condition, strings)
    piles = piles_of(Stack(2), past)
    assert piles.height[0].tolist() == pytest.approx([0, 1, 2, 3, 4, 3, 2, 1])
    assert piles.beneath[0].tolist() == pytest.approx([0, 0, 1, 2, 3, 2, 1, 0])
    assert piles.uncovered[0, 4] == pytest.approx(2)  # before its last step one is left, which that reads
    said = {}
    for kind in KINDS:
        graft = Graft(0, 4, 1, 4 if kind != "height" else 2)
        items = grafted(kind, Stack(2), piles, graft)
        edit = ablation.by_step(swaps._refilled([graft], [items], Stack(2)))
        [output] = swaps._answers(network, condition, strings, [graft], edit, room=len(items.s))
        said[kind] = "".join(output[4:])
    assert said["whole"] == "0011"  # that of 1100
    assert said["contents"] == "1011"  # its own top, and beneath it 110
    assert said["height"][:2] == "11"  # its own top, and beneath it 1


def test_where_accuracy_falls():
    assert predict_fall([(10, 1.0), (20, 1.0)], 0.0)[0] is None
    assert predict_fall([(10, 1.0), (20, 1.0)], 1e-3)[0] == pytest.approx(250)
    fine = "every measured length is fine, up to 20 symbols"
    assert predict_fall([(10, 1.0), (20, 1.0)], None) == (None, fine)
    assert predict_fall([(10, 1.0), (20, 1.0)], 0.1) == (None, fine)  # it would have been at 2.5
    assert predict_fall([(10, 1.0), (40, 0.98)], 0.1)[0] == pytest.approx(20)
    assert predict_fall([(10, 0.5), (20, 0.4)], 0.1) == (10, "measured: below 99% at the shortest length")


# --- depth, distance and length -----------------------------------------------------------------------------


def test_looks_by_hand():
    assert looks(MACHINES["reversal"], "10##") == [(0, 0), (1, 0), (2, 1), (1, 3)]
    #                                              (        [       ]: ( was pushed 2 ago     ): none open
    assert looks(MACHINES["parenthesis"], "([])") == [(0, 0), (1, 0), (1, 2), (0, 0)]
    assert looks(MACHINES["xor"], "101") == [(0, 0)] * 3


@pytest.mark.parametrize(
    "task", [name for name, task in tasks.TASKS.items() if MACHINES[name] and hasattr(task, "of_length")]
)
@pytest.mark.parametrize("length", [2, 20, 101, 1000])
def test_long_strings_are_of_the_task(task, length):
    """The task's machine reads each to its end, and says its targets; lengths are what was asked for."""
    for symbols, target in tasks.of_length(tasks.TASKS[task], np.random.default_rng(length), 20, length):
        said = transduced(MACHINES[task], symbols)
        assert len(said) == len(symbols)
        assert all(t is None or s[-1] == t for s, t in zip(said, target, strict=True))
        assert 0.75 * length - 5 <= len(symbols) <= length + 4


def test_random_formulas_are_uniform_over_shapes():
    """The 5 shapes of formulas with 4 values, by the cycle lemma equally likely."""
    rng = np.random.default_rng(0)
    drawn = [
        "".join("v" if s in "TF" else "o" for s in tasks.TASKS["formula"].of_length(rng, 7))
        for _ in range(5000)
    ]
    shapes = {shape: drawn.count(shape) for shape in set(drawn)}
    assert len(shapes) == 5
    assert all(900 < n < 1100 for n in shapes.values())


# --- the command --------------------------------------------------------------------------------------------


def test_the_command_writes_figure_page_and_numbers(tmp_path, capsys):
    for arguments in (["compile", "reversal", "--controller", "linear", "--unbuffered"],):
        with pytest.raises(SystemExit):
            main([*arguments, "--out", str(tmp_path)])
    run_dir = capsys.readouterr().out.split()[0]
    with pytest.raises(SystemExit) as end:
        main(["diagnose", run_dir, "--strings", "30"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert "Verdict: it uses its stack as a stack" in said.splitlines()[-1]
    found = json.loads((tmp_path / run_dir / "diagnosis.json").read_text())
    assert found["verdict"] == STACK
    assert found["ablated"]["reads zeroed"] < 0.7
    assert (tmp_path / run_dir / "diagnosis.png").read_bytes().startswith(b"\x89PNG")
    page = html.unescape((tmp_path / run_dir / "diagnosis.html").read_text())
    verdict, numbers = found["sentence"].split(". ", 1)
    assert f"<b>{verdict}.</b> {numbers}" in page
    for name, accuracy in found["ablated"].items():  # printed under headings, and drawn as bars
        assert f"{name:26}  {accuracy:>8.1%}  {found['agreement'][name]:>17.1%}" in said.splitlines()
        assert f'<i style="--share:{accuracy:.4f}"></i>' in page
    assert "taken away                  accuracy  answers that stay" in said.splitlines()
    with pytest.raises(SystemExit) as end:
        main(["diagnose", run_dir, "--strings", "0"])
    assert end.value.code == 2


def test_what_could_not_be_swapped_is_said():
    effects = {"whole": Effect(4, 1, 8, 2), "contents": Effect(0, 0, 0, 0)}
    shares = dict.fromkeys((ablation.NOTHING, ablation.STATE, ablation.WHOLE), 1.0)
    said = sentence(swaps.Use("ignored", effects), shares, shares, Stack(2))
    assert "these change: 25.0% with all that another run holds. With its state" in said
    measured = diagnosis_page.Measured("Swaps", ("swapped", "change", "swaps"), [
        diagnosis_page.Line("whole", 0.25, "4"), diagnosis_page.Line("contents", None, "0")
    ])  # fmt: skip
    assert diagnosis_page.text(measured).splitlines() == [
        "swapped            change  swaps",
        "whole               25.0%      4",
        "contents  nothing to swap      0",
    ]


def test_tasks_of_machines_can_be_diagnosed():
    made, trial = compile_task(REGISTER, str(REGISTER))
    found = diagnose(made.network, trial.condition, 0, strings=30)
    assert found.verdict == REGISTERS
    assert found.depth == []
    assert tasks.find(trial.condition.task).machine == REGISTER
