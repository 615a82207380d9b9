"""METEOR: examples computed by hand, the scores of the Java program, and the rules of each variant."""

from __future__ import annotations

import random
import sqlite3

import numpy as np
import pytest

from multimodal_eval import Rows, Sample, evaluate
from multimodal_eval.core.errors import ConfigError, InputError, UnavailableError, UnknownNameError
from multimodal_eval.core.metric import configured, signature_of
from multimodal_eval.core.scoring import score_batch
from multimodal_eval.evaluation.metrics.meteor import Meteor, compute_meteor, corpus_gradient, corpus_score, meteor
from tests.golden.load import golden


def score(candidate, *references, **options):
    return meteor(candidate, list(references), **options)


# Computed by hand.


def test_six_identical_words():
    text = "the quick brown fox jumps high"
    assert score(text, text, variant="fmean") == 1.0
    assert score(text, text, variant="2005") == pytest.approx(1 - 0.5 * (1 / 6) ** 3, abs=1e-15)  # one chunk


def test_four_words_of_six_in_two_chunks():
    # P = 4/4, R = 4/6: 10 * (2/3) / (2/3 + 9) = 20/29; penalty 0.5 * (2/4)^3 = 1/16
    candidate, reference = "dog runs big beach", "dog runs on the big beach"
    assert score(candidate, reference, variant="fmean") == pytest.approx(20 / 29, abs=1e-15)
    assert score(candidate, reference, variant="2005") == pytest.approx(20 / 29 * 15 / 16, abs=1e-15)


def test_a_repeated_word_is_aligned_with_the_fewest_crossings_and_chunks():
    # NLTK takes the last "the" and therefore finds two chunks, one crossing and .344828
    assert score("the cat", "the cat the", variant="2005") == pytest.approx(0.646552, abs=1e-6)


def test_punctuation_and_case_are_ignored():
    assert score("The dog, runs!", "the DOG runs", variant="fmean") == 1.0


def test_stages_stem_and_synonym():
    # "dogs" by its stem, "automobile" as a synonym of "car"; one of three words has no match: P = R = 2/3
    assert score("dogs automobile sky", "dog car river", variant="fmean") == pytest.approx(2 / 3, abs=1e-15)
    assert score("dogs automobile sky", "dog car river", variant="fmean", synonyms="none") == pytest.approx(1 / 3)


def test_an_earlier_stage_keeps_its_words():
    # "car" matches "car" first; "automobile" then has no match left: P = 1/2, R = 1/1
    expected = 10 * 0.5 * 1 / (1 + 9 * 0.5)
    assert score("automobile car", "car", variant="fmean") == pytest.approx(expected, abs=1e-15)


def test_the_best_reference_counts():
    assert score("a red dog", "two cats", "a red dog", "a dog", variant="fmean") == 1.0


@pytest.mark.parametrize("variant", ["fmean", "2005", "1.5"])
@pytest.mark.parametrize(
    ("candidate", "reference"), [("", "a dog"), ("a dog", ""), ("", ""), ("dog", "cat mouse"), ("!", "?")]
)
def test_nothing_in_common_is_0(variant, candidate, reference, meteor_data):
    assert score(candidate, reference, variant=variant) == 0.0


# The Java program.


def check_against_the_program(name, language):
    recorded = golden(name)
    segments = recorded["segments"]
    metric = configured(compute_meteor, {"language": language, "tokenizer": "none"})
    rows = metric.rows_of([s["candidate"] for s in segments], [s["references"] for s in segments])
    wrong = [s for s, value in zip(segments, rows.values, strict=True) if value != s["score"]]
    assert wrong == []
    assert metric.aggregate(rows).value == pytest.approx(recorded["corpus"], abs=1e-12)


def test_every_segment_equals_the_program(meteor_data):
    assert len(golden("meteor.json.gz")["segments"]) >= 2000
    check_against_the_program("meteor.json.gz", "en")


def test_every_russian_segment_equals_the_program(meteor_data):
    check_against_the_program("meteor_ru.json.gz", "ru")


