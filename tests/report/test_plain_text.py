"""Texts in a page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.visible import LONGEST
from multimodal_eval.display.plain_text import as_html, visible


def test_markup_is_escaped():
    assert as_html('<b title="x">&') == "<bdi>&lt;b title=&#34;x&#34;&gt;&amp;</bdi>"


@pytest.mark.parametrize(
    "character", ["\u202e", "\u2066", "\u200f", "\u0000", "\x1b", "\u2028", "\ufeff", "\U000e0041"]
)
def test_invisible_characters_are_shown_as_codes(character):
    code = f"U+{ord(character):04X}"
    assert as_html(f"a{character}b") == f'<bdi>a<span class="code-point">{code}</span>b</bdi>'
    assert visible(f"a{character}b") == f"a[{code}]b"


@pytest.mark.parametrize("text", ["two\nlines\tand a tab", "👩\u200d👧", "می\u200cخواهم", "שלום", "日本"])
def test_ordinary_characters_stay_unchanged(text):
    assert as_html(text) == f"<bdi>{text}</bdi>"


def test_a_long_text_is_cut_with_a_note():
    assert str(as_html("x" * (LONGEST + 1_234))).endswith("x … (1,234 characters more)</bdi>")


@given(st.text())
def test_nothing_in_a_text_opens_a_tag(text):
    inner = as_html(text).replace('<span class="code-point">', "").replace("</span>", "")[len("<bdi>") : -len("</bdi>")]
    assert "<" not in inner
    assert ">" not in inner
