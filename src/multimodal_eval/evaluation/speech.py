"""Error rates of transcripts: what the metrics `wer`, `cer`, `mer` and `wil` share.

An alignment of a transcript with a reference has H hits, S substitutions, D deletions and I insertions, of words or of
characters; S + D + I is as small as possible. Among equally good alignments the counts are those of jiwer, which takes
RapidFuzz's. With several references, the one with the lowest value counts, the first of equals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.metric import Bounds
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Estimate, Rows, Scores
from multimodal_eval.text.transcripts import transcripts, transcripts_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = ["AlignedChunk", "SpeechEdits", "align", "chunks_of_alignment"]

Unit = Literal["words", "characters"]
EditKind = Literal["equal", "substitute", "delete", "insert"]
Rate = Callable[["Vector"], "Vector"]  # counts (pairs, 4) -> values
DEFAULT_RULE = "jiwer@4"
PARTS = ("hits", "substitutions", "deletions", "insertions")  # the order of the counts
_KINDS: dict[str, EditKind] = {"H": "equal", "S": "substitute", "D": "delete", "I": "insert"}


@dataclass(frozen=True, slots=True)
class AlignedChunk:
    """Consecutive units of the reference and of the transcript that belong together, from start up to end."""

    kind: EditKind
    reference_start: int
    reference_end: int
    transcript_start: int
    transcript_end: int


@dataclass(frozen=True, slots=True)
class SpeechEdits:
    """The edits of one transcript, or of many by `+`."""

    hits: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0

    def __add__(self, other: SpeechEdits) -> SpeechEdits:
        return SpeechEdits(
            self.hits + other.hits,
            self.substitutions + other.substitutions,
            self.deletions + other.deletions,
            self.insertions + other.insertions,
        )

    @property
    def errors(self) -> int:
        """Substitutions, deletions and insertions."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def reference_length(self) -> int:
        """The number of units of the reference."""
        return self.hits + self.substitutions + self.deletions


def align(
    candidate: str, reference: str, *, rule: str = DEFAULT_RULE, unit: Unit = "words"
) -> tuple[SpeechEdits, list[AlignedChunk]]:
    """The edits between a transcript and a reference, with their places."""
    pair = transcripts([candidate], [[reference]], rule).edits(unit == "characters")
    edits = SpeechEdits(*map(int, pair.counts()[0].tolist()))
    return edits, chunks_of_alignment(pair.alignments()[0] or f"{edits.hits}H")


def chunks_of_alignment(alignment: str) -> list[AlignedChunk]:
    """The chunks of an alignment as a run stores it: "3H 1S" are three hits and a substitution."""
    chunks: list[AlignedChunk] = []
    reference = transcript = 0
    for length, letter in re.findall(r"([1-9]\d*)([HSDI])", alignment):
        kind, size = _KINDS[letter], int(length)
        reference_end = reference + size * (kind != "insert")
        transcript_end = transcript + size * (kind != "delete")
        chunks.append(AlignedChunk(kind, reference, reference_end, transcript, transcript_end))
        reference, transcript = reference_end, transcript_end
    return chunks


def error_rate(counts: Vector) -> Vector:
    """(S + D + I) / (H + S + D): errors per unit of the reference; without any, the number of insertions."""
    rates: Vector = counts[:, 1:].sum(axis=1) / _lengths(counts)
    return rates


def match_error_rate(counts: Vector) -> Vector:
    """(S + D + I) / (H + S + D + I): the share of errors in the alignment; 0 if both texts are empty."""
    rates: Vector = counts[:, 1:].sum(axis=1) / _at_least_one(counts.sum(axis=1))
    return rates


def information_lost(counts: Vector) -> Vector:
    """1 - H/N * H/P, where the reference has N units and the transcript P; 0 if both are empty."""
    hits, substitutions, deletions, insertions = counts.T
    reference, transcript = hits + substitutions + deletions, hits + substitutions + insertions
    preserved: Vector = (hits / _at_least_one(reference)) * (hits / _at_least_one(transcript))
    preserved[(reference == 0) & (transcript == 0)] = 1
    lost: Vector = 1 - preserved
    return lost


def score_batch(
    samples: Sequence[Sample], rate: Rate, rule: str, *, unit: Unit = "words", in_detail: bool = False
) -> Scores:
    """The scores of many samples with the four counts as statistics.

    In detail, there are parts, the four counts per unit of the reference, and the alignments of rows with errors.
    """
    batch = Batch.of(samples)
    pairs = transcripts_of(batch, rule)
    edits = batch.shared(("edits", rule, unit), lambda: pairs.edits(unit == "characters"))
    counts, ends = edits.counts(), pairs.reference_ends()
    values = rate(counts)
    chosen = _lowest(values, ends)
    scores = Scores.of_values(values[chosen], stats=counts[chosen])
    if rate is information_lost:
        scores.parts = {PRESERVED: 1 - values[chosen]}
    if in_detail:
        lengths = _lengths(counts[chosen])
        scores.parts = {part: counts[chosen, number] / lengths for number, part in enumerate(PARTS)}
        scores.details = _details(edits.alignments(), chosen, ends)
    return scores


