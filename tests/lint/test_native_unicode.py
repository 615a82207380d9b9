"""Facts of texts beyond ASCII: compiled code and Python agree on every character, and few rows are left to Python."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from multimodal_eval import Sample
from multimodal_eval._native import LintLexicon, lint_facts
from multimodal_eval.core.batch import Batch
from multimodal_eval.data.runs.sample_table import to_batch, to_table
from multimodal_eval.lint import facts as native
from multimodal_eval.lint import facts as python_facts
from multimodal_eval.lint.facts import FACTS, LABELS, words_of
from multimodal_eval.text.languages import known_words
from tests.lint.both_ways import facts_of

SPECIAL = (
    "ß ẞ ŉ ΐ ǰ İ ı ſ K ﬃ ﬆ ς Σ ᾷ Ꭰ ꭰ ᲀ µ ё Ё й и\u0306 é e\u0301 ﬁ … — – « » “ ” „ ‚ ’ ‘ "
    "。 ！ ？ ， 、 ： ； （ ） 「 」 『 』 】 ؟ ۔ । ॥ ። ։ ؛ ‽ ⁈ ⁉ › ، ▁ Ġ "
    "\ufffd \x80 \x85 \x9f \xa0 \xad \u200b \u200d \u2028 \u2029 \u3000 \ufeff "
    "ァ ー 犬 の 𠀀 가 ก ا א अ Ω ა ა̄ ① ² ½ 👍 👨‍👩‍👧 🏳️ № € ° 𝒜 \U000e0041"
).split(" ")
RUSSIAN = (
    "и в на с к у о об из от до для по не но а или как что это его её он она они мы я был была было есть нет то так же "
    "который которая рядом собака кошка мальчик бежит лежит большой красный мяч Вопрос вопрос: Ответ: ответ ОТВЕТ: "
    "подпись достопримечательность превысокомногорассмотрительствующий ха ХА а 12 7 Москва"
).split(" ")
ENDS = ["", ".", ",", "…", "...", " ", "!»", "?", " —", "\u3000", "\u200b", "。", "：", ":", "»", "„"]


def both(answers, **fields):
    facts_of([Sample(id="x", generated_answer=answer, **fields) for answer in answers])


@pytest.mark.parametrize("plane", range(17))
def test_every_character(plane):
    codes = range(plane << 16, (plane + 1) << 16)
    characters = [chr(code) for code in codes if not 0xD800 <= code < 0xE000]
    assigned = characters if plane < 2 else characters[:: 1 if plane == 14 else 61]  # most are unassigned
    lines = ["".join(assigned[start : start + 16]) for start in range(0, len(assigned), 16)]
    both(lines)
    both([f"a {line[0]}b и {line[-1]}" for line in lines], references=["a dog", "большая собака"])
    both([line[-1] for line in lines], references=lines[:3])


def test_pages_have_the_words_of_every_character():
    for page in range(0, 0x300):
        for code, entry in enumerate(np.frombuffer(native.page_of_characters(page), "S1").reshape(256, 16), page * 256):
            if 0xD800 <= code < 0xE000:
                continue
            flags, size = ord(entry[0] or b"\0"), ord(entry[2] or b"\0")
            word = b"".join(item or b"\0" for item in entry[3 : 3 + size]).decode()
            assert words_of(chr(code)) == ([word] if flags & 3 else [])
            assert words_of(f"x{chr(code)}x") == {0: ["x", "x"], 1: [f"x{word}x"], 2: ["x", word, "x"]}[flags & 3]
            assert not flags & 4


@pytest.mark.parametrize("special", SPECIAL)
def test_special_characters(special):
    places = [
        special,
        f"x{special}y",
        f"{special} a dog runs{special}",
        f"большая собака {special} и",
        f"а и в на {special}",
    ]
    places += [
        f"{special}:",
        f"answer{special}:",
        f"[{special}NST]",
        f"&{special * 3};",
        f"{{{special}}}",
        f" {special} \n",
    ]
    for references in (None, [special], ["a dog", f"собака {special}"], [f"{special}{special} {special}"]):
        both(places, references=references, question=special * 2, prompt=f"что {special}?")
        both(["a dog is on the", "собака и кошка на"], references=references)


@pytest.mark.parametrize("letter", "iIıİsSſkKкК")
def test_labels_are_found_in_any_case(letter):
    for label in LABELS:
        written = label.replace("i", letter).replace("s", letter).upper(), label.replace("к", letter)
        both([f"{text}{end} вот" for text in (*written, label.title()) for end in (":", "：", " :", "*:", "")])
        both([f"да\n # {text}: x [" for text in written])


def sentences(words):
    few = st.lists(st.sampled_from(words), max_size=9)
    looping = st.builds(
        lambda some, times: some * times, st.lists(st.sampled_from(words), max_size=4), st.integers(1, 70)
    )
    joined = st.builds(lambda some, space: space.join(some), few | looping, st.sampled_from([" ", ", ", "", "\n"]))
    return st.builds(str.__add__, joined, st.sampled_from(ENDS))


texts = sentences(RUSSIAN) | sentences([*RUSSIAN, *SPECIAL, "a", "the", "dog", "of"]) | st.text(max_size=30)
valid = st.characters(exclude_categories=["Cs"])
texts = texts | st.text(valid, max_size=30)


@st.composite
def samples(draw):
    shared = st.sampled_from([draw(texts), draw(texts)]) | texts
    optional = st.none() | shared
    return Sample(
        id="x",
        generated_answer=draw(optional),
        references=draw(st.none() | st.lists(shared, max_size=4)),
        expected_answer=draw(optional),
        question=draw(optional),
        prompt=draw(optional),
        group=draw(optional),
        metadata=draw(st.dictionaries(texts, texts, max_size=2)),
    )


def storable(sample):
    try:
        to_table([sample], 0)
    except UnicodeEncodeError:
        return False
    return True


@given(st.lists(samples().filter(storable), min_size=1, max_size=4))
@example([Sample(id="x", generated_answer="я " * 5_100 + "dog " * 9_000, references=["dog " * 5_100, "пёс"])])
@example([Sample(id="x", generated_answer="dog " * 1_300, references=["犬" * 5_001 + "dog" * 9_000])])
@example([Sample(id="x", generated_answer="а б в г д", question="а б в г д е ё")])
@example([Sample(id="x", generated_answer="a б в г д", question="abcd а б в г д е")])
def test_random_samples(batch):
    facts_of(batch)


def without_samples(batch):
    def refuse(_):
        raise AssertionError("samples were created")

    names = ["id", "generated_answer", "references", "question", "group"]
    return Batch(len(batch), {name: batch.column(name) for name in names}, refuse)


def test_russian_dialogues_need_no_samples():
    rng = random.Random(0)
    words = [word for word in RUSSIAN if word.isalpha() and word.islower() and len(word) < 25 and word != "вопрос"]

    def sentence():
        return " ".join(rng.sample(words, 9)).capitalize() + rng.choice(["!", ".", "?", "…", ", «да».", " — да"])

    dialogues = [
        Sample(
            id=str(n), generated_answer=sentence(), references=[sentence()] * 3, question=sentence(), group=str(n // 3)
        )
        for n in range(200)
    ]
    expected = python_facts.facts_of(dialogues)
    batch = without_samples(to_batch(to_table(dialogues, 0)))
    assert python_facts.facts_of(batch).tobytes() == expected.tobytes()


def facts_with(page, texts, words=None):
    table = to_table([Sample(id="x", generated_answer=text) for text in texts], 0)
    facts = np.zeros(len(texts), FACTS)
    columns = {"generated_answer": table.column("generated_answer").chunk(0)}
    words = words or LintLexicon(known_words(), [])
    return lint_facts(words, page, columns, np.zeros(len(texts), np.uint8), facts.view(np.uint8)).tolist(), facts


def test_unusual_characters_are_left_to_python():
    """No character of this Python is unusual; a later version of Unicode may have one."""
    unusual = bytes([4]).ljust(16, b"\0") * 256
    rows, _ = facts_with(lambda number: unusual, ["a dog", "é", "a é", " é", "x"])
    assert rows == [1, 2, 3]


def test_errors_of_a_page_are_raised():
    for page, error in [(lambda number: b"short", ValueError), (lambda number: 1 / 0, ZeroDivisionError)]:
        with pytest.raises(error):
            facts_with(page, ["a dog", "é"])
    too_long = bytes([1, 0, 14]).ljust(16, b"x") * 256
    with pytest.raises(ValueError, match="too long"):
        facts_with(lambda number: too_long, ["é"])


def test_threads_share_the_pages():
    words, made = LintLexicon(known_words(), []), []
    texts = [chr(code) * 3 for code in range(0x80, 0x10000, 97) if not 0xD800 <= code < 0xE000] * 3

    def page(number):
        made.append(number)
        return native.page_of_characters(number)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: facts_with(page, texts, words)[1].tobytes(), range(8)))
    assert len(set(results)) == 1
    count = len(made)
    assert facts_with(page, texts, words)[1].tobytes() == results[0]
    assert len(made) == count
    assert set(made) == {ord(text[0]) >> 8 for text in texts}
