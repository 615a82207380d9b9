"""Logs of inspect_ai. The fixtures were written by inspect_ai itself; their README says how."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import InputError
from multimodal_eval.data.logs.inspect_eval import FORMAT
from multimodal_eval.data.logs.inspect_samples import score_values
from multimodal_eval.data.logs.recognised import recognised
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.run.evaluate import evaluate
from multimodal_eval.run.import_log import import_log
from tests.data.logs.zip_files import ZSTD, Entry, write_zip

LOGS = Path(__file__).parent / "fixtures" / "inspect"
HEADER = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m", "config": {"epochs": 1}}}
SAMPLE = {
    "id": 1,
    "epoch": 1,
    "input": "What?",
    "target": "x",
    "output": {"completion": "x", "choices": [{"message": {"content": "x"}, "stop_reason": "stop"}]},
    "scores": {"match": {"value": "C"}},
    "events": [{"event": "model"}],
}


def records(path):
    problems = Problems()
    found = [record for _, record in FORMAT.records(path, problems)]
    assert not problems.kept
    return found


def samples(path):
    problems = Problems()
    found = list(FileInput(path).samples(problems, Summary()))
    assert not problems.kept
    return found


def problems_of(path):
    problems = Problems()
    list(FORMAT.records(path, problems))
    return [(problem.code, problem.message, problem.line) for problem in problems.kept]


def log(folder, *changes, header=HEADER, form="eval"):
    """A log whose samples are SAMPLE with some fields changed. NaN is written as inspect_ai writes it."""
    items = [{**SAMPLE, "id": number, **change} for number, change in enumerate(changes, 1)]
    if form == "json":
        path = folder / "log.json"
        path.write_text(json.dumps({**header, "samples": items}))
        return path
    entries = [Entry(f"samples/{item['id']}_epoch_{item['epoch']}.json", json.dumps(item).encode()) for item in items]
    entries = [Entry("_journal/start.json", json.dumps(header).encode()), *entries]
    return write_zip(folder / "log.eval", [*entries, Entry("header.json", json.dumps(header).encode())])


def first(path):
    return records(path)[0]


@pytest.mark.parametrize("path", sorted(LOGS.glob("*.*[!md]")), ids=lambda path: path.name)
def test_logs_are_recognised_by_their_content(path, tmp_path):
    assert recognised(path) is FORMAT
    other = shutil.copy(path, tmp_path / f"renamed{path.suffix}")
    assert recognised(Path(other)) is FORMAT


@pytest.mark.parametrize(
    "content",
    [b'{"version": 2}', b'[{"version": 2, "status": "success", "eval": {}}]', b'{"eval": {"a": 1}, "samples": []}'],
)
def test_other_json_is_not_a_log(tmp_path, content):
    (tmp_path / "x.json").write_bytes(content)
    assert recognised(tmp_path / "x.json") is None


def test_other_zip_files_are_not_logs(tmp_path):
    assert recognised(write_zip(tmp_path / "x.eval", [Entry("word/document.xml")])) is None


def test_epochs_are_samples_of_a_group():
    found = samples(LOGS / "epochs.eval")
    assert [sample.id for sample in found[:7]] == ["1#1", "2#1", "3#1", "4#1", "5#1", "6#1", "1#2"]
    assert [(sample.group, sample.epoch) for sample in found[5:8]] == [("6", 1), ("1", 2), ("2", 2)]
    assert len(found) == 18
    assert found[0].question == "Repeat the word w1"
    assert found[0].expected_answer == "w1"
    assert found[0].generated_answer == "w1"
    assert found[0].metadata["level"] == 1


def test_every_scorer_is_a_column():
    values = samples(LOGS / "epochs.eval")[1].metadata
    # The answer is "I do not know" and the target "w2": 4 words, and 2 of 13 characters.
    assert values["inspect.match"] == 0.0
    assert values["inspect.graded"] == pytest.approx(0.077)
    assert values["inspect.lengths_words"] == 4.0
    assert values["inspect.lengths_share"] == pytest.approx(2 / 13)
    assert values["answer.graded"] == "I do not k"
    assert values["input_tokens"] == 4
    assert values["output_tokens"] == 3


def test_samples_that_failed_have_no_answer_and_no_score():
    failed = samples(LOGS / "epochs.eval")[5]
    assert failed.generated_answer is None
    assert failed.error == "ValueError('the model is not available')"
    assert not any(key.startswith("inspect.") for key in failed.metadata)


def test_a_score_that_is_nan_is_missing():
    unscored = samples(LOGS / "epochs.eval")[3]
    assert unscored.generated_answer == "w4"
    assert "inspect.graded" not in unscored.metadata
    assert unscored.metadata["reason.graded"] == "parse_error"
    assert unscored.metadata["inspect.match"] == 1.0


def test_choices_and_their_letters():
    one = next(sample for sample in samples(LOGS / "choices.eval") if sample.id == "two")
    assert one.choices == ["1", "2", "3"]
    assert one.expected_answer == "B"
    assert one.metadata["answer.choice"] == "B"
    assert one.metadata["metadata.id"] == 7  # a key of the sample's metadata, not its id
    assert one.metadata["tags"] == ["x"]


def test_images_are_attachments():
    found = samples(LOGS / "images.eval")
    assert all(sample.image.startswith("data:image/png;base64,iVBORw0KGgo") for sample in found)
    assert found[0].question == "What do you think?"
    assert found[0].references == ["blue", "navy"]
    assert [message.role for message in found[0].messages] == ["system", "user"]
    assert [part.type for part in found[0].messages[1].parts] == ["image", "text"]
    assert found[0].generated_answer == "blue"
    assert found[0].metadata["reasoning"] == "Step by step."


def test_answers_that_were_stopped():
    filtered, cut = samples(LOGS / "images.eval")[1:3]
    assert filtered.error == "filtered: the endpoint's content filter stopped the answer"
    assert filtered.generated_answer is None
    assert cut.generated_answer == "This answer is cut"
    assert cut.error is None
    assert cut.metadata["stop_reason"] == "max_tokens"


def test_both_forms_of_a_log_have_the_same_samples():
    assert records(LOGS / "images.eval") == records(LOGS / "images.json")
    assert FORMAT.info(LOGS / "images.eval") == FORMAT.info(LOGS / "images.json")


def test_info_has_the_means_of_the_log():
    info = FORMAT.info(LOGS / "epochs.eval")
    assert (info.harness, info.version, info.model, info.task) == ("inspect", "0.3.285", "mockllm/model", "repeat")
    scores = {score.column: score for score in info.scores}
    assert list(scores) == ["inspect.match", "inspect.graded", "inspect.lengths_words", "inspect.lengths_share"]
    assert scores["inspect.match"].own_mean == pytest.approx(2 / 3)
    assert (scores["inspect.match"].low, scores["inspect.match"].high) == (0, 1)
    assert scores["inspect.graded"].low is None
    # Samples have 3, 3, 3, 1 and 3 scored epochs: the mean of the means of w1, w2, w3, w4 and w5.
    means = [(0.5 + 0.5 + 0.077) / 3, (0.077 + 0.077 + 0.5) / 3, 0.5, 0.077, (0.5 + 0.5 + 0.077) / 3]
    assert scores["inspect.graded"].own_mean == pytest.approx(sum(means) / 5)
    assert "mean of every sample's mean" in scores["inspect.graded"].aggregation
    assert scores["inspect.match"].aggregation is None
    assert info.notes[0] == "match: accuracy over epochs by pass_at_2 is 0.9333 in the log"


@pytest.mark.parametrize("name", ["epochs.eval", "choices.eval", "images.eval", "images.json"])
def test_an_imported_mean_is_that_of_the_log_or_explained(tmp_path, name):
    imported = import_log(LOGS / name, output=tmp_path / "run")
    aggregations = {score.column: score.aggregation for score in imported.logs[0].scores}
    assert imported.means
    for mean in imported.means:
        assert mean.is_equal == (aggregations[mean.metric] is None), mean


def test_scores_of_failures_explain_a_difference():
    # The filtered answer is incorrect for inspect_ai (1 of 4 is correct), and unscored here (1 of 3).
    includes, graded = FORMAT.info(LOGS / "images.eval").scores
    assert includes.own_mean == 0.25
    assert (
        includes.aggregation == "the mean in the log includes the scores of 1 sample without an answer, unscored here"
    )
    assert graded.aggregation is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((letter, {"inspect.s": number}) for letter, number in (("C", 1.0), ("P", 0.5), ("I", 0.0), ("N", 0.0))),
        *((value, {"inspect.s": float(value)}) for value in (3, 0.25, True, False, -1)),
        *((text, {"inspect.s": number}) for text, number in (("yes", 1.0), ("No", 0.0), ("TRUE", 1.0), ("false", 0.0))),
        *((text, {"inspect.s": number}) for text, number in (("0.5", 0.5), ("-3", -3.0), ("1e3", 1000.0), (".5", 0.5))),
        *((text, {"inspect.s": None}) for text in ("red", "", "c", "1e999", "nan", "inf", "1 2", "١", "9" * 500)),
        (None, {"inspect.s": None}),
        (10**400, {"inspect.s": None}),
        ([1, "C", None], {"inspect.s_1": 1.0, "inspect.s_2": 1.0, "inspect.s_3": None}),
        ({"a": "I", "b c": 2, "d": {}}, {"inspect.s_a": 0.0, "inspect.s_b_c": 2.0, "inspect.s_d": None}),
    ],
)
def test_values_of_scores(value, expected):
    assert {column: number for column, number, _ in score_values("s", value)} == expected


@pytest.mark.property
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda x: st.lists(x), max_leaves=5
    )
)
def test_every_number_of_a_score_is_finite(value):
    for _, number, _ in score_values("s", value):
        assert number is None or abs(number) < float("inf")


@pytest.mark.parametrize("form", ["eval", "json"])
class TestVariants:
    def test_values_that_are_not_numbers_are_kept_as_text(self, tmp_path, form):
        scores = {"colour": {"value": "red"}, "match": {"value": "C"}}
        record = first(log(tmp_path, {"scores": scores}, form=form))
        assert record["value.colour"] == "red"
        assert "inspect.colour" not in record

    def test_text_counted_as_zero_explains_a_difference(self, tmp_path, form):
        results = {"scores": [{"name": "s", "scorer": "s", "metrics": {"mean": {"value": 0.5}}}]}
        path = log(
            tmp_path,
            {"scores": {"s": {"value": 1}}},
            {"scores": {"s": {"value": "?"}}},
            header={**HEADER, "results": results},
            form=form,
        )
        (score,) = FORMAT.info(path).scores
        assert score.aggregation == "the mean in the log counts 1 value that is not a number as 0"

    def test_metadata_of_several_types_are_several_columns(self, tmp_path, form):
        changes = [{"metadata": {"level": value, "stop_reason": 1}} for value in (1, "two", 3.5, None, ["four"], True)]
        found = samples(log(tmp_path, *changes, form=form))
        assert [{key: value for key, value in sample.metadata.items() if "level" in key} for sample in found] == [
            {"level": 1},
            {"level.text": "two"},
            {"level": 3.5},
            {},
            {"level.list": ["four"]},
            {"level.boolean": True},
        ]
        assert found[0].metadata["stop_reason"] == "stop"
        assert found[0].metadata["metadata.stop_reason"] == 1

    def test_the_answer_may_be_in_the_message_only(self, tmp_path, form):
        parts = [{"type": "reasoning", "reasoning": "hidden", "summary": "short", "redacted": True}]
        content = [*parts, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
        record = first(log(tmp_path, {"output": {"choices": [{"message": {"content": content}}]}}, form=form))
        assert record["generated_answer"] == "a\nb"
        assert record["reasoning"] == "short"

    def test_an_empty_answer_is_an_answer(self, tmp_path, form):
        output = {"completion": "", "choices": [{"message": {"content": ""}, "stop_reason": "stop"}]}
        record = first(log(tmp_path, {"output": output}, form=form))
        assert record["generated_answer"] == ""
        assert "error" not in record

    @pytest.mark.parametrize(
        ("change", "error"),
        [
            ({"error": {"message": "boom", "traceback": "…"}}, "boom"),
            ({"error": {"message": ""}}, "the sample failed"),
            ({"output": {"completion": "", "error": "rate limit"}}, "rate limit"),
            (
                {"output": {"choices": [{"message": {"content": ""}, "stop_reason": "max_tokens"}]}},
                "truncated: the answer was cut off at the limit of tokens",
            ),
            (
                {"output": {"choices": [{"message": {"content": ""}, "stop_reason": "tool_calls"}]}},
                "tool_call: the model called a tool instead of answering",
            ),
        ],
    )
    def test_failures(self, tmp_path, form, change, error):
        record = first(log(tmp_path, change, form=form))
        assert record["error"] == error
        assert "generated_answer" not in record

    def test_media_of_a_conversation(self, tmp_path, form):
        content = [
            {"type": "image", "image": "a.png"},
            {"type": "image", "image": "attachment://k"},
            {"type": "audio", "audio": "s.wav", "format": "wav"},
            {"type": "video", "video": "v.mp4", "format": "mp4"},
            {"type": "data", "data": {"x": 1}},
            {"type": "text", "text": "attachment://t"},
        ]
        messages = [{"role": "user", "content": content}, {"role": "assistant", "content": "?"}]
        attachments = {"k": "data:image/png;base64,AAAA", "t": "What is this?"}
        change = {"input": [*messages, {"role": "user", "content": "Now?"}], "attachments": attachments}
        (sample,) = samples(log(tmp_path, change, form=form))
        assert sample.images == ["a.png", "data:image/png;base64,AAAA"]
        assert (sample.image, sample.audio, sample.video) == (None, "s.wav", "v.mp4")
        assert sample.question == "Now?"
        assert sample.messages[0].text == "What is this?"
        assert [part.type for part in sample.messages[0].parts] == ["image", "image", "audio", "video", "data", "text"]

    def test_an_attachment_that_is_missing_stays_a_reference(self, tmp_path, form):
        assert first(log(tmp_path, {"input": "attachment://none"}, form=form))["question"] == "attachment://none"

    def test_nan_elsewhere_is_null(self, tmp_path, form):
        change = {"metadata": {"a": float("nan"), "b": 1}, "store": {"x": float("inf")}}
        assert first(log(tmp_path, change, form=form))["metadata"] == {"b": 1}

    def test_a_sample_of_another_shape_is_a_problem(self, tmp_path, form):
        path = log(tmp_path, {}, {"output": {"completion": 7}}, {}, form=form)
        ((code, message, line),) = problems_of(path)
        assert (code, line) == ("TYPE", 2)
        assert message.startswith("this is not a sample of inspect_ai: Expected `str | null`, got `int`")

    def test_problems_are_raised_by_info(self, tmp_path, form):
        with pytest.raises(InputError, match="not a sample of inspect_ai"):
            FORMAT.info(log(tmp_path, {"id": None}, form=form))

    def test_a_log_without_results(self, tmp_path, form):
        header = {**HEADER, "status": "error"}
        info = FORMAT.info(log(tmp_path, {}, header=header, form=form))
        assert info.notes == ("the log is not complete: its status is 'error'",)
        assert [(score.column, score.own_mean) for score in info.scores] == [("inspect.match", None)]

    def test_the_part_name_is_the_task(self, tmp_path, form):
        assert FORMAT.part_name(log(tmp_path, {}, form=form)) == "t"

    def test_a_log_without_samples_is_refused(self, tmp_path, form):
        with pytest.raises(InputError, match="has no samples"):
            evaluate(log(tmp_path, form=form), metrics=["exact_match"], output=tmp_path / "run")

    def test_long_events_do_not_count(self, tmp_path, form):
        events = [{"event": number} for number in range(40_000)]
        path = log(tmp_path, {"events": events}, form=form)
        with limits.using(record_mb=4):  # the events would take about 8 MB
            assert first(path)["generated_answer"] == "x"
            with pytest.raises(InputError, match="--max-record-mb"):
                records(log(tmp_path, {"metadata": {str(number): 1 for number in range(50_000)}}, form=form))


def test_samples_are_ordered_by_epoch_and_id(tmp_path):
    changes = [{"id": name, "epoch": epoch} for epoch in (2, 1) for name in ("10", "9", "b", "a")]
    found = records(log(tmp_path, *changes))
    assert [record["id"] for record in found] == [f"{name}#{epoch}" for epoch in "12" for name in ("9", "a", "b", "10")]


def test_ids_may_be_numbers_and_texts(tmp_path):
    assert [sample.id for sample in samples(log(tmp_path, {"id": 7}, {"id": "seven"}))] == ["7", "seven"]


def test_a_log_that_is_still_written(tmp_path):
    start = {"version": 2, "eval": HEADER["eval"]}
    entries = [Entry("_journal/start.json", json.dumps(start).encode())]
    path = write_zip(tmp_path / "log.eval", [*entries, Entry("samples/1_epoch_1.json", json.dumps(SAMPLE).encode())])
    assert len(records(path)) == 1
    assert FORMAT.info(path).notes == ("the log is not complete: its status is 'started'",)


def test_several_versions_of_a_sample_are_one(tmp_path):
    name = "samples/1_epoch_1.json"
    versions = [{**SAMPLE, "output": {"completion": text}} for text in ("old", "new")]
    header = Entry("header.json", json.dumps(HEADER).encode())
    path = write_zip(tmp_path / "x.eval", [*(Entry(name, json.dumps(each).encode()) for each in versions), header])
    assert [record["generated_answer"] for record in records(path)] == ["new"]


def test_logs_of_2024_have_one_score(tmp_path):
    sample = {key: value for key, value in SAMPLE.items() if key != "scores"}
    entries = [Entry("samples/1_epoch_1.json", json.dumps({**sample, "score": {"value": 0.5}}).encode())]
    path = write_zip(tmp_path / "x.eval", [*entries, Entry("header.json", json.dumps(HEADER).encode())])
    assert first(path)["inspect.score"] == 0.5


@pytest.mark.parametrize("number", [1, 4])
def test_a_damaged_entry_is_a_problem_and_the_samples_before_it_are_read(tmp_path, number):
    entries = [Entry("header.json", json.dumps(HEADER).encode())]
    entries += [
        Entry(f"samples/{each}_epoch_1.json", json.dumps({**SAMPLE, "id": each}).encode(), ZSTD) for each in range(1, 6)
    ]
    entries[number].checksum = 1
    path = write_zip(tmp_path / "x.eval", entries)
    problems = Problems()
    assert len(list(FORMAT.records(path, problems))) == number - 1
    (problem,) = problems.kept
    assert problem.message == f"not a readable log of inspect_ai: the entry 'samples/{number}_epoch_1.json' is damaged"


def test_a_json_log_that_is_cut(tmp_path):
    path = log(tmp_path, {}, {}, {}, form="json")
    text = path.read_text()
    path.write_text(text[: text.index('"id": 3') + 10])
    problems = Problems()
    assert len(list(FORMAT.records(path, problems))) == 2
    assert problems.kept[0].code == "TRUNCATED"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it must be a JSON object"),
        (b"[]", "it must be a JSON object"),
        (b"{}", "no `eval`"),
        (b'{"eval": 3}', "the header is not as expected"),
        (b'{"eval": {', "the header is not valid JSON"),
    ],
)
def test_other_content_is_refused(tmp_path, content, said):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    problems = Problems()
    list(FORMAT.records(path, problems))
    assert said in problems.kept[0].message


def test_a_broken_archive_is_a_problem(tmp_path):
    path = log(tmp_path, {})
    path.write_bytes(path.read_bytes()[:-30])
    ((code, message, _),) = problems_of(path)
    assert code == "TRUNCATED"
    assert message == "not a readable log of inspect_ai: the directory at the end of the zip file is missing"
    assert FORMAT.part_name(path) == "log"
    with pytest.raises(InputError, match="directory at the end"):
        FORMAT.info(path)


def test_an_archive_without_a_header_is_refused(tmp_path):
    ((code, message, _),) = problems_of(write_zip(tmp_path / "x.eval", [Entry("samples/1_epoch_1.json")]))
    assert (code, message) == ("FORMAT", "not a log of inspect_ai: the zip file has no header.json")


def test_a_bomb_is_refused(tmp_path):
    header = Entry("header.json", json.dumps(HEADER).encode())
    bombs = [Entry(f"samples/{n}_epoch_1.json", size=200 << 20, packed=b"x" * 9) for n in range(2)]
    with pytest.raises(InputError, match="decompression bomb"):
        records(write_zip(tmp_path / "x.eval", [header, *bombs]))
