"""The contest's settings, and submissions as runs: every score equals that of `integral_score`, to the bit."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

import pytest

from multimodal_eval.contests.dialogue.contest import open_contest, prepare
from multimodal_eval.contests.dialogue.dialogues import type_of
from multimodal_eval.contests.dialogue.report import dialogue_report
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.dialogue import hidden_rule
from multimodal_eval.evaluation.metrics import hidden_metric
from tests.contests.dialogue.contest import TYPES, WORKED, reply, score, texts, write_contest

DEMO = Path(str(files("multimodal_eval.data") / "demo" / "dialogue"))
WORDS = ["cat", "dog", "red", "blue", "tree", "house"]  # no two with the same stem


@pytest.fixture(autouse=True)
def untouched_rules(monkeypatch):
    monkeypatch.setattr(hidden_metric, "_rules", dict(hidden_metric._rules))


# types and weights


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("Text2Text", "Text2Text"),
        ("Text+Text", "Text2Text"),
        ("text-to-text", "Text2Text"),
        ("Image2Text", "Image2Text"),
        ("image + text", "Image2Text"),
        ("Audio+Text", "Audio2Text"),
        ("AUDIO_TO_TEXT", "Audio2Text"),
        ("Image-Audio2Text", "Image-Audio2Text"),
        ("Image-Audio+Text", "Image-Audio2Text"),
        ("image-audio2text", "Image-Audio2Text"),
        ("Image+Audio+Text", "Image-Audio2Text"),
        ("Audio-Image2Text", "Image-Audio2Text"),
        ("Text2Image", None),
        ("Text", None),
        ("Text2Text2Text", None),
        ("Video2Text", None),
        ("", None),
    ],
)
def test_spellings_of_the_types(spelling, expected):
    assert type_of(spelling) == expected


def test_dialogues_may_spell_their_types_differently():
    spellings = {"Text2Text": "Text+Text", "Image2Text": "image2text", "Image-Audio2Text": "Image-Audio+Text"}
    respelled = [dialogue | {"type": spellings.get(dialogue["type"], dialogue["type"])} for dialogue in WORKED]
    assert score(respelled) == score(WORKED)


def test_custom_weights():
    result = score(WORKED, weights={"Text+Text": 0.75, "Audio2Text": 0.25})  # the others have weight 0
    # 3/4 * 743/1386 + 1/4 * 2317/4224
    assert result.value == pytest.approx(
        float(Fraction(3, 4) * Fraction(743, 1386) + Fraction(1, 4) * Fraction(2317, 4224)), abs=1e-12
    )
    assert [(row.type, row.weight, row.part > 0) for row in result.types] == [
        ("Text2Text", 0.75, True),
        ("Image2Text", 0, False),
        ("Audio2Text", 0.25, True),
        ("Image-Audio2Text", 0, False),
    ]
    assert result.method.endswith("7 clusters in 2 strata")
    assert "weights:0.75*Text2Text+0*Image2Text+0.25*Audio2Text" in str(result.signature)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"Text2Text": 0.5, "Image2Text": 0.4}, r"WEIGHTS: .* must sum to 1. They sum to 0.9"),
        ({"Text2Text": 1.5, "Image2Text": -0.5}, "WEIGHTS: the weight of 'Image2Text'.*-0.5"),
        ({"Text2Text": float("nan"), "Image2Text": 1}, "WEIGHTS: the weight of 'Text2Text'.*nan"),
        ({"Text2Text": 1 + 2e-9}, "They sum to 1.000000002"),
        ({"Video2Text": 1}, "WEIGHTS: 'Video2Text' is not a dialogue type.*Image-Audio2Text"),
        ({"Text2Text": 0.5, "Text+Text": 0.5}, "WEIGHTS: 'Text.Text' occurs twice"),
        ({}, "They sum to 0"),
    ],
)
def test_weights_that_are_refused(weights, message):
    with pytest.raises(ConfigError, match=message):
        score(WORKED, weights=weights)


def test_weights_may_be_off_by_rounding():
    assert score(WORKED, weights={"Text2Text": 1 - 5e-10}).value == pytest.approx(743 / 1386, abs=1e-9)


def test_a_type_with_a_weight_but_no_dialogue_is_an_error_unless_allowed():
    two = [dialogue for dialogue in WORKED if dialogue["type"] in ("Text2Text", "Audio2Text")]
    with pytest.raises(
        ConfigError, match=r"no dialogue has the type Image2Text, Image-Audio2Text.*--present-types-only"
    ):
        score(two)
    result = score(two, present_types_only=True)
    # .1 and .3 are scaled up to 1/4 and 3/4.
    assert result.value == pytest.approx(
        float(Fraction(1, 4) * Fraction(743, 1386) + Fraction(3, 4) * Fraction(2317, 4224)), abs=1e-12
    )
    assert result.left_out == ("Image2Text", "Image-Audio2Text")
    assert [row.weight for row in result.types] == pytest.approx([0.25, 0.75], abs=1e-15)
    assert "weights:0.25*Text2Text+0.75*Audio2Text" in str(result.signature)
    assert score(two, weights={"Text2Text": 0.25, "Audio2Text": 0.75}).value == pytest.approx(result.value, abs=1e-15)


def test_present_types_only_changes_nothing_if_all_types_are_present():
    assert score(WORKED, present_types_only=True) == score(WORKED)


def test_no_type_with_a_weight_is_present():
    with pytest.raises(ConfigError, match="no type that occurs in the dialogues has a weight"):
        score(texts(2), weights={"Audio2Text": 1}, present_types_only=True)


# as a run


def run_of(folder, dialogues, **settings):
    gold, output, ppl = write_contest(folder, dialogues)
    contest = open_contest(gold, **({"synonyms": "none"} | settings))
    return prepare(contest, output, ppl).score(folder / "run")


def as_tuple(entry):
    return entry["value"], entry["stderr"], entry["low"], entry["high"]


def same_scores(run, result):
    """Every score of a run equals that of `integral_score`, to the bit."""
    assert as_tuple(run.results["composite"]) == (result.value, result.stderr, result.low, result.high)
    assert run.results["composite"]["method"] == result.method
    for name, interval in (("meteor", result.meteor), ("hidden_metric", result.hidden)):
        expected = interval.value, interval.stderr, interval.low, interval.high
        assert as_tuple(run.results["metrics"][name]) == expected
    report = dialogue_report(run)
    assert len(report.types) == len(result.types)
    for row, expected in zip(report.types, result.types, strict=True):
        assert (row.type, row.n, row.weight, row.part) == (
            expected.type,
            expected.n,
            expected.weight,
            expected.part,
        )
        assert (row.mean.value, row.mean.stderr) == (expected.mean.value, expected.mean.stderr)
        assert row.meteor.value == expected.meteor.value
        assert row.hidden_metric.value == expected.hidden.value


def test_a_run_equals_the_function_to_the_bit(tmp_path):
    same_scores(run_of(tmp_path, WORKED), score(WORKED))


@pytest.mark.parametrize("seed", range(3))
def test_a_run_of_random_dialogues_equals_the_function_to_the_bit(tmp_path, seed):
    chance = random.Random(seed)
    text = lambda: " ".join(chance.choices(WORDS, k=chance.randint(1, 6)))  # noqa: E731
    dialogues = [
        {
            "id": f"d{number}",
            "type": TYPES[number % 4],
            "replies": [
                reply(text(), [text() for _ in range(chance.randint(1, 3))], 1 + chance.expovariate(0.3))
                for _ in range(chance.randint(1, 4))
            ],
        }
        for number in range(40)
    ]
    same_scores(run_of(tmp_path, dialogues), score(dialogues))


def test_a_run_of_the_example_in_two_languages_equals_the_function_to_the_bit(tmp_path):
    gold = json.loads((DEMO / "gold.json").read_text(encoding="utf-8"))
    answers = json.loads((DEMO / "submissions" / "alba" / "output.json").read_text(encoding="utf-8"))
    chance = random.Random(4)
    dialogues = [
        {
            "id": name,
            "type": dialogue["type"],
            "replies": [
                reply(answer, variants, 1 + chance.expovariate(0.5))
                for answer, variants in zip(answers[name], dialogue["replies"], strict=True)
            ],
        }
        for name, dialogue in gold.items()
    ]
    run = run_of(tmp_path, dialogues, synonyms="default")
    same_scores(run, score(dialogues, synonyms="default"))
    assert "language:auto" in run.info.signatures["meteor"].text


def test_settings_reach_the_run(tmp_path):
    two = [dialogue for dialogue in WORKED if dialogue["type"] in ("Text2Text", "Audio2Text")]
    run = run_of(tmp_path / "a", two, present_types_only=True)
    same_scores(run, score(two, present_types_only=True))
    assert "no dialogue has the type Image2Text, Image-Audio2Text" in str(run.info.input_notes)
    weights = {"Text+Text": 0.5, "Audio2Text": 0.5}
    same_scores(run_of(tmp_path / "b", WORKED, weights=weights), score(WORKED, weights=weights))
    config = {"strata": {"by": "dialogue_type", "weights": weights}}
    same_scores(run_of(tmp_path / "c", WORKED, config=config), score(WORKED, weights=weights))


def test_a_rule_that_fails_on_a_reply_refuses_the_submission(tmp_path):
    # Leaving a reply out of its dialogue's mean could raise the score.
    @hidden_rule("quarter")
    def quarter(sample):
        return sample.perplexity / 4  # above 1 for perplexities above 4

    with pytest.raises(InputError) as refused:
        run_of(tmp_path, WORKED, rule="quarter")
    above = [dialogue["id"] for dialogue in WORKED for reply in dialogue["replies"] if reply["perplexity"] > 4]
    assert [(problem.code, problem.id) for problem in refused.value.problems] == [("RULE", name) for name in above]
    assert str(tmp_path / "ppl_output.json") in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_a_rule_scores_every_reply_once(tmp_path):
    scored = []

    @hidden_rule("counted")
    def counted(sample):
        scored.append(sample.id)
        return 1 / sample.perplexity

    run_of(tmp_path, WORKED, rule="counted")
    replies = [f"{dialogue['id']}/{place}" for dialogue in WORKED for place in range(1, len(dialogue["replies"]) + 1)]
    assert scored == replies
    scored.clear()
    score(WORKED, rule="counted")
    assert scored == replies
