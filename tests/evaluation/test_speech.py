"""Error rates of transcripts, against jiwer and values worked out by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, cast

import jiwer
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate, rule
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.errors import ConfigError, InputError, UnknownNameError
from multimodal_eval.core.scoring import aggregate_of
from multimodal_eval.evaluation.metrics.error_rates import cer, compute_wer, mer, wer, wil
from multimodal_eval.evaluation.speech import AlignedChunk, EditKind, SpeechEdits, Unit, align, chunks_of_alignment
from tests.registry_state import restored_registries

KINDS = {"equal": "H", "substitute": "S", "delete": "D", "insert": "I"}
ENGLISH = "whisper-english@0.1.15"


def measures(reference: str, transcript: str) -> tuple[float, float, float]:
    return wer(transcript, [reference]), mer(transcript, [reference]), wil(transcript, [reference])


def written(reference: str, transcript: str, *, characters: bool = False) -> str:
    """The alignment in one letter per edit, as jiwer's tests show them, with = for a hit."""
    _, chunks = align(transcript, reference, unit="characters" if characters else "words")
    sizes = [max(c.reference_end - c.reference_start, c.transcript_end - c.transcript_start) for c in chunks]
    return "".join(KINDS[c.kind] * size for c, size in zip(chunks, sizes, strict=True)).replace("H", "=")


def run_of(pairs: Sequence[tuple[str, str]], **options: str) -> dict[str, float]:
    """The corpus scores of (reference, transcript) pairs."""
    names = ["wer", "cer", "mer", "wil"]
    samples = [
        Sample(id=str(i), generated_answer=transcript, references=[reference])
        for i, (reference, transcript) in enumerate(pairs)
    ]
    run = evaluate(samples, metrics=names, options={name: dict(options) for name in names})
    return {name: run[name]["value"] for name in names}


# The cases of jiwer's own tests (tests/test_measures.py, test_cer.py, test_empty_ref.py, test_alignment.py).
@pytest.mark.parametrize(
    ("reference", "transcript", "expected"),
    [
        ("This is a test", "This is a test", (0, 0, 0)),
        ("This is a test", "", (1, 1, 1)),
        ("This is a test", "This test", (0.5, 0.5, 0.5)),
        (
            "i am a short ground truth",
            "i am a considerably longer and very much incorrect hypothesis",
            (7 / 6, 0.7, 0.85),
        ),
        ("X", "X", (0, 0, 0)),
        ("X", "X X Y Y", (3, 0.75, 0.75)),
        ("X Y X", "X Z", (2 / 3, 2 / 3, 5 / 6)),
        ("X", "Y", (1, 1, 1)),
        ("X", "Y Z", (2, 1, 1)),
        ("", "", (0, 0, 0)),
        ("", "hello", (1, 1, 1)),
        ("", "0 1 2 3 4", (5, 1, 1)),
        ("hello", "", (1, 1, 1)),
        ("this test will  have a high word error rate", "no it will not", (8 / 9, 8 / 9, 1 - 1 / 36)),
    ],
)
def test_the_word_measures_of_jiwers_tests(
    reference: str, transcript: str, expected: tuple[float, float, float]
) -> None:
    assert measures(reference, transcript) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("reference", "transcript", "expected"),
    [
        ("This is a test", "This is a test", 0),
        ("This is a test", "", 1),
        ("This is a test", "This test", 5 / 14),
        ("X", "X X Y Y", 6),
        ("X Y X", "X Z", 3 / 5),
        ("X", "Y Z", 3),
        ("", "", 0),
        ("", "abd", 3),
        ("abc", "", 1),
        ("this test will  have a high word error rate", "no it will not", 33 / 43),
    ],
)
def test_the_character_error_rates_of_jiwers_tests(reference: str, transcript: str, expected: float) -> None:
    assert cer(transcript, [reference]) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("reference", "transcript", "words", "characters"),
    [
        ("this is a", "this is a test", "===I", "=========IIIII"),
        ("this is a test", "this is a", "===D", "=========DDDDD"),
        ("this is a test", "this iz a test", "=S==", "======S======="),
        ("this is a test of skill", "this was a messy test", "=S=I=DD", "=====IS====S==IS=SSD=SDDD"),
        ("empty", "", "D", "DDDDD"),
        ("", "inserted", "I", "IIIIIIII"),
        ("one", "1", "S", "SDD"),
        (
            "this sentence could be split",
            "this sentence will be split by ai",
            "==S==II",
            "==============SSS=D=========IIIIII",
        ),
    ],
)
def test_the_alignments_of_jiwers_tests(reference: str, transcript: str, words: str, characters: str) -> None:
    assert written(reference, transcript) == words
    assert written(reference, transcript, characters=True) == characters


