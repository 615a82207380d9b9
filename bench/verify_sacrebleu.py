"""BLEU, TER and their paired tests on the WMT 2017 systems of sacrebleu's tests, beside the published figures.

    python bench/verify_sacrebleu.py wmt17_en_de_systems.pkl.bz2

The file is in the source archive of sacrebleu: `pip download --no-binary :all: --no-deps sacrebleu==2.6.0`, in test/.
It is a pickle: open only one that you trust. The p-values are those in sacrebleu's test_significance.py: of multeval
with 10,000 trials of approximate randomization, for BLEU and TER. With p near .5, two such estimates differ by up to
.014 in 95 % of all cases. Also compares the corpus scores with sacrebleu's if it is installed.
"""

from __future__ import annotations

import bz2
import pickle
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from multimodal_eval import Rows
from multimodal_eval.core.metric import configured
from multimodal_eval.evaluation.metrics_registry import resolve
from multimodal_eval.stats.intervals import interval
from multimodal_eval.stats.paired import compare

MULTEVAL = {
    "C-3MA.4959": (0.0001, 0.0001),
    "FBK.4870": (0.0218, 0.09569),
    "KIT.4950": (0.0410, 0.0002),
    "LMU-nmt-reranked.4934": (0.09029, 0.0001),
    "LMU-nmt-single.4893": (0.58494, 0.0054),
    "online-A.0": (0.0001, 0.0001),
    "online-B.0": (0.94111, 0.82242),
    "online-F.0": (0.0001, 0.0001),
    "online-G.0": (0.0001, 0.0001),
    "PROMT-Rule-based.4735": (0.0001, 0.0001),
    "RWTH-nmt-ensemble.4921": (0.0207, 0.07539),
    "SYSTRAN.4847": (0.59914, 0.0001),
    "TALP-UPC.4834": (0.0001, 0.0001),
    "uedin-nmt.4722": (0.0001, 0.0001),
    "xmu.4910": (0.71073, 0.0001),
}


def main(file: str) -> None:
    with bz2.open(file) as stream:
        *systems, (_, streams) = pickle.load(stream)
    references = [list(texts) for texts in zip(*streams, strict=True)]
    metrics: list[Any] = [configured(resolve("sacrebleu"), {"tokenizer": "none"}), resolve("ter")]
    estimates = {
        name.removeprefix("newstest2017.").removesuffix(".en-de"): [
            metric.aggregate(Rows(*metric.sentence_scores(list(texts), references))) for metric in metrics
        ]
        for name, texts in systems
    }
    baseline, *others = estimates
    bound = interval(estimates[baseline][0])
    print(f"{baseline}: BLEU {estimates[baseline][0].value:.4f}, 95 % interval {bound.low:.3f} to {bound.high:.3f}")
    worst = [0.0, 0.0]
    for name in others:
        pairs = compare(estimates[baseline], estimates[name])
        shown = []
        for number, (pair, published) in enumerate(zip(pairs, MULTEVAL[name], strict=True)):
            worst[number] = max(worst[number], abs((pair.p_value or 0.0) - published))
            shown.append(f"{estimates[name][number].value:8.4f}  p {pair.p_value:.4f} (multeval {published:.4f})")
        print(f"{name:24} BLEU {shown[0]}   TER {shown[1]}")
    print(f"largest difference of p: BLEU {worst[0]:.4f}, TER {worst[1]:.4f}")
    if find_spec("sacrebleu") is not None:
        bleu = import_module("sacrebleu.metrics").BLEU(tokenize="none", references=streams)
        equal = [
            bleu.corpus_score(list(texts), None).score == estimate[0].value
            for (_, texts), estimate in zip(systems, estimates.values(), strict=True)
        ]
        print(f"BLEU equal to sacrebleu's, to the last bit: {sum(equal)} of {len(equal)} systems")


if __name__ == "__main__":
    main(sys.argv[1])
