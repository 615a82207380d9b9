"""The native parser against spaCy: a small network with random weights, and the real weights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from multimodal_eval.core.errors import UnavailableError
from multimodal_eval.resources.catalogue import get_resource
from multimodal_eval.resources.store import folder_of
from multimodal_eval.text.parsing import (
    MOST_WORDS,
    RESOURCE,
    CaptionParser,
    open_parser,
    read_parser,
    stand_ins,
    word_features,
)
from tests.text.parsing.captions import CAPTIONS

TINY = Path(__file__).with_name("tiny")
GOLDEN = Path(__file__).parents[2] / "golden" / "parses.json"
TOKENS = [caption.split() for caption in CAPTIONS]


def parsed_once(opened, captions, threads=1):
    words = {}
    numbers = [words.setdefault(word, len(words)) for tokens in captions for word in tokens]
    ends = np.cumsum([len(tokens) for tokens in captions], dtype=np.int64)
    tags, heads, labels = opened.native.parse(
        [word_features(word) for word in words], np.array(numbers, np.int32), ends, threads
    )
    rows = [
        [opened.tags[tag], int(head), opened.labels[label]]
        for tag, head, label in zip(tags, heads, labels, strict=True)
    ]
    return [rows[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def recorded(path):
    return json.loads(path.read_text("utf-8"))["parses"]


@pytest.fixture(scope="module")
def tiny():
    return read_parser(TINY)


@pytest.fixture
def tiny_copy(tmp_path):
    return Path(shutil.copytree(TINY, tmp_path / "tiny"))


def test_random_weights_give_the_parses_of_spacy(tiny):
    assert parsed_once(tiny, TOKENS) == recorded(TINY / "parses.json")


@pytest.mark.weights
def test_the_fetched_weights_give_the_parses_of_spacy(weights):
    assert parsed_once(open_parser().opened, TOKENS) == recorded(GOLDEN)


@pytest.mark.parametrize("threads", [2, 3, 100])
def test_threads_change_nothing(tiny, threads):
    assert parsed_once(tiny, TOKENS, threads) == parsed_once(tiny, TOKENS)


def test_a_caption_is_parsed_as_if_it_were_alone(tiny):
    together = parsed_once(tiny, TOKENS)
    assert [parsed_once(tiny, [tokens])[0] for tokens in TOKENS] == together


def test_captions_with_mistaken_words_are_parsed_again_with_common_ones(tiny):
    captions = [[noun, "dog", "on", "a", noun] for noun in ("hydrant", "skateboarder", "racquets", "frisbee", "oven")]
    parser = CaptionParser(tiny)
    changed = 0
    for tokens, sentence in zip(captions, parser.parse(captions), strict=True):
        others = stand_ins(parser._parse_once([tokens], [tokens], 1)[0])
        replaced = [others.get(index, word) for index, word in enumerate(tokens)]
        (expected,) = parsed_once(tiny, [replaced])
        assert [[word.tag, word.head.index, word.label] for word in sentence] == expected
        assert [word.text for word in sentence] == tokens
        changed += parsed_once(tiny, [tokens])[0] != expected
    assert changed


def test_no_captions_and_empty_captions(tiny):
    parser = CaptionParser(tiny)
    assert parser.parse([]) == []
    first, second, third = parser.parse([[], ["dog"], []])
    assert (first, third) == ([], [])
    assert [word.text for word in second] == ["dog"]


def test_very_long_texts_are_cut(tiny):
    (sentence,) = CaptionParser(tiny).parse([["dog"] * (MOST_WORDS + 50)])
    assert len(sentence) == MOST_WORDS


@pytest.mark.parametrize(
    ("words", "sentences", "ends", "message"),
    [
        (["dog"], [1], [1], "no word has that number"),
        (["dog"], [-1], [1], "no word has that number"),
        (["dog"], [0], [2], "the ends must ascend"),
        (["dog"], [0, 0], [2, 1], "the ends must ascend"),
    ],
)
def test_numbers_out_of_range_are_refused(tiny, words, sentences, ends, message):
    with pytest.raises(ValueError, match=message):
        tiny.native.parse(
            [word_features(word) for word in words], np.array(sentences, np.int32), np.array(ends, np.int64)
        )


@pytest.mark.parametrize("name", ["tok2vec.model", "tagger.model", "parser.model", "parser.moves", "tagger.cfg"])
def test_damaged_files_are_refused(tiny_copy, name):
    content = (tiny_copy / name).read_bytes()
    (tiny_copy / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(UnavailableError, match=r"the parser in .* cannot be read"):
        read_parser(tiny_copy)


def test_layers_that_do_not_fit_together_are_refused(tiny_copy):
    moves = (tiny_copy / "parser.moves").read_bytes()
    (tiny_copy / "parser.moves").write_bytes(moves.replace(b'"aux":40', b'"aux":40'.replace(b"aux", b"det")))
    with pytest.raises(UnavailableError, match="do not fit together"):
        read_parser(tiny_copy)


def test_without_the_weights_the_error_says_how_to_fetch_them():
    with pytest.raises(UnavailableError, match=r"not on this machine\. Get it with: mmeval fetch en-core-web-sm"):
        open_parser()


@pytest.mark.weights
def test_weights_with_a_wrong_checksum_are_refused(weights, tmp_path, monkeypatch):
    origin = folder_of(get_resource(RESOURCE))
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))
    folder = Path(shutil.copytree(origin, folder_of(get_resource(RESOURCE))))
    content = bytearray((folder / "parser.model").read_bytes())
    content[1000] ^= 1
    (folder / "parser.model").write_bytes(bytes(content))
    with pytest.raises(UnavailableError, match=r"parser.model must have the checksum .* mmeval fetch en-core-web-sm"):
        open_parser()
