"""§3: networks made from PDTs say what the PDTs say, on every input, and their strengths stay in place."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from softstack.buffered import BufferedStackRNN
from softstack.errors import BadInput
from softstack.formal import saturation
from softstack.formal.analysis import bound, quiet, reachable, steps_of
from softstack.formal.compiler import compiled, stack_codes
from softstack.formal.linear import threshold
from softstack.formal.machines import PDTS, dyck, real_time_dyck
from softstack.formal.running import transduced, walk
from softstack.formal.transducer import BOTTOM, Rule, Transducer
from softstack.lab import tasks
from softstack.networks import StackRNN
from strategies import PATIENT, dense, sparse, words

LONG = 10_000


def brackets(k):
    return [(f"({n}", f"){n}") for n in range(1, k + 1)]


MACHINES = {**PDTS, **{f"dyck-{k}": dyck(brackets(k), "_") for k in (1, 2, 3, 5, 8, 16)}}
REAL_TIME = {
    name: PDTS[name]
    for name in ("reversal", "selective_reversal", "xor", "delayed_xor", "formula", "agreement")
}
ONE_STATE = {
    "reversal": PDTS["reversal"],
    "selective_reversal": PDTS["selective_reversal"],
    "dyck-2": real_time_dyck(brackets(2), "_"),
    "dyck-3": real_time_dyck(brackets(3), "_"),
}
SLOW = Transducer.parse("""
    start q
    q -> q   a : x y z , ε -> A B C
    q -> p   # : ε
    p -> p   ε : A , A -> ε
    p -> p   ε : B B , B -> ε
    p -> p   ε : ε , C -> ε
    p -> q   ε : end , $ -> $ A A
