"""Logs of inspect_ai. The fixtures were written by inspect_ai itself; their README says how."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import import_log
from multimodal_eval.data.logs.inspect_eval import FORMAT
from multimodal_eval.data.logs.inspect_samples import score_values
from multimodal_eval.data.logs.recognised import recognised
from tests.data.logs.inspect_log import problems_of, records, samples
from tests.data.logs.zip_files import Entry, write_zip

LOGS = Path(__file__).parent / "fixtures" / "inspect"


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
    assert problems_of(write_zip(tmp_path / "x.eval", [Entry("word/document.xml")])) == [
        ("FORMAT", "not a log of inspect_ai: the zip file has no header.json", None)
    ]


def test_epochs_are_samples_of_a_group():
    rows = samples(LOGS / "epochs.eval")
    assert [sample.id for sample in rows[:7]] == ["1#1", "2#1", "3#1", "4#1", "5#1", "6#1", "1#2"]
    assert [(sample.group, sample.epoch) for sample in rows[5:8]] == [("6", 1), ("1", 2), ("2", 2)]
    assert len(rows) == 18
    assert rows[0].question == "Repeat the word w1"
    assert rows[0].expected_answer == "w1"
    assert rows[0].generated_answer == "w1"
    assert rows[0].metadata["level"] == 1


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


def test_a_score_that_is_nan_is_unscored_and_says_so():
    unscored = samples(LOGS / "epochs.eval")[3]
    assert unscored.generated_answer == "w4"
    assert unscored.metadata["inspect.graded"] == "NaN"
    assert unscored.metadata["reason.graded"] == "parse_error"
    assert unscored.metadata["inspect.match"] == 1.0


def test_choices_and_their_letters():
    sample = next(sample for sample in samples(LOGS / "choices.eval") if sample.id == "two")
    assert sample.choices == ["1", "2", "3"]
    assert sample.expected_answer == "B"
    assert sample.metadata["answer.choice"] == "B"
    assert sample.metadata["sample.id"] == 7  # a key of the sample's metadata, not its id
    assert sample.metadata["tags"] == ["x"]


def test_images_are_attachments():
    rows = samples(LOGS / "images.eval")
    assert all(sample.image.startswith("data:image/png;base64,iVBORw0KGgo") for sample in rows)
    assert rows[0].question == "What do you think?"
    assert rows[0].references == ["blue", "navy"]
    assert [message.role for message in rows[0].messages] == ["system", "user"]
    assert [part.type for part in rows[0].messages[1].parts] == ["image", "text"]
    assert rows[0].generated_answer == "blue"
    assert rows[0].metadata["reasoning"] == "Step by step."


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
    assert scores["inspect.graded"].aggregation == "mean of the samples' means over their scored epochs"
    assert scores["inspect.match"].aggregation is None
    assert info.notes[0] == "match: accuracy over epochs by pass_at_2 is 0.9333 in the log"


def test_an_imported_mean_is_that_of_the_log_or_explained(tmp_path):
    differences = {}
    for name in ("epochs.eval", "choices.eval", "images.eval", "images.json"):
        for mean in import_log(LOGS / name, output=tmp_path / name).means:
            if not mean.is_equal:
                differences[name, mean.metric] = mean.explanation
    # The filtered answer is incorrect for inspect_ai (1 of 4 is correct), and unscored here (1 of 3).
    counted = "its results have 0.25, which counts 1 sample without a score as 0"
    means = 'its results have 0.3026 by "mean of the samples\' means over their scored epochs"'
    assert differences == {
        ("epochs.eval", "inspect.graded"): f"{means}, which is not the mean of the values per sample",
        ("images.eval", "inspect.includes"): counted,
        ("images.json", "inspect.includes"): counted,
    }


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
