"""Count the turns of phrase and the names that this project avoids. Run: python -m tools.words [--list] [PATH ...]

`--list` prints every place. CONTRIBUTING ("Words") says what to write instead. Run it in the root of the project.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_UNITS = (
    "sample|row|line|second|minute|file|metric|run|model|system|image|word|task|class|part|process|group|name|column|letter"
    "|page|family|contest|caption|question|text|version|cell|machine|call|day|key|box|token|language|sentence|annotator|frame"
    "|kind|entry|core|folder|list|reference|set|turn|worker|test|step|unit|option|label|field|rule|dialogue|reply|threshold"
    "|command|pair|n-gram|bucket|slice|stratum|finding|warning|annotation|thread|round|batch|message"
)
_COUNT = "(?:one|two|three|four|five|ten|few|[0-9][0-9,.]*)"
_AFTER_WHERE = "it|they|that|there|none|nothing|no|not|one|only|all|every|each|both|neither|any|this|its"
PHRASES = {
    "is no X": r"(?<![Tt]here )\b(?:is|are|was|were|be) no (?!(?:longer|more|less|fewer|later|other)\b)[a-z]",
    "has not the X": r"\b(?:has|have|had) not (?:the|a|an|any|one)\b",
    "one X a Y": rf"\b(?:{_COUNT} (?!of|if|with|for|at|by)[a-z-]+|(?:one|two|ten)) an? (?:{_UNITS})\b",
    "where it is (for if)": rf"\b[Ww]here (?:{_AFTER_WHERE})\b",
    "picture": r"\bpictures?\b",
    "sound (for audio)": r"\bsounds?\b",
    "stands, lies": r"\b(?:stands?|stood|standing|lies|lay|lying)\b(?! out)",
    "is had": r"\b(?:is|are|was|be) had\b",
    "begun, goes on, taken away": r"\bbegun\b|\bgo(?:es|ing)? on\b|\bt(?:ake|akes|aken|ook) away\b",
    "rising, falling": r"\b(?:rising|falling)\b",
    "doubtful": r"\bdoubtful\b",
    "made up for": r"\b(?:made|make|makes) up for\b",
}
NAMES = ("found", "own", "one", "them")
GENERATED = re.compile(r"\.min\.|_tables\.h$|\.svg$|\.json$|golden/.*\.(?:tsv|gz)$|run\.schema")
SUFFIXES = {".py", ".pyi", ".md", ".js", ".css", ".html", ".j2", ".cpp", ".h", ".yaml", ".toml", ".txt", ""}
# Files with texts of samples, word lists and this project's own glossary.
DATA = (
    "CONTRIBUTING.md",
    "docs/metrics/spice.md",
    "native/english_stemmer.cpp",
    "native/porter_stemmer.cpp",
    "src/multimodal_eval/evaluation/metrics/hallucination_metric.py",
    "src/multimodal_eval/text/scene_graphs/",
    "tests/contests/",
    "tests/data/readers/flickr8k_folder.py",
    "tests/evaluation/metrics/test_hallucination_metric.py",
    "tests/golden/",
    "tests/lint/test_texts.py",
    "tests/models/clip/test_preprocessing.py",
    "tests/text/scene_graphs/",
    "tests/text/test_alignment.py",
    "tests/tools/test_words.py",
    "tools/demo_dialogues.yaml",
    "tools/shapes_clip/",
    "tools/words.py",
)


@dataclass(frozen=True)
class Place:
    """Where a phrase or a name was met."""

    what: str
    file: str
    line: int
    text: str


def tracked_files(paths: list[str]) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard", "--", *paths], capture_output=True, check=True
    )
    names = [name for name in listed.stdout.decode().split("\0") if name]
    files = [Path(name) for name in names if Path(name).suffix in SUFFIXES and not GENERATED.search(name)]
    return [file for file in files if file.is_file()]


def phrases_in(file: Path, text: str) -> Iterator[Place]:
    in_table = False
    for number, line in enumerate(text.splitlines(), 1):
        in_table = line.startswith("──") or (in_table and line.strip() not in ("", "```"))
        if in_table:  # a table in a transcript shows texts of samples
            continue
        for what, pattern in PHRASES.items():
            for _ in re.finditer(pattern, line):
                yield Place(what, str(file), number, line.strip())


def names_in(file: Path, text: str) -> Iterator[Place]:
    """Variables, arguments, fields and functions with a name that says nothing."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                pass
            case ast.FunctionDef(name=name):
                pass
            case _:
                continue
        if name.strip("_") in NAMES:
            yield Place(f"name `{name.strip('_')}`", str(file), node.lineno, name)


def places(paths: list[str]) -> Iterator[Place]:
    for file in tracked_files(paths):
        text = file.read_text(errors="replace")
        if not str(file).startswith(DATA):
            yield from phrases_in(file, text)
        if file.suffix == ".py":
            yield from names_in(file, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print every place")
    parser.add_argument("paths", nargs="*", default=[])
    asked = parser.parse_args()
    met = list(places(asked.paths))
    if asked.list:
        for place in met:
            print(f"{place.file}:{place.line}: [{place.what}] {place.text[:140]}")
    counts = Counter(place.what for place in met)
    files: dict[str, set[str]] = {}
    for place in met:
        files.setdefault(place.what, set()).add(place.file)
    for what in [*PHRASES, *(f"name `{name}`" for name in NAMES)]:
        print(f"{what:32} {counts[what]:6,} in {len(files.get(what, ())):4,} files")


if __name__ == "__main__":
    main()
