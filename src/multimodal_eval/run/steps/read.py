"""Read the input of a run into parts: once, before anything is scored, or those parts again that are damaged.

A large input is read in parallel, see `parallel_reading`. A run that scores an earlier one again takes its samples
instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from multimodal_eval.analysis.slices import ColumnsSeen
from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.core.records import Counts, InputFile
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.field_checks import taking_blank_references
from multimodal_eval.data.readers.parts import Input
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary, refuse_empty
from multimodal_eval.data.runs.checksums import EXCHANGES
from multimodal_eval.data.runs.run_content import part_name, read_table, to_parquet
from multimodal_eval.data.runs.run_folder import state_name, writing_parts
from multimodal_eval.data.runs.storage import take_file
from multimodal_eval.run.plan import takes_blank_references
from multimodal_eval.run.step import Step

if TYPE_CHECKING:
    import pyarrow as pa

    from multimodal_eval.data.readers.files import DataFile

__all__ = ["Take"]


class Read(Step):
    """Stores the samples of the input in parts, and notes what it has seen. A bad input is refused as a whole."""

    may_refuse = True

    def left(self) -> Sequence[Any]:
        """The parts that are missing; [None] if the input was never read to its end."""
        run = self.run
        if not run.info.parts:
            return [None]
        return [part for part in run.parts if not run.has(part_name("samples", part))]

    def make(self, left: Sequence[Any]) -> None:
        """Read the whole input, or some of its parts again."""
        with taking_blank_references(takes_blank_references(self.run.plan.config)):
            if self.run.info.parts:
                self._read_again(left)
            else:
                self._read_all()

    def opened(self) -> Input | None:
        """The input; None if its samples were in memory and are gone."""
        return self.run.input

    def task(self, item: Any) -> Any:
        """Do one task of reading in parallel, in any process."""

        from multimodal_eval.run.steps.reading_tasks import perform

        return perform(self.run.folder, self.run.plan.config, item)

    def _read_all(self) -> None:
        """Check the whole input and store its samples, before anything is scored."""
        run, source = self.run, self.opened()
        if source is None:
            raise RunFolderError(f"{run.folder.label} was interrupted before its samples were stored. Start a new run")
        if run.is_continued:
            run.folder.clear_samples()
        with limits.using(run.plan.config.max_expansion, run.plan.config.max_record_mb):
            read = self._read_in_parallel(source) or self._read_here(source)
        summary = read.summary
        recipe = source.recipe()
        refuse_empty(summary, None if recipe is None else recipe.data)
        if read.columns is not None:
            read.columns.check_columns([*summary.fields, *summary.metadata])
        counts = Counts(summary.samples, summary.blank_answers, summary.unmatched_data, summary.unmatched_predictions)
        files, named = read.files or source.describe(), run.info.input
        if len(files) == len(named):  # with the names that they had when the run was started
            files = [replace(file, path=name.path) for file, name in zip(files, named, strict=True)]
        run.note(input=files, counts=counts, input_notes=summary.notes, parts=read.parts)

    def _read_here(self, source: Input) -> ReadInput:
        """Read the input from start to end, in this process. All its problems are raised together."""
        run, problems, config = self.run, Problems(), self.run.plan.config
        columns = ColumnsSeen(config) if config.by or config.strata is not None else None
        read = ReadInput(Summary(), [], columns, [])
        sizes = read.parts
        with writing_parts(run.folder) as write:
            for part in source.parts(problems, read.summary, run.plan.part_size, config.limit):
                if columns is not None:
                    columns.see(part.samples(columns.fields))
                if not problems.total:  # a refused input is not stored
                    write(len(sizes), part.table(sum(sizes)))
                sizes.append(len(part))
                run.progress("reading", sum(sizes), None)
        problems.raise_if_any()
        return read

    def _read_in_parallel(self, source: Input) -> ReadInput | None:
        """Store the samples in parallel, if the input is large and can be read from several places.

        None if they must be read from start to end; then nothing is stored.
        """
        workers, config = self.run.engine.workers, self.run.plan.config
        is_chosen = config.limit is not None or config.ids is not None or config.only_answered
        if is_chosen or workers == 1 or not source.paths:
            return None
        from multimodal_eval.data.readers.inputs import FileInput
        from multimodal_eval.data.readers.splits import has_splits, is_divisible, is_parquet, split_size

        if not isinstance(source, FileInput) or source.is_vqa or not has_splits(source.files):
            return None
        # Other files are read twice: first to count their records.
        counted_fast = all(is_divisible(file.path) or is_parquet(file.path) for file in source.files)
        total = bytes_of(source.files)
        is_large = total > split_size(total, workers)
        if not is_large or not (counted_fast or (workers != 2 and len(source.files) > 1)):
            return None
        from multimodal_eval.run.steps.parallel_reading import read_in_parallel

        return read_in_parallel(self, source)

    def _read_again(self, parts: Sequence[int]) -> None:
        """Store some parts again, from the same input."""
        run, info = self.run, self.run.info
        first = f"{run.folder.label}/{part_name('samples', min(parts))} is damaged"
        opened = self.opened()
        if opened is None:
            raise RunFolderError(
                f"{first}, and its samples cannot be read again: they were in memory. Start a new run, or restore the "
                "file"
            )
        _refuse_changed_input(opened, info.input, first)
        is_stopped = info.generation is not None and info.generation.stopped is not None
        problems, done = Problems(), 0
        most = max(info.parts)  # another version may have divided the input into larger or smaller parts
        for number, part in enumerate(opened.parts(problems, Summary(), most, run.plan.config.limit)):
            size = info.parts[number] if number < len(info.parts) else -1
            if len(part) != size and not (is_stopped and number == len(info.parts) - 1 and len(part) > size):
                raise RunFolderError(f"{first}, and this version divides the input into other parts. Start a new run")
            if number in parts:
                self._store_again(number, part.table(done).slice(0, size))
            done += len(part)
            run.progress("reading", done, sum(info.parts))
            if number >= max(parts):
                break
        problems.raise_if_any()

    def _store_again(self, number: int, table: pa.Table) -> None:
        """Store a part, with its answers if a model gave them."""
        folder = self.run.folder
        if self.run.has(part_name("answers", number)):
            from multimodal_eval.generate.answer_tables import exchanges_of, with_answers

            stored = read_table(BytesIO(to_parquet(table)), None)  # as it was stored and read before it got its answers
            table = with_answers(stored, exchanges_of(folder.read_part("answers", number)))
        self.run.unfinish(self)
        folder.write_part("samples", number, table)
        self.run.damaged.discard(part_name("samples", number))


def _refuse_changed_input(opened: Input, known: list[InputFile], first: str) -> None:
    """Refuse an input whose files are not those that the run has read."""
    now = [(file.bytes, file.sha256) for file in opened.describe()]
    before = [(file.bytes, file.sha256) for file in known]
    if now != before:
        names = [file.path for file, was, now_is in zip(known, before, now, strict=False) if was != now_is]
        changed = ", ".join(name for name in names if name is not None) or "the input"
        raise RunFolderError(
            f"{first}, and its samples cannot be read again: {changed} has changed since the run was started. "
            "Restore it, or start a new run"
        )


def bytes_of(files: Iterable[DataFile]) -> int:
    """The size of some files."""
    return sum(file.path.stat().st_size for file in files)


class ReadInput(msgspec.Struct):
    """An input whose samples are stored."""

    summary: Summary
    parts: list[int]  # their sizes
    columns: ColumnsSeen | None  # None if the run has no slices or strata
    files: list[InputFile]


class Take(Step):
    """Links or copies files of the run that is scored again, and equal states."""

    def left(self) -> Sequence[str]:
        """The files that are missing here."""
        return [name for name in self._files if not self.run.has(name)]

    @property
    def _files(self) -> list[str]:
        run, earlier = self.run, self.run.earlier
        assert earlier is not None
        files = [name for name in earlier.checksums.data_files() if name.startswith(run.taken)]
        return files + [state_name(metric) for metric in run.reusable if earlier.has_state(metric)]

    def make(self, left: Sequence[str]) -> None:
        """Take them."""
        run, earlier = self.run, self.run.earlier
        assert earlier is not None
        run.remove_damaged(EXCHANGES)  # the checksums of the exchanges
        for name in left:
            known = run.folder.checksums.known(name)
            if known is not None and known != earlier.checksums.known(name):
                raise RunFolderError(
                    f"{run.folder.label}/{name} is damaged, and that of {earlier.label} has changed since. Restore it, "
                    f"or rescore {earlier.label} again"
                )
            run.folder.checksums.copied(name, earlier.checksums)
            run.folder.storage.remove(name)
            take_file(earlier.storage, run.folder.storage, name)
            run.damaged.discard(name)
