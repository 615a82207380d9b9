"""Without the extra [models]: what needs a model says so before anything is scored, and everything else works."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from multimodal_eval import evaluate
from multimodal_eval.cli.demo import next_steps
from multimodal_eval.cli.fetch import _say_what_is_missing
from multimodal_eval.cli.main import cli
from multimodal_eval.core.display import printed
from multimodal_eval.core.errors import MissingPackageError, UnavailableError
from multimodal_eval.models.clip import by_name as clip
from multimodal_eval.models.runtime import PACKAGES, check_runtime, missing_runtime, onnxruntime, tokenizers

ADVICE = "which is not installed. Install it with: pip install 'multimodal-eval[models]'"
ROWS = [{"id": str(i), "generated_answer": f"a dog {i}", "references": [f"the dog {i}"]} for i in range(4)]


@pytest.fixture(params=PACKAGES)
def missing(request, monkeypatch, tmp_path):
    """The name of the package that is missing. Nothing may be fetched."""
    monkeypatch.setitem(sys.modules, request.param, None)
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    return request.param


def refusal(*arguments):
    result = CliRunner().invoke(cli, arguments)
    assert isinstance(result.exception, UnavailableError), result.output
    return str(result.exception)


@pytest.mark.parametrize(
    ("metric", "model", "options"),
    [
        ("semantic_similarity", "all-minilm-l6-v2", ()),
        ("bertscore", "all-minilm-l6-v2", ()),
        ("clip_score", "shapes-clip", ("--option", "clip_score.model=shapes-clip")),
        ("perplexity", "smollm2-135m", ("--option", "perplexity.source=model")),
    ],
)
def test_a_metric_is_refused_before_anything_is_scored(missing, tmp_path, metric, model, options):
    message = refusal("score", "rows.jsonl", "--metrics", f"rouge_l,{metric}", *options, "-o", "run")
    assert f"{metric}: the model {model!r} needs the package {missing!r}, {ADVICE}\n" in message
    assert "To run without them: --metrics rouge_l" in message
    assert not (tmp_path / "run").exists()


def test_the_metric_can_be_left_unscored(missing, tmp_path):
    arguments = ["score", "rows.jsonl", "--metrics", "rouge_l,semantic_similarity", "--skip-unavailable", "-o", "run"]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    assert missing in info["unavailable"]["semantic_similarity"]
    assert missing not in info["versions"]


def test_other_metrics_need_nothing(missing):
    assert evaluate(ROWS, metrics=["rouge_l", "cider_d"])["rouge_l"]["value"] > 0.5


def test_a_model_on_this_machine_writes_no_answers(missing, tmp_path):
    message = refusal("run", "rows.jsonl", "--model", "llama:smollm2-135m", "--metrics", "rouge_l", "-o", "run")
    assert message == f"the model 'smollm2-135m' needs the package {missing!r}, {ADVICE}"
    assert not (tmp_path / "run").exists()


def test_lists_say_what_is_missing(missing):
    resources = CliRunner().invoke(cli, ["ls", "resources"]).output
    assert f"running all-minilm-l6-v2, shapes-clip, smollm2-135m needs the package {missing!r}, {ADVICE}" in resources
    metrics = " ".join(CliRunner().invoke(cli, ["ls", "metrics"]).output.split())
    assert f"Cannot run yet: the model 'all-minilm-l6-v2' needs the package {missing!r}" in metrics


def test_fetching_a_model_says_what_runs_it(missing):
    result = CliRunner().invoke(cli, ["fetch", "shapes-clip"])
    assert result.exit_code == 0
    assert result.stderr == f"running shapes-clip needs the package {missing!r}, {ADVICE}\n"


def test_what_needs_no_model_is_fetched_without_a_word(missing, capsys):
    _say_what_is_missing(["wiktionary-ru", "navec-ru", "en-core-web-sm", "meteor-1.5-en"])
    assert capsys.readouterr().err == ""
    _say_what_is_missing(["wiktionary-ru", "hf:someone/model"])
    assert capsys.readouterr().err.startswith("running hf:someone/model needs")


def test_the_demo_fetches_nothing_that_cannot_run(missing, tmp_path):
    message = refusal("demo", "--fetch", "-o", "kept")
    assert message == f"mmeval demo --fetch needs the package {missing!r}, {ADVICE}. Without models: mmeval demo"
    assert not (tmp_path / "home").exists()


@pytest.mark.slow
def test_the_demo_runs_what_needs_no_model(missing, tmp_path):
    result = CliRunner().invoke(cli, ["demo", "-o", "kept"])
    assert result.exit_code == 0, result.output
    answer = next(line for line in result.output.splitlines() if line.startswith("Who is better? "))
    assert answer == (
        "Who is better? Alba is better in contextual relevance, classification and dialogue; no difference is shown in "
        "captioning, vqa and hallucination."
    )
    suggested = [line.strip() for line in result.output.splitlines() if line.startswith("  mmeval ")]
    assert suggested == ["mmeval demo --files demo", *next_steps(Path("demo"))]
    line = result.stderr.splitlines()[0]
    assert line.startswith("left out: clip_score, semantic_similarity, ")
    assert line.endswith(f"answers of SmolLM2: each of them needs the package {missing!r}, {ADVICE}")
    tasks = ("captioning", "vqa", "contextual_relevance", "hallucination", "classification", "dialogue")
    assert [task for task in tasks if (tmp_path / "kept" / task / "boreas" / "results.json").exists()] == list(tasks)
    for name in ("cider_d", "vqa_accuracy", "chair_i", "f1_strict", "hidden_metric"):
        assert f"{printed(name)} " in result.stdout


def test_the_error_names_the_package_wherever_it_is_needed(missing):
    for use in (lambda: check_runtime("m"), {"onnxruntime": onnxruntime, "tokenizers": tokenizers}[missing]):
        with pytest.raises(MissingPackageError, match=rf"needs the package '{missing}'"):
            use()
    assert missing in (missing_runtime("this") or "")
    with pytest.raises(MissingPackageError, match=missing):
        clip.find("shapes-clip").check()


def test_nothing_is_missing_here():
    assert missing_runtime("this") is None
    check_runtime("m")
