"""VQA annotations, questions and results, read as the datasets publish them."""

from __future__ import annotations

import gzip
import json

import pytest

from multimodal_eval import evaluate, resume
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from tests.edited_runs import write_json

HEAD = {"info": {"version": "2.0"}, "data_type": "mscoco", "license": {"name": "CC"}, "data_subtype": "val2014"}
NAMES = ("v2_mscoco_val2014_annotations.json", "v2_OpenEnded_mscoco_val2014_questions.json", "results.json")


def annotation(number, answers, kind="other", image=7):
    people = [{"answer": text, "answer_confidence": "yes", "answer_id": n} for n, text in enumerate(answers, 1)]
    types = {"question_type": "what is", "answer_type": kind, "multiple_choice_answer": answers[0]}
    return {"question_id": number, "image_id": image, "answers": people, **types}


ANNOTATIONS = [
    annotation(70, ["down"] * 7 + ["at table", "skateboard", "table"]),
    annotation(71, ["yes"] * 8 + ["no"] * 2, "yes/no"),
    annotation(90, ["yes"] * 8 + ["no"] * 2, "yes/no", image=9),
    annotation(91, ["down"] * 7 + ["at table", "skateboard", "table"], image=9),
]
QUESTIONS = [{"question_id": n, "image_id": n // 10, "question": f"What is {n}?"} for n in (70, 71, 90, 91)]
RESULTS = [{"question_id": n, "answer": text} for n, text in ((91, "Table"), (90, "no"), (71, "Yes."), (70, "down"))]


@pytest.fixture
def files(tmp_path):
    contents = ({**HEAD, "annotations": ANNOTATIONS}, {**HEAD, "questions": QUESTIONS}, RESULTS)
    for name, content in zip(NAMES, contents, strict=True):
        (tmp_path / name).write_text(json.dumps(content))
    return [tmp_path / name for name in NAMES]


def samples(*paths, **settings):
    problems = Problems()
    read = list(FileInput(*paths, **settings).samples(problems, Summary()))
    problems.raise_if_any()
    return read


def test_annotations_questions_and_results_become_samples(files):
    data, _, results = files
    first, *_, last = samples(data, results)
    assert (first.id, first.generated_answer, first.question) == ("70", "down", "What is 70?")
    assert first.references == ["down"] * 7 + ["at table", "skateboard", "table"]  # repeats are different people
    assert (first.group, first.image) == ("7", "COCO_val2014_000000000007.jpg")
    assert first.metadata == {"question_type": "what is", "answer_type": "other", "multiple_choice_answer": "down"}
    assert (last.id, last.generated_answer, last.question) == ("91", "Table", "What is 91?")


def test_the_accuracy_is_that_of_the_vqa_evaluation(files):
    run = evaluate(files[0], files[2], by=["answer_type", "question_type"])
    assert run.metrics == ["vqa_accuracy", "exact_match"]
    # down: 7 of 10 people, so 1; yes: 8, so 1; no: (2 * 1/3 + 8 * 2/3) / 10 = 0.6; table: 9 * 1/3 / 10 = 0.3
    assert run.scores().column("vqa_accuracy").to_pylist() == pytest.approx([1.0, 1.0, 0.6, 0.3])
    assert run["vqa_accuracy"]["value"] == pytest.approx(0.725)
    assert run["exact_match"]["value"] == 0.75  # "Yes." keeps its full stop
    slices = run.results["slices"]["answer_type"]
    assert slices["other"]["metrics"]["vqa_accuracy"]["value"] == pytest.approx(0.65)
    assert slices["yes/no"]["metrics"]["vqa_accuracy"]["value"] == pytest.approx(0.8)
    assert [file.path for file in run.info.input] == [str(path) for path in files]


@pytest.mark.parametrize("name", ["questions.json", "other/questions.json"])
def test_questions_may_be_in_any_file(files, tmp_path, name):
    target = tmp_path / name
    target.parent.mkdir(exist_ok=True)
    files[1].rename(target)
    assert samples(files[0], files[2])[0].question is None
    assert samples(files[0], files[2], questions=target)[0].question == "What is 70?"


def test_questions_with_the_plain_name_are_found(files, tmp_path):
    (tmp_path / "set").mkdir()
    data = files[0].rename(tmp_path / "set" / "annotations.json")
    files[1].rename(tmp_path / "set" / "questions.json")
    assert samples(data, files[2])[0].question == "What is 70?"


def test_questions_without_annotations_are_data(files):
    first = samples(files[1], files[2])[0]
    assert (first.id, first.question, first.generated_answer, first.references) == ("70", "What is 70?", "down", None)


def test_results_may_be_lines_or_have_our_names(files, tmp_path):
    lines = tmp_path / "results.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in RESULTS))
    ours = tmp_path / "ours.json"
    ours.write_text(json.dumps([{"id": row["question_id"], "prediction": row["answer"]} for row in RESULTS]))
    expected = samples(files[0], files[2])
    assert samples(files[0], lines) == expected
    assert samples(files[0], ours) == expected
    mapped = tmp_path / "mapped.json"
    mapped.write_text(json.dumps([{"question_id": row["question_id"], "out": row["answer"]} for row in RESULTS]))
    assert samples(files[0], mapped, columns={"generated_answer": ("out",)}) == expected


def test_results_for_other_data(files, tmp_path):
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps({"id": n, "expected_answer": "down"}) + "\n" for n in (70, 71, 90, 91)))
    assert [sample.generated_answer for sample in samples(data, files[2])] == ["down", "Yes.", "no", "Table"]


