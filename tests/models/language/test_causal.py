"""Causal language models: graphs compared with numpy, windows, contexts, batches, the cache."""

from __future__ import annotations

import pytest

from multimodal_eval.core.errors import ConfigError, ModelError, UnavailableError
from multimodal_eval.models.language.causal import Reading, causal_lm_label, check_causal_lm, open_causal_lm
from multimodal_eval.models.language.llama import SCORED_AT_ONCE
from tests.models.language import tiny_llama
from tests.reference import naive_llama

TEXTS = ["A dog runs.", "ab", "Two cats, 17 mats!", "Ünïcödé 🐕", "A dog walks", "x y", "A dog runs."]


@pytest.fixture
def tiny(tmp_path):
    return tiny_llama.write(tmp_path / "tiny")


@pytest.fixture
def lm(tiny, tmp_path):
    return open_causal_lm(str(tmp_path / "tiny"))


def ids_of(text):
    return list(text.encode())


@pytest.mark.parametrize("tied", [True, False])
def test_it_equals_numpy(tmp_path, tied):
    tensors, config = tiny_llama.write(tmp_path / "model", tie_word_embeddings=tied)
    lm = open_causal_lm(str(tmp_path / "model"))
    for text, scores in zip(TEXTS, lm.log_probabilities(TEXTS), strict=True):
        assert scores == pytest.approx(naive_llama.log_probabilities(tensors, config, ids_of(text)), abs=1e-4)


def test_as_many_query_heads_as_key_heads(tmp_path):
    tensors, config = tiny_llama.write(tmp_path / "model", num_key_value_heads=6)
    (scores,) = open_causal_lm(str(tmp_path / "model")).log_probabilities(["a dog"])
    assert scores == pytest.approx(naive_llama.log_probabilities(tensors, config, ids_of("a dog")), abs=1e-4)


def test_the_first_token_is_scored_only_after_a_begin_of_text_token(tiny, lm):
    tensors, config = tiny
    (scores,) = lm.log_probabilities(["ab"], reading=Reading(64, 32, bos=True))
    assert scores == pytest.approx(naive_llama.log_probabilities(tensors, config, [256, *ids_of("ab")]), abs=1e-4)
    assert [len(scores) for scores in lm.log_probabilities(["", "a", "ab"], reading=Reading(64, 32))] == [0, 0, 1]


def test_a_context_is_read_and_not_scored(tiny, lm):
    tensors, config = tiny
    (scores,) = lm.log_probabilities([" dog"], ["what?"], Reading(64, 32))
    whole = naive_llama.log_probabilities(tensors, config, ids_of("what? dog"))
    assert scores == pytest.approx(whole[4:], abs=1e-4)  # 4 of the 8 tokens after the first belong to the context


def test_long_texts_are_read_in_windows(tiny, lm):
    # Window 8, stride 4, 18 tokens: 0-7 scores 1 to 7, 4-11 scores 8 to 11, 8-15 scores 12 to 15, 12-17 scores 16, 17.
    tensors, config = tiny
    ids = ids_of("eighteen letters !")
    pieces = [naive_llama.log_probabilities(tensors, config, ids[begin : begin + 8]) for begin in (0, 4, 8, 12)]
    expected = [*pieces[0], *pieces[1][3:], *pieces[2][3:], *pieces[3][3:]]
    (scores,) = lm.log_probabilities(["eighteen letters !"], reading=Reading(8, 4))
    assert scores == pytest.approx(expected, abs=1e-4)


def test_a_result_does_not_depend_on_its_batch(lm):
    texts = TEXTS + [f"a dog of {number} years" for number in range(40)] + ["word " * 12] * 3
    together = lm.inner.score(*rows(lm, texts))
    for text, scores in zip(texts, together, strict=True):
        (alone,) = lm.inner.score(*rows(lm, [text]))
        assert alone.tobytes() == scores.tobytes()


def test_the_number_of_scored_rows_changes_no_bit(tmp_path):
    """With one row too many for the head, the last row must not run alone, because a different kernel would be used."""
    tiny_llama.write(tmp_path / "wide", hidden_size=576, head_dim=96)
    scorer = open_causal_lm(str(tmp_path / "wide")).inner
    pairs = [[number % 256, (7 * number) % 256] for number in range(SCORED_AT_ONCE + 9)]
    whole = scorer.score(pairs, [1] * len(pairs))
    for count in (1, 2, SCORED_AT_ONCE - 1, SCORED_AT_ONCE, *range(SCORED_AT_ONCE + 1, SCORED_AT_ONCE + 9)):
        scores = scorer.score(pairs[:count], [1] * count)
        assert [row.tobytes() for row in scores] == [row.tobytes() for row in whole[:count]]


