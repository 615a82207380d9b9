"""Score the samples of a run again, with other settings, in a new folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

import msgspec

from multimodal_eval.analysis.slices import ColumnsSeen
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError, RunFolderError, UnavailableError
from multimodal_eval.core.metric import opens_media
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import JsonObject, RunInfo
from multimodal_eval.core.sample import FIELDS
from multimodal_eval.data.labels.human import STORED, HumanLabel, store_labels, stored_labels
from multimodal_eval.data.runs.grants import Consent
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.media.policy import policy_of
from multimodal_eval.run.config import ConfigSource, load_config, merged_judges, overlaid
from multimodal_eval.run.engine.base import Engine, EngineName
from multimodal_eval.run.judging import Judge, JudgeSettings, with_judge, with_judges
from multimodal_eval.run.plan import Plan, make_plan, metric_names
from multimodal_eval.run.start import describe, start
from multimodal_eval.run.step import RunContext, States, stored_signature

__all__ = ["Earlier", "refuse_columns", "rescore", "rescoring_plan"]


class Stored(Protocol):
    """A run folder and its description."""

    folder: RunFolder
    info: RunInfo


_INPUT_SETTINGS = (
    *("limit", "ids", "only_answered", "map", "annotators", "questions", "allow_partial", "max_expansion"),
    *("max_record_mb", "format"),
)


def rescore(
    run: Location | Run,
    config: ConfigSource,
    *,
    plugins: Sequence[str | Path] = (),
    media_roots: Sequence[str | Path] = (),
    output: Location | None = None,
    overwrite: bool = False,
    progress: Progress | bool | None = None,
    engine: Engine | EngineName = "local",
    workers: int | None = None,
    judge: Judge | Sequence[Judge] | None = None,
) -> Run:
    """Score the same samples with other weights, tasks or metrics, in a new folder.

    Scores with an unchanged signature are reused; only new ones are computed. `plugins` are files that
    define metrics, in addition to those of `config`: files named in the old run are not imported. `media_roots` are
    folders to read its media from; a run that was not made here reads none without them. `overwrite` replaces a run
    that is already at `output`. Judges are asked only if their questions or their models change; `judge` names other
    models, as in `evaluate`.
    """
    old = run if isinstance(run, Run) else Run(run)
    plan = rescoring_plan(old, config, plugins, media_roots, JudgeSettings.of(judge))
    return Run(*start(plan, Earlier(old, plan), output, Engine.of(engine, workers), progress, overwrite=overwrite))


def rescoring_plan(
    old: Stored,
    config: ConfigSource,
    plugins: Sequence[str | Path] = (),
    media_roots: Sequence[str | Path] = (),
    judging: JudgeSettings | None = None,
) -> Plan:
    """The plan with the new settings on top of the old run's; a new task brings its own metrics."""
    consent = Consent(old.folder, old.info, plugins, media_roots)
    _remember_judges(old.info)
    changes = msgspec.to_builtins(with_judges(load_config(config)))
    for setting in _INPUT_SETTINGS:
        if setting in changes:
            raise ConfigError(f"{setting!r} is a setting for reading an input, but rescoring uses the samples of RUN")
    changes["plugins"] = [*changes.get("plugins", []), *consent.plugins]
    inherited = msgspec.to_builtins(consent.config)
    if changes.get("task", old.info.task) != old.info.task or "tasks" in changes:
        inherited.pop("metrics", None)
    if "metrics" in changes or "metrics" not in inherited:
        inherited.pop("presets", None)
        inherited.pop("headline", None)  # the new metrics may not have it
    judges_changed = changes.pop("judges", {})
    judges = merged_judges(inherited.pop("judges", {}), judges_changed)
    names = metric_names(overlaid({**inherited, **changes}))
    read_by_rule = {name for name, options in changes.get("options", {}).items() if options.get("fallback") == "none"}
    changes["judges"] = {name: judge for name, judge in judges.items() if name in names and name not in read_by_rule}
    options_kept = {name: options for name, options in inherited.get("options", {}).items() if name in names}
    changed = {name: {**options_kept.get(name, {}), **options} for name, options in changes.pop("options", {}).items()}
    human = {name: column for name, column in inherited.get("human", {}).items() if not name or name in names}
    if not any(name in judges for name in names):
        human.pop("", None)
    human |= changes.get("human", {})
    settings = overlaid({**inherited, **changes, "options": {**options_kept, **changed}, "human": human})
    settings = with_judge(settings, judging)
    consent.refuse(_kept_settings(settings, changes, changed), asks_model=not old.info.has_answers)
    with consent.missing_plugins_explained():
        plan = make_plan(settings, stored=old.info.signatures)
    consent.refuse_other_definitions(plan.metrics)
    names_all = judging is not None and bool(judging.models)
    chosen = settings.judges if names_all else [name for name, each in judges_changed.items() if each.get("models")]
    return msgspec.structs.replace(plan, chosen=frozenset(chosen))


def _kept_settings(settings: RunConfig, changes: JsonObject, options: JsonObject) -> RunConfig:
    """The settings that come from the old run: without `changes` of the user and without the changed `options`."""
    kept = {
        metric: {name: value for name, value in values.items() if name not in options.get(metric, {})}
        for metric, values in settings.options.items()
    }
    return msgspec.structs.replace(settings, options=kept, labels=None if "labels" in changes else settings.labels)