def _lowest(values: Vector, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pair with the lowest value of each row, the first of equals."""
    import numpy as np

    if len(values) == len(ends):  # one reference each
        return np.arange(len(ends))
    starts = np.concatenate([[0], ends[:-1]])
    rows = np.repeat(np.arange(len(ends)), ends - starts)
    lowest = np.flatnonzero(values == np.minimum.reduceat(values, starts)[rows])
    return lowest[np.unique(rows[lowest], return_index=True)[1]]


def _details(
    alignments: Sequence[str], chosen: NDArray[np.int64], ends: NDArray[np.int64]
) -> dict[int, Mapping[str, Any]]:
    """The alignments of rows with errors, and the number of the reference in rows with several."""
    if len(alignments) == len(chosen):
        return {row: {"alignment": text} for row, text in enumerate(alignments) if text}
    details: dict[int, Mapping[str, Any]] = {}
    start = 0
    for row, (pair, end) in enumerate(zip(chosen.tolist(), ends.tolist(), strict=True)):
        if alignments[pair]:
            number = {"reference": pair - start + 1} if end - start > 1 else {}
            details[row] = {"alignment": alignments[pair], **number}
        start = end
    return details


def _lengths(counts: Vector) -> Vector:
    """The lengths of the references, 1 for an empty one."""
    return _at_least_one(counts[:, :3].sum(axis=1))


def _at_least_one(values: Vector) -> Vector:
    import numpy as np

    return np.maximum(values, 1.0)


def corpus_error_rate(rows: Rows) -> Estimate:
    """The error rate of all rows together: errors per unit of all references."""
    import numpy as np

    return _estimate(rows, error_rate, _rate_gradient(np.array([0.0, 1, 1, 1])))


def corpus_match_error_rate(rows: Rows) -> Estimate:
    """The match error rate of all rows together."""

    def gradient(sums: Vector) -> Vector:
        import numpy as np

        total = max(float(sums.sum()), 1.0)
        slopes: Vector = (np.array([0.0, 1, 1, 1]) - match_error_rate(sums[None])[0]) / total
        return slopes

    return _estimate(rows, match_error_rate, gradient)


def corpus_information_lost(rows: Rows) -> Estimate:
    """The information lost over all rows together."""

    def gradient(sums: Vector) -> Vector:
        import numpy as np

        hits, substitutions, deletions, insertions = sums.tolist()
        reference = max(hits + substitutions + deletions, 1.0)
        transcript = max(hits + substitutions + insertions, 1.0)
        preserved = hits * hits / (reference * transcript)
        by_reference, by_transcript = preserved / reference, preserved / transcript
        both = by_reference + by_transcript
        return np.array([both - 2 * hits / (reference * transcript), both, by_reference, by_transcript])

    return _estimate(rows, information_lost, gradient)


def _estimate(rows: Rows, rate: Rate, gradient: Callable[[Vector], Vector]) -> Estimate:
    from multimodal_eval.stats.estimates import function_of_sums

    return function_of_sums(rows, lambda sums: float(rate(sums[None])[0]), gradient)


def _rate_gradient(counted: Vector) -> Callable[[Vector], Vector]:
    """The gradient of (sum of some counts) / (units of the references)."""

    def gradient(sums: Vector) -> Vector:
        import numpy as np

        length = float(sums[:3].sum())
        if length == 0:  # the rate is a number of insertions
            return counted
        slopes: Vector = (counted - (counted @ sums) / length * np.array([1.0, 1, 1, 0])) / length
        return slopes

    return gradient


def _corpus_part(number: int, rows: Rows) -> Estimate:
    """One of the counts per unit of all references."""
    import numpy as np

    return _estimate(rows, lambda counts: counts[:, number] / _lengths(counts), _rate_gradient(np.eye(4)[number]))


def corpus_information_preserved(rows: Rows) -> Estimate:
    """WIP, which is 1 - WIL, over all rows together."""
    lost = corpus_information_lost(rows)
    return replace(lost, value=1 - lost.value, influence=-lost.influence)


PRESERVED = "preserved"  # the part of the information lost that is 1 less it
PART_BOUNDS: dict[str, Bounds] = {part: (0, None if part == "insertions" else 1) for part in PARTS}
PART_AGGREGATES = {part: partial(_corpus_part, number) for number, part in enumerate(PARTS)}