""")


def output(machine, word):
    """What the definition writes; configurations are dropped as they come."""
    return tuple(symbol for step in machine.steps(word) for symbol in step.written)


def ends(machine):
    """Whether no ε-moves go on for ever."""
    try:
        bound(machine)
    except BadInput:
        return False
    return True


@torch.no_grad()
def far_from_whole(*strengths):
    return max(float((s - s.round()).abs().max()) if s.numel() else 0.0 for s in strengths)


def one_hot(word, inputs, dtype):
    x = torch.zeros(len(word), len(inputs), dtype=dtype)
    x[range(len(word)), [inputs.index(symbol) for symbol in word]] = 1
    return x


# --- running a machine one symbol at a time ---------------------------------------------------------------


@PATIENT
@given(st.data())
def test_the_quick_run_is_the_definition(data):
    machine = data.draw(st.one_of(sparse(), dense()))
    assume(ends(machine))
    word = data.draw(words(machine))
    assert sum(transduced(machine, word), ()) == output(machine, word)


@PATIENT
@given(dense(), st.integers(0, 2**32))
def test_walks_are_read_to_the_end(machine, seed):
    assume(ends(machine))
    word = walk(machine, np.random.default_rng(seed), 30)
    assert machine.run(word).stuck is None
    assert len(word) == 30 or not any(machine.run((*word, x)).stuck is None for x in machine.alphabet)


@PATIENT
@given(st.data())
def test_steps_are_bounded(data):
    """The bound on steps holds on random words, and the heads that come up are among the reachable."""
    machine = data.draw(st.one_of(sparse(), dense()))
    assume(ends(machine))
    word = (
        *walk(machine, np.random.default_rng(data.draw(st.integers(0, 99))), 40),
        *data.draw(words(machine)),
    )
    run = machine.run(word)
    taken = sum(steps_of(c.rule) for c in run.configurations if c.rule)
    assert taken <= bound(machine)(len(word))
    assert {(c.state, c.stack[-1]) for c in run.configurations} <= set(reachable(machine))


def test_bounds_by_hand():
    assert bound(PDTS["reversal"]) == (1, 0)
    assert bound(PDTS["parenthesis"]) == (2, 0)
    # each a is pushed in 3 steps, and removed in 1 + 2 + 1; # costs a step and `end` one that pushes two
    assert quiet(SLOW, ("p", "B")) == ("p", (), 2)
    assert bound(SLOW)(1) >= 3 + 4


# --- what a compiled network says -------------------------------------------------------------------------


@pytest.mark.parametrize("codes", ["onehot", "binary"])
@pytest.mark.parametrize("name", MACHINES)
def test_a_compiled_network_is_its_machine(name, codes):
    machine = MACHINES[name]
    made = compiled(machine, codes=codes)
    rng = np.random.default_rng(1)
    for length in (1, 2, 3, 10, 50):
        word = walk(machine, rng, length)
        assert made.transduce(word) == output(machine, word)
    for _ in range(20):  # and on any input, read to the end or not
        word = tuple(rng.choice(machine.alphabet, size=12))
        assert made.transduce(word) == output(machine, word)


@pytest.mark.parametrize("name", ["reversal", "xor", "parenthesis", "formula"])
def test_on_every_input_up_to_a_length(name):
    machine = MACHINES[name]
    made = compiled(machine)
    for n in range(1, 7 if len(machine.alphabet) < 4 else 6):
        for word in product(machine.alphabet, repeat=n):
            assert made.transduce(word) == output(machine, word)


@settings(PATIENT, max_examples=60)
@given(st.data())
def test_random_machines_compile(data):
    machine = data.draw(st.one_of(sparse(), dense()))
    assume(ends(machine))
    made = compiled(machine, codes=data.draw(st.sampled_from(["onehot", "binary"])), inputs=("0", "1"))
    seed = data.draw(st.integers(0, 2**32))
    length = data.draw(st.sampled_from([60, 60, 60, 1000]))
    for word in ((), tuple(data.draw(words(machine))), walk(machine, np.random.default_rng(seed), length)):
        assert made.transduce(word) == output(machine, word)


def test_a_machine_that_never_moves():
    """Nothing is ever on the stack for its only rule, and it accepts nothing."""
    stuck = Transducer("p", [Rule("p", "", "a", "p", (), ())], accepting=())
    assert compiled(stuck, inputs=("0", "1")).transduce("01") == ()


def test_rules_of_several_steps():
    made = compiled(SLOW)
    for word in ("a", "a#", "aa#", "aa##a#", "aaa#aa#"):
        assert made.transduce(word) == output(SLOW, word)
    assert len(output(SLOW, "aa##a#")) > 20


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, torch.float32) for name in (*PDTS, "dyck-3", "dyck-16")),
        ("parenthesis", torch.float64),
        ("dyck-3", torch.float64),
    ],
)
def test_ten_thousand_symbols(name, dtype):
    """Output symbol by symbol, so every length up to that; all strengths 0 or 1 to far below 1e-3."""
    machine = MACHINES[name]
    made = compiled(machine, dtype=dtype)
    rng = np.random.default_rng(2)
    word = walk(machine, rng, LONG)
    if name == "agreement":
        nouns = rng.choice(["lobster", "lobsters"], size=LONG // 5)
        said = [{"lobster": "has", "lobsters": "have"}[noun] for noun in nouns]
        inwards = [x for noun in nouns[:-1] for x in ("the", noun, "that")]
        outwards = [x for aux in said[-2::-1] for x in ("devoured", aux)]
        word = (*inwards, "the", nouns[-1], said[-1], *outwards)
    if name == "reversal":
        word = (*rng.choice(["0", "1"], size=LONG // 2), *"#" * (LONG // 2))
    assert LONG - 2 <= len(word) <= LONG
    with torch.no_grad():
        y, state = made.network(one_hot(word, made.inputs, dtype))
    expected = output(machine, word)
    assert int(state.output.s.round().sum()) == len(expected)
    assert y.argmax(-1)[: len(expected)].tolist() == [made.outputs.index(s) for s in expected]
    limit = made.error(dtype)
    assert limit <= saturation.roundoff(dtype)
    assert far_from_whole(state.network.memory.s, state.output.s, state.input.s, state.i) <= limit


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("tolerance", [1e-1, 1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize("name", ["parenthesis", "formula", "dyck-3"])
def test_bounds_hold_at_every_gain(name, tolerance, dtype):
    """Gates that are less saturated: strengths on the stack stay within what the derivation allows them."""
    machine = MACHINES[name]
    length = 2000
    made = compiled(machine, tolerance=tolerance / 8, length=length, dtype=dtype)
    word = walk(machine, np.random.default_rng(3), length)
    with torch.no_grad():
        y, state = made.network(one_hot(word, made.inputs, dtype))
    expected = output(machine, word)
    assert y.argmax(-1)[: len(expected)].tolist() == [made.outputs.index(s) for s in expected]
    off = far_from_whole(state.network.memory.s, state.output.s, state.input.s)
    assert off <= made.error(dtype)
    assert off <= tolerance / 8 + (0 if dtype == torch.float64 else 16 * made.steps(length) * 2**-24)
    if dtype == torch.float64:
        assert off >= np.exp(-made.saturation) / 10  # nothing is exact here: the bound has work to do


@pytest.mark.parametrize("name", ["parenthesis", "selective_reversal", "agreement"])
def test_every_strength_of_every_step(name):
    """The reference loop's trace, u, d, i, o, s and r, against the configurations of the machine."""
    machine = MACHINES[name]
    made = compiled(machine)
    word = walk(machine, np.random.default_rng(4), 60)
    with torch.no_grad():
        _, _, trace = made.network(one_hot(word, made.inputs, torch.float32), return_trace=True)
    assert far_from_whole(trace.u, trace.d, trace.i, trace.o, trace.s) < 1e-3
    path = machine.run(word).configurations[1:]
    assert len(path) <= len(trace.u)
    for t, configuration in enumerate(path):  # these machines take one step a rule
        assert bool(trace.i[t].round()) == bool(configuration.rule.read)
        assert bool(trace.o[t].round()) == bool(configuration.written)
        assert int(trace.s[t].round().sum()) == len(configuration.stack) - 1
        code = torch.tensor(made.codes[configuration.stack[-1]], dtype=torch.float32)
        torch.testing.assert_close(trace.r[t], code, atol=1e-3, rtol=0)
    waiting = slice(len(path), None)
    assert float(trace.u[waiting].sum() + trace.d[waiting].sum() + trace.o[waiting].sum()) < 1e-3


