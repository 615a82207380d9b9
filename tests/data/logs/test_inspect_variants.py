"""Logs of inspect_ai as they can also be: other shapes, damage, several versions. Most tests try both forms."""

from __future__ import annotations

import json

import pytest

from multimodal_eval import evaluate, import_log
from multimodal_eval.core.errors import InputError
from multimodal_eval.data.logs.inspect_eval import FORMAT
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.problems import Problems
from tests.data.logs.inspect_log import HEADER, SAMPLE, first, log, problems_of, records, samples
from tests.data.logs.zip_files import ZSTD, Entry, write_zip


@pytest.mark.parametrize("form", ["eval", "json"])
class TestVariants:
    def test_values_that_are_not_numbers_are_kept_as_text(self, tmp_path, form):
        scores = {"colour": {"value": "red"}, "match": {"value": "C"}}
        record = first(log(tmp_path, {"scores": scores}, form=form))
        assert record["value.colour"] == "red"
        assert "inspect.colour" not in record

    def test_text_that_counts_as_zero_explains_a_difference(self, tmp_path, form):
        results = {"scores": [{"name": "s", "scorer": "s", "metrics": {"mean": {"value": 0.5}}}]}
        values = [{"scores": {"s": {"value": value}}} for value in (1, "?")]
        path = log(tmp_path, *values, header={**HEADER, "results": results}, form=form)
        (mean,) = import_log(path, output=tmp_path / "run").means
        assert mean.explanation == "its results have 0.5, which counts 1 sample without a score as 0"

    def test_the_clusters_of_a_standard_error_are_groups(self, tmp_path, form):
        metrics = {"mean": {"value": 0.5}, "stderr": {"value": 0.2, "params": {"cluster": "exam"}}}
        results = {"scores": [{"name": "s", "scorer": "s", "metrics": metrics}]}
        values = [{"scores": {"s": {"value": n % 2}}, "metadata": {"exam": n // 4}} for n in range(12)]
        path = log(tmp_path, *values, header={**HEADER, "results": results}, form=form)
        imported = import_log(path, output=tmp_path / "run")
        # Every exam has the mean of all, 1/2, so that clusters do not differ; independent samples would.
        assert imported.run.entries["inspect.s"].method.endswith("3 clusters")
        assert "samples are grouped by exam, as for the standard error of s in the log" in FORMAT.info(path).notes

    def test_metadata_may_have_several_types_and_names_of_columns(self, tmp_path, form):
        changes = [{"metadata": {"level": value, "stop_reason": 1}} for value in (1, "two", None, ["four"])]
        rows = samples(log(tmp_path, *changes, form=form))
        assert [sample.metadata.get("level") for sample in rows] == [1, "two", None, ["four"]]
        assert rows[0].metadata["stop_reason"] == "stop"
        assert rows[0].metadata["sample.stop_reason"] == 1

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
        assert first(log(tmp_path, change, form=form))["metadata"] == {"a": None, "b": 1}

    @pytest.mark.parametrize("half", [b'"\\ud800"', b'"\xed\xa0\x80"'])
    def test_half_of_a_surrogate_pair_is_a_problem(self, tmp_path, form, half):
        scores = {"HALF": {"value": float("nan"), "answer": "x"}}
        item = json.dumps({**SAMPLE, "HALF": 1, "scores": scores}).encode().replace(b'"HALF"', half)
        header = json.dumps(HEADER).encode()
        path = tmp_path / f"log.{form}"
        if form == "json":
            path.write_bytes(header[:-1] + b', "samples": [' + item + b"]}")
        else:
            write_zip(path, [Entry("samples/1_epoch_1.json", item), Entry("header.json", header)])
        ((code, _, line),) = problems_of(path)
        assert (code, line) == ("CONTROL_CHAR" if half[1:2] == b"\\" else "ENCODING", 1)

    def test_surrogate_pairs_beside_nan_are_characters(self, tmp_path, form):
        change = {"scores": {"s": {"value": float("nan")}}, "metadata": {"a": "\U0001f600"}}
        assert first(log(tmp_path, change, form=form))["metadata"] == {"a": "\U0001f600"}

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
    rows = records(log(tmp_path, *changes))
    assert [record["id"] for record in rows] == [f"{name}#{epoch}" for epoch in "12" for name in ("9", "a", "b", "10")]


@pytest.mark.parametrize("form", ["eval", "json"])
def test_epochs_that_the_settings_do_not_mention(tmp_path, form):
    path = log(tmp_path, {"id": 7, "epoch": 1}, {"id": 7, "epoch": 2}, form=form)  # config.epochs is 1
    assert [(sample.id, sample.group, sample.epoch) for sample in samples(path)] == [("7#1", "7", 1), ("7#2", "7", 2)]


@pytest.mark.parametrize("form", ["eval", "json"])
def test_epochs_of_training_are_not_those_of_a_log(tmp_path, form):
    assert first(log(tmp_path, {"metadata": {"epoch": 20, "x": float("nan")}}, form=form))["id"] == "1"


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
        (b"", "it must be a zip file or a JSON object, and it is empty"),
        (b"[]", "it must be a zip file or a JSON object, and it is something else"),
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


def test_the_entry_of_a_bad_sample_is_named(tmp_path):
    path = log(tmp_path, {}, {"target": {"x": 1}, "id": "two"})
    problems = Problems()
    list(FORMAT.records(path, problems))
    (problem,) = problems.kept
    assert problem.file == f"{path}/samples/two_epoch_1.json"
