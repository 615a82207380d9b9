"""Ask a model for the answers of a run, and judges for verdicts on them. No reply is paid for twice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.readers.arranged_input import ArrangedInput, Draw
from multimodal_eval.data.readers.parts import Input
from multimodal_eval.data.runs.checksums import EXCHANGES
from multimodal_eval.data.runs.run_content import faults_named, part_name, read_table
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.evaluation.asking import AskingMetric
from multimodal_eval.generate.answer_tables import exchange_table, exchanges_of
from multimodal_eval.judges.verdict_tables import exchanges_kind, rows_of, verdict_exchanges, verdicts_kind
from multimodal_eval.run.ask.replies import resuming
from multimodal_eval.run.ask.until import baseline_of
from multimodal_eval.run.generation.probes import probe_of
from multimodal_eval.run.plan import Plan
from multimodal_eval.run.step import Step
from multimodal_eval.run.steps.read import Read

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Answers", "Exchanges", "ReadDrawn", "Verdicts", "arranged"]


class ReadDrawn(Read):
    """Stores the samples in the order in which they are drawn, and once per epoch."""

    def opened(self) -> Input | None:
        """The arranged input; if the run stopped early, without the rest."""
        opened = super().opened()
        return None if opened is None else arranged(opened, self.run.plan, self.run.info)


class Exchanges(Step):
    """Makes damaged exchanges again of the replies, as far as these tell: without times."""

    def left(self) -> Sequence[str]:
        """The damaged files."""
        return sorted(name for name in self.run.damaged if name.startswith("exchanges"))

    def make(self, left: Sequence[str]) -> None:
        """Store exchanges without times, for all replies that are there."""
        run, folder = self.run, self.run.folder
        without_manifest = EXCHANGES in left
        run.remove_damaged(EXCHANGES)
        kinds = {"exchanges": "answers", **{exchanges_kind(name): verdicts_kind(name) for name in run.info.judging}}
        start = 0
        for part, size in enumerate(run.info.parts):
            for kind, replies in kinds.items():
                name = part_name(kind, part)
                if (name in left or without_manifest) and run.has(part_name(replies, part)):
                    table = folder.read_part(replies, part)
                    if without_manifest and _is_readable(folder, name, len(table)):
                        folder.checksums.note_current(name)
                    else:
                        folder.write_part(kind, part, _without_times(table, start))
                    run.damaged.discard(name)
            start += size
        run.remove_damaged("exchanges/")  # of replies that are asked for again


def _without_times(replies: pa.Table, first_row: int) -> pa.Table:
    """The exchanges of stored answers or verdicts."""
    if "judge" in replies.schema.names:
        return verdict_exchanges(rows_of(replies))
    return exchange_table(first_row, exchanges_of(replies))


def _is_readable(folder: RunFolder, name: str, size: int) -> bool:
    """Whether a part can be read: its pages have checksums of their own."""
    try:
        with folder.storage.local_copy(name) as path, faults_named(partial(folder.checksums.damaged, name)):
            return len(read_table(path, None)) == size
    except RunFolderError:
        return False


class Answers(Step):
    """Stores an answer of the model to every sample."""

    state = "generating"
    may_refuse = True

    def left(self) -> Sequence[Any]:
        """The parts without answers; [None] if they are all there, but not counted."""
        run = self.run
        parts = [part for part in run.parts if not run.has(part_name("answers", part))]
        is_counted = run.info.generation is not None and run.info.generation.statuses
        return parts or ([] if is_counted else [None])

    def make(self, left: Sequence[Any]) -> None:
        """Ask for them."""
        from multimodal_eval.run.ask import answers

        run, generation = self.run, self.run.generation
        if generation is None:
            command = resuming(run.folder, run.info)
            raise RunFolderError(f"{run.folder.label} has samples without an answer. Continue with: {command}")
        run.unfinish(self)
        run.remove_damaged("answers/")
        answers.begin(run, generation)
        run.has_asked = True
        with generation.served():
            answers.ask_model(run, generation)


class Verdicts(Step):
    """Stores a verdict of every judge on every sample."""

    state = "judging"
    may_refuse = True

    def left(self) -> Sequence[str]:
        """The metrics whose judges must be asked, or whose verdicts are not counted."""
        return [metric.name for metric in self.run.plan.judges if not self._is_complete(metric)]

    def _is_complete(self, metric: AskingMetric) -> bool:
        run, name = self.run, metric.name
        judging = run.info.judging.get(name)
        if judging is None or not judging.statuses or (metric.config.until is not None and not judging.pairs):
            return False
        return all(run.has(part_name(verdicts_kind(name), part)) for part in run.parts)

    def make(self, left: Sequence[str]) -> None:
        """Ask them."""
        from multimodal_eval.run.ask import verdicts

        run = self.run
        run.remove_damaged("verdicts/")
        judging = run.info.judging
        uncounted = {name: replace(judging[name], statuses={}, pairs=[]) for name in left if name in judging}
        run.info = replace(run.info, judging={**judging, **uncounted})
        waiting = verdicts.begin(run)
        run.unfinish(self)
        run.has_asked = True
        verdicts.ask_judges(run, waiting)


def arranged(source: Input, plan: Plan, info: RunInfo) -> Input:
    """The input as its generation needs it; the input itself if every sample is asked once, in the order of the file.

    Samples that another run has, too, are drawn first if the run is compared with it. If a judge may stop early, the
    samples are drawn, too. A run that stopped early has only its first rows.
    """
    source = source if isinstance(source, ArrangedInput) else _arranged(source, plan)
    if isinstance(source, ArrangedInput) and info.generation is not None and info.generation.stopped:
        return msgspec.structs.replace(source, most_rows=sum(info.parts))
    return source


def _arranged(source: Input, plan: Plan) -> Input:
    generation = plan.config.generation
    if generation is None and any(judge.until is not None for judge in plan.config.judges.values()):
        return ArrangedInput(source, 1, Draw(plan.config.seed))
    if generation is None or (generation.epochs == 1 and not generation.until and not generation.probe):
        return source
    draw, until = None, generation.until
    if until is not None:
        draw = Draw(plan.config.seed)
        if until.better_than is not None:
            metric = next(metric for metric in plan.metrics if metric.name == until.metric)
            baseline = baseline_of(until, generation, plan, metric)
            draw = Draw(plan.config.seed, baseline.samples, baseline.label)
    return ArrangedInput(source, generation.epochs, draw, change=probe_of(generation, plan.config.seed))
