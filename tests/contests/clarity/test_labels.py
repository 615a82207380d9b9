"""CLARITY's labels. Quoted sentences are from the published guide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from multimodal_eval.contests.clarity.labels import (
    ALIASES,
    CLARITY_LABELS,
    EVASION_LABELS,
    EVASION_TO_CLARITY,
    evasion_to_clarity,
    normalize_label,
)
from multimodal_eval.core.errors import InputError, UnknownNameError

ALL = [*EVASION_LABELS, *CLARITY_LABELS]


def test_the_taxonomy():
    # "Task 1 — Clarity | 3-way", "Task 2 — Evasion | 9-way"
    assert len(CLARITY_LABELS) == 3
    assert EVASION_LABELS == (
        "Explicit",
        "Implicit",
        "General",
        "Partial/half-answer",
        "Dodging",
        "Deflection",
        "Declining to answer",
        "Claims ignorance",
        "Clarification",
    )
    clear = [label for label, clarity in EVASION_TO_CLARITY.items() if clarity == "Clear Reply"]
    refused = [label for label, clarity in EVASION_TO_CLARITY.items() if clarity == "Clear Non-Reply"]
    assert clear == ["Explicit"]
    assert refused == ["Declining to answer", "Claims ignorance", "Clarification"]
    assert set(EVASION_TO_CLARITY.values()) == set(CLARITY_LABELS)


@pytest.mark.parametrize("label", ALL)
def test_canonical_labels_pass_through_unchanged_fast_path(label):
    """ "Canonical labels pass through unchanged (fast path)": the same object, not a copy."""
    written = "".join(label)
    assert normalize_label(written) is written


@pytest.mark.parametrize("label", ALL)
def test_case_insensitive_matching(label):
    assert normalize_label(label.lower()) == label
    assert normalize_label(label.upper()) == label
    assert normalize_label(f"  {label.swapcase()}\n") == label


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Partial", "Partial/half-answer"),  # "Alias resolution (e.g., "Partial" → "Partial/half-answer", …
        ("Ambivalent", "Ambivalent Reply"),  # … "Ambivalent" → "Ambivalent Reply")"
        ("half-answer", "Partial/half-answer"),
        ("partial/half answer", "Partial/half-answer"),
        ("Partial / Half-Answer", "Partial/half-answer"),
        ("declining", "Declining to answer"),
        ("ambiguous", "Ambivalent Reply"),
        ("Ambiguous reply", "Ambivalent Reply"),
        ("clear non reply", "Clear Non-Reply"),
        ("clear nonreply", "Clear Non-Reply"),
        ("Non-Reply", "Clear Non-Reply"),
    ],
)
def test_alias_resolution(written, expected):
    assert normalize_label(written) == expected
    assert set(ALIASES.values()) <= set(ALL)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2.3 Partial/half-answer", "Partial/half-answer"),
        ("1.1 explicit", "Explicit"),
        ("1. Explicit", "Explicit"),
        ("3) Clarification", "Clarification"),
        ("2.3 partial.", "Partial/half-answer"),
        ("Dodging.", "Dodging"),
        ("Dodging;", "Dodging"),
        ("claims  ignorance!", "Claims ignorance"),
        ("claims_ignorance", "Claims ignorance"),
        ("Claims-Ignorance", "Claims ignorance"),
        ("declining_to_answer", "Declining to answer"),
        ("partial_half_answer", "Partial/half-answer"),
        ("2.3_partial", "Partial/half-answer"),
        ("CLEAR_NON_REPLY", "Clear Non-Reply"),
        ("ClearNonReply", "Clear Non-Reply"),
    ],
)
def test_numeric_prefixes_and_trailing_punctuation_are_dropped(written, expected):
    assert normalize_label(written) == expected


@pytest.mark.parametrize("blank", [None, "", "   ", "\t\n", float("nan"), np.nan])
def test_none_and_blanks_become_the_empty_string(blank):
    assert normalize_label(blank) == ""


def test_a_text_that_is_not_a_label_stays_unknown():
    assert normalize_label("2.5 Contradictory") == "Contradictory"
    assert normalize_label("2") == "2"
    assert normalize_label("partially") == "partially"
    with pytest.raises(InputError, match=r"a label must be text. Got 3 instead"):
        normalize_label(3)  # type: ignore[arg-type]


@given(st.text(max_size=20))
@example("0\r0")  # not a label with a prefix
def test_normalising_twice_is_normalising_once(text):
    once = normalize_label(text)
    assert once in ALL or normalize_label(once) == once or once[:1].isdigit()
    assert normalize_label(f" {text} ") == once


def test_a_clarity_label_is_derived_from_an_evasion_label():
    # "Derived from Task 2 via taxonomy"
    assert evasion_to_clarity("2.3 partial") == "Ambivalent Reply"
    assert evasion_to_clarity("") == ""
    with pytest.raises(UnknownNameError, match="Did you mean 'Dodging'"):
        evasion_to_clarity("Doging")


@pytest.mark.parametrize(
    ("written", "expected"),
    [("2.3", "2.3"), ("Dodging…", "Dodging"), ("General)", "General"), ("2.3 General -", "General")],
)
def test_numbers_stay_and_other_punctuation_is_removed(written, expected):
    assert normalize_label(written) == expected
