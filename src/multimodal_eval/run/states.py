"""The corpus statistics of a run's metrics, as they are stored in its folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from multimodal_eval.core.metric import Metric
from multimodal_eval.core.metric_failures import blamed_on
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.plan import Plan

__all__ = ["States"]


@dataclass
class States:
    """Reads the state of each metric once. Metrics with the same statistics share one."""

    plan: Plan
    folder: RunFolder
    _states: dict[str, Any] = field(default_factory=dict, repr=False)

    def keep(self, metric: Metric, state: Any) -> None:
        """Remember a new state, so that it is not read again."""
        self._states[metric.name] = state

    def of(self, metric: Metric) -> Any:
        """The state of a metric for the whole run."""
        if metric.name not in self._states:
            same = [other for other in self.plan.metrics if other.fits and other.corpus_key == metric.corpus_key]
            known = next((self._states[other.name] for other in same if other.name in self._states), None)
            if not self.folder.has_state(metric.name):
                known = metric.default_state()
            elif known is None:
                with self.folder.state_copy(metric.name) as path, blamed_on(metric.name, "reading its statistics"):
                    known = metric.load_state(path)
            self._states[metric.name] = known
        return self._states[metric.name]
