"""Whether run.json and results.json say the same: what a decoder cannot see in one value alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite

from multimodal_eval.core.errors import RunFolderError, shorten
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.metric import is_name
from multimodal_eval.core.records import COMPOSITE, Results, RunInfo

__all__ = ["differences", "info_faults", "refuse_faults", "result_faults"]

MAX_SAMPLES = 1 << 48  # more than any disk holds


def refuse_faults(file: str, faults: Iterator[str]) -> None:
    """Refuse a file of a run folder that has a fault."""
    fault = next(faults, None)
    if fault is not None:
        raise RunFolderError(f"{file} is damaged: {fault}. Score the run again")


def info_faults(info: RunInfo) -> Iterator[str]:
    """Impossible parts, bounds, signatures and judges in a run.json."""
    for size in info.parts:
        if not 0 <= size <= MAX_SAMPLES:
            yield f"a part of {size:,} samples"
    if sum(info.parts) > MAX_SAMPLES:
        yield f"{sum(info.parts):,} samples"
    for name, (low, high) in info.bounds.items():
        if not all(bound is None or isfinite(bound) for bound in (low, high)):
            yield f"the bounds of {shorten(name)} are not finite"
    if info.signatures or info.finished is not None:  # they are noted together, before anything is scored
        missing = [name for name in info.metrics if name not in info.signatures]
        if missing:
            yield f"{shorten(missing[0])} has no signature"
    yield from _judge_faults(info)
    for name, signature in info.signatures.items():
        if signature.headline is not None and not isinstance(signature.headline, str):
            yield f"the headline in the signature of {shorten(name)} is not a name"
        if not isinstance(signature.weights, Mapping) or not all(map(_is_weight, signature.weights.values())):
            yield f"the weights in the signature of {shorten(name)} are not numbers"


def _judge_faults(info: RunInfo) -> Iterator[str]:
    """Judges whose names are not those of files, and impossible counts of verdicts."""
    for name in (*info.judging, *info.config.judges):
        if not is_name(name):
            yield f"{shorten(name)} cannot name a metric"
    for name, judge in info.config.judges.items():
        if judge.name not in ("", name):
            yield f"the judge of {name} has another name"
        if judge.prompt is not None and judge.template is None:  # a run stores the text, and reads no file again
            yield f"the template of the judge of {name} is missing"
    for name, judged in info.judging.items():
        counts = (*judged.statuses.values(), judged.input_tokens, judged.output_tokens)
        if any(count < 0 for count in counts):
            yield f"the counts of the judge of {name} are negative"
        if judged.cost is not None and not isfinite(judged.cost):
            yield f"the cost of the judge of {name} is not finite"


def _is_weight(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)


def result_faults(results: Results) -> Iterator[str]:
    """Impossible counts and values in a results.json."""
    if results.n < 1:
        yield f"{results.n:,} samples"
    for name, entry in results.entries.items():
        if entry.n_total != results.n:
            yield f"{shorten(name)} has {entry.n_total:,} samples instead of {results.n:,}"
        yield from _entry_faults(name, entry)
    for column, values in results.slices.items():
        for value, cut in values.items():
            for name, part in cut.metrics.items():
                where = f"{name} of {shorten(column)}={shorten(value)}"
                if part.n_total != cut.n or not 0 <= cut.n <= results.n:
                    yield f"{where} has {part.n_total:,} samples instead of {cut.n:,}"
                yield from _entry_faults(where, part)


def _entry_faults(name: str, entry: Figure) -> Iterator[str]:
    if not 0 <= entry.coverage.scored <= entry.coverage.total:
        yield f"{shorten(name)} has {entry.n_scored:,} scored samples of {entry.n_total:,}"
    covered = entry.coverage
    counts = (*covered.unscored.values(), *covered.warnings.values(), *(each.count for each in covered.reasons))
    if any(not 0 <= count <= covered.total for count in counts):
        yield f"the counts of {shorten(name)} are not between 0 and {entry.n_total:,}"
    others = (entry.calibrated, entry.with_failures, entry.without_failures)
    for figure in (entry, *entry.parts.values(), *filter(None, others)):
        numbers = (figure.value, figure.stderr, figure.low, figure.high, figure.lowest, figure.highest)
        if not all(number is None or isfinite(number) for number in numbers):
            yield f"{shorten(name)} has a value that is not finite"


def differences(info: RunInfo, results: Results) -> Iterator[str]:
    """Why a results.json does not belong to its run.json."""
    if sum(info.parts) != results.n:
        yield f"it has {results.n:,} samples, and run.json {sum(info.parts):,}"
    known = {*info.metrics, *info.unavailable}
    for name in {*results.metrics} ^ known:
        yield f"{shorten(name)} is {'not ' if name in results.metrics else ''}a metric of run.json"
    for name, entry in results.entries.items():
        signature = info.signatures.get(name)
        if entry.signature != (None if signature is None else signature.text):
            yield f"the signature of {shorten(name)} is not that of run.json"
    if results.composite is None and COMPOSITE in info.signatures:
        yield "the composite is missing"
    for headline in (info.headline, results.headline):
        if headline is not None and headline not in results.entries:
            yield f"the headline {shorten(headline)} is not among the results"
