"""Samples that compare the answers of systems: one per pair of answers to the same question.

The answer of a sample is that of the first system, and its metadata have the other: see `comparison_samples`. Question,
media and references are those of the first run, and must be the same in all runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from multimodal_eval.analysis.columns import Codes
from multimodal_eval.analysis.pairing import rows_by_id
from multimodal_eval.core.arrow import integers
from multimodal_eval.core.errors import ConfigError, InputError, Problem, RunFolderError, shorten
from multimodal_eval.core.failures import answers_of, expanded
from multimodal_eval.core.records import InputFile, RunInfo
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.memory_input import JoinedInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.data.runs.checksums import sha256
from multimodal_eval.data.runs.run_content import part_name
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.sample_table import to_batch
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run.ask.replies import resuming

__all__ = [
    "Answered",
    "ComparisonInput",
    "MadeSamples",
    "System",
    "answered",
    "comparison_samples",
    "pairs_of_systems",
    "system_names",
    "system_of_column",
    "system_of_file",
    "system_of_run",
]

# What a judge sees beside the answers, by columns: media are compared as they are named, not by their content.
_SHARED = ("question", "choices", "references", "expected_answer", "caption", "image", "images", "audio", "video")
_ANSWER = ("generated_answer", "error")
_OWN_FIELDS = ("generated_answer", "perplexity", "logprobs", "boxes", "epoch", "error")  # of one system's answer
_TEXTS = ("expected_answer", "caption")  # fields that can be a baseline
_LISTED = 100  # problems in a message


@dataclass(frozen=True)
class Answered:
    """A run whose samples have answers, scored or not."""

    folder: RunFolder
    info: RunInfo


def answered(location: Location) -> Answered:
    """Open a run to compare its answers. Raises RunFolderError if it does not have all of them yet."""
    folder = RunFolder(location)
    info = folder.read_info()
    if not info.has_answers:
        raise RunFolderError(
            f"{folder.label} does not have all answers yet. Continue it first with: {resuming(folder, info)}"
        )
    return Answered(folder, info)


@dataclass(frozen=True)
class MadeSamples:
    """Samples that are made whenever they are read, because all of them may be too many for the memory."""

    make: Callable[[], Iterator[Sample]]

    def __iter__(self) -> Iterator[Sample]:
        return self.make()


@dataclass(frozen=True)
class System:
    """The answers of a system, each with the id of its sample."""

    name: str
    ids: pa.ChunkedArray
    answers: pa.Table  # generated_answer and error
    patterns: tuple[str, ...]  # of error messages instead of an answer
    model: str | None = None  # that gave the answers, if it is known


def system_names(runs: Sequence[Answered]) -> list[str]:
    """The names of the runs' folders, or their full paths if two have the same name."""
    for names in ([run.folder.name for run in runs], [run.folder.label for run in runs]):
        if len(set(names)) == len(names):
            return names
    raise ConfigError(f"a run cannot be compared with itself: {', '.join(run.folder.label for run in runs)}")


def system_of_run(run: Answered, name: str) -> System:
    """The answers of a run."""
    table = _read(run, ("id", *_ANSWER))
    return System(name, table.column("id"), table.select(list(_ANSWER)), run.info.config.patterns, _model_of(run.info))


def _model_of(info: RunInfo) -> str | None:
    if info.generation is not None:
        return str(info.generation.settings.get("model"))
    return None if info.imported is None else info.imported.model


def system_of_file(path: Path) -> System:
    """The answers in a file with `id` and an answer. The system has the name of the file."""
    problems, rows = Problems(), []
    for sample in FileInput(path).samples(problems, Summary()):
        rows.append((sample.id, sample.generated_answer, sample.error))
    problems.raise_if_any()
    ids, texts, errors = (pa.chunked_array([pa.array(values, pa.string())]) for values in _columns(rows))
    if texts.null_count == len(texts):
        raise ConfigError(f"{path} has no answers: none of its {len(texts):,} records has `generated_answer`")
    return System(path.stem, ids, pa.table({"generated_answer": texts, "error": errors}), expanded(None))


def system_of_column(run: Answered, column: str) -> System:
    """The texts in a column of a run's samples. The system has the name of the column."""
    rows: list[tuple[str, str | None, None]] = []
    problems = Problems()
    for part in range(len(run.info.parts)):
        for sample in run.folder.read_samples(part, {"metadata", *_TEXTS}):
            text = getattr(sample, column) if column in _TEXTS else sample.metadata.get(column)
            if text is not None and not isinstance(text, str):
                problems.add("TYPE", f"`{column}` must be a text. Got {shorten(text)} instead.", id=sample.id)
            else:
                rows.append((sample.id, text, None))
    problems.raise_if_any()
    ids, texts, errors = (pa.chunked_array([pa.array(values, pa.string())]) for values in _columns(rows))
    if texts.null_count == len(texts):
        raise ConfigError(
            f"the baseline {column!r} is neither a file, nor a run, nor a column with a text in {run.folder.label}"
        )
    return System(column, ids, pa.table({"generated_answer": texts, "error": errors}), expanded(None))


