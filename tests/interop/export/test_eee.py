"""Records of Every Eval Ever: valid by the published schema, and without loss when they are imported again."""

from __future__ import annotations

import hashlib
import json
import re
from math import sqrt
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multimodal_eval import Run, evaluate, import_log, rescore
from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.core.score import STATISTICS
from multimodal_eval.interop.export.files import portable
from multimodal_eval.interop.export.registry import export
from tests.data.logs.fixture_logs import EVALSCOPE, HELM, LM_EVAL, VLMEVALKIT, log_of, pooled_run
from tests.interop.export.eee_schema import AGGREGATE, INSTANCE
from tests.interop.export.runs import SAMPLES, make_run

FIGURE = ("value", "stderr", "low", "high", "method")


def exported(run, folder, **options):
    files = export(run, "eee", folder, **{"model": "acme/parrot", **options})
    results, lines = files.paths
    content = lines.read_bytes().decode()
    assert content.count("\n") == len(content.splitlines())  # the validator splits at more than line feeds
    return json.loads(results.read_text()), [json.loads(line) for line in content.splitlines()], files


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("eee") / "run")


@pytest.fixture
def records(run, tmp_path):
    return exported(run, tmp_path)


def test_both_files_follow_the_schema(records):
    aggregate, instances, _ = records
    jsonschema.validate(aggregate, AGGREGATE)
    for instance in instances:
        jsonschema.validate(instance, INSTANCE)


def test_the_files_are_where_the_collection_has_them(records):
    aggregate, instances, files = records
    results, lines = files.paths
    uuid4 = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert re.search(rf"/data/run/acme/parrot/{uuid4}\.json$", str(results))
    assert lines.name == f"{results.stem}_samples.jsonl"
    detailed = aggregate["detailed_evaluation_results"]
    assert detailed["file_path"] == f"data/run/acme/parrot/{lines.name}"
    assert detailed["checksum"] == hashlib.sha256(lines.read_bytes()).hexdigest()
    assert detailed["total_rows"] == len(instances)
    assert {instance["evaluation_id"] for instance in instances} == {aggregate["evaluation_id"]}
    assert {instance["model_id"] for instance in instances} == {aggregate["model_info"]["id"]} == {"acme/parrot"}


def test_a_result_has_score_error_interval_and_counts(run, records):
    aggregate, _, _ = records
    results = {result["evaluation_result_id"]: result for result in aggregate["evaluation_results"]}
    parts = ("hits", "substitutions", "deletions", "insertions")
    bleu = ("bleu", *(f"bleu.bleu_{n}" for n in (1, 2, 3)))
    assert list(results) == ["rouge_l", *bleu, "exact_match", "wer", *(f"wer.{part}" for part in parts)]
    for name, result in results.items():
        figure = run[name]
        uncertainty = result["score_details"]["uncertainty"]
        assert result["score_details"]["score"] == figure["value"]
        if figure["low"] is None:  # a count that is the same for all samples
            assert "confidence_interval" not in uncertainty
            continue
        interval = uncertainty["confidence_interval"]
        assert uncertainty["standard_error"]["value"] == figure["stderr"]
        assert (interval["lower"], interval["upper"], interval["method"]) == (
            figure["low"],
            figure["high"],
            f"{figure['method']} (statistics {STATISTICS})",
        )
        assert interval["confidence_level"] == 0.95
        assert uncertainty["num_samples"] == 6
    # exact_match: plain, caption 0, blank 0, choice#1 1, choice#2 0, talk 0: mean 1/3, sum of squares 2 - 6/9 = 4/3.
    exact = results["exact_match"]["score_details"]["uncertainty"]
    assert exact["standard_deviation"] == pytest.approx(sqrt(4 / 3 / 5))
    assert results["exact_match"]["metric_config"]["score_type"] == "binary"
    assert results["wer"]["metric_config"]["lower_is_better"] is True
    assert results["wer"]["metric_config"]["max_score"] == "Infinity"
    assert results["bleu"]["metric_config"]["additional_details"]["kind"] == "corpus"


