"""The corpus statistics of a run's metrics, and their signatures, as stored in run.json."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from multimodal_eval.analysis.failure_conventions import failure_settings
from multimodal_eval.analysis.slices import strata_settings
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.corpus import corpus_key, default_state, load_state
from multimodal_eval.core.failures import label
from multimodal_eval.core.metric import Metric, declared_options, signature_of
from multimodal_eval.core.metric_failures import blamed_on
from multimodal_eval.core.options import signed_values
from multimodal_eval.core.records import COMPOSITE, JsonObject, StoredSignature
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.evaluation.composite_score import composite_signature
from multimodal_eval.run.plan import Plan


class States(msgspec.Struct):
    """Reads the state of each metric once. Metrics with the same statistics share one."""

    plan: Plan
    folder: RunFolder
    _states: dict[str, Any] = msgspec.field(default_factory=dict)

    def keep(self, metric: Metric, state: Any) -> None:
        """Remember a new state, so that it is not read again."""
        self._states[metric.name] = state

    def of(self, metric: Metric) -> Any:
        """The state of a metric for the whole run."""
        if metric.name not in self._states:
            same = [other for other in self.plan.metrics if corpus_key(other) == corpus_key(metric)]
            known = next((self._states[other.name] for other in same if other.name in self._states), None)
            if not self.folder.has_state(metric.name):
                known = default_state(metric)
            elif known is None:
                with self.folder.state_copy(metric.name) as path, blamed_on(metric.name, "reading its statistics"):
                    known = load_state(metric, path)
            self._states[metric.name] = known
        return self._states[metric.name]


def signatures(plan: Plan, states: States) -> dict[str, StoredSignature]:
    """The signatures of all metrics and of the composite."""
    by_name = {metric.name: stored_signature(metric, states.of(metric), plan.config) for metric in plan.metrics}
    if plan.composite and plan.task is not None:
        headline = next((metric for metric in plan.metrics if metric.name == plan.task.headline), None)
        settings = {
            **strata_settings(plan.config.strata),
            **task_settings(plan.config),
            **failure_settings(plan.config, headline, COMPOSITE),
            **selection_settings(plan.config),
        }
        signature = composite_signature(plan.task).extended(**settings)
        by_name[COMPOSITE] = StoredSignature(str(signature), signature.to_dict())
    return by_name


def stored_signature(metric: Metric, state: Any, config: RunConfig) -> StoredSignature:
    """The signature as stored in run.json, with the options as they were given."""
    signature = signature_of(metric, state)
    errors = label(config.error_patterns)  # which samples are scored depends on them
    signature = signature if errors is None else signature.extended(errors=errors)
    signature = signature.extended(
        **strata_settings(config.strata),
        **task_settings(config),
        **failure_settings(config, metric),
        **selection_settings(config),
    )
    options = signed_values(declared_options(metric), metric.options)
    return StoredSignature(str(signature), _as_stored(signature.to_dict()), _as_stored(options))


def task_settings(config: RunConfig) -> dict[str, str]:
    """What a task file adds to every signature: its name and version, and a checksum of the data."""
    origin = config.origin
    return {} if origin is None else {"task": f"{origin.name}@{origin.version}", "data": origin.data[:12]}


def selection_settings(config: RunConfig) -> dict[str, object]:
    """What chooses the samples of an input."""
    chosen: dict[str, object] = {} if config.limit is None else {"limit": config.limit}
    if config.ids is not None:
        names = sorted(set(map(str, config.ids)))
        chosen["ids"] = f"{len(names)}@{sha256(chr(10).join(names).encode()).hexdigest()[:8]}"
    return {**chosen, "answered": "only"} if config.only_answered else chosen


def _as_stored(values: Mapping[str, Any]) -> JsonObject:
    """Values as they are read back from run.json: a tuple becomes a list."""
    content: JsonObject = msgspec.json.decode(msgspec.json.encode(dict(values), enc_hook=str))
    return content
