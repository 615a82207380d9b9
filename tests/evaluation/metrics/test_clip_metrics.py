"""clip_score, clipscore, ref_clipscore: the formulas on the vectors of a tiny model."""

from __future__ import annotations

import io
from functools import cache

import numpy as np
import pytest

from multimodal_eval import Sample, evaluate, evaluate_sample
from multimodal_eval.core.errors import ConfigError, ImageError, UnavailableError
from multimodal_eval.core.metric import configured, signature_of
from multimodal_eval.core.scoring import score_batch
from multimodal_eval.evaluation.metrics.clipscore import compute_clip_score, compute_clipscore, compute_ref_clipscore
from multimodal_eval.models.clip.encoder import OnnxClip
from multimodal_eval.models.clip.lazy_images import LazyImage
from multimodal_eval.models.source import find_model
from tests.golden.clip.images import TINY_CLIP, TINY_SIGLIP, golden_image
from tests.golden.load import golden

GOLDEN = golden("clip.json.gz")
TINY = {"model": str(TINY_CLIP)}


@cache
def encoder():
    return OnnxClip(find_model(str(TINY_CLIP)))


def content(number, size):
    stream = io.BytesIO()
    golden_image(number, tuple(size)).save(stream, "PNG")
    return stream.getvalue()


def sample(number, answer, **more):
    return Sample(id=str(number), image=content(number, GOLDEN["sizes"][number]), generated_answer=answer, **more)


def scores(metric, samples):
    chosen = configured(metric, TINY)
    return score_batch(chosen, chosen.open(None), samples)


def cosine(number, text):
    image = LazyImage(b"", lambda: golden_image(number, GOLDEN["sizes"][number]))
    return float(encoder().encode_images([image])[0].astype(float) @ encoder().encode_texts([text])[0].astype(float))


def test_equal_to_torchmetrics():
    """torchmetrics gives 100 cos; the answers here are already clean, so clip_score is (cos + 1) / 2."""
    recorded = GOLDEN["tiny-clip"]["torchmetrics"]
    samples = [sample(n, text) for n, text in enumerate(recorded["texts"]) if text]
    expected = [score / 100 for text, score in zip(recorded["texts"], recorded["scores"], strict=True) if text]
    cosines = [2 * score.value - 1 for score in scores(compute_clip_score, samples)]
    np.testing.assert_allclose(cosines, expected, atol=2e-6)


def test_clip_score_cleans_its_text():
    (dirty, clean) = scores(compute_clip_score, [sample(0, "Answer: a *red*  circle@"), sample(0, "a red circle")])
    assert dirty == clean
    assert clean.value == pytest.approx((cosine(0, "a red circle") + 1) / 2, abs=1e-6)


def test_clipscore_by_its_formula():
    texts = ["two cats", "a very red circle", "Answer: x"]
    expected = [2.5 * max(cosine(n, "A photo depicts " + text), 0) for n, text in enumerate(texts)]
    assert min(expected) == 0 < max(expected), "the texts must cover both sides of the clipping at 0"
    values = [score.value for score in scores(compute_clipscore, [sample(n, text) for n, text in enumerate(texts)])]
    assert values == pytest.approx(expected, abs=1e-6)


def test_ref_clipscore_by_its_formula():
    answers, references = (
        ["two cats", "a very red circle", "one dog"],
        [["2"], ["zzzz", "a red circle"], ["1 dog", "dogs"]],
    )
    samples = [
        sample(n, answer, references=refs) for n, (answer, refs) in enumerate(zip(answers, references, strict=True))
    ]
    expected = []
    for number, (answer, refs) in enumerate(zip(answers, references, strict=True)):
        vector = encoder().encode_texts(["A photo depicts " + answer])[0].astype(float)
        by_text = max(float(vector @ encoder().encode_texts(["A photo depicts " + ref])[0]) for ref in refs)
        by_image, by_text = 2.5 * max(cosine(number, "A photo depicts " + answer), 0), max(by_text, 0)
        expected.append(2 * by_image * by_text / (by_image + by_text) if by_image * by_text else 0)
    assert max(expected) > 0
    assert [score.value for score in scores(compute_ref_clipscore, samples)] == pytest.approx(expected, abs=1e-6)


def test_pac_s_has_the_weight_2_and_its_own_model(monkeypatch):
    texts = ["a very red circle", "one dog"]
    samples = [sample(n, text, references=["a red circle"]) for n, text in enumerate(texts, 1)]
    pac = configured(compute_clipscore, {**TINY, "variant": "pac-s"})
    expected = [2 * max(cosine(n, "A photo depicts " + text), 0) for n, text in enumerate(texts, 1)]
    assert max(expected) > 0
    assert [score.value for score in score_batch(pac, pac.open(None), samples)] == pytest.approx(expected, abs=1e-6)
    assert "|variant:pac-s|prefix:A photo depicts|w:2" in str(signature_of(pac, None))
    reference, *vectors = encoder().encode_texts([f"A photo depicts {text}" for text in ("a red circle", *texts)])
    by_text = [float(vector @ reference) for vector in vectors]
    harmonic = [2 * a * b / (a + b) if a > 0 and b > 0 else 0 for a, b in zip(expected, by_text, strict=True)]
    ref_pac = configured(compute_ref_clipscore, {**TINY, "variant": "pac-s"})
    assert [score.value for score in score_batch(ref_pac, ref_pac.open(None), samples)] == pytest.approx(
        harmonic, abs=1e-6
    )
    assert (pac.bounds, ref_pac.bounds) == ((0, 2), (0, 4 / 3))
    monkeypatch.delenv("CLIP_MODEL_ID", raising=False)
    with pytest.raises(UnavailableError, match=r"PAC-S needs the CLIP model of its authors .*clipscore\.model=DIR"):
        configured(compute_clipscore, {"variant": "pac-s"}).check_models()