def test_the_reference_loop_says_the_same():
    machine = MACHINES["dyck-3"]
    made = compiled(machine)
    word = walk(machine, np.random.default_rng(5), 200)
    fused = made.transduce(word)
    made.network.backend = "reference"
    assert made.transduce(word) == fused == output(machine, word)


def test_a_stuck_machine_stays_stuck():
    made = compiled(PDTS["parenthesis"])
    assert made.transduce("([)()[]") == output(PDTS["parenthesis"], "([)()[]") == (")", "]")


def test_an_input_may_come_in_parts():
    """A network that waits for input goes on from its state."""
    machine = MACHINES["agreement"]
    made = compiled(machine)
    word = walk(machine, np.random.default_rng(6), 40)
    state = None
    for part in (word[:13], word[13:14], word[14:]):
        y, state = made.network(one_hot(part, made.inputs, torch.float32), state)
    expected = output(machine, word)
    assert [made.outputs[k] for k in y.argmax(-1)[: len(expected)].tolist()] == list(expected)


# --- smaller networks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REAL_TIME)
def test_without_buffers(name):
    machine = REAL_TIME[name]
    made = compiled(machine, buffered=False)
    assert isinstance(made.network, StackRNN)
    word = walk(machine, np.random.default_rng(7), 300)
    assert made.transduce(word) == output(machine, word)


