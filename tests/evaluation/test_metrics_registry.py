"""The three ways to add a metric, and the registry's errors for unknown names."""

from __future__ import annotations

import importlib.metadata
import sys
import types

import pytest

from multimodal_eval import Metric, Sample, Score, evaluate, evaluate_sample, metric, register
from multimodal_eval.core import registry
from multimodal_eval.core.errors import ConfigError, DuplicateNameError, UnavailableError, UnknownNameError
from multimodal_eval.evaluation import metrics_registry
from multimodal_eval.evaluation.metrics_registry import TASK_METRICS, get_metric, list_available
from multimodal_eval.evaluation.tasks_config import TASKS

SAMPLE = Sample(id="1", generated_answer="a red dog", expected_answer="a red dog runs")


def words(sample: Sample) -> float:
    return float(len((sample.generated_answer or "").split()))


def test_a_plain_function_in_the_table():
    metrics_registry._METRICS["words"] = words
    TASK_METRICS["captioning"].append("words")
    assert evaluate_sample(SAMPLE, task_type="captioning")["words"] == 3.0


def test_a_rebound_table():
    metrics_registry._METRICS = {**metrics_registry._METRICS, "words": words}
    TASK_METRICS["captioning"].append("words")
    assert evaluate_sample(SAMPLE, task_type="captioning")["words"] == 3.0
    assert "words" in list_available()


def test_a_decorator_still_registers_after_the_table_is_rebound():
    metrics_registry._METRICS = dict(metrics_registry._METRICS)
    metric("late")(words)
    assert get_metric("late")(SAMPLE) == 3.0


def test_a_decorator():
    @metric("words", needs=("generated_answer",))
    def compute_words(sample: Sample) -> float:
        return words(sample)

    run = evaluate([SAMPLE], metrics=["words"])
    assert run["words"]["value"] == 3.0
    assert get_metric("words") is compute_words


def test_a_plugin_file(tmp_path):
    plugin = tmp_path / "my_metric.py"
    plugin.write_text(
        "from multimodal_eval import metric\n"
        "@metric('from_file', bounds=(0, None))\n"
        "def compute(sample):\n"
        "    return float(len(sample.generated_answer))\n"
    )
    run = evaluate([SAMPLE], metrics=["from_file"], plugins=[str(plugin)])
    assert run["from_file"]["value"] == 9.0
    registry.load_plugin(plugin)  # a second time is harmless


def test_a_plugin_that_is_not_a_file():
    with pytest.raises(ConfigError, match="is not a file"):
        registry.load_plugin("nowhere.py")


def test_an_entry_point(monkeypatch):
    module = types.ModuleType("someones_package")
    module.words = words  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "someones_package", module)
    entry = importlib.metadata.EntryPoint("someones_words", "someones_package:words", registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry])
    registry.entry_points.cache_clear()
    try:
        assert "someones_words" in list_available()
        assert get_metric("someones_words")(SAMPLE) == 3.0
    finally:
        monkeypatch.undo()
        registry.entry_points.cache_clear()


def test_an_entry_point_may_not_take_a_name(monkeypatch):
    entry = importlib.metadata.EntryPoint("cider", "someones_package:words", registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry])
    registry.entry_points.cache_clear()
    try:
        with pytest.raises(DuplicateNameError, match="cider"):
            list_available()
    finally:
        monkeypatch.undo()
        registry.entry_points.cache_clear()


def test_a_taken_name_is_refused():
    with pytest.raises(DuplicateNameError, match=r"cider.*already registered"):
        metric("cider")(words)


def test_a_repeated_definition_replaces_itself():
    metric("words")(words)
    metric("words")(words)


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match="Did you mean 'cider'"):
        get_metric("cidr")
    with pytest.raises(UnknownNameError, match="Did you mean 'captioning'"):
        evaluate_sample(SAMPLE, task_type="captoning")


def test_task_metrics_is_a_live_view_of_the_tasks():
    TASK_METRICS["captioning"].append("x")
    assert TASKS["captioning"].metrics[-1] == "x"
    TASK_METRICS["mine"] = ["cider"]
    assert TASKS["mine"].metrics == ["cider"]
    del TASK_METRICS["mine"]
    assert "mine" not in TASKS
    assert isinstance(TASK_METRICS["vqa"], list)


