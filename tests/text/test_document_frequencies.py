from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval._native import Captions, FrequencyTable
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.text.document_frequencies import DocumentFrequencies, coco_val2014, from_file

words = st.lists(st.sampled_from("a b c d longer-than-eight-letters longer-than-nine-letters ё".split()), max_size=7)
reference_sets = st.lists(st.lists(words.map(" ".join), min_size=1, max_size=3), max_size=6)


def counted_by_hand(sets):
    counts: dict[tuple[str, ...], int] = {}
    for texts in sets:
        seen = set()
        for text in texts:
            tokens = text.split()
            seen |= {tuple(tokens[i : i + n]) for n in (1, 2, 3, 4) for i in range(len(tokens) - n + 1)}
        for ngram in seen:
            counts[ngram] = counts.get(ngram, 0) + 1
    return counts


@given(reference_sets)
def test_it_counts_images_not_occurrences(sets):
    table = DocumentFrequencies.of(sets, "whitespace")
    expected = counted_by_hand(sets)
    assert table.images == len(sets)
    assert len(table) == len(expected)
    assert {ngram: table.count(ngram) for ngram in expected} == expected
    assert table.count(["nowhere"]) == table.count(["a", "nowhere"]) == 0


@given(reference_sets, reference_sets)
def test_shards_merge_into_the_whole(left, right):
    whole = DocumentFrequencies.of(left + right, "whitespace")
    assert DocumentFrequencies.of(left, "whitespace") + DocumentFrequencies.of(right, "whitespace") == whole
    assert DocumentFrequencies.of(right, "whitespace") + DocumentFrequencies.of(left, "whitespace") == whole


@given(reference_sets)
def test_stored_bytes_do_not_depend_on_the_order(sets):
    table = DocumentFrequencies.of(sets, "whitespace")
    loaded = FrequencyTable.from_bytes(table.to_bytes())
    assert loaded.images == table.images
    assert loaded.to_bytes() == table.to_bytes()
    assert DocumentFrequencies.of(sets[::-1], "whitespace").to_bytes() == table.to_bytes()


def has_weights(sets):
    return DocumentFrequencies.of(sets, "whitespace").has_weights


@given(reference_sets.filter(has_weights), st.lists(words.map(" ".join), min_size=1))
def test_condensing_does_not_change_scores(sets, candidates):
    count = min(len(sets), len(candidates))
    table = DocumentFrequencies.of(sets, "whitespace")
    condensed = table.condensed()
    captions = Captions(candidates[:count], sets[:count], "whitespace")
    for name in ("cider", "cider_d"):
        assert getattr(captions, name)(table.table).tolist() == getattr(captions, name)(condensed.table).tolist()
    assert {ngram for ngram, df in counted_by_hand(sets).items() if condensed.count(ngram) != df} == {
        ngram for ngram, df in counted_by_hand(sets).items() if df == 1
    }


@given(reference_sets.filter(has_weights))
def test_a_condensed_table_has_the_settings_of_the_whole(sets):
    whole = DocumentFrequencies.of(sets, "whitespace")
    condensed = whole.condensed()
    loaded = DocumentFrequencies.from_bytes(condensed.to_bytes())
    assert loaded == condensed == condensed.condensed()
    assert loaded.settings == condensed.settings == whole.settings
    assert loaded.images == whole.images
    assert loaded.fit_for("whitespace") is loaded  # even if all remaining n-grams are in every image


def test_a_condensed_table_cannot_be_merged():
    whole = DocumentFrequencies.of([["a b"], ["b c"]])
    for left, right in ((whole, whole.condensed()), (whole.condensed(), whole)):
        with pytest.raises(ValueError, match="cannot be merged"):
            left + right


def test_a_table_without_weights_is_not_condensed():
    with pytest.raises(InputError, match="CORPUS_TOO_SMALL"):
        DocumentFrequencies.of([["a dog"], ["a dog"]]).condensed()


@given(st.lists(reference_sets, min_size=1), st.integers(1, 5))
def test_merged_buckets_equal_the_condensed_whole(shards, buckets):
    whole = DocumentFrequencies.of([texts for shard in shards for texts in shard], "whitespace")
    pieces = [DocumentFrequencies.of(shard, "whitespace").pack(buckets) for shard in shards]
    merged = [DocumentFrequencies.merged(bucket) for bucket in zip(*pieces, strict=True)]
    if whole.has_weights:
        united = DocumentFrequencies.united(merged)
        assert united == whole.condensed()
        assert (united.settings, united.images) == (whole.settings, whole.images)
    else:
        with pytest.raises(InputError, match="CORPUS_TOO_SMALL"):
            DocumentFrequencies.united(merged)


SMALL_CORPUS = [["a b c", "b c"], ["c d e f"]]


def loaded_twice(data):
    return FrequencyTable.from_bytes(FrequencyTable.from_bytes(data).to_bytes())


def test_truncated_and_extended_tables_are_refused():
    good = DocumentFrequencies.of(SMALL_CORPUS, "whitespace").to_bytes()
    assert FrequencyTable.from_bytes(good).to_bytes() == good
    for wrong in (*(good[:length] for length in range(len(good))), good + b"\0", good + b"x" * 8, good + good):
        with pytest.raises(ValueError, match=r"broken|document-frequency table"):
            FrequencyTable.from_bytes(wrong)


@given(noise=st.binary(max_size=300), keep=st.integers(0, 300))
def test_damaged_tables_are_refused_or_give_a_valid_table(noise, keep):
    good = DocumentFrequencies.of(SMALL_CORPUS, "whitespace").to_bytes()
    for data in (noise, good[:keep] + noise, good[:keep] + noise + good[keep + len(noise) :]):
        try:
            table = FrequencyTable.from_bytes(data)
        except ValueError:
            continue
        counted = FrequencyTable()
        counted.merge(table)
        assert loaded_twice(data).to_bytes() == table.to_bytes() == counted.to_bytes()
        assert (len(counted), counted.images, counted.varies()) == (len(table), table.images, table.varies())


def test_a_stored_count_of_0_is_refused():
    good = DocumentFrequencies.of(SMALL_CORPUS, "whitespace").to_bytes()  # ends with a count
    with pytest.raises(ValueError, match="has a count"):
        FrequencyTable.from_bytes(good[:-1] + b"\0")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        DocumentFrequencies.load(tmp_path / "nowhere")
    (tmp_path / "text").write_text("no table")
    with pytest.raises(ConfigError, match="is not a document-frequency table of this version"):
        DocumentFrequencies.load(tmp_path / "text")


def test_a_named_file_is_in_the_signature(tmp_path):
    table = DocumentFrequencies.of([["a b"], ["c"]], "whitespace")
    table.save(tmp_path / "mine.df")
    assert from_file(str(tmp_path / "mine.df")).settings["df"].startswith("mine.df@")
    assert table.settings["df"].startswith("corpus@")


def test_the_shipped_table():
    table = coco_val2014()
    assert table.images == 40_504
    assert len(table) == 349_293
    assert table.count(["a"]) > table.count(["a", "man"]) > table.count(["a", "man", "riding"]) > 1
    assert table.settings == {"df": "coco-val2014"}


@pytest.mark.parametrize("sets", [[], [["a dog"]], [["a dog"], ["a dog"]]])
def test_a_corpus_without_weights_is_refused(sets):
    with pytest.raises(InputError, match="CORPUS_TOO_SMALL"):
        DocumentFrequencies.of(sets).check()


def test_a_corpus_with_weights_is_accepted():
    DocumentFrequencies.of([["a dog"], ["a cat"]]).check()
