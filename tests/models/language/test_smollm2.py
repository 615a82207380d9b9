"""The default language model against transformers, on the same weights."""

from __future__ import annotations

from hashlib import sha256

import pytest

from multimodal_eval.models.language.causal import open_causal_lm
from multimodal_eval.models.language.tokens import Reading
from multimodal_eval.resources.catalogue import get_resource
from multimodal_eval.resources.store import folder_of, verify
from tests.golden.load import golden

pytestmark = pytest.mark.weights
RECORDED = golden("perplexity.json.gz")["texts"]


@pytest.fixture
def lm(weights):
    return open_causal_lm("smollm2-135m")


def reading_of(entry):
    return Reading(entry.get("window", 2048), entry.get("stride", 1024), entry.get("bos", False))


def test_its_tokens_are_those_of_transformers(lm):
    assert lm.inner.tokens([entry["text"] for entry in RECORDED]) == [entry["ids"] for entry in RECORDED]


@pytest.mark.parametrize("entry", RECORDED, ids=[str(number) for number in range(len(RECORDED))])
def test_every_token_is_as_likely_as_transformers_says(lm, entry):
    (found,) = lm.log_probabilities([entry["text"]], [entry.get("context", "")], reading_of(entry))
    assert found.tolist() == pytest.approx(entry["log_probabilities"], abs=1e-3)
    if "loss" in entry:
        assert -found.mean() == pytest.approx(entry["loss"], abs=1e-4)


def test_a_sentence_in_order_is_likelier_than_shuffled(lm):
    ordered, shuffled = (-scores.mean() for scores in lm.log_probabilities([e["text"] for e in RECORDED[:2]]))
    assert shuffled > ordered + 3  # a factor of 20 in perplexity


def test_an_answer_is_likelier_after_the_question_that_it_answers(lm):
    right, wrong = (entry for entry in RECORDED if entry["text"] == " Paris.")
    scores = lm.log_probabilities([" Paris."] * 2, [right["context"], wrong["context"]])
    assert scores[0].sum() > scores[1].sum()


def test_batches_change_no_bit(lm):
    texts = [f"A picture of {what} near the sea{end}" for what in ("a dog", "two cats", "me") for end in ("", ".", "!")]
    ids = lm.inner.tokens(texts)
    together = lm.inner.score(ids, [1] * len(ids))
    for row, found in zip(ids, together, strict=True):
        (alone,) = lm.inner.score([row], [1])
        assert alone.tobytes() == found.tobytes()


def test_what_was_made_of_the_file_is_the_pinned_content(weights):
    verify(get_resource("smollm2-135m"))


def test_it_is_made_again_where_it_is_gone(weights, tmp_path, monkeypatch):
    resource = get_resource("smollm2-135m")
    origin = folder_of(resource)
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))
    folder_of(resource).mkdir(parents=True)
    for file in resource.files:
        (folder_of(resource) / file.name).symlink_to(origin / file.name)
    open_causal_lm("smollm2-135m")
    made = folder_of(resource) / "tokenizer.json"
    (folder_of(resource) / "model.safetensors").unlink()  # half a gigabyte that nobody needs any longer
    assert sha256(made.read_bytes()).hexdigest() == next(f.sha256 for f in resource.derived if f.name == made.name)
