"""Intervals of the parts of metrics end at the bounds of the parts."""

from __future__ import annotations

import pytest

from multimodal_eval import JudgeConfig, evaluate, load_run
from multimodal_eval.core.metric import part_bounds
from multimodal_eval.evaluation.metrics_registry import list_available, resolve
from multimodal_eval.run.verify import verify_run
from tests.edited_runs import stored_json, write_json

# Two samples that differ a lot, so that a t interval without bounds is far wider than what is possible.
CAPTIONS = [
    {"id": "a", "generated_answer": "a red dog runs on the beach", "references": ["a red dog runs on the beach"]},
    {"id": "b", "generated_answer": "the red cat on a mat sleeps", "references": ["a cat sleeps on the red mat today"]},
]


@pytest.mark.parametrize("metric", ["bleu", "wer", "cer", "vqa_accuracy"])
def test_intervals_of_parts_end_at_their_bounds(metric):
    entry = evaluate(CAPTIONS, metrics=[metric]).outcome.metrics[metric]
    bounds = part_bounds(resolve(metric))
    assert set(bounds) == set(entry.parts)
    for part, figure in entry.parts.items():
        low, high = bounds[part]
        assert figure.low >= low
        assert high is None or figure.high <= high


def test_criteria_of_a_rubric_end_at_their_scale():
    def judge(request):
        return '{"truth": 1, "detail": 5}' if "cat" in request.prompt else '{"truth": 5, "detail": 4}'

    criteria = [{"name": "truth", "question": "Is it true?"}, {"name": "detail", "question": "Is it complete?"}]
    run = evaluate(CAPTIONS, metrics=[JudgeConfig(name="rubric", form="rubric", criteria=criteria)], judge=judge)
    truth = run.outcome.metrics["rubric"].parts["truth"]
    # The mean of 5 and 1 is 3, with a standard error of 2 and one degree of freedom: 3 ± 25 without the scale.
    assert (truth.value, truth.low, truth.high) == (3, 1, 5)


def test_runs_whose_parts_were_not_cut_are_verified(tmp_path):
    evaluate(CAPTIONS, metrics=["bleu"], output=tmp_path / "run")
    path = tmp_path / "run" / "results.json"
    results = stored_json(path)
    part = results["metrics"]["bleu"]["parts"]["bleu_1"]
    assert part["high"] == 1
    part["high"] = 4.5
    write_json(path, results)
    assert verify_run(tmp_path / "run", deep=True).faults == ()
    part["value"] = 0.5
    write_json(path, results)
    assert len(verify_run(tmp_path / "run", deep=True).faults) == 1
    assert load_run(tmp_path / "run")["bleu"]["parts"]["bleu_1"]["value"] == 0.5


def test_bounds_of_parts_are_pairs():
    for name in list_available():
        for low, high in part_bounds(resolve(name)).values():
            assert low is not None
            assert high is None or low < high
