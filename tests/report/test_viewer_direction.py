"""Of a number that should be low, the run with the higher value loses."""

from __future__ import annotations

import json

import pytest

from multimodal_eval.core.sample import Sample
from multimodal_eval.run.evaluate import evaluate

pytest.importorskip("duckdb")
pytest.importorskip("starlette")
from tests.report.viewed import client  # what it imports is asked for above


@pytest.mark.parametrize(("direction", "first"), [("higher", "where B loses most"), ("lower", "where B gains most")])
def test_the_smallest_difference_is_a_loss_only_where_high_is_good(tmp_path, direction, first):
    for name in ("alba", "boreas"):
        samples = [Sample(str(place), references=["a cat"], generated_answer=f"a {name}") for place in range(4)]
        evaluate(samples, output=tmp_path / name, metrics=["rouge_l"])
        file = tmp_path / name / "results.json"
        results = json.loads(file.read_text(encoding="utf-8"))
        results["metrics"]["rouge_l"]["direction"] = direction
        file.write_text(json.dumps(results), encoding="utf-8")
    page = client(tmp_path).get("/pairs?run=alba&run=boreas").text
    assert f'<option value="">{first}</option>' in page
