"""Writes ptb_tables.h: the rules of the Penn Treebank tokenizer as transition tables over classes of characters.

    python native/ptb_rules native/ptb_tables.h

Standard library only, no clock, no hash order: the same file comes out always.
"""

from __future__ import annotations

import sys

from automata import Nfa, Parser, accepting_last, determinise, merge_columns, minimise, same_columns
from characters import ATOM, atoms_of_bmp, lower_map
from rules import NAMES, RULES


def numbers(values, per_line=40):
    lines = []
    for i in range(0, len(values), per_line):
        lines.append(",".join(str(v) for v in values[i : i + per_line]))
    return ",\n".join(lines)


def pages(values, size=256):
    """Two-level form of a 65,536-entry table: page numbers and the distinct pages."""
    distinct, index = [], []
    for i in range(0, len(values), size):
        page = tuple(values[i : i + size])
        if page not in distinct:
            distinct.append(page)
        index.append(distinct.index(page))
    return index, [v for page in distinct for v in page]


def packed(rows, ncls):
    """Each row as its differences from the most similar of the rows just before it."""
    out = []
    for n, row in enumerate(rows):
        best, best_at = [k for k in range(ncls) if row[k]], len(rows)
        for at in list(range(max(0, n - 150), n)) + list(range(0, max(0, n - 150), 23)):
            other = rows[at]
            diff = [k for k in range(ncls) if row[k] != other[k]]
            if len(diff) < len(best):
                best, best_at = diff, at
        out.append([best_at, len(best)] + [v for k in best for v in (k, row[k])])
    return out


def main():
    nfa = Nfa()
    start = nfa.state()
    actions = []
    for number, (action, pattern) in enumerate(RULES, 1):
        first = nfa.state()
        nfa.eps[start].append(first)
        nfa.accept[nfa.build(Parser(pattern, NAMES).parse(), first)] = number
        if action not in actions:
            actions.append(action)
    cls, ncls = same_columns(nfa)
    rows, accept = determinise(nfa, start, cls, ncls)
    raw = len(rows)
    # states that accept with the same action are alike for us
    accept = [actions.index(RULES[a - 1][0]) + 1 if a else 0 for a in accept]
    rows, accept = minimise(rows, accept)
    rows, accept = accepting_last(rows, accept)
    rows, cls, ncls = merge_columns(rows, cls, ncls)
    atom = atoms_of_bmp()
    codes = [cls[a] for a in atom]
    index, page = pages(codes)
    low = lower_map()
    lindex, lpage = pages([low.get(c, c) - c & 0xFFFF for c in range(0x10000)])
    sys.stderr.write("%d states (%d before merging), %d classes\n" % (len(rows), raw, ncls))
    out = open(sys.argv[1] if len(sys.argv) > 1 else "ptb_tables.h", "w", encoding="ascii", newline="\n")
    w = out.write
    w("// Made by ptb_rules. Do not edit.\n#pragma once\n#include <cstdint>\n\n")
    w("namespace mmeval {\nnamespace ptb {\n\n")
    w("enum Action : uint8_t {\n    kNone,\n" + "".join(f"    k{a},\n" for a in actions) + "};\n\n")
    w(
        "constexpr int kStates = %d;\nconstexpr int kClasses = %d;\nconstexpr int kEolClass = %d;\n"
        % (len(rows), ncls, cls[ATOM["eol"]])
    )
    w(
        "constexpr int kJunkClass = %d;\nconstexpr int kStart = 1;\nconstexpr int kFirstAccept = %d;  // states from here on end a token\n\n"
        % (cls[ATOM["junk"]], next(n for n, a in enumerate(accept) if a))
    )
    w(
        f"// action of the token that ends in a state, 0 = none\nconstexpr uint8_t kAccept[kStates] = {{\n{numbers(accept)}}};\n\n"
    )
    w("// class of a code point below 0x10000: kClassPage[kClassIndex[c >> 8] * 256 + (c & 255)]\n")
    w(f"constexpr uint8_t kClassIndex[256] = {{\n{numbers(index)}}};\n\n")
    w(f"constexpr uint8_t kClassPage[] = {{\n{numbers(page)}}};\n\n")
    w("// lower case minus the code point, modulo 65536, stored the same way\n")
    w(f"constexpr uint8_t kLowerIndex[256] = {{\n{numbers(lindex)}}};\n\n")
    w(f"constexpr uint16_t kLowerPage[] = {{\n{numbers(lpage)}}};\n\n")
    w(
        "// The transition table, row by row, as differences: the number of an earlier row (or kStates for an empty one),\n"
        "// the number of changed entries, then for each its class and new next state.\n"
    )
    w("constexpr uint16_t kPackedRows[] = {{\n{}}};\n\n".format(",\n".join(",".join(map(str, r)) for r in packed(rows, ncls))))
    w("}  // namespace ptb\n}  // namespace mmeval\n")
    out.close()


if __name__ == "__main__":
    main()
