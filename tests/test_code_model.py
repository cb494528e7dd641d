"""examples/code_model.py: what it counts in source, and that it runs from end to end."""

import json
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import code_model

SOURCE = b"""def f(a, b):
    if a[0]:
        return {1: (2, "(")}  # )
    return b
x = f(1,
      2)
"""


def test_the_figures_are_made_by_the_sizes_that_it_has():
    figures = Path(__file__).parent.parent / "results" / "code_model" / "code_model.json"
    assert json.loads(figures.read_text())["sizes"] == code_model.Sizes()._asdict()


def test_events_of_a_source():
    there = [
        (e.kind, SOURCE[e.position : e.position + 1], e.distance, e.depth) for e in code_model.events(SOURCE)
    ]
    assert there == [
        ("closer", b")", 5, 1),
        ("closer", b"]", 2, 1),
        ("closer", b")", 7, 2),
        ("closer", b"}", 12, 1),
        ("dedent", b"r", 38, 2),
        ("dedent", b"x", 60, 1),
        ("closer", b")", 11, 1),
    ]


@pytest.mark.parametrize("variant", code_model.VARIANTS)
def test_models_have_as_many_parameters(variant):
    sizes = code_model.Sizes()
    counts = [
        sum(p.numel() for p in code_model.Model(v, 256, sizes).parameters()) for v in ("attention", variant)
    ]
    assert abs(counts[1] / counts[0] - 1) < 0.01


@pytest.mark.parametrize("variant", code_model.VARIANTS)
def test_models_are_causal(variant):
    torch.manual_seed(0)
    model = code_model.Model(variant, 256, code_model.TINY)
    x = torch.randint(256, (1, 20))
    changed = torch.cat((x[:, :12], x[:, 12:].flip(1)), 1)
    assert torch.allclose(model(x)[:, :12], model(changed)[:, :12], atol=1e-5)
    assert not torch.allclose(model(x)[:, 13:], model(changed)[:, 13:], atol=1e-5)


def test_it_runs_from_end_to_end(tmp_path, capsys):
    out = tmp_path / "out.json"
    results = code_model.main(["--tiny", "--variants", "both", "--out", str(out)])
    assert json.loads(out.read_text()) == json.loads(json.dumps(results))
    outcome = results["both"]
    assert outcome["training loss"] < 5.5  # a uniform guess among 256 has 5.545
    assert 1 < outcome["code"]["bits per byte"] < 8.5
    assert outcome["code"]["closer"]["of"] > 100 and 0 <= outcome["code"]["closer"]["right"] <= 1
    by_distance = [v["of"] for name, v in outcome["code"].items() if name.startswith("closer, distance")]
    assert sum(by_distance) == outcome["code"]["closer"]["of"]
    assert list(outcome["formal"]) == ["parenthesis", "reversal", "formula"]
    assert all(0 <= share <= 1 for shares in outcome["formal"].values() for share in shares.values())
    assert '"bits per byte"' in capsys.readouterr().out
