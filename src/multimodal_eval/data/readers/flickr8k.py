"""The human judgments of Flickr8k, read from the published files.

The folder has Flickr8k.token.txt (`image#k` TAB caption) and one or both of

    ExpertAnnotations.txt        image TAB image#k TAB three scores, 1 (unrelated) to 4 (describes the image)
    CrowdFlowerAnnotations.txt   image TAB image#k TAB share of yes votes TAB yes votes TAB no votes

each plain or .gz. The judged captions were written for other images or for the image itself; the image's captions are
the references. An image's own captions are treated as in the published figures:

    expert   a judgment of one of the image's own captions is left out
    cf       all judgments are used, and a caption that was judged for an image is removed from that image's references

Reference:
    Hodosh, Young and Hockenmaier (2013). Framing Image Description as a Ranking Task: Data, Models and Evaluation
    Metrics. Journal of Artificial Intelligence Research 47. The treatment is that of Anderson et al. (2016), SPICE,
    and Hessel et al. (2021), CLIPScore, appendix A.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

from multimodal_eval.core.errors import InputError, Problem, shorten
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.blocks import DamagedStreamError, line_blocks, open_bytes
from multimodal_eval.data.readers.problems import Problems

CAPTIONS = "Flickr8k.token.txt"
ANNOTATIONS = {"flickr8k-expert": "ExpertAnnotations.txt", "flickr8k-cf": "CrowdFlowerAnnotations.txt"}
HUMAN = {"flickr8k-expert": ("expert_1", "expert_2", "expert_3"), "flickr8k-cf": ("share_of_yes",)}

_CAPTIONS_PER_IMAGE = 5
_LOWEST, _HIGHEST = 1, 4
_TOLERANCE = 1e-5  # between the written share and the counts
_MAX_DIGITS = 9


@dataclass(frozen=True, slots=True)
class JudgedSamples:
    """Samples with human scores in the metadata columns `human`; `left_out` counts judgments by reason."""

    samples: list[Sample]
    human: tuple[str, ...]
    left_out: dict[str, int]
    notes: list[str]


@dataclass(slots=True)
class _Judgment:
    line: int
    image: str
    caption: str
    scores: tuple[float, ...]


@dataclass(slots=True)
class _Captions:
    """The captions by id, and the ids by image."""

    texts: dict[str, str] = field(default_factory=dict)
    of_image: dict[str, list[str]] = field(default_factory=dict)

    def references(self, image: str) -> list[str]:
        return [self.texts[key] for key in self.of_image.get(image, ())]


def formats_in(folder: Path) -> list[str]:
    """Which judgments the folder has."""
    return [kind for kind, name in ANNOTATIONS.items() if _find(folder, name)]


def read_flickr8k(folder: Path, kind: str, *, allow_partial: bool = False) -> JudgedSamples:
    """One sample per judged caption; every invalid line is a problem.

    A judgment of an unknown caption or image is a problem; with `allow_partial` it is left out and counted.
    """
    problems = Problems()
    captions = _read_captions(_required(folder, CAPTIONS), problems)
    path = _required(folder, ANNOTATIONS[kind])
    judgments = _read_judgments(path, kind, problems)
    left_out: Counter[str] = Counter()
    known = [j for j in judgments if _is_known(j, captions, path, None if allow_partial else problems, left_out)]
    problems.raise_if_any()
    kept, references = (_drop_own_captions if kind == "flickr8k-expert" else _drop_judged_references)(
        known, captions, left_out
    )
    if not kept:
        raise InputError([Problem(code="EMPTY", message="no judgments are left", file=str(path))])
    samples = [
        Sample(
            id=f"{judgment.image} {judgment.caption}",
            generated_answer=captions.texts[judgment.caption],
            references=references[judgment.image],
            group=judgment.image,
            metadata=dict(zip(HUMAN[kind], judgment.scores, strict=True)),
        )
        for judgment in kept
    ]
    return JudgedSamples(samples, HUMAN[kind], dict(left_out), _notes(kept, captions))


def _find(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def _required(folder: Path, name: str) -> Path:
    path = _find(folder, name)
    if path is None:
        message = f"the folder has neither {name} nor {name}.gz"
        raise InputError([Problem(code="NOT_FOUND", message=message, file=str(folder))])
    return path


def _rows(path: Path, columns: int, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of every line with the right number of cells; blank lines are skipped."""
    file, last_good = str(path), 0
    try:
        with open_bytes(path) as stream:
            for block in line_blocks(stream, file):
                for line, raw in enumerate(block.data.split(b"\n"), block.first_line):
                    if not raw.strip():
                        continue
                    try:
                        text = raw.decode("utf-8").removesuffix("\r")
                    except UnicodeDecodeError as bad:
                        message = f"byte {bad.start} of the line is not valid UTF-8"
                        problems.add("ENCODING", message, file=file, line=line)
                        continue
                    cells = text.split("\t")
                    if len(cells) != columns:
                        message = f"the line must have {columns} columns, separated by tabs. Got {len(cells)} instead."
                        problems.add("LENGTH", message, file=file, line=line, value=shorten(text))
                        continue
                    last_good = line
                    yield line, cells
    except DamagedStreamError as damage:
        problems.add(damage.code, f"{damage}; the last good record is line {last_good}", file=file)


