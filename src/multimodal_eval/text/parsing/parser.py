"""The English parser: tokens in, parsed sentences out. Opened once per process from the files of `mmeval fetch`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock

from multimodal_eval.core.errors import FetchError, UnavailableError
from multimodal_eval.resources.catalogue import get_resource
from multimodal_eval.resources.store import resource_file, verify
from multimodal_eval.text.parsing.stand_ins import stand_ins
from multimodal_eval.text.parsing.weights import OpenedParser, read_parser
from multimodal_eval.text.parsing.word_features import word_features
from multimodal_eval.text.parsing.words import Sentence, sentence

RESOURCE = "en-core-web-sm"
# Words of a caption that are parsed. The rest of a very long text is left out: time and memory grow with the length.
MOST_WORDS = 250
_opening = Lock()


class CaptionParser:
    """Parses tokenized captions."""

    def __init__(self, opened: OpenedParser) -> None:
        self.opened = opened

    def parse(self, captions: Sequence[Sequence[str]], threads: int = 1) -> list[Sentence]:
        """The parse of each caption. Those with a word that the parser mistakes are parsed again."""
        cut = [list(tokens[:MOST_WORDS]) for tokens in captions]
        sentences = self._parse_once(cut, cut, threads)
        again: list[int] = []
        changed: list[list[str]] = []
        for number, parsed in enumerate(sentences):
            if others := stand_ins(parsed):
                again.append(number)
                changed.append([others.get(index, text) for index, text in enumerate(cut[number])])
        for number, parsed in zip(again, self._parse_once(changed, [cut[i] for i in again], threads), strict=True):
            sentences[number] = parsed
        return sentences

    def _parse_once(
        self, captions: Sequence[Sequence[str]], texts: Sequence[Sequence[str]], threads: int
    ) -> list[Sentence]:
        """Parse `captions`; the words of the result have the corresponding `texts`."""
        import numpy as np

        if not captions:
            return []
        numbers: dict[str, int] = {}
        ids = [numbers.setdefault(word, len(numbers)) for tokens in captions for word in tokens]
        ends = np.cumsum([len(tokens) for tokens in captions], dtype=np.int64)
        tags, heads, labels = self.opened.native.parse(
            [word_features(word) for word in numbers], np.array(ids, np.int32), ends, threads
        )
        tag_names = [self.opened.tags[tag] for tag in tags.tolist()]
        label_names = [self.opened.labels[label] for label in labels.tolist()]
        all_heads = heads.tolist()
        starts = [0, *ends.tolist()]
        return [
            sentence(words, tag_names[start:end], all_heads[start:end], label_names[start:end])
            for words, start, end in zip(texts, starts, starts[1:], strict=False)
        ]


def open_parser() -> CaptionParser:
    """The parser with the fetched weights; an error says how to fetch them."""
    folder = resource_file(RESOURCE, "tok2vec.model").parent
    with _opening:
        return _open(str(folder))


@cache
def _open(folder: str) -> CaptionParser:
    place = Path(folder)
    try:
        verify(get_resource(RESOURCE), place)
    except FetchError as fault:
        raise UnavailableError(f"{fault} Remove the folder {place} and run: mmeval fetch {RESOURCE}") from None
    return CaptionParser(read_parser(place))
