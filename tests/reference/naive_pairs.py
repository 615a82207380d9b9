"""Statistics of pairs of judgments, computed pair by pair."""

from __future__ import annotations

from itertools import combinations


def naive_counts(human, metric, epsilon=0.0):
    """For every item: concordant, discordant, tied for people, tied for the metric, tied for both."""
    rows = [[0] * 5 for _ in human]
    for i, j in combinations(range(len(human)), 2):
        people, tied = human[i] - human[j], abs(metric[i] - metric[j]) <= epsilon
        kinds = []
        if people == 0:
            kinds.append(2)
        if tied:
            kinds.append(3)
        if people == 0 and tied:
            kinds.append(4)
        if people != 0 and not tied:
            kinds.append(0 if (people > 0) == (metric[i] > metric[j]) else 1)
        for kind in kinds:
            rows[i][kind] += 1
            rows[j][kind] += 1
    return rows


def naive_calibration(human, metric):
    """(epsilon, agreeing pairs) after trying every difference; ties go to the smallest epsilon."""
    pairs = list(combinations(range(len(human)), 2))
    best = (0, 0.0)
    for epsilon in sorted({0.0, *(abs(metric[i] - metric[j]) for i, j in pairs)}):
        rows = naive_counts(human, metric, epsilon)
        best = min(best, (-sum(row[0] + row[4] for row in rows) // 2, epsilon))
    return best[1], -best[0]
