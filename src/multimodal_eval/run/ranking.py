"""Many systems ranked by a judge: `rank_by_judge`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.judge_config import JudgeConfig, JudgeUntil
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run.comparisons import Answered, ComparisonInput, MadeSamples, comparison_samples
from multimodal_eval.run.generated import GeneratedRun
from multimodal_eval.run.judged_pairs import JudgedPairs, as_answered, comparing_judge, comparing_plan
from multimodal_eval.run.judging.settings import Judge
from multimodal_eval.run.start import start

__all__ = ["PairChoice", "rank_by_judge", "ranking"]


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
    plan = replace(plan, config=msgspec.structs.replace(plan.config, seed=seed))  # of the order, if they may stop early
    samples = comparison_samples(runs, choice.pairs(len(runs)), allow_partial=allow_partial)

    def chosen() -> Iterator[Sample]:
        """The comparisons of each sample, which follow each other."""
        for _, block in groupby(samples, key=lambda sample: sample.metadata["sample"]):
            yield from choice.chosen(list(block), seed)

    return JudgedPairs(plan, ComparisonInput(MadeSamples(chosen), runs))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
