"""CIDEr counts images: samples of one image count once, wherever they are in the run."""

from __future__ import annotations

import base64
import io
from collections import defaultdict
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.evaluation.metrics.cider import cider
from multimodal_eval.text.document_frequencies import DocumentFrequencies
from tests.parts import set_limit, set_part_size
from tests.run.comparison import state_bytes
from tests.run.stopping_executor import Given

CAPTION = st.lists(st.sampled_from("a b c d e f".split()), min_size=1, max_size=5).map(" ".join)
ROW = st.tuples(st.sampled_from([None, "x", "y", "z", "x.png", "ü", ""]), CAPTION, st.lists(CAPTION, max_size=3))


@pytest.fixture
def part_size(monkeypatch):
    def set_size(size, per_bucket=4):
        set_part_size(monkeypatch, size)
        set_limit(monkeypatch, "parts_per_bucket", per_bucket)

    return set_size


def samples_of(rows, **extra):
    return [
        Sample(id=str(number), generated_answer=answer, references=texts or None, image=image, **extra)
        for number, (image, answer, texts) in enumerate(rows)
    ]


def table_of(samples):
    """The same table, from one set of references per image."""
    sets = defaultdict(list)
    for number, sample in enumerate(samples):
        sets[sample.image or number] += sample.references or []
    return DocumentFrequencies.of(sets.values())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20)
@given(st.lists(ROW, min_size=2, max_size=14), st.randoms(use_true_random=False), st.integers(1, 6), st.integers(1, 3))
def test_the_table_depends_on_no_split_and_no_order(part_size, rows, random, size, per_bucket):
    samples = samples_of([("only", "k", ["k l m"]), *rows, ("another", "n", ["n o"])])
    expected = table_of(samples)
    part_size(1000)
    whole = evaluate(samples, metrics=["cider", "cider_d"], skip_lint=True)
    shuffled = random.sample(samples, len(samples))
    part_size(size, per_bucket)
    split = evaluate(shuffled, metrics=["cider", "cider_d"], skip_lint=True)
    assert state_bytes(split, "cider") == state_bytes(whole, "cider")
    assert split["cider"]["signature"] == whole["cider"]["signature"]
    assert f"df:corpus@{expected.digest[:8]}" in whole["cider"]["signature"]
    with_references = sum(bool(sample.references) for sample in samples)
    assert ("per:image" in whole["cider"]["signature"]) == (with_references > expected.images)
    first = {row["id"]: (row["cider"], row["cider_d"]) for row in whole.scores().to_pylist()}
    second = {row["id"]: (row["cider"], row["cider_d"]) for row in split.scores().to_pylist()}
    assert first == second


def test_values_of_shared_images_by_hand():
    # Three images, not four: "red" is in the references of 1 of 3 images, as all other words.
    samples = samples_of(
        [("1", "red dog", ["red dog"]), ("1", "red cat", ["red cat"]), ("2", "sky", ["sky"]), (None, "sea", ["sea"])]
    )
    run = evaluate(samples, metrics=["cider"])
    corpus = DocumentFrequencies.of([["red dog", "red cat"], ["sky"], ["sea"]])
    assert (corpus.images, corpus.count(["red"])) == (3, 1)
    expected = [cider(sample.generated_answer, sample.references, corpus) for sample in samples]
    assert run.scores().column("cider").to_pylist() == expected
    assert run["cider"]["signature"].endswith("|per:image|errors:default@2")


def test_different_images_leave_results_and_signature_as_they_were():
    rows = [
        (str(number), f"a {word} dog", [f"the {word} dog", "a dog"]) for number, word in enumerate("red big".split())
    ]
    with_images = evaluate(samples_of(rows), metrics=["cider"])
    without = evaluate(samples_of([(None, *row[1:]) for row in rows]), metrics=["cider"])
    assert state_bytes(with_images, "cider") == state_bytes(without, "cider")
    assert with_images["cider"] == without["cider"]
    assert "per:" not in without["cider"]["signature"]
    assert without["cider"]["signature"].startswith("cider|v:2|tokenizer:ptb|df:corpus@")


def test_a_column_can_name_the_image(part_size):
    images = ["7", "8", "7", "9", None, "8"]
    rows = [(image, f"w{number}", [f"w{number} and v{number}"]) for number, image in enumerate(images)]
    by_image = evaluate(samples_of(rows), metrics=["cider_d"])
    named = [
        Sample(
            id=s.id,
            generated_answer=s.generated_answer,
            references=s.references,
            metadata={"photo": s.image and int(s.image)},
        )
        for s in samples_of(rows)
    ]
    part_size(2, 1)
    run = evaluate(named, metrics=["cider_d"], options={"cider_d": {"image_key": "photo"}})
    assert state_bytes(run, "cider_d") == state_bytes(by_image, "cider_d")
    assert "image_key:photo" in run["cider_d"]["signature"]
    grouped = [
        Sample(id=s.id, generated_answer=s.generated_answer, references=s.references, group=s.image)
        for s in samples_of(rows)
    ]
    run = evaluate(grouped, metrics=["cider_d"], options={"cider_d": {"image_key": "group"}})
    assert state_bytes(run, "cider_d") == state_bytes(by_image, "cider_d")


