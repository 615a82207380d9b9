"""Write unicode_tables.h: which characters are words or ideographs, and their lower case.

    python native/unicode_tables.py > native/unicode_tables.h

The data come from the Unicode database of the running Python. The header names its version.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable

LAST = 0x10FFFF
# Written without spaces between words: one token per character.
IDEOGRAPHS = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA", "KATAKANA", "BOPOMOFO")


def ranges(is_included: Callable[[str], bool]) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for code in range(LAST + 1):
        if 0xD800 <= code < 0xE000 or not is_included(chr(code)):
            continue
        if pairs and pairs[-1][1] == code - 1:
            pairs[-1] = (pairs[-1][0], code)
        else:
            pairs.append((code, code))
    return pairs


def is_ideograph(character: str) -> bool:
    return unicodedata.name(character, "").startswith(IDEOGRAPHS) and unicodedata.category(character)[0] == "L"


def lower_cases() -> list[tuple[int, int]]:
    """Characters whose lower case is a single other character."""
    pairs = ((code, chr(code).lower()) for code in range(0x80, LAST + 1) if not 0xD800 <= code < 0xE000)
    return [(code, ord(lower)) for code, lower in pairs if len(lower) == 1 and ord(lower) != code]


def write_pairs(name: str, comment: str, pairs: Iterable[tuple[int, int]]) -> None:
    print(f"// {comment}")
    print(f"constexpr char32_t {name}[][2] = {{")
    line = "   "
    for first, second in pairs:
        item = f" {{0x{first:X}, 0x{second:X}}},"
        if len(line) + len(item) > 118:
            print(line)
            line = "   "
        line += item
    print(line)
    print("};\n")


def main() -> None:
    print(f"// Made by unicode_tables.py from Unicode {unicodedata.unidata_version}. Do not edit.")
    print("#pragma once\n\nnamespace mmeval {\n")
    write_pairs("kWordRanges", "Letters, marks and numbers.", ranges(lambda c: unicodedata.category(c)[0] in "LMN"))
    write_pairs("kIdeographRanges", "Han, Kana and Bopomofo letters.", ranges(is_ideograph))
    write_pairs("kLowerCase", "Character and its lower case, beyond ASCII.", lower_cases())
    print("}  // namespace mmeval")


if __name__ == "__main__":
    sys.exit(main())
