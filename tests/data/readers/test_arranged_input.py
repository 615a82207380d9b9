"""Inputs in the order of drawing, and with epochs."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.data.readers import parts
from multimodal_eval.data.readers.arranged_input import ArrangedInput, Draw, epoch_id, sample_id
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.memory_input import MemoryInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.data.runs.sample_table import to_samples


def samples(count, **fields):
    return [Sample(id=f"s{number}", question=f"q{number}", **fields) for number in range(count)]


def read(source, most=4, limit=None):
    """The samples of all parts, the sizes of the parts, and the summary."""
    problems, summary = Problems(), Summary()
    tables, first = [], 0
    for part in source.parts(problems, summary, most, limit):
        tables.append(part.table(first))
        assert tables[-1].column("row").to_pylist() == list(range(first, first + len(part)))
        assert list(part.samples(["question"])) == to_samples(tables[-1])
        first += len(part)
    problems.raise_if_any()
    return [sample for table in tables for sample in to_samples(table)], [len(table) for table in tables], summary


def test_drawn_in_the_order_of_the_hashes():
    names = [f"s{number}" for number in range(50)]
    expected = sorted(names, key=lambda name: hashlib.sha256(f"drawn\0003\0{name}".encode()).hexdigest())
    drawn, sizes, summary = read(ArrangedInput(MemoryInput(samples(50)), draw=Draw(3)), most=20)
    assert [sample.id for sample in drawn] == expected
    assert [sample.question for sample in drawn] == [name.replace("s", "q") for name in expected]
    assert sizes == [20, 20, 10]
    assert summary.samples == 50


def test_the_order_does_not_depend_on_the_file():
    forwards, _, _ = read(ArrangedInput(MemoryInput(samples(30)), draw=Draw(0)))
    backwards, _, _ = read(ArrangedInput(MemoryInput(samples(30)[::-1]), draw=Draw(0)))
    assert forwards == backwards


def test_another_seed_is_another_order():
    first, _, _ = read(ArrangedInput(MemoryInput(samples(30)), draw=Draw(0)))
    second, _, _ = read(ArrangedInput(MemoryInput(samples(30)), draw=Draw(1)))
    assert first != second
    assert sorted(sample.id for sample in first) == sorted(sample.id for sample in second)


def test_some_samples_first_in_an_order_of_their_own():
    first = frozenset(f"s{number}" for number in range(0, 30, 3))
    drawn, _, _ = read(ArrangedInput(MemoryInput(samples(30)), draw=Draw(0, first)))
    names = [sample.id for sample in drawn]
    assert set(names[:10]) == first
    plain, _, _ = read(ArrangedInput(MemoryInput(samples(30)), draw=Draw(0)))
    same_order = [sample.id for sample in plain if sample.id in first]
    assert names[:10] != same_order  # in which the other run may have stopped


def test_epochs_follow_each_other_in_one_group():
    data = [Sample(id="a", question="q"), Sample(id="b", group="image")]
    repeated, sizes, summary = read(ArrangedInput(MemoryInput(data), epochs=3))
    assert [(sample.id, sample.group, sample.epoch) for sample in repeated] == [
        *(("a#1", "a", 1), ("a#2", "a", 2), ("a#3", "a", 3)),
        *(("b#1", "image", 1), ("b#2", "image", 2), ("b#3", "image", 3)),
    ]
    assert sizes == [4, 2]
    assert summary.samples == 6


def test_epochs_of_drawn_samples_stay_together():
    repeated, _, _ = read(ArrangedInput(MemoryInput(samples(10)), epochs=2, draw=Draw(0)))
    drawn, _, _ = read(ArrangedInput(MemoryInput(samples(10)), draw=Draw(0)))
    assert [sample.id for sample in repeated] == [f"{sample.id}#{e}" for sample in drawn for e in (1, 2)]


@pytest.mark.parametrize("rows", [1, 4, 7, 12, 20])
@pytest.mark.parametrize("draw", [None, Draw(0)])
def test_a_run_that_stopped_has_the_same_first_parts(rows, draw):
    whole, sizes, _ = read(ArrangedInput(MemoryInput(samples(10)), epochs=2, draw=draw), most=6)
    stopped, first_sizes, _ = read(ArrangedInput(MemoryInput(samples(10)), 2, draw, rows), most=6)
    assert stopped == whole[:rows]
    assert first_sizes[:-1] == sizes[: len(first_sizes) - 1]


@given(st.text(max_size=5), st.integers(1, 20))
def test_the_id_of_an_epoch_names_its_sample(name, epoch):
    assert sample_id(epoch_id(name, epoch)) == name


def test_a_limit_counts_samples_of_the_file(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps({"id": f"s{number}", "question": "q"}) + "\n" for number in range(9)))
    source = ArrangedInput(FileInput(path), epochs=2, draw=Draw(0))
    repeated, _, summary = read(source, limit=3)
    assert {sample_id(sample.id) for sample in repeated} == {"s0", "s1", "s2"}
    assert summary.samples == 6
    assert [file.path for file in source.describe()] == [str(path)]
    assert source.recipe() == FileInput(path).recipe()
    assert list(source.places())[:3] == [(str(path), 1, "s0#1"), (str(path), 1, "s0#2"), (str(path), 2, "s1#1")]


def test_parts_with_large_media_have_fewer_rows(monkeypatch):
    monkeypatch.setattr(parts, "MEDIA_BYTES", 5000)
    data = [Sample(id=f"s{number}", image=bytes(1000)) for number in range(12)]
    drawn, sizes, _ = read(ArrangedInput(MemoryInput(data), draw=Draw(0)), most=100)
    assert max(sizes) <= 5
    assert sum(sizes) == len({sample.id for sample in drawn}) == 12


def test_samples_with_epochs_are_not_repeated():
    source = ArrangedInput(MemoryInput([Sample(id="a", epoch=2)]), epochs=2)
    with pytest.raises(ConfigError, match="have an `epoch` already"):
        read(source)


def test_problems_of_the_file_are_reported(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"id": "a"}\n{"id": "a"}\n')
    problems = Problems()
    list(ArrangedInput(FileInput(path), draw=Draw(0)).parts(problems, Summary(), 10))
    assert problems.total
