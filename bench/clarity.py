"""Multi-annotator scoring of up to a million rows: python bench/clarity.py

Random labels with gaps, three annotators: scoring from lists of strings, and the array functions alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import harness

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


def works(rows: int) -> dict[str, Callable[[], Any]]:
    rng = random.Random(0)
    cells = [*EVASION_LABELS, "partial", "2.3 Partial/half-answer", "", "2.5 Contradictory"]
    predictions = rng.choices(EVASION_LABELS, k=rows)
    annotations = [rng.choices(cells, k=ANNOTATORS) for _ in range(rows)]
    golds = [row[0] for row in annotations]
    arrays = EVASION.encode(predictions).codes, EVASION.encode_rows(annotations).codes, EVASION_LABELS
    return {
        "arrays: any-match": partial(score_any_match, *arrays),
        "arrays: any-match, charge all": partial(score_any_match, *arrays, charge="all"),
        "arrays: majority vote": partial(score_majority, *arrays),
        "arrays: soft": partial(score_soft, *arrays),
        "arrays: human ceiling": partial(human_ceiling, *arrays[1:]),
        "texts: strict": partial(compute_evasion_f1_strict, predictions, golds),
        "texts: any-match": partial(compute_evasion_f1_multiannotator, predictions, annotations),
        "texts: majority vote": partial(compute_evasion_f1_majority, predictions, annotations),
        "texts: evaluate_all": partial(evaluate_all, predictions, None, golds, None, annotations),
    }


def main() -> None:
    jobs = {(name, rows): partial(harness.timed, work) for rows in ROWS for name, work in works(rows).items()}
    harness.print_table("multi-annotator scores", harness.in_turn(jobs, 3), unit="rows")


if __name__ == "__main__":
    main()
