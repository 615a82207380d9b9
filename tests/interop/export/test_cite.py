"""`--to cite`: a paragraph with everything that a reader needs to know about a score."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
import yaml

from multimodal_eval import JudgeConfig, evaluate, import_log
from multimodal_eval.benchmarks.recipes import recipe
from multimodal_eval.benchmarks.sample import write_sample
from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.interop.export.cite import RELEASE
from multimodal_eval.interop.export.registry import export
from tests.data.logs.fixture_logs import LM_EVAL, log_of

ROOT = Path(__file__).parents[3]
CHOICES = [
    {"id": "1", "choices": ["a dog", "a cat"], "expected_answer": "A", "generated_answer": "A"},
    {"id": "2", "choices": ["a dog", "a cat"], "expected_answer": "A", "generated_answer": "(B)"},
    {"id": "3", "choices": ["a dog", "a cat"], "expected_answer": "A", "generated_answer": "[ERROR] time-out"},
]


@pytest.fixture(scope="module")
def choices():
    return evaluate(CHOICES, metrics=["multiple_choice"])


def test_the_whole_paragraph(choices):
    text = export(choices, "cite", model="acme/parrot-7b", dataset="Animals").text
    entry, versions = choices["multiple_choice"], choices.info.versions
    # 1 of 2 is right; by Wilson with z = 1.96: (0.5 + z²/4 ± z √(1/8 + z²/16)) / (1 + z²/2), from 0.0945 to 0.9055.
    # With the failed answer as a wrong one, 1 of 3.
    wrong = entry["with_failures"]
    assert text.split("\n\n")[0] == (
        "The answers of acme/parrot-7b to Animals were scored (3 samples). "
        f"multiple_choice, a mean over samples, is 0.50 [0.09, 0.91] ({entry['method']}), with 2 of 3 samples scored. "
        f"Counting the 1 failed answer as the worst value, it is 0.33 [{wrong['low']:.2f}, {wrong['high']:.2f}] "
        f"({wrong['method']}). Answers were read by the rule mmeval@1. Scores were computed by multimodal-eval "
        f"{versions['multimodal_eval']} (statistics 2, Python {versions['python']}, NumPy {versions['numpy']})."
    )
    assert f"\nSignatures:\n- `{entry['signature']}`\n\n@software{{multimodal_eval,\n" in text
    assert "  version = {" + versions["multimodal_eval"] + "}," in text


def test_what_failed_answers_count_as():
    rows = [{"id": str(n), "references": ["a dog runs"], "generated_answer": "a dog"} for n in range(5)]
    rows[0]["generated_answer"] = "[ERROR] time-out"
    left_out, counted = (
        evaluate(rows, metrics=["bleu", "exact_match"], count_failures=each) for each in (None, "wrong")
    )
    by_metric = export(left_out, "cite").text.split("exact_match, a mean")
    assert ["as blank answers, it is" in text for text in by_metric] == [True, False]
    by_metric = export(counted, "cite").text.split("exact_match, a mean")
    assert "Failed answers (1) count as blank answers; without them, it is" in by_metric[0]
    assert "Failed answers (1) count as the worst value; without them, it is" in by_metric[1]
    caption = export(counted, "markdown", marks="none").text.splitlines()[-1]
    assert "failed answers, which count as the worst value, in corpus scores as blank answers." in caption


def test_a_benchmark_is_cited_with_its_authors(tmp_path):
    write_sample(recipe("mmmu-val"), tmp_path / "copy")
    run = evaluate("mmmu-val", model="echo", task_data=tmp_path / "copy", allow_partial=True, output=tmp_path / "run")
    text = export(run, "cite").text
    assert "The answers of echo to MMMU, validation were scored" in text
    assert "The benchmark is MMMU, validation, version 1 of its recipe (Yue et al. (2024). MMMU: A Massive" in text


def test_the_scores_of_a_log_are_not_ours(tmp_path):
    text = export(import_log(log_of(LM_EVAL, "toy_choice"), output=tmp_path / "run").run, "cite").text
    assert re.search(r"Scores are those of lm-eval( [\d.]+)?; intervals were computed by multimodal-eval ", text)


def test_a_judge_is_said_to_measure_itself_unless_people_correct_it():
    rows = [
        {"id": str(n), "generated_answer": "a dog" if n % 3 else "a cat", "references": ["a bird"], "human": 1 + n % 4}
        for n in range(40)
    ]
    judge = JudgeConfig(name="scale", form="scale")
    settings = {
        "metrics": [judge],
        "judge": lambda request: '{"score": 4}' if "a dog" in request.prompt else '{"score": 2}',
    }
    alone = export(evaluate(rows, **settings), "cite").text
    assert "It is what a judge says, without correction by human labels." in alone
    corrected = export(evaluate(rows, human={"scale": "human"}, **settings), "cite").text
    assert re.search(r", corrected by 40 human labels, uncorrected \d\.\d+ ", corrected)
    assert "It is what a judge says, without correction by human labels." not in corrected


def test_without_a_score_there_is_no_number():
    run = evaluate([{**CHOICES[2]}], metrics=["multiple_choice"], allow_empty=True)
    assert "multiple_choice has no value (nothing scored)." in export(run, "cite").text


def test_an_unknown_metric_is_refused(choices):
    with pytest.raises(UnknownNameError, match="no metric of this run is named 'wer'"):
        export(choices, "cite", metrics=["wer"])


def test_the_release_is_that_of_the_citation_file():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["date-released"]) == (RELEASE[0], date.fromisoformat(RELEASE[1]))
