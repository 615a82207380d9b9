"""Write text/wordnet.tsv.br, the table of English synonyms, from the files of WordNet 3.0.

    python build_wordnet.py FOLDER [OUTPUT]

FOLDER holds data.noun, noun.exc and so on: the `dict` folder of Princeton's WordNet-3.0.tar.gz, or /usr/share/wordnet
of the Debian package wordnet-base (words and synsets are the same). The table has eight blocks, separated by blank
lines: nouns, verbs, adjectives and adverbs (`word<TAB>numbers of its synsets`), then the irregular forms of each
(`form<TAB>base forms`). The same input gives the same bytes.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from multimodal_eval.text.wordnet import numbered

PARTS = ("noun", "verb", "adj", "adv")
TABLE = Path(__file__).parents[1] / "src" / "multimodal_eval" / "text" / "wordnet.tsv.br"


def groups(file: Path, phrases: dict[str, set[str]]) -> Iterator[set[str]]:
    """The single words of each synset, in lower case. A phrase is replaced by its single-word forms."""
    for line in file.read_text("ascii").splitlines():
        if line.startswith("  "):  # the licence
            continue
        fields = line.split(" ")
        entries = fields[4 : 4 + 2 * int(fields[3], 16) : 2]  # every other field is a sense number
        words = {entry.partition("(")[0].lower() for entry in entries}  # "galore(ip)" -> "galore"
        yield {form for word in words for form in (phrases.get(word, ()) if "_" in word else (word,))}


def irregular_forms(file: Path) -> Iterator[tuple[str, str]]:
    """Each irregular form that is a single word, with each of its base forms."""
    for line in file.read_text("ascii").splitlines():
        form, *bases = line.split()
        yield from ((form, base) for base in bases if "_" not in form)


def read_part(folder: Path, part: str, first: int) -> tuple[dict[str, tuple[int, ...]], dict[str, set[str]]]:
    """The synset numbers of the words of a part of speech, and the base forms of its irregular forms."""
    forms = list(irregular_forms(folder / f"{part}.exc"))
    phrases = _collected((base, form) for form, base in forms if "_" in base)  # "comics" is a form of "comic strip"
    synsets = numbered(groups(folder / f"data.{part}", phrases), first)
    return synsets, _collected((form, base) for form, base in forms if base in synsets and base != form)


def build(folder: Path) -> str:
    """The table as text."""
    blocks, irregular_blocks, first = [], [], 0
    for part in PARTS:
        synsets, irregular = read_part(folder, part, first)
        numbers = [number for word_synsets in synsets.values() for number in word_synsets]
        print(f"{part}: {len(synsets)} words, {len(set(numbers))} synsets, {len(irregular)} irregular forms")
        blocks.append("\n".join(f"{word}\t{' '.join(map(str, synsets[word]))}" for word in sorted(synsets)))
        irregular_blocks.append("\n".join(f"{form}\t{' '.join(sorted(irregular[form]))}" for form in sorted(irregular)))
        first = max(numbers) + 1
    return "\n\n".join([*blocks, *irregular_blocks]) + "\n"


def _collected(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    values: dict[str, set[str]] = {}
    for key, value in pairs:
        values.setdefault(key, set()).add(value)
    return values


def main() -> None:
    folder, output = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else TABLE
    text = build(folder).encode("ascii")
    packed = pa.Codec("brotli", compression_level=11).compress(text, asbytes=True)
    output.write_bytes(packed)
    print(f"{output}: {len(packed)} bytes, {len(text)} unpacked, sha256 of the text {hashlib.sha256(text).hexdigest()}")


if __name__ == "__main__":
    main()
