"""METEOR's staged alignment straight from its definition: every one-to-one set of matches is tried."""

from __future__ import annotations

from collections.abc import Iterator

Match = tuple[int, int]
Word = tuple[str, str, frozenset[int]]  # the word, its stem, its synsets


def related(stage: int, a: Word, b: Word) -> bool:
    return bool(a[2] & b[2]) if stage == 2 else a[stage] == b[stage]


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
    stages: dict[Match, int] = {}
    for stage in range(3):
        fixed = sorted(stages)
        free = [j for j in range(len(reference)) if all(j != used for _, used in fixed)]
        pairs = {
            i: [j for j in free if related(stage, word, reference[j])]
            for i, word in enumerate(candidate)
            if all(i != used for used, _ in fixed)
        }
        sets = list(one_to_one_sets({i: partners for i, partners in pairs.items() if partners}))
        most = max(map(len, sets))
        whole = [(sorted(fixed + new), new) for new in sets if len(new) == most]
        _, _, best = min((crossings(both), chunks(both), new) for both, new in whole)
        stages |= dict.fromkeys(best, stage)
    matches = sorted(stages)
    return [(i, j, stages[i, j]) for i, j in matches], crossings(matches), chunks(matches)
