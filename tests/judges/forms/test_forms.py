"""The forms that ask about one answer: what is asked, and the score of the verdicts."""

from __future__ import annotations

from math import log

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.judge_config import Criterion, JudgeConfig
from multimodal_eval.core.sample import Sample
from multimodal_eval.generate.protocol import Answer, TokenProbability
from multimodal_eval.judges.form import UnreadableVerdictError
from multimodal_eval.judges.forms.by_name import FORMS, form_of
from multimodal_eval.judges.forms.one_answer import NO_PROBABILITIES
from multimodal_eval.judges.prompt_texts import RULE, fenced

SAMPLE = Sample(
    "1",
    question="What runs?",
    choices=["a dog", "a cat"],
    references=["a dog", "the dog"],
    generated_answer="A dog.",
    image="dog.png",
)
ONE_ANSWER = {"scale", "binary", "rubric", "clair", "fleur"}
CRITERIA = [
    Criterion(name="accuracy", question="Is it right?", weight=2),
    Criterion(name="detail", question="Is it complete?", scale=(0, 10)),
]
RUBRIC = JudgeConfig(form="rubric", criteria=CRITERIA)
# A reply of each form, and its value.
REPLIES: list[tuple[JudgeConfig, str, float]] = [
    (JudgeConfig(form="scale"), '{"score": 4}', 4.0),
    (JudgeConfig(form="scale", scale=(0, 100)), '{"score": 85}', 85.0),
    (JudgeConfig(form="scale", scale=(-2, 2)), '{"score": -1}', -1.0),
    (JudgeConfig(form="binary"), '{"verdict": "yes"}', 1.0),
    (JudgeConfig(form="binary"), '{"verdict": "no"}', 0.0),
    # accuracy: (4 - 1) / 4 = .75 with weight 2; detail: 3 / 10 with weight 1: (1.5 + .3) / 3
    (RUBRIC, '{"accuracy": 4, "detail": 3}', 0.6),
    (JudgeConfig(form="clair"), '{"score": 85, "reason": "the same dog"}', 0.85),
    (JudgeConfig(form="fleur"), '{"score": 0.85}', 0.85),
    (JudgeConfig(form="fleur"), '{"score": 1}', 1.0),
]


def value_of(config: JudgeConfig, answer: Answer):
    form = form_of(config)
    return form.value(SAMPLE, [form.read(SAMPLE, answer, 0)])


def text_of(config: JudgeConfig, sample: Sample = SAMPLE) -> str:
    (draft,) = form_of(config).drafts(sample, 0)
    return str(draft.parts[-1])


@pytest.mark.parametrize(("config", "reply", "value"), REPLIES)
def test_the_value_of_a_reply(config, reply, value):
    score = value_of(config, Answer(reply))
    assert score.value == pytest.approx(value, abs=1e-15)
    assert score.warning is None


@pytest.mark.parametrize(("config", "reply", "value"), REPLIES)
def test_a_reply_by_the_schema_is_read(config, reply, value):
    schema = form_of(config).schema(SAMPLE)
    jsonschema.validate(msgspec.json.decode(reply), schema)
    assert schema["required"] == list(schema["properties"])  # as strict endpoints want it
    assert schema["additionalProperties"] is False


def test_every_form_of_one_answer_is_tested():
    assert {config.form for config, _, _ in REPLIES} == ONE_ANSWER <= set(FORMS)


@pytest.mark.parametrize(("config", "reply", "value"), REPLIES)
def test_a_blank_answer_has_the_lowest_score_without_a_question(config, reply, value):
    form = form_of(config)
    assert form.known(SAMPLE) is None
    score = form.known(msgspec.structs.replace(SAMPLE, generated_answer=" \n"))
    assert score.value == form.bounds[0]
    assert score.parts == ({"accuracy": 1.0, "detail": 0.0} if config.form == "rubric" else None)


def test_the_criteria_are_parts_on_their_own_scales():
    assert value_of(RUBRIC, Answer('{"accuracy": 4, "detail": 3}')).parts == {"accuracy": 4.0, "detail": 3.0}


def test_what_is_asked_by_a_scale():
    config = JudgeConfig(question="How short is it?", scale=(0, 3), explain=True)
    (draft,) = form_of(config).drafts(SAMPLE, 0)
    media, text = draft.parts
    assert (media.kind, media.source) == ("image", "dog.png")
    assert text == "\n\n".join(
        [
            "You judge the answer of a model. How short is it?\n"
            "Reply with a whole number from 0 to 3, where 3 is the best.",
            RULE,
            fenced("question", "What runs?"),
            fenced("choices", "A. a dog\nB. a cat"),
            fenced("reference-1", "a dog"),
            fenced("reference-2", "the dog"),
            fenced("answer", "A dog."),
            'Reply with JSON only: {"reason": "…", "score": …}',
        ]
    )


