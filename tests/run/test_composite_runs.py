"""Tasks and their composite score in a run."""

from __future__ import annotations

import numpy as np
import pytest

from multimodal_eval import evaluate, metric
from multimodal_eval.analysis.composite import composite_parts
from multimodal_eval.core.errors import ConfigError, UnavailableError
from multimodal_eval.core.registry import registered
from tests.run.caption_samples import samples


@pytest.fixture
def composite_metrics():
    for name in ("clip_score", "semantic_similarity"):  # replacements that need no model
        del registered[name]

    @metric("clip_score", needs=("generated_answer",), bounds=(0, 1), version="1")
    def clip_score(sample):
        return len(sample.generated_answer) / 100

    @metric("semantic_similarity", needs=("generated_answer",), bounds=(0, 1), version="1")
    def semantic_similarity(sample):
        return 0.5


def test_the_composite_is_computed_per_sample_and_then_averaged(composite_metrics):
    run = evaluate(samples(), task="captioning")
    rows = [row for row in run.scores().to_pylist() if row["composite_score"] is not None]
    expected = [0.25 * row["clip_score"] + 0.5 * row["semantic_similarity"] + 0.25 * row["cider"] for row in rows]
    assert [row["composite_score"] for row in rows] == pytest.approx(expected, abs=1e-15)
    entry = run["composite"]
    assert entry["value"] == pytest.approx(np.mean(expected), abs=1e-15)
    assert (entry["n_scored"], entry["n_total"]) == (42, 50)
    assert "weights:0.25*clip_score+0.5*semantic_similarity+0.25*cider" in entry["signature"]
    assert "min(cider/1,1) a sample" in entry["signature"]


def test_a_missing_part_may_be_left_out(composite_metrics):
    run = evaluate(samples(), task="captioning", metrics=["cider"], tasks={"captioning": {"on_missing": "renormalise"}})
    assert run["composite"]["value"] == pytest.approx(run["cider"]["value"])
    assert "on_missing:renormalise" in run["composite"]["signature"]


def test_unavailable_metrics_stop_the_run_before_it_reads_anything(tmp_path):
    with pytest.raises(UnavailableError) as refused:
        evaluate(samples(), task="captioning", output=tmp_path / "run")
    assert "--metrics cider" in str(refused.value)
    assert "--skip-unavailable" in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_unavailable_metrics_can_be_left_unscored():
    run = evaluate(samples(), task="captioning", skip_unavailable=True)
    assert run["clip_score"]["value"] is None
    assert (run["clip_score"]["n_scored"], run["clip_score"]["n_total"]) == (0, 50)
    assert run["composite"]["value"] is None
    assert run["composite"]["unscored"] == {"missing_input": 50}


def test_an_unsuitable_part_of_a_composite_is_refused():
    @metric("long", bounds=(0, 10))
    def long(sample):
        return 5.0

    @metric("lower", bounds=(0, 1), direction="lower")
    def lower(sample):
        return 0.5

    with pytest.raises(ConfigError, match="maximum"):
        evaluate(samples(), task="mine", tasks={"mine": {"weights": {"long": 1.0}}})
    with pytest.raises(ConfigError, match="lower values of lower are better"):
        evaluate(samples(), task="mine", tasks={"mine": {"weights": {"lower": 1.0}}})
    run = evaluate(samples(), task="mine", tasks={"mine": {"weights": {"long": 1.0}, "maximum": {"long": 10}}})
    assert run["composite"]["value"] == 0.5


def test_a_part_outside_0_and_1_leaves_the_composite_unscored():
    metric("wild")(lambda sample: 2.5)
    run = evaluate(samples(), task="mine", tasks={"mine": {"weights": {"wild": 1.0}}}, allow_empty=True)
    assert run["wild"]["value"] == 2.5
    assert run["composite"]["unscored"] == {"error": 50}
    metric("signed", bounds=(-1, 1))(lambda sample: -0.5)
    with pytest.raises(ConfigError, match="from 0"):
        evaluate(samples(), task="mine", tasks={"mine": {"weights": {"signed": 1.0}}})


def test_weights_replace_the_headline_and_cannot_be_combined_with_one():
    run = evaluate(
        samples(), task="hallucination", tasks={"hallucination": {"metrics": ["cider"], "weights": {"cider": 1}}}
    )
    assert run["composite"]["value"] == run["cider"]["value"]
    with pytest.raises(ConfigError, match="one of them"):
        evaluate(samples(), task="x", tasks={"x": {"headline": "cider", "weights": {"cider": 1}}})


def test_every_task_of_a_configuration_is_checked():
    with pytest.raises(ConfigError, match="WEIGHTS"):
        evaluate(samples(), metrics=["cider"], tasks={"other": {"weights": {"cider": 9}}})


def test_replaced_task_metrics_are_used_by_runs(monkeypatch):
    from multimodal_eval.evaluation import metrics_registry

    monkeypatch.setattr(metrics_registry, "TASK_METRICS", {"captioning": ["cider"], "brand_new": ["cider"]})
    assert evaluate(samples(), task="brand_new").metrics == ["cider"]
    assert evaluate(samples(), task="captioning").metrics == ["cider"]


def test_a_part_for_which_lower_is_better_is_inverted_over_its_range():
    @metric("errors", needs=("generated_answer",), direction="lower", version="1")
    def errors(sample):
        return float(len(sample.generated_answer) % 7)  # from 0 to 5

    settings = {"weights": {"errors": 0.5, "rouge_l": 0.5}, "parts": {"errors": {"invert": True, "range": [1, 4]}}}
    run = evaluate(samples(), task="mine", tasks={"mine": settings})
    rows = [row for row in run.scores().to_pylist() if row["composite_score"] is not None]
    # 1 error or fewer enters as 1, 3 errors as 1/3, 4 errors or more as 0.
    expected = [0.5 * min(max((4 - row["errors"]) / 3, 0), 1) + 0.5 * row["rouge_l"] for row in rows]
    assert {row["errors"] for row in rows} >= {0.0, 3.0, 5.0}
    assert [row["composite_score"] for row in rows] == pytest.approx(expected, abs=1e-15)
    assert "(4-errors)/3 a sample" in run["composite"]["signature"]
    part = composite_parts(run).parts[0]
    assert (part.name, part.enters_as) == ("errors", "(4 - errors) / 3")
    assert part.contribution == pytest.approx(
        0.5 * np.mean([min(max((4 - row["errors"]) / 3, 0), 1) for row in rows]), abs=1e-12
    )


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"rouge_l": {"invert": True, "range": [0, 1]}},
            "must not be inverted, because higher values of it are better",
        ),
        ({"rouge_l": {"range": [1, 0]}}, "must be two numbers, the lower one first. Got 1.0, 0.0"),
        ({"bleu": {"range": [0, 1]}}, "names 'bleu', which has no weight"),
        ({"rouge_l": {"range": [0]}}, "range"),
    ],
)
def test_a_range_that_does_not_fit_is_refused(parts, message):
    tasks = {"mine": {"weights": {"rouge_l": 1.0}, "parts": parts}}
    with pytest.raises(ConfigError, match=message):
        evaluate(samples(), task="mine", tasks=tasks)
