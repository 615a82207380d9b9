"""Checks of one text: cases that each rule must match, and cases that it must not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample
from multimodal_eval.lint import facts
from multimodal_eval.lint.facts import (
    Flag,
    ends_closed,
    ends_open,
    has_markup,
    repeats_itself,
    repeats_question,
    words_of,
)
from multimodal_eval.text.languages import LANGUAGES, hits, is_off_language, is_off_script, language_of, script_of
from tests.lint.both_ways import facts_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A dog, running!", ["a", "dog", "running"]),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("Ёлка — это «ёлка»", ["ёлка", "это", "ёлка"]),
        ("犬が走る", ["犬", "が", "走", "る"]),
        ("नमस्ते दुनिया।", ["नमस्ते", "दुनिया"]),
        ("\u202eright to left\u202c", ["right", "to", "left"]),
        (" \t\u3000 ...", []),
    ],
)
def test_words(text, words):
    assert words_of(text) == words


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_texts_have_the_same_words_as_other_texts(text):
    assert words_of(text) == words_of(text + " é")[:-1]


@pytest.mark.parametrize(
    "text",
    [
        "a dog<|endoftext|>",
        "</s>",
        "a dog </s> a cat",
        "Answer: a dog",
        "**Answer:** a dog",
        " ## * Answer : a dog",
        "What is it?\nanswer: a dog",
        "Ответ: собака",
        "a <b>dog</b> runs",
        'see <a href="x">this</a>',
        "<br/>",
        '{"caption": "a dog"}',
        "[INST] a dog [/INST]",
        "a dog &amp; a cat",
        "```a dog```",
        "▁a▁dog",
        "aĠdogĠruns",
        "play ##ing a game",
        "a dog\x07",
        "a d\ufffdg",
        "<start_of_turn>model",
    ],
)
def test_markup(text):
    assert has_markup(text)


@pytest.mark.parametrize(
    "text",
    [
        "I <3 dogs",
        "x < y and y > z",
        "[laughs] a dog",
        "{curly} dog",
        "The time: 10:15",
        "the answer is a dog: brown",
        "Q&A with a dog",
        "AT&T; phone",
        "the #1 dog, #dog",
        "a dog\nand a cat\t.",
        "<unknown animal>",
        "Ġgantija temples",
        "\u200fכלב\u200e",
        "a \u202edog\u202c",
        "",
    ],
)
def test_no_markup(text):
    assert not has_markup(text)


@pytest.mark.parametrize(
    "text",
    [
        "the dog the dog the dog",
        "The dog, the dog, the dog.",
        "a man on a street the dog the dog the dog",
        "no no no no",
        "it is a long text about many things that ends with " + "a cat on a mat and " * 3,
        "close up of a close up of a close up of a hand",
        "哈哈哈哈",
        "ab" * 40,
        "00000" + "ab" * 20,
        " ".join(f"word{number}" for number in range(500)) + " and so forth" * 4,
    ],
)
def test_repetition(text):
    assert repeats_itself(words_of(text))


@pytest.mark.parametrize(
    "text",
    [
        "the dog the dog",
        "very very very good",
        "a man and a woman and a dog",
        "New York, New York",
        "0 0 0 0 0 1",
        "a very very tall and very very old tree",
        " ".join(f"word{number}" for number in range(500)),
        "one fish two fish red fish blue fish",
        "https://example.org/a/long/path/without/any/spaces/in/it",
        "10000000000000000000000000000000000000000000",
        "id" + "0" * 40 + "x",
        "",
    ],
)
def test_no_repetition(text):
    assert not repeats_itself(words_of(text))


@pytest.mark.parametrize("text", ["a dog,", "a dog -", "a dog and...", "a dog and…", "a dog (", "such as:", "собака —"])
def test_open_ends(text):
    assert ends_open(text)
    assert not ends_closed(text)


@pytest.mark.parametrize("text", ["a dog.", "a dog!", 'he said "dog"', "a dog (brown)", "犬。", "कुत्ता।", "كلب؟"])
def test_closed_ends(text):
    assert ends_closed(text)
    assert not ends_open(text)


@pytest.mark.parametrize("text", ["a dog", "собака", "犬", "", "a dog 5", "a dog 🐶"])
def test_ends_that_are_neither(text):
    assert not ends_open(text)
    assert not ends_closed(text)


QUESTION = "What is the dog on the left doing?"


@pytest.mark.parametrize(
    "answer",
    [
        QUESTION,
        "WHAT IS THE DOG ON THE LEFT DOING",
        f"{QUESTION} {QUESTION}",
        f"Question: {QUESTION} Answer:",
        "what is the dog on the left",
        "whatisthedogontheleftdoing",
    ],
)
def test_a_repeated_question(answer):
    assert repeats_question(words_of(answer), QUESTION)


@pytest.mark.parametrize("answer", ["the dog", "the dog on the left", f"{QUESTION} It runs.", "It runs.", "left", "?"])
def test_more_or_less_than_the_question(answer):
    assert not repeats_question(words_of(answer), QUESTION)


def test_one_of_the_choices_is_not_a_copy():
    assert not repeats_question(["white"], "Is the dog black or white?")
    assert not repeats_question(["q"], "?")


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("a dog", "Latin"),
        ("собака", "Cyrillic"),
        ("un café à la crème", "Latin"),
        ("狗在跑", "Han"),
        ("いぬがはしる", "Kana"),
        ("개가 달린다", "Hangul"),
        ("كلب يجري", "Arabic"),
        ("כלב רץ", "Hebrew"),
        ("कुत्ता", "Devanagari"),
        ("σκύλος", "Greek"),
        ("42", None),
        ("x", None),
        ("ab вг", None),
        ("🐶🐶", None),
    ],
)
def test_scripts(text, script):
    assert script_of(text) == script


def test_off_script():
    assert is_off_script("a dog", ["собака бежит", "пёс"])
    assert is_off_script("собака", ["a dog runs"])
    assert is_off_script("狗在跑", ["a dog runs"])
    assert is_off_script("a dog with a phone", ["большая собака держит в лапах iPhone"])
    assert not is_off_script("собака с iPhone", ["собака держит iPhone"])
    assert not is_off_script("iPhone", ["iPhone в руке"])
    assert not is_off_script("42", ["сорок два"])
    assert not is_off_script("走る犬", ["犬が走っている", "走る犬"])
    assert not is_off_script("a dog", ["5", "A dog"])


SENTENCES = {
    "en": "A brown dog is running on the beach with a ball in its mouth",
    "ru": "Собака бежит по пляжу с мячом и не смотрит на море",
    "de": "Ein brauner Hund läuft mit einem Ball am Strand und ist nass",
    "fr": "Un chien court sur la plage avec une balle dans la gueule",
    "es": "Un perro marrón corre por la playa con una pelota en la boca",
    "it": "Un cane marrone corre sulla spiaggia con una palla nella bocca",
    "pt": "Um cachorro marrom corre na praia com uma bola em sua boca",
    "nl": "Een bruine hond rent met een bal op het strand en is nat",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages(language):
    number = language_of(hits(words_of(SENTENCES[language])))
    assert number is not None
    assert LANGUAGES[number] == language


@pytest.mark.parametrize("answered", LANGUAGES)
@pytest.mark.parametrize("expected", LANGUAGES)
def test_off_language(answered, expected):
    answer, reference = (hits(words_of(SENTENCES[language])) for language in (answered, expected))
    assert is_off_language(answer, reference) == (answered != expected)


@pytest.mark.parametrize(
    "answer",
    ["Man in furry hat stands", "Four men do a dance", "a man in a van", "an old style war plane", "Whack Em a dog"],
)
def test_english_that_looks_foreign(answer):
    assert not is_off_language(hits(words_of(answer)), hits(words_of(SENTENCES["en"])))


UNKNOWN = {
    "da": "En kvinde står ved et bord med en kop kaffe|To børn leger med en kat i en park|Hunden er våd og i græsset",
    "sv": "En man i röd jacka sitter på en bänk|Två barn leker med en katt i en park|Hunden är våt och ligger i gräset",
    "pl": "Pies jest mokry i leży na trawie|Dwoje dzieci bawi się z kotem w parku|Kobieta stoi przy stole z kawą",
    "ro": "Doi copii se joacă cu o pisică în parc|O femeie stă la o masă|Câinele este ud și stă în iarbă",
    "tr": "Köpek ıslak ve çimlerde yatıyor|İki çocuk parkta bir kedi ile oynuyor|Bir kadın masada kahve içiyor",
    "ca": "Una dona és a la taula amb una tassa|Dos nens juguen amb un gat en un parc|El gos jeu a la gespa",
}


@pytest.mark.parametrize("language", UNKNOWN)
def test_unsupported_languages_give_no_warning(language):
    counts = [hits(words_of(text)) for text in UNKNOWN[language].split("|")]
    assert not any(is_off_language(answer, reference) for answer in counts for reference in counts)


def flags(**fields):
    return int(facts_of([Sample(id="x", **fields)])["flags"][0])


def test_short_answers_are_judged_by_script_alone():
    references = [SENTENCES["en"]]
    assert not flags(generated_answer="un chien", references=references) & Flag.OFF_LANGUAGE
    assert flags(generated_answer="собака", references=references) & Flag.OFF_LANGUAGE
    assert flags(generated_answer=SENTENCES["fr"], references=references) & Flag.OFF_LANGUAGE
    assert not flags(generated_answer=SENTENCES["fr"]) & Flag.OFF_LANGUAGE


def test_markup_that_a_reference_has_is_allowed():
    assert flags(generated_answer="[1, 2]", references=["a box"]) & Flag.MARKUP
    assert not flags(generated_answer="[1, 2]", references=["[1, 3]"]) & Flag.MARKUP


def test_repetition_that_a_reference_has_is_allowed():
    assert flags(generated_answer="la la la la la", references=["a song"]) & Flag.REPETITION
    assert not flags(generated_answer="la la la la la", references=["a song", "La, la, la, la!"]) & Flag.REPETITION


@pytest.mark.parametrize("field", ["question", "prompt"])
def test_the_question_can_be_the_correct_answer(field):
    assert flags(generated_answer="red", references=["blue"], **{field: "Red?"}) & Flag.COPIES_QUESTION
    assert not flags(generated_answer="red", references=["blue", "Red."], **{field: "Red?"}) & Flag.COPIES_QUESTION


def test_ends_that_a_reference_has_are_allowed():
    def unfinished_in(answer, *references):
        return facts_of([Sample(id="x", generated_answer=answer, references=list(references))])["unfinished_in"][0] != 0

    assert unfinished_in("the answer is option a", "option b", "the option")
    assert not unfinished_in("the answer is option a", "option b", "Option A.")
    assert unfinished_in("it is vitamin a", "it is vitamin a and the")
    assert flags(generated_answer="the years 1990 -", references=["the years 1990 - 1995"]) & Flag.OPEN
    assert not flags(generated_answer="the years 1990 -", references=["since 1990 – "]) & Flag.OPEN


@pytest.mark.parametrize("answer", ["", " \n", "\u200b\u200b", " \ufeff\u2060\u00a0", "\u200e\u200f"])
def test_invisible_answers_are_blank(answer):
    assert flags(generated_answer=answer) == Flag.ANSWERED | Flag.BLANK


@pytest.mark.parametrize("answer", ["...", "\u200b.", "🐶", "\x07", "\u200dа"])
def test_visible_answers_are_not_blank(answer):
    assert not flags(generated_answer=answer) & Flag.BLANK


@pytest.mark.parametrize("number", [-1, 0, 3, 7, -3])
def test_every_word_of_a_copy_counts(number):
    words = SENTENCES["en"].split()
    assert (
        flags(generated_answer=SENTENCES["en"], references=["a dog", SENTENCES["en"].upper()]) & Flag.COPIES_REFERENCE
    )
    words[number] = "beach" if words[number] != "beach" else "dog"  # a word that the reference has in another place
    assert not flags(generated_answer=SENTENCES["en"], references=[" ".join(words)]) & Flag.COPIES_REFERENCE


def test_long_questions_are_not_cached():
    before = facts._cached_key.cache_info().currsize
    assert repeats_question(["a" * 2000], "A" * 2000)
    assert facts._cached_key.cache_info().currsize == before
    assert repeats_question(["a", "new", "question"], "a new question")
    assert facts._cached_key.cache_info().currsize == before + 1


def test_error_messages_are_not_answers():
    assert flags(generated_answer="[ERROR] </s>,") == 0
    assert flags(generated_answer="a dog,", error="timeout") == 0
    assert flags(generated_answer=None) == 0
    assert facts_of([Sample(id="x", generated_answer="OOPS </s>")], ["OOPS"])["flags"][0] == 0


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.text(alphabet="ab .,<>[]{}:\u202e\u0301犬ы"))
def test_any_text_can_be_checked(left, right):
    for answer, other in ((left, right), (right, left)):
        facts_of([Sample(id="x", generated_answer=answer, question=other, references=[other or "x"])])


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "a " * 500_000,
        "<" * 1_000_000,
        "{" * 1_000_000,
        "[" * 50_000 + "]" * 50_000,
        "<a " * 300_000,
        ": \n" * 300_000,
        "ab" * 500_000,
        "\u202e\u0301" * 300_000,
        "犬" * 300_000,
        "a&" * 400_000,
        "&#" * 300_000,
        "7" * 1_000_000,
        "\n" * 1_000_000 + "x: <",
        "\n" + " " * 1_000_000 + "x: <",
        "\n" + "\t#*" * 300_000 + "x: <",
        "answer" + "*" * 500_000 + " " * 500_000,
        "<unused" + "1" * 1_000_000,
        ("1" * 1000 + " ") * 1000,
        " ".join(f"w{number}" for number in range(200_000)),
        "\u200b" * 1_000_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_very_long_texts_take_linear_time(text):
    """Each takes a fraction of a second; in quadratic time it would take minutes to hours."""
    facts_of([Sample(id="x", generated_answer=text, question=text, references=[text[:-1], text])])
