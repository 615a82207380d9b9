"""pycocoevalcap: the COCO caption evaluation, with its Java tokenizer and METEOR."""

from __future__ import annotations

from typing import Any

PACKAGES = ("pycocoevalcap",)


def captions(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.meteor.meteor import Meteor
    from pycocoevalcap.rouge.rouge import Rouge
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    def tokens(texts: list[list[str]]) -> Any:
        return PTBTokenizer().tokenize({image: [{"caption": text} for text in row] for image, row in enumerate(texts)})

    references, candidates = tokens(data["references"]), tokens([[text] for text in data["candidates"]])
    scores: dict[str, Any] = {}
    for number, value in enumerate(Bleu(4).compute_score(references, candidates)[0], 1):
        scores[f"BLEU-{number}"] = value
    scores["METEOR"] = Meteor().compute_score(references, candidates)[0]
    scores["ROUGE-L"] = float(Rouge().compute_score(references, candidates)[0])
    scores["CIDEr"] = float(Cider().compute_score(references, candidates)[0])
    return {"pycocoevalcap": scores}
