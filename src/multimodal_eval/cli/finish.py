"""The last steps of every scoring command: show, export, check thresholds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import click

from multimodal_eval.cli.options import VERBOSE, Params
from multimodal_eval.core.display import number_beside
from multimodal_eval.core.errors import NothingScoredError, ThresholdError
from multimodal_eval.core.metric import Direction, metric_and_part
from multimodal_eval.core.records import COMPOSITE, JsonObject

if TYPE_CHECKING:
    from multimodal_eval.core.figure import Figure
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.display.blocks import Block
    from multimodal_eval.run.plan import Plan


COVERAGE = "coverage"  # of --fail-under: the scored share of every metric


def conclude(run: Run, params: Params) -> None:
    """Show the run, write the requested files, and fail if a threshold is missed; `params` are `output_options`."""
    try:
        show(run, params)
    except BrokenPipeError:  # `mmeval score … | head` must not hide a missed threshold
        check_thresholds(run, params)
        raise
    if has_limits(params):
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
    if params["jsonl"]:
        run.write_jsonl()
    report: object = None
    if params["wants_report"]:
        from multimodal_eval.cli.report import write_report

        report = write_report(run, media_roots=params.get("media_roots", ()))
    more: Iterable[Block] = ()
    if run.info.imported is not None:
        from multimodal_eval.display.of_run import import_blocks

        more = import_blocks(run)
    print_result(run, params["format_"], lambda: _content(run), more)
    if params["format_"] == "table" and report is not None:
        click.echo(f"report: {report}")


def _content(run: Run) -> JsonObject:
    lint = run.lint_report().findings if run.is_linted else None
    content = {**run.results, "run": run.folder.label, "lint": lint, **origin(run)}
    if run.info.judging:
        from multimodal_eval.analysis.judges import judges_of

        content["judges"] = judges_of(run)
    return content


@dataclass(frozen=True)
class Gate:
    """A limit for a score: the lowest value that passes (`--fail-under`) or the highest (`--fail-over`).

    NAME.low and NAME.high are the ends of the score's interval. The score is the one that human labels correct, if any.
    """

    name: str  # as the user wrote it
    limit: float
    is_ceiling: bool

    @property
    def score(self) -> str:
        """The metric, the composite or the part in the results."""
        name = self.name.rpartition(".")[0] if self.end else self.name
        return COMPOSITE if name == "composite" else name

    @property
    def end(self) -> str | None:
        """The end of the interval that must pass, if it is not the value."""
        name, _, end = self.name.rpartition(".")
        return end if name and end in ("low", "high") else None

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


def has_limits(params: Params) -> bool:
    """Whether the options of a command have a limit for a score, or for the share of the samples that have one."""
    return bool(params["fail_under"] or params["fail_over"] or params["min_coverage"] is not None)


def gates_of(params: Params) -> list[Gate]:
    """The limits in the options of a command."""
    floors = [Gate(name, limit, is_ceiling=False) for name, limit in params["fail_under"] if name != COVERAGE]
    return floors + [Gate(name, limit, is_ceiling=True) for name, limit in params["fail_over"]]


def least_coverage(params: Params) -> float | None:
    """The share of the samples that must be scored, if the options name one."""
    named = [limit for name, limit in params["fail_under"] if name == COVERAGE]
    for limit in named:
        if not 0 <= limit <= 1:
            raise click.UsageError(f"--fail-under {COVERAGE}={limit!r}: a share is from 0 to 1")
    return max([*named, *([] if params["min_coverage"] is None else [params["min_coverage"]])], default=None)


def check_gates(params: Params, plan: Plan) -> None:
    """Refuse a limit for a score that the run does not compute, or on the wrong side, before the run starts."""
    if not has_limits(params):
        return
    least_coverage(params)
    for gate in gates_of(params):
        if metric_and_part(gate.score, plan.names)[0] not in plan.names:
            known = ", ".join(plan.names)
            raise click.UsageError(f"{gate.text}: this run does not compute it. It computes {known}.")
        gate.refuse_direction(plan.direction_of(gate.score))


def check_thresholds(run: Run, params: Params) -> None:
    """Fail if a threshold is missed."""
    missed = missed_thresholds(run.entries, gates_of(params), least_coverage(params))
    if missed:
        raise ThresholdError("\n".join(missed))


def missed_thresholds(entries: Mapping[str, Figure], gates: Sequence[Gate], min_coverage: float | None) -> list[str]:
    """One line per missed threshold; what has no score misses every threshold."""
    missed = [line for gate in gates if (line := _missed(gate, entries)) is not None]
    for name, entry in entries.items():
        coverage = entry.coverage.scored / entry.coverage.total
        if min_coverage is not None and coverage < min_coverage:
            shown = number_beside(coverage, min_coverage)
            missed.append(f"{name} is scored for {shown} of the samples, below {min_coverage!r}")
    return missed


def _missed(gate: Gate, entries: Mapping[str, Figure]) -> str | None:
    metric, part = metric_and_part(gate.score, entries)
    if metric not in entries:
        return f"{gate.name} is unscored: the run did not compute it. It computed {', '.join(entries)}"
    entry = entries[metric]
    if part and part not in entry.parts:
        known = f"It has {', '.join(entry.parts)}" if entry.parts else "It has none"
        return f"{gate.name} is unscored: {metric} has no part {part!r}. {known}"
    figure = entry.parts[part] if part else entry.published
    value = getattr(figure, gate.end) if gate.end else figure.value
    if value is None and gate.end and figure.value is not None:
        return f"{gate.name} is missing, and {gate.text} needs it: {figure.method}"
    if value is None:
        reason = f". Commonest reason: {entry.reasons[0].reason}" if entry.reasons else ""
        return f"{gate.name} is unscored, and {gate.text} needs a score{reason}"
    line = gate.missed(value)
    return f"{line}, corrected by human labels" if line is not None and figure.labels is not None else line


def origin(run: Run) -> JsonObject:
    """Where the scores of an imported run are from, for programs; empty for another run."""
    info = run.info.imported
    if info is None:
        return {}
    from multimodal_eval.run.import_log import own_means

    means = [
        {"metric": mean.metric, "log": mean.log, "reported": mean.stated, "mean": mean.mean, "note": mean.explanation}
        for mean in own_means(run)
    ]
    return {"imported": {**{name: getattr(info, name) for name in info.__struct_fields__}, "reported": means}}


# The one way in which a command prints a result: its blocks, in the format that `--format` names.


def print_result(
    result: object, format_: str, content: Callable[[], object] | None = None, more: Iterable[Block] = ()
) -> None:
    """Print a result, and `more` about it. `content` is the JSON form; without one, JSON has the blocks."""
    from multimodal_eval.display.renderer import blocks_of

    print_blocks(chain(blocks_of(result), more), format_, content)


def print_blocks(blocks: Iterable[Block], format_: str = "table", content: Callable[[], object] | None = None) -> None:
    """Print blocks: the terminal as they come, other formats as one text."""
    if format_ == "json" and content is not None:
        from multimodal_eval.core.records import to_json

        click.echo(to_json(content()).decode(), nl=False)
    elif format_ == "table":
        from multimodal_eval.display.terminal import TerminalRenderer

        context = click.get_current_context(silent=True)
        verbose = None if context is None else context.meta.get(VERBOSE)
        renderer = TerminalRenderer(unfolds=bool(verbose))
        for block in blocks:
            renderer.block(block)
        if renderer.hidden and verbose is not None:
            click.echo(f"-v also prints: {', '.join(dict.fromkeys(renderer.hidden))}")
    else:
        from multimodal_eval.display.renderer import rendered

        click.echo(rendered(list(blocks), format_), nl=False)
