"""Records of Every Eval Ever: `<uuid>.json` with the results, and beside it `<uuid>_samples.jsonl` with the instances.

An instance is one score of one sample, so that the instances of a sample become one sample with several scores,
`eee.<metric>`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import cast

import msgspec

from multimodal_eval.core.errors import shorten
from multimodal_eval.data.logs.eee_records import OF_LOG, ORIGIN, SCHEMA_VERSION, Aggregate, Origin, Result
from multimodal_eval.data.logs.eee_samples import (
    HARNESS,
    OurSamples,
    ResultColumns,
    collected,
    is_by_sample,
    metric_name,
    score_ranges,
)
from multimodal_eval.data.logs.log_format import Head, LogInfo, RecordedScore, as_score
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.json_file import DECODE_ERRORS
from multimodal_eval.data.readers.problems import Problems, Record

__all__ = ["FORMAT", "OUR_LIBRARY"]

OUR_LIBRARY = "multimodal-eval"
_SAMPLES = "_samples.jsonl"
_ALGORITHMS = ("sha256", "md5")  # those of the schema
_ROUNDED = 0.01  # how far a rounded result may be beyond the scores of the samples, relative to them
_DECODE_AGGREGATE = msgspec.json.Decoder(Aggregate).decode
_DECODE_ORIGIN = msgspec.json.Decoder(Origin).decode


class EveryEvalEver:
    """The format of Every Eval Ever."""

    name, harness = "eee", HARNESS
    suffixes = (".jsonl", ".json")
    files = "<uuid>.json, <uuid>_samples.jsonl"
    takes = "inputs, references, choices, answers, messages, reasoning, tokens, every result as a score"

    def recognises(self, head: Head) -> bool:
        """By the keys of the first instance, or of the results."""
        if head.suffix == ".jsonl":
            return head.has_keys("schema_version", "evaluation_id", "sample_id", "interaction_type")
        return head.has_keys("schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata")

    def part_name(self, path: Path) -> str:
        """`COLLECTION/DEVELOPER/MODEL` as in its folders, or the name of the file."""
        folders = path.absolute().parts
        if "data" in folders[-5:-4]:
            return "/".join(folders[-4:-1])
        return path.name.removesuffix(_SAMPLES).removesuffix(".json")

    def main_files(self, paths: Sequence[Path]) -> list[Path]:
        """The instances, or the results if there are none, once for each pair."""
        return list(dict.fromkeys(_files(path).instances or path for path in paths))

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per sample, and epoch, in the order of the file."""
        files = _files(path)
        if files.instances is None:
            message = "these are results without samples: the file of instances is missing"
            problems.add("NOT_FOUND", message, file=str(path))
            return
        aggregate = _read_aggregate(files.aggregate, problems)
        names = ResultColumns(aggregate, path)
        _check_sum(files, aggregate, problems)
        if aggregate is not None and is_by_sample(aggregate):
            yield from OurSamples(aggregate, files.aggregate, names, files.instances, problems).records()
        else:
            yield from collected(files.instances, names, problems)

    def info(self, path: Path) -> LogInfo:
        """What the results say."""
        files = _files(path)
        problems = Problems()
        aggregate = _read_aggregate(files.aggregate, problems)
        names = ResultColumns(aggregate, path)
        if aggregate is None:
            keys = [] if files.instances is None else list(score_ranges(files.instances))
            note = "there are no results next to the instances, so the means are not compared"
            scores = tuple(RecordedScore(names[key]) for key in keys)
            return LogInfo(HARNESS, scores=scores, notes=(note, *map(str, problems.kept)))
        scored = _scored(files.instances, aggregate)
        results = aggregate.evaluation_results
        counts = Counter(result.key for result in results)
        by_key = {result.key: result for result in reversed(results)}
        origin = _origin(aggregate)
        return LogInfo(
            origin.harness,
            version=origin.version,
            model=aggregate.model_info.id,
            task=origin.task,
            scores=tuple(
                _recorded(by_key[key], names[key], scored[key], is_only=count == 1)
                for key, count in counts.items()
                if key in scored
            ),
            notes=(*_version_notes(aggregate), *_notes(counts, by_key, scored)),
            settings=_settings(results) or origin.settings,
        )


FORMAT = EveryEvalEver()


@dataclass(frozen=True)
class _Files:
    aggregate: Path | None
    instances: Path | None


def _files(path: Path) -> _Files:
    """Both files, whichever of them is given."""
    if path.name.endswith(_SAMPLES):
        beside = path.with_name(f"{path.name.removesuffix(_SAMPLES)}.json")
        return _Files(beside if beside.is_file() else None, path)
    if path.suffix == ".json":
        beside = path.with_name(f"{path.stem}{_SAMPLES}")
        return _Files(path, beside if beside.is_file() else None)
    return _Files(None, path)


