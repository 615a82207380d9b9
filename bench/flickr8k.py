"""Our metrics against the human judgments of Flickr8k, compared with the published figures.

    python bench/flickr8k.py FOLDER

FOLDER contains ExpertAnnotations.txt, CrowdFlowerAnnotations.txt and Flickr8k.token.txt, plain or .gz. METEOR needs
`mmeval fetch meteor-1.5-en`, SPICE `mmeval fetch spice`. Exits with 1 if a figure differs by more than 0.1 (of 100); of
SPICE, whose parser is not the original's, by more than 1.5.

The figures are Kendall's tau-c (expert) and tau-b (CrowdFlower) times 100, with the protocol of Hessel et al. (2021),
CLIPScore, appendix A.
"""

from __future__ import annotations

import sys
import time

from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.run.meta import Request, meta_evaluate

TOLERANCE = 0.1
TOLERANCES = {"spice": 1.5}
NAMES = {
    "bleu.bleu_1": "BLEU-1",
    "bleu": "BLEU-4",
    "rouge_l": "ROUGE-L",
    "meteor": "METEOR",
    "cider_d": "CIDEr",
    "spice": "SPICE",
}
PUBLISHED = {
    "flickr8k-expert": (
        "tau_c",
        {"bleu.bleu_1": 32.32, "bleu": 30.78, "rouge_l": 32.31, "meteor": 41.82, "cider_d": 43.89, "spice": 44.89},
    ),
    "flickr8k-cf": (
        "tau_b",
        {"bleu.bleu_1": 17.95, "bleu": 16.86, "rouge_l": 19.90, "meteor": 22.27, "cider_d": 24.62},
    ),
}


def agrees(folder: str, kind: str) -> bool:
    coefficient, published = PUBLISHED[kind]
    start = time.perf_counter()
    results = meta_evaluate(folder, Request(format_in=kind, metrics=tuple(published)))
    seconds = time.perf_counter() - start
    print(f"\n{kind}, {coefficient} x 100, {results.n_judgments:,} judgments, {seconds:.1f} s")
    print(f"  {'':<8} {'ours':>8} {'95 % interval':>17} {'published':>10} {'difference':>11}")
    fine = True
    for name, theirs in published.items():
        figure = results.metrics[name][coefficient]
        ours, low, high = (100 * (end or 0.0) for end in (figure.value, figure.low, figure.high))
        verdict = "" if abs(ours - theirs) <= TOLERANCES.get(name, TOLERANCE) else "   OFF"
        fine = fine and not verdict
        print(f"  {NAMES[name]:<8} {ours:8.3f} {low:8.2f} …{high:7.2f} {theirs:10.2f} {ours - theirs:+11.3f}{verdict}")
    return fine


def main(folder: str) -> int:
    try:
        verdicts = [agrees(folder, kind) for kind in PUBLISHED]
    except MultimodalEvalError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\nall as published" if all(verdicts) else "\nNOT as published")
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