def test_the_corpora_of_jiwers_tests() -> None:
    assert run_of([("hello world", "hello world"), ("silence", "silence done")]) == pytest.approx(
        {"wer": 1 / 3, "cer": 5 / 18, "mer": 1 / 4, "wil": 1 - 3 / 4}
    )
    # 10 characters, 3 insertions, then 3 deletions and no substitution: 6 errors of 10.
    assert run_of([("i", "i am"), ("am i good", "i good")])["cer"] == pytest.approx(0.6)
    assert run_of([("am i good", "i good"), ("i", "i am")])["cer"] == pytest.approx(0.6)
    assert run_of([("i", "i am"), ("am i good", "y good")])["cer"] == pytest.approx(0.7)


def test_a_corpus_sums_its_utterances() -> None:
    # "a b c d": one substitution of 4 words. "e": two insertions. WER = (1 + 2) / 5, not the mean of 1/4 and 2.
    # MER = 3 / 7. Hits are 4 of 5 words, and 4 of the transcript's 7: WIL = 1 - 4/5 * 4/7.
    rates = run_of([("a b c d", "a x c d"), ("e", "e f g")])
    assert rates["wer"] == 3 / 5
    assert rates["mer"] == 3 / 7
    assert rates["wil"] == pytest.approx(1 - 16 / 35)


def test_parts_and_details_of_a_run() -> None:
    samples = [
        Sample(id="1", generated_answer="a x c d", references=["a b c d"]),
        Sample(id="2", generated_answer="e f g", references=["e"]),
        Sample(id="3", generated_answer="h", references=["h"]),
    ]
    run = evaluate(samples, metrics=["wer"])
    parts = run["wer"]["parts"]
    assert {name: part["value"] for name, part in parts.items()} == pytest.approx(
        {"hits": 5 / 6, "substitutions": 1 / 6, "deletions": 0, "insertions": 2 / 6}
    )
    scores = compute_wer.function(samples)
    assert [score.details for score in scores] == [{"alignment": "1H 1S 2H"}, {"alignment": "1H 2I"}, None]
    assert [score.stats for score in scores] == [(3, 1, 0, 0), (1, 0, 0, 2), (1, 0, 0, 0)]
    assert scores[0].parts == {"hits": 0.75, "substitutions": 0.25, "deletions": 0, "insertions": 0}


def test_the_information_preserved_is_what_is_not_lost() -> None:
    # jiwer's WIP: of 5 words of the references and 8 of the transcripts, 5 are hits: 5/5 * 5/8.
    samples = [
        Sample(id="1", generated_answer="a b x", references=["a b"]),
        Sample(id="2", generated_answer="c d e y z", references=["c d e"]),
    ]
    entry = evaluate(samples, metrics=["wil"]).entries["wil"]
    preserved = entry.parts["preserved"]
    assert (entry.value, preserved.value) == pytest.approx((3 / 8, 5 / 8))
    assert entry.high is not None
    assert (preserved.stderr, preserved.low) == pytest.approx((entry.stderr, 1 - entry.high))


def test_the_standard_error_is_that_of_a_ratio() -> None:
    # r = 6/12 errors per word. The delta method: psi_i = (e_i - r n_i) / mean(n) = (e_i - n_i / 2) / 4.
    pairs = [("a b c d", "a b c x"), ("a b c d", "a b c d"), ("a b c d", "x x x x x")]
    samples = [Sample(id=str(i), generated_answer=t, references=[r]) for i, (r, t) in enumerate(pairs)]
    errors = np.array([1.0, 0.0, 5.0])
    influence = (errors - 0.5 * 4) / 4
    expected = np.sqrt((influence**2).sum() / 3 / 2)
    assert evaluate(samples, metrics=["wer"])["wer"]["stderr"] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["wer", "cer", "mer", "wil"])
