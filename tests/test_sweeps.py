"""Sweeps from files: what they ask for, and what is refused."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softstack.errors import BadInput
from softstack.lab.sweeps import plans as sweeps
from softstack.lab.training.conditions import TABLE_1, Condition


def parse(text):
    return sweeps.parse(tomllib.loads(text), "mine", "mine.toml")


def test_a_product():
    sweep = parse(
        """
        seeds = {first = 5, count = 3}
        [condition]
        task = "reversal"
        [product]
        controller = ["linear", "gru"]
        learning_rate = [0.1, 1]
        """
    )
    assert sweep.seeds == (5, 6, 7)
    assert sweep.conditions == tuple(
        Condition("reversal", controller, learning_rate=rate)
        for controller in ("linear", "gru")
        for rate in (0.1, 1.0)
    )
    assert sweep.trials == 12


def test_several_conditions_and_the_same_one_twice():
    sweep = parse(
        '[[condition]]\ntask = "xor"\n[[condition]]\ntask = "formula"\n[product]\npatience = [2, 5, 2]'
    )
    assert [(c.task, c.patience) for c in sweep.conditions] == [
        ("xor", 2), ("xor", 5), ("formula", 2), ("formula", 5),
    ]  # fmt: skip
    assert sweep.seeds == (0,)


@pytest.mark.parametrize("kind", ["random", "sobol"])
def test_samples_lie_where_they_are_asked_for(kind):
    text = f"""
        [condition]
        task = "xor"
        [{kind}]
        samples = 64
        seed = 3
        learning_rate = {{low = 1e-4, high = 1e-1, log = true}}
        weight_decay = {{low = 0, high = 0.5}}
        hidden_size = {{low = 3, high = 6}}
        train_size = {{low = 10, high = 1000, log = true}}
        controller = ["lstm", "gru"]
        """
    conditions = parse(text).conditions
    assert len(conditions) == 64
    assert conditions == parse(text).conditions
    assert conditions != parse(text.replace("seed = 3", "seed = 4")).conditions
    assert {c.hidden_size for c in conditions} == {3, 4, 5, 6}
    assert {c.controller for c in conditions} == {"lstm", "gru"}
    rates = sorted(c.learning_rate for c in conditions)
    assert 1e-4 <= rates[0] < 3e-4 and 3e-2 < rates[-1] <= 0.1
    assert sum(rate < 10**-2.5 for rate in rates) == pytest.approx(32, abs=0 if kind == "sobol" else 10)
    assert all(0 <= c.weight_decay <= 0.5 and 10 <= c.train_size <= 1000 for c in conditions)


def test_a_sweep_written_out_is_the_same_sweep():
    sweep = sweeps.Sweep("table1", tuple(TABLE_1), tuple(range(10)))
    again = sweeps.parse(tomllib.loads(sweeps.dumps(sweep).decode()), "table1", "x")
    assert again == sweep
    assert again.digest == sweep.digest != sweep._replace(seeds=(1,)).digest


def test_the_readmes_sweep_is_the_example():
    root = Path(__file__).parent.parent
    (shown,) = re.findall(r"```toml\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    example = sweeps.load(root / "examples" / "reversal.toml")
    assert parse(shown)._replace(name="reversal") == example
    assert example.conditions == (TABLE_1[0],)
    assert example.trials == 2000


TASK = '[condition]\ntask = "xor"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sedes = 3", "unknown key in mine.toml, 'sedes': did you mean 'seeds'"),
        ("", "mine.toml names no task"),
        ("condition = 3", r"\[condition\] in mine.toml must be a table"),
        ("seeds = 0\n" + TASK, "seeds in mine.toml must be how many"),
        ("seeds = 1.5\n" + TASK, "got 1.5"),
        ("seeds = true\n" + TASK, "got True"),
        ("seeds = [0, -1]\n" + TASK, r"got \[0, -1\]"),
        ("seeds = {count = 3, frist = 2}\n" + TASK, "must be how many"),
        ("seeds = 10000000\n" + TASK + "[product]\npatience = [1, 2]", "asks for 20000000 trials"),
        (TASK + "[product]\ntask = ['xor']", "gives task twice, with 'xor' and 'xor'"),
        (TASK + "[product]\npatience = 3", "patience in .product. in mine.toml must be a list"),
        (TASK + "[product]\npatience = []", "must be a list of values; got"),
        (TASK + "[product]\npatiense = [3]", "'patiense': did you mean 'patience'"),
        (TASK + "[product]\npatience = ['a']", "patience must be a whole number; got 'a'"),
        (TASK + "[random]\npatience = [3]", "samples in .random. in mine.toml must say how many"),
        (TASK + "[random]\nsamples = 3", "names no field"),
        (TASK + "[random]\nsamples = 99999999\npatience = [3]", "at most 10000000; got 99999999"),
        (TASK + "[random]\nsamples = 3\npatience = {low = 3, high = 2}", "patience in .random."),
        (TASK + "[random]\nsamples = 3\npatience = {low = 1.5, high = 2}", "patience in .random."),
        (TASK + "[random]\nsamples = 3\nweight_decay = {low = 0, high = 2, log = true}", "weight_decay in"),
        (TASK + "[random]\nsamples = 3\nweight_decay = {low = nan, high = 2}", "weight_decay in"),
        (TASK + "[random]\nsamples = 3\ncontroller = {low = 1, high = 2}", "must be a list of values, from"),
        (TASK + "[random]\nsamples = 3\nseed = -1\npatience = [3]", "seed in .random."),
        (TASK + "[random]\nsamples = 3\npatience = [3]\n[sobol]\n", r"has \[random\] and \[sobol\]"),
    ],
)
def test_refusals(text, message):
    with pytest.raises(BadInput, match=message):
        parse(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["low", "high", "log", "first", "count"]), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.sampled_from([*sweeps.KINDS, "samples", "seed", "tusk"])
TABLES = VALUES | st.dictionaries(NAMES, VALUES, max_size=5)


@given(st.dictionaries(st.sampled_from(sweeps.KEYS) | st.text(max_size=5), TABLES, max_size=5))
def test_whatever_a_file_says_it_is_a_sweep_or_a_sentence(content):
    try:
        sweep = sweeps.parse(content, "mine", "mine.toml")
    except BadInput as error:
        assert "\n" not in str(error)
    else:
        assert sweep.trials > 0


@given(st.binary(max_size=200) | st.text(alphabet='[]{}="\n1a.#', max_size=60).map(str.encode))
def test_bytes_that_are_no_file(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.toml"
    path.write_bytes(content)
    with pytest.raises(BadInput):  # none of these names a task
        sweeps.load(path)
