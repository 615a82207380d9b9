"""Replace the damaged files of a run folder before the run is continued, so that only they are computed again."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING

import msgspec

from multimodal_eval.core.errors import DamagedFileError, RunFolderError
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.readers.inputs import Input
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.data.runs.checksums import EXCHANGES
from multimodal_eval.data.runs.damage import faults
from multimodal_eval.data.runs.part_files import faults_named, part_name, read_table, to_parquet
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.answer_tables import exchange_table, exchanges_of, with_answers
from multimodal_eval.run.engine.base import Executor
from multimodal_eval.run.part import Worker

if TYPE_CHECKING:
    import pyarrow as pa


def repair(
    worker: Worker, info: RunInfo, source: Callable[[], Input | None], executor: Executor, progress: Progress
) -> RunInfo:
    """Read damaged samples again, fit damaged statistics again, and remove damaged scores, which are then missing.

    Damaged answers of a model are removed, and so are all scores: the run is then `generating` again. Damaged verdicts
    are removed with the scores of their parts: the run is then `judging` again. `source` opens the input again; None if
    its samples were in memory.
    """
    folder = worker.folder
    _restore_manifest(folder)
    names = {fault.name for fault in faults(folder)}
    info = _without_damaged_answers(folder, info, names)
    info = _without_damaged_verdicts(folder, info, names)
    samples = [part for part in range(len(info.parts)) if part_name("samples", part) in names]
    if samples:
        _read_again(worker, info, samples, source, progress)
    _restore_exchanges(folder, info, names)
    for name in names:
        if name.startswith(("scores/", "state/")):
            folder.storage.remove(name)
    if any(name.startswith("state/") for name in names) and info.state in ("scoring", "done"):
        from multimodal_eval.run.execute import fit

        fit(worker, info, executor, progress)
        folder.write_info(info)  # whose signatures the statistics must agree with
    return info


def asks_again(folder: RunFolder, info: RunInfo) -> bool:
    """Whether a model must answer samples of a run: those without an answer, or with a damaged one."""
    if info.rescored_from is not None:  # its answers were copied
        return False
    if info.state in ("reading", "generating"):
        return True
    return any(fault.name.startswith("answers/") for fault in faults(folder))


def _without_damaged_answers(folder: RunFolder, info: RunInfo, names: set[str]) -> RunInfo:
    """Remove damaged answers, and what depends on them. The run is then `generating`."""
    damaged = sorted(name for name in names if name.startswith("answers/"))
    if not damaged:
        return info
    if info.rescored_from is not None:
        raise RunFolderError(
            f"{folder.label}/{damaged[0]} is damaged. Restore it, or rescore {info.rescored_from} again"
        )
    info = msgspec.structs.replace(info, state="generating", signatures={}, finished=None, judging={})
    folder.write_info(info)  # first: a run that is killed now has no scores either
    for name in ("results.json", "lint.json", "classification.json", "judges.json", "scores", "state", *damaged):
        folder.storage.remove(name)
    judged = {name for name in folder.checksums.data_files() if name.startswith("verdicts/")}
    for name in (*judged, *(name.replace("verdicts/", "exchanges/", 1) for name in judged)):  # of other answers
        folder.storage.remove(name)
    folder.record_checksums()
    return info


def judges_again(folder: RunFolder, info: RunInfo) -> bool:
    """Whether judges must be asked to continue a run: it has questions without a verdict, or a damaged one."""
    if not info.config.judges:
        return False
    if info.state not in ("scoring", "done"):
        return True
    return any(_is_of_verdicts(fault.name) for fault in faults(folder))


def _is_of_verdicts(name: str) -> bool:
    return name.startswith("verdicts/") and name.endswith(".parquet")


def _without_damaged_verdicts(folder: RunFolder, info: RunInfo, names: set[str]) -> RunInfo:
    """Remove damaged verdicts, and the scores of their parts. A run that was scored is then `judging`."""
    damaged = sorted(filter(_is_of_verdicts, names))
    if not damaged:
        return info
    if info.state in ("scoring", "done"):
        info = msgspec.structs.replace(info, state="judging", signatures={}, finished=None)
        folder.write_info(info)  # first: a run that is killed now has no results either
        parts = {name.rpartition(".part-")[2] for name in damaged}
        scores = [f"scores/part-{part}" for part in sorted(parts)]
        for name in ("results.json", "lint.json", "classification.json", "judges.json", "state", *scores):
            folder.storage.remove(name)
    for name in damaged:
        folder.storage.remove(name)
    folder.record_checksums()
    return info


def _restore_exchanges(folder: RunFolder, info: RunInfo, names: set[str]) -> None:
    """Replace damaged exchanges by ones without times, and their manifest, if the files can still be read."""
    from multimodal_eval.judges.verdict_tables import exchanges_kind, verdicts_kind

    if EXCHANGES in names:
        folder.storage.remove(EXCHANGES)
    kinds = {"exchanges": "answers", **{exchanges_kind(name): verdicts_kind(name) for name in info.judging}}
    start = 0
    for part, size in enumerate(info.parts):
        for kind, replies in kinds.items():
            name = part_name(kind, part)
            if (name in names or EXCHANGES in names) and folder.has_part(replies, part):
                table = folder.read_part(replies, part)
                if EXCHANGES in names and _is_readable(folder, name, len(table)):
                    folder.checksums.note_current(name)
                else:
                    folder.write_part(kind, part, _without_times(table, start))
        start += size


def _without_times(replies: pa.Table, first_row: int) -> pa.Table:
    """The exchanges of stored answers or verdicts, as far as these tell."""
    if "judge" in replies.schema.names:
        from multimodal_eval.judges.verdict_tables import rows_of, verdict_exchanges

        return verdict_exchanges(rows_of(replies))
    return exchange_table(first_row, exchanges_of(replies))


def _is_readable(folder: RunFolder, name: str, size: int) -> bool:
    """Whether a part can be read: its pages have checksums of their own."""
    try:
        with folder.storage.local_copy(name) as path, faults_named(partial(folder.checksums.damaged, name)):
            return len(read_table(path, None)) == size
    except RunFolderError:
        return False


def _restore_manifest(folder: RunFolder) -> None:
    """Replace a damaged manifest, if all files are as results.json says; otherwise any of them may be damaged."""
    checksums = folder.checksums
    try:
        checksums.manifest()
    except DamagedFileError:
        named = checksums.named_manifest()
        if named is None or named != checksums.record_as_is():
            checksums.forget_manifest()


def _read_again(
    worker: Worker, info: RunInfo, parts: Collection[int], source: Callable[[], Input | None], progress: Progress
) -> None:
    """Store some parts of the samples again, from the same input."""
    folder = worker.folder
    first = f"{folder.label}/{part_name('samples', min(parts))} is damaged"
    opened = source()
    if opened is None:
        raise RunFolderError(
            f"{first}, and its samples cannot be read again: they were in memory. Start a new run, or restore the file"
        )
    _refuse_changed_input(opened, info, first)
    is_stopped = info.generation is not None and info.generation.stopped is not None
    problems, done = Problems(), 0
    most = max(info.parts)  # another version may have divided the input into larger or smaller parts
    for number, part in enumerate(opened.parts(problems, Summary(), most, worker.plan.config.limit)):
        size = info.parts[number] if number < len(info.parts) else -1
        if len(part) != size and not (is_stopped and number == len(info.parts) - 1 and len(part) > size):
            raise RunFolderError(f"{first}, and this version divides the input into other parts. Start a new run")
        if number in parts:
            _replace(folder, number, part.table(done).slice(0, size))
        done += len(part)
        progress("reading", done, sum(info.parts))
        if number >= max(parts):
            break
    problems.raise_if_any()


def _replace(folder: RunFolder, number: int, table: pa.Table) -> None:
    """Store a part again, with its answers if a model gave them.

    If it is not the same file as before, its scores are computed again, too.
    """
    name = part_name("samples", number)
    before = folder.checksums.known(name)
    if folder.has_part("answers", number):  # as they were stored and read again before they got their answers
        stored = read_table(BytesIO(to_parquet(table)), None)
        table = with_answers(stored, exchanges_of(folder.read_part("answers", number)))
    folder.write_part("samples", number, table)
    if folder.checksums.known(name) != before:
        folder.storage.remove(part_name("scores", number))


def _refuse_changed_input(opened: Input, info: RunInfo, first: str) -> None:
    """Refuse an input whose files are not those that the run has read."""
    now = [(file.bytes, file.sha256) for file in opened.describe()]
    before = [(file.bytes, file.sha256) for file in info.input]
    if now != before:
        names = [file.path for file, was, now_is in zip(info.input, before, now, strict=False) if was != now_is]
        changed = ", ".join(name for name in names if name is not None) or "the input"
        raise RunFolderError(
            f"{first}, and its samples cannot be read again: {changed} has changed since the run was started. "
            "Restore it, or start a new run"
        )