def test_the_influence_is_the_derivative_of_the_aggregate(name: str) -> None:
    from multimodal_eval.core.score import Rows
    from multimodal_eval.evaluation.metrics_registry import resolve

    metric = resolve(name)
    stats = np.array([[5.0, 1, 2, 0], [3, 0, 0, 2], [7, 2, 1, 1], [0, 1, 0, 0]])
    for part in ["", *(["hits", "substitutions", "deletions", "insertions"] if name in ("wer", "cer") else [])]:

        def aggregate(table: np.ndarray, part: str = part) -> float:
            rows = Rows(np.zeros(len(table)), table)
            return aggregate_of(metric, part)(rows).value

        rows = Rows(np.zeros(4), stats)
        influence = aggregate_of(metric, part)(rows).influence
        for row in range(4):  # one row counts a little more; the mean of the influence values is the change
            weights = np.ones(4)
            weights[row] += 1e-6
            change = aggregate(stats * weights[:, None]) - aggregate(stats)
            assert change == pytest.approx(1e-6 * influence[row] / 4, abs=1e-10)


def test_the_reference_with_the_lowest_value_counts() -> None:
    # "a b" has 1 error of 2 words with "a c"; 2 of 5 with the other, which is the lower rate.
    assert wer("a b", ["a c", "a b c d e"]) == 0.5
    assert wer("a b c", ["a c", "a b c d e"]) == 2 / 5
    samples = [
        Sample(id="1", generated_answer="a b c", references=["a c", "a b c d e", "a b x y c"]),
        Sample(id="2", generated_answer="x", references=["x y"], expected_answer="x"),
        Sample(id="3", generated_answer="x", references=["y", "z"]),
    ]
    scores = compute_wer.function(samples)
    assert scores.values.tolist() == [2 / 5, 0, 1]
    assert [score.details for score in scores] == [
        {"alignment": "3H 2D", "reference": 2},
        None,
        {"alignment": "1S", "reference": 1},
    ]


def test_speech_that_is_invented_in_silence_counts() -> None:
    samples: list[dict[str, Any]] = [
        {"id": "silence", "references": [""], "generated_answer": "hello there"},
        {"id": "speech", "expected_answer": "a b", "generated_answer": "a b"},
    ]
    run = evaluate(samples, task="asr", progress=False)
    # jiwer 4.0.0: wer(["", "a b"], ["hello there", "a b"]) is 1.0, cer 11 / 3
    assert (run["wer"]["value"], run["cer"]["value"]) == (1.0, 11 / 3)
    with pytest.raises(InputError, match="EMPTY_REFERENCE"):
        evaluate(samples, metrics=["wer", "rouge_l"], progress=False)


def test_an_empty_reference_after_normalisation_counts_insertions() -> None:
    samples = [
        Sample(id="1", generated_answer="hello there", references=["Um."]),
        Sample(id="2", generated_answer="uh", references=["[noise]"]),
        Sample(id="3", generated_answer="hello there", references=["hello there"]),
    ]
    scores = compute_wer.function(samples, rule=ENGLISH)
    assert scores.values.tolist() == [2, 0, 0]
    # 2 insertions per 2 words of all references.
    assert evaluate(samples, metrics=["wer"], options={"wer": {"rule": ENGLISH}})["wer"]["value"] == 1
    assert evaluate(samples[:2], metrics=["wer"], options={"wer": {"rule": ENGLISH}})["wer"]["value"] == 2


def test_words_are_split_as_jiwer_does() -> None:
    # A single tab or line break is part of a word; a space, or two white-space characters, separate.
    for text, words in [
        ("a\tb", 1),
        ("a\t\tb", 2),
        ("a \nb", 2),
        (" a b\n", 2),
        ("a\u00a0b", 1),
        ("a\u2003\u2003b", 2),
    ]:
        assert align(text, text)[0].hits == words == len(jiwer.process_words(text, text).references[0])
    assert align("a\tb", "a\tb", rule="none@1")[0].hits == 2


def test_an_alignment_as_chunks() -> None:
    edits, chunks = align("the cat sat down here", "a cat sat there", rule="none@1")
    assert edits == SpeechEdits(hits=2, substitutions=2, deletions=0, insertions=1)
    assert (edits.errors, edits.reference_length) == (3, 4)
    assert edits + edits == SpeechEdits(4, 4, 0, 2)
    assert chunks == [
        AlignedChunk("substitute", 0, 1, 0, 1),
        AlignedChunk("equal", 1, 3, 1, 3),
        AlignedChunk("insert", 3, 3, 3, 4),
        AlignedChunk("substitute", 3, 4, 4, 5),
    ]
    assert chunks_of_alignment("1S 2H 1I 1S") == chunks
    assert align("", "")[1] == []


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ConfigError, match="wer needs a list of at least one reference"):
        wer("a", "a")
    with pytest.raises(UnknownNameError, match=r"whisper.*whisper-english@0\.1\.15"):
        wer("a", ["a"], rule="whisper-english")


