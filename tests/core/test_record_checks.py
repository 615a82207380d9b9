"""run.json and results.json with numbers that cannot be: each is refused with what is wrong."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from msgspec.structs import replace

from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.records import (
    COMPOSITE,
    MAX_SAMPLES,
    Results,
    Slice,
    StoredSignature,
    differences,
    info_faults,
    refuse_faults,
    result_faults,
)
from tests.run_info import run_info

NUMBERS: dict[str, Any] = {"value": 0.5, "stderr": 0.1, "low": 0.4, "high": 0.6, "method": "t"}
COUNTS: dict[str, Any] = {
    "n_scored": 3,
    "n_total": 5,
    "unscored": {"error": 2},
    "reasons": [],
    "warnings": {"blank_answer": 5},
}
BLEU = Figure(**NUMBERS, **COUNTS, direction="higher", signature="bleu|v1", parts={"1": Figure(**NUMBERS)})
COMPOSITE_ENTRY = Figure(**NUMBERS, **COUNTS, signature="composite|v1")
RESULTS = Results(
    task=None,
    headline="bleu",
    n=5,
    metrics={"bleu": BLEU},
    composite=COMPOSITE_ENTRY,
    slices={"colour": {"red": Slice(5, {"bleu": BLEU})}},
    notes=[],
)
INFO = run_info(
    state="done",
    metrics=["bleu"],
    parts=[3, 2],
    headline="bleu",
    bounds={"bleu": (0.0, None)},
    signatures={
        "bleu": StoredSignature("bleu|v1", {}),
        COMPOSITE: StoredSignature("composite|v1", {"weights": {"bleu": 1}}),
    },
)


def judged(**fields):
    return RunConfig(judges={"helpful": JudgeConfig(**fields)})


def signed(**settings):
    return {"bleu": StoredSignature("bleu|v1", settings)}


def test_records_that_fit_are_not_refused():
    assert not [*info_faults(INFO)]
    assert not [*info_faults(replace(INFO, parts=[0, MAX_SAMPLES]))]
    assert not [*info_faults(replace(INFO, config=judged(name="helpful", prompt="p.md", template="text")))]
    assert not [*info_faults(replace(INFO, state="reading", signatures={}))]  # signatures are stored later
    assert not [*result_faults(RESULTS)]
    assert not [*differences(INFO, RESULTS)]


def refusal_of(faults):
    with pytest.raises(RunFolderError) as refusal:
        refuse_faults("run/FILE", faults)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"parts": [3, -1]}, "a part of -1 samples"),
        ({"parts": [MAX_SAMPLES + 1]}, "a part of 281,474,976,710,657 samples"),
        ({"parts": [MAX_SAMPLES, 1]}, "281,474,976,710,657 samples"),
        ({"bounds": {"bleu": (0.0, inf)}}, "the bounds of 'bleu' are not finite"),
        ({"bounds": {"bleu": (nan, 1.0)}}, "the bounds of 'bleu' are not finite"),
        ({"signatures": {}, "finished": "2026-11-18T00:00:00+00:00"}, "'bleu' has no signature"),
        ({"signatures": {"rouge_l": StoredSignature("rouge_l|v1", {})}}, "'bleu' has no signature"),
        ({"signatures": signed(headline=3)}, "the headline in the signature of 'bleu' is not a name"),
        ({"signatures": signed(weights=[1])}, "the weights in the signature of 'bleu' are not numbers"),
        ({"signatures": signed(weights={"a": True})}, "the weights in the signature of 'bleu' are not numbers"),
        ({"config": RunConfig(judges={"../x": JudgeConfig()})}, "'../x' cannot name a metric"),
        ({"config": judged(name="other")}, "the judge of helpful has another name"),
        ({"config": judged(prompt="p.md")}, "the template of the judge of helpful is missing"),
    ],
)
def test_an_impossible_run_is_refused(changes, fault):
    faults = info_faults(replace(INFO, **changes))
    assert refusal_of(faults) == f"run/FILE is damaged: {fault}. Score the run again"


def with_bleu(**changes):
    return {"metrics": {"bleu": replace(BLEU, **changes)}}


def with_slice(n, **changes):
    return {"slices": {"colour": {"red": Slice(n, {"bleu": replace(BLEU, **changes)})}}}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"n": 0}, "0 samples"),
        ({"n": 4}, "'bleu' has 5 samples instead of 4"),
        (with_bleu(n_scored=6), "'bleu' has 6 scored samples of 5"),
        (with_bleu(n_scored=-1), "'bleu' has -1 scored samples of 5"),
        (with_bleu(unscored={"error": -1}), "the counts of 'bleu' are not between 0 and 5"),
        (with_bleu(warnings={"blank_answer": 6}), "the counts of 'bleu' are not between 0 and 5"),
        (with_bleu(value=inf), "'bleu' has a value that is not finite"),
        (with_bleu(high=nan), "'bleu' has a value that is not finite"),
        (with_bleu(parts={"1": Figure(**NUMBERS | {"low": -inf})}), "'bleu' has a value that is not finite"),
        (with_slice(4), "bleu of 'colour'='red' has 5 samples instead of 4"),
        (with_slice(6, n_total=6), "bleu of 'colour'='red' has 6 samples instead of 6"),
        (with_slice(5, n_scored=6), "\"bleu of 'colour'='red'\" has 6 scored samples of 5"),
    ],
)
def test_impossible_results_are_refused(changes, fault):
    faults = result_faults(replace(RESULTS, **changes))
    assert refusal_of(faults) == f"run/FILE is damaged: {fault}. Score the run again"


@pytest.mark.parametrize(
    ("of_run", "of_results", "fault"),
    [
        ({"parts": [3, 3]}, {}, "it has 5 samples, and run.json 6"),
        ({"parts": [4]}, {}, "it has 5 samples, and run.json 4"),
        ({"metrics": []}, {}, "'bleu' is not a metric of run.json"),
        ({"unavailable": {"clip_score": "no model"}}, {}, "'clip_score' is a metric of run.json"),
        ({}, with_bleu(signature="bleu|v2"), "the signature of 'bleu' is not that of run.json"),
        ({}, {"composite": None}, "the composite is missing"),
        ({"headline": "cider"}, {}, "the headline 'cider' is not among the results"),
        ({}, {"headline": "cider"}, "the headline 'cider' is not among the results"),
    ],
)
def test_results_of_another_run_are_refused(of_run, of_results, fault):
    faults = differences(replace(INFO, **of_run), replace(RESULTS, **of_results))
    assert refusal_of(faults) == f"run/FILE is damaged: {fault}. Score the run again"