def test_what_is_asked_by_a_rubric():
    text = text_of(RUBRIC)
    assert "- accuracy: Is it right? A whole number from 1 to 5, where 5 is the best." in text
    assert "- detail: Is it complete? A whole number from 0 to 10, where 10 is the best." in text
    assert text.endswith('Reply with JSON only: {"accuracy": …, "detail": …}')


def test_weights_change_no_question():
    heavier = [msgspec.structs.replace(each, weight=7) for each in CRITERIA]
    assert text_of(JudgeConfig(form="rubric", criteria=heavier)) == text_of(RUBRIC)


def test_clair_gives_its_reason_after_the_score_or_before():
    assert text_of(JudgeConfig(form="clair")).endswith('{"score": …, "reason": "…"}')
    assert text_of(JudgeConfig(form="clair", explain=True)).endswith('{"reason": "…", "score": …}')


@pytest.mark.parametrize("form", sorted(ONE_ANSWER))
def test_only_what_is_to_be_shown_is_shown(form):
    config = JudgeConfig(form=form, criteria=CRITERIA if form == "rubric" else [], show=("question",))
    (draft,) = form_of(config).drafts(SAMPLE, 0)
    (text,) = draft.parts
    assert "<question" in text
    assert "<reference" not in text
    assert "<choices" not in text


def test_references_can_be_required():
    assert form_of(JudgeConfig(form="binary")).needs == ("generated_answer",)
    assert form_of(JudgeConfig(form="binary", require_references=True)).needs == ("generated_answer", "references")
    assert form_of(JudgeConfig(form="clair")).needs == ("generated_answer", "references")


def spelled(*tokens: str | tuple[str, dict[str, float]], text: str | None = None) -> Answer:
    """An answer by tokens, each with the probabilities of the tokens that could be in its place."""
    pairs = [(each, {each: 1.0}) if isinstance(each, str) else each for each in tokens]
    names = [token for token, _ in pairs]
    most_likely = [[TokenProbability(name, log(share)) for name, share in shares.items()] for _, shares in pairs]
    return Answer("".join(names) if text is None else text, tokens=names, top_logprobs=most_likely)


def expected(config: JudgeConfig, answer: Answer):
    return value_of(msgspec.structs.replace(config, expected=True), answer)


SCALE = JudgeConfig(form="scale")
SPREAD = {"4": 0.5, " 4": 0.1, "5": 0.2, "3": 0.1, "good": 0.1}


def test_the_expected_score_is_the_mean_by_probability():
    # 4 has .6 in two spellings, 5 has .2, 3 has .1, in all .9: (4 * .6 + 5 * .2 + 3 * .1) / .9
    answer = spelled('{"', "score", '": ', ("4", SPREAD), "}")
    score = expected(SCALE, answer)
    assert score.value == pytest.approx((2.4 + 1.0 + 0.3) / 0.9)
    assert score.warning is None
    form = form_of(msgspec.structs.replace(SCALE, expected=True))
    reading = form.read(SAMPLE, answer, 0)
    assert (reading["score"], reading["by"]) == (4.0, "probabilities")


@pytest.mark.parametrize(
    "answer",
    [
        spelled(("4", SPREAD)),
        spelled("Score", ":", (" 4", SPREAD)),
        spelled("Good", ".\n", "[[", ("4", SPREAD), "]]"),
        spelled('{"reason": "score: 4", "score":', (" 4", SPREAD), "}"),
        spelled('{"score', '":"', ("4", SPREAD), '"}'),
    ],
)
def test_the_token_of_the_verdict_is_found(answer):
    assert expected(SCALE, answer).value == pytest.approx((2.4 + 1.0 + 0.3) / 0.9)


def test_bytes_before_the_verdict_that_are_not_text_do_not_matter():
    answer = spelled("Sch\ufffd", "\ufffdn.\n", "Score: ", ("4", SPREAD), text="Schön.\nScore: 4")
    assert expected(SCALE, answer).value == pytest.approx((2.4 + 1.0 + 0.3) / 0.9)


def test_the_expected_verdict_is_the_probability_of_yes():
    answer = spelled('{"verdict": "', ("yes", {"yes": 0.6, "Yes": 0.1, "no": 0.2, "maybe": 0.1}), '"}')
    assert expected(JudgeConfig(form="binary"), answer).value == pytest.approx(0.7 / 0.9)


def test_the_expected_rubric():
    answer = spelled('{"accuracy": ', ("4", {"4": 0.5, "5": 0.5}), ', "detail": ', ("3", {"3": 0.75, "7": 0.25}), "}")
    score = expected(RUBRIC, answer)
    assert score.parts == pytest.approx({"accuracy": 4.5, "detail": 4.0})
    assert score.value == pytest.approx((2 * 3.5 / 4 + 0.4) / 3)


