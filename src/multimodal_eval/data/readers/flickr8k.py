"""The human judgments of Flickr8k, in the files in which they were published.

A folder with Flickr8k.token.txt (`image#k` TAB caption) and one or both of

    ExpertAnnotations.txt        image TAB image#k TAB three scores, 1 (has nothing to do with it) to 4 (describes it)
    CrowdFlowerAnnotations.txt   image TAB image#k TAB share of yes TAB number of yes TAB number of no

each plain or .gz. The judged captions were written for other images or for the image itself; the image's captions are
the references. What is done with an image's own captions follows the published figures:

    expert   a judgment of one of the image's own captions is left out
    cf       all judgments stay, and a caption that was judged for an image is none of that image's references

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

_CAPTIONS_AN_IMAGE = 5
_LOWEST, _HIGHEST = 1, 4
_ROUNDED = 1e-5  # how far the written share may be from the counts'
_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class JudgedSamples:
    """Samples whose metadata hold human scores, in the columns `human`; `left_out` counts judgments by reason."""

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
    """Which judgments the folder holds."""
    return [kind for kind, name in ANNOTATIONS.items() if _find(folder, name)]


def read_flickr8k(folder: Path, kind: str, *, allow_partial: bool = False) -> JudgedSamples:
    """One sample a judged caption; every line that cannot be used is a problem.

    A judgment of an unknown caption or image is a problem too; with `allow_partial` it is left out and counted.
    """
    problems = Problems()
    captions = _read_captions(_required(folder, CAPTIONS), problems)
    path = _required(folder, ANNOTATIONS[kind])
    judgments = _read_judgments(path, kind, problems)
    left_out: Counter[str] = Counter()
    known = [j for j in judgments if _is_known(j, captions, path, None if allow_partial else problems, left_out)]
    problems.raise_if_any()
    kept, references = (_without_own if kind == "flickr8k-expert" else _own_are_no_references)(
        known, captions, left_out
    )
    if not kept:
        raise InputError([Problem(code="EMPTY", message="no judgment is left", file=str(path))])
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
        message = f"the folder has no {name}, nor {name}.gz"
        raise InputError([Problem(code="NOT_FOUND", message=message, file=str(folder))])
    return path


def _rows(path: Path, columns: int, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of every line that has the right number of them; blank lines are passed over."""
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
                        message = f"byte {bad.start} of the line is no valid UTF-8"
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
    """The image of a caption id `image#k`, or None where it is no such id."""
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
            problems.add("CONTROL_CHAR", f"the caption holds a NUL character, at offset {text.index(chr(0))}", **where)
        else:
            captions.texts[key] = text
            captions.of_image.setdefault(image, []).append(key)
        lines.setdefault(key, line)
    return captions


def _read_judgments(path: Path, kind: str, problems: Problems) -> list[_Judgment]:
    read_scores = _expert_scores if kind == "flickr8k-expert" else _share_of_yes
    found: list[_Judgment] = []
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
            found.append(_Judgment(line, image, caption, read_scores(cells)))
        except _BadScoreError as bad:
            problems.add(bad.code, str(bad), **where)
    return found


class _BadScoreError(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _whole(cell: str, what: str) -> int:
    if not (cell.isascii() and cell.isdecimal()) or len(cell) > _MOST_DIGITS:
        raise _BadScoreError("TYPE", f"{what} must be a whole number. Got {shorten(cell)} instead.")
    return int(cell)


def _expert_scores(cells: list[str]) -> tuple[float, ...]:
    scores = [_whole(cell, f"the score of expert {number}") for number, cell in enumerate(cells, 1)]
    for number, score in enumerate(scores, 1):
        if not _LOWEST <= score <= _HIGHEST:
            message = f"the score of expert {number} must lie from {_LOWEST} to {_HIGHEST}. Got {score} instead."
            raise _BadScoreError("RANGE", message)
    return tuple(map(float, scores))


def _share_of_yes(cells: list[str]) -> tuple[float, ...]:
    yes, no = _whole(cells[1], "the number of yes"), _whole(cells[2], "the number of no")
    try:
        share = float(cells[0])
    except ValueError:
        raise _BadScoreError("TYPE", f"the share of yes must be a number. Got {shorten(cells[0])} instead.") from None
    if not isfinite(share):
        raise _BadScoreError("NONFINITE", f"the share of yes is {share}")
    if not yes + no:
        raise _BadScoreError("RANGE", "nobody judged the caption: 0 yes and 0 no")
    if abs(share - yes / (yes + no)) > _ROUNDED:
        raise _BadScoreError("CONFLICT", f"the share of yes is {share:g}, and {yes} yes and {no} no make another")
    return (share,)


def _is_known(
    judgment: _Judgment, captions: _Captions, path: Path, problems: Problems | None, left_out: Counter[str]
) -> bool:
    """Whether caption and image are in the file of captions; if not, that is noted or, without `problems`, counted."""
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


def _without_own(
    judgments: list[_Judgment], captions: _Captions, left_out: Counter[str]
) -> tuple[list[_Judgment], dict[str, list[str]]]:
    """The judgments of captions that are not, word for word, the image's own; all of its captions as references."""
    references = {judgment.image: captions.references(judgment.image) for judgment in judgments}
    kept = [j for j in judgments if captions.texts[j.caption] not in references[j.image]]
    own = sum(len(j.scores) for j in judgments) - sum(len(j.scores) for j in kept)
    if own:
        left_out["the judged caption is one of the image's own"] += own
    return kept, references


def _own_are_no_references(
    judgments: list[_Judgment], captions: _Captions, left_out: Counter[str]
) -> tuple[list[_Judgment], dict[str, list[str]]]:
    """All judgments; each takes a caption of the same words off the image's references, for all judgments of the image.

    A reference that two people worded alike loses one of its two copies.
    """
    references = {judgment.image: captions.references(judgment.image) for judgment in judgments}
    for judgment in judgments:
        text = captions.texts[judgment.caption]
        if text in references[judgment.image]:
            references[judgment.image].remove(text)
    kept = [judgment for judgment in judgments if references[judgment.image]]
    if len(kept) < len(judgments):
        left_out["all captions of the image were judged, and no reference is left"] += len(judgments) - len(kept)
    return kept, references


def _notes(kept: list[_Judgment], captions: _Captions) -> list[str]:
    images = {judgment.image for judgment in kept}
    odd = sum(len(captions.of_image[image]) != _CAPTIONS_AN_IMAGE for image in images)
    unit = f"of {len(images):,} judged images do not have {_CAPTIONS_AN_IMAGE} captions in {CAPTIONS}"
    return [f"{odd:,} {unit}"] if odd else []