def test_captions_equal_pycocoevalcap(meteor_data):
    recorded = golden("captions.json.gz")
    rows = compute_meteor.rows_of(recorded["candidates"], recorded["references"])
    assert rows.values.tolist() == recorded["meteor"]
    assert compute_meteor.aggregate(rows).value == recorded["corpus"]["meteor"]


def test_threads_do_not_change_scores(meteor_data):
    recorded = golden("captions.json.gz")
    single, threaded = (compute_meteor.rows_of(recorded["candidates"], recorded["references"], n) for n in (1, 7))
    assert single.values.tobytes() == threaded.values.tobytes()


def test_the_corpus_score_of_a_run_comes_from_summed_statistics(meteor_data, tmp_path):
    recorded = golden("captions.json.gz")
    samples = [
        {"id": str(i), "generated_answer": c, "references": r}
        for i, (c, r) in enumerate(zip(recorded["candidates"], recorded["references"], strict=True))
    ]
    run = evaluate(samples, metrics=["meteor"], allow_partial=True, output=tmp_path / "run")
    entry = run["meteor"]
    assert entry["value"] == recorded["corpus"]["meteor"]
    assert entry["low"] < entry["value"] < entry["high"]


def test_influence_values_are_the_derivatives(meteor_data):
    recorded = golden("captions.json.gz")
    scores = compute_meteor.texts_scorer()(recorded["candidates"], recorded["references"])
    stats = np.array([score.stats for score in scores])
    sums = stats.sum(axis=0)
    for column in range(stats.shape[1]):
        step = np.zeros(len(sums))
        step[column] = 1e-4 * max(1.0, sums[column])
        if sums[column] == 0:
            continue
        numeric = (corpus_score("en", sums + step) - corpus_score("en", sums - step)) / (2 * step[column])
        assert corpus_gradient("en", sums)[column] == pytest.approx(numeric, rel=1e-5, abs=1e-12)
    estimate = compute_meteor.aggregate(Rows(np.array([s.value for s in scores]), stats))
    assert abs(estimate.influence.mean()) < 1e-12


def test_a_corpus_without_a_match_scores_0_with_no_influence(meteor_data):
    scores = compute_meteor.texts_scorer()(["dog", "sky"], [["cat mouse"], ["river"]])
    rows = Rows(np.array([s.value for s in scores]), np.array([s.stats for s in scores]))
    estimate = compute_meteor.aggregate(rows)
    assert estimate.value == 0.0
    assert estimate.influence.tolist() == [0.0, 0.0]


# Settings.


def test_options_are_in_the_signature():
    assert str(signature_of(configured(compute_meteor, {"variant": "fmean"}))) == (
        "meteor|v:1|variant:fmean|language:en|tokenizer:unicode|stemmer:english|synonyms:wordnet-3.0"
    )
    metric = configured(compute_meteor, {"variant": "2005", "synonyms": "none", "tokenizer": "ptb"})
    assert str(signature_of(metric)) == (
        "meteor|v:1|variant:2005|language:en|tokenizer:ptb|stemmer:porter|synonyms:none"
    )
    assert "variant:1.5|language:ru|tokenizer:ptb|stemmer:russian-2014|data:" in str(
        signature_of(configured(compute_meteor, {"language": "ru"}))
    )


