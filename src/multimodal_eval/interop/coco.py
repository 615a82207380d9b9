"""Drop-in for pycocoevalcap: the same class, keys and digits, without Java and two orders of magnitude faster.

    from multimodal_eval.coco import COCOEvalCap      # instead of: from pycocoevalcap.eval import COCOEvalCap

    evaluation = COCOEvalCap(coco, coco_result)       # pycocotools objects, file names, or loaded JSON
    evaluation.params["image_id"] = coco_result.getImgIds()
    evaluation.evaluate()
    evaluation.eval["CIDEr"], evaluation.imgToEval[42]["ROUGE_L"]

Scores equal those of pycocoevalcap's Bleu, Meteor, Rouge and Cider with its tokenizer, which looks at the next caption
at the end of a caption ("reads K." before "A man" is "reads k", before "a man" it is "reads k."). METEOR needs its
data, which is downloaded once: `mmeval fetch meteor-1.5-en`. SPICE needs its parser: `mmeval fetch spice`. It is close
to that of the Java program, not equal (docs/metrics/spice.md). SPIDEr, which pycocoevalcap lacks, comes with it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multimodal_eval._native import Captions
from multimodal_eval.core.display import Displayed
from multimodal_eval.core.errors import InputError, Problem, shorten
from multimodal_eval.core.machine import cores
from multimodal_eval.core.metric import configured
from multimodal_eval.core.score import Estimate, Rows, mean_estimate
from multimodal_eval.core.scoring import aggregate_of
from multimodal_eval.evaluation.metrics.bleu import compute_bleu, corpus_bleu
from multimodal_eval.evaluation.metrics.meteor import compute_meteor
from multimodal_eval.evaluation.metrics.spice import compute_spice
from multimodal_eval.stats.intervals import Interval, interval
from multimodal_eval.text.captions import named_frequencies
from multimodal_eval.text.document_frequencies import TOO_SMALL, DocumentFrequencies
from multimodal_eval.text.parsing import open_parser
from multimodal_eval.text.scene_graphs.captions import compared_captions
from multimodal_eval.text.tokenizers import check_tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ImageId = int | str

BLEU_NAMES = ("Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4")
_HIGHEST = {"CIDEr": 10.0, "SPIDEr": 5.5}  # of the other scores: 1


@dataclass(frozen=True, repr=False)
class CaptionScores(Displayed):
    """Scores by pycocoevalcap's names: one array of per-image values each, and the corpus scores."""

    per_image: dict[str, NDArray[np.float64]]
    corpus: dict[str, float]
    estimates: dict[str, Callable[[], Estimate]]  # of the corpus scores, computed on demand
    missing: dict[str, str] = field(default_factory=dict)  # scores that these captions cannot have, and why

    @property
    def per_sample(self) -> dict[str, NDArray[np.float64]]:
        """The values per image, by the name that the scores of answers and labels have too."""
        return self.per_image

    def interval(self, name: str) -> Interval:
        """A corpus score with its standard error and 95% interval."""
        estimate = replace(self.estimates[name](), bounds=(0.0, _HIGHEST.get(name, 1.0)))
        is_mean = name not in BLEU_NAMES and name != "METEOR"
        return interval(estimate, values=self.per_image[name] if is_mean else None)


def caption_scores(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenizer: str = "ptb",
    threads: int | None = None,
    meteor: bool | None = None,
    spice: bool | None = False,
    df: str = "corpus",
) -> CaptionScores:
    """BLEU-1 to 4, METEOR 1.5, ROUGE-L, CIDEr(-D), SPICE and SPIDEr, with document frequencies from the references.

    `threads` defaults to the number of cores; the digits do not depend on it. `meteor` says whether to compute METEOR;
    by default it is computed if its data have been fetched. SPICE and SPIDEr are computed with `spice=True`, or None if
    their parser has been fetched. `df` names other document frequencies: `coco-val2014`, or a file. If the images are
    too few to count them, CIDEr and SPIDEr are left out: `missing` says why. Every caption is tokenized alone, whereas
    `COCOEvalCap` looks at the next caption, as the Java program does.
    """
    scores = _scores(candidates, references, tokenizer, threads, meteor, spice, df)
    if scores.missing:
        hint = "Score more images together, or choose other frequencies: df='coco-val2014'"
        warnings.warn(f"{' and '.join(scores.missing)} left out: {_reason(scores)} {hint}", UserWarning, stacklevel=2)
    return scores


def _reason(scores: CaptionScores) -> str:
    return next(iter(scores.missing.values()))


