"""Systems compared by a judge: two (`compare_by_judge`) or many (`rank_by_judge`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.judge_config import PREFIX, JudgeConfig, JudgeUntil
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.grants import Consent
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run.comparisons import (
    Answered,
    ComparisonInput,
    MadeSamples,
    answered,
    comparison_samples,
    pairs_of_systems,
    system_of_column,
    system_of_file,
    system_of_run,
)
from multimodal_eval.run.generated import GeneratedRun
from multimodal_eval.run.judging import Judge, JudgeSettings, changed, read_judge, with_judges, with_settings
from multimodal_eval.run.plan import Plan, make_plan
from multimodal_eval.run.start import start

__all__ = [
    "JudgedPairs",
    "PairChoice",
    "as_answered",
    "compare_by_judge",
    "comparing_judge",
    "comparing_plan",
    "judge_named",
    "judged_pairs",
    "rank_by_judge",
    "ranking",
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


# Many systems ranked by a judge: `rank_by_judge`.


@dataclass(frozen=True)
class PairChoice:
    """Which systems are compared: all pairs, all with the first system, or some random pairs of each sample."""

    with_first: bool = False
    per_sample: int | None = None

    @classmethod
    def parse(cls, text: str) -> PairChoice:
        """The choice that a user writes: all, baseline, or random:N."""
        if text in ("all", "baseline"):
            return cls(with_first=text == "baseline")
        kind, _, number = text.partition(":")
        if kind != "random" or not number.isdecimal() or not int(number):
            raise ConfigError(f"pairs are chosen by all, baseline or random:N, such as random:3. Got {text!r} instead.")
        return cls(per_sample=int(number))

    def pairs(self, systems: int) -> list[tuple[int, int]]:
        """The pairs of systems that are compared at all."""
        return [pair for pair in combinations(range(systems), 2) if not self.with_first or pair[0] == 0]

    def chosen(self, samples: list[Sample], seed: int) -> list[Sample]:
        """The comparisons of one sample that are made, out of those of all pairs."""
        if self.per_sample is None or self.per_sample >= len(samples):
            return samples
        drawn = sorted(samples, key=lambda sample: _digest(f"pair\0{seed}\0{sample.id}"))[: self.per_sample]
        identifiers = {sample.id for sample in drawn}
        return [sample for sample in samples if sample.id in identifiers]


def rank_by_judge(
    runs: Sequence[Location | Run | GeneratedRun],
    *,
    judge: Judge | Sequence[Judge] | None = None,
    pairs: str = "all",
    until: JudgeUntil | None = None,
    metric: str | JudgeConfig = "judge:preference",
    output: Location | None = None,
    overwrite: bool = False,
    allow_partial: bool = False,
    media_roots: Sequence[str | Path] = (),
    seed: int = 0,
    progress: Progress | bool | None = None,
    **settings: Any,
) -> Run:
    """Let a judge compare the answers of several runs, and return the run of these comparisons. `rate` rates it.

    `pairs` is "all", "baseline" (each run with the first one) or "random:N" (N random pairs of each sample). With
    `until`, samples are drawn in a random order, and a pair of runs is compared only until it is certain enough:
    see docs/ratings.md. `judge`, `metric`, `settings` and the other options are as in `compare_by_judge`.
    """
    config = comparing_judge(metric, judge, settings)
    if until is not None:
        config = msgspec.structs.replace(config, until=until)
    compared = ranking(
        [as_answered(run) for run in runs],
        config,
        PairChoice.parse(pairs),
        allow_partial=allow_partial,
        media_roots=media_roots,
        seed=seed,
    )
    return Run(*start(compared.plan, compared.source, output, progress=progress, overwrite=overwrite))


def ranking(
    runs: Sequence[Answered],
    judge: JudgeConfig,
    choice: PairChoice,
    *,
    allow_partial: bool = False,
    media_roots: Sequence[str | Path] = (),
    seed: int = 0,
) -> JudgedPairs:
    """The comparisons of several runs."""
    if len(runs) < 2:
        raise ConfigError("a ranking needs at least two runs")
    if judge.form != "pairwise":
        raise ConfigError(f"the judge {judge.name!r} has the form {judge.form!r}; a ranking needs the form 'pairwise'")
    plan = comparing_plan(runs[0], judge, media_roots)
    plan = msgspec.structs.replace(
        plan, config=msgspec.structs.replace(plan.config, seed=seed)
    )  # of the order, if they may stop early
    samples = comparison_samples(runs, choice.pairs(len(runs)), allow_partial=allow_partial)

    def chosen() -> Iterator[Sample]:
        """The comparisons of each sample, which follow each other."""
        for _, block in groupby(samples, key=lambda sample: sample.metadata["sample"]):
            yield from choice.chosen(list(block), seed)

    return JudgedPairs(plan, ComparisonInput(MadeSamples(chosen), runs))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
