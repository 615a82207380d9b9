"""The section on the scores of another harness."""

from __future__ import annotations

import re
from html import unescape

from multimodal_eval import evaluate, import_log
from multimodal_eval.cli.report import page_of
from multimodal_eval.report.one_run import imported_scores
from tests.data.logs.fixture_logs import FIXTURES, LM_EVAL, log_of


def section(page):
    match = re.search(r'<section aria-labelledby="imports">.*?</section>', page, re.DOTALL)
    return None if match is None else " ".join(unescape(re.sub(r"<[^>]+>", " ", match[0])).split())


def test_results_of_the_harness_are_beside_the_means(tmp_path):
    choice, word, caption = (
        import_log(log_of(LM_EVAL, task), output=tmp_path / task, progress=False).run
        for task in ("toy_choice", "toy_word", "toy_first_caption")
    )
    differences = {each.mean.metric: each.difference for run in (choice, word) for each in imported_scores(run).means}
    assert differences["lm-eval.acc"] == 0.0
    assert differences["lm-eval.loglikelihood"] is None  # exp(-mean) is in another unit
    assert (imported_scores(word).equal, len(imported_scores(word).means)) == (1, 2)
    page = page_of([choice])
    text = section(page)
    assert "imported from lm-eval 0.4.13, model toys/scripted" in text
    assert "lm-eval.acc: mean as in its results" in text
    assert re.search(r"lm-eval\.acc .*?0\.5000 .*?0\.1500 … 0\.8500 0\.5 ", text)
    assert "bleu has no number per sample" in section(page_of([caption]))
    assert '<a href="#imports">Harness</a>' in page


def test_scores_of_the_harness_are_beside_ours(tmp_path):
    run = evaluate(FIXTURES / "lm-eval", metrics=["exact_match", "contains"], output=tmp_path / "run", progress=False)
    text = section(page_of([run]))
    assert re.search(r"lm-eval\.exact_match_flexible-extract exact_match .*?0\.6667 0\.0000 -0\.6667 .*? 4 ", text)


def test_a_run_without_a_harness_has_no_such_section(runs):
    page = page_of(runs)
    assert section(page) is None
    assert "#imports" not in page
