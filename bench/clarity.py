"""Multi-annotator scoring of a million rows: python bench/clarity.py

Random labels with gaps, three annotators. Measures scoring from lists of strings, and the array functions alone. The
growth is the time for ten times as many rows, divided by ten times the time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from multimodal_eval.contests.clarity.labels import EVASION, EVASION_LABELS
from multimodal_eval.contests.clarity.scores import (
    compute_evasion_f1_majority,
    compute_evasion_f1_multiannotator,
    compute_evasion_f1_strict,
    evaluate_all,
)
from multimodal_eval.stats.multi_annotator import human_ceiling, score_any_match, score_majority, score_soft

ROWS = (10_000, 100_000, 1_000_000)
ANNOTATORS = 3


def data(rows: int) -> tuple[list[str], list[list[str]]]:
    rng = random.Random(0)
    cells = [*EVASION_LABELS, "partial", "2.3 Partial/half-answer", "", "2.5 Contradictory"]
    return rng.choices(EVASION_LABELS, k=rows), [rng.choices(cells, k=ANNOTATORS) for _ in range(rows)]


def seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def timings(rows: int) -> dict[str, float]:
    predictions, annotations = data(rows)
    golds = [row[0] for row in annotations]
    predicted, labels = EVASION.encode(predictions).codes, EVASION.encode_rows(annotations).codes
    works: dict[str, Callable[[], Any]] = {
        "arrays: any-match": lambda: score_any_match(predicted, labels, EVASION_LABELS),
        "arrays: any-match, charge all": lambda: score_any_match(predicted, labels, EVASION_LABELS, charge="all"),
        "arrays: majority vote": lambda: score_majority(predicted, labels, EVASION_LABELS),
        "arrays: soft": lambda: score_soft(predicted, labels, EVASION_LABELS),
        "arrays: human ceiling": lambda: human_ceiling(labels, EVASION_LABELS),
        "texts: strict": lambda: compute_evasion_f1_strict(predictions, golds),
        "texts: any-match": lambda: compute_evasion_f1_multiannotator(predictions, annotations),
        "texts: majority vote": lambda: compute_evasion_f1_majority(predictions, annotations),
        "texts: evaluate_all": lambda: evaluate_all(predictions, None, golds, None, annotations),
    }
    return {name: seconds(work) for name, work in works.items()}


def main() -> None:
    seconds_by_rows = {rows: timings(rows) for rows in ROWS}
    print(f"{'seconds, best of 3':<32}" + "".join(f"{rows:>12,}" for rows in ROWS) + f"{'growth':>10}")
    for name in seconds_by_rows[ROWS[0]]:
        times = [seconds_by_rows[rows][name] for rows in ROWS]
        print(
            f"{name:<32}" + "".join(f"{elapsed:>12.4f}" for elapsed in times) + f"{times[-1] / times[-2] / 10:>10.2f}"
        )


if __name__ == "__main__":
    main()
