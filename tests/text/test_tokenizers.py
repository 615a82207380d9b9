from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval._native import tokenize as native_tokenize
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


def test_as_lines_of_a_file_ptb_tokens_equal_the_java_programs():
    recorded = golden("ptb_lines.json.gz")
    tokens = native_tokenize(recorded["lines"], "ptb", are_lines=True)
    assert list(map(" ".join, tokens)) == recorded["tokens"]
    alone = list(map(" ".join, tokenize(recorded["lines"])))
    assert alone != recorded["tokens"]


def test_as_lines_of_a_file_the_unusual_strings_have_no_difference():
    rows = golden("ptb_fuzz.json.gz")["rows"]
    tokens = native_tokenize([text for text, _, _ in rows], "ptb", are_lines=True)
    assert tokens == [theirs for _, _, theirs in rows]


def test_line_breaks_in_a_line_are_spaces_and_other_tokenizers_see_single_texts():
    assert native_tokenize(["reads K.\nA man", "x"], "ptb", are_lines=True)[0] == ["reads", "k", "a", "man"]
    assert native_tokenize(["reads K.", "A man"], "13a", are_lines=True) == tokenize(["reads K.", "A man"], "13a")


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_as_lines_only_the_end_of_a_text_can_differ(texts):
    # A last line is followed by nothing, as a single text is.
    last = texts[-1].replace("\n", " ")
    assert native_tokenize([last], "ptb", are_lines=True) == tokenize([last])
    assert len(native_tokenize(texts, "ptb", are_lines=True)) == len(texts)