def _read_aggregate(path: Path | None, problems: Problems) -> Aggregate | None:
    if path is None:
        return None
    try:
        text = path.read_bytes()
        limits.check_json(text, str(path), None, "the file of results")
        aggregate = _DECODE_AGGREGATE(text)
        aggregate.evaluation_results = [result for result in aggregate.evaluation_results if not _is_of_log(result)]
        return aggregate
    except DECODE_ERRORS as error:
        problems.add("SYNTAX", f"the results cannot be read: {error}", file=str(path))
    except OSError as error:
        problems.add("NOT_FOUND", f"the results cannot be read: {error.strerror}", file=str(path))
    return None


def _check_sum(files: _Files, aggregate: Aggregate | None, problems: Problems) -> None:
    """Refuse instances that are not those of the results, by the checksum that the results state."""
    detailed = None if aggregate is None else aggregate.detailed_evaluation_results
    if files.instances is None or detailed is None or detailed.checksum is None:
        return
    algorithm = (detailed.hash_algorithm or "sha256").lower()
    if algorithm not in _ALGORITHMS:
        return
    with files.instances.open("rb") as stream:
        actual = file_digest(stream, algorithm).hexdigest()
    stated = detailed.checksum.strip().lower().removeprefix(f"{algorithm}:")
    if actual != stated:
        problems.add(
            "CHECKSUM",
            f"the {algorithm} of the instances is {actual[:12]}…, but the results state {shorten(stated)}: one of the "
            "files was changed, or they do not belong together.",
            file=str(files.instances),
            hint="If the instances are right, remove `checksum` from the results.",
        )


def _is_of_log(result: Result) -> bool:
    """Whether a result of ours is that of one log of several. Its instances belong to the result of all logs."""
    return OF_LOG in result.metric_config.additional_details


def _origin(aggregate: Aggregate) -> Origin:
    """The harness that gave the scores; an export of ours says from which one it was imported."""
    library = aggregate.eval_library
    text = library.additional_details.get(ORIGIN)
    if text is not None:
        with suppress(*DECODE_ERRORS):
            return _DECODE_ORIGIN(text.encode())
    results = aggregate.evaluation_results
    return Origin(harness=library.name, version=library.version, task=results[0].evaluation_name if results else None)


def _scored(instances: Path | None, aggregate: Aggregate) -> dict[str, tuple[float, float] | None]:
    """The results that have instances, with the range of their scores. Our own exports say which have none.

    The range is None in an export of ours, in which it need not be known.
    """
    if instances is None:
        return {}
    if is_by_sample(aggregate):
        return dict.fromkeys(result.key for result in aggregate.evaluation_results)
    return dict(score_ranges(instances))


def _version_notes(aggregate: Aggregate) -> list[str]:
    version = aggregate.schema_version
    known = f"the version of the schema is {shorten(version)}; this reader knows {SCHEMA_VERSION}"
    return [] if version == SCHEMA_VERSION else [f"{known}, and what is new or different is not read"]


def _notes(counts: Mapping[str, int], results: Mapping[str, Result], scored: Container[str]) -> Iterator[str]:
    for key, count in counts.items():
        if key not in scored:
            name = results[key].evaluation_result_id or metric_name(results[key])
            yield f"left out, because it has no instances: {name}"
        elif count > 1:
            yield f"{count} results have the id {key!r}, so their means are not compared"


def _recorded(result: Result, column: str, seen: tuple[float, float] | None, *, is_only: bool) -> RecordedScore:
    config, uncertainty = result.metric_config, result.score_details.uncertainty
    kind = config.additional_details.get("kind")
    low, high = _bounds(result, seen)
    return RecordedScore(
        column,
        "lower" if config.lower_is_better else "higher",
        low=low,
        high=high,
        own_mean=result.score_details.score if is_only else None,
        own_count=None if uncertainty is None else uncertainty.num_samples,
        aggregation=None if kind == "mean" else kind,
    )


def _bounds(result: Result, seen: tuple[float, float] | None) -> tuple[float | None, float | None]:
    """The range that a result states, if it is that of the scores of the samples: `seen` are the extreme ones.

    It may also be that of percentages of scores from 0 to 1: then the score of the result is not between theirs.
    """
    low, high = as_score(result.metric_config.min_score), as_score(result.metric_config.max_score)
    if low is not None and high is not None and not low < high:
        return None, None
    if seen is None:
        return low, high
    least, most = seen
    slack = _ROUNDED * max(abs(least), abs(most))
    is_same_scale = least - slack <= result.score_details.score <= most + slack
    is_inside = (low is None or low <= least) and (high is None or most <= high)
    return (low, high) if is_same_scale and is_inside else (None, None)


def _settings(results: list[Result]) -> dict[str, object]:
    for result in results:
        if result.generation_config is not None and result.generation_config.generation_args is not None:
            return cast(dict[str, object], msgspec.to_builtins(result.generation_config.generation_args))
    return {}
