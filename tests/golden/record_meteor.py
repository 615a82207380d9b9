"""Record the results of METEOR 1.5 for generated texts: meteor.json.gz (English) and meteor_ru.json.gz (Russian).

    python tests/golden/record_meteor.py [--out DIR] [--language en|ru]

Needs Java and the pycocoevalcap package. Its jar is called in the same way as in that package (one SCORE line per
segment, then one EVAL line), but with UTF-8. The texts come from a fixed seed, so every run writes the same files.

A file holds {"command": the options, "segments": [...], "corpus": the score of all segments}. A segment holds its
"kind", "candidate", "references", "stats" (the output line of the jar) and "score".
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.golden.meteor_texts import Segment, odd, ordinary, russian

SEED = 20150312
OPTIONS = {"en": ["-l", "en", "-norm"], "ru": ["-l", "ru", "-m", "exact stem", "-norm"]}


def find_jar() -> Path:
    spec = importlib.util.find_spec("pycocoevalcap")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("tests/golden/record_meteor.py: the pycocoevalcap package is not installed")
    return Path(spec.submodule_search_locations[0]) / "meteor" / "meteor-1.5.jar"


def record(segments: list[Segment], language: str) -> float:
    """Add the stats and the score to each segment. Returns the corpus score."""
    jar = find_jar()
    command = ["java", "-Dfile.encoding=UTF-8", "-jar", "-Xmx2G", jar.name, "-", "-", "-stdio", *OPTIONS[language]]
    with subprocess.Popen(command, cwd=jar.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        to_jar, from_jar = process.stdin, process.stdout
        assert to_jar is not None
        assert from_jar is not None

        def ask(line: str) -> None:
            to_jar.write(line.encode() + b"\n")
            to_jar.flush()

        def answer() -> str:
            return from_jar.readline().decode().strip()

        for segment in segments:
            ask(" ||| ".join(["SCORE", *segment["references"], segment["candidate"]]))
            segment["stats"] = answer()
            if not re.fullmatch(r"\d+\.\d+( \d+\.\d+){22}", segment["stats"]):
                raise RuntimeError(f"{segment!r}")
        ask(" ||| ".join(["EVAL", *(segment["stats"] for segment in segments)]))
        for segment in segments:
            segment["score"] = float(answer())
        corpus = float(answer())
        to_jar.close()
    return corpus


def cleaned(segment: Segment) -> Segment:
    """Remove double spaces, which pycocoevalcap would change, and characters that the protocol does not allow."""

    def clean(text: str) -> str:
        text = re.sub(r"[\r\n]", " ", text).replace("|||", "| |")
        return re.sub(" {2,}", " ", text)

    return segment | {"candidate": clean(segment["candidate"]), "references": [clean(t) for t in segment["references"]]}


def generate(seed: int, make: Callable[[random.Random], Segment], count: int) -> list[Segment]:
    r = random.Random(seed)
    return [cleaned(make(r)) for _ in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument("--language", choices=sorted(OPTIONS), help="only this one")
    args = parser.parse_args()
    files = {
        "en": ("meteor.json.gz", lambda: generate(SEED, ordinary, 1250) + generate(SEED + 1, odd, 1350)),
        "ru": ("meteor_ru.json.gz", lambda: generate(SEED + 2, russian, 300)),
    }
    for language, (name, make) in files.items():
        if args.language not in (None, language):
            continue
        segments = make()
        corpus = record(segments, language)
        data = {"command": " ".join(["- - -stdio", *OPTIONS[language]]), "segments": segments, "corpus": corpus}
        text = json.dumps(data, ensure_ascii=False, indent=0)
        (args.out / name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        print(f"{name}: {len(segments)} segments, {corpus!r}")


if __name__ == "__main__":
    main()