def test_an_unscored_sample_is_no_instance(records):
    aggregate, instances, files = records
    assert {instance["sample_id"] for instance in instances} == {
        *("plain", "caption", "blank", "choice#1", "choice#2", "talk")
    }
    details = aggregate["evaluation_results"][0]["score_details"]["details"]
    assert (details["samples_scored"], details["samples_total"]) == ("6", "8")
    unscored = json.loads(details["mmeval.unscored"])
    assert {status: sorted(map(tuple, reasons.values())) for status, reasons in unscored.items()} == {
        "error": [("failed",)],
        "missing_input": [("unanswered",)],
    }
    assert any("2 samples without any score" in note for note in files.notes)


def test_what_an_instance_says(records):
    _, instances, _ = records
    first = {instance["sample_id"]: instance for instance in reversed(instances)}
    plain = first["plain"]
    assert plain["input"] == {"raw": "What runs?", "reference": ["a dog", "dog"]}
    assert plain["output"] == {"raw": ["a dog"]}
    assert plain["interaction_type"] == "single_turn"
    assert plain["evaluation"] == {"score": 1.0, "is_correct": True}
    assert plain["sample_hash"] == hashlib.sha256(b"What runs?a dogdog").hexdigest()
    assert first["choice#1"]["input"]["choices"] == ["one", "two"]
    assert first["choice#1"]["input"]["formatted"] == "Which? A or B"
    assert first["choice#1"]["metadata"]["level"] == "3"
    assert first["choice#2"]["token_usage"] == {"input_tokens": 12, "output_tokens": 1, "total_tokens": 13}
    assert first["choice#2"]["output"]["reasoning_trace"] == ["It says two."]
    talk = first["talk"]
    assert talk["interaction_type"] == "multi_turn"
    assert "output" not in talk
    assert [turn["content"] for turn in talk["messages"]] == [
        "Be brief.",
        "Who is it?",
        "A dog.",
        "Its colour?",
        "Brown.",
    ]
    assert talk["answer_attribution"][0]["turn_idx"] == 4


def assert_same(run: Run, back: Run) -> None:
    """All samples and scores are the same; those of means have the same intervals to the last bit."""
    before, after = list(run.samples()), list(back.samples())
    for sample, other in zip(before, after, strict=True):
        metadata = {key: value for key, value in other.metadata.items() if not key.startswith("eee.")}
        assert msgspec.structs.replace(other, metadata=metadata) == sample
    scores, recorded = run.scores(), back.scores()
    for name in run.keys():  # noqa: SIM118 - a run is not a mapping
        column = name if name in scores.column_names else f"bleu.{name}"  # `bleu_1` is a part of bleu
        imported = f"eee.{column.replace('.', '_')}"
        if run[name]["value"] is None:
            assert imported not in back.entries
            continue
        assert recorded.column(imported).to_pylist() == scores.column(column).to_pylist()
        if run.kind_of(column) == "mean":
            assert [back[imported][key] for key in FIGURE] == [run[name][key] for key in FIGURE]


def test_an_import_has_the_same_samples_and_scores(run, tmp_path):
    files = export(run, "eee", tmp_path)
    for path in (*files.paths, tmp_path):
        imported = import_log(path)
        assert_same(run, imported.run)
        assert {mean.metric: mean.stated for mean in imported.means}["eee.bleu"] == run["bleu"]["value"]
        assert {score.column: score.aggregation for score in imported.logs[0].scores}["eee.bleu"] == "corpus"
    failed = list(imported.run.samples())[1]
    assert failed.error == "HTTP 500"
    assert failed.metadata["eee.wer:status"] == "error"


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
WORDS = st.text(st.sampled_from("ab \u2028\u2029\x85\n'\"\\é"), min_size=1, max_size=6).filter(str.strip)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("epoch", "question", "mmeval.x", "reasoning"), TEXTS),
        "level": st.integers(-9, 9),
        "is_hard": st.booleans(),
        "tags": st.lists(TEXTS | st.integers(), max_size=2),
    },
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "question": WORDS,
        "prompt": WORDS,
        "expected_answer": WORDS,
        "references": st.lists(WORDS, min_size=1, max_size=3),
        "generated_answer": TEXTS,
        "error": WORDS,
        "group": st.sampled_from("gh"),
        "epoch": st.integers(0, 3),
        "choices": st.lists(WORDS, min_size=1, max_size=3, unique=True),
        "relevant": st.booleans(),
        "image": st.just("a.png"),
        "images": st.lists(st.just("b.png"), min_size=1, max_size=2),
        "logprobs": st.lists(st.floats(-5, 0), min_size=1, max_size=3),
        "metadata": METADATA,
    },
)