def _remember_judges(info: RunInfo) -> None:
    """Make the labels of the old run's judges known: other weights ask nothing, and need no model."""
    if not info.judging:
        return
    from multimodal_eval.judges.panel import remember_labels

    for name, judging in info.judging.items():
        models = judging.settings.get("models")
        if name in info.config.judges and isinstance(models, str):
            remember_labels(info.config.judges[name], models)


@dataclasses.dataclass(frozen=True)
class Earlier:
    """A run whose samples and answers a new one takes, with the scores that stay the same, instead of an input."""

    run: Run
    plan: Plan  # of the new run
    labels: list[HumanLabel] | None = None  # human labels of a file; by default, those that the run has

    def describe(self, location: Location, *, overwrite: bool | None) -> RunInfo:
        """The initial content of the new run.json. Whatever can be refused is refused before any file is taken."""
        old = self.run
        if overwrite and RunFolder(location).address == old.folder.address:
            raise RunFolderError(
                f"{old.folder.label} cannot be replaced by a run that uses its scores. Name another folder"
            )
        self.refuse()
        return describe(
            self.plan,
            old.info.source,
            input=old.info.input,
            counts=old.info.counts,
            input_notes=old.info.input_notes,
            parts=old.info.parts,
            generation=old.info.generation,
            imported=old.info.imported,
            judging={name: old.info.judging[name] for name in self.same_questions},
            rescored_from=old.folder.address,
        )

    def begin(self, run: RunContext) -> None:
        """Lend the samples to a new run, with the human labels."""
        if STORED in run.plan.config.human.values():
            store_labels(run.folder, stored_labels(self.run.folder) if self.labels is None else self.labels)
        self.lend(run)

    def lend(self, run: RunContext) -> None:
        """Let a run take what stays the same."""
        run.earlier, run.reusable, run.taken = self.run.folder, self.reusable, self._taken
        here = Consent(run.folder, run.info).foreign_judges(run.plan.config)
        run.refused = (self._consent.foreign_judges(run.plan.config) | here) - run.plan.chosen

    def refuse(self, *, is_scored: bool = False) -> None:
        """Refuse what can be refused before any file is taken; all else was allowed if the run is being scored."""
        fresh = [metric for metric in self.plan.metrics if metric.name not in self.reusable]
        for metric in fresh:
            reason = metric.unavailable()
            if reason is not None:
                raise UnavailableError(f"{metric.name}: {reason}")
        if is_scored:
            return
        if policy_of(self.plan.config) == policy_of(self._consent.config):  # the user has named no folder
            self._consent.refuse(metrics=fresh)
        refuse_columns(self.run, self.plan)

    @cached_property
    def _consent(self) -> Consent:
        return Consent(self.run.folder, self.run.info)

    @property
    def _taken(self) -> tuple[str, ...]:
        """Samples with their answers, verdicts on the same questions, and what is known about the same media."""
        kinds = [f"{kind}/{name}.part-" for name in self.same_questions for kind in ("verdicts", "exchanges")]
        return ("samples/", "answers/", "exchanges/part-", *kinds, *(["media/"] if self._has_same_media else []))

    @cached_property
    def _has_same_media(self) -> bool:
        """Whether media are read from where the run has read them, and not from folders that the user names now."""
        policy, roots = policy_of(self.plan.config), self.plan.config.media_roots
        allowed = Consent(self.run.folder, self.run.info, media_roots=roots).config
        return policy in (policy_of(self.run.info.config), policy_of(allowed))

    @cached_property
    def same_questions(self) -> list[str]:
        """The metrics whose questions the judges have answered, about the same samples."""
        plan, info = self.plan, self.run.info
        if not plan.judges or plan.config.patterns != info.config.patterns:  # patterns tell which answers are failures
            return []
        return [
            metric.name
            for metric in plan.judges
            if metric.name in info.judging and info.judging[metric.name].settings == metric.asking
        ]

    @cached_property
    def reusable(self) -> frozenset[str]:
        """The metrics whose scores would not change: the same settings, corpus and images."""
        plan, info = self.plan, self.run.info
        before = States(plan, self.run.folder)
        averaging = {name: getattr(info.config, name) for name in ("strata", "count_failures")}
        as_before = msgspec.structs.replace(plan.config, **averaging)  # which changes no score of samples
        return frozenset(
            metric.name
            for metric in plan.metrics
            if (self._has_same_media or not opens_media(metric))
            and info.signatures.get(metric.name) == stored_signature(metric, before.of(metric), as_before)
        )


def refuse_columns(old: Stored, plan: Plan) -> None:
    """Refuse slices and strata whose columns the old samples do not have."""
    columns = ColumnsSeen(plan.config)
    known: set[str] = set()
    for number in range(len(old.info.parts)) if plan.config.by or plan.config.strata else ():
        samples = old.folder.read_samples(number)
        columns.see(samples)
        known.update(*(sample.metadata for sample in samples))
        known.update(field for field in FIELDS if any(getattr(sample, field) is not None for sample in samples))
    columns.check_columns(known)