def _scores(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    tokenizer: str = "ptb",
    threads: int | None = None,
    meteor: bool | None = None,
    spice: bool | None = None,
    df: str = "corpus",
    *,
    are_lines: bool = False,
) -> CaptionScores:
    """`caption_scores`, also of captions that are the lines of two files: the candidates, and all references."""
    _refuse_unfit_lists(candidates, references)
    used = threads if threads is not None else cores()
    meteor_metric = configured(compute_meteor, {"tokenizer": tokenizer})
    with_meteor = meteor_metric.unavailable() is None if meteor is None else meteor
    answers, sets = list(candidates), [texts if type(texts) is list else list(texts) for texts in references]
    try:
        captions = Captions(answers, sets, check_tokenizer(tokenizer), used, are_lines=are_lines)
    except (TypeError, UnicodeEncodeError):
        raise InputError(list(_unfit_captions(candidates, references))) from None
    in_references = DocumentFrequencies(captions.document_frequencies())
    frequencies = in_references if df == "corpus" else named_frequencies(df, tokenizer)
    missing = {} if frequencies.has_weights else {"CIDEr": TOO_SMALL}
    bleu, stats, cider = captions.bleu_and_cider_d(frequencies.table)
    rouge = captions.rouge_l()
    sums = stats.sum(axis=0)  # integers: exact in any order
    per_image = {name: bleu[:, order] for order, name in enumerate(BLEU_NAMES)}
    corpus = {name: corpus_bleu(sums, order) for order, name in enumerate(BLEU_NAMES, 1)}
    estimates: dict[str, Callable[[], Estimate]] = {
        name: partial(aggregate_of(compute_bleu, f"bleu_{order}"), Rows(bleu[:, order - 1], stats))
        for order, name in enumerate(BLEU_NAMES, 1)
    }
    estimates["Bleu_4"] = partial(aggregate_of(compute_bleu), Rows(bleu[:, 3], stats))
    if with_meteor:
        rows = meteor_metric.rows_of(answers, sets, used, are_lines=are_lines)
        per_image["METEOR"], corpus["METEOR"] = rows.values, aggregate_of(meteor_metric)(rows).value
        estimates["METEOR"] = partial(aggregate_of(meteor_metric), rows)
    means = {"ROUGE_L": rouge, "CIDEr": cider}
    if compute_spice.unavailable() is None if spice is None else spice:
        means |= _spice_and_spider(answers, sets, cider, used, are_lines=are_lines)
        missing |= {"SPIDEr": TOO_SMALL} if missing else {}
    for name in missing:
        del means[name]
    for name, values in means.items():
        per_image[name] = values
        corpus[name] = fsum(values) / len(values)
        estimates[name] = partial(mean_estimate, Rows(values))
    return CaptionScores(per_image, corpus, estimates, missing)


def _spice_and_spider(
    candidates: list[str], references: list[list[str]], cider: NDArray[np.float64], threads: int, *, are_lines: bool
) -> dict[str, NDArray[np.float64]]:
    import numpy as np

    matches = compared_captions(open_parser(), candidates, references, threads=threads, are_lines=are_lines)
    spice = np.fromiter((match.all.f for match in matches), np.float64, len(candidates))
    return {"SPICE": spice, "SPIDEr": (spice + cider) / 2}


