"""Counting, merging and looking up n-grams in the compiled core, against plain Python."""

from __future__ import annotations

import struct
from collections import Counter
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval._native import BucketSum, BucketUnion, Captions, FrequencyTable
from multimodal_eval.text.document_frequencies import DocumentFrequencies
from tests.text.ngram_pieces import counted, stored, unpacked

words = st.lists(st.sampled_from("a b c dd longer-than-eight-letters longer-than-nine-letters ё".split()), max_size=7)
texts = words.map(" ".join)
reference_sets = st.lists(st.lists(texts, min_size=1, max_size=3), max_size=6)
WAYS = ["column", "lists"]


def packed(sets, buckets, way):
    """Pieces of a column, whose n-grams are counted bucket by bucket, or of a table."""
    if way == "lists":
        return DocumentFrequencies.of(sets, "whitespace").pack(buckets)
    return DocumentFrequencies.of_column(pa.array(sets, pa.list_(pa.string())), "whitespace").pack(buckets)


@pytest.mark.parametrize("way", WAYS)
@given(sets=reference_sets, buckets=st.integers(1, 5))
def test_pieces_have_the_counts_of_their_part(sets, buckets, way):
    pieces = [unpacked(piece) for piece in packed(sets, buckets, way)]
    assert len(pieces) == buckets
    assert {images for images, _, _ in pieces} == {len(sets)}
    assert sum((counts for _, _, counts in pieces), Counter()) == counted(sets)
    assert sum(len(counts) for _, _, counts in pieces) == len(counted(sets))  # every n-gram is in one piece


@given(reference_sets, reference_sets, st.integers(1, 5))
def test_equal_ngrams_are_in_the_same_bucket(left, right, buckets):
    place = {}
    for pieces in (packed(left, buckets, "column"), packed(right, buckets, "lists")):
        for bucket, piece in enumerate(pieces):
            for ngram in unpacked(piece)[2]:
                assert place.setdefault(ngram, bucket) == bucket


@given(st.lists(st.tuples(reference_sets, st.sampled_from(WAYS)), min_size=1, max_size=4), st.integers(1, 3))
def test_a_bucket_is_the_sum_of_its_pieces(shards, buckets):
    sets = [references for shard, _ in shards for references in shard]
    whole = counted(sets)
    kept, varies = Counter(), False
    for pieces in zip(*(packed(shard, buckets, way) for shard, way in shards), strict=True):
        bucket = BucketSum()
        for piece in pieces:
            bucket.add(piece)
        result = bucket.finish()
        images, _, counts = unpacked(result[1:])
        assert images == len(sets)
        kept, varies = kept + counts, varies or result[0] == 1
    assert kept == Counter({ngram: count for ngram, count in whole.items() if count > 1})
    assert varies == any(count < len(sets) for count in whole.values())


@pytest.mark.parametrize("threads", [1, 2, 5])
@given(sets=reference_sets, buckets=st.integers(1, 4))
def test_buckets_unite_into_the_stored_table(sets, buckets, threads):
    union = BucketUnion()
    for piece in packed(sets * 2, buckets, "column"):
        union.add(DocumentFrequencies.merged([piece]))
    table = union.finish(threads)
    counts = {ngram: 2 * count for ngram, count in counted(sets).items()}
    tokens = sorted({token for ngram in counts for token in ngram}, key=str.encode)
    assert table.to_bytes() == stored("whitespace", 2 * len(sets), tokens, counts)
    assert {ngram: table.count(list(ngram)) for ngram in counts} == counts
    assert len(table) == len(counts)


@pytest.mark.parametrize("words", [65_535, 65_536])  # up to 65,535 tokens have numbers of 16 bits
def test_parts_with_many_tokens(words):
    sets = [[" ".join(f"w{number}" for number in range(start, start + 10))] for start in range(0, words - 9, 10)]
    sets.append([" ".join(f"w{number}" for number in range(words - 20, words))])
    (piece,) = packed(sets, 1, "column")
    assert unpacked(piece)[2] == counted(sets)


def test_the_largest_sum():
    def piece(count):
        union = BucketSum()
        for _ in range(2):
            union.add(packed([["a"], ["a"]], 1, "lists")[0])
        good = union.finish()[1:]
        assert good.endswith(struct.pack("<I", 4))
        return good[:-4] + struct.pack("<I", count)

    bucket = BucketSum()
    bucket.add(piece(2**32 - 6))
    bucket.add(piece(5))
    assert unpacked(bucket.finish()[1:])[2] == {("a",): 2**32 - 1}
    bucket = BucketSum()
    bucket.add(piece(2**32 - 6))
    bucket.add(piece(6))
    with pytest.raises(ValueError, match="more than 2\\^32 images"):
        bucket.finish()


SETS = [["a b c d", "b"], ["c d e f"]]
SIZES = struct.pack("<8Q", 4, 2, 4, 1, 4, 0, 2, 0)  # of SETS, by order: n-grams with count 1, with more


@pytest.mark.parametrize("way", WAYS)
def test_truncated_and_extended_pieces_are_refused(way):
    (good,) = packed(SETS, 1, way)
    BucketSum().add(good)
    for wrong in (*(good[:length] for length in range(len(good))), good + b"\0", good + b"x" * 8, good + good):
        with pytest.raises(ValueError, match=r"broken|document-frequency table"):
            BucketSum().add(wrong)


