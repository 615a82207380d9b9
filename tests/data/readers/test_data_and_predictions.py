"""What comes from which of two joined files: nobody brings their own references in a file of predictions."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.errors import NothingScoredError
from multimodal_eval.core.sample import FIELDS, PREDICTED_FIELDS, PREDICTED_METADATA, Box, Sample
from tests.data.readers.reading import read

ROOT = Path(__file__).parents[3]
BOTH = ("id", "metadata")
# A valid value of every field.
VALUES = {
    **dict.fromkeys(FIELDS, "x"),
    **{"references": ["x"], "choices": ["x", "y"], "images": ["x.png"], "boxes": [[0, 0, 1, 1]]},
    **{"messages": [{"role": "user", "content": "x"}], "annotations": {"ann": "x"}, "metadata": {"k": "x"}},
    **{"relevant": True, "perplexity": 2.0, "logprobs": [-1.0], "epoch": 1},
}


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def joined(tmp_path):
    """The samples and notes of some data and predictions; a problem is an error."""

    def join(data, predictions, **settings):
        files = write(tmp_path / "data.jsonl", data), write(tmp_path / "predictions.jsonl", predictions)
        samples, problems, summary = read(*files, **settings)
        assert [str(problem) for problem in problems.kept] == []
        assert summary.metadata == {name for sample in samples for name in sample.metadata}
        return samples, [note.replace(f"{tmp_path}/", "") for note in summary.notes]

    return join


def not_used(counts, hint=None):
    named = "" if hint is None else f". To use it anyway: --map {hint}"
    return f"columns of predictions.jsonl are not used, because they belong to DATA: {counts}{named}"


def kept(counts):
    return f"columns of predictions.jsonl are kept as metadata: {counts}"


def test_the_documented_sides_are_those_of_the_code():
    text = (ROOT / "docs" / "input.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]+`) \|.*\| (DATA|PREDICTIONS|both) \|$", text, re.MULTILINE)
    documented = [(name, side) for names, side in rows for name in re.findall(r"`(\w+)`", names)]
    assert len(documented) == len(FIELDS)
    assert dict(documented) == {
        name: "both" if name in BOTH else "PREDICTIONS" if name in PREDICTED_FIELDS else "DATA" for name in FIELDS
    }
    (listed,) = re.findall(r"answers keep their names: ([^.]+)\.", text)
    assert tuple(re.findall(r"`(\w+)`", listed)) == PREDICTED_METADATA


@pytest.mark.parametrize("field", [name for name in FIELDS if name not in BOTH])
def test_a_field_comes_from_the_file_that_it_belongs_to(joined, field):
    rows = [{"id": "a", "prediction": "p"}, {"id": "b", "prediction": "p", field: VALUES[field]}]
    if field == "generated_answer":
        del rows[1]["prediction"]
    samples, notes = joined([{"id": "a"}, {"id": "b"}], rows)
    if field in PREDICTED_FIELDS:
        assert getattr(samples[1], field) == VALUES[field]
        assert notes == []
    elif field == "boxes":
        assert samples[1] == Sample(id="b", generated_answer="p", metadata={"predictions.boxes": VALUES["boxes"]})
        assert notes == [kept("predictions.boxes (1 of 2 samples)")]
    else:
        assert samples[1] == Sample(id="b", generated_answer="p")
        assert notes == [not_used(f"{field} (1 of 2 samples)", f"{field}={field}")]


def test_a_caption_beside_the_answers_is_not_a_reference(tmp_path):
    data = write(tmp_path / "d.jsonl", [{"id": i, "references": [f"{i}"]} for i in range(4)])
    answers = [{"id": i, "response": f"{i % 2}", "caption": f"{i % 2}"} for i in range(4)]
    predictions = write(tmp_path / "p.jsonl", answers)
    run = evaluate(data, predictions, metrics=["exact_match"])
    assert run.entries["exact_match"].value == 2 / 4  # only 0 and 1 are right
    assert f"columns of {predictions} are not used" in str(run.info.input_notes)
    named = evaluate(data, predictions, metrics=["exact_match"], map={"caption": "caption"})
    assert named.entries["exact_match"].value == 1


def test_a_gap_in_the_data_is_not_filled(joined):
    data = [{"id": "a", "caption": "gold"}, {"id": "b"}]
    predictions = [{"id": "a", "prediction": "x", "caption": "gold"}, {"id": "b", "prediction": "x", "caption": "x"}]
    for columns in ({}, {"caption": "caption"}):  # the data have the column, so it is theirs
        samples, notes = joined(data, predictions, **columns)
        assert [sample.caption for sample in samples] == ["gold", None]
        assert notes == [not_used("caption (1 of 2 samples)")]


@pytest.mark.parametrize("column", ["refs", "references"])
def test_a_map_for_the_data_does_not_open_the_predictions(joined, column):
    data = [{"id": "a", "refs": ["gold"]}, {"id": "b"}]
    samples, notes = joined(data, [{"id": "b", "prediction": "x", column: ["x"]}, {"id": "a"}], references="refs")
    assert [sample.references for sample in samples] == [["gold"], None]
    assert notes == [not_used("references (1 of 2 samples)")]


def test_a_map_may_name_a_column_of_the_predictions(joined):
    predictions = [{"id": "a", "prediction": "x", "gold": ["y"], "caption": "z"}]
    (sample,), notes = joined([{"id": "a"}], predictions, references="gold")
    assert sample == Sample(id="a", generated_answer="x", references=["y"])
    assert notes == [not_used("caption (1 of 1 samples)", "caption=caption")]


def test_an_empty_map_keeps_the_column_as_metadata(joined):
    (sample,), notes = joined([{"id": "a"}], [{"id": "a", "prediction": "x", "caption": "y"}], caption="")
    assert sample == Sample(id="a", generated_answer="x", metadata={"predictions.caption": "y"})
    assert notes == [kept("predictions.caption (1 of 1 samples)")]


def test_other_columns_are_metadata_of_the_predictions(joined):
    data = [{"id": "a", "objects": ["dog"], "split": "val"}, {"id": "b", "split": "val"}]
    answer = {"prediction": "x", "objects": ["cat"], "split": "val", "input_tokens": 3, "metadata": {"model": "m"}}
    samples, notes = joined(data, [{"id": "a", **answer}, {"id": "b", **answer}])
    added = {"input_tokens": 3, "predictions.objects": ["cat"], "predictions.model": "m"}
    assert samples[0].metadata == {"objects": ["dog"], "split": "val", **added}
    assert samples[1].metadata == {"split": "val", **added}
    assert notes == [kept("predictions.model (2 of 2 samples), predictions.objects (2 of 2 samples)")]


def test_data_keep_a_column_that_is_named_like_one_of_the_predictions(joined):
    (sample,), _ = joined([{"id": "a", "predictions.k": 1}], [{"id": "a", "prediction": "x", "k": 2}])
    assert sample.metadata == {"predictions.k": 1}


def test_many_columns_are_counted(joined):
    more = {f"k{number:02d}": number for number in range(30)}
    _, (note,) = joined([{"id": "a"}], [{"id": "a", "prediction": "x", **more}])
    assert note.endswith("predictions.k09 (1 of 1 samples), … (30 in total)")


def test_predictions_without_data_bring_no_references(tmp_path):
    data = write(tmp_path / "d.jsonl", [{"id": "a", "references": ["x"]}])
    extra = {"id": "z", "prediction": "y", "references": ["y"], "objects": ["y"]}
    predictions = write(tmp_path / "p.jsonl", [{"id": "a", "prediction": "x"}, extra])
    samples, problems, _ = read(data, predictions, allow_partial=True)
    assert problems.kept == []
    assert samples[1] == Sample(id="z", generated_answer="y", metadata={"predictions.objects": ["y"]})


def test_predicted_boxes_are_compared_with_nothing(joined):
    data, predictions = [{"id": "a", "boxes": [[0, 0, 1, 1]]}], [{"id": "a", "prediction": "x", "boxes": "0 0 2 2"}]
    (sample,), _ = joined(data, predictions)
    assert sample.boxes == [Box((0, 0, 1, 1))]
    assert sample.metadata == {"predictions.boxes": "0 0 2 2"}


def test_a_contradiction_is_refused_and_says_whose_field_it_is(tmp_path):
    data = write(tmp_path / "d.jsonl", [{"id": "a", "question": "who?"}])
    _, problems, _ = read(data, write(tmp_path / "p.jsonl", [{"id": "a", "prediction": "x", "question": "what?"}]))
    (problem,) = problems.kept
    assert (problem.code, problem.hint) == (
        "CONFLICT",
        "It belongs to the data: the predictions need no such column.",
    )


COCO = {"annotations": [{"image_id": 1, "id": 1, "caption": "a dog"}, {"image_id": 2, "id": 2, "caption": "a cat"}]}
VQA = {"annotations": [{"question_id": 1, "image_id": 3, "answers": ["yes"]}]}


def test_results_of_coco_and_vqa_bring_no_references(tmp_path):
    more = {"expected_answer": "x", "objects": ["x"], "boxes": [[0, 0, 1, 1]]}
    (tmp_path / "coco.json").write_text(json.dumps(COCO))
    results = [{"image_id": number, "caption": "x", **more} for number in (1, 2)]
    (tmp_path / "results.json").write_text(json.dumps(results))
    samples, problems, summary = read(tmp_path / "coco.json", tmp_path / "results.json")
    assert problems.kept == []
    assert [sample.reference_texts for sample in samples] == [["a dog"], ["a cat"]]
    assert "expected_answer (2 of 2 samples)" in summary.notes[0]
    (tmp_path / "vqa.json").write_text(json.dumps(VQA))
    (tmp_path / "results.json").write_text(json.dumps([{"question_id": 1, "answer": "no", "caption": "no"}]))
    (sample,), problems, summary = read(tmp_path / "vqa.json", tmp_path / "results.json")
    assert problems.kept == []
    assert (sample.generated_answer, sample.reference_texts) == ("no", ["yes"])
    assert "caption (1 of 1 samples)" in summary.notes[0]


def test_annotators_are_those_of_the_data(tmp_path):
    run = evaluate(
        write(tmp_path / "d.jsonl", [{"id": "a", "ann1": "yes", "ann2": "no"}, {"id": "b"}]),
        write(tmp_path / "p.jsonl", [{"id": i, "prediction": "yes", "ann3": "yes"} for i in "b"] + [{"id": "a"}]),
        metrics=["f1_any_match"],
        annotators=["ann*"],
        labels=["yes", "no"],
        allow_empty=True,
    )
    assert [sample.annotations for sample in run.samples()] == [{"ann1": "yes", "ann2": "no"}, None]
    assert "annotations (1 of 2 samples)" in str(run.info.input_notes)


def test_a_metric_without_references_says_that_a_column_was_not_used(tmp_path):
    data = write(tmp_path / "d.jsonl", [{"id": "a", "question": "who?"}])
    predictions = write(tmp_path / "p.jsonl", [{"id": "a", "prediction": "x", "references": ["x"]}])
    with pytest.raises(NothingScoredError) as refused:
        evaluate(data, predictions, metrics=["exact_match"])
    message = str(refused.value)
    assert "no sample has `references`" in message
    assert "references (1 of 1 samples). To use it anyway: --map references=references" in message
    predictions = write(tmp_path / "p.jsonl", [{"id": "a", "text": "x"}])
    with pytest.raises(NothingScoredError, match="--map generated_answer=text"):
        evaluate(write(tmp_path / "d.jsonl", [{"id": "a", "caption": "x"}]), predictions, metrics=["exact_match"])
