"""Regular English spelling."""

from __future__ import annotations

import pytest

from multimodal_eval.text.inflections import is_regular_form


@pytest.mark.parametrize(
    ("lemma", "forms"),
    [
        ("ride", "ride rides riding"),
        ("rid", "rids ridding ridded"),
        ("stare", "stares stared staring"),
        ("star", "stars starred starring"),
        ("quit", "quits quitting"),
        ("park", "parks parked parking"),
        ("fix", "fixes fixed fixing"),
        ("watch", "watches watched"),
        ("bus", "buses"),
        ("potato", "potatoes"),
        ("photo", "photos"),
        ("carry", "carries carried carrying"),
        ("play", "plays played playing"),
        ("row", "rows rowed rowing"),
        ("see", "sees seeing"),
        ("dye", "dyed dyeing"),
        ("ski", "skis skied skiing"),
        ("big", "bigger biggest"),
        ("large", "larger largest"),
        ("happy", "happier happiest"),
        ("tall", "taller tallest"),
    ],
)
def test_regular_forms(lemma, forms):
    assert [form for form in forms.split() if not is_regular_form(form, lemma)] == []


@pytest.mark.parametrize(
    ("form", "lemma"),
    [
        ("riding", "rid"),
        ("rides", "rid"),
        ("dining", "din"),
        ("staring", "star"),
        ("bathes", "bath"),
        ("boss", "bos"),
        ("skies", "ski"),
        ("dying", "dye"),
        ("men", "man"),
    ],
)
def test_other_forms(form, lemma):
    assert not is_regular_form(form, lemma)
