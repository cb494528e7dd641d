"""Files from elsewhere: whatever they hold, the answer is a sentence, and nothing else is touched."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from softstack.errors import BadInput
from softstack.lab import tasks
from softstack.lab.runs import index, store, unfinished
from softstack.lab.tasks.data import read_tsv, write_tsv
from softstack.lab.training import checkpoints
from softstack.lab.training.conditions import Condition
from softstack.lab.training.train import train

SMALL = Condition("reversal", "linear", "stack", train_size=20, dev_size=5, test_size=5, max_epochs=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A root with one finished and one unfinished trial, and what everything around it looked like."""
    top = tmp_path_factory.mktemp("untrusted")
    kept = []
    (trial,) = train(SMALL, [0], keep=kept.append, every=0)
    store.save(top / "root", trial)
    unfinished.keep(top / "root", SMALL, {1: kept[0][0]})
    (top / "beside").write_text("not yours")
    return top


def tree(top):
    return {p: p.read_bytes() if p.is_file() else None for p in sorted(top.rglob("*"))}


@st.composite
def damaged(draw, content):
    """Bytes changed, cut out, put in or doubled, in a few places."""
    content = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(content) - 1, 0)))
        kind = draw(st.sampled_from(["flip", "cut", "insert", "double"]))
        if kind == "flip" and content:
            content[at] ^= draw(st.integers(1, 255))
        elif kind == "cut":
            del content[at : at + draw(st.integers(1, 50))]
        elif kind == "insert":
            content[at:at] = draw(
                st.binary(max_size=20) | st.sampled_from([b"\0", b"9" * 30, b"[", b"-1", b"null"])
            )
        else:
            content[at:at] = content[: draw(st.integers(0, 200))]
    return bytes(content)


@pytest.mark.parametrize("name", store.FILES)
@given(st.data())
def test_a_run_directory(name, folder, data):
    path = folder / "root" / SMALL.name / "seed-0"
    whole = (path / name).read_bytes()
    run = store.load(path)
    try:
        (path / name).write_bytes(data.draw(damaged(whole)))
        before = tree(folder)
        try:
            found = store.load(path)
            store.network(found)
        except BadInput as error:
            assert str(error)
        else:
            assert (found.condition, found.seed) == (run.condition, run.seed)
            if name in store.HASHED:
                assert (path / name).read_bytes() == whole
        assert tree(folder) == before
    finally:
        (path / name).write_bytes(whole)


@given(st.data())
def test_the_state_of_an_unfinished_trial(folder, data):
    path = folder / "root" / SMALL.name / "seed-1.unfinished" / "trainer.safetensors"
    whole = path.read_bytes()
    try:
        path.write_bytes(data.draw(damaged(whole)))
        try:
            state = unfinished.begun(folder / "root", SMALL, 1)
        except BadInput as error:
            assert str(error)
        else:
            train(SMALL, [1], begun=[state])  # what passes the checks can be trained
    finally:
        path.write_bytes(whole)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from(["result.json", "provenance.json", "metrics.jsonl"]),
)
def test_json_that_is_something_else(folder, content, name):
    path = folder / "root" / SMALL.name / "seed-0"
    whole = (path / name).read_bytes()
    try:
        (path / name).write_text(json.dumps(content))
        with index.opened(folder / "root", lambda sentence: None) as database:
            rows, unreadable = index.query(database), index.unreadable(database)
        assert len(rows) + len(unreadable) == 1
    finally:
        (path / name).write_bytes(whole)
        (folder / "root" / "index.sqlite").unlink(missing_ok=True)


def test_a_header_that_promises_more_than_there_is(folder):
    """Sizes are checked against the file and the condition before memory is taken for them."""
    for shape in ([2**62], [10**9, 10**9], [-1], [0], ["a"], 3):
        about = {"dtype": "F32", "shape": shape, "data_offsets": [0, 2**63]}
        for header in ({"parameters": about}, {"cell.heads.weight": about}):
            text = json.dumps(header).encode()
            for length in (len(text), 2**63, 2**40, 0):
                content = length.to_bytes(8, "little") + text
                with pytest.raises(BadInput):
                    checkpoints.loads(content, SMALL, "x")


def test_a_file_far_larger_than_its_condition_allows_is_not_read(folder):
    path = folder / "root" / SMALL.name / "seed-0" / "model.safetensors"
    whole = path.read_bytes()
    try:
        with path.open("wb") as file:
            file.truncate(2**40)  # a terabyte, of holes
        with pytest.raises(BadInput, match=r"has 1099511627776 bytes and should have \d+ at most"):
            store.load(path.parent)
    finally:
        path.unlink()
        path.write_bytes(whole)


def test_no_pickle_is_ever_loaded(folder, tmp_path):
    """A pickle that would write a file, in the place of each file that holds weights."""

    class Evil:
        def __reduce__(self):
            return Path.touch, (tmp_path / "pwned",)

    path = folder / "root" / SMALL.name / "seed-0"
    run = store.load(path)
    model, trainer = path / "model.safetensors", path.with_name("seed-1.unfinished") / "trainer.safetensors"
    whole = {file: file.read_bytes() for file in (model, trainer)}
    try:
        for file in whole:
            torch.save({"cell.heads.weight": Evil()}, file)
        for read in (lambda: store.load(path), lambda: store.network(run)):
            with pytest.raises(BadInput):
                read()
        with pytest.raises(BadInput):
            unfinished.begun(folder / "root", SMALL, 1)
    finally:
        for file, content in whole.items():
            file.write_bytes(content)
    assert not (tmp_path / "pwned").exists()


LINES = st.sampled_from(
    ["0 1 # #\t_ _ 1 0", "0\t", "\t", "_", "1 #\t_ 1", "#", "0 0", "\x0b", "é\té", "\ufeff"]
)


@given(st.binary(max_size=100) | st.text(max_size=60).map(lambda t: t.encode("utf-8", "replace"))
       | st.lists(LINES, max_size=5).map("\n".join).map(str.encode))  # fmt: skip
def test_a_file_of_examples(folder, content):
    task = tasks.find("reversal")
    path = folder / "mine.tsv"
    path.write_bytes(content)
    try:
        examples = read_tsv(path, task)
    except BadInput as error:
        assert str(path) in str(error)
    else:
        with (folder / "again.tsv").open("w", encoding="utf-8") as file:
            write_tsv(file, examples)
        assert read_tsv(folder / "again.tsv", task) == examples
    finally:
        path.unlink()
        (folder / "again.tsv").unlink(missing_ok=True)


def test_names_that_lead_out_of_the_root(folder, tmp_path):
    """A directory's name comes from its condition, never from what a file says."""
    root = tmp_path / "root"
    shutil.copytree(folder / "root", root)
    path = root / SMALL.name / "seed-0" / "result.json"
    path.write_text(path.read_text().replace(SMALL.name, "../../../outside"))
    before = tree(tmp_path)
    with pytest.raises(BadInput, match="of one trial and the result of another"):
        store.load(path.parent)
    assert tree(tmp_path) == before
