"""A batch of columns gives the same samples, checks and scores as the samples themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample, Score
from multimodal_eval.core.batch import Batch, rows_without
from multimodal_eval.core.corpus import default_state
from multimodal_eval.core.failures import ERROR_PATTERNS, answers_of
from multimodal_eval.core.function_metric import FunctionMetric
from multimodal_eval.core.metric import configured
from multimodal_eval.core.score import Scores, joined
from multimodal_eval.core.scoring import score_batch, score_rows
from multimodal_eval.data.runs.sample_table import to_batch, to_table
from multimodal_eval.evaluation.metrics_registry import resolve

texts = st.one_of(
    st.sampled_from(["", " ", "\u2003", "a red dog", "[ERROR] x", " [ERROR]", "кошка спит", "a", "x\u00a0"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12),
)
samples = st.builds(
    Sample,
    id=st.uuids().map(str),
    generated_answer=st.none() | texts,
    references=st.none() | st.lists(texts, max_size=3),
    expected_answer=st.none() | texts,
    error=st.none() | st.sampled_from(["", "timed out"]),
    group=st.none() | st.sampled_from(["g", "h"]),
    perplexity=st.none() | st.floats(1, 100),
)
plain = st.builds(
    Sample, id=st.uuids().map(str), generated_answer=texts, references=st.lists(texts, min_size=1, max_size=3)
)
batches = st.lists(samples, min_size=1, max_size=8) | st.lists(plain, min_size=1, max_size=8)


def as_columns(rows):
    return to_batch(to_table(rows, 0))


@given(batches)
def test_columns_give_the_samples_back(rows):
    batch = as_columns(rows)
    assert list(batch) == rows
    assert list(batch[1:3]) == rows[1:3]
    order = np.arange(len(rows))[::-1].copy()
    assert list(batch.take(order[:-1])) == rows[::-1][:-1]
    assert list(batch.take(order)) == rows[::-1]
    assert list(batch.take(order * 0)) == rows[:1] * len(rows)


@given(batches)
def test_answers_and_needs_are_the_same_on_columns(rows):
    for patterns in (ERROR_PATTERNS, (), (r"\s*\[ERROR\]", "a"), ("x",)):
        assert answers_of(as_columns(rows), patterns) == answers_of(Batch.of(rows), patterns)
    for need in ("generated_answer", "references", "perplexity", "references|perplexity", "choices", "metadata.a"):
        assert rows_without(as_columns(rows), need).tolist() == rows_without(Batch.of(rows), need).tolist()


def letters(sample):
    """Results of every kind."""
    answer = sample.generated_answer
    if answer == "a":
        return None
    if answer == "a red dog":
        return {"score": 1.0, "words": 3, "note": "x"}
    if answer.startswith("к"):
        raise ValueError("Cyrillic")
    return float("nan") if answer == " " else float(len(answer))


CHECKED = [
    pytest.param(
        lambda: FunctionMetric(letters, "letters", needs=("generated_answer",), bounds=(0, 8)), id="a function"
    ),
    *(
        pytest.param(lambda name=name, options=options: configured(resolve(name), options), id=f"{name} {options}")
        for name, options in [
            *((name, {}) for name in ("bleu", "rouge_l", "exact_match", "perplexity", "soft_score")),
            *((name, {"df": "coco-val2014"}) for name in ("cider", "cider_d")),
            *(("meteor", {"variant": variant}) for variant in ("fmean", "2005")),
        ]
    ),
]


@pytest.mark.parametrize("make", CHECKED)
@given(rows=batches)
def test_scores_are_the_same_on_columns(make, rows):
    subject = make()
    scorer = subject.open(default_state(subject))
    expected = score_batch(subject, scorer, rows)
    assert list(score_rows(subject, scorer, as_columns(rows))) == expected
    shared = as_columns(rows)
    for other in ("rouge_l", "bleu"):  # tokens that other metrics have left in the batch change nothing
        score_rows(resolve(other), resolve(other).open(None), shared)
    assert list(score_rows(subject, scorer, shared)) == expected


def test_results_are_shared():
    batch, calls = Batch.of([Sample("a"), Sample("b")]), []
    rows = np.array([1])
    assert batch.take(rows) is batch.take(rows)
    for _ in range(2):
        assert batch.shared("tokens", lambda: calls.append(1) or "made") == "made"
    assert calls == [1]


scores = st.builds(
    Score,
    value=st.floats(0, 1),
    stats=st.none() | st.tuples(st.floats(0, 1)) | st.tuples(st.floats(0, 1), st.floats(0, 1)),
    parts=st.none() | st.dictionaries(st.sampled_from("pq"), st.floats(0, 1), min_size=1),
    details=st.none() | st.just({"why": "x"}),
    warning=st.none() | st.just("careful"),
) | st.builds(Score, st.none(), st.sampled_from(["missing_input", "error", "open"]), st.just("why"))


@given(st.lists(scores), st.lists(scores, min_size=1))
def test_scores_are_the_rows_they_were_made_of(first, second):
    assert list(Scores.of(first)) == first
    assert list(joined([Scores.of(first), Scores.of(second)])) == first + second
    assert Scores.of(second)[-1] == second[-1]
    assert Scores.of(second)[:1] == second[:1]
    for index in (len(second), -len(second) - 1):
        with pytest.raises(IndexError):
            Scores.of(second)[index]


def test_rows_keep_their_columns_after_somebody_has_asked_for_the_samples():
    batch = as_columns([Sample(str(number), generated_answer=f"answer {number}") for number in range(4)])
    assert len(batch.samples) == 4
    for rows in (batch[1:3], batch.take(np.array([1, 2]))):
        column = rows.column("generated_answer")
        assert column is not None
        assert column.to_pylist() == ["answer 1", "answer 2"]
        assert [sample.id for sample in rows] == ["1", "2"]