def _image_of(caption: str) -> str | None:
    """The image of a caption id `image#k`, or None if the id has another form."""
    image, mark, number = caption.rpartition("#")
    return image if mark and image and number.isdecimal() else None


def _read_captions(path: Path, problems: Problems) -> _Captions:
    captions, lines = _Captions(), dict[str, int]()
    for line, (key, text) in _rows(path, 2, problems):
        where = {"file": str(path), "line": line, "id": key}
        image = _image_of(key)
        if image is None:
            problems.add("TYPE", f"a caption id must be written image#number. Got {shorten(key)} instead.", **where)
        elif key in lines:
            problems.add("DUPLICATE", f"the id occurs twice, in lines {lines[key]} and {line}", **where)
        elif not text.strip():
            problems.add("EMPTY_REFERENCE", "the caption is blank", **where)
        elif "\0" in text:
            problems.add("CONTROL_CHAR", f"the caption has a NUL character, at offset {text.index(chr(0))}", **where)
        else:
            captions.texts[key] = text
            captions.of_image.setdefault(image, []).append(key)
        lines.setdefault(key, line)
    return captions


def _read_judgments(path: Path, kind: str, problems: Problems) -> list[_Judgment]:
    read_scores = _expert_scores if kind == "flickr8k-expert" else _share_of_yes
    judgments: list[_Judgment] = []
    lines: dict[tuple[str, str], int] = {}
    for line, (image, caption, *cells) in _rows(path, 5, problems):
        where = {"file": str(path), "line": line, "id": f"{image} {caption}"}
        if _image_of(caption) is None:
            problems.add("TYPE", f"a caption id must be written image#number. Got {shorten(caption)} instead.", **where)
            continue
        first = lines.setdefault((image, caption), line)
        if first != line:
            problems.add("DUPLICATE", f"the caption is judged twice, in lines {first} and {line}", **where)
            continue
        try:
            judgments.append(_Judgment(line, image, caption, read_scores(cells)))
        except _BadScoreError as bad:
            problems.add(bad.code, str(bad), **where)
    return judgments


