"""Submissions with any content are read or refused, and what is read is what was written."""

from __future__ import annotations

import json
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multimodal_eval.contests.shared_task.submitted_answers import read_answers, submitted_file
from multimodal_eval.core.errors import InputError
from multimodal_eval.core.sample import Sample

IDS = ("a", "b", "c")
SAMPLES = {id: Sample(id) for id in IDS}
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
shared_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)


@shared_folder
@given(st.fixed_dictionaries(dict.fromkeys(IDS, texts)), st.permutations(IDS))
def test_answers_are_read_as_they_were_written(tmp_path: Path, answers: dict[str, str], order: list[str]) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps({"id": id, "prediction": answers[id]}) + "\n" for id in order))
    composed = {id: normalize("NFC", answer) for id, answer in answers.items()}  # as all readers do
    assert read_answers(path, SAMPLES, 100).by_id == composed


@shared_folder
@given(
    st.lists(st.dictionaries(st.sampled_from(["id", "generated_answer", "error", "x"]), values), max_size=4),
    st.sampled_from([".jsonl", ".json"]),
)
def test_any_records_are_read_or_refused(tmp_path: Path, records: list[dict[str, object]], suffix: str) -> None:
    path = tmp_path / f"answers{suffix}"
    lines = [json.dumps(record) for record in records]
    path.write_text("\n".join(lines) if suffix == ".jsonl" else f"[{','.join(lines)}]")
    try:
        answers = read_answers(path, SAMPLES, 100)
    except InputError:
        return
    assert answers.by_id.keys() == SAMPLES.keys()


@shared_folder
@given(st.binary(max_size=200), st.sampled_from([".jsonl", ".json", ".csv", ".tsv", ".zip", ""]))
def test_any_bytes_are_refused(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"answers{suffix}"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read_answers(submitted_file(path, tmp_path, 1), SAMPLES, 100)


def test_the_limits_are_inclusive(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("id,answer\na,12345\nb,\nc,1\n")
    assert read_answers(path, SAMPLES, 5).by_id == {"a": "12345", "b": "", "c": "1"}
    with pytest.raises(InputError, match="5 characters, but at most 4 are allowed"):
        read_answers(path, SAMPLES, 4)