def _refuse_unfit_lists(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if len(candidates) != len(references):
        message = f"there are {len(candidates)} candidates but {len(references)} lists of references"
        raise InputError([Problem(code="LENGTH", message=message)])
    if not candidates:
        raise InputError([Problem(code="EMPTY", message="there are no captions")])
    problems = []
    for number, texts in enumerate(references, 1):
        if type(texts) is list and texts:
            continue
        if isinstance(texts, str) or not isinstance(texts, Sequence):
            message = f"references must be a list of strings. Got {shorten(texts)} instead."
            problems.append(Problem(code="TYPE", message=message, line=number))
        elif not texts:
            problems.append(Problem(code="NO_REFERENCE", message="there are no references", line=number))
    if problems:
        raise InputError(problems)


def _unfit_captions(candidates: Sequence[Any], references: Sequence[Sequence[Any]]) -> Iterator[Problem]:
    """The captions that the native core cannot read; searched only after it has refused the input."""
    for number, (candidate, texts) in enumerate(zip(candidates, references, strict=True), 1):
        for text in (candidate, *texts):
            for code, message in _faults(text):
                yield Problem(code=code, message=message, line=number)


def _faults(caption: Any) -> Iterator[tuple[str, str]]:
    """Reasons why a caption cannot be tokenized. Texts are not normalised here."""
    if not isinstance(caption, str):
        yield "TYPE", f"a caption must be text. Got {shorten(caption)} instead."
        return
    try:
        caption.encode()
    except UnicodeEncodeError as error:
        yield "CONTROL_CHAR", f"a caption contains half of a surrogate pair, at offset {error.start}"


class COCOEvalCap:
    """Evaluates results against annotations, with the attributes of pycocoevalcap's class."""

    def __init__(self, coco: Any, cocoRes: Any) -> None:  # noqa: N803 - pycocoevalcap's name
        self.evalImgs: list[dict[str, ImageId | float]] = []
        self.eval: dict[str, float] = {}
        self.imgToEval: dict[ImageId, dict[str, ImageId | float]] = {}
        self.coco, self.cocoRes = coco, cocoRes
        self._references, self._results = _captions_by_image(coco), _captions_by_image(cocoRes)
        self.params: dict[str, list[ImageId]] = {"image_id": list(self._references)}

    def evaluate(self) -> None:
        """Score the images of `params["image_id"]`, print the corpus scores, fill `eval` and `imgToEval`."""
        image_ids = list(dict.fromkeys(self.params["image_id"]))
        self._refuse_incomplete(image_ids)
        scores = _scores(
            [self._results[image][0] for image in image_ids],
            [self._references[image] for image in image_ids],
            are_lines=True,
        )
        self.imgToEval = {image: {"image_id": image} for image in image_ids}
        for name, values in scores.per_image.items():
            for image, value in zip(image_ids, values.tolist(), strict=True):
                self.imgToEval[image][name] = value
        self.eval = dict(scores.corpus)
        self.evalImgs = list(self.imgToEval.values())
        for name, score in self.eval.items():
            sys.stdout.write(f"{name}: {score:.3f}\n")
        for name, reason in scores.missing.items():
            sys.stderr.write(f"{name} is left out. {reason} Score more images together\n")
        for name, metric in (("METEOR", compute_meteor), ("SPICE", compute_spice)):
            if name not in self.eval:
                sys.stderr.write(f"{name} is left out. {metric.unavailable()}\n")

    def _refuse_incomplete(self, image_ids: Sequence[ImageId]) -> None:
        """Every image needs references and exactly one result; all problems are raised together."""
        unmatched = [image for image in self._results if image not in self._references]
        problems = [
            Problem(code="UNMATCHED", message="the result does not belong to an annotated image", id=str(image))
            for image in unmatched
        ]
        for image in image_ids:
            if not self._references.get(image):
                problems.append(Problem(code="NO_REFERENCE", message="the image has no references", id=str(image)))
            count = len(self._results.get(image, ()))
            if count != 1:
                message = f"the image must have one result. Got {count} instead."
                hint = 'Set params["image_id"] to the images that have results.' if not count else None
                code = "DUPLICATE" if count else "UNMATCHED"
                problems.append(Problem(code=code, message=message, id=str(image), hint=hint))
        if problems:
            raise InputError(problems)


def _captions_by_image(source: Any) -> dict[ImageId, list[str]]:
    """Captions by image id, from a pycocotools object, a file, or loaded JSON (annotations or a list of results)."""
    if hasattr(source, "imgToAnns"):
        return {image: [entry["caption"] for entry in source.imgToAnns[image]] for image in source.getImgIds()}
    name = str(source) if isinstance(source, str | Path) else None
    content = _read_json(Path(source)) if isinstance(source, str | Path) else source
    annotations = content.get("annotations") if isinstance(content, Mapping) else content
    if not isinstance(annotations, list):
        message = "the input must be a list of results, or an object with a list `annotations`"
        raise InputError([Problem(code="TYPE", message=message, file=name)])
    captions: dict[ImageId, list[str]] = {}
    problems = []
    for index, annotation in enumerate(annotations):
        if isinstance(annotation, Mapping) and annotation.keys() >= {"image_id", "caption"}:
            captions.setdefault(annotation["image_id"], []).append(annotation["caption"])
        else:
            message = (
                f"entry {index} must be an object with `image_id` and `caption`. Got {shorten(annotation)} instead."
            )
            problems.append(Problem(code="TYPE", message=message, file=name))
    if problems:
        raise InputError(problems)
    return captions


def _read_json(path: Path) -> Any:
    import msgspec

    from multimodal_eval.data.readers.blocks import DamagedStreamError, open_bytes

    try:
        with open_bytes(path) as stream:
            return msgspec.json.decode(stream.read())
    except FileNotFoundError:
        raise InputError([Problem(code="NOT_FOUND", message="no such file", file=str(path))]) from None
    except DamagedStreamError as error:
        raise InputError([Problem(code=error.code, message=str(error), file=str(path))]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError([Problem(code="SYNTAX", message=str(error), file=str(path))]) from None
