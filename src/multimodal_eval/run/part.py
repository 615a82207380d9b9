"""The work on one part: fit, or score and commit. A worker needs only the run folder and the plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from multimodal_eval.core.metric import Metric, Scorer
from multimodal_eval.core.score import Score
from multimodal_eval.core.scoring import score_batch, with_failures_marked
from multimodal_eval.data.run_folder import RunFolder
from multimodal_eval.data.sample_table import to_samples
from multimodal_eval.data.score_table import columns_of, key_columns, score_columns, stored_scores
from multimodal_eval.evaluation.composite_score import COMPOSITE, composite_of_scores
from multimodal_eval.lint.facts import Facts, facts_of
from multimodal_eval.media.policy import using
from multimodal_eval.run.plan import Plan

BATCH = 1024


class States(dict[str, Any]):
    """Corpus statistics by metric; `+` adds them metric by metric."""

    def __add__(self, other: States) -> States:
        return States({name: add_states(self.get(name), other.get(name)) for name in {**self, **other}})


def add_states(left: Any, right: Any) -> Any:
    """The sum, where None stands for nothing."""
    if left is None or right is None:
        return right if left is None else left
    return left + right


@dataclass
class Worker:
    """Opens the metrics once and then works on any part of the run."""

    plan: Plan
    folder: RunFolder
    earlier: RunFolder | None = None  # a run over the same parts
    reusable: frozenset[str] = field(default=frozenset())  # metrics whose scores are taken from it

    def fit(self, part: int) -> States:
        """The corpus statistics of a part."""
        samples = with_failures_marked(self.folder.read_samples(part), self.plan.config.patterns)
        return States({metric.name: metric.fit(samples) for metric in self.plan.metrics if metric.fits})

    def state(self, metric: Metric) -> Any:
        """The state of the whole run for a metric."""
        if not self.folder.has_state(metric.name):
            return metric.default_state()
        with self.folder.state_copy(metric.name) as path:
            return metric.load_state(path)

    @cached_property
    def scorers(self) -> dict[str, Scorer]:
        """The opened metrics."""
        fresh = [metric for metric in self.plan.metrics if metric.name not in self.reusable]
        return {metric.name: metric.open(self.state(metric)) for metric in fresh}

    def score(self, part: int) -> Facts | None:
        """Score a part and commit it; what lint keeps of its samples, while they are in memory, if it is wanted."""
        folder = self.folder
        stored = folder.read_part("samples", part)
        samples, first_row = to_samples(stored), stored.column("row")[0].as_py()
        columns: dict[str, pa.Array] = key_columns(samples, first_row)
        scores: dict[str, list[Score]] = {}
        if self.reusable and self.earlier is not None:
            table = self.earlier.read_part("scores", part)
            for name in self.reusable:
                columns |= columns_of(table, name)
                scores[name] = stored_scores(columns, name)
        for metric in self.plan.metrics:
            if metric.name in self.reusable:
                continue
            fresh: list[Score] = []
            with using(self.plan.config.media_policy):
                for start in range(0, len(samples), BATCH):
                    batch = samples[start : start + BATCH]
                    fresh += score_batch(metric, self.scorers[metric.name], batch, self.plan.config.patterns)
            columns |= score_columns(metric.name, fresh)
            scores[metric.name] = fresh
        if self.plan.composite:
            columns |= score_columns(COMPOSITE, self._composites(scores, len(samples)))
        folder.write_part("scores", part, pa.table(columns))
        return None if self.plan.config.skip_lint else facts_of(samples, self.plan.config.patterns)

    def _composites(self, scores: dict[str, list[Score]], count: int) -> list[Score]:
        task = self.plan.task
        assert task is not None
        return [
            composite_of_scores(task, {name: column[row] for name, column in scores.items()}) for row in range(count)
        ]
