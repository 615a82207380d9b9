"""Faults of a configuration in plain words."""

from __future__ import annotations

import pytest

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.setting_words import in_words
from multimodal_eval.run.config import load_config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("limit: many", "`limit` must be a whole number. Got 'many' instead."),
        ("limit: 0", "`limit` must be a whole number, at least 1. Got 0 instead."),
        ("metrics: cider", "`metrics` must be a list. Got 'cider' instead. Write it in brackets: [cider]"),
        ("metrics: [cider, 2]", "`metrics[1]` must be a text. Got 2 instead."),
        ("seed: 1.5", "`seed` must be a whole number. Got 1.5 instead."),
        ("skip_lint: maybe", "`skip_lint` must be true or false. Got 'maybe' instead."),
        ("task: 3", "`task` must be a text. Got 3 instead."),
        ("unknown_labels: no", "`unknown_labels` must be a text. Got False instead."),  # YAML reads "no" as false
        ("unknown_labels: drop", "`unknown_labels` must be 'error' or 'wrong'. Got 'drop' instead."),
        ("map: [a]", "`map` must be a section with keys. Got ['a'] instead."),
        ("options: {cider: 3}", "`options.cider` must be a section with keys. Got 3 instead."),
        (
            "tasks: {mine: {weights: {bleu: 1, cider: lots}}}",
            "`tasks.mine.weights.cider` must be a number. Got 'lots' i",
        ),
        (
            "tasks: {mine: {maximum: {bleu: 2, cider: 0}}}",
            "`tasks.mine.maximum.cider` must be a number, above 0. Got 0 ",
        ),
        (
            "tasks: {mine: {on_missing: drop}}",
            "`tasks.….on_missing` must be 'error' or 'zero' or 'renormalise'. Got 'd",
        ),
        ("tasks: {mine: {weigths: {}}}", "no setting is named 'weigths'. Did you mean 'weights'?"),
        ("strata: {by: kind}", "`strata` needs the key `weights`"),
        ("labels: 3", "`labels` must be a text or a section with keys or a list. Got 3 instead."),
        ("[a, b]", "a configuration must be a section with keys, such as `task: captioning`. Got a list instead."),
        ("just text", "a configuration must be a section with keys, such as `task: captioning`. Got a text instead."),
    ],
)
def test_faults_in_plain_words(tmp_path, text, message):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_config(path)
    assert str(refused.value).startswith(f"{path}: {message}")


def test_other_messages_stay_as_they_are():
    assert in_words("Something else - at `$.x`", {}) == "Something else - at `$.x`"
