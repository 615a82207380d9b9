"""If lower is better, the run with the higher value loses."""

from __future__ import annotations

import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.sample import Sample

pytest.importorskip("duckdb")
pytest.importorskip("starlette")
from tests.edited_runs import rewrite_json
from tests.report.viewer.viewed import client  # needs the packages checked above


@pytest.mark.parametrize(("direction", "winner"), [("higher", "B"), ("lower", "A")])
def test_a_larger_score_wins_only_if_higher_is_better(tmp_path, direction, winner):
    for name, answer in (("alba", "a dog"), ("boreas", "a cat")):
        samples = [Sample(str(number), references=["a cat"], generated_answer=answer) for number in range(4)]
        evaluate(samples, output=tmp_path / name, metrics=["rouge_l"])
        rewrite_json(
            tmp_path / name / "results.json",
            lambda results: results["metrics"]["rouge_l"].update(direction=direction),
        )
    page = client(tmp_path).get("/pairs?run=alba&run=boreas").text
    assert f'<span class="figures">4</span> {winner} better' in page
    assert ("lower is better" in page) == (direction == "lower")