def _columns(rows: Sequence[tuple[str, str | None, str | None]]) -> list[list[str | None]]:
    return [[row[place] for row in rows] for place in range(3)]


def comparison_samples(
    runs: Sequence[Answered],
    pairs: Sequence[tuple[int, int]],
    *,
    names: Sequence[str] | None = None,
    allow_partial: bool = False,
) -> MadeSamples:
    """A sample for each question and each pair of runs, by their numbers; all pairs of a question follow each other.

    `generated_answer` is the answer of the first run of the pair, `metadata["baseline"]` that of the second;
    `metadata["system"]` and `metadata["baseline_system"]` are their names. The group is that of the original sample, or
    its id, which is also `metadata["sample"]`. If one of the answers has failed, the sample has an error and is
    unscored: a failure is not a loss.

    Raises InputError if a sample is missing in one of the runs, unless `allow_partial`, and ConfigError if the runs
    have different questions, media or references.
    """
    named = system_names(runs) if names is None else list(names)
    _refuse_other_data(runs, named, allow_partial=allow_partial)
    systems = [system_of_run(run, name) for run, name in zip(runs, named, strict=True)]
    return pairs_of_systems(runs[0], systems, pairs, allow_partial=allow_partial)


def pairs_of_systems(
    run: Answered, systems: Sequence[System], pairs: Sequence[tuple[int, int]], *, allow_partial: bool = False
) -> MadeSamples:
    """The samples of `comparison_samples`, for systems that need not be runs; `run` has the questions."""
    ids = _read(run, ("id",)).column("id")
    kept = _shared_rows(ids, [system.ids for system in systems]) if allow_partial else np.arange(len(ids))
    if not len(kept):
        raise ConfigError(f"no sample of {run.folder.label} is in {' and '.join(each.name for each in systems)}")
    shared = ids.take(integers(kept))
    columns = [system.ids for system in systems]
    if allow_partial:
        rows = [_positions(shared, column) for column in columns]
    else:
        rows = _matched([shared, *columns], [run.folder.name, *(system.name for system in systems)])[1:]
    return MadeSamples(partial(_samples, run, systems, pairs, kept, rows))


def _samples(
    run: Answered, systems: Sequence[System], pairs: Sequence[tuple[int, int]], kept: Codes, rows: Sequence[Codes]
) -> Iterator[Sample]:
    start = place = 0
    for part, size in enumerate(run.info.parts):
        stop = place + int(np.searchsorted(kept[place:], start + size))
        texts = [_texts_of(system, order[place:stop]) for system, order in zip(systems, rows, strict=True)]
        samples = run.folder.read_samples(part) if stop > place else []
        for number, row in enumerate(kept[place:stop].tolist()):
            for first, second in pairs:
                answers = [texts[first][number], texts[second][number]]
                identifier = f"|{first + 1}-{second + 1}" if len(pairs) > 1 else ""
                yield _pair(samples[row - start], identifier, systems[first], systems[second], answers)
        start, place = start + size, stop


@dataclass(frozen=True)
class _Text:
    answer: str | None
    error: str | None


def _texts_of(system: System, rows: Codes) -> list[_Text]:
    """The answers in some rows. An answer that is an error message is an error."""
    table = system.answers.take(integers(rows))
    failed = answers_of(to_batch(table), system.patterns).failed
    columns = (table.column(name).to_pylist() for name in _ANSWER)
    return [
        _Text(answer, (error or shorten(answer)) if row in failed else None)
        for row, (answer, error) in enumerate(zip(*columns, strict=True))
    ]


def _pair(sample: Sample, identifier: str, first: System, second: System, texts: Sequence[_Text]) -> Sample:
    failures = [f"{each.name}: {text.error}" for each, text in zip((first, second), texts, strict=True) if text.error]
    metadata = {
        **sample.metadata,
        "baseline": texts[1].answer,
        "system": first.name,
        "baseline_system": second.name,
        "sample": sample.id,
        "system_model": first.model,
        "baseline_model": second.model,
    }
    shared = msgspec.structs.replace(sample, **dict.fromkeys(_OWN_FIELDS))
    return msgspec.structs.replace(
        shared,
        id=f"{sample.id}{identifier}",
        generated_answer=texts[0].answer,
        error="; ".join(failures) or None,
        group=sample.id if sample.group is None else sample.group,
        metadata={name: value for name, value in metadata.items() if value is not None},
    )


