"""What SmolLM2 writes, compared with transformers on the same weights: the same tokens."""

from __future__ import annotations

import pytest

from multimodal_eval.models.language.chat_template import ChatTemplate
from multimodal_eval.models.language.writer import CachedLlama, LlamaWriter, Order
from multimodal_eval.models.source import find_model
from tests.golden.load import golden

pytestmark = pytest.mark.weights
RECORDED = golden("generation.json.gz")


@pytest.fixture
def model(weights):
    return find_model("smollm2-135m")


@pytest.fixture
def writer(model):
    return LlamaWriter(model, rows=7, threads=2)  # fewer rows than texts: they join and leave


def test_the_chat_template_is_that_of_the_model(model, writer):
    template = ChatTemplate(model)
    for entry in RECORDED["texts"]:
        rendered = template.render(entry["messages"])
        assert rendered == entry["rendered"]
        assert writer.tokens(rendered) == entry["prompt"]


def test_tokens_equal_those_of_transformers(writer):
    entries = RECORDED["texts"]
    texts = writer.write([Order(entry["prompt"], RECORDED["most"], logprobs=True) for entry in entries])
    assert [list(written.tokens) for written in texts] == [entry["tokens"] for entry in entries]
    assert [written.text for written in texts] == [entry["text"] for entry in entries]
    for entry, written in zip(entries, texts, strict=True):
        assert written.logprobs == pytest.approx(entry["log_probabilities"][: len(written.logprobs)], abs=1e-3)


def test_each_step_equals_reading_the_whole_text_again(model):
    cached, again = CachedLlama(model, rows=2), CachedLlama(model, rows=2)
    for entry in RECORDED["texts"][:3]:
        text = list(entry["prompt"])
        logits = cached.read(0, text)
        for token in entry["tokens"][:12]:
            assert int(logits.argmax()) == token
            assert logits == pytest.approx(again.read(0, text), abs=1e-4)
            text.append(token)
            logits = cached.step([token])[0]


def test_a_text_does_not_depend_on_the_others_nor_on_the_threads(model):
    prompts = [entry["prompt"] for entry in RECORDED["texts"][:5]]
    together, alone = CachedLlama(model, rows=5, threads=2), CachedLlama(model, rows=1)
    first = [together.read(row, prompt) for row, prompt in enumerate(prompts)]
    steps = [together.step([300 + row + step for row in range(5)]) for step in range(2)]
    for row in (0, 4):
        assert alone.read(0, prompts[row]).tobytes() == first[row].tobytes()
        for step in range(2):
            assert alone.step([300 + row + step])[0].tobytes() == steps[step][row].tobytes()
