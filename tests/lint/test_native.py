"""Facts from columns equal the facts from samples, bit for bit, and need no samples for most rows."""

from __future__ import annotations

import hashlib

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate
from multimodal_eval._native import LintLexicon, blake2b_64, lint_facts
from multimodal_eval.core.batch import Batch
from multimodal_eval.data.runs import sample_table
from multimodal_eval.data.runs.sample_table import to_batch, to_table
from multimodal_eval.lint import facts as lint_facts_module
from multimodal_eval.lint import facts as native
from multimodal_eval.lint.facts import FACTS
from tests.lint import test_findings, test_texts
from tests.lint.both_ways import facts_of


@given(st.binary(max_size=700))
@example(b"")
@example(b"x" * 127)
@example(b"x" * 128)
@example(b"x" * 129)
@example(b"x" * 256)
@example(bytes(range(256)) * 300)
def test_the_digest_is_that_of_hashlib(data):
    assert blake2b_64(data) == int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def strings_in(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from strings_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings_in(item)


def test_all_texts_of_the_other_tests():
    marks = [mark for item in vars(test_texts).values() for mark in getattr(item, "pytestmark", ())]
    values = [mark.args[1] for mark in marks if mark.name == "parametrize"]
    tables = [item for item in (*vars(test_texts).values(), *vars(test_findings).values()) if isinstance(item, dict)]
    texts = sorted({text for text in strings_in([values, tables]) if len(text) < 10_000})
    assert len(texts) > 150
    previous, following = ([texts[-1], *texts[:-1]], [*texts[1:], texts[0]])
    facts_of([Sample(id="x", generated_answer=text) for text in texts])
    facts_of([Sample(id="x", generated_answer=text, references=[text]) for text in texts])
    rows = zip(texts, previous, following, strict=True)
    facts_of([Sample(id="x", generated_answer=a, references=[b, c], question=a, prompt=c) for a, b, c in rows])


WORDS = (
    "a an the dog cat and of on in is are with red blue 12 7 la LA le un des les el der die das ein und mit og och "
    "question Question: q answer Answer: user final vitamin A de het een en $5 a=b x_y don't I've [ERROR] </s> <b> > < "
    "[INST] [ ] { } & ; &amp; ` ``` # ## : , - ( ) ... . ! ? * ' \" \x07 \x1c \x7f café собака и на 犬 … —"
)
PIECES = [*WORDS.split(" "), "\t", "\n", "\r", "a" * 40, "ha" * 20]
PLAIN = [piece for piece in PIECES if piece.isascii() and piece.isalnum() and len(piece) < 30]


def sentences(pieces):
    few = st.lists(st.sampled_from(pieces), max_size=9)
    looping = st.builds(
        lambda some, times: some * times, st.lists(st.sampled_from(pieces), max_size=5), st.integers(1, 70)
    )
    ends = st.sampled_from(["", ".", ",", "...", " ", "!\n", " -"])
    joined = st.builds(lambda words, space: space.join(words), few | looping, st.sampled_from([" ", ", ", ""]))
    return st.builds(str.__add__, joined, ends)


texts = sentences(PLAIN) | sentences(PIECES) | st.text(alphabet=st.characters(max_codepoint=127), max_size=20)
json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
media = st.none() | st.sampled_from(["a.png", "", "é\n.png", b"", b"PNG" * 60])
rare = st.fixed_dictionaries(
    {},
    optional={
        "error": st.sampled_from(["", "timeout"]),
        "epoch": st.integers(-(2**63), 2**63 - 1),
        "choices": st.sampled_from([[], ["b", "a\n"], {"B": "x", "A": "y"}, {"A": "x", "B": "é"}]),
        "images": st.sampled_from([[], ["a.png", b"x"]]),
        "boxes": st.just([]),
        "audio": media,
        "video": media,
        "metadata": st.dictionaries(st.text(max_size=3), json, max_size=3),
    },
)


@st.composite
def samples(draw):
    shared = st.sampled_from([draw(texts), draw(texts)]) | texts  # some texts of a sample are equal
    optional = st.none() | shared
    return Sample(
        id="x",
        generated_answer=draw(optional),
        references=draw(st.none() | st.lists(shared, max_size=4)),
        expected_answer=draw(optional),
        caption=draw(optional),
        question=draw(optional),
        prompt=draw(optional),
        group=draw(optional),
        image=draw(media),
        **draw(rare),
    )


@given(st.lists(samples(), min_size=1, max_size=4), st.sampled_from([(r"\s*\[ERROR\]",), (), ("[Aa] ?d", "the")]))
def test_random_samples(batch, patterns):
    facts_of(batch, patterns)


@given(st.dictionaries(st.text(max_size=3), json, max_size=3))
@example({"a": 0.1, "b": [1.0, -0.0, 1e15, 1e16, 0.001, 0.00099, 123456.789, 5e-324, 2 / 3], "é": {"z": 1, "zz": 2}})
@example({"a": 10**18, "b": -(10**17), "c": 0, "d": "\x7f", "e": '"', "f": "\u2028", "g": [[[]]], "h": {}})
def test_metadata(metadata):
    facts_of([Sample(id="x", generated_answer="a dog", image="a.png", metadata=metadata)])


@pytest.mark.parametrize(
    "stored",
    [
        *('{"b":1,"a":2}', '{"a":1,"a":1}', '{"a": 1}', '{"a":"\\u0041"}', "{}", "[]"),
        *('{"a":1.50}', '{"a":-0}', '{"a":10000000000000000.0}', '{"a":0.00000001}', '{"a":1E5}'),
    ],
)
def test_metadata_stored_by_another_program(stored):
    table = to_table([Sample(id="x", generated_answer="a dog", image="a.png", metadata={"a": 1})], 0)
    place = table.column_names.index("metadata")
    table = table.set_column(place, "metadata", [[stored]])
    batch = to_batch(table)
    assert lint_facts_module.facts_of(batch).tolist() == lint_facts_module.facts_of(list(batch.samples)).tolist()


def test_every_ascii_character():
    characters = list(map(chr, range(128)))
    texts = [text for c in characters for text in (c, f"x{c}Y", f"a dog runs far{c}", f"a red {c}dog of the")]
    facts_of([Sample(id="x", generated_answer=text, references=["a cat"], question="why?") for text in texts])
    facts_of([Sample(id="x", generated_answer="a dog,", references=[text, f"a cat,{text}"]) for text in texts])


def phrases(words):
    return " ".join([f"w{number}" for number in range(words)] * 3)


BOUNDARIES = [
    *("a dog [/INST]", "a dog [/MASK] x", "a &#123456; dog", "a &#x1f60a; dog", "a &nbsp; dog", "dog ##s run"),
    *map(phrases, range(30, 35)),
    *(f"a {'ha' * half}{end} b" for half in range(13, 18) for end in ("", "h")),
    *("han er en mand og hun det", "og han er en hun i det the of", "question what is it answer", "q what is it"),
    *(
        f"{german} {english}"
        for german in ("der das", "der das ein", "der das ein und")
        for english in ("a", "a of", "a of the to")
    ),
]


@pytest.mark.parametrize(
    "references", [None, ["the man is on his way to a house"], ["der Mann ist auf dem Weg", "Haus"]]
)
def test_boundaries(references):
    facts_of(
        [Sample(id="x", generated_answer=text, references=references, question="what is it") for text in BOUNDARIES]
    )


def test_parts_of_a_question():
    words = "which of these red things is on the left".split()
    answers = [" ".join(words[start:stop]) for start in range(9) for stop in range(start + 1, 10)]
    short = [" ".join(words[start : start + 5]) for start in range(5)]
    asked = [Sample(id="x", generated_answer=answer, question=" ".join(words)) for answer in answers]
    facts_of(
        [*asked, *(Sample(id="x", generated_answer=answer, question=f"{answer} it") for answer in answers + short)]
    )


def no_samples(batch):
    raise AssertionError("samples were created")


def without_samples(batch):
    names = [name for name in sample_table.SCHEMA.names if batch.column(name) is not None]
    return Batch(len(batch), {name: batch.column(name) for name in names}, no_samples)


def test_no_samples_are_created():
    captions = test_findings.captions(50, ".")
    batch = to_batch(to_table(captions, 0))
    expected = facts_of(captions)
    assert lint_facts_module.facts_of(without_samples(batch)).tolist() == expected.tolist()
    part = without_samples(batch[7:30])
    assert lint_facts_module.facts_of(part).tolist() == expected[7:30].tolist()


def test_a_run_creates_no_samples(monkeypatch, tmp_path):
    captions = test_findings.captions(50, ".")
    expected = evaluate(captions, metrics=["cider"], output=tmp_path / "samples").lint()
    monkeypatch.setattr(sample_table, "_samples_of", no_samples)
    assert evaluate(captions, metrics=["cider"], output=tmp_path / "columns").lint() == expected


def test_samples_are_created_for_the_other_rows_only(monkeypatch):
    captions = test_findings.captions(20)
    captions[2] = msgspec.structs.replace(captions[2], generated_answer="Un café")
    captions[3] = msgspec.structs.replace(captions[3], boxes=[])
    captions[7] = msgspec.structs.replace(captions[7], generated_answer="A dog</s>")
    batch = to_batch(to_table(captions, 0))
    rows = native.fill_facts(np.zeros(20, FACTS), batch, ())
    assert rows.tolist() == [3, 7]
    created = []
    monkeypatch.setattr(lint_facts_module, "_facts", lambda samples, patterns: created.extend(samples) or 0)
    lint_facts_module.facts_of(batch)
    assert created == [captions[3], captions[7]]


def test_an_empty_batch():
    batch = to_batch(to_table([], 0))
    assert len(lint_facts_module.facts_of(batch)) == 0


def test_arrays_that_do_not_fit_are_refused():
    lexicon, failed, facts = LintLexicon({}, []), np.zeros(2, np.uint8), np.zeros(2 * 58, np.uint8)
    table = to_table([Sample(id="x", generated_answer="a", references=["b"])], 0)
    answers, lists = (table.column(name).chunk(0) for name in ("generated_answer", "references"))
    with pytest.raises(ValueError, match="differ in length"):
        lint_facts(lexicon, native.page_of_characters, {"generated_answer": answers}, failed, facts)
    with pytest.raises(ValueError, match="58 bytes"):
        lint_facts(lexicon, native.page_of_characters, {}, failed, facts[1:])
    with pytest.raises(TypeError):
        lint_facts(lexicon, native.page_of_characters, {"generated_answer": lists}, failed[:1], facts[:58])
    with pytest.raises(ValueError, match="1 to 16"):
        LintLexicon({"misunderstandings": (1, 0)}, [])