@given(st.lists(FIELDS, min_size=1, max_size=5))
@settings(max_examples=15)
def test_every_sample_survives(tmp_path_factory, fields):
    folder = tmp_path_factory.mktemp("round")
    samples = [{"id": f"s{place}", **each} for place, each in enumerate(fields)]
    run = make_run(folder / "run", samples, allow_empty=True)
    if all(entry.value is None for entry in run.entries.values()):
        with pytest.raises(ConfigError, match="has no score to export"):
            export(run, "eee", folder)
        return
    assert_same(run, import_log(export(run, "eee", folder).paths[0]).run)


def test_bytes_of_media_are_left_out_and_named(tmp_path):
    sample = {**SAMPLES[0], "image": b"\x89PNG"}
    run = evaluate([sample], output=tmp_path / "run", metrics=["rouge_l"], skip_lint=True)
    aggregate, _, files = exported(run, tmp_path)
    assert "the media of 1 sample are bytes, which the format cannot have" in files.notes
    assert aggregate["evaluation_results"][0]["source_data"]["additional_details"]["samples_with_media"] == "1"
    assert next(iter(import_log(files.paths[0]).run.samples())).image is None


def test_the_same_run_gives_the_same_files(run, tmp_path):
    first, second = (export(run, "eee", tmp_path / name, model="a/b") for name in ("x", "data"))
    for path, other in zip(first.paths, second.paths, strict=True):
        assert path.relative_to(tmp_path / "x") == other.relative_to(tmp_path)  # a folder `data` is the root itself
        assert path.read_bytes() == other.read_bytes()


def test_only_some_metrics(run, tmp_path):
    aggregate, instances, _ = exported(run, tmp_path, metrics=["wer"])
    assert {result["evaluation_result_id"].partition(".")[0] for result in aggregate["evaluation_results"]} == {"wer"}
    assert len(instances) == 6 * 5  # wer has four parts
    with pytest.raises(UnknownNameError, match="no metric of this run is named 'cer'"):
        export(run, "eee", tmp_path, metrics=["cer"])


def test_the_model(run, tmp_path):
    aggregate, _, files = exported(run, tmp_path, model=None)
    assert aggregate["model_info"]["id"] == "unnamed/run"
    assert "--set model=DEVELOPER/NAME" in files.notes[0]
    for wrong in ("parrot", "/parrot", "acme/"):
        with pytest.raises(ConfigError, match="must be written DEVELOPER/NAME"):
            export(run, "eee", tmp_path, model=wrong)
    aggregate, _, files = exported(run, tmp_path, model="acme/birds/parrot:7b", dataset="a/b")
    assert files.paths[0].parent == tmp_path / "data" / "a_b" / "acme" / "birds_parrot_7b"
    assert aggregate["model_info"]["name"] == "birds/parrot:7b"


def test_an_imported_run_keeps_its_model(run, tmp_path):
    again = import_log(export(run, "eee", tmp_path / "once", model="acme/parrot").paths[0], output=tmp_path / "back")
    exported_again = export(again.run, "eee", tmp_path / "twice")
    assert exported_again.paths[0].parent.parts[-2:] == ("acme", "parrot")
    twice = import_log(exported_again.paths[0]).run
    assert twice.scores().column("eee.eee_wer").to_pylist() == run.scores().column("wer").to_pylist()


def test_a_generated_run_names_its_model_and_parameters(tmp_path):
    data = [{"id": "1", "question": "say hello", "references": ["hello"]}]
    config = GenerationConfig(model="echo", parameters=Parameters(temperature=0.5, max_tokens=9), use_cache=False)
    run = evaluate(data, output=tmp_path / "run", metrics=["rouge_l"], generation=config, skip_lint=True)
    aggregate, _, _ = exported(run, tmp_path, model=None)
    arguments = aggregate["evaluation_results"][0]["generation_config"]["generation_args"]
    assert (arguments["temperature"], arguments["max_tokens"]) == (0.5, 9)
    assert aggregate["model_info"]["id"] == "unnamed/echo"