@given(noise=st.binary(max_size=300), keep=st.integers(0, 300))
def test_damaged_pieces_are_refused_or_give_a_valid_bucket(noise, keep):
    (good,) = packed(SETS, 1, "column")
    for data in (noise, good[:keep] + noise, good[:keep] + noise + good[keep + len(noise) :]):
        bucket = BucketSum()
        try:
            bucket.add(data)
            bucket.add(data)
            result = bucket.finish()
        except ValueError:
            continue
        union = BucketUnion()
        union.add(result)
        with suppress(ValueError):  # a damaged token may leave n-grams without their prefix
            FrequencyTable.from_bytes(union.finish().to_bytes())


@pytest.mark.parametrize("place", range(8))
@pytest.mark.parametrize("size", [7, 2**32, 2**63, 2**64 - 1])  # too many, and so many that a sum overflows
def test_pieces_with_wrong_sizes_are_refused(place, size):
    (good,) = packed(SETS, 1, "column")
    assert good.count(SIZES) == 1
    wrong = SIZES[: 8 * place] + struct.pack("<Q", size) + SIZES[8 * (place + 1) :]
    with pytest.raises(ValueError, match="broken"):
        BucketSum().add(good.replace(SIZES, wrong))


def test_pieces_with_other_tokens_widths_and_counts_are_refused():
    (good,) = packed(SETS, 1, "column")
    numbers = good.index(SIZES) + len(SIZES) + 1
    width = good[: numbers - 1] + b"\3" + good[numbers:]
    token = good[:numbers] + struct.pack("<H", 6) + good[numbers + 2 :]  # six tokens: 0 to 5
    counts = numbers + 6 * 2
    zero = good[:counts] + struct.pack("<I", 0) + good[counts + 4 :]
    for wrong, message in ((width, "broken"), (token, "index out of range"), (zero, "count of 0")):
        with pytest.raises(ValueError, match=message):
            BucketSum().add(wrong)


def test_pieces_of_other_tokenizers_are_refused():
    bucket = BucketSum()
    bucket.add(DocumentFrequencies.of(SETS, "whitespace").pack(1)[0])
    with pytest.raises(ValueError, match="different tokenizers"):
        bucket.add(DocumentFrequencies.of(SETS, "ptb").pack(1)[0])


def test_buckets_that_lack_a_prefix_or_repeat_an_ngram_are_refused():
    pieces = [DocumentFrequencies.merged([piece]) for piece in packed(SETS * 2, 2, "column")]
    lacking, twice = BucketUnion(), BucketUnion()
    lacking.add(max(pieces, key=len))
    for piece in (*pieces, pieces[0], pieces[1]):
        twice.add(piece)
    with pytest.raises(ValueError, match="lacks the prefix"):
        lacking.finish()
    with pytest.raises(ValueError, match="twice"):
        twice.finish()
    with pytest.raises(ValueError, match="broken"):
        BucketUnion().add(b"")


@given(st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=3)), min_size=1, max_size=9), reference_sets)
def test_scores_do_not_depend_on_how_ngrams_are_numbered(images, corpus):
    many = images * 40  # more than are numbered together
    lists = [candidate for candidate, _ in many], [references for _, references in many]
    whole, blocks = (Captions(*lists, "whitespace", with_ngrams=with_ngrams) for with_ngrams in (True, False))
    table = DocumentFrequencies.of(corpus + lists[1], "whitespace").table
    loaded = FrequencyTable.from_bytes(table.to_bytes())
    for name in ("cider", "cider_d"):
        expected = getattr(whole, name)(table).tolist()
        assert getattr(whole, name)(loaded).tolist() == expected
        assert getattr(blocks, name)(table).tolist() == expected
        assert getattr(blocks, name)(loaded).tolist() == expected
    assert [array.tolist() for array in blocks.bleu()] == [array.tolist() for array in whole.bleu()]
    both = [[array.tolist() for array in captions.bleu_and_cider_d(loaded)] for captions in (whole, blocks)]
    assert both[0] == both[1]


def test_captions_without_ngrams_have_no_table():
    with pytest.raises(RuntimeError, match="without n-grams"):
        Captions(["a"], [["a"]], "ptb", with_ngrams=False).document_frequencies()
    with pytest.raises(RuntimeError, match="one thread"):
        Captions(["a", "b"], [["a"], ["b"]], "ptb", 2, with_ngrams=False).packed_frequencies(1)


def test_large_counts_in_a_table_with_many_tokens():
    # 70,000 tokens need 17 bits and the places of their n-grams 18, which leaves 29 for a count.
    tokens = sorted(f"w{number}" for number in range(70_000))
    pairs = {(tokens[0], tokens[1]): 2**31, (tokens[1], tokens[2]): 2**29 - 1, (tokens[2], tokens[3]): 2**29 - 2}
    counts = {(token,): 2**32 - 1 for token in tokens} | pairs
    data = stored("whitespace", 2**40, tokens, counts)
    loaded, merged = FrequencyTable.from_bytes(data), FrequencyTable()
    merged.merge(FrequencyTable.from_bytes(data))
    assert loaded.to_bytes() == merged.to_bytes() == data
    assert loaded.count(list(tokens[:2])) == 2**31
    captions = Captions([" ".join(tokens[:4])], [[" ".join(tokens[:3]), " ".join(tokens[1:4])]], "whitespace")
    fresh = FrequencyTable.from_bytes(data)
    assert captions.cider_d(fresh).tolist() == captions.cider_d(merged).tolist()


@given(reference_sets)
def test_tables_with_unsorted_tokens_are_read_too(sets):
    counts = counted(sets)
    tokens = sorted({token for ngram in counts for token in ngram}, key=str.encode)
    good, other = (stored("whitespace", len(sets), names, counts) for names in (tokens, tokens[::-1]))
    assert FrequencyTable.from_bytes(good).to_bytes() == FrequencyTable.from_bytes(other).to_bytes() == good
