"""The files in examples/ run, and come to what they say. examples/code_model.py is in test_code_model.py."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from softstack.errors import BadInput
from softstack.lab.runs import store

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import custom_memory
import custom_task
import export_to_json
import language_model
import sweep_from_python

EXAMPLES = Path(__file__).parent.parent / "examples"
TESTED = {
    "code_model",
    "custom_memory",
    "custom_task",
    "export_to_json",
    "language_model",
    "sweep_from_python",
}


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == TESTED


def test_a_language_model_gains_from_its_stack(tmp_path, capsys):
    bits = {
        memory: language_model.main(["--memory", memory, "--steps", "400"]) for memory in ("stack", "none")
    }
    assert bits["stack"] < bits["none"] < 2.2  # of seven symbols; 2.807 would be a guess
    text = tmp_path / "mine.txt"
    text.write_text("one two three\n" * 30)
    assert language_model.main([str(text), "--steps", "60", "--window", "14"]) < 2  # 3.3 would be a guess
    assert len(capsys.readouterr().out.splitlines()) >= 6


def test_a_model_writes_as_it_reads():
    """Symbol by symbol with its state, or all at once: the same scores."""
    torch.manual_seed(0)
    model = language_model.LanguageModel(5, "stack").eval()
    text = torch.randint(5, (1, 9))
    whole, _ = model(text)
    state, parts = None, []
    for t in range(9):
        logits, state = model(text[:, t : t + 1], state)
        parts.append(logits)
    torch.testing.assert_close(torch.cat(parts, 1), whole)


def test_a_memory_of_counters_counts():
    memory = custom_memory.Tally(2)
    state, read = memory.step(
        memory.init((1,)),
        memory_instructions(up=torch.tensor([[1.0, 0.5]]), down=torch.tensor([[0.25, 1.0]])),
    )
    torch.testing.assert_close(state.value, torch.tensor([[0.75, -0.5]]))
    torch.testing.assert_close(read, state.value.tanh())
    assert custom_memory.main() > 0.9


def memory_instructions(**heads):
    return type("Instructions", (), heads)


def test_an_editor_says_what_undo_takes_away(registries):
    editor = custom_task.Editor()
    example = editor.example(("a", "b", "undo", "c", "undo", "undo"))
    assert example.target == (None, None, "b", None, "c", "a")
    with pytest.raises(BadInput, match="nothing to undo"):
        editor.example(("a", "undo", "undo"))
    tests = custom_task.main()
    assert tests["stack"] > 0.99
    assert tests["none"] < 0.5


def test_a_sweep_from_python(tmp_path, capsys):
    base = replace(sweep_from_python.BASE, train_size=40, dev_size=10, test_size=20, max_epochs=2)
    rows = sweep_from_python.main(tmp_path, base=base, seeds=2, where="inline")
    assert [(row["controller"], row["seed"]) for row in sorted(rows, key=lambda row: row["path"])] == [
        (name, seed) for name in ("gru", "linear", "lstm") for seed in (0, 1)
    ]
    assert "6 trials trained now; what went wrong: nothing" in capsys.readouterr().out
    sweep_from_python.main(tmp_path, base=base, seeds=2, where="inline")
    assert "0 trials trained now" in capsys.readouterr().out


def test_json_is_read_without_torch(tmp_path):
    """The plain reader says what the network says."""
    file = tmp_path / "network.json"
    assert export_to_json.main(file, tmp_path / "runs")[6:] == list("001011")
    network = store.network(store.load(next((tmp_path / "runs").glob("*/seed-0"))))
    content = json.loads(file.read_text())
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        word = torch.randint(3, (12,), generator=generator)
        y, _ = network(torch.nn.functional.one_hot(word, 3).float())
        expected = [content["alphabet"][k] for k in y.argmax(-1).tolist()]
        assert export_to_json.said(content, [content["alphabet"][k] for k in word.tolist()]) == expected
