"""What is marked, worked out by hand; whatever the texts, nothing of them is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.report.highlight import LONGEST, Span, highlighted


def test_a_word_is_marked_with_the_longest_sequence_it_belongs_to():
    found = highlighted("A red dog runs fast", ["the red dog sleeps", "it runs"])
    # "red dog" is in the first reference, "runs" in the second; "a" and "fast" in none.
    assert found.answer == [Span("A ", 0), Span("red dog", 2), Span(" ", 0), Span("runs", 1), Span(" fast", 0)]
    assert found.references == [
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
def test_the_spans_are_the_texts(answer, references):
    found = highlighted(answer, references)
    assert "".join(span.text for span in found.answer) == answer
    assert ["".join(span.text for span in spans) for spans in found.references] == references


@given(st.text(alphabet="ab ", max_size=12), st.text(alphabet="ab ", max_size=12))
def test_as_many_words_in_sequence_as_the_other_side_has(answer, reference):
    words, others = answer.split(), reference.split()
    runs = {tuple(others[i : i + n]) for n in range(1, LONGEST + 1) for i in range(len(others) - n + 1)}
    expected = [
        max(
            (n for n in range(1, LONGEST + 1) for i in range(place - n + 1, place + 1)
             if i >= 0 and i + n <= len(words) and tuple(words[i : i + n]) in runs),
            default=0,
        )
        for place in range(len(words))
    ]  # fmt: skip
    marked = [span.matched for span in highlighted(answer, [reference]).answer for _ in span.text.split()]
    assert marked == expected
