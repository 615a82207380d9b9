"""Marked words, worked out by hand; the spans always add up to the whole text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.report.highlight import LONGEST, Span, highlighted


def test_a_word_is_marked_with_the_longest_sequence_it_belongs_to():
    result = highlighted("A red dog runs fast", ["the red dog sleeps", "it runs"])
    # "red dog" is in the first reference, "runs" in the second; "a" and "fast" in none.
    assert result.answer == [Span("A ", 0), Span("red dog", 2), Span(" ", 0), Span("runs", 1), Span(" fast", 0)]
    assert result.references == [
        [Span("the ", 0), Span("red dog", 2), Span(" sleeps", 0)],
        [Span("it ", 0), Span("runs", 1)],
    ]


def test_case_and_punctuation_do_not_matter():
    assert highlighted("BLUE!", ["blue"]).answer == [Span("BLUE", 1), Span("!", 0)]


def test_decomposed_letters_match_composed_ones():
    assert highlighted("cafe\u0301", ["café"]).references == [[Span("café", 1)]]


def test_scripts_without_spaces_are_compared_letter_by_letter():
    assert highlighted("红狗", ["红猫"]).answer == [Span("红", 1), Span("狗", 0)]


def test_longer_sequences_count_as_the_longest():
    words = "one two three four five six"
    assert highlighted(words, [words]).answer == [Span(words, LONGEST)]


def test_without_references_nothing_is_marked():
    assert highlighted("a dog", []).answer == [Span("a dog", 0)]


@given(st.text(max_size=60), st.lists(st.text(max_size=60), max_size=4))
def test_the_spans_add_up_to_the_texts(answer, references):
    result = highlighted(answer, references)
    assert "".join(span.text for span in result.answer) == answer
    assert ["".join(span.text for span in spans) for spans in result.references] == references


@given(st.text(alphabet="ab ", max_size=12), st.text(alphabet="ab ", max_size=12))
def test_marks_equal_the_longest_shared_sequence(answer, reference):
    words, other = answer.split(), reference.split()
    sequences = {tuple(other[i : i + n]) for n in range(1, LONGEST + 1) for i in range(len(other) - n + 1)}
    expected = [
        max(
            (n for n in range(1, LONGEST + 1) for i in range(index - n + 1, index + 1)
             if i >= 0 and i + n <= len(words) and tuple(words[i : i + n]) in sequences),
            default=0,
        )
        for index in range(len(words))
    ]  # fmt: skip
    marked = [span.matched for span in highlighted(answer, [reference]).answer for _ in span.text.split()]
    assert marked == expected
