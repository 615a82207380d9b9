"""Findings over a whole run: each where it belongs, a near miss of each, and the same whatever the order."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample
from multimodal_eval.lint.facts import facts_of
from multimodal_eval.lint.findings import CODES, Values, findings

ANIMALS = "dog cat horse bird cow sheep goat fox bear wolf".split()
PLACES = "on the beach|in a park|near the river|at a station|under a bridge|by the road".split("|")


def captions(count, end=""):
    """Captions that differ, with references that differ."""
    return [
        Sample(
            id=f"s{number}",
            group=f"g{number}",
            references=[
                f"The {ANIMALS[number % 10]} number {number} rests {PLACES[number % 6]}{end}",
                f"Picture {number}.",
            ],
            generated_answer=f"A {ANIMALS[number % 10]} with number {number} {PLACES[number % 6]}{end}",
        )
        for number in range(count)
    ]


def changed(samples, count, **fields):
    """The first samples with other fields; a function is given the number."""
    from msgspec.structs import replace

    def new(sample, number):
        return replace(sample, **{k: v(number) if callable(v) else v for k, v in fields.items()})

    return [new(sample, number) if number < count else sample for number, sample in enumerate(samples)]


def lint(samples, values=None, corpus_metrics=()):
    found = findings(
        facts_of(samples), lambda row: (samples[row].id, samples[row].generated_answer), values, corpus_metrics
    )
    assert [one.code for one in found] == sorted((one.code for one in found), key=list(CODES).index)
    for one in found:
        assert 0 <= one.share <= 1
        assert len(one.examples) <= 5
        assert one.why == CODES[one.code]
    return {one.code: one for one in found}


@pytest.mark.parametrize("end", ["", "."])
def test_clean_captions_have_no_findings(end):
    assert lint(captions(60, end)) == {}


def test_blank_answers():
    (found,) = lint(changed(captions(40), 2, generated_answer=" \n")).values()
    assert (found.code, found.count, found.total, found.share) == ("EMPTY_ANSWER", 2, 40, 0.05)
    assert found.examples == ["s0", "s1"]
    assert lint(changed(captions(40), 2, generated_answer=None)) == {}
    (found,) = lint(changed(captions(40), 2, generated_answer="\u200b\u200b")).values()
    assert (found.code, found.count) == ("EMPTY_ANSWER", 2)


def test_questions_again():
    question = "What is the animal on the left doing?"
    asked = changed(captions(40), 40, question=question)
    assert lint(asked) == {}
    found = lint(changed(asked, 1, generated_answer=question.upper()))
    assert found["COPIES_QUESTION"].examples == ["s0"]
    prompted = changed(captions(40), 1, prompt="Describe the image.", generated_answer="describe the image")
    assert set(lint(prompted)) == {"COPIES_QUESTION"}


def test_references_again():
    samples = captions(40)

    def copied(number):
        return samples[number].references[0].upper() + "!"

    assert lint(changed(samples, 4, generated_answer=copied)) == {}  # 10 % are not more than 10 %
    found = lint(changed(samples, 5, generated_answer=copied))["COPIES_REFERENCE"]
    assert (found.count, found.total) == (5, 40)


def test_short_right_answers_are_no_copies():
    samples = [
        Sample(id=str(number), group=f"g{number}", references=[f"number {number}"], generated_answer=f"Number {number}")
        for number in range(40)
    ]
    assert lint(samples) == {}


def test_the_same_answer_everywhere():
    found = lint(changed(captions(40), 10, generated_answer=lambda number: f"A {ANIMALS[number % 2]} on the grass"))
    one = found["DUPLICATE_ANSWERS"]
    assert (one.count, one.total) == (10, 40)
    assert {(answer.answer, answer.count) for answer in one.answers} == {
        ("A dog on the grass", 5),
        ("A cat on the grass", 5),
    }
    assert lint(changed(captions(40), 7, generated_answer="A dog on the grass")) == {}


def test_long_answers_may_repeat_where_references_do():
    same = changed(captions(40), 10, generated_answer="A dog on the grass")
    assert set(lint(changed(same, 10, references=["The dog is on the grass", "It is a dog"]))) == set()
    assert set(lint(changed(same, 4, references=["The dog is on the grass", "It is a dog"]))) == {"DUPLICATE_ANSWERS"}


def test_the_same_answer_within_a_group_is_no_duplicate():
    samples = changed(captions(40), 10, group="one", generated_answer="A dog on the grass")
    assert "DUPLICATE_ANSWERS" not in lint(samples)


def yes_no(answers, references):
    return [
        Sample(id=str(number), group=f"g{number}", question=f"Is it {number}?", references=[r], generated_answer=a)
        for number, (a, r) in enumerate(zip(answers, references, strict=True))
    ]


def test_short_answers_may_repeat_as_often_as_the_references_do():
    half = ["yes", "no"] * 20
    assert lint(yes_no(half, half)) == {}
    assert lint(yes_no(["yes"] * 40, ["yes"] * 36 + ["no"] * 4)) == {}
    found = lint(yes_no(["yes"] * 40, half))["DUPLICATE_ANSWERS"]
    assert (found.count, found.answers[0].answer) == (40, "yes")


def test_the_same_sample_under_several_ids():
    samples = captions(40)
    found = lint([*samples, *(Sample(**{**fields(samples[0]), "id": f"again{n}"}) for n in range(2))])
    assert found["DUPLICATE_SAMPLES"].count == 3
    assert found["DUPLICATE_SAMPLES"].examples == ["s0", "again0", "again1"]
    for near in ({"generated_answer": "A dog rests here now"}, {"group": "g"}, {"metadata": {"system": "B"}}):
        assert "DUPLICATE_SAMPLES" not in lint([*samples, Sample(**{**fields(samples[0]), "id": "near", **near})])


@pytest.mark.parametrize(
    "near", [{"choices": ["a", "b"]}, {"images": ["x.png"]}, {"video": "x.mp4"}, {"boxes": []}, {"epoch": 1}]
)
def test_the_same_answer_to_something_else_is_another_sample(near):
    samples = captions(60)
    again = {**fields(samples[0]), "id": "again"}
    assert lint([*samples, Sample(**again)])["DUPLICATE_SAMPLES"].count == 2
    assert "DUPLICATE_SAMPLES" not in lint([*samples, Sample(**{**again, **near})])


def test_samples_are_about_their_images_or_their_video():
    for media in ({"images": ["a.png", b"b"]}, {"video": "a.mp4"}):
        same = changed(captions(40), 10, group=None, generated_answer="A dog on the grass")
        assert "DUPLICATE_ANSWERS" in lint(same)
        assert "DUPLICATE_ANSWERS" not in lint(changed(same, 10, **media))


def fields(sample):
    return {name: getattr(sample, name) for name in sample.__struct_fields__}


def test_short_answers_without_an_image_are_no_duplicates():
    samples = [Sample(id=str(n), question="Is it wet?", references=["no"], generated_answer="no") for n in range(40)]
    assert "DUPLICATE_SAMPLES" not in lint(samples)
    pictured = changed(samples, 2, image="a.png")
    assert lint(pictured)["DUPLICATE_SAMPLES"].count == 2
    assert lint(changed(samples, 2, image=b"PNG"))["DUPLICATE_SAMPLES"].count == 2


def test_corpora_that_are_none():
    assert "single sample" in lint(captions(1))["DEGENERATE_CORPUS"].what
    assert "same references" in lint(changed(captions(40), 40, references=["A dog runs"]))["DEGENERATE_CORPUS"].what
    assert lint(changed(captions(40), 39, references=["A dog runs", "It runs."])) == {}
    small = lint(captions(9), corpus_metrics=["cider"])["DEGENERATE_CORPUS"]
    assert "cider" in small.what
    assert lint(captions(9)) == {}
    assert lint(captions(10), corpus_metrics=["cider"]) == {}


def test_a_single_reference_where_others_have_five():
    five = changed(captions(40), 40, references=lambda number: [f"Picture {number} seen {way}" for way in range(5)])
    assert lint(five) == {}
    found = lint(changed(five, 3, references=lambda number: [f"One picture {number}"]))["DEGENERATE_CORPUS"]
    assert (found.count, found.total) == (3, 40)
    assert lint(changed(captions(40), 3, references=lambda number: [f"One picture {number}"])) == {}  # of two


def test_open_ends():
    found = lint(changed(captions(40), 1, generated_answer="A dog on the beach with a ball,"))["TRUNCATED"]
    assert (found.count, found.total) == (1, 40)
    assert "comma" in found.what
    many = changed(captions(400), 1, generated_answer="A dog on the beach with a ball,")
    assert lint(many) == {}  # one in 400 is a slip of the pen


def test_words_that_another_must_follow():
    assert (
        "must follow" in lint(changed(captions(40), 1, generated_answer="A dog on the beach with a"))["TRUNCATED"].what
    )
    for whole in ("The boy has his coat on", "A bottle of the vitamin A", "On the way he came from"):
        assert lint(changed(captions(40), 1, generated_answer=whole)) == {}


def test_the_words_that_references_end_in():
    vitamins = changed(captions(40), 40, generated_answer=lambda number: f"{number} is the vitamin a")
    assert set(lint(changed(vitamins, 40, references=lambda number: [f"number {number}"]))) == {"TRUNCATED"}
    assert lint(changed(vitamins, 40, references=lambda number: [f"number {number}", "vitamin a"])) == {}


def test_words_of_the_runs_own_language():
    russian = [
        Sample(id=str(n), references=[f"Собака {n} бежит по пляжу"], generated_answer=f"Собака {n} и кот на траве")
        for n in range(40)
    ]
    assert lint(russian) == {}
    found = lint(changed(russian, 1, generated_answer="Собака бежит по траве и"))
    assert found["TRUNCATED"].count == 1
    # "am" ends no German sentence, and many an English one.
    assert lint(changed(captions(40), 1, generated_answer="A clock that shows 10 am")) == {}


def test_missing_final_punctuation():
    samples = captions(40, ".")
    found = lint(changed(samples, 2, generated_answer="A dog on the beach with"))["TRUNCATED"]
    assert (found.count, "final punctuation" in found.what) == (2, True)
    # A tenth is the most that is odd: more, and the run has no habit.
    assert lint(changed(samples, 5, generated_answer=lambda number: f"A dog on the beach {number}")) == {}
    # References that end openly as often say that captions are written so.
    mixed = changed(samples, 2, references=lambda number: [f"A dog number {number} there"])
    assert lint(changed(mixed, 2, generated_answer=lambda number: f"A dog on the beach {number}")) == {}
    # One-word answers need no full stop.
    assert lint(changed(samples, 2, generated_answer=lambda number: f"dogs {number}")) == {}


def long_texts(lengths):
    return [
        Sample(id=str(number), generated_answer=" ".join(f"w{number}x{place}" for place in range(length)))
        for number, length in enumerate(lengths)
    ]


def test_a_pile_at_the_greatest_length():
    natural = [*range(5, 15)] * 4
    assert lint(long_texts(natural)) == {}
    found = lint(long_texts([*natural, *[20] * 12]))["TRUNCATED"]
    assert (found.count, "greatest length" in found.what) == (12, True)
    assert lint(long_texts([*natural, *[20] * 3])) == {}
    assert lint(long_texts([9] * 40)) == {}  # a fixed form
    assert lint(long_texts([*[5, 6, 7] * 20])) == {}  # a short form


def test_other_languages():
    found = lint(changed(captions(40), 2, generated_answer=lambda number: f"Собака {number} бежит по траве"))
    assert found["OFF_LANGUAGE"].count == 2
    found = lint(changed(captions(40), 1, generated_answer="Un chien court sur la plage avec une balle"))
    assert found["OFF_LANGUAGE"].count == 1
    assert lint(changed(captions(40), 1, generated_answer="chien")) == {}
    assert lint(changed(captions(400), 2, generated_answer=lambda number: f"Собака {number} там")) == {}  # rare


def test_markup_and_repetition():
    found = lint(changed(captions(400), 1, generated_answer="A dog</s>"))
    assert found["MARKUP"].examples == ["s0"]
    found = lint(changed(captions(400), 1, generated_answer="the dog the dog the dog"))
    assert found["REPETITION"].examples == ["s0"]


def values(numbers, bounds=(0, 1)):
    own = Values(bounds)
    for part in np.array_split(np.array(numbers, dtype=np.float64), 3):
        own.see(part)
    return own


def metric(numbers, bounds=(0, 1)):
    return set(lint(captions(len(numbers)), {"m": values(numbers, bounds)}))


NAN = float("nan")


def test_values_that_tell_nothing():
    assert metric([0.5] * 20) == {"NO_VARIANCE"}
    assert metric([0.5] * 19 + [0.25]) == set()
    assert metric([0.5] + [NAN] * 19) == {"NO_VARIANCE", "UNSCORED_SHARE"}
    assert metric([NAN] * 20) == {"NO_VARIANCE", "UNSCORED_SHARE"}


def test_unscored_samples():
    spread = [number / 40 for number in range(40)]
    assert metric([NAN] * 2 + spread[2:]) == set()
    found = lint(captions(40), {"m": values([*spread[:37], *[NAN] * 3])})["UNSCORED_SHARE"]
    assert (found.metric, found.count, found.examples) == ("m", 3, ["s37", "s38", "s39"])


def test_values_at_a_bound():
    assert metric([1.0] * 19 + [0.5]) == {"CEILING"}
    assert metric([0.0] * 19 + [0.5]) == {"FLOOR"}
    assert metric([1.0] * 18 + [0.5, 0.6]) == set()
    assert metric([1.0] * 19 + [0.5], (0, 10)) == set()
    assert metric([1.0] * 19 + [0.5], (None, None)) == set()
    assert metric([1 + 1e-13, 1 - 1e-13] * 10) == {"CEILING"}
    assert metric([0.0] * 8 + [0.5]) == set()  # too few to speak of 95 %


odd_answers = st.sampled_from(
    ["", "a dog", "a dog on the", "the dog the dog the dog", "собака бежит", "A dog</s>", "A dog, running,", "yes"]
    + ["Un chien court sur la plage avec une balle"] * 3
    + [None, "[ERROR] no", "A dog on the beach with a ball."]
)


@given(st.lists(st.tuples(odd_answers, st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=60), st.randoms())
def test_order_does_not_matter(rows, chooser):
    samples = [
        Sample(
            id=f"s{n}", generated_answer=answer, group=f"g{group}", references=["A dog on the beach"] * count or None
        )
        for n, (answer, group, count) in enumerate(rows)
    ]
    mixed = list(samples)
    chooser.shuffle(mixed)

    def said(found):
        few = {code: set(one.examples) for code, one in found.items() if one.count <= 5}
        counts = [(one.code, one.count, one.total, one.what, [a.count for a in one.answers]) for one in found.values()]
        return few, counts

    assert said(lint(samples)) == said(lint(mixed))


def test_examples_are_the_first():
    samples = changed(captions(40), 9, generated_answer="")
    assert lint(samples)["EMPTY_ANSWER"].examples == [f"s{number}" for number in range(5)]
    random.Random(0).shuffle(samples)
    first = [sample.id for sample in samples if sample.generated_answer == ""][:5]
    assert lint(samples)["EMPTY_ANSWER"].examples == first
