"""Record which words are synonyms in NLTK's METEOR: `python record_wordnet.py`, with NLTK and its WordNet 3.0.

For each candidate word: the lemma names of `wordnet.synsets(word)` that are one lower-case word, except the word.
"""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import nltk
from nltk.corpus import wordnet

WORDS_PER_GROUP = 1500


def synonyms(word: str) -> list[str]:
    names = {name for synset in wordnet.synsets(word) for name in synset.lemma_names()}
    return sorted(name for name in names - {word} if "_" not in name and name == name.lower())


def main() -> None:
    lemmas = sorted(name for name in wordnet.all_lemma_names() if "_" not in name)
    irregular = sorted({form for forms in wordnet._exception_map.values() for form in forms if "_" not in form})
    choose = random.Random(20)
    inflected = {
        lemma[: -len(cut) or None] + ending
        for cut, ending in [("", "s"), ("", "es"), ("y", "ies"), ("", "ing"), ("e", "ing"), ("", "ed"), ("e", "er")]
        for lemma in choose.sample([lemma for lemma in lemmas if lemma.endswith(cut)], 2000)
    }
    rows: dict[str, list[str]] = {}
    for words in (lemmas, irregular, sorted(inflected)):
        related = [word for word in words if word not in rows and synonyms(word)]
        rows |= {word: synonyms(word) for word in choose.sample(related, WORDS_PER_GROUP)}
    recorded = {"nltk": nltk.__version__, "wordnet": wordnet.get_version(), "rows": dict(sorted(rows.items()))}
    packed = gzip.compress(json.dumps(recorded).encode(), 9, mtime=0)
    Path(__file__).with_name("wordnet.json.gz").write_bytes(packed)


if __name__ == "__main__":
    main()
