"""Write unicode_classes.h: the categories and letter cases of characters that sacrebleu and Python look at.

    python native/unicode_classes.py > native/unicode_classes.h

The categories come from the package `regex`, which sacrebleu uses; letter cases and `\\w` from the running Python.
"""

from __future__ import annotations

import re
import sys
import unicodedata

import regex
from unicode_tables import ranges, write_pairs


def is_ignored(character: str) -> bool:
    """Whether Python skips the character when it decides on the form of a capital sigma."""
    return f"aΣ{character}a".lower()[1] == "σ" and f"aΣ{character}".lower()[1] == "ς"


def has_case(character: str) -> bool:
    return f"aΣ{character}".lower()[1] == "σ"


def main() -> None:
    print(f"// Made by unicode_classes.py with regex {regex.__version__} and Unicode {unicodedata.unidata_version}.")
    print("// Do not edit.")
    print("#pragma once\n\nnamespace mmeval {\n")
    for name, category in (("kPunctuation", "P"), ("kNumber", "N"), ("kSymbol", "S")):
        pattern = regex.compile(rf"\p{{{category}}}")
        write_pairs(name, f"Category {category}.", ranges(lambda c, p=pattern: p.match(c) is not None))
    word = re.compile(r"\w")
    write_pairs("kRegexWord", "What \\w matches in Python.", ranges(lambda c: word.match(c) is not None))
    write_pairs("kCased", "Letters with a case.", ranges(has_case))
    write_pairs("kCaseIgnorable", "Skipped when looking for the end of a word.", ranges(is_ignored))
    print("}  // namespace mmeval")


if __name__ == "__main__":
    sys.exit(main())
