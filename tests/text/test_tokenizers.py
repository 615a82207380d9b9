from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.text.tokenizers import TOKENIZERS, get_tokenizer, tokenize
from tests.golden.load import golden


def test_ptb_tokens_equal_the_java_programs_on_captions():
    captions = golden("captions.json.gz")
    texts = captions["candidates"] + [text for texts in captions["references"] for text in texts]
    expected = captions["candidate_tokens"] + [tokens for texts in captions["reference_tokens"] for tokens in texts]
    assert [" ".join(tokens) for tokens in tokenize(texts)] == expected


def test_ptb_tokens_equal_the_java_programs_on_unusual_strings():
    rows = golden("ptb_fuzz.json.gz")["rows"]
    tokens = tokenize([text for text, _, _ in rows])
    different = [(text, theirs, ours) for (text, _, theirs), ours in zip(rows, tokens, strict=True) if theirs != ours]
    # The Java program reads past the end of a line: "No." keeps its full stop if the next line of the recorded file
    # starts with a number. Here, every caption is separate.
    assert len(different) == 4
    for text, theirs, ours in different:
        assert text.endswith("No.")
        assert (theirs[-1], ours) == ("no.", [*theirs[:-1], "no"])


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("A man can't ride, cannot stop!", ["a", "man", "ca", "n't", "ride", "can", "not", "stop"]),
        ("The dog's ball (red)", ["the", "dog", "'s", "ball", "-lrb-", "red", "-rrb-"]),
        ("black-and-white photo at 10:30 a.m.", ["black-and-white", "photo", "at", "10:30", "a.m."]),
        ('a "quoted" word...', ["a", "quoted", "word"]),
        ("U.S. Mr. £5 ½cup gonna", ["u.s.", "mr.", "#", "5", "1/2", "cup", "gon", "na"]),
        ("a dog\ra cat\u2028a bird\x0ba fish", ["a", "dog", "a", "cat", "a", "bird", "a", "fish"]),
        ("", []),
        ("... !!", ["!!"]),
    ],
)
def test_ptb_by_hand(text, tokens):
    assert tokenize([text])[0] == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Ёлка, и-кошка №5!", ["ёлка", "и", "кошка", "5"]),
        ("一只狗 runs", ["一", "只", "狗", "runs"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("Ǆ ÀÉ x²", ["ǆ", "àé", "x²"]),
    ],
)
def test_unicode_by_hand(text, tokens):
    assert tokenize([text], "unicode")[0] == tokens


@given(st.text(max_size=60))
def test_whitespace_equals_pythons_split(text):
    assert tokenize([text], "whitespace")[0] == text.split()


plain = st.text(st.sampled_from("aB0.,-&;<>!\"'/ \n$é漢") | st.characters(exclude_categories=["Cs"]), max_size=40)


@given(plain)
def test_13a_equals_sacrebleu(text):
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    assert tokenize([text], "13a")[0] == Tokenizer13a()(text).split()


@given(st.text(max_size=80))
def test_every_tokenizer_accepts_any_text(text):
    for name in TOKENIZERS:
        tokens = get_tokenizer(name)(text)
        assert all(tokens)
        assert tokens == tokenize([text, text], name)[1]


def test_an_unknown_tokenizer_is_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'unicode'"):
        tokenize(["x"], "unicod")