def test_options_of_a_function_are_its_keywords():
    @metric("scaled")
    def scaled(sample: Sample, *, factor: float = 1.0) -> float:
        return factor * words(sample)

    run = evaluate([SAMPLE], metrics=["scaled"], options={"scaled": {"factor": 2.0}})
    assert run["scaled"]["value"] == 6.0
    assert "factor:2" in run["scaled"]["signature"]
    with pytest.raises(ConfigError, match="Did you mean 'factor'"):
        evaluate([SAMPLE], metrics=["scaled"], options={"scaled": {"facter": 2.0}})


def test_a_seed_is_passed_to_a_metric_with_that_keyword():
    @metric("random_like")
    def random_like(sample: Sample, *, seed: int = 0) -> float:
        return float(seed)

    run = evaluate([SAMPLE], metrics=["random_like"], seed=7)
    assert run["random_like"]["value"] == 7.0
    assert "seed:7" in run["random_like"]["signature"]


def test_the_signature_of_an_unversioned_function_depends_on_its_code():
    def always_1(sample):
        return 1.0

    def always_2(sample):
        return 2.0

    first = evaluate([SAMPLE], metrics=[metric("first")(always_1).name])["first"]["signature"]
    second = evaluate([SAMPLE], metrics=[metric("second")(always_2).name])["second"]["signature"]
    assert first.split("code:")[1] != second.split("code:")[1]


class Lengths:
    def score(self, batch):
        return [Score(float(len(sample.generated_answer))) for sample in batch]


class WithModel(Metric):
    name = "with_model"
    needs = ("generated_answer",)
    placement = "model"
    missing: str | None = None

    def unavailable(self):
        return self.missing

    def open(self, state):
        return Lengths()


def test_a_metric_class_is_opened_once_and_scores_batches():
    register(WithModel())
    run = evaluate([SAMPLE, Sample(id="2", generated_answer="four"), Sample(id="3")], metrics=["with_model"])
    assert run.scores().column("with_model").to_pylist() == [9.0, 4.0, None]
    assert get_metric("with_model")(SAMPLE) == 9.0
    assert run["with_model"]["signature"] == "with_model|v:1|errors:default@2"


def test_a_metric_without_its_model_says_what_to_fetch():
    subject = WithModel()
    subject.missing = "it needs a model. Fetch it with: mmeval fetch some-model"
    register(subject)
    with pytest.raises(UnavailableError, match="mmeval fetch some-model") as refused:
        evaluate([SAMPLE], metrics=["with_model", "cider"])
    assert "To run without them: --metrics cider" in str(refused.value)


RECORD = {"generated_answer": "a red dog", "references": ["a red dog"]}


def test_one_sample_with_chosen_metrics():
    scores = evaluate_sample(RECORD, metrics=["exact_match", "bleu"])
    assert list(scores) == ["exact_match", "bleu", "bleu.bleu_1", "bleu.bleu_2", "bleu.bleu_3", "status"]
    assert (scores["exact_match"], scores["status"]) == (1.0, {"exact_match": "ok", "bleu": "ok"})
    assert evaluate_sample(SAMPLE, metrics="exact_match") == {"exact_match": 0.0, "status": {"exact_match": "ok"}}


def test_one_sample_with_a_preset_or_a_list_in_a_string():
    assert {"bleu", "rouge_l", "cider_d"} <= evaluate_sample(RECORD, metrics="coco").keys()
    assert list(evaluate_sample(RECORD, metrics="exact_match, rouge_l")) == ["exact_match", "rouge_l", "status"]


def test_one_sample_with_an_unknown_metric():
    with pytest.raises(UnknownNameError, match="Did you mean 'exact_match'"):
        evaluate_sample(RECORD, metrics="exactmatch")


def test_one_record_needs_no_id():
    with_id = evaluate_sample({"id": "7", **RECORD}, metrics="rouge_l")
    assert evaluate_sample(RECORD, metrics="rouge_l") == with_id
    assert evaluate_sample({"id": None, **RECORD}, metrics="rouge_l") == with_id
