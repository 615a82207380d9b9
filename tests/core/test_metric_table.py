"""The table of metrics knows all names, and imports a metric on first access."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import multimodal_eval
from multimodal_eval import metric
from multimodal_eval.core.errors import ConfigError, DuplicateNameError
from multimodal_eval.core.metric_table import MetricTable, _NotImported
from multimodal_eval.core.registry import registered
from multimodal_eval.evaluation import metrics_registry
from multimodal_eval.evaluation.metrics import cider

FAMILIES = {
    "anls": ["anls", "anls_star"],
    "boxes": ["acc_at_iou", "iou", "point_in_box"],
    "chair": ["chair_i", "chair_s"],
    "cider": ["cider", "cider_d", "cider_r"],
    "clipscore": ["clip_score", "clipscore", "ref_clipscore"],
    "error_rates": ["cer", "mer", "wer", "wil"],
    "exact_match": ["contains", "exact_match", "token_f1"],
    "labels": ["f1_any_match", "f1_majority", "f1_strict", "soft_score"],
    "reference_matches": ["gqa", "ocrbench", "relaxed_accuracy"],
    "rouge": ["rouge_1", "rouge_2", "rouge_lsum"],
    "sacrebleu": ["chrf", "sacrebleu", "ter"],
    "semantic_similarity": ["contextual_relevance", "semantic_similarity"],
    "spice": ["spice", "spider"],
}
FILES = sorted(
    name
    for path in (Path(multimodal_eval.__file__).parent / "evaluation" / "metrics").glob("*.py")
    if path.stem != "__init__"
    for name in FAMILIES.get(path.stem, [path.stem])
)


def in_new_process(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fresh() -> MetricTable:
    return MetricTable.of_built_in_metrics()


def test_names_come_from_file_names():
    assert list(fresh()) == FILES
    assert len(fresh()) == len(FILES)


def test_names_are_known_without_an_import_and_a_lookup_imports_one_metric():
    program = """
import sys
from multimodal_eval.evaluation import metrics_registry as registry
home = "multimodal_eval.evaluation.metrics."
imported = lambda: [name.removeprefix(home) for name in sys.modules if name.startswith(home)]
assert "cider" in registry._METRICS and "cider" in registry.list_available() and "cidr" not in registry._METRICS
assert len(registry._METRICS) == len(list(registry._METRICS)) == len(registry.list_available())
assert imported() == [], imported()
assert registry.get_metric("chair_s").name == "chair_s"
assert imported() == ["chair"], imported()
"""
    in_new_process(program)


def test_the_help_imports_no_metric():
    program = """
import sys
from click.testing import CliRunner
from multimodal_eval.cli.main import cli
assert "score" in CliRunner().invoke(cli, ["--help"]).output
assert not [name for name in sys.modules if name.startswith("multimodal_eval.evaluation")]
"""
    in_new_process(program)


@pytest.mark.parametrize(
    "read",
    [
        dict,
        lambda table: {**table},
        lambda table: table.copy(),
        lambda table: table | {},
        lambda table: {} | table,
        lambda table: dict(table.items()),
        lambda table: dict(zip(table, table.values(), strict=True)),
        lambda table: {name: table.get(name) for name in table.keys()},  # noqa: SIM118
        lambda table: {name: table.pop(name) for name in list(table)},
        lambda table: dict(table.popitem() for _ in range(len(table))),
        lambda table: {name: table.setdefault(name, print) for name in table},
    ],
)
def test_it_reads_like_a_dict(read):
    metrics = read(fresh())
    assert type(metrics) is dict
    assert sorted(metrics) == FILES
    assert metrics["cider"] is cider.compute_cider
    assert not any(isinstance(entry, _NotImported) for entry in metrics.values())


def test_it_changes_like_a_dict():
    table = fresh()
    table["mine"] = len
    table.update(cider=len)
    del table["bleu"]
    assert table["cider"] is table.get("mine") is len
    assert table.get("bleu") is None
    assert table.pop("bleu", None) is None
    assert table.setdefault("bleu", max) is max
    with pytest.raises(KeyError):
        _ = table["rouge"]
    assert "<metric chair_i, not imported yet>" in repr(table)


def test_a_file_without_its_metric_is_an_error(monkeypatch):
    monkeypatch.delattr(cider, "compute_cider")
    with pytest.raises(ConfigError, match=r"evaluation.metrics.cider must define `compute_cider`"):
        _ = fresh()["cider"]


@pytest.mark.parametrize("before", ["", "from multimodal_eval.evaluation import bleu"])
def test_a_plugin_may_not_take_a_built_in_name(before):
    program = f"""
from multimodal_eval import metric
from multimodal_eval.core.errors import DuplicateNameError
{before}
try:
    metric("bleu")(lambda sample: 1.0)
except DuplicateNameError as error:
    print(error)
"""
    message = in_new_process(program)
    assert "'bleu' is already registered, by multimodal_eval.evaluation.metrics.bleu.compute_bleu" in message


def test_a_replaced_built_in_metric_stays_replaced_when_its_module_is_imported():
    program = """
from multimodal_eval.evaluation import metrics_registry as registry
def mine(sample): return 1.0
registry._METRICS["bleu"] = mine
del registry._METRICS["rouge_l"]
from multimodal_eval.evaluation import bleu, rouge_l
assert registry.get_metric("bleu") is mine
assert "rouge_l" not in registry.list_available()
assert bleu.compute_bleu.name == "bleu"
"""
    in_new_process(program)


def test_a_built_in_metric_may_be_registered_again():
    registered.register("cider", cider.compute_cider)
    assert registered["cider"] is cider.compute_cider
    with pytest.raises(DuplicateNameError):
        metric("cider")(lambda sample: 1.0)


def test_a_replaced_table_needs_no_built_in_names(monkeypatch):
    monkeypatch.setattr(metrics_registry, "_METRICS", {"mine": len})
    assert metrics_registry.get_metric("mine") is len
    assert metrics_registry.get_metric("cider") is cider.compute_cider
    assert {"mine", "cider"} <= set(metrics_registry.list_available())
