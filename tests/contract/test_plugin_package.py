"""A package of somebody else, written for 0.1: a metric by the decorator, and one by a subclass with older names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from multimodal_eval import Metric, Sample, evaluate, evaluate_sample, load_run
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.core.metric import configured, part_bounds, signature_of, summary_of
from multimodal_eval.core.registry import load_plugin
from multimodal_eval.core.scoring import kind_of
from multimodal_eval.evaluation.metrics_registry import resolve
from multimodal_eval.run.verify import verify_run

PACKAGE = Path(__file__).with_name("plugin_package")
ROWS = [
    {"id": "1", "generated_answer": "a dog", "references": ["a dog runs home"]},
    {"id": "2", "generated_answer": "a reddish dog sleeps now", "references": ["a cat sleeps now today"]},
    {"id": "3", "generated_answer": " ", "references": ["a bird"]},
]
SCORE = "from multimodal_eval.cli.main import main; main()"


@pytest.fixture
def rarity():
    with pytest.warns(DeprecationWarning, match=r"Rarity defines .*`check_options` \(now settle\).*until 0.4"):
        load_plugin(PACKAGE / "mmeval_brevity" / "by_subclass.py")
    return resolve("rarity")


def test_an_installed_package_scores(tmp_path):
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    arguments = ["score", "data.jsonl", "--metrics", "brevity,rarity", "-o", "run", "--workers", "2"]
    done = subprocess.run(
        [sys.executable, "-c", SCORE, *arguments], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    metrics = load_run(tmp_path / "run").outcome.metrics
    # References have 4, 5 and 2 words, 11/3 in the mean; answers have 2 and 5: 1 and 11/15, and 0 for the blank one.
    assert metrics["brevity"].value == pytest.approx((1 + 11 / 15) / 3)
    assert metrics["brevity"].signature == "brevity|v:1|most:50|mean:11/3|errors:default@2"
    assert_rarity(metrics["rarity"])


def assert_rarity(entry):
    # Of "a dog", "dog" is in one reference; of "a reddish dog sleeps now", all but "a", which is in three.
    assert entry.value == pytest.approx(1 - (1 / 2 + 4 / 5 + 0) / 3)
    assert entry.parts["long"].value == 0.25  # half of the mean of 0 and 1
    assert entry.parts["words"].value == 3.5
    assert entry.signature == "rarity|v:3|most:1|words:split|errors:default@2"


def test_older_names_of_a_subclass_are_adapted(rarity, tmp_path):
    with pytest.raises(InputError, match="rarity: the answer is shouted"):
        evaluate([{**ROWS[0], "generated_answer": "A DOG"}], metrics=["rarity"])
    with pytest.raises(ConfigError, match="`most` must be at least 1"):
        evaluate(ROWS, metrics=["rarity"], options={"rarity": {"most": 0}})
    run = evaluate(ROWS, metrics=["rarity"], output=tmp_path / "run")
    assert_rarity(run.outcome.metrics["rarity"])
    assert run.scores().column("rarity").to_pylist() == [0.5, 0.8, 0.0]
    assert [run.kind_of(name) for name in ("rarity", "rarity.long")] == ["corpus", "corpus"]
    assert verify_run(tmp_path / "run", deep=True).faults == ()
    assert evaluate_sample(ROWS[0], metrics=["rarity"])["rarity"] == 0.5  # of the default state, "a" is common
    assert part_bounds(configured(rarity, {})) == {"long": (0, 1)}


def test_older_names_of_any_metric_can_be_read():
    bleu, cider = resolve("bleu"), resolve("cider")
    reads = {
        "configure": lambda: cider.configure({"n": 1}).options["n"] == 1,
        "signature": lambda: cider.signature() == signature_of(cider),
        "summary": lambda: cider.summary == summary_of(cider),
        "kind_of": lambda: bleu.kind_of("bleu_1") == kind_of(bleu, "bleu_1") == "corpus",
        "averages": lambda: cider.averages and not bleu.averages,
        "fits": lambda: cider.fits and not bleu.fits,
        "fit": lambda: cider.fit([Sample(**ROWS[0])]).images == 1,
        "default_state": lambda: cider.default_state().source == "coco-val2014",
        "part_bounds": lambda: bleu.part_bounds["bleu_1"] == (0, 1),
        "definition": lambda: cider.definition == ("2", None),
        "declared_options": lambda: list(bleu.declared_options) == ["tokenizer"],
        "renamed": lambda: cider.renamed("mine").name == "mine",
        "problem": lambda: resolve("yes_no").problem(Sample(id="1", expected_answer="maybe")) is not None,
        "blank": lambda: resolve("iou").blank == 0.0,
    }
    for name, read in reads.items():
        with pytest.warns(DeprecationWarning, match=rf"Metric\.{name} is now `.*until 0\.4"):
            assert read()
    assert not hasattr(bleu, "warm_up")


def test_an_older_name_that_cannot_be_adapted_is_refused():
    with pytest.raises(TypeError, match=r"Odd\.kind_of: metrics no longer have `kind_of`"):

        class Odd(Metric):
            def kind_of(self, part: str = "") -> str:
                return "mean"
