"""Findings over a whole run: a case and a near miss of each, in any order of the samples."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample
from multimodal_eval.lint.findings import CODES, Values, findings
from tests.lint.both_ways import facts_of

ANIMALS = "dog cat horse bird cow sheep goat fox bear wolf".split()
PLACES = "on the beach|in a park|near the river|at a station|under a bridge|by the road".split("|")


def captions(count, end=""):
    """Different captions with different references."""
    return [
        Sample(
            id=f"s{number}",
            group=f"g{number}",
            references=[
                f"The {ANIMALS[number % 10]} number {number} rests {PLACES[number % 6]}{end}",
                f"Photo {number}.",
            ],
            generated_answer=f"A {ANIMALS[number % 10]} with number {number} {PLACES[number % 6]}{end}",
        )
        for number in range(count)
    ]


def changed(samples, count, **fields):
    """Change fields of the first samples; a function is called with the number."""
    from msgspec.structs import replace

    def new(sample, number):
        return replace(sample, **{k: v(number) if callable(v) else v for k, v in fields.items()})

    return [new(sample, number) if number < count else sample for number, sample in enumerate(samples)]


def lint(samples, values=None, corpus_metrics=()):
    warnings = findings(
        facts_of(samples), lambda row: (samples[row].id, samples[row].generated_answer), values, corpus_metrics
    )
    assert [finding.code for finding in warnings] == sorted(
        (finding.code for finding in warnings), key=list(CODES).index
    )
    for finding in warnings:
        assert 0 <= finding.share <= 1
        assert len(finding.examples) <= 5
        assert finding.why == CODES[finding.code]
    return {finding.code: finding for finding in warnings}


@pytest.mark.parametrize("end", ["", "."])
def test_clean_captions_have_no_findings(end):
    assert lint(captions(60, end)) == {}


def test_blank_answers():
    (finding,) = lint(changed(captions(40), 2, generated_answer=" \n")).values()
    assert (finding.code, finding.count, finding.total, finding.share) == ("EMPTY_ANSWER", 2, 40, 0.05)
    assert finding.examples == ["s0", "s1"]
    assert lint(changed(captions(40), 2, generated_answer=None)) == {}
    (finding,) = lint(changed(captions(40), 2, generated_answer="\u200b\u200b")).values()
    assert (finding.code, finding.count) == ("EMPTY_ANSWER", 2)


def test_copied_questions():
    question = "What is the animal on the left doing?"
    asked = changed(captions(40), 40, question=question)
    assert lint(asked) == {}
    finding = lint(changed(asked, 1, generated_answer=question.upper()))
    assert finding["COPIES_QUESTION"].examples == ["s0"]
    prompted = changed(captions(40), 1, prompt="Describe the image.", generated_answer="describe the image")
    assert set(lint(prompted)) == {"COPIES_QUESTION"}


def test_copied_references():
    samples = captions(40)

    def copied(number):
        return samples[number].references[0].upper() + "!"

    assert lint(changed(samples, 4, generated_answer=copied)) == {}  # 10 % are not more than 10 %
    finding = lint(changed(samples, 5, generated_answer=copied))["COPIES_REFERENCE"]
    assert (finding.count, finding.total) == (5, 40)


def test_short_correct_answers_are_not_copies():
    samples = [
        Sample(id=str(number), group=f"g{number}", references=[f"number {number}"], generated_answer=f"Number {number}")
        for number in range(40)
    ]
    assert lint(samples) == {}


def test_the_same_answer_for_many_samples():
    samples = changed(captions(40), 10, generated_answer=lambda number: f"A {ANIMALS[number % 2]} on the grass")
    finding = lint(samples)["DUPLICATE_ANSWERS"]
    assert (finding.count, finding.total) == (10, 40)
    assert {(answer.answer, answer.count) for answer in finding.answers} == {
        ("A dog on the grass", 5),
        ("A cat on the grass", 5),
    }
    assert lint(changed(captions(40), 7, generated_answer="A dog on the grass")) == {}


def test_long_answers_may_repeat_if_references_do():
    same = changed(captions(40), 10, generated_answer="A dog on the grass")
    assert set(lint(changed(same, 10, references=["The dog is on the grass", "It is a dog"]))) == set()
    assert set(lint(changed(same, 4, references=["The dog is on the grass", "It is a dog"]))) == {"DUPLICATE_ANSWERS"}


def test_the_same_answer_within_a_group_is_not_a_duplicate():
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
    finding = lint(yes_no(["yes"] * 40, half))["DUPLICATE_ANSWERS"]
    assert (finding.count, finding.answers[0].answer) == (40, "yes")


def test_the_same_sample_under_several_ids():
    samples = captions(40)
    finding = lint([*samples, *(Sample(**{**fields(samples[0]), "id": f"again{n}"}) for n in range(2))])
    assert finding["DUPLICATE_SAMPLES"].count == 3
    assert finding["DUPLICATE_SAMPLES"].examples == ["s0", "again0", "again1"]
    for near in ({"generated_answer": "A dog rests here now"}, {"group": "g"}, {"metadata": {"system": "B"}}):
        assert "DUPLICATE_SAMPLES" not in lint([*samples, Sample(**{**fields(samples[0]), "id": "near", **near})])


@pytest.mark.parametrize(
    "near", [{"choices": ["a", "b"]}, {"images": ["x.png"]}, {"video": "x.mp4"}, {"boxes": []}, {"epoch": 1}]
)
def test_the_same_answer_to_another_input_is_not_a_duplicate(near):
    samples = captions(60)
    again = {**fields(samples[0]), "id": "again"}
    assert lint([*samples, Sample(**again)])["DUPLICATE_SAMPLES"].count == 2
    assert "DUPLICATE_SAMPLES" not in lint([*samples, Sample(**{**again, **near})])


def test_samples_with_the_same_images_or_video_are_one_unit():
    for media in ({"images": ["a.png", b"b"]}, {"video": "a.mp4"}):
        same = changed(captions(40), 10, group=None, generated_answer="A dog on the grass")
        assert "DUPLICATE_ANSWERS" in lint(same)
        assert "DUPLICATE_ANSWERS" not in lint(changed(same, 10, **media))


def fields(sample):
    return {name: getattr(sample, name) for name in sample.__struct_fields__}


def test_short_answers_without_an_image_are_not_duplicates():
    samples = [Sample(id=str(n), question="Is it wet?", references=["no"], generated_answer="no") for n in range(40)]
    assert "DUPLICATE_SAMPLES" not in lint(samples)
    with_image = changed(samples, 2, image="a.png")
    assert lint(with_image)["DUPLICATE_SAMPLES"].count == 2
    assert lint(changed(samples, 2, image=b"PNG"))["DUPLICATE_SAMPLES"].count == 2


def test_degenerate_corpora():
    assert "single sample" in lint(captions(1))["DEGENERATE_CORPUS"].what
    assert "same references" in lint(changed(captions(40), 40, references=["A dog runs"]))["DEGENERATE_CORPUS"].what
    assert lint(changed(captions(40), 39, references=["A dog runs", "It runs."])) == {}
    small = lint(captions(9), corpus_metrics=["cider"])["DEGENERATE_CORPUS"]
    assert "cider" in small.what
    assert lint(captions(9)) == {}
    assert lint(captions(10), corpus_metrics=["cider"]) == {}


def test_a_single_reference_if_others_have_five():
    five = changed(captions(40), 40, references=lambda number: [f"Photo {number} seen {way}" for way in range(5)])
    assert lint(five) == {}
    finding = lint(changed(five, 3, references=lambda number: [f"One photo {number}"]))["DEGENERATE_CORPUS"]
    assert (finding.count, finding.total) == (3, 40)
    assert lint(changed(captions(40), 3, references=lambda number: [f"A photo {number}"])) == {}  # the others have two


def test_open_ends():
    finding = lint(changed(captions(40), 1, generated_answer="A dog on the beach with a ball,"))["TRUNCATED"]
    assert (finding.count, finding.total) == (1, 40)
    assert "comma" in finding.what
    many = changed(captions(400), 1, generated_answer="A dog on the beach with a ball,")
    assert lint(many) == {}  # one in 400 is a typo


def test_words_that_cannot_end_a_sentence():
    finding = lint(changed(captions(40), 1, generated_answer="A dog on the beach with a"))["TRUNCATED"]
    assert "cannot end a sentence" in finding.what
    for complete in ("The boy has his coat on", "A bottle of the vitamin A", "On the way he came from"):
        assert lint(changed(captions(40), 1, generated_answer=complete)) == {}


def test_final_words_of_references_are_allowed():
    vitamins = changed(captions(40), 40, generated_answer=lambda number: f"{number} is the vitamin a")
    assert set(lint(changed(vitamins, 40, references=lambda number: [f"number {number}"]))) == {"TRUNCATED"}
    assert lint(changed(vitamins, 40, references=lambda number: [f"number {number}", "vitamin a"])) == {}


def test_words_of_the_runs_language():
    russian = [
        Sample(id=str(n), references=[f"Собака {n} бежит по пляжу"], generated_answer=f"Собака {n} и кот на траве")
        for n in range(40)
    ]
    assert lint(russian) == {}
    finding = lint(changed(russian, 1, generated_answer="Собака бежит по траве и"))
    assert finding["TRUNCATED"].count == 1
    # "am" cannot end a German sentence, but an English one.
    assert lint(changed(captions(40), 1, generated_answer="A clock that shows 10 am")) == {}


def test_missing_final_punctuation():
    samples = captions(40, ".")
    finding = lint(changed(samples, 2, generated_answer="A dog on the beach with"))["TRUNCATED"]
    assert (finding.count, "final punctuation" in finding.what) == (2, True)
    # If more than a tenth lack it, the run has no consistent punctuation.
    assert lint(changed(samples, 5, generated_answer=lambda number: f"A dog on the beach {number}")) == {}
    # References lack it as often, so captions are written without it.
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
    finding = lint(long_texts([*natural, *[20] * 12]))["TRUNCATED"]
    assert (finding.count, "greatest length" in finding.what) == (12, True)
    assert lint(long_texts([*natural, *[20] * 3])) == {}
    assert lint(long_texts([9] * 40)) == {}  # a fixed form
    assert lint(long_texts([*[5, 6, 7] * 20])) == {}  # a short form


def test_other_languages():
    finding = lint(changed(captions(40), 2, generated_answer=lambda number: f"Собака {number} бежит по траве"))
    assert finding["OFF_LANGUAGE"].count == 2
    finding = lint(changed(captions(40), 1, generated_answer="Un chien court sur la plage avec une balle"))
    assert finding["OFF_LANGUAGE"].count == 1
    assert lint(changed(captions(40), 1, generated_answer="chien")) == {}
    assert lint(changed(captions(400), 2, generated_answer=lambda number: f"Собака {number} там")) == {}  # rare


def test_markup_and_repetition():
    finding = lint(changed(captions(400), 1, generated_answer="A dog</s>"))
    assert finding["MARKUP"].examples == ["s0"]
    finding = lint(changed(captions(400), 1, generated_answer="the dog the dog the dog"))
    assert finding["REPETITION"].examples == ["s0"]


def values(numbers, bounds=(0, 1)):
    statistics = Values(bounds)
    for part in np.array_split(np.array(numbers, dtype=np.float64), 3):
        statistics.see(part)
    return statistics


def metric(numbers, bounds=(0, 1)):
    return set(lint(captions(len(numbers)), {"m": values(numbers, bounds)}))


NAN = float("nan")


def test_constant_values():
    assert metric([0.5] * 20) == {"NO_VARIANCE"}
    assert metric([0.5] * 19 + [0.25]) == set()
    assert metric([0.5] + [NAN] * 19) == {"NO_VARIANCE", "UNSCORED_SHARE"}
    assert metric([NAN] * 20) == {"NO_VARIANCE", "UNSCORED_SHARE"}


def test_unscored_samples():
    spread = [number / 40 for number in range(40)]
    assert metric([NAN] * 2 + spread[2:]) == set()
    finding = lint(captions(40), {"m": values([*spread[:37], *[NAN] * 3])})["UNSCORED_SHARE"]
    assert (finding.metric, finding.count, finding.examples) == ("m", 3, ["s37", "s38", "s39"])


def test_values_at_a_bound():
    assert metric([1.0] * 19 + [0.5]) == {"CEILING"}
    assert metric([0.0] * 19 + [0.5]) == {"FLOOR"}
    assert metric([1.0] * 18 + [0.5, 0.6]) == set()
    assert metric([1.0] * 19 + [0.5], (0, 10)) == set()
    assert metric([1.0] * 19 + [0.5], (None, None)) == set()
    assert metric([1 + 1e-13, 1 - 1e-13] * 10) == {"CEILING"}
    assert metric([0.0] * 8 + [0.5]) == set()  # too few values


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

    def summary(warnings):
        few = {code: set(finding.examples) for code, finding in warnings.items() if finding.count <= 5}
        counts = [
            (finding.code, finding.count, finding.total, finding.what, [a.count for a in finding.answers])
            for finding in warnings.values()
        ]
        return few, counts

    assert summary(lint(samples)) == summary(lint(mixed))


def test_examples_are_the_first():
    samples = changed(captions(40), 9, generated_answer="")
    assert lint(samples)["EMPTY_ANSWER"].examples == [f"s{number}" for number in range(5)]
    random.Random(0).shuffle(samples)
    first = [sample.id for sample in samples if sample.generated_answer == ""][:5]
    assert lint(samples)["EMPTY_ANSWER"].examples == first


def test_a_consensus_needs_more_than_one_reference():
    single = changed(captions(40), 36, references=lambda number: [f"One photo {number}"])
    finding = lint(single, corpus_metrics=["cider", "cider_d"])["SINGLE_REFERENCE"]
    assert (finding.count, finding.total) == (36, 40)
    assert finding.what.endswith("too few for the consensus that cider, cider_d measures")
    assert "SINGLE_REFERENCE" not in lint(single)  # no metric needs a consensus
    fewer = changed(captions(40), 35, references=lambda number: [f"One photo {number}"])
    assert "SINGLE_REFERENCE" not in lint(fewer, corpus_metrics=["cider"])