def test_variants_may_be_numbers_from_yaml():
    assert configured(compute_meteor, {"variant": 2005}).variant == "2005"
    assert configured(compute_meteor, {"variant": 1.5}).variant == "1.5"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"variant": "1.4"}, ConfigError, "`variant` of meteor must be one of fmean, 2005, 1.5. Got '1.4' instead"),
        ({"language": "de"}, ConfigError, "`language` of meteor must be one of en, ru, auto. Got 'de' instead"),
        ({"language": "auto"}, ConfigError, "METEOR 1.5 scores one language"),
        ({"variant": "fmean", "synonyms": {"de": "none"}}, ConfigError, "sources for en, ru. Got 'de'"),
        (
            {"variant": "fmean", "synonyms": {"en": None}},
            ConfigError,
            "`synonyms` of meteor must be a name, or one name per language",
        ),
        ({"synonyms": {"en": "none"}}, ConfigError, "has its own synonyms"),
        ({"tokenizer": "bert"}, UnknownNameError, "bert"),
        ({"tokenizer": "none", "variant": "fmean"}, UnknownNameError, "none"),
        ({"synonyms": "wordnet"}, ConfigError, "has its own synonyms"),
        ({"varient": "fmean"}, ConfigError, "Did you mean 'variant'"),
        (
            {"variant": "fmean", "synonyms": False},
            ConfigError,
            "`synonyms` of meteor must be a name, or .*Got False instead",
        ),
        ({"tokenizer": None}, ConfigError, "`tokenizer` of meteor must be a name. Got None instead"),
    ],
)
def test_unknown_settings_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        configured(compute_meteor, options)


@pytest.mark.parametrize("variant", ["fmean", "2005"])
def test_auto_scores_each_text_in_the_language_of_its_references(variant):
    metric = configured(compute_meteor, {"variant": variant, "language": "auto", "synonyms": "none"})
    answers = ["two apples", "два яблока", "three", "яблоки"]
    references = [["an apple", "two"], ["две яблоки"], ["три"], ["apple"]]
    languages = ["en", "ru", "ru", "en"]  # of the references, whatever the language of the answer
    expected = [
        meteor(answer, texts, variant=variant, language=language, synonyms="none")
        for answer, texts, language in zip(answers, references, languages, strict=True)
    ]
    assert expected[0] > 0
    assert expected[1] > 0  # by its stem, which the English stemmer cannot find
    assert metric.rows_of(answers, references).values.tolist() == expected
    samples = [
        Sample(id=answer, generated_answer=answer, references=texts)
        for answer, texts in zip(answers, references, strict=True)
    ]
    assert [score.value for score in metric.open(None).score(samples)] == expected
    assert [
        meteor(a, r, variant=variant, language="auto", synonyms="none")
        for a, r in zip(answers, references, strict=True)
    ] == expected


def test_sources_of_synonyms_by_language():
    by_language = {"en": "wordnet", "ru": "none"}
    metric = configured(compute_meteor, {"variant": "fmean", "language": "auto", "synonyms": by_language})
    assert metric.rows_of(["couch", "диван"], [["sofa"], ["софа"]]).values.tolist() == [1, 0]
    label = signature_of(metric).settings["synonyms"]
    assert label.startswith("wordnet")
    assert label.endswith("+none")
    # A language that the mapping does not name uses its default.
    english = configured(compute_meteor, {"variant": "fmean", "synonyms": {"ru": "none"}})
    assert signature_of(english).settings["synonyms"] + "+none" == label


def test_an_unknown_source_of_synonyms_is_refused():
    with pytest.raises(UnknownNameError, match="wordnt"):
        score("a", "b", variant="fmean", synonyms="wordnt")


def test_missing_references_are_refused():
    with pytest.raises(ConfigError, match="at least one reference"):
        meteor("a dog", [])
    with pytest.raises(ConfigError, match="Got 'a dog' instead"):
        meteor("a dog", "a dog")
    with pytest.raises(InputError, match="NO_REFERENCE"):
        configured(Meteor(), {"variant": "fmean"}).rows_of(["a"], [[]])
    assert len(configured(Meteor(), {"variant": "fmean"}).rows_of([], [])) == 0


def test_without_its_data_the_program_says_how_to_fetch_them():
    assert "mmeval fetch meteor-1.5-en" in str(compute_meteor.unavailable())
    with pytest.raises(UnavailableError, match=r"mmeval fetch meteor-1\.5-en"):
        meteor("a dog", ["a dog"])
    assert configured(Meteor(), {"variant": "fmean"}).unavailable() is None


# Long texts.