def test_a_rule_of_a_plugin_is_applied_to_both_texts() -> None:
    with restored_registries():

        @rule("transcript", "vowels@1", origin="a test")
        def vowels(text: str) -> str:
            """Only vowels."""
            return "".join(letter for letter in text if letter in "aeiou ")

        assert wer("the bat", ["she cat"], rule="vowels@1") == 0
        samples = [Sample(id="1", generated_answer="the bat", references=["she cat", "x"])]
        run = evaluate(samples, metrics=["wer"], options={"wer": {"rule": "vowels@1"}})
        assert run["wer"]["value"] == 0
        assert "rule:vowels@1+" in run.results["metrics"]["wer"]["signature"]


def test_arrow_columns_give_the_same_scores() -> None:
    import pyarrow as pa

    answers, references = ["a b", "", "Ünïcode töxt", "x"], [["a c", "b"], ["x"], ["Ünïcode text"], ["x"]]
    columns = {"generated_answer": pa.array(answers), "references": pa.array(references, pa.list_(pa.string()))}
    samples = [
        Sample(id=str(i), generated_answer=answer, references=texts)
        for i, (answer, texts) in enumerate(zip(answers, references, strict=True))
    ]
    batch = Batch(len(samples), columns, lambda _: samples)
    for name in ("jiwer@4", ENGLISH):
        assert compute_wer.function(batch, rule=name) == compute_wer.function(samples, rule=name)
        assert compute_wer.function(batch[1:], rule=name) == compute_wer.function(samples[1:], rule=name)


def assert_like_jiwer(reference: str, transcript: str) -> None:
    units: dict[Unit, Any] = {"words": jiwer.process_words, "characters": jiwer.process_characters}
    for unit, process in units.items():
        theirs = process(reference, transcript)
        edits, chunks = align(transcript, reference, unit=unit)
        assert edits == SpeechEdits(theirs.hits, theirs.substitutions, theirs.deletions, theirs.insertions)
        assert chunks == [
            AlignedChunk(cast("EditKind", c.type), c.ref_start_idx, c.ref_end_idx, c.hyp_start_idx, c.hyp_end_idx)
            for c in theirs.alignments[0]
        ]
    words = jiwer.process_words(reference, transcript)
    assert measures(reference, transcript) == (words.wer, words.mer, words.wil)
    assert cer(transcript, [reference]) == jiwer.process_characters(reference, transcript).cer


few_words = st.lists(st.sampled_from(["a", "b", "c", "dd", "über", "日本"]), max_size=90).map(" ".join)


@pytest.mark.property
@given(few_words | st.text(max_size=90), few_words | st.text(max_size=90))
def test_any_texts_are_aligned_as_by_jiwer(reference: str, transcript: str) -> None:
    assert_like_jiwer(reference, transcript)


@pytest.mark.parametrize("size", [63, 64, 65, 128, 129, 300, 2048, 2100, 5000])
def test_texts_around_word_and_matrix_sizes_are_aligned_as_by_jiwer(size: int) -> None:
    rng = random.Random(size)
    for letters in ("ab", "abcdefghij", "abcdefghijklmnopqrstuvwxyz "):
        reference = "".join(rng.choice(letters) for _ in range(size))
        changed = "".join(rng.choice(letters) if rng.random() < 0.1 else c for c in reference if rng.random() > 0.05)
        other = "".join(rng.choice(letters) for _ in range(size + 7))
        for transcript in (changed, other, changed[: size // 2], "x" + changed):
            assert_like_jiwer(" ".join(reference), " ".join(transcript))


def test_a_long_text_needs_little_memory() -> None:
    # A matrix of 40,000 x 40,000 differences would need 400 MB; each half of the text is aligned for itself.
    rng = random.Random(1)
    words = [f"w{rng.randrange(5000)}" for _ in range(40_000)]
    changed = [word for word in words if rng.random() > 0.01]
    edits, chunks = align(" ".join(changed), " ".join(words))
    assert edits.deletions == 40_000 - len(changed)
    assert edits.hits == len(changed)
    assert chunks[-1].reference_end == 40_000
