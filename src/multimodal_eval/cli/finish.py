"""The last steps of every scoring command: show, export, check thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from multimodal_eval.cli.options import Params
from multimodal_eval.core.errors import NothingScoredError, ThresholdError
from multimodal_eval.core.metric import metric_and_part

if TYPE_CHECKING:
    from multimodal_eval.core.records import Entry
    from multimodal_eval.data.runs.run import Run


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
    from multimodal_eval.cli.show_import import origin, show_origin

    if params["format_"] == "json":
        from multimodal_eval.core.records import to_json

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


def check_thresholds(run: Run, params: Params) -> None:
    """Fail if a threshold is missed."""
    missed = missed_thresholds(run.entries, params["fail_under"], params["min_coverage"])
    if missed:
        raise ThresholdError("\n".join(missed))


def check_names(fail_under: Sequence[tuple[str, float]], names: Sequence[str]) -> None:
    """Refuse a threshold on a metric that the run does not compute, before the run starts."""
    for name, _ in fail_under:
        if metric_and_part(_full(name), names)[0] not in names:
            known = ", ".join(names)
            raise click.UsageError(f"--fail-under {name}: this run does not compute it. It computes {known}.")


def _full(name: str) -> str:
    return "composite_score" if name == "composite" else name


def _value(entries: Mapping[str, Entry], name: str) -> float | None:
    """The value of a metric, or of `metric.part`; None if there is none."""
    metric, part = metric_and_part(name, entries)
    figure = entries[metric].parts.get(part) if part else entries[metric]
    return None if figure is None else figure.value


def missed_thresholds(
    entries: Mapping[str, Entry], fail_under: Sequence[tuple[str, float]], min_coverage: float | None
) -> list[str]:
    """One line per missed threshold; an unscored metric misses every threshold."""
    missed = []
    for name, minimum in fail_under:
        value = _value(entries, _full(name))
        if value is None or value < minimum:
            missed.append(f"{name} is {'unscored' if value is None else repr(value)}, below {minimum!r}")
    for name, entry in entries.items():
        coverage = entry.n_scored / entry.n_total
        if min_coverage is not None and coverage < min_coverage:
            missed.append(f"{name} is scored for {coverage:.4f} of the samples, below {min_coverage!r}")
    return missed