@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize("name", ONE_STATE)
def test_linear_controllers(name, buffered):
    machine = ONE_STATE[name]
    made = compiled(machine, controller="linear", buffered=buffered)
    assert isinstance(made.network, BufferedStackRNN if buffered else StackRNN)
    assert not list(made.network.cell.core.parameters())
    rng = np.random.default_rng(8)
    for length in (1, 5, 100, 3000):
        word = walk(machine, rng, length)
        assert made.transduce(word) == output(machine, word)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("xor", dict(controller="linear"), "2 states"),
        ("parenthesis", dict(buffered=False), "writes 0 symbols"),
        ("reversal", dict(controller="gru"), "'lstm' or 'linear'"),
        ("reversal", dict(inputs=("0", "1")), "'#' is not in"),
        ("reversal", dict(outputs=("0", "1", "#", "0")), "a symbol twice"),
        ("reversal", dict(tolerance=0.7), "between 0 and 0.5"),
        ("dyck-16", dict(tolerance=0.1), "smaller tolerance"),
        ("reversal", dict(codes="gray"), "unknown code"),
        ("one-state", dict(controller="linear", codes="binary"), "one-hot"),
        ("reversal", dict(length=0), "at least 1"),
    ],
)
def test_what_cannot_be_compiled(name, options, said):
    with pytest.raises(BadInput, match=said):
        compiled({**MACHINES, "one-state": ONE_STATE["dyck-3"]}[name], **options)


def test_heads_that_are_no_threshold():
    """δ(x, s) = x XOR s in one state."""
    machine = Transducer.parse("""
        start q
        q -> q   0 : a , a -> a
        q -> q   0 : b , b -> b
        q -> q   1 : b , a -> a
        q -> q   1 : a , b -> b
        q -> q   0 : a , $ -> $ a
        q -> q   1 : a , $ -> $ b
    """)
    with pytest.raises(BadInput, match="no threshold"):
        compiled(machine, controller="linear")
    assert compiled(machine).transduce("0101") == output(machine, "0101")


@given(st.dictionaries(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), st.booleans()))
def test_thresholds_are_found_exactly_where_there_are_some(wanted):
    """Against trying all orders of the symbols' weights, which is all that matters."""
    found = threshold(wanted)
    if found is not None:
        a, b = found
        assert all((a[x] + b[s] >= 1) if on else (a[x] + b[s] <= -1) for (x, s), on in wanted.items())
    else:
        # no weights from -3 to 3, enough for three symbols a side, do it: for each choice of a, some b fails
        xs, ss = sorted({x for x, _ in wanted}), sorted({s for _, s in wanted})
        halves = [k + 0.5 for k in range(-4, 4)]

        def fits(a, s, b):
            return all((a[x] + b > 0) == wanted[x, s] for x in xs if (x, s) in wanted)

        for values in product(range(-3, 4), repeat=len(xs)):
            a = dict(zip(xs, values, strict=True))
            assert not all(any(fits(a, s, b) for b in halves) for s in ss)


def test_codes_differ_and_leave_0_to_the_empty_stack():
    for kind, width in (("onehot", 16), ("binary", 5)):
        codes = stack_codes(MACHINES["dyck-16"], kind)
        assert len(set(codes.values())) == 17
        assert codes[BOTTOM] == (0,) * width


# --- an ordinary network ----------------------------------------------------------------------------------


def test_fine_tuning_repairs_a_damaged_network():
    """Compiled with gates that still have gradients, shaken, and trained on the machine's own output."""
    machine = PDTS["formula"]
    made = compiled(machine, buffered=False, length=20, tolerance=1e-2)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in made.network.parameters():
            p.add_(torch.randn(p.shape, generator=generator) * 2)
    rng = np.random.default_rng(0)
    data = [word for word in (walk(machine, rng, 20) for _ in range(64)) if len(word) == 20]
    x = torch.stack([one_hot(word, made.inputs, torch.float32) for word in data])
    target = torch.tensor([[made.outputs.index(s) for s in output(machine, word)] for word in data])

    def accuracy():
        return float((made.network(x)[0].argmax(-1) == target).double().mean())

    shaken = accuracy()
    assert shaken < 0.95
    optimiser = torch.optim.Adam(made.network.parameters(), lr=0.03)
    for _ in range(60):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(made.network(x)[0].flatten(0, 1), target.flatten())
        loss.backward()
        optimiser.step()
    assert accuracy() > max(0.98, shaken + 0.02)


# --- as a run directory -----------------------------------------------------------------------------------


