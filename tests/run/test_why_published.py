"""Published answers under the rules and averages of several programs. The answers are not in the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from multimodal_eval import rescore, why
from multimodal_eval.run.reproduction.ledger import OUR_LEDGER
from multimodal_eval.run.why import opened_side

DATA = os.environ.get("MMEVAL_TEST_DATA")  # a folder with published/, which is not in the project

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(DATA is None, reason="MMEVAL_TEST_DATA names no folder with published answers"),
]


def ledger_of(folder: Path, recipe: str, model: str | None = None) -> Path:
    """A ledger with one entry of ours."""
    entries = yaml.safe_load(OUR_LEDGER.read_text())
    entry = next(e for e in entries if e["recipe"] == recipe and model in (None, e.get("model")))
    for name in ("answers", "questions"):
        if name in entry:
            entry[name] = str((Path(DATA or "") / "published" / entry[name]).resolve())
    path = folder / f"{recipe}-{model}.yaml".replace("/", "_").replace(" ", "_")
    path.write_text(yaml.safe_dump([entry]))
    return path


def scored(ledger: Path, metric: str, **options: str):
    """The same answers by a rule."""
    settings = {"metrics": [metric], "options": {metric: options}, "headline": metric, "skip_lint": True}
    return rescore(opened_side(ledger).run, settings, progress=False)


def test_mmmu_by_its_program_and_by_lmms_eval(tmp_path):
    """The mechanism of lmms-eval's MMMU discrepancy: another rule, and what becomes of answers without a letter."""
    ledger = ledger_of(tmp_path, "mmmu-val")
    official = scored(ledger, "open_answer", rule="mmmu@2024/seed42")
    theirs = scored(ledger, "open_answer", rule="lmms-eval@0.7.3/mmmu")
    result = why(official, theirs, names=("MMMU", "lmms-eval"))
    moved = {part.name: (part.moved, part.confidence) for part in result.parts if part.moved}
    assert moved == {"failure": (2, "certain")}  # the two answers for which MMMU's program draws a letter
    assert float(result.headlines[0]) == pytest.approx(100 * 330 / 900)
    assert result.sum_error == 0
    plain = why(official, scored(ledger, "open_answer", rule="mmeval@1"), names=("MMMU", "ours"))
    assert {part.name: part.moved for part in plain.parts if part.moved} == {"reading": 2}
    published = why(ledger, official)
    assert {part.name for part in published.parts if part.value} <= {"aggregation"}  # 36.67 is rounded


PAIRS = [
    *(("blink-val", model, "multiple_choice", rule) for model in ("llava-internlm2-7b", "llava_v1.5_7b")
      for rule in ("mmmu@2024", "vlmevalkit@e8e78f05/can_infer")),
    *(("math-vision", model, "open_answer", "mmeval@1") for model in (
        "Random-Chance", "GPT4-CoT (Text Only)", "Qwen-VL-Max", "Qwen-VL-Plus", "LLaVA-v1.5-13B", "ShareGPT4V-7B")),
    ("mathvista-testmini", "chatgpt", "open_answer", "mmeval@1"),
]  # fmt: skip


def test_published_scores_against_the_rules_of_other_programs(tmp_path):
    settled = {}
    for recipe, model, metric, rule in PAIRS:
        ledger = ledger_of(tmp_path, recipe, model)
        options = {"random": "expected", "rule": rule}
        result = why(ledger, scored(ledger, metric, **options))
        assert result.sum_error == 0
        assert any(part.value for part in result.parts)
        settled[recipe, model, rule] = result.settled
    assert len(settled) >= 10
    assert {key: share for key, share in settled.items() if share < 0.8} == {}


def test_published_answers_by_another_average(tmp_path):
    ledger = ledger_of(tmp_path, "mmmu-val")
    macro = scored(ledger, "open_answer", rule="mmmu@2024/seed42", average="macro(subject)")
    result = why(ledger, macro)
    assert {part.name: part.confidence for part in result.parts if part.value} == {"aggregation": "certain"}
