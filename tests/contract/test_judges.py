"""The properties of every metric hold for judges of every form, with a function as the model."""

from __future__ import annotations

import re
from hashlib import sha256

import msgspec
import pytest

from multimodal_eval import Sample
from multimodal_eval.core.judge_config import Criterion, JudgeConfig, JudgeModel
from multimodal_eval.core.metric import signature_of
from multimodal_eval.evaluation.judge_metric import JudgeMetric
from multimodal_eval.generate.protocol import Request
from multimodal_eval.generate.registry import FunctionGenerator
from multimodal_eval.judges.forms.by_name import FORMS
from multimodal_eval.judges.panel import use_generators
from tests.contract.examples import CAPTIONS, IMAGES
from tests.contract.test_every_metric import test_any_text_gets_a_score_or_a_reason, test_it_keeps_the_contract

__all__ = ["test_any_text_gets_a_score_or_a_reason", "test_it_keeps_the_contract"]

CRITERIA = [Criterion(name="accuracy", question="Is it right?"), Criterion(name="detail", question="Is it complete?")]
COMPARED = ("pairwise", "listwise")
SETTINGS = {
    form: JudgeConfig(
        name=form, form=form, models=[JudgeModel(model="function")], criteria=CRITERIA if form == "rubric" else []
    )
    for form in FORMS
    if form != "extract"
}
PANEL = msgspec.structs.replace(
    SETTINGS["scale"], name="panel", models=[JudgeModel(model="function"), JudgeModel(model="other")], repeats=2
)


def number_for(request: Request) -> int:
    """A number that depends on the texts alone, whatever their order."""
    texts = sorted(re.findall(r"<answer[-\d]* \w+>\n(.*?)\n</answer", request.prompt, re.DOTALL))
    return int(sha256(repr(texts).encode("utf-8", "replace")).hexdigest(), 16)


def judge(request: Request) -> str:
    """A verdict by a digest of what is judged; the longer one of two answers wins."""
    number = number_for(request)
    if '"ranking"' in request.prompt or '"1" or "2"' in request.prompt:
        first, second = re.findall(r"<answer-\d \w+>\n(.*?)\n</answer", request.prompt, re.DOTALL)
        is_tie, is_first = len(first) == len(second), len(first) > len(second)
        if '"ranking"' in request.prompt:
            return f'{{"ranking": {[[1, 2]] if is_tie else [1, 2] if is_first else [2, 1]}}}'
        return f'{{"verdict": "{"tie" if is_tie else 1 if is_first else 2}"}}'
    if "yes or no" in request.prompt:
        return "Verdict: yes" if number % 2 else "Verdict: no"
    if '"accuracy"' in request.prompt:
        return f'{{"accuracy": {1 + number % 5}, "detail": {1 + number // 5 % 5}}}'
    if "from 0.0" in request.prompt:
        return f'{{"score": 0.{1 + number % 5}}}'
    return f'{{"score": {1 + number % 5}}}'


def other(request: Request) -> str:
    """Another judge of the same kind."""
    return f"Score: {1 + number_for(request) // 7 % 5}"


@pytest.fixture(params=[*SETTINGS, "panel"])
def metric(request):
    use_generators({"function": FunctionGenerator(judge), "other": FunctionGenerator(other)})
    return JudgeMetric(PANEL if request.param == "panel" else SETTINGS[request.param])


@pytest.fixture
def samples(metric):
    if metric.config.form not in COMPARED:
        return IMAGES if metric.config.form == "fleur" else CAPTIONS
    others = ["a dog", "two cats sleep on a chair", "a bus", "a very brown dog that runs"]
    texts = others if metric.config.form == "pairwise" else [[text] for text in others]
    return [
        msgspec.structs.replace(sample, metadata={"baseline": text})
        for sample, text in zip(CAPTIONS, texts, strict=True)
    ]


def test_its_signature_names_the_form_the_models_and_the_version(metric):
    text = str(signature_of(metric))
    assert text.startswith(f"judge|v:{metric.version}|form:{metric.config.form}|models:")
    assert text == str(signature_of(type(metric)(metric.config)))


def test_a_judge_is_not_asked_about_a_sample_that_cannot_be_scored(metric):
    bare = Sample("bare", references=["x"])
    assert metric(bare) == 0.0
