"""A plug-in that raises: where, how often, and the exit status."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.errors import MetricError
from multimodal_eval.core.metric_failures import failure_text, grouped_failures
from multimodal_eval.evaluation.metrics import rouge_l
from tests.cli.command_line import called

COUNT = 6
IMPORTS = (
    "import json\nfrom multimodal_eval import Metric, Score, metric\nfrom multimodal_eval.core.score import Estimate\n"
)

DECORATOR = """
    @metric("m", version="1")
    def m(sample):
        return loaded(sample)

    def loaded(sample):
        return json.loads(sample.generated_answer)  # raises
"""
SUBCLASS = """
    class M(Metric):
        name = "m"
        def open(self, state):
            return self
        def score(self, batch):
            return [Score(float(json.loads(sample.generated_answer))) for sample in batch]  # raises

    from multimodal_eval.core.registry import register
    register(M())
"""
BATCH = """
    def together(samples):
        return [Score(float(json.loads(sample.generated_answer))) for sample in samples]  # raises

    @metric("m", version="1", batch=together)
    def m(sample):
        return 1.0
"""
HELPER = """
    import sys
    sys.path.insert(0, FOLDER)
    import beside

    @metric("m", version="1")
    def m(sample):
        return beside.value(sample)
"""
FIT = """
    def corpus(samples):
        return json.loads("{")  # raises

    @metric("m", version="1", corpus=corpus)
    def m(sample, corpus=None):
        return 1.0
"""
AGGREGATE = """
    def aggregate(rows):
        return json.loads("{")  # raises

    @metric("m", version="1", aggregate=aggregate)
    def m(sample):
        return 1.0
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Answers, each of which is another error for json."""
    rows = [{"id": str(n), "generated_answer": " " * n + "x", "references": ["x"]} for n in range(COUNT)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "data.jsonl"


def plugin(folder: Path, code: str) -> tuple[Path, int]:
    """The plug-in file, and the line that raises."""
    file = folder / "plugin.py"
    file.write_text(IMPORTS + dedent(code).replace("FOLDER", repr(str(folder))))
    lines = file.read_text().splitlines()
    return file, next((number for number, line in enumerate(lines, 1) if line.endswith("# raises")), 0)


@pytest.mark.parametrize("code", [DECORATOR, SUBCLASS, BATCH], ids=["decorator", "subclass", "batch"])
@pytest.mark.parametrize("workers", [1, 2])
def test_the_reason_names_the_line_of_the_plugin_and_one_line_is_one_reason(data, tmp_path, code, workers):
    file, line = plugin(tmp_path, code)
    run = evaluate(data, metrics=["m"], plugins=[str(file)], workers=workers, allow_empty=True, output=tmp_path / "run")
    text = "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"
    reasons = [row["m:reason"] for row in run.scores().to_pylist()]
    assert reasons[0] == f"{text} (plugin.py:{line})"
    assert len({*reasons}) == COUNT
    expected = f"{text} (plugin.py:{line}), and {COUNT - 1} other messages of this line"
    assert run["m"]["reasons"] == [{"reason": expected, "count": COUNT}]
    assert str(tmp_path) not in (tmp_path / "run" / "results.json").read_text()


def test_a_module_beside_the_plugin_belongs_to_it(data, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "beside.py").write_text("import json\n\ndef value(sample):\n    return json.loads('{')\n")
    file, _ = plugin(tmp_path, HELPER)
    run = evaluate(data, metrics=["m"], plugins=[str(file)], workers=1, allow_empty=True)
    assert run["m"]["reasons"][0]["reason"].endswith(" (beside.py:4)")
    monkeypatch.delitem(sys.modules, "beside")


@pytest.mark.parametrize(("code", "doing"), [(FIT, "gathering its corpus statistics"), (AGGREGATE, "aggregating")])
def test_failures_outside_of_samples_name_the_line_too(data, tmp_path, code, doing):
    file, line = plugin(tmp_path, code)
    with pytest.raises(MetricError, match=rf"FAILED: m failed while {doing}.* \(plugin\.py:{line}\)$"):
        evaluate(data, metrics=["m"], plugins=[str(file)], workers=1)


@pytest.mark.parametrize("metrics", ["m", "exact_match,m"])
def test_the_exit_status_is_not_0_if_a_metric_failed_for_every_sample(data, tmp_path, metrics):
    file, line = plugin(tmp_path, DECORATOR)
    arguments = ("score", str(data), "--plugin", str(file), "--metrics", metrics, "-o", str(tmp_path / "run"))
    ended = called(*arguments)
    assert ended.returncode == 1
    assert "NOTHING_SCORED: m: no score for any of 6 samples. Commonest reason (6 ×): JSONDecodeError: " in ended.stderr
    assert f"(plugin.py:{line}), and 5 other messages of this line" in ended.stderr
    assert (tmp_path / "run" / "results.json").exists()


def test_the_exit_status_is_0_if_some_samples_are_scored(data, tmp_path):
    data.write_text('{"id": "a", "generated_answer": "1.0"}\n' + data.read_text())
    file, _ = plugin(tmp_path, DECORATOR)
    ended = called("score", str(data), "--plugin", str(file), "--metrics", "m", "-o", str(tmp_path / "run"))
    assert ended.returncode == 0
    assert "m: 6 of 7 (85.7%): samples unscored (6 error); most often: JSONDecodeError: " in ended.stdout + ended.stderr


def test_metrics_of_this_package_have_no_place():
    with pytest.raises(ValueError, match="property name") as error:
        json.loads("{")
    text = f"JSONDecodeError: {error.value}"
    assert failure_text(error.value, rouge_l.__name__) == text
    assert failure_text(error.value, __name__).startswith(f"{text} (test_plugin_failures.py:")


def test_a_long_message_keeps_its_place():
    with pytest.raises(ValueError, match="xxx") as error:
        raise ValueError("x" * 5_000)
    text = failure_text(error.value, __name__)
    assert len(text) <= 2_000
    assert text.partition("…")[2].startswith(" (test_plugin_failures.py:")


def test_groups_of_reasons():
    counts = {
        "no generated_answer": 5,
        "ValueError: a (plugin.py:3)": 1,
        "ValueError: b\nc (plugin.py:3)": 3,
        "ValueError: a (plugin.py:4)": 1,
        "KeyError: a (plugin.py:3)": 1,
        "MemoryError (plugin.py:3)": 2,
    }
    assert grouped_failures(counts) == {
        "no generated_answer": 5,
        "ValueError: b\nc (plugin.py:3), and 1 other message of this line": 4,
        "MemoryError (plugin.py:3)": 2,
        "KeyError: a (plugin.py:3)": 1,
        "ValueError: a (plugin.py:4)": 1,
    }