def test_texts_too_long_to_align_are_an_error(meteor_data):
    long = Sample(id="1", generated_answer="the " * 3000, references=["a dog", "the " * 3000])
    (result,) = score_batch(compute_meteor, compute_meteor.open(None), [long])
    assert (result.value, result.status) == (None, "error")
    assert "too long" in str(result.reason)
    with pytest.raises(InputError, match="too long"):
        meteor("the " * 3000, ["the " * 3000])
    words = " ".join(f"w{number}" for number in range(6000))  # no word repeats, but there are still too many pairs
    with pytest.raises(InputError, match="too long"):
        meteor(words, [words])


def test_long_texts_of_one_word_are_fast():
    # an exhaustive search would take minutes
    value = meteor("the " * 100_000, ["the " * 99_999], variant="2005", synonyms="none")
    assert value == pytest.approx(1, abs=1e-4)


def test_an_unproven_alignment_gives_a_warning():
    metric = configured(compute_meteor, {"variant": "2005", "synonyms": "none"})
    rng = random.Random(1)
    candidate, reference = (" ".join(rng.choices("abcde", k=100)) for _ in range(2))
    short, long = metric.texts_scorer()(["a dog", candidate], [["the dog"], [reference]])
    assert short.details is None
    assert (long.details, long.warning) == ({"alignment": "beam"}, "alignment_not_proven")
    assert long.value is not None
    assert 0 < long.value <= 1


# Russian, computed by hand. P = R = m/2 for m matches of two words on each side, so fmean = m/2.


def russian(candidate, reference, **options):
    return score(candidate, reference, variant="fmean", language="ru", **options)


def test_russian_inflection():
    # кошки, кошка -> кошк; сидят, сидит -> сид
    assert russian("Кошки сидят.", "кошка сидит", synonyms="none") == 1.0
    assert russian("кошки бегут", "кошка сидит", synonyms="none") == 0.5


def test_russian_yo_and_ye_are_the_same_letter():
    assert russian("ёлка зелёная", "елка зеленая", synonyms="none") == 1.0


def test_russian_synonyms():
    # машина and автомобиль share a synset in Wiktionary, in any grammatical case; едет is on both sides
    assert russian("автомобиля едет", "машины едет") == 1.0
    assert russian("автомобиля едет", "машины едет", synonyms="none") == 0.5


def test_russian_aspect_pairs_are_not_inflection(tmp_path):
    # делать -> дела, сделать -> сдела: different stems, and not synonyms in Wiktionary
    assert russian("делать уроки", "сделать уроки") == 0.5
    database = tmp_path / "ruwordnet.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE sense (id TEXT, synset_id TEXT, lemma TEXT)")
        rows = [("1", "V1", "ДЕЛАТЬ"), ("2", "V1", "СДЕЛАТЬ"), ("3", "N1", "УРОК")]
        connection.executemany("INSERT INTO sense VALUES (?, ?, ?)", rows)
    connection.close()
    assert russian("делать уроки", "сделать уроки", synonyms=f"ruwordnet:{database}") == 1.0
    assert "synonyms:ruwordnet:" in str(
        signature_of(
            configured(compute_meteor, {"variant": "fmean", "language": "ru", "synonyms": f"ruwordnet:{database}"})
        )
    )


def test_russian_of_2005_counts_chunks():
    # кошка|сидит match crosswise: two chunks of two matches, 1 - 0.5 * (2/2)^3 = 0.5
    assert score("сидят кошки", "кошка сидит", variant="2005", language="ru", synonyms="none") == 0.5


@pytest.mark.parametrize(
    ("options", "resources"),
    [
        ({"variant": "fmean", "language": "ru"}, ("wiktionary-ru",)),
        ({"variant": "2005", "language": "auto"}, ("wiktionary-ru",)),
        ({"variant": "fmean", "language": "auto", "synonyms": {"ru": "ruwordnet:a.db"}}, ()),
        ({"variant": "fmean", "language": "ru", "synonyms": "none"}, ()),
        ({"variant": "fmean", "language": "en"}, ()),
    ],
)
def test_the_resources_of_russian_synonyms(options, resources):
    assert configured(compute_meteor, options).resources() == resources
