"""The section on the scores of another harness."""

from __future__ import annotations

import re
from html import unescape

from multimodal_eval.cli.report import page_of
from multimodal_eval.report.one_run import imported_scores
from multimodal_eval.run.evaluate import evaluate
from multimodal_eval.run.import_log import import_log
from tests.data.logs.fixture_logs import FIXTURES


def section(page):
    match = re.search(r'<section aria-labelledby="imports">.*?</section>', page, re.DOTALL)
    return None if match is None else " ".join(unescape(re.sub(r"<[^>]+>", " ", match[0])).split())


def test_results_of_the_harness_are_beside_the_means(tmp_path):
    run = import_log(FIXTURES / "lm-eval", output=tmp_path / "run", progress=False).run
    imported = imported_scores(run)
    differences = {(each.mean.metric, each.mean.log): each.difference for each in imported.means}
    assert differences["lm-eval.acc", "toy_choice"] == 0.0
    assert differences["lm-eval.perplexity", "toy_word"] is None  # exp(-mean) is in another unit
    assert (imported.equal, len(imported.means)) == (8, 9)
    page = page_of([run])
    text = section(page)
    assert "Imported from lm-eval 0.4.13 , model toys/scripted" in text
    assert "lm-eval.acc toy_choice 0.5 0.5000 0.1500 … 0.8500 0 4 / 4 mean as in its results" in text
    assert "bleu has no number per sample" in text
    assert '<a href="#imports">Harness</a>' in page


def test_scores_of_the_harness_are_beside_ours(tmp_path):
    run = evaluate(FIXTURES / "lm-eval", metrics=["exact_match", "contains"], output=tmp_path / "run", progress=False)
    text = section(page_of([run]))
    assert "lm-eval.exact_match_flexible-extract 0.6667 exact_match 0.0000 -0.6667" in text
    assert "4 of 6" in text


def test_a_run_without_a_harness_has_no_such_section(runs):
    page = page_of(runs)
    assert section(page) is None
    assert "#imports" not in page