def softstack(capsys, *arguments):
    """What a command printed, or what it said when it ended with exit code 2."""
    from softstack_command import main

    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        assert end.code in (0, 2)
        if end.code == 2:
            return capsys.readouterr().err
    return capsys.readouterr().out


@pytest.mark.parametrize("task", ["reversal", "xor", "delayed_xor", "parenthesis", "formula", "agreement"])
def test_the_command_compiles_every_task_of_the_paper(task, tmp_path, capsys):
    said = softstack(capsys, "compile", task, "--out", tmp_path)
    assert "dev 100.0%  test 100.0%  compiled" in said
    run_dir = said.split()[0]
    assert "accuracy 100.00%" in softstack(capsys, "evaluate", run_dir)
    traced = softstack(
        capsys,
        "trace",
        run_dir,
        " ".join(tasks.draw(tasks.find(task), np.random.default_rng(0), 1, "test")[0].input),
        "--out",
        tmp_path / "t.json",
    )
    assert "Written" in traced


def test_a_machine_of_ones_own_is_its_own_task(tmp_path, capsys):
    (tmp_path / "mine.pdt").write_text(str(SLOW))
    said = softstack(
        capsys, "compile", tmp_path / "mine.pdt", "--out", tmp_path / "runs", "--codes", "binary"
    )
    run_dir = said.split()[0]
    assert "dev 100.0%  test 100.0%" in said
    traced = softstack(capsys, "trace", run_dir, "a a # a", "--out", tmp_path / "t.json")
    assert "predicted  x y z x" in traced
    assert (tmp_path / "runs" / run_dir / "machine.pdt").read_text() == f"{SLOW}\n"
    again = softstack(
        capsys,
        "compile",
        tmp_path / "mine.pdt",
        "--out",
        tmp_path / "runs",
        "--codes",
        "binary",
        "--length",
        10,
    )
    assert "holds another network" in again


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("start q\nq -> q   ε : x", "ε-cycle"),
        ("start q\nq -> q   0 : x\nq -> q   0 : y", "clash"),
        ("input 0\nstart q\nq -> q   1 : x", "does not declare"),
        (
            "start q\nq -> q   0 : x , a -> ε\nq -> q   0 : x , $ -> $",
            "warning: the rule `q -> q   0 : x , a -> ε` pops a",
        ),
        ("start q\nq -> q   0 : x\np -> q   0 : x", "warning: state p cannot be reached"),
        ("start q\nnonsense", "line 2"),
    ],
)
def test_bad_machines_at_the_command_line(text, said, tmp_path, capsys):
    (tmp_path / "bad.pdt").write_text(text)
    from softstack_command import main

    with pytest.raises(SystemExit) as end:
        main(["compile", str(tmp_path / "bad.pdt"), "--out", str(tmp_path)])
    assert end.value.code == (0 if "warning" in said else 2)
    assert said in capsys.readouterr().err


def test_a_machine_that_is_not_there(capsys):
    assert "did you mean 'reversal'" in softstack(capsys, "compile", "reversed")


def test_the_numbers_of_the_derivation():
    """docs/compile.md at T = 20,000."""
    text = (Path(__file__).parent.parent / "docs" / "compile.md").read_text()
    a = saturation.exact(20_000)
    assert f"a = {a:.1f} and G = {saturation.gain(a, 0):.1f}" in text
    assert f"τ = 0.001, a = {saturation.within(20_000, 1e-3):.1f}" in text
    assert saturation.error(100, 20_000, torch.float32) < 1e-30
    rounding = saturation.error(17, 20_000, torch.float32) - saturation.error(17, 20_000)
    assert f"that alone is {rounding:.2f}." in text


def test_a_recogniser_says_its_verdicts() -> None:
    """A network has nothing but what it writes."""
    even = Transducer.parse("start q\naccept q\nq -> r   0 : ε\nr -> q   0 : ε")
    network = compiled(even)
    assert network.outputs == ("0", "1")
    assert network.transduce("0000") == ("0", "1", "0", "1")
    assert compiled(even, buffered=False).transduce("000") == ("0", "1", "0")