def rows(lm, texts):
    ids = lm.inner.tokens(texts)
    return ids, [1] * len(ids)


def test_results_are_cached(lm, monkeypatch):
    first = lm.log_probabilities(TEXTS, reading=Reading(64, 32))
    seen = []
    monkeypatch.setattr(lm.inner, "score", lambda rows, firsts: seen.append(rows) or [])
    again = lm.log_probabilities(TEXTS, reading=Reading(64, 32))
    assert [row.tobytes() for row in again] == [row.tobytes() for row in first]
    assert seen == []


def test_the_cache_distinguishes_settings_and_contexts(lm):
    plain = lm.log_probabilities(["ab cd"], reading=Reading(64, 32))[0]
    with_bos = lm.log_probabilities(["ab cd"], reading=Reading(64, 32, bos=True))[0]
    after = lm.log_probabilities(["cd"], ["ab "], Reading(64, 32))[0]
    assert (len(plain), len(with_bos), len(after)) == (4, 5, 2)
    assert plain[2:].tolist() == pytest.approx(after.tolist(), abs=1e-5)


def test_a_special_token_in_a_text_is_plain_text(lm):
    assert lm.inner.tokens(["<bos>"]) == [ids_of("<bos>")]


def test_invalid_settings_are_refused(lm, tmp_path):
    with pytest.raises(ConfigError, match="at most 2048 tokens"):
        lm.log_probabilities(["a dog"], reading=Reading(2049, 32))
    for window, stride in ((1, 1), (8, 8), (8, 0)):
        with pytest.raises(ConfigError, match="below `window`"):
            Reading(window, stride)
    tiny_llama.write(tmp_path / "none", bos_token_id=None)
    with pytest.raises(ConfigError, match="no begin-of-text token"):
        open_causal_lm(str(tmp_path / "none")).log_probabilities(["a"], reading=Reading(64, 32, bos=True))


def test_the_error_for_a_missing_model_says_how_to_get_it():
    with pytest.raises(UnavailableError, match="mmeval fetch smollm2-135m"):
        check_causal_lm("smollm2-135m")


def test_a_directory_can_have_the_name_of_a_resource(tmp_path):
    tiny_llama.write(tmp_path / "smollm2-135m")
    assert open_causal_lm(str(tmp_path / "smollm2-135m")).languages == frozenset()


def test_another_resource_is_not_a_language_model(meteor_data):
    with pytest.raises(ModelError, match="not a language model"):
        causal_lm_label("meteor-1.5-en")


def test_a_model_that_is_not_a_plain_llama_runs_in_torch(tmp_path):
    tiny_llama.write(tmp_path / "scaled", rope_scaling={"type": "linear", "factor": 2.0})
    assert causal_lm_label(str(tmp_path / "scaled")).endswith("+torch")
    assert causal_lm_label(f"torch:{tmp_path / 'scaled'}").endswith("+torch")
    tiny_llama.write(tmp_path / "plain")
    assert not causal_lm_label(str(tmp_path / "plain")).endswith("+torch")


@pytest.mark.torch
def test_torch_gives_the_same_result(lm, tmp_path):
    in_torch = open_causal_lm(f"torch:{tmp_path / 'tiny'}")
    reading = Reading(8, 4, bos=True)
    expected = lm.log_probabilities(TEXTS, ["so: "] * len(TEXTS), reading)
    results = in_torch.log_probabilities(TEXTS, ["so: "] * len(TEXTS), reading)
    for scores, expected_scores in zip(results, expected, strict=True):
        assert scores.tolist() == pytest.approx(expected_scores.tolist(), abs=1e-4)