class _BadScoreError(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _whole(cell: str, what: str) -> int:
    if not (cell.isascii() and cell.isdecimal()) or len(cell) > _MAX_DIGITS:
        raise _BadScoreError("TYPE", f"{what} must be a whole number. Got {shorten(cell)} instead.")
    return int(cell)


def _expert_scores(cells: list[str]) -> tuple[float, ...]:
    scores = [_whole(cell, f"the score of expert {number}") for number, cell in enumerate(cells, 1)]
    for number, score in enumerate(scores, 1):
        if not _LOWEST <= score <= _HIGHEST:
            message = f"the score of expert {number} must be from {_LOWEST} to {_HIGHEST}. Got {score} instead."
            raise _BadScoreError("RANGE", message)
    return tuple(map(float, scores))


def _share_of_yes(cells: list[str]) -> tuple[float, ...]:
    yes, no = _whole(cells[1], "the number of yes votes"), _whole(cells[2], "the number of no votes")
    try:
        share = float(cells[0])
    except ValueError:
        message = f"the share of yes votes must be a number. Got {shorten(cells[0])} instead."
        raise _BadScoreError("TYPE", message) from None
    if not isfinite(share):
        raise _BadScoreError("NONFINITE", f"the share of yes votes is {share}")
    if not yes + no:
        raise _BadScoreError("RANGE", "nobody judged the caption: 0 yes and 0 no")
    if abs(share - yes / (yes + no)) > _TOLERANCE:
        message = f"the share of yes votes is {share:g}, which does not match {yes} yes and {no} no"
        raise _BadScoreError("CONFLICT", message)
    return (share,)


def _is_known(
    judgment: _Judgment, captions: _Captions, path: Path, problems: Problems | None, left_out: Counter[str]
) -> bool:
    """Whether caption and image are in the captions file. If not, add a problem or, without `problems`, count it."""
    if judgment.caption not in captions.texts:
        code, reason = "UNMATCHED", f"the judged caption is not in {CAPTIONS}"
    elif judgment.image not in captions.of_image:
        code, reason = "NO_REFERENCE", f"the judged image has no caption in {CAPTIONS}"
    else:
        return True
    if problems is None:
        left_out[reason] += len(judgment.scores)
    else:
        hint = "Use --allow-partial to leave such judgments out and count them."
        where = {"file": str(path), "line": judgment.line, "id": f"{judgment.image} {judgment.caption}"}
        problems.add(code, f"{reason}.", hint=hint, **where)
    return False


def _drop_own_captions(
    judgments: list[_Judgment], captions: _Captions, left_out: Counter[str]
) -> tuple[list[_Judgment], dict[str, list[str]]]:
    """Drop the judgments of captions that equal one of the image's own captions, which are all references."""
    references = {judgment.image: captions.references(judgment.image) for judgment in judgments}
    kept = [j for j in judgments if captions.texts[j.caption] not in references[j.image]]
    dropped = sum(len(j.scores) for j in judgments) - sum(len(j.scores) for j in kept)
    if dropped:
        left_out["the judged caption is one of the image's own captions"] += dropped
    return kept, references


def _drop_judged_references(
    judgments: list[_Judgment], captions: _Captions, left_out: Counter[str]
) -> tuple[list[_Judgment], dict[str, list[str]]]:
    """Keep all judgments; each removes one equal caption from the image's references, for all judgments of the image.

    Of two identical references, one remains.
    """
    references = {judgment.image: captions.references(judgment.image) for judgment in judgments}
    for judgment in judgments:
        text = captions.texts[judgment.caption]
        if text in references[judgment.image]:
            references[judgment.image].remove(text)
    kept = [judgment for judgment in judgments if references[judgment.image]]
    if len(kept) < len(judgments):
        left_out["all captions of the image were judged, so no reference is left"] += len(judgments) - len(kept)
    return kept, references


def _notes(kept: list[_Judgment], captions: _Captions) -> list[str]:
    images = {judgment.image for judgment in kept}
    odd = sum(len(captions.of_image[image]) != _CAPTIONS_PER_IMAGE for image in images)
    unit = f"of {len(images):,} judged images do not have {_CAPTIONS_PER_IMAGE} captions in {CAPTIONS}"
    return [f"{odd:,} {unit}"] if odd else []
