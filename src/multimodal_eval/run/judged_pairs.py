"""Two systems compared by a judge: `compare_by_judge`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.judge_config import PREFIX, JudgeConfig
from multimodal_eval.core.progress import Progress
from multimodal_eval.data.runs.grants import Consent
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run.comparisons import (
    Answered,
    ComparisonInput,
    answered,
    comparison_samples,
    pairs_of_systems,
    system_of_column,
    system_of_file,
    system_of_run,
)
from multimodal_eval.run.generated import GeneratedRun
from multimodal_eval.run.judging.files import read_judge, with_judges
from multimodal_eval.run.judging.settings import Judge, JudgeSettings, changed, with_settings
from multimodal_eval.run.plan import Plan, make_plan
from multimodal_eval.run.start import start

__all__ = [
    "JudgedPairs",
    "as_answered",
    "compare_by_judge",
    "comparing_judge",
    "comparing_plan",
    "judge_named",
    "judged_pairs",
]


@dataclass(frozen=True)
class JudgedPairs:
    """What a run of comparisons computes, and its samples."""

    plan: Plan
    source: ComparisonInput


def compare_by_judge(
    run: Location | Run | GeneratedRun,
    other: Location | Run | GeneratedRun | None = None,
    *,
    judge: Judge | Sequence[Judge] | None = None,
    baseline: str | Path | None = None,
    metric: str | JudgeConfig = "judge:preference",
    output: Location | None = None,
    overwrite: bool = False,
    allow_partial: bool = False,
    media_roots: Sequence[str | Path] = (),
    progress: Progress | bool | None = None,
    **settings: Any,
) -> Run:
    """Let a judge compare the answers of two runs, and return the run of these comparisons.

    Its score is the win rate of `run`: a win counts 1, a tie 0.5, a loss 0. The parts are wins, ties, losses, flips and
    more: see docs/pairwise.md. A pair with a failed answer is unscored.

    Instead of the `other` run, `baseline` names a file with other answers, or a column of the samples. `judge` is
    PROVIDER:NAME, a `Generator`, a function of a `Request` that returns text, or a list of them, a panel. `metric` is a
    judge with the form pairwise: judge:FILE.yaml, or a `JudgeConfig`; `settings` are changes of its settings, such as
    `orders`, `repeats` or `question`. With `allow_partial`, samples that only one of the runs has are left out.
    `media_roots` are folders to read media from, if `run` was not made here.
    """
    config = comparing_judge(metric, judge, settings)
    second = None if other is None else as_answered(other)
    pairs = judged_pairs(
        as_answered(run), second, config, baseline=baseline, allow_partial=allow_partial, media_roots=media_roots
    )
    return Run(*start(pairs.plan, pairs.source, output, progress=progress, overwrite=overwrite))


def comparing_judge(
    metric: str | JudgeConfig, judge: Judge | Sequence[Judge] | None, settings: Mapping[str, Any]
) -> JudgeConfig:
    """The judge of a comparison with other settings, and with other models if `judge` names some."""
    config = changed(judge_named(metric) if isinstance(metric, str) else metric, settings)
    return with_settings(config, JudgeSettings.of(judge))


def judged_pairs(
    run: Answered,
    other: Answered | None,
    judge: JudgeConfig,
    *,
    baseline: str | Path | None = None,
    allow_partial: bool = False,
    media_roots: Sequence[str | Path] = (),
) -> JudgedPairs:
    """The comparison of a run with another one, or with a baseline: a run, a file or a column."""
    if (other is None) == (baseline is None):
        raise ConfigError("name two runs, or one run and a baseline")
    if judge.form != "pairwise":
        raise ConfigError(f"the judge {judge.name!r} has the form {judge.form!r}; pairs need the form 'pairwise'")
    plan = comparing_plan(run, judge, media_roots)
    if other is None and (Path(str(baseline)) / "run.json").is_file():
        other = answered(str(baseline))
    if other is not None:
        samples = comparison_samples([run, other], [(0, 1)], allow_partial=allow_partial)
        return JudgedPairs(plan, ComparisonInput(samples, [run, other]))
    files = [Path(str(baseline))] if Path(str(baseline)).is_file() else []
    system = system_of_file(files[0]) if files else system_of_column(run, str(baseline))
    systems = [system_of_run(run, run.folder.name), system]
    samples = pairs_of_systems(run, systems, [(0, 1)], allow_partial=allow_partial)
    return JudgedPairs(plan, ComparisonInput(samples, [run], files))


def comparing_plan(run: Answered, judge: JudgeConfig, media_roots: Sequence[str | Path] = ()) -> Plan:
    """The plan of a run of comparisons. Media are read from where `run` reads them."""
    media = Consent(run.folder, run.info, media_roots=media_roots).config
    config = RunConfig(
        metrics=[judge.name],
        judges={judge.name: msgspec.structs.replace(judge, baseline="baseline")},
        error_patterns=[],  # failed answers are marked already, by the patterns of their own run
        image_root=media.image_root,
        media_roots=media.media_roots,
        allow_outside_images=media.allow_outside_images,
        allow_image_urls=media.allow_image_urls,
    )
    return make_plan(with_judges(config))


def judge_named(metric: str) -> JudgeConfig:
    """The judge of judge:FILE.yaml, or of judge:NAME."""
    if not metric.startswith(PREFIX):
        raise ConfigError(f"a comparison needs one metric of a judge: judge:FILE.yaml. Got {metric!r} instead.")
    return read_judge(metric.removeprefix(PREFIX))


def as_answered(run: Location | Run | GeneratedRun) -> Answered:
    """A run, finished or not, whose answers are compared."""
    return Answered(run.folder, run.info) if isinstance(run, Run | GeneratedRun) else answered(run)