@pytest.mark.parametrize("size", [2, 1000])
def test_a_column_that_no_sample_has_is_refused(part_size, size):
    part_size(size)
    samples = samples_of([("1", "a", ["a"]), ("2", "b", ["b"]), ("3", "c", ["c"])])
    with pytest.raises(ConfigError, match="'photo', and no sample has a value"):
        evaluate(samples, metrics=["cider"], options={"cider": {"image_key": "photo"}})
    with pytest.raises(ConfigError, match=r"must be one of the fields .* Got 'references'"):
        evaluate(samples, metrics=["cider"], options={"cider": {"image_key": "references"}})


def test_images_in_memory_are_the_same_if_their_bytes_are(part_size):
    from PIL import Image

    red, blue = (Image.new("RGB", (4, 4), colour) for colour in ("red", "blue"))
    buffer = io.BytesIO()
    blue.save(buffer, format="PNG")
    data = buffer.getvalue()
    uri = "data:image/png;base64," + base64.b64encode(data).decode()
    images = [red, data, uri, red.copy(), "red.png", data]  # three images: red, blue, red.png
    rows = [(image, f"w{number}", [f"w{number} and v{number}"]) for number, image in enumerate(images)]
    names = ["red", "blue", "blue", "red", "red.png", "blue"]
    expected = evaluate(
        samples_of([(name, *row[1:]) for name, row in zip(names, rows, strict=True)]), metrics=["cider"]
    )
    for size in (1000, 2):
        part_size(size, 1)
        assert state_bytes(evaluate(samples_of(rows), metrics=["cider"]), "cider") == state_bytes(expected, "cider")


def test_other_reference_fields_and_failed_answers_are_brought_together_too(part_size):
    rows = [("1", "a b", ["a b"]), ("2", "[ERROR] x", ["c"]), ("1", "d", ["e f"]), ("2", "[ERROR] y", ["g"])]
    expected = evaluate(samples_of(rows), metrics=["cider"])
    captions = [
        Sample(id=s.id, generated_answer=s.generated_answer, caption=(s.references or [None])[0], image=s.image)
        for s in samples_of(rows)
    ]
    part_size(1, 1)
    for samples in (samples_of(rows), captions):
        assert state_bytes(evaluate(samples, metrics=["cider"]), "cider") == state_bytes(expected, "cider")


def test_keys_with_the_same_hash_are_different_images(part_size, monkeypatch):
    import numpy as np

    from multimodal_eval.text import captions

    monkeypatch.setattr(captions, "text_hashes", lambda texts: np.full(len(texts), 5))
    rows = [(str(number % 3), f"w{number}", [f"w{number} v{number % 2}"]) for number in range(9)]
    expected = table_of(samples_of(rows)).digest[:8]
    for size in (1000, 2):
        part_size(size, 1)
        run = evaluate(samples_of(rows), metrics=["cider"], workers=1)
        assert f"corpus@{expected}" in run["cider"]["signature"]


def test_a_table_can_be_counted_by_image_in_python():
    table = DocumentFrequencies.of([["red dog"], ["red cat"], ["sky"], ["sea"]], images=[1, 1, None, None])
    assert table.digest == DocumentFrequencies.of([["red cat", "red dog"], ["sky"], ["sea"]]).digest
    assert (table.images, table.rows, table.is_shared) == (3, 4, True)
    assert table.settings["per"] == "image"
    assert DocumentFrequencies.from_bytes(table.to_bytes()) == table
    assert DocumentFrequencies.from_bytes(table.to_bytes()).settings == table.settings


def test_without_images_nothing_is_looked_for(part_size):
    class Recording:
        workers = 1

        def __init__(self):
            self.works = []

        def map(self, step, phase):
            if phase.items:
                self.works.append(f"{type(step).__name__}.{phase.work}")
            return map(getattr(step, phase.work), phase.items)

    def works(samples):
        recording = Recording()
        engine, output = Given(given=recording), f"memory://{uuid4().hex}"
        evaluate(samples, metrics=["cider"], skip_lint=True, output=output, engine=engine)
        return recording.works

    part_size(2, 1)
    rows = [(None, f"w{number}", [f"w{number} v"]) for number in range(6)]
    assert works(samples_of(rows)) == ["Fit.part", "Fit.merge", "Score.part"]
    different = [(str(number), *row[1:]) for number, row in enumerate(rows)]
    assert works(samples_of(different)) == ["Fit.keys", "Fit.shared", "Fit.part", "Fit.merge", "Score.part"]
    shared = [(str(number % 2), *row[1:]) for number, row in enumerate(rows)]
    assert works(samples_of(shared)) == [
        *("Fit.keys", "Fit.shared", "Fit.part", "Fit.moved", "Fit.merge", "Score.part")
    ]
