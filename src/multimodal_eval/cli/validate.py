"""`mmeval validate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from multimodal_eval.cli.options import (
    Params,
    annotators_option,
    empty_option,
    input_options,
    log_format_option,
    progress_bar,
    questions_option,
    task_options,
)

_SHOWN_COLUMNS = 100


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.argument("predictions", required=False, type=click.Path(path_type=Path))
@empty_option
@annotators_option
@questions_option
@log_format_option
@input_options
@task_options
def validate(data: Path, predictions: Path | None, limit: int | None, **params: Any) -> None:
    """Check DATA (and PREDICTIONS) as `score` does, and list the problems by kind.

    Each is a file, a folder of files, or a pattern in quotes: 'part-*.jsonl'. DATA may also be a task file (YAML).
    """
    from multimodal_eval.cli.show import console
    from multimodal_eval.cli.terminal import warning
    from multimodal_eval.data.logs.recognised import is_dataset
    from multimodal_eval.data.readers import limits
    from multimodal_eval.data.readers.column_names import peeked
    from multimodal_eval.data.readers.inputs import FileInput
    from multimodal_eval.data.readers.problems import Problems
    from multimodal_eval.data.readers.records import parse_map
    from multimodal_eval.data.readers.summary import Summary, refuse_empty
    from multimodal_eval.run.nothing_scored import missing_answers, missing_references, refuse_missing_answers

    given = data
    data, columns, log = _task_data(data, params)
    annotators = tuple(part.strip() for part in (params["annotators"] or "").split(",") if part.strip())
    mapped, questions = parse_map(columns), params["questions"]
    source = FileInput(
        data, predictions, mapped, params["allow_partial"], annotators, questions, params["log_format"] or log
    )
    problems, summary = Problems(), Summary()
    with limits.using(params["max_expansion"], params["max_record_mb"]), progress_bar() as progress:
        for _ in source.check(problems, summary, limit):
            progress("reading", summary.samples, None)
    problems.raise_if_any()
    refuse_empty(summary, str(data))
    firsts = [files.files[0] for files in (source.data_files, source.prediction_files) if files is not None]
    kinds = {column: kind for first in firsts for column, kind in peeked(first.path, first.log).items()}
    # A dataset and a task are meant to be answered by a model: that no answers are there is not an error.
    to_answer = predictions is None and (given != data or is_dataset(firsts[0].log))
    if not params["allow_empty"] and not to_answer:
        refuse_missing_answers(summary.fields, kinds)
    out = console()
    where = f" in {len(source.files):,} files" if len(source.files) > 1 else ""
    out.print(f"{summary.samples:,} samples{where}, no problems", style="bold")
    for field, count in summary.fields.items():
        out.print(f"  {field:<18} {min(count, summary.samples):>12,}")  # an id in both files is one id
    if summary.metadata:
        names = sorted(summary.metadata)
        more = f", … ({len(names):,} in total)" if len(names) > _SHOWN_COLUMNS else ""
        out.print(f"  metadata columns: {', '.join(names[:_SHOWN_COLUMNS])}{more}")
    if summary.blank_answers:
        out.print(warning(f"{summary.blank_answers:,} blank answers: they get each metric's worst value"))
    notes = [missing_answers(summary.fields, str(given)) if to_answer else None]
    notes.append(missing_references(summary.fields, kinds))
    for note in [*summary.notes, *filter(None, notes)]:
        out.print(f"! {note}")


def _task_data(data: Path, params: Params) -> tuple[Path, dict[str, str], str | None]:
    """The data, columns and format of a task file; other data as they are."""
    from multimodal_eval.cli.running import refuse_task_data
    from multimodal_eval.run.config import is_task_file, merged_columns
    from multimodal_eval.run.task_files import open_task

    columns = dict(params["mapping"])
    if not is_task_file(data):
        refuse_task_data(data, params)
        return data, columns, None
    task = open_task(data, task_data=params["task_data"], allow_outside=params["allow_outside"])
    return task.data, merged_columns(task.settings["map"], columns), task.settings["format"]
