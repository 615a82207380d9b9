"""Marked words, worked out by hand; the spans always add up to the whole text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.report.highlight import Span, beginning, differences, highlighted, marked


def only(text: str) -> Span:
    return Span(text, "only")


def shared(text: str) -> Span:
    return Span(text, "shared")


def test_shared_content_words_and_those_that_no_reference_has_are_marked():
    result = highlighted("A red dog runs fast and barks", ["the red dog sleeps", "it runs and jumps"])
    # "red", "dog" and "runs" are in a reference, "fast" and "barks" in none; "a" and "and" are function words.
    assert result.answer == [
        Span("A "), shared("red dog runs"), Span(" "), only("fast"), Span(" and "), only("barks"),
    ]  # fmt: skip
    # Words of a reference that the answer lacks are not marked.
    assert result.references == [
        [Span("the "), shared("red dog"), Span(" sleeps")],
        [Span("it "), shared("runs"), Span(" and jumps")],
    ]


def test_two_answers_are_marked_against_each_other():
    first, second = differences("a cat on the sofa", "the cat under a bench")
    assert first == [Span("a "), shared("cat"), Span(" on the "), only("sofa")]
    # "under" is a preposition of place: content
    assert second == [Span("the "), shared("cat"), Span(" "), only("under"), Span(" a "), only("bench")]


def test_case_punctuation_and_endings_do_not_matter():
    assert highlighted("BLUE!", ["blue"]).answer == [shared("BLUE"), Span("!")]
    assert highlighted("two dogs", ["one dog"]).answer == [only("two"), Span(" "), shared("dogs")]
    assert highlighted("собаки на траве", ["собака в траве"]).answer == [
        shared("собаки"),
        Span(" на "),
        shared("траве"),
    ]


def test_words_on_both_sides_of_punctuation_are_marked_one_by_one():
    assert highlighted("red, blue", ["blue and red"]).answer == [shared("red"), Span(", "), shared("blue")]


def test_function_words_are_those_of_the_language():
    # "die" and "war" are German function words, but in an English text they are content.
    assert highlighted("they die in the war", ["peace"]).answer == [
        Span("they "), only("die"), Span(" in the "), only("war"),
    ]  # fmt: skip
    assert highlighted("der Hund und die Katze", ["ein Vogel"]).answer == [
        Span("der "), only("Hund"), Span(" und die "), only("Katze"),
    ]  # fmt: skip
    assert highlighted("le chat", ["un chien"]).answer == [Span("le "), only("chat")]


def test_negations_are_content():
    assert highlighted("no", ["yes"]).answer == [only("no")]
    assert highlighted("он не идёт", ["он идёт"]).answer == [Span("он "), only("не"), Span(" "), shared("идёт")]


def test_decomposed_letters_match_composed_ones():
    assert highlighted("cafe\u0301", ["café"]).references == [[shared("café")]]


def test_scripts_without_spaces_are_compared_letter_by_letter():
    assert highlighted("红的狗", ["红的猫"]).answer == [shared("红"), Span("的"), only("狗")]


def test_without_words_to_compare_with_nothing_is_marked():
    assert highlighted("a dog", []).answer == [Span("a dog")]
    assert highlighted("a dog", ["", " ... "]).answer == [Span("a dog")]
    assert marked("a dog", ["a cat"], differing=False) == [Span("a dog")]


def test_marked_text_is_cut_at_a_length():
    spans = highlighted("a red dog runs", ["red dog"]).answer
    assert beginning(spans, 100) == spans
    assert beginning(spans, 5) == [Span("a "), shared("red"), Span(" …")]


texts = st.text(max_size=60) | st.text(alphabet="ab the DOG,'’-\u0301狗й", max_size=40)


@given(texts, st.lists(texts, max_size=4))
def test_the_spans_add_up_to_the_texts(answer, references):
    result = highlighted(answer, references)
    assert "".join(span.text for span in result.answer) == answer
    assert ["".join(span.text for span in spans) for spans in result.references] == references
    assert all(span.text for span in result.answer)
    pairs = zip(result.answer, result.answer[1:], strict=False)
    assert all(span.mark != following.mark for span, following in pairs)


words = st.sampled_from(["red", "dog", "runs", "fast", "the", "and", "a"])


@given(st.lists(words, max_size=8), st.lists(st.lists(words, max_size=8), max_size=3))
def test_marks_equal_those_of_a_naive_comparison(answer, references):
    others = {word for reference in references for word in reference}
    expected = [
        "" if word in ("the", "and", "a") else "shared" if word in others else "only" if others else ""
        for word in answer
    ]
    result = highlighted(" ".join(answer), [" ".join(reference) for reference in references])
    assert [span.mark for span in result.answer for _ in span.text.split()] == expected


@given(texts, texts)
def test_two_answers_share_the_same_words_in_both_directions(first, second):
    left, right = differences(first, second)
    assert any(span.mark == "shared" for span in left) == any(span.mark == "shared" for span in right)
