"""PDTs as pictures: every state, rule and arrow of a machine is in them, and labels are readable."""

from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given

from softstack.formal import drawing
from softstack.formal.machines import PDTS
from softstack.formal.transducer import Rule, Transducer
from softstack.lab.tasks import TASKS
from softstack_command import main
from strategies import PATIENT, sparse

SVG = "{http://www.w3.org/2000/svg}"


def texts(image, kind):
    return [
        node.text for node in ElementTree.fromstring(image).iter(f"{SVG}text") if node.get("class") == kind
    ]


def test_labels_are_those_of_the_figures():
    said = [drawing.label(rule) for rule in PDTS["parenthesis"].rules]
    assert said == [
        "(:), ε → (",
        "[:], ε → [",
        "):ε, ( → ε",
        "]:ε, [ → ε",
        "ε:), ( → (",
        "ε:], [ → [",
        "ε:ε, $ → $",
    ]
    assert [drawing.label(rule) for rule in PDTS["xor"].rules] == ["0:0", "1:1", "0:1", "1:0"]


@pytest.mark.parametrize("name", PDTS)
def test_every_state_and_rule_is_drawn(name):
    machine = PDTS[name]
    image = drawing.svg(machine)
    assert texts(image, "state") == list(machine.states)
    assert sorted(texts(image, "label")) == sorted(map(drawing.label, machine.rules))
    root = ElementTree.fromstring(image)
    assert len(list(root.iter(f"{SVG}circle"))) == len(machine.states) + len(machine.accepting)
    assert len(list(root.iter(f"{SVG}path"))) == len(drawing.arrows(machine)) + 1  # and the start's
    written = drawing.dot(machine)
    assert all(drawing.label(rule) in written for rule in machine.rules)
    assert written.count(" -> ") == len(drawing.arrows(machine)) + 1


@pytest.mark.parametrize("name", ["reversal", "xor", "parenthesis", "formula"])
def test_labels_of_the_papers_machines_are_apart(name):
    nodes = [
        n
        for n in ElementTree.fromstring(drawing.svg(PDTS[name])).iter(f"{SVG}text")
        if n.get("class") == "label"
    ]
    boxes = [
        drawing._around((float(n.get("x")), float(n.get("y"))), drawing.LETTER * len(n.text), drawing.LINE)
        for n in nodes
    ]
    assert all(drawing._overlap(a, b) < 1e-6 for a, b in combinations(boxes, 2))


@PATIENT
@given(sparse())
def test_any_machine_can_be_drawn(machine):
    assert sorted(texts(drawing.svg(machine), "label")) == sorted(map(drawing.label, machine.rules))
    left, top, wide, high = map(float, ElementTree.fromstring(drawing.svg(machine)).get("viewBox").split())
    for node in ElementTree.fromstring(drawing.svg(machine)).iter(f"{SVG}text"):
        assert left <= float(node.get("x")) <= left + wide
        assert top <= float(node.get("y")) <= top + high


def test_marks_of_the_formats_are_escaped():
    machine = Transducer(
        '"', [Rule('"', "<", "&", '"', ("\\",), ()), Rule('"', "a", "", '"', (">",), ("&",))]
    )
    assert texts(drawing.svg(machine), "state") == ['"']
    assert '"q \\""' in drawing.dot(machine)
    assert "<:\\\\, & → ε" in drawing.dot(machine)


def test_the_command_writes_both(tmp_path, capsys):
    for kind in ("svg", "dot"):
        with pytest.raises(SystemExit) as end:
            main(["draw", "parenthesis", "--out", str(tmp_path / "new" / f"m.{kind}")])
        assert end.value.code == 0
        assert (tmp_path / "new" / f"m.{kind}").read_text() == getattr(drawing, kind)(
            TASKS["parenthesis"].machine
        )
    with pytest.raises(SystemExit) as end:
        main(["draw", "parenthesis", "--out", str(tmp_path / "m.gif")])
    assert end.value.code == 2
    assert "must end in .svg or .dot" in capsys.readouterr().err
