"""What the harness of an installed task reports: its own aggregates of the answers, beside the means of the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from multimodal_eval.core.failures import compiled_patterns, is_error_message
from multimodal_eval.core.records import ImportInfo, ReportedScore, computed_scores
from multimodal_eval.evaluation.harness import harness_of
from multimodal_eval.evaluation.harness.process import opened
from multimodal_eval.evaluation.harness.scorer import asked_about
from multimodal_eval.run.harness_tasks import functions_of
from multimodal_eval.run.step import Step

__all__ = ["Reported"]


class Reported(Step):
    """Notes the harness, its version, its functions, and what its aggregates make of all answers."""

    def left(self) -> Sequence[Any]:
        """[None] if the results are missing, or older than the scores."""
        return [] if self.run.has_results and self.run.info.imported is not None else [None]

    def make(self, left: Sequence[Any]) -> None:
        """Have the answers aggregated by the functions of the task."""
        run = self.run
        computed = computed_scores(run.plan.config)
        options = next(iter(computed.values()))
        package, name = harness_of(options["task"]) or ("", "")
        task = opened(package, name, options.get("data"))
        functions = functions_of(task.about)
        aggregates = self._aggregates(task)
        notes = [
            f"{package} reports no {each['column']}: {aggregates[each['column']]['error']}"
            for each in computed.values()
            if "error" in aggregates.get(each["column"], {})
        ]
        reported = [
            ReportedScore(
                metric=metric,
                value=figure["value"],
                samples=figure["samples"],
                aggregation=_other_than_mean(functions[each["column"]]),
            )
            for metric, each in computed.items()
            if "value" in (figure := aggregates.get(each["column"], {}))
        ]
        run.note(
            imported=ImportInfo(
                harness=package,
                version=str(options.get("version")),
                task=name,
                settings={metric: functions[each["column"]] for metric, each in computed.items()},
                reported=reported,
                notes=notes,
            )
        )

    def _aggregates(self, task: Any) -> dict[str, Any]:
        """The aggregates over the answers. Those of several epochs are not one set of documents."""
        run = self.run
        if run.plan.config.generation is not None and run.plan.config.generation.epochs > 1:
            return {}
        patterns = compiled_patterns(run.plan.config.patterns)
        answered = [
            asked_about(sample, task.about["kind"])
            for part in run.parts
            for sample in run.folder.read_samples(part)
            if sample.generated_answer is not None and sample.error is None
            if not is_error_message(sample.generated_answer, patterns)
        ]
        docs = [each for each in answered if not isinstance(each, str)]
        aggregates: dict[str, Any] = task.process.ask("aggregate", docs=docs) if docs else {}
        return aggregates


def _other_than_mean(functions: str) -> str | None:
    """The name of the aggregate if it is not a mean."""
    name = functions.rpartition(" > ")[2]
    return None if name.rpartition(".")[2] in ("mean", "nanmean") else name
