"""The last steps of every scoring command: show, export, check thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from multimodal_eval.cli.options import Params
from multimodal_eval.cli.terminal import as_text, console, warning
from multimodal_eval.core.display import number_beside
from multimodal_eval.core.errors import NothingScoredError, ThresholdError
from multimodal_eval.core.metric import Direction, metric_and_part
from multimodal_eval.core.records import COMPOSITE, JsonObject, fields_of, to_json

if TYPE_CHECKING:
    from multimodal_eval.core.records import Entry
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.plan import Plan


def conclude(run: Run, params: Params) -> None:
    """Show the run, write the requested files, and fail if a threshold is missed; `params` are `output_options`."""
    try:
        show(run, params)
    except BrokenPipeError:  # `mmeval score … | head` must not hide a missed threshold
        check_thresholds(run, params)
        raise
    check_thresholds(run, params)


@contextmanager
def shown_if_partly_scored(params: Params) -> Iterator[None]:
    """If some metrics of a run have no scores, show the others before the error."""
    from multimodal_eval.data.runs.run import Run

    try:
        yield
    except NothingScoredError as error:
        if error.run is not None and any(entry.n_scored for entry in Run(error.run).entries.values()):
            show(Run(error.run), params)
        raise


def show(run: Run, params: Params) -> None:
    """Show the run and write the requested files."""
    from multimodal_eval.cli.report import write_report

    if params["jsonl"]:
        run.write_jsonl()
    report = write_report(run, enabled=params["wants_report"], media_roots=params.get("media_roots", ()))

    if params["format_"] == "json":
        lint = run.lint_report().findings if run.is_linted else None
        content = {**run.results, "run": run.folder.label, "lint": lint, **origin(run)}
        if run.info.judging:
            from multimodal_eval.analysis.judges import judges_of

            content["judges"] = judges_of(run)
        click.echo(to_json(content).decode(), nl=False)
    else:
        from multimodal_eval.cli.show import show_run

        show_run(run)
        show_origin(run)
        if report is not None:
            click.echo(f"report: {report}")


@dataclass(frozen=True)
class Gate:
    """A limit for a score: the lowest value that passes (`--fail-under`) or the highest (`--fail-over`)."""

    name: str  # as the user wrote it
    limit: float
    is_ceiling: bool

    @property
    def score(self) -> str:
        """The metric, the composite or the part in the results."""
        return COMPOSITE if self.name == "composite" else self.name

    @property
    def text(self) -> str:
        """The gate as an option of a command."""
        return f"{'--fail-over' if self.is_ceiling else '--fail-under'} {self.name}={self.limit!r}"

    def refuse_direction(self, direction: Direction | None) -> None:
        """Refuse a limit on the wrong side, which every bad score would pass."""
        if direction is not None and self.is_ceiling != (direction == "lower"):
            right = replace(self, is_ceiling=not self.is_ceiling)
            raise click.UsageError(f"{self.text}: {self.name} is {direction}-is-better: use {right.text}")

    def missed(self, value: float) -> str | None:
        """The line about a value that does not pass."""
        if value <= self.limit if self.is_ceiling else value >= self.limit:
            return None
        side = "above" if self.is_ceiling else "below"
        return f"{self.name} is {number_beside(value, self.limit)}, {side} {self.limit!r}"


def gates_of(params: Params) -> list[Gate]:
    """The limits in the options of a command."""
    floors = [Gate(name, limit, is_ceiling=False) for name, limit in params["fail_under"]]
    return floors + [Gate(name, limit, is_ceiling=True) for name, limit in params["fail_over"]]


def check_gates(params: Params, plan: Plan) -> None:
    """Refuse a limit for a score that the run does not compute, or on the wrong side, before the run starts."""
    for gate in gates_of(params):
        if metric_and_part(gate.score, plan.names)[0] not in plan.names:
            known = ", ".join(plan.names)
            raise click.UsageError(f"{gate.text}: this run does not compute it. It computes {known}.")
        gate.refuse_direction(plan.direction_of(gate.score))


def check_thresholds(run: Run, params: Params) -> None:
    """Fail if a threshold is missed."""
    missed = missed_thresholds(run.entries, gates_of(params), params["min_coverage"])
    if missed:
        raise ThresholdError("\n".join(missed))


def missed_thresholds(entries: Mapping[str, Entry], gates: Sequence[Gate], min_coverage: float | None) -> list[str]:
    """One line per missed threshold; what has no score misses every threshold."""
    missed = [line for gate in gates if (line := _missed(gate, entries)) is not None]
    for name, entry in entries.items():
        coverage = entry.n_scored / entry.n_total
        if min_coverage is not None and coverage < min_coverage:
            shown = number_beside(coverage, min_coverage)
            missed.append(f"{name} is scored for {shown} of the samples, below {min_coverage!r}")
    return missed


def _missed(gate: Gate, entries: Mapping[str, Entry]) -> str | None:
    metric, part = metric_and_part(gate.score, entries)
    if metric not in entries:
        return f"{gate.name} is unscored: the run did not compute it. It computed {', '.join(entries)}"
    entry = entries[metric]
    if part and part not in entry.parts:
        known = f"It has {', '.join(entry.parts)}" if entry.parts else "It has none"
        return f"{gate.name} is unscored: {metric} has no part {part!r}. {known}"
    value = (entry.parts[part] if part else entry).value
    if value is None:
        reason = f". Commonest reason: {entry.reasons[0].reason}" if entry.reasons else ""
        return f"{gate.name} is unscored, and {gate.text} needs a score{reason}"
    return gate.missed(value)


# Where the scores of an imported run are from, on the terminal and as JSON.


def show_origin(run: Run) -> None:
    """Print the harness, and how the means of the run compare with its own results."""
    info = run.info.imported
    if info is None:
        return
    from multimodal_eval.run.import_log import own_means

    out = console()
    facts = {"": info.version, "model ": info.model, "task ": info.task}
    listed = "".join(f", {name}{value}" if name else f" {value}" for name, value in facts.items() if value)
    out.print(f"\nimported from {as_text(info.harness + listed)}", style="bold", soft_wrap=True)
    for mean in own_means(run):
        where = f"{mean.log}: " if mean.log else ""
        line = f"{where}{mean.metric}: {mean.explanation}"
        out.print(f"  {as_text(line)}" if mean.is_equal else warning(line), soft_wrap=True)
    for note in info.notes:
        out.print(warning(note), soft_wrap=True)


def origin(run: Run) -> JsonObject:
    """The same for programs; empty for a run that was not imported."""
    info = run.info.imported
    if info is None:
        return {}
    from multimodal_eval.run.import_log import own_means

    means = [
        {"metric": mean.metric, "log": mean.log, "reported": mean.stated, "mean": mean.mean, "note": mean.explanation}
        for mean in own_means(run)
    ]
    return {"imported": {**fields_of(info), "reported": means}}
