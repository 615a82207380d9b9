"""How many texts the patterns of failed generations and refusals hit, in any files.

    python bench/failed_answers.py FOLDER

Every text in every .json, .jsonl, .txt and .tsv file below FOLDER, plain or .gz, is taken for an answer without
references. Prints the number of texts, the hits of the three kinds of patterns, and the most frequent hits. Exits with
1 if a pattern hits a text in a file of captions, or if a text anywhere would be unscored.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from multimodal_eval.core.failures import ERROR_PATTERNS, compiled_patterns, is_error_message
from multimodal_eval.lint.failed_answers import Doubt, doubts_about

KINDS = ("failure", "SUSPECTED_FAILURE", "REFUSAL")
CAPTIONS = ("Flickr8k.token", "captions", "coco_300", "fakecap", "test_pairs")  # in the names of files of captions
SHOWN = 8


def strings(value: object) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for item in value.values() for text in strings(item))
    elif isinstance(value, list):
        yield from (text for item in value for text in strings(item))


def texts_of(path: Path) -> Iterator[str]:
    content = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix == ".json":
        yield from strings(json.loads(content))
    for line in content.split("\n") if suffix != ".json" else ():
        if suffix == ".jsonl":
            yield from strings(json.loads(line)) if line.strip() else ()
        else:
            yield from line.split("\t")


def kinds_of(text: str) -> Iterator[str]:
    if is_error_message(text, compiled_patterns(ERROR_PATTERNS)):
        yield "failure"
        return
    doubts = doubts_about(text, ())
    if doubts & Doubt.SUSPECTED:
        yield "SUSPECTED_FAILURE"
    if doubts & Doubt.REFUSAL:
        yield "REFUSAL"


def main(folder: Path) -> int:
    bad = 0
    paths = [path for path in folder.rglob("*") if Path(path.name.removesuffix(".gz")).suffix in SUFFIXES]
    for path in sorted(paths):
        texts = [text for text in texts_of(path) if text.strip()]
        hits: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
        for text in texts:
            for kind in kinds_of(text):
                hits[kind][text.strip()] += 1
        counts = ", ".join(f"{hits[kind].total():,} {kind}" for kind in KINDS)
        print(f"{path.relative_to(folder)}: {len(texts):,} texts; {counts}")
        for kind, examples in hits.items():
            for text, count in examples.most_common(SHOWN):
                print(f"    {kind}: {count:,} x {text[:90]!r}")
        has_captions = any(name in path.name for name in CAPTIONS)
        bad += sum(hits[kind].total() for kind in (KINDS if has_captions else KINDS[:1]))
    print(f"\n{bad} texts hit" if bad else "\nno caption is hit, and no text would be unscored")
    return 1 if bad else 0


SUFFIXES = (".json", ".jsonl", ".txt", ".tsv")

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