def _matched(ids: Sequence[pa.ChunkedArray], names: Sequence[str]) -> list[Codes]:
    """The rows with the same ids. Raises InputError with what to do."""
    try:
        return rows_by_id(ids, names)
    except InputError as error:
        hint = "To leave out such samples: --allow-partial"
        problems = [msgspec.structs.replace(each, hint=hint) for each in error.problems if each.code == "UNMATCHED"]
        raise InputError(problems or error.problems, error.total) from None


def _shared_rows(ids: pa.ChunkedArray, others: Sequence[pa.ChunkedArray]) -> Codes:
    """The rows whose ids all others have."""
    import pyarrow.compute as pc

    is_shared = np.ones(len(ids), np.bool_)
    for other in others:
        is_shared &= pc.is_in(ids, value_set=other.combine_chunks()).to_numpy(zero_copy_only=False)
    return np.flatnonzero(is_shared)


def _positions(ids: pa.ChunkedArray, others: pa.ChunkedArray) -> Codes:
    import pyarrow.compute as pc

    rows = pc.index_in(ids, value_set=others.combine_chunks())
    return np.asarray(rows.to_numpy(zero_copy_only=False), dtype=np.int64)


def _read(run: Answered, columns: Sequence[str]) -> pa.Table:
    return pa.concat_tables(
        [run.folder.read_part("samples", part, list(columns)) for part in range(len(run.info.parts))]
    )


def _refuse_other_data(runs: Sequence[Answered], names: Sequence[str], *, allow_partial: bool) -> None:
    """Refuse runs with different questions, media or references. What a run has not at all is not compared."""
    ids = [_read(run, ("id",)).column("id") for run in runs]
    if not allow_partial:
        _matched(ids, names)
    first = _hashes(runs[0])
    problems: list[Problem] = []
    total = 0
    for run, name, others in zip(runs[1:], names[1:], ids[1:], strict=True):
        kept = _shared_rows(ids[0], [others])
        rows = _positions(ids[0].take(integers(kept)), others)
        hashes = _hashes(run)
        for column in (column for column in first if column in hashes):
            differing = kept[np.flatnonzero(first[column][kept] != hashes[column][rows])]
            total += len(differing)
            problems += [
                Problem(code="DIFFERENT", message=f"`{column}` is not the same in {names[0]} and in {name}", id=each)
                for each in ids[0].take(integers(differing[: _LISTED - len(problems)])).to_pylist()
            ]
    if problems:
        raise InputError(problems, total)


def _hashes(run: Answered) -> dict[str, Codes]:
    """For each column that has a value, hashes of the values, valid only within this process."""
    hashes: dict[str, list[Codes]] = {}  # by parts
    schema = run.folder.part_schema("samples", 0).names
    columns = [name for name in schema if name.removesuffix("_bytes") in _SHARED]
    for part in range(len(run.info.parts)):
        table = run.folder.read_part("samples", part, columns)
        for name in columns:
            values = (hash(tuple(each) if isinstance(each, list) else each) for each in table.column(name).to_pylist())
            hashes.setdefault(name, []).append(np.fromiter(values, np.int64, len(table)))
    whole = {name: np.concatenate(each) for name, each in hashes.items()}
    return {name: values for name, values in whole.items() if (values != hash(None)).any()}


class ComparisonInput(JoinedInput):
    """Samples of comparisons. run.json lists the runs and files that are compared."""

    def __init__(self, samples: MadeSamples, runs: Sequence[Answered], files: Sequence[Path] = ()) -> None:
        super().__init__([], files)
        self.samples, self.runs = samples, list(runs)

    def joined(self) -> Iterator[Sample]:
        """The samples."""
        return iter(self.samples)

    def places(self) -> Iterator[tuple[None, int, str]]:
        """(None, number, id) of every sample, for messages about samples that were read before."""
        return ((None, number, sample.id) for number, sample in enumerate(self.samples, 1))

    def describe(self) -> list[InputFile]:
        """The runs, each with a digest of its samples and answers, and the files."""
        described = [
            InputFile(path=run.folder.label, sha256=_digest(run), samples=sum(run.info.parts)) for run in self.runs
        ]
        return [*described, *super().describe()]


def _digest(run: Answered) -> str:
    """The checksum of the checksums of all parts of the samples, which have the answers."""
    run.folder.storage.sync()
    digests = [run.folder.checksums.newest(part_name("samples", part)) for part in range(len(run.info.parts))]
    return sha256("\n".join(digests).encode())
