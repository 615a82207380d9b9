"""The corpus of injected answers, in the prompt of every form: the text is only inside its fence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from multimodal_eval import Sample
from multimodal_eval.core.judge_config import Criterion, JudgeConfig, JudgeForm, JudgeModel
from multimodal_eval.judges.form import Form
from multimodal_eval.judges.forms.by_name import FORMS, form_of
from multimodal_eval.judges.prompt_texts import inert
from tests.judges.fences import split

CORPUS = [json.loads(line) for line in (Path(__file__).parent / "injections.jsonl").read_bytes().splitlines()]
CRITERIA = [Criterion(name="accuracy", question="Is it right?")]


def form(name: JudgeForm) -> Form:
    criteria = CRITERIA if name == "rubric" else []
    return form_of(JudgeConfig(name="judge", form=name, models=[JudgeModel(model="echo")], criteria=criteria))


def sample(text: str, baseline: object) -> Sample:
    """A sample with the text in every place that somebody else writes."""
    return Sample(
        "a",
        question=f"What is it? {text}",
        generated_answer=text,
        references=[text, f"{text} twice"],
        choices=["dog", text],
        image="dog.png",
        metadata={"baseline": baseline, "system": text, "baseline_system": text},
    )


def prompts(judge: Form, asked: Sample) -> list[str]:
    return [
        part
        for order in judge.orders
        for draft in judge.drafts(asked, order)
        for part in draft.parts
        if isinstance(part, str)
    ]


@pytest.mark.parametrize("name", FORMS)
def test_no_injected_text_stands_outside_of_its_fence(name):
    judge = form(name)
    several = name == "listwise"
    empty = sample("?", ["?", "?"] if several else "?")
    expected = [split(prompt)[0] for prompt in prompts(judge, empty)]
    for entry in CORPUS:
        text = entry["text"]
        rendered = prompts(judge, sample(text, [text, f"{text}!"] if several else text))
        for prompt, outside in zip(rendered, expected, strict=True):
            left, texts = split(prompt)
            assert left == outside, entry["id"]  # nothing outside of the fences depends on the texts
            assert inert(text) in [content for _, content in texts], entry["id"]


def test_the_corpus_is_large_and_varied():
    assert len(CORPUS) >= 60
    assert len({entry["text"] for entry in CORPUS}) == len(CORPUS)
    assert len({entry["language"] for entry in CORPUS}) >= 12
    assert len({entry["style"] for entry in CORPUS}) >= 10
    assert sum("</" in entry["text"] and "answer" in entry["text"].lower() for entry in CORPUS) >= 6