def test_compressed_files(files, tmp_path):
    packed = tmp_path / "packed"
    packed.mkdir()
    for path in files:
        (packed / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert samples(packed / f"{NAMES[0]}.gz", packed / f"{NAMES[2]}.gz") == samples(files[0], files[2])


def test_answers_may_be_plain_texts_and_other_images_have_no_file(files):
    plain = [{**item, "answers": [answer["answer"] for answer in item["answers"]]} for item in ANNOTATIONS]
    files[0].write_text(json.dumps({"annotations": plain}))
    files[1].write_text(json.dumps({"questions": [{"question_id": 70, "question": "?"}]}))
    read = samples(files[0], files[2])
    assert read[0].references == ["down"] * 7 + ["at table", "skateboard", "table"]
    assert (read[0].image, read[0].question, read[1].question) == (None, "?", None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answers": "yes"}, r"annotations\[0\].answers must be a list of"),
        ({"answers": [{"text": "yes"}]}, r"annotations\[0\].answers must be a list of"),
        ({"answers": [{"answer": 2}]}, r"annotations\[0\].answers must be a list of"),
        ({"question_id": None}, "has no `id`"),
        ({"question_id": 71}, "the id occurs twice"),
        ({"question_id": 5}, "have no prediction"),
    ],
)
def test_bad_annotations_are_refused(files, change, message):
    changed = [{**ANNOTATIONS[0], **change}, *ANNOTATIONS[1:]]
    files[0].write_text(json.dumps({**HEAD, "annotations": changed}))
    with pytest.raises(InputError, match=message):
        samples(files[0], files[2])


@pytest.mark.parametrize("content", ['{"annotations": {"question_id": 1}}', '{"annotations": ["question_id"]}'])
def test_other_objects_are_refused(files, content):
    files[0].write_text(content)
    with pytest.raises(InputError, match="must be an object with"):
        samples(files[0], files[2])


def test_questions_of_other_annotations_are_refused(files):
    files[1].write_text(json.dumps({"questions": [{"question_id": 1, "question": "?"}]}))
    with pytest.raises(InputError, match="no question has the `question_id` of an annotation"):
        samples(files[0], files[2])


def test_questions_need_vqa_annotations(files, tmp_path):
    lines = tmp_path / "data.jsonl"
    lines.write_text('{"id": 1}\n')
    with pytest.raises(ConfigError, match=r"belong to one file of VQA annotations, but .*data.jsonl is other data"):
        samples(lines, questions=files[1])
    with pytest.raises(ConfigError, match=r"results.json is not a file of VQA questions"):
        samples(files[0], questions=files[2])
    with pytest.raises(InputError, match="no such file"):
        samples(files[0], questions=tmp_path / "absent.json")
    with pytest.raises(ConfigError, match="samples in memory have the field `question`"):
        evaluate([{"id": "1"}], metrics=["exact_match"], questions="q.json")


def test_a_run_that_was_interrupted_while_reading_finds_the_questions_again(files, tmp_path, monkeypatch):
    questions = files[1].rename(tmp_path / "q.json")
    monkeypatch.chdir(tmp_path)
    run = evaluate(files[0], files[2], questions="q.json", output=tmp_path / "run")
    info = json.loads((run.path / "run.json").read_text())
    assert info["config"]["questions"] == str(questions)
    write_json(run.path / "run.json", {**info, "state": "reading", "finished": None, "parts": [], "signatures": {}})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = resume(run.path)
    assert [sample.question for sample in again.samples()] == [f"What is {n}?" for n in (70, 71, 90, 91)]
