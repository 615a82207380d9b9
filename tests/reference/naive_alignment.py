"""METEOR's staged alignment by its definition: it tries every one-to-one set of matches.

The best set has the most exact matches, then the most by stem, then the most by synset, then the fewest crossings, then
the fewest chunks, then the leftmost matches.
"""

from __future__ import annotations

from collections.abc import Iterator

Match = tuple[int, int]
Word = tuple[str, str, frozenset[int]]  # the word, its stem, its synsets


def level(a: Word, b: Word) -> int | None:
    """0 for the same word, 1 for the same stem, 2 for a shared synset, None for no match."""
    if a[0] == b[0]:
        return 0
    if a[1] == b[1]:
        return 1
    return 2 if a[2] & b[2] else None


def crossings(matches: list[Match]) -> int:
    return sum((i - k) * (j - m) < 0 for x, (i, j) in enumerate(matches) for k, m in matches[x + 1 :])


def chunks(matches: list[Match]) -> int:
    return sum((i - 1, j - 1) not in matches for i, j in matches)


def one_to_one_sets(pairs: dict[int, list[int]], taken: frozenset[int] = frozenset()) -> Iterator[list[Match]]:
    if not pairs:
        yield []
        return
    (i, partners), rest = next(iter(pairs.items())), dict(list(pairs.items())[1:])
    for j in partners:
        if j not in taken:
            yield from ([(i, j), *others] for others in one_to_one_sets(rest, taken | {j}))
    yield from one_to_one_sets(rest, taken)


def align(candidate: list[Word], reference: list[Word]) -> tuple[list[tuple[int, int, int]], int, int]:
    """Matches with their stage, crossings, chunks."""
    levels = {
        (i, j): stage
        for i, word in enumerate(candidate)
        for j, other in enumerate(reference)
        if (stage := level(word, other)) is not None
    }
    pairs: dict[int, list[int]] = {}
    for i, j in levels:
        pairs.setdefault(i, []).append(j)

    def cost(matches: list[Match]) -> tuple[list[int], int, int, list[Match]]:
        counts = [-sum(levels[match] == stage for match in matches) for stage in range(3)]
        return counts, crossings(matches), chunks(matches), matches

    _, crossing_count, chunk_count, best = min(map(cost, one_to_one_sets(pairs)))
    return [(i, j, levels[i, j]) for i, j in best], crossing_count, chunk_count