def test_called_directly_clip_score_has_four_decimals(monkeypatch):
    monkeypatch.setenv("CLIP_MODEL_ID", str(TINY_CLIP))
    exact = scores(compute_clip_score, [sample(1, "a dog")])[0].value
    rounded = compute_clip_score(sample(1, "a dog"))
    assert rounded == round(exact, 4) != exact
    assert compute_clip_score(Sample(id="x", generated_answer="a dog")) == 0.0
    result = evaluate_sample(sample(1, "a dog"), "captioning")
    assert result["clip_score"] == exact


def test_a_broken_image_is_unscored_with_its_reason():
    broken = Sample(id="b", image=content(0, (40, 30))[:200], generated_answer="a dog")
    absent = Sample(id="a", image="nowhere.png", generated_answer="a dog")
    good = sample(0, "a dog")
    results = scores(compute_clip_score, [broken, good, absent, broken])
    assert [score.status for score in results] == ["error", "ok", "error", "error"]
    assert all(score.value is None and score.reason for score in (results[0], results[2], results[3]))
    assert "nowhere.png" in results[2].reason


def test_a_long_text_gives_a_warning():
    results = scores(compute_clipscore, [sample(0, "word " * 30), sample(0, "hi")])
    assert [score.warning for score in results] == ["text_cut", None]  # the prefix takes 16 of the 18 characters
    results = scores(compute_clip_score, [sample(0, "word " * 30), sample(0, "hi"), sample(0, "@@@"), sample(0, " ")])
    assert [score.warning for score in results] == ["text_cut", None, "nothing_left_of_answer", "blank_answer"]
    assert [score.value for score in results[2:]] == [0.0, 0.0]


def test_words_dropped_by_cleaning_give_a_warning():
    """shapes-clip reads more than 33 tokens, so only the cleaning truncates here."""
    metric = configured(compute_clip_score, {"model": "shapes-clip"})
    results = score_batch(metric, metric.open(None), [sample(0, "a " * 32), sample(0, "Answer: " + "a " * 33)])
    assert [score.warning for score in results] == [None, "text_cut"]
    assert results[0].value == results[1].value


@pytest.mark.parametrize("metric", [compute_clip_score, compute_clipscore], ids=lambda metric: metric.name)
def test_a_broken_image_is_unscored_whatever_the_answer(metric):
    broken = content(0, (40, 30))[:200]
    samples = [
        Sample(id="1", image=image, generated_answer=" ") for image in ("nowhere.png", broken, content(0, (4, 3)))
    ]
    assert [(score.value, score.status) for score in scores(metric, samples)] == [
        (None, "error"),
        (None, "error"),
        (0.0, "ok"),
    ]
    with pytest.raises(ImageError, match=r"there is no file 'nowhere\.png'"):
        configured(metric, TINY)(Sample(id="1", image="nowhere.png", generated_answer="a dog"))
    with pytest.raises(ImageError, match="cannot be decoded"):
        configured(metric, TINY)(Sample(id="1", image=broken, generated_answer="a dog"))


def test_the_model_is_an_option_and_in_the_signature(monkeypatch):
    assert str(signature_of(compute_clip_score)) == "clip_score|v:1|model:openai/clip-vit-base-patch32@refs/pr/15"
    label = find_model(str(TINY_SIGLIP)).label
    assert (
        str(signature_of(configured(compute_clip_score, {"model": str(TINY_SIGLIP)})))
        == f"clip_score|v:1|model:{label}"
    )
    monkeypatch.setenv("CLIP_MODEL_ID", str(TINY_CLIP))
    assert "tiny-clip@" in str(signature_of(compute_clipscore))
    with pytest.raises(ConfigError, match="no option 'modle'"):
        configured(compute_clip_score, {"modle": "x"})
    with pytest.raises(ConfigError, match="must be a name"):
        configured(compute_clip_score, {"model": 3})


def test_without_a_model_the_message_names_the_command():
    reason = compute_clip_score.unavailable()
    assert "mmeval fetch hf:openai/clip-vit-base-patch32@refs/pr/15" in reason
    assert "--option clip_score.model=DIR" in reason
    assert compute_clip_score.resources() == ("hf:openai/clip-vit-base-patch32@refs/pr/15",)
    assert configured(compute_clip_score, TINY).resources() == ()
    with pytest.raises(UnavailableError, match="To leave them unscored"):
        evaluate([sample(0, "a dog")], metrics=["clip_score"])


def test_a_run_reads_files_and_counts_missing_ones(tmp_path):
    (tmp_path / "one.png").write_bytes(content(0, (40, 30)))
    samples = [
        Sample(id="1", image=str(tmp_path / "one.png"), generated_answer="a dog"),
        Sample(id="2", image=str(tmp_path / "two.png"), generated_answer="a dog"),
    ]
    run = evaluate(samples, metrics=["clip_score"], options={"clip_score": TINY}, output=tmp_path / "run")
    assert (run["clip_score"]["n_scored"], run["clip_score"]["n_total"]) == (1, 2)
    assert run["clip_score"]["value"] == scores(compute_clip_score, [samples[0]])[0].value
