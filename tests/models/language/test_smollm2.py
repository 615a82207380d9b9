"""The default language model compared with transformers on the same weights."""

from __future__ import annotations

from hashlib import sha256

import pytest

from multimodal_eval.models.language.causal import Reading, open_causal_lm
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


def test_tokens_equal_those_of_transformers(lm):
    assert lm.inner.tokens([entry["text"] for entry in RECORDED]) == [entry["ids"] for entry in RECORDED]


@pytest.mark.parametrize("entry", RECORDED, ids=[str(number) for number in range(len(RECORDED))])
def test_log_probabilities_equal_those_of_transformers(lm, entry):
    (scores,) = lm.log_probabilities([entry["text"]], [entry.get("context", "")], reading_of(entry))
    assert scores.tolist() == pytest.approx(entry["log_probabilities"], abs=1e-3)
    if "loss" in entry:
        assert -scores.mean() == pytest.approx(entry["loss"], abs=1e-4)


def test_a_sentence_is_more_likely_than_its_shuffled_words(lm):
    ordered, shuffled = (-scores.mean() for scores in lm.log_probabilities([entry["text"] for entry in RECORDED[:2]]))
    assert shuffled > ordered + 3  # a factor of 20 in perplexity


def test_an_answer_is_more_likely_after_its_question(lm):
    right, wrong = (entry for entry in RECORDED if entry["text"] == " Paris.")
    scores = lm.log_probabilities([" Paris."] * 2, [right["context"], wrong["context"]])
    assert scores[0].sum() > scores[1].sum()


def test_batches_change_no_bit(lm):
    texts = [f"A photo of {what} near the sea{end}" for what in ("a dog", "two cats", "me") for end in ("", ".", "!")]
    ids = lm.inner.tokens(texts)
    together = lm.inner.score(ids, [1] * len(ids))
    for row, scores in zip(ids, together, strict=True):
        (alone,) = lm.inner.score([row], [1])
        assert alone.tobytes() == scores.tobytes()


def test_derived_files_have_the_pinned_content(weights):
    verify(get_resource("smollm2-135m"))


def test_missing_derived_files_are_rebuilt(weights, tmp_path, monkeypatch):
    resource = get_resource("smollm2-135m")
    origin = folder_of(resource)
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))
    folder_of(resource).mkdir(parents=True)
    for file in resource.files:
        (folder_of(resource) / file.name).symlink_to(origin / file.name)
    open_causal_lm("smollm2-135m")
    tokenizer = folder_of(resource) / "tokenizer.json"
    (folder_of(resource) / "model.safetensors").unlink()  # half a gigabyte that is no longer needed
    assert sha256(tokenizer.read_bytes()).hexdigest() == next(
        f.sha256 for f in resource.derived if f.name == tokenizer.name
    )