@pytest.mark.parametrize(
    "log", [log_of(LM_EVAL, "toy_choice"), VLMEVALKIT / "choices", EVALSCOPE / "choices", HELM / "choices"]
)
def test_right_answers_of_an_imported_run_are_correct(log, tmp_path):
    run = import_log(log, output=tmp_path / "run", progress=False).run
    aggregate, instances, _ = exported(run, tmp_path)
    assert {each["evaluation"]["is_correct"] for each in instances if each["evaluation"]["score"] == 1} == {True}
    assert {each["evaluation"]["is_correct"] for each in instances if each["evaluation"]["score"] < 1} == {False}
    for result in aggregate["evaluation_results"]:
        assert (result["metric_config"]["min_score"], result["metric_config"]["max_score"]) == (0, 1)


def test_each_task_of_an_older_import_has_results_of_its_own(tmp_path):
    run = pooled_run(LM_EVAL, tmp_path / "run")
    aggregate, instances, files = exported(run, tmp_path)
    jsonschema.validate(aggregate, AGGREGATE)
    by_id = {result["evaluation_result_id"]: result for result in aggregate["evaluation_results"]}
    choice = by_id["toy_choice/lm-eval.acc"]
    assert (choice["evaluation_name"], choice["source_data"]["dataset_name"]) == ("toy_choice", "toy_choice")
    assert choice["score_details"]["score"] == 0.5
    assert choice["score_details"]["uncertainty"]["num_samples"] == 4
    assert "toy_sum/lm-eval.acc" not in by_id
    assert by_id["lm-eval.acc"]["source_data"]["dataset_name"] == "lm-eval-6-tasks"
    assert {each["evaluation_name"] for each in instances} == {"lm-eval-6-tasks"}
    assert any("the run has 6 tasks. Each has its own results" in note for note in files.notes)
    back = import_log(files.paths[0], progress=False).run
    assert list(back.entries) == [f"eee.{name.replace('.', '_')}" for name in run.entries]
    assert back["eee.lm-eval_acc"]["value"] == run["lm-eval.acc"]["value"]


def test_the_harness_of_an_imported_run_survives(tmp_path):
    run = import_log(log_of(LM_EVAL, "toy_sum"), output=tmp_path / "run", progress=False).run
    files = export(run, "eee", tmp_path)
    aggregate = json.loads(files.paths[0].read_text())
    assert (aggregate["eval_library"]["name"], aggregate["eval_library"]["version"]) == ("lm-eval", "0.4.13")
    assert "multimodal_eval" in json.loads(aggregate["eval_library"]["additional_details"]["versions"])
    assert files.paths[0].parent == tmp_path / "data" / "toy_sum" / "toys" / "scripted"
    before, after = run.info.imported, import_log(files.paths[0], progress=False).run.info.imported
    for name in ("harness", "version", "model", "task", "settings"):
        assert getattr(after, name) == getattr(before, name)


def test_scores_of_ours_are_by_our_library(tmp_path):
    imported = import_log(log_of(LM_EVAL, "toy_sum"), output=tmp_path / "run", progress=False).run
    metrics = ["exact_match", "lm-eval.exact_match_strict-match"]
    run = rescore(imported, {"metrics": metrics}, output=tmp_path / "again")
    library = exported(run, tmp_path)[0]["eval_library"]
    assert library["name"] == "multimodal-eval"
    assert json.loads(library["additional_details"]["mmeval.imported"])["harness"] == "lm-eval"


def test_an_imported_run_is_published_under_its_task(tmp_path):
    run = import_log(HELM / "choices", output=tmp_path / "run", progress=False).run
    aggregate, _, _ = exported(run, tmp_path)
    name = "simple_mcqa:model=simple_model1,num_train_trials=2,data_augmentation=lower"
    assert {result["source_data"]["dataset_name"] for result in aggregate["evaluation_results"]} == {name}


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("a/b", "a_b"),
        ("gpt:4", "gpt_4"),
        ("..", "unnamed"),
        ("data", "named_data"),
        ("con.x", "named_con.x"),
        ("_a", "named__a"),
        ("x. ", "x"),
        ("", "unnamed"),
    ],
)
def test_names_of_folders_are_portable(name, component):
    assert portable(name) == component
    assert Path(component).name == component
