"""How a run is split into parts: by the number of samples and by the size of their media."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from multimodal_eval import Message, MessagePart, Sample, evaluate
from multimodal_eval.data.readers import parts
from multimodal_eval.data.readers.parts import parts_of
from tests.media.image_files import encoded, gradient


@given(st.lists(st.integers(0, 60), max_size=40), st.integers(1, 8))
def test_nothing_is_lost_and_no_part_is_too_large(sizes, most):
    samples = [Sample(id=str(row), image=b"x" * size) for row, size in enumerate(sizes)]
    before, parts.MEDIA_BYTES = parts.MEDIA_BYTES, 100
    try:
        split = list(parts_of(samples, most))
    finally:
        parts.MEDIA_BYTES = before
    assert [sample for part in split for sample in part] == samples
    for part in split:
        assert 1 <= len(part) <= most
        assert sum(len(sample.image) for sample in part[:-1]) < 100
    for part in split[:-1]:
        assert len(part) == most or sum(len(sample.image) for sample in part) >= 100


def test_every_kind_of_media_counts(monkeypatch):
    monkeypatch.setattr(parts, "MEDIA_BYTES", 1000)
    contents = [b"x" * 1000, "data:image/png;base64," + "x" * 1000, Image.new("RGB", (20, 20))]
    for media in contents:
        shown = [Message("user", [MessagePart("text", "x" * 2000), MessagePart("image", media)])]
        for sample in (
            Sample(id="1", image=media),
            Sample(id="1", audio=media),
            Sample(id="1", video=media),
            Sample(id="1", images=["one.png", media]),
            Sample(id="1", messages=shown),
        ):
            assert [len(part) for part in parts_of([sample, Sample(id="2"), Sample(id="3")], 9)] == [1, 2]
    assert [len(part) for part in parts_of([Sample(id="1", image="one.png")] * 3, 9)] == [3]
    text_only = Sample(id="1", messages=[Message("user", "x" * 2000)])
    assert [len(part) for part in parts_of([text_only] * 3, 9)] == [3]


def test_splitting_does_not_change_a_run(monkeypatch, tmp_path):
    uri = "data:image/png;base64," + base64.b64encode(encoded(gradient(40, 40))).decode()
    samples = [{"id": str(n), "image": uri, "generated_answer": f"a {n}", "references": ["a 1 b"]} for n in range(7)]
    whole = evaluate(samples, metrics=["rouge_l"])
    monkeypatch.setattr(parts, "MEDIA_BYTES", 2 * len(uri))
    split = evaluate(samples, metrics=["rouge_l"], output=tmp_path / "run")
    assert (whole.info.parts, split.info.parts) == ([7], [2, 2, 2, 1])
    assert dict(split["rouge_l"]) == dict(whole["rouge_l"])
