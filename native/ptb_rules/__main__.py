"""Write ptb_tables.h: the rules of the Penn Treebank tokenizer as transition tables over classes of characters.

    python native/ptb_rules native/ptb_tables.h

The output is deterministic. Only the standard library is used.
"""

from __future__ import annotations

import sys
from pathlib import Path

from automata import Nfa, Parser, accepting_last, determinise, merge_columns, minimise, same_columns
from characters import ATOM, atoms_of_bmp, lower_map
from rules import NAMES, RULES

BMP = 0x10000


def automaton():
    """The transition rows, the accepting action of each state (0: none), the class of each atom, and the actions."""
    nfa = Nfa()
    start = nfa.state()
    for number, (_, pattern) in enumerate(RULES, 1):
        first = nfa.state()
        nfa.eps[start].append(first)
        nfa.accept[nfa.build(Parser(pattern, NAMES).parse(), first)] = number
    classes, count = same_columns(nfa)
    rows, rules = determinise(nfa, start, classes, count)
    # states that accept with the same action are equivalent here
    actions = list(dict.fromkeys(action for action, _ in RULES))
    accept = [actions.index(RULES[rule - 1][0]) + 1 if rule else 0 for rule in rules]
    rows, accept = accepting_last(*minimise(rows, accept))
    rows, classes, _ = merge_columns(rows, classes, count)
    return rows, accept, classes, actions


def pages(values, size=256):
    """A table of 65,536 entries in two levels: page numbers and the distinct pages."""
    distinct, index = [], []
    for i in range(0, len(values), size):
        page = tuple(values[i : i + size])
        if page not in distinct:
            distinct.append(page)
        index.append(distinct.index(page))
    return index, [value for page in distinct for value in page]


def packed(rows):
    """Each row as its differences from the most similar of some earlier rows."""
    out = []
    for n, row in enumerate(rows):
        best, best_at = [k for k, target in enumerate(row) if target], len(rows)
        for at in [*range(max(0, n - 150), n), *range(0, max(0, n - 150), 23)]:
            different = [k for k, target in enumerate(row) if target != rows[at][k]]
            if len(different) < len(best):
                best, best_at = different, at
        out.append([best_at, len(best), *(value for k in best for value in (k, row[k]))])
    return out


def numbers(values, per_line=40):
    rows = [values[i : i + per_line] for i in range(0, len(values), per_line)]
    return ",\n".join(",".join(map(str, row)) for row in rows)


def header():
    """The text of ptb_tables.h."""
    rows, accept, classes, actions = automaton()
    class_index, class_page = pages([classes[atom] for atom in atoms_of_bmp()])
    lower = lower_map()
    lower_index, lower_page = pages([lower.get(c, c) - c & 0xFFFF for c in range(BMP)])
    names = "".join(f"    k{action},\n" for action in actions)
    row_texts = ",\n".join(",".join(map(str, row)) for row in packed(rows))
    return f"""// Made by ptb_rules. Do not edit.
#pragma once
#include <cstdint>

namespace mmeval {{
namespace ptb {{

enum Action : uint8_t {{
    kNone,
{names}}};

constexpr int kStates = {len(rows)};
constexpr int kClasses = {len(rows[0])};
constexpr int kEolClass = {classes[ATOM["eol"]]};
constexpr int kJunkClass = {classes[ATOM["junk"]]};
constexpr int kStart = 1;
constexpr int kFirstAccept = {next(n for n, action in enumerate(accept) if action)};  // states from here on end a token

// action of the token that ends in a state, 0 = none
constexpr uint8_t kAccept[kStates] = {{
{numbers(accept)}}};

// class of a code point below 0x10000: kClassPage[kClassIndex[c >> 8] * 256 + (c & 255)]
constexpr uint8_t kClassIndex[256] = {{
{numbers(class_index)}}};

constexpr uint8_t kClassPage[] = {{
{numbers(class_page)}}};

// lower case minus the code point, modulo 65536, stored the same way
constexpr uint8_t kLowerIndex[256] = {{
{numbers(lower_index)}}};

constexpr uint16_t kLowerPage[] = {{
{numbers(lower_page)}}};

// The transition table, row by row, as differences: the number of an earlier row (or kStates for an empty one),
// the number of changed entries, then for each its class and new next state.
constexpr uint16_t kPackedRows[] = {{
{row_texts}}};

}}  // namespace ptb
}}  // namespace mmeval
"""


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(header(), encoding="ascii", newline="\n")
