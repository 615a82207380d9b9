"""Answers first, scores later: `generate` stops after the answers, `score_generated` continues in the same folder."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.display import HasHtml, counted
from multimodal_eval.core.errors import ConfigError, RunFolderError
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import GenerationInfo, RunInfo
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.grants import Consent
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder, faults
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run.ask.replies import resuming
from multimodal_eval.run.config import ConfigSource, copy_of, load_config, overlaid, with_task
from multimodal_eval.run.continuing import Asked, continue_run, resumed_plan, with_asked, with_metrics
from multimodal_eval.run.engine.base import Engine, EngineName
from multimodal_eval.run.generation import Model, generation_of, label_of, settled
from multimodal_eval.run.judging import Judge, JudgeSettings
from multimodal_eval.run.plan import Plan
from multimodal_eval.run.rescore import refuse_columns, rescoring_plan
from multimodal_eval.run.start import Data, planned, start

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["GeneratedRun", "continue_generation", "generate", "score_generated", "scoring_plan"]


class GeneratedRun(HasHtml):
    """The answers of a model to all samples of a run, which is not scored yet.

    `samples()` has them with the samples, `answers()` as an Arrow table with status, reason, reasoning and tokens.
    """

    def __init__(
        self, location: Location | RunFolder, scratch: Path | None = None, info: RunInfo | None = None
    ) -> None:
        self.folder = location if isinstance(location, RunFolder) else RunFolder(location)
        self.info: RunInfo = self.folder.read_info() if info is None else info
        if self.info.generation is None or not self.info.has_answers or self.info.judging or self.info.signatures:
            raise RunFolderError(_not_generated(self.folder, self.info))
        self._scratch = scratch
        self._removed = None if scratch is None else weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)

    @property
    def path(self) -> Path:
        """The run folder."""
        return self.folder.path

    @property
    def generation(self) -> GenerationInfo:
        """The model, its settings, and how many samples have which status."""
        assert self.info.generation is not None
        return self.info.generation

    def samples(self) -> Iterator[Sample]:
        """The samples with their answers; a failure is the `error` of its sample."""
        for part in range(len(self.info.parts)):
            yield from self.folder.read_samples(part)

    def answers(self) -> pa.Table:
        """One row per sample, in input order."""
        import pyarrow as pa

        parts = [self.folder.read_part("answers", part) for part in range(len(self.info.parts))]
        return pa.concat_tables(parts, promote_options="default")

    def score(self, **settings: Any) -> Run:
        """Score the answers in the same folder; `settings` are those of `score_generated`."""
        folder = score_generated(self.folder, **settings).folder
        if self._removed is not None:  # from now on, the folder is removed with the scored run
            self._removed.detach()
        return Run(folder, self._scratch)

    def __len__(self) -> int:
        return sum(self.info.parts)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count:,} {status}" for status, count in self.generation.statuses.items())
        return f"{counted(len(self), 'sample')}, answered by {self.generation.settings.get('model')}: {counts}"


def generate(
    data: Data,
    *,
    model: Model | None = None,
    task: str | None = None,
    config: ConfigSource = None,
    output: Location | None = None,
    overwrite: bool = False,
    progress: Progress | bool | None = None,
    **settings: Any,
) -> GeneratedRun:
    """Ask a model for an answer to every sample, without scoring them.

    `model` is PROVIDER:NAME, a `Generator`, or a function of a `Request` that returns text. `task` chooses the prompt.
    The other arguments are those of `evaluate`; the setting `generation` has the prompt, the parameters and all else.
    The result's `score(task=…)` scores the answers, and so does `mmeval score RUN`.
    """
    data, config, _ = with_task(data, config, label_of(model), task, **copy_of(settings))
    configured = settled(config, model, task=task, **settings)
    if configured.generation is None:
        raise ConfigError("`generate` needs a model: PROVIDER:NAME, a generator or a function")
    plan, source = planned(configured, data, None, scores=False)
    generation = generation_of(plan, model)
    return GeneratedRun(*start(plan, source, output, progress=progress, overwrite=overwrite, generation=generation)[:3])


def continue_generation(
    location: Location,
    *,
    model: Model | None = None,
    media_roots: Sequence[str | Path] = (),
    accept_open: bool = False,
    progress: Progress | bool | None = None,
    generation: Mapping[str, Any] | None = None,
) -> GeneratedRun:
    """Ask for the answers that an interrupted `generate` lacks; the arguments are those of `resume`."""
    folder = RunFolder(location)
    info = folder.read_info()
    if not info.has_answers or any(faults(folder)):
        consent = Consent(folder, info, media_roots=media_roots)
        plan = resumed_plan(consent)
        if plan.names:
            raise RunFolderError(f"{folder.label} also computes scores. Continue it with: {resuming(folder, info)}")
        settle = partial(with_asked, Asked(model, generation))
        continue_run(plan, consent, settle, progress=progress, accept_open=accept_open)
    return GeneratedRun(location)


def score_generated(
    location: Location | RunFolder,
    *,
    config: ConfigSource = None,
    plugins: Sequence[str | Path] = (),
    media_roots: Sequence[str | Path] = (),
    progress: Progress | bool | None = None,
    engine: Engine | EngineName = "local",
    workers: int | None = None,
    judge: Judge | Sequence[Judge] | JudgeSettings | None = None,
    **settings: Any,
) -> Run:
    """Score the answers of a model that are stored in a run folder, in place.

    `settings` are keys of the configuration: `task`, `metrics`, `options`, `by` and so on. `judge` is as in `evaluate`.
    """
    folder = location if isinstance(location, RunFolder) else RunFolder(location)
    judging = judge if isinstance(judge, JudgeSettings) else JudgeSettings.of(judge)
    plan = scoring_plan(folder, overlaid(config, **settings), plugins, media_roots, judging)
    consent = Consent(folder, folder.read_info(), plugins, media_roots)
    return Run(continue_run(plan, consent, with_metrics, Engine.of(engine, workers), progress))


def scoring_plan(
    folder: RunFolder,
    config: ConfigSource,
    plugins: Sequence[str | Path] = (),
    media_roots: Sequence[str | Path] = (),
    judging: JudgeSettings | None = None,
) -> Plan:
    """The plan that scores a folder with answers: new settings on top of those that it was generated with."""
    stored = GeneratedRun(folder)
    changes = load_config(config)
    if changes.generation is not None:
        changes = msgspec.structs.replace(changes, generation=None)
    plan = rescoring_plan(stored, changes, plugins, media_roots, judging)
    refuse_columns(stored, plan)
    Consent(folder, stored.info, plugins, media_roots).refuse(metrics=plan.metrics)
    return plan


def _not_generated(folder: RunFolder, info: RunInfo) -> str:
    label = folder.label
    if not info.has_answers:
        return f"{label} has samples without an answer. Continue with: {resuming(folder, info)}"
    if info.finished is not None:
        return f"{label} is scored already. For other metrics: mmeval rescore {label} --config FILE"
    return f"{label} is not finished. Continue with: {resuming(folder, info)}"