def test_numbers_of_several_digits():
    wide = JudgeConfig(form="clair")
    answer = spelled('{"score": ', ("85", {"85": 0.5, "80": 0.25, "9": 0.25}), ', "reason": "r"}')
    assert expected(wide, answer).value == pytest.approx((42.5 + 20 + 2.25) / 100)


FLEUR = JudgeConfig(form="fleur")
EIGHT = ("8", {"8": 0.5, "7": 0.25, "9": 0.1, "x": 0.1})


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        # .8 * .5 + .7 * .25 + .9 * .1, not divided by .85; the second digit adds .05 * .6 + 0 * .4
        (spelled('{"score": ', "0", ".", EIGHT, "}"), 0.665),
        (spelled('{"score": ', "0", ".", EIGHT, ("5", {"5": 0.6, "0": 0.4}), "}"), 0.695),
        (spelled("0", (".8", {".8": 0.5, ".7": 0.5})), 0.75),
        # 1: P(1) + .9 P(0) of the first digit
        (spelled('{"score": ', ("1", {"1": 0.7, "0": 0.2}), ".", "0", "}"), 0.88),
    ],
)
def test_fleur_is_the_mean_by_the_probabilities_of_the_digits(answer, value):
    score = expected(FLEUR, answer)
    assert score.value == pytest.approx(value)
    assert score.warning is None


def test_fleur_needs_the_image_and_a_number_from_0_to_1():
    assert form_of(FLEUR).needs == ("generated_answer", "image")
    with_references = JudgeConfig(form="fleur", require_references=True)
    assert form_of(with_references).needs == ("generated_answer", "image", "references")
    for reply in ('{"score": 1.5}', '{"score": "high"}', '{"score": 85}', "Score: -0.5"):
        with pytest.raises(UnreadableVerdictError):
            form_of(FLEUR).read(SAMPLE, Answer(reply), 0)


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        (SCALE, Answer('{"score": 4}')),  # no probabilities at all
        (FLEUR, Answer("0.85")),
        (FLEUR, spelled('{"score": ', "0", ".", ("85", {"85": 0.5, "80": 0.5}), "}")),  # two digits in a token
        (JudgeConfig(scale=(1, 10)), spelled('{"score": ', ("1", {"1": 0.9, "7": 0.1}), "0", "}")),  # digit by digit
        (JudgeConfig(scale=(1, 10)), spelled('{"score": ', ("7", {"1": 0.1, "7": 0.9}), "}")),  # 1, or the 1 of 10
        (JudgeConfig(scale=(-2, 2)), spelled('{"score": ', "-", ("1", {"1": 0.5, "2": 0.5}), "}")),
        (RUBRIC, spelled('{"accuracy": ', ("4", {"4": 0.5, "5": 0.5}), ', "detail": 3', "}")),  # one of two is unknown
        (JudgeConfig(form="binary"), spelled('{"verdict": ', ("true", {"true": 0.8, "false": 0.2}), "}")),
    ],
)
def test_without_probabilities_the_number_is_the_score(config, answer):
    score = expected(config, answer)
    assert score.value == value_of(config, answer).value
    assert score.warning == NO_PROBABILITIES
    reading = form_of(msgspec.structs.replace(config, expected=True)).read(SAMPLE, answer, 0)
    assert reading["by"] == "number"


def test_tokens_that_are_not_those_of_the_text():
    answer = spelled('{"score": ', ("4", SPREAD), "}", text='{"score": 4} ')
    assert expected(SCALE, answer).warning == NO_PROBABILITIES


def test_one_number_of_a_scale_that_is_no_prefix_is_not_ambiguous():
    answer = spelled('{"score": ', ("7", {"7": 0.5, "8": 0.5}), "}")
    assert expected(JudgeConfig(scale=(1, 10)), answer).value == 7.5


@given(shares=st.dictionaries(st.sampled_from("12345"), st.floats(1e-6, 1), min_size=1))
def test_an_expected_score_is_on_the_scale(shares):
    verdict = max(shares, key=shares.__getitem__)
    value = expected(SCALE, spelled('{"score": ', (verdict, shares), "}")).value
    assert min(map(int, shares)) - 1e-9 <= value <= max(map(int, shares)) + 1e-9


@pytest.mark.parametrize(("config", "reply", "value"), REPLIES)
@given(text=st.text(max_size=200))
def test_any_reply_gives_a_value_within_the_bounds_or_none(config, reply, value, text):
    form = form_of(config)
    for answer in (Answer(text), Answer(reply + text), Answer(text + reply)):
        try:
            score = form.value(SAMPLE, [form.read(SAMPLE, answer, 0)])
        except UnreadableVerdictError:
            continue
        low, high = form.bounds
        assert low <= score.value <= high
