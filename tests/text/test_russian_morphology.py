"""Normal forms of Russian words are those recorded with pymorphy3 2.0.6: a new version must not change scores."""

from __future__ import annotations

from pathlib import Path

import pytest

from multimodal_eval.text.synonyms import open_morphology

pytest.importorskip("pymorphy3")

GOLDEN = Path(__file__).parents[1] / "golden" / "russian_normal_forms.tsv"


def test_the_recorded_normal_forms():
    normal_forms = open_morphology().normal_forms
    rows = [line.split("\t") for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 598
    assert [word for word, forms in rows if sorted(normal_forms(word)) != forms.split()] == []


@pytest.mark.parametrize("word", ["недо" * 10, "не" * 20, "полу-" * 8, "смотри" + "-ка" * 11])
def test_the_longest_words_are_analysed(word):
    # pymorphy3 tries all ways to cut off prefixes: 0.13 s for 40 letters, which is the longest word that is asked.
    assert open_morphology().normal_forms(word[:40])