@pytest.mark.torch
@pytest.mark.parametrize("changes", [{}, {"tie_word_embeddings": False}, {"num_key_value_heads": 6}])
def test_a_llama_in_torch_equals_numpy(tmp_path, changes):
    tensors, config = tiny_llama.write(tmp_path / "model", **changes)
    lm = open_causal_lm(f"torch:{tmp_path / 'model'}")
    for text, scores in zip(TEXTS, lm.log_probabilities(TEXTS), strict=True):
        assert scores == pytest.approx(naive_llama.log_probabilities(tensors, config, ids_of(text)), abs=1e-4)
    assert lm.inner.score([], []) == []


@pytest.mark.torch
def test_a_model_of_transformers_gives_the_same_result_in_padded_batches(tiny, tmp_path, monkeypatch):
    """Also if the head cannot be split off, as with logits that are scaled, and if memory is short."""
    from multimodal_eval.models.language import causal_torch
    from multimodal_eval.models.source import find_model

    model, (tensors, config) = find_model(str(tmp_path / "tiny")), tiny
    monkeypatch.setattr("multimodal_eval.models.language.llama.can_run", lambda model: False)
    lm = causal_torch.TorchCausalLM(model)
    assert lm.network.padded
    rows, firsts = [ids_of(text) for text in TEXTS], [1 + number % 2 for number in range(len(TEXTS))]
    expected = [
        naive_llama.log_probabilities(tensors, config, row)[first - 1 :]
        for row, first in zip(rows, firsts, strict=True)
    ]

    def check():
        for scores, right in zip(lm.score(rows, firsts), expected, strict=True):
            assert scores.tolist() == pytest.approx(list(right), abs=1e-4)

    check()
    monkeypatch.setitem(causal_torch.LOGITS_AT_ONCE, "cpu", 700)  # two rows of 257 logits
    check()
    states = lm.network.states

    def small(batch):
        if len(batch) > 1:
            raise lm.torch.OutOfMemoryError("CUDA out of memory")
        return states(batch)

    monkeypatch.setattr(lm.network, "states", small)
    check()
    monkeypatch.setattr(lm.network.model, "get_output_embeddings", lambda: None)
    lm.network.body, lm.network.logits = lm.network._parts()
    check()


@pytest.mark.torch
def test_bf16_is_close_and_in_the_label(lm, tmp_path):
    close = open_causal_lm(f"torch:{tmp_path / 'tiny'}+bf16")
    assert close.label == f"{lm.label}+torch-bf16"
    for scores, exact in zip(close.log_probabilities(TEXTS), lm.log_probabilities(TEXTS), strict=True):
        assert scores.tolist() == pytest.approx(exact.tolist(), abs=0.5)
        assert not len(scores) or scores.tolist() != exact.tolist()


def test_other_number_formats_are_refused(lm, tmp_path):
    with pytest.raises(ModelError, match="language models are not run as int8"):
        causal_lm_label(f"{tmp_path / 'tiny'}+int8")
    with pytest.raises(ModelError, match=r"cannot be run as bf16 in onnxruntime\. Write torch:"):
        causal_lm_label(f"{tmp_path / 'tiny'}+bf16")


def test_missing_weights_are_named(tmp_path):
    tiny_llama.write(tmp_path / "model", tie_word_embeddings=False)
    config = (
        (tmp_path / "model" / "config.json").read_text().replace('"num_hidden_layers": 2', '"num_hidden_layers": 3')
    )
    (tmp_path / "model" / "config.json").write_text(config)
    with pytest.raises(ModelError, match=r"no tensor 'model\.layers\.2"):
        open_causal_lm(str(tmp_path / "model"))


def test_linked_files_are_opened(tmp_path):
    tiny_llama.write(tmp_path / "plain")
    (tmp_path / "linked").mkdir()
    for file in (tmp_path / "plain").iterdir():
        (tmp_path / "linked" / file.name).symlink_to(file)
    models = [open_causal_lm(str(tmp_path / name)) for name in ("linked", "plain")]
    (linked,), (plain,) = (model.log_probabilities(["a b c"]) for model in models)
    assert linked.tolist() == plain.tolist()


def test_a_missing_setting_is_named(tmp_path):
    tiny_llama.write(tmp_path / "model")
    config = (tmp_path / "model" / "config.json").read_text()
    (tmp_path / "model" / "config.json").write_text(config.replace('"rms_norm_eps"', '"other"'))
    with pytest.raises(ModelError, match="lacks the setting 'rms_norm_eps'"):
        open_causal_lm(str(tmp_path / "model"))
