"""A broken file of a model is a ModelError with the name of the model or the file, whatever a library makes of it."""

from __future__ import annotations

import json
import shutil

import pytest

from multimodal_eval.core.errors import ConfigError, ModelError
from multimodal_eval.models.encoders import (
    IMAGE_TEXT_ENCODERS,
    check_image_text_encoder,
    model_faults,
    open_image_text_encoder,
)
from multimodal_eval.models.language.causal import CAUSAL_LMS, check_causal_lm, open_causal_lm
from tests.golden.clip.images import TINY_CLIP
from tests.models.language import tiny_llama


def changed(path, **settings):
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, **settings}))


def tokens(path, **settings):
    """Change settings of the model inside a tokenizer."""
    content = json.loads(path.read_text())
    changed(path, model={**content["model"], **settings})


def use_clip(folder):
    check_image_text_encoder(folder)
    open_image_text_encoder(folder).encode_texts(["a dog", "zebra"])


def use_llama(folder):
    check_causal_lm(folder)
    open_causal_lm(folder).log_probabilities(["a a a", "zebra"])


BREAKS = {
    "an empty tokenizer": lambda folder: (folder / "tokenizer.json").write_text("{}"),
    "a tokenizer of another kind": lambda folder: tokens(folder / "tokenizer.json", type="Unigram"),
    "tokens beyond the weights": lambda folder: tokens(folder / "tokenizer.json", vocab={"a": 10**6}, merges=[]),
    "nested settings": lambda folder: (folder / "config.json").write_text("[" * 100_000),
    "no object": lambda folder: (folder / "config.json").write_text("[1]"),
    "a negative shape": lambda folder: (folder / "model.safetensors").write_bytes(
        (77).to_bytes(8, "little")
        + b'{"x": {"dtype": "F32", "shape": [-1, -1], "data_offsets": [0, 4]}}'.ljust(77)
        + b"0000"
    ),
    "a nested header": lambda folder: (folder / "model.safetensors").write_bytes(
        (10**6).to_bytes(8, "little") + b"[" * 10**6
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_clip(tmp_path, name):
    folder = tmp_path / "clip"
    shutil.copytree(TINY_CLIP, folder)
    BREAKS[name](folder)
    IMAGE_TEXT_ENCODERS.forget()
    with pytest.raises(ModelError):
        use_clip(str(folder))


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_llama(tmp_path, name):
    folder = tmp_path / "llama"
    tiny_llama.write(folder)
    BREAKS[name](folder)
    CAUSAL_LMS.forget()
    with pytest.raises(ModelError):
        use_llama(str(folder))


@pytest.mark.parametrize(
    "settings",
    [
        {"num_key_value_heads": 0, "num_attention_heads": 0},
        {"head_dim": 10**12},
        {"rms_norm_eps": "small"},
        {"rope_theta": 0},
    ],
    ids=str,
)
def test_settings_that_do_not_fit(tmp_path, settings):
    folder = tmp_path / "llama"
    tiny_llama.write(folder, **{})
    changed(folder / "config.json", **settings)
    CAUSAL_LMS.forget()
    try:
        scores = open_causal_lm(str(folder)).log_probabilities(["a dog"])
    except ModelError:
        return
    assert settings == {"rope_theta": 0}, "0 means the default"
    assert len(scores[0]) == 4


def test_our_own_errors_and_interruptions_pass():
    with pytest.raises(ConfigError, match="ours"), model_faults("x"):
        raise ConfigError("ours")
    with pytest.raises(KeyboardInterrupt), model_faults("x"):
        raise KeyboardInterrupt
    with (
        pytest.raises(
            ModelError, match=r"the model 'x' cannot be used.*\(ZeroDivisionError: division by zero\)"
        ) as error,
        model_faults("x"),
    ):
        1 / 0  # noqa: B018
    assert isinstance(error.value.__cause__, ZeroDivisionError)
