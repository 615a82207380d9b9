"""Drop-in for pycocoevalcap: the same class, keys and digits, without Java and two orders of magnitude faster.

    from multimodal_eval.coco import COCOEvalCap      # instead of: from pycocoevalcap.eval import COCOEvalCap

    evaluation = COCOEvalCap(coco, coco_result)       # pycocotools objects, file names, or loaded JSON
    evaluation.params["image_id"] = coco_result.getImgIds()
    evaluation.evaluate()
    evaluation.eval["CIDEr"], evaluation.imgToEval[42]["ROUGE_L"]

Scores are those of pycocoevalcap's Bleu, Rouge and Cider on its own tokens. METEOR and SPICE are not among them yet.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multimodal_eval._native import Captions
from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.evaluation.bleu import corpus_bleu
from multimodal_eval.text.tokenizers import check_tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLEU_NAMES = ("Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4")


@dataclass(frozen=True)
class CaptionScores:
    """Scores by pycocoevalcap's names: one array of per-image values each, and the corpus figures."""

    per_image: dict[str, NDArray[np.float64]]
    corpus: dict[str, float]


def caption_scores(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenizer: str = "ptb",
    threads: int | None = None,
) -> CaptionScores:
    """BLEU-1 to 4, ROUGE-L and CIDEr(-D) of a set of captions, the document frequencies taken from its references.

    `threads` defaults to the number of cores; the digits do not depend on it.
    """
    _refuse_unfit(candidates, references)
    used = threads if threads is not None else os.cpu_count() or 1
    captions = Captions(list(candidates), [list(texts) for texts in references], check_tokenizer(tokenizer), used)
    bleu, stats, cider = captions.bleu_and_cider_d(captions.document_frequencies())
    rouge = captions.rouge_l()
    sums = stats.sum(axis=0)  # whole numbers: exact in any order
    per_image = {name: bleu[:, order] for order, name in enumerate(BLEU_NAMES)}
    corpus = {name: corpus_bleu(sums, order) for order, name in enumerate(BLEU_NAMES, 1)}
    for name, values in (("ROUGE_L", rouge), ("CIDEr", cider)):
        per_image[name] = values
        corpus[name] = fsum(values) / len(values)
    return CaptionScores(per_image, corpus)


def _refuse_unfit(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if len(candidates) != len(references):
        message = f"there are {len(candidates)} candidates and {len(references)} lists of references"
        raise InputError([Problem(code="LENGTH", message=message)])
    if not candidates:
        raise InputError([Problem(code="EMPTY", message="there are no captions")])
    empty = [number for number, texts in enumerate(references, 1) if not texts]
    if empty:
        problems = [
            Problem(code="NO_REFERENCE", message="the image has no references", line=number) for number in empty
        ]
        raise InputError(problems)


class COCOEvalCap:
    """Evaluates results against annotations, with the attributes that pycocoevalcap's class has."""

    def __init__(self, coco: Any, cocoRes: Any) -> None:  # noqa: N803 - pycocoevalcap's name
        self.evalImgs: list[dict[str, Any]] = []
        self.eval: dict[str, float] = {}
        self.imgToEval: dict[Any, dict[str, Any]] = {}
        self.coco, self.cocoRes = coco, cocoRes
        self._references, self._results = _captions_by_image(coco), _captions_by_image(cocoRes)
        self.params: dict[str, Any] = {"image_id": list(self._references)}

    def evaluate(self) -> None:
        """Score the images of `params["image_id"]`, print the corpus figures, fill `eval` and `imgToEval`."""
        image_ids = list(self.params["image_id"])
        self._refuse_incomplete(image_ids)
        scores = caption_scores(
            [self._results[image][0] for image in image_ids], [self._references[image] for image in image_ids]
        )
        self.imgToEval = {image: {"image_id": image} for image in image_ids}
        for name, values in scores.per_image.items():
            for image, value in zip(image_ids, values.tolist(), strict=True):
                self.imgToEval[image][name] = value
        self.eval = dict(scores.corpus)
        self.evalImgs = list(self.imgToEval.values())
        for name, figure in self.eval.items():
            sys.stdout.write(f"{name}: {figure:.3f}\n")

    def _refuse_incomplete(self, image_ids: Sequence[Any]) -> None:
        """Every image needs references and exactly one result; pycocoevalcap stops at the first that has not."""
        problems = []
        for image in image_ids:
            if not self._references.get(image):
                problems.append(Problem(code="NO_REFERENCE", message="the image has no references", id=str(image)))
            found = len(self._results.get(image, ()))
            if found != 1:
                message = f"the image has {found} results and needs one"
                hint = 'Set params["image_id"] to the images that have results.' if not found else None
                code = "DUPLICATE" if found else "UNMATCHED"
                problems.append(Problem(code=code, message=message, id=str(image), hint=hint))
        if problems:
            raise InputError(problems)


def _captions_by_image(source: Any) -> dict[Any, list[str]]:
    """Captions by image id, from a pycocotools object, a file, or loaded JSON (annotations or a list of results)."""
    if isinstance(source, str | Path):
        import msgspec

        source = msgspec.json.decode(Path(source).read_bytes())
    found: dict[Any, list[str]] = {}
    if hasattr(source, "imgToAnns"):
        for image in source.getImgIds():
            found[image] = [annotation["caption"] for annotation in source.imgToAnns[image]]
        return found
    annotations = source["annotations"] if isinstance(source, Mapping) else source
    for annotation in annotations:
        found.setdefault(annotation["image_id"], []).append(annotation["caption"])
    return found
